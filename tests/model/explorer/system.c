/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system contract for models: threads are fibres, a futex is a choice, time stands still.
 *
 * A futex wait compares with the newest value, in the same step in which it goes to sleep. It
 * synchronises nothing: code that relies on the kernel's barriers is at fault. Which of several
 * sleepers a wake reaches is a choice. A timed wait may end at any moment while the execution's
 * budget of timeouts lasts, which moves the clock to its deadline; without budget, only when
 * nothing else can run.
 */
#include "system/clock.h"
#include "system/cpu.h"
#include "system/env.h"
#include "system/fence.h"
#include "system/fork.h"
#include "system/futex.h"
#include "system/memory.h"
#include "system/random.h"
#include "system/thread.h"
#include "explorer.h"
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Futex ---- */

static bool returns_for_no_reason(void)
{
    struct run *run = &model__run;

    if (run->spurious_wakes_left == 0 || model__choose_weighted(2, 8) == 0)
        return false;
    run->spurious_wakes_left--;
    return true;
}

static void trace_wait(struct thread *self, enum trace_kind kind, const struct location *location,
                       uint64_t value)
{
    struct trace_event *event = model__trace(self, kind);

    event->location = location->number;
    event->value = value;
}

/* False: timed out. */
static bool wait_in_futex(uint32_t *word, uint32_t expected, bool timed, int64_t deadline_ns)
{
    struct run *run = &model__run;
    struct thread *self = run->self;
    uint64_t value;

    model__schedule_point(self);
    model__step(self);
    struct location *location = model__read_newest(self, word, sizeof *word, &value);
    if (value != expected) {
        trace_wait(self, TRACE_WAIT_REFUSED, location, value);
        return true;
    }
    if (timed && run->now_ns >= deadline_ns) {
        model__trace(self, TRACE_WAIT_TIMED_OUT);
        return false;
    }
    if (returns_for_no_reason()) {
        self->trail = model__mix(self->trail, UINT64_MAX);
        model__trace(self, TRACE_WAIT_SPURIOUS);
        return true;
    }
    trace_wait(self, TRACE_WAIT, location, value);
    self->futex = word;
    self->timed_out = false;
    self->deadline_ns = deadline_ns;
    if (timed)
        run->timed |= 1u << self->id;
    model__block(self, THREAD_IN_FUTEX);
    model__trace(self, self->timed_out ? TRACE_WAIT_TIMED_OUT : TRACE_WOKEN);
    return !self->timed_out;
}

void blz__futex_wait(uint32_t *word, uint32_t expected)
{
    if (!model__run.active)
        abort();
    wait_in_futex(word, expected, false, 0);
}

bool blz__futex_wait_until(uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    if (!model__run.active)
        abort();
    return wait_in_futex(word, expected, true, deadline_ns);
}

static unsigned sleepers_on(const uint32_t *word)
{
    unsigned set = 0;

    for (unsigned id = 0; id < MODEL_MAX_THREADS; id++) {
        const struct thread *thread = &model__run.threads[id];
        if (thread->state == THREAD_IN_FUTEX && thread->futex == word)
            set |= 1u << id;
    }
    return set;
}

void blz__futex_wake(uint32_t *word, int count)
{
    if (!model__run.active)
        return;
    struct thread *self = model__run.self;

    model__schedule_point(self);
    model__step(self);
    unsigned sleepers = sleepers_on(word);
    if (sleepers == 0)
        model__trace(self, TRACE_WAKE);
    for (; sleepers != 0 && count > 0; count--) {
        unsigned choice = count >= __builtin_popcount(sleepers)
                              ? 0
                              : model__choose((unsigned)__builtin_popcount(sleepers));
        struct thread *woken = model__nth_thread(sleepers, choice);

        sleepers &= ~(1u << woken->id);
        woken->trail = model__mix(woken->trail, (uint64_t)self->id << 32 | (uint64_t)self->clock);
        self->trail = model__mix(self->trail, woken->id);
        model__make_ready(woken);
        struct trace_event *event = model__trace(self, TRACE_WAKE);
        event->value = 1;
        event->second = woken->id;
    }
}

/* ---- Threads ---- */

model_thread model_start_named(void (*fn)(void *), void *arg, const char *name)
{
    if (!model__run.active)
        model_fail("a thread is started outside of a test");
    struct thread *self = model__run.self;

    model__step(self);
    struct thread *thread = model__thread_new(fn, arg, name);
    model__trace(self, TRACE_START)->value = thread->id;
    return (model_thread){thread->id};
}

model_thread model_start(void (*fn)(void *), void *arg)
{
    return model_start_named(fn, arg, NULL);
}

void model_join(model_thread joined)
{
    struct thread *self = model__run.self;
    struct thread *thread = &model__run.threads[joined.id];

    if (thread->state == THREAD_UNUSED || thread->joined || thread == self)
        model_fail("a join of thread %u, which cannot be joined", joined.id);
    thread->joined = true;
    if (thread->state != THREAD_FINISHED) {
        self->joining = joined.id;
        model__block(self, THREAD_IN_JOIN);
    }
    model__step(self);
    view_join(&self->view, &thread->view);
    model__trace(self, TRACE_JOIN)->value = joined.id;
}

void model_refuse_starts(unsigned count)
{
    model__run.refused_starts = count;
}

int blz__thread_start(blz__thread *thread, void (*fn)(void *), void *arg, size_t stack_size,
                      const char *name)
{
    (void)stack_size;
    if (model__run.refused_starts > 0) {
        model__run.refused_starts--;
        return -EAGAIN;
    }
    thread->handle = model_start_named(fn, arg, name).id;
    return 0;
}

void blz__thread_join(blz__thread thread)
{
    model_join((model_thread){(unsigned)thread.handle});
}

void blz__thread_yield(void)
{
    model_spin_hint(NULL);
}

unsigned model_thread_id(void)
{
    return model__run.self != NULL ? model__run.self->id : 0;
}

blz__thread blz__thread_self(void)
{
    return (blz__thread){model_thread_id()};
}

void blz__thread_stack(uintptr_t *low, uintptr_t *size)
{
    *low = *size = 0;
}

uint64_t blz__thread_id(void)
{
    return model_thread_id() + 1;
}

void blz__thread_name(char *out, size_t size)
{
    memset(out, 0, size);
}

void blz__thread_spread(unsigned number)
{
    (void)number;
}

bool model_running(void)
{
    return model__run.active;
}

/* ---- Fences ---- */

bool blz__fence_asymmetric_init(void)
{
    return !model__settings()->no_membarrier;
}

/*
 * What membarrier does: a fence here, and one in every other thread, wherever it is at this moment.
 * The light fence is nothing but a promise to the compiler, in model builds as in others. All
 * heavy ones are one site for MODEL_MUTATE.
 */
void blz__fence_heavy(void)
{
    struct model_site *site = MODEL_SITE(MODEL_OP_FENCE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, "");

    if (model__settings()->no_membarrier)
        model_fail("a heavy fence where the system has none");
    model_fence(site);
    if (!model__run.active || site->dropped)
        return;
    for (unsigned id = 0; id < MODEL_MAX_THREADS; id++) {
        struct thread *thread = &model__run.threads[id];
        if (thread->state != THREAD_UNUSED) /* what those that have ended did counts, too */
            model__seq_cst_fence(thread);
    }
    model__seq_cst_fence(model__run.self); /* after the others': sees what they did before theirs */
}

/* ---- Memory, time, and the rest ---- */

void *blz__memory_alloc(size_t size, size_t align)
{
    return model_alloc(size, align);
}

void *blz__memory_alloc_zeroed(size_t size, size_t align)
{
    void *block = model_alloc(size, align);

    if (block != NULL)
        memset(block, 0, size);
    return block;
}

void blz__memory_free(void *block, size_t align)
{
    (void)align;
    model_free(block);
}

void *blz__pages_map(size_t size)
{
    void *pages = model_alloc(size, size);
    if (pages != NULL)
        memset(pages, 0, size);
    return pages;
}

void blz__pages_prefault(void *pages, size_t size)
{
    (void)pages;
    (void)size;
}

void blz__pages_unmap(void *pages, size_t size)
{
    (void)size;
    model_free(pages);
}

unsigned blz__cpu_count(void)
{
    return 2;
}

int64_t blz__clock_ns(void)
{
    return model__run.now_ns;
}

int64_t model_clock_now(void)
{
    return model__run.now_ns;
}

void model_clock_advance(int64_t ns)
{
    struct run *run = &model__run;

    run->now_ns += ns;
    for (unsigned id = 0; id < MODEL_MAX_THREADS; id++) {
        struct thread *thread = &run->threads[id];
        if ((run->timed & (1u << id)) != 0 && thread->deadline_ns <= run->now_ns) {
            thread->timed_out = true;
            model__make_ready(thread);
            run->self->just_switched = false;
        }
    }
}

uint32_t *blz__fork_word_new(void)
{
    uint32_t *word = model_alloc(sizeof *word, sizeof *word);

    if (word != NULL)
        *word = 1;
    return word;
}

void blz__fork_word_free(uint32_t *word)
{
    model_free(word);
}

const char *blz__env_get(const char *name)
{
    (void)name;
    return NULL;
}

uint64_t blz__random_seed(void)
{
    return model__run.seed++;
}
