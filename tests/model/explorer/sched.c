/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs: the threads of an execution and the switches between them.
 *
 * A thread keeps running until it blocks, spins, finishes, or is preempted. It can be preempted
 * before each operation that others can notice, as long as the execution's budget of preemptions
 * lasts; leaving a thread that cannot go on is free. What happens between two such operations is
 * the thread's own business, so nothing is lost by not switching there, nor by not switching again
 * right after a switch.
 *
 * Spinning. A spin hint says: this thread waits for another one. It is then offered again only when
 * another thread has changed something, or (a few times, for loops that give up and park) although
 * nothing has changed. Two spinning threads could keep each other going for ever while the
 * third one, for which they wait, never runs; hence a fairness rule: a thread that spins for the
 * second time waits until each thread that is ready has done something since the first time. When
 * nobody else can run, spinning threads run once more with loads that read only the newest stores,
 * since real memory does not hide a store for ever. If that does not help, it is a livelock.
 */
#include "explorer.h"

#include <string.h>

struct run model__run;

/* ---- Who can run ---- */

static unsigned bit(const struct thread *thread)
{
    return 1u << thread->id;
}

static struct thread *lowest(unsigned set)
{
    return &model__run.threads[__builtin_ctz(set)];
}

static bool others_changed_something(const struct thread *thread)
{
    return model__run.changes - thread->own_changes != thread->spin_changes;
}

static bool may_spin_on(const struct thread *thread)
{
    if (!others_changed_something(thread) && thread->idle_spins >= model__run.options.spins)
        return false;
    for (unsigned set = model__run.ready; set != 0; set &= set - 1)
        if (lowest(set)->last_step <= thread->previous_spin_step)
            return false;
    return true;
}

/* The threads that can be chosen to run next. */
static unsigned runnable(void)
{
    struct run *run = &model__run;
    unsigned set = run->ready;

    for (unsigned spinning = run->spinning; spinning != 0; spinning &= spinning - 1)
        if (may_spin_on(lowest(spinning)))
            set |= bit(lowest(spinning));
    if (run->timeouts_left > 0)
        set |= run->timed;
    return set;
}

static unsigned spinners_that_have_not_tried_all(void)
{
    unsigned set = 0;

    for (unsigned spinning = model__run.spinning; spinning != 0; spinning &= spinning - 1) {
        struct thread *thread = lowest(spinning);
        if (!thread->spun_on_newest || others_changed_something(thread)) {
            thread->wants_newest = true;
            set |= bit(thread);
        }
    }
    return set;
}

static unsigned first_to_time_out(void)
{
    struct thread *first = NULL;

    for (unsigned timed = model__run.timed; timed != 0; timed &= timed - 1)
        if (first == NULL || lowest(timed)->deadline_ns < first->deadline_ns)
            first = lowest(timed);
    return first == NULL ? 0 : bit(first);
}

static _Noreturn void fail_stuck(void)
{
    char who[400] = "";
    size_t used = 0;

    for (int id = 0; id < MODEL_MAX_THREADS; id++) {
        const struct thread *thread = &model__run.threads[id];
        const char *how = thread->state == THREAD_IN_FUTEX   ? "sleeps in futex_wait"
                          : thread->state == THREAD_IN_JOIN  ? "waits in join"
                          : thread->state == THREAD_SPINNING ? "spins"
                                                             : NULL;
        if (how != NULL && used < sizeof who)
            used += (size_t)snprintf(who + used, sizeof who - used, "%s thread %d %s",
                                     used > 0 ? "," : "", id, how);
    }
    model_fail("%s: no thread can go on:%s", model__run.spinning != 0 ? "livelock" : "deadlock",
               who);
}

/* As runnable(), when the current thread cannot go on: somebody must. */
static unsigned runnable_or_last_resort(void)
{
    unsigned set = runnable();

    if (set == 0)
        set = spinners_that_have_not_tried_all();
    if (set == 0)
        set = first_to_time_out();
    if (set == 0)
        fail_stuck();
    return set;
}

/* ---- Switching ---- */

void model__make_ready(struct thread *thread)
{
    struct run *run = &model__run;

    thread->state = THREAD_READY;
    thread->just_switched = true;
    run->spinning &= ~bit(thread);
    run->timed &= ~bit(thread);
    run->ready |= bit(thread);
}

/* A thread chosen out of its timed wait has slept until its deadline. */
static void time_out(struct thread *thread)
{
    struct run *run = &model__run;

    thread->timed_out = true;
    if (run->timeouts_left > 0)
        run->timeouts_left--;
    if (run->now_ns < thread->deadline_ns)
        run->now_ns = thread->deadline_ns;
    model__make_ready(thread);
}

static void switch_to(struct thread *next, bool self_is_done)
{
    struct run *run = &model__run;
    struct thread *self = run->self;

    if (next->state == THREAD_IN_FUTEX)
        time_out(next);
    else if (next->state == THREAD_SPINNING)
        model__make_ready(next);
    if (next == self)
        return;
    model__locals_switch(self, next);
    run->self = next;
    model__fibre_switch(&self->fibre, &next->fibre, self_is_done);
}

struct thread *model__nth_thread(unsigned set, unsigned n)
{
    while (n-- > 0)
        set &= set - 1;
    return lowest(set);
}

void model__schedule_point(struct thread *self)
{
    struct run *run = &model__run;

    if (self->just_switched) {
        self->just_switched = false;
        return;
    }
    if (run->preemptions_left == 0)
        return;
    unsigned others = runnable() & ~bit(self);
    if (others == 0)
        return;
    unsigned choice = model__choose_thread((unsigned)__builtin_popcount(others) + 1, 3);
    if (choice == 0)
        return;
    run->preemptions_left--;
    run->preemptions_used++;
    switch_to(model__nth_thread(others, choice - 1), false);
}

static void run_another(struct thread *self)
{
    unsigned set = runnable_or_last_resort();
    unsigned choice = model__choose_thread((unsigned)__builtin_popcount(set), 1);

    switch_to(model__nth_thread(set, choice), self->state == THREAD_FINISHED);
}

/* Returns when another thread has made this one ready, and it was chosen. */
void model__block(struct thread *self, enum thread_state state)
{
    model__run.ready &= ~bit(self);
    self->state = state;
    self->wants_newest = false;
    run_another(self);
}

void model_spin_hint(struct model_site *site)
{
    struct run *run = &model__run;

    if (!run->active)
        return;
    struct thread *self = run->self;
    model__step(self);
    if (site != NULL)
        self->last_site = site;
    model__trace(self, site != NULL ? TRACE_SITE : TRACE_YIELD);
    self->idle_spins = others_changed_something(self) ? 0 : self->idle_spins + 1;
    self->spun_on_newest = self->wants_newest && self->idle_spins > 0;
    self->wants_newest = false;
    self->spin_changes = run->changes - self->own_changes;
    self->previous_spin_step = self->spin_step;
    self->spin_step = run->step;
    self->state = THREAD_SPINNING;
    run->ready &= ~bit(self);
    run->spinning |= bit(self);
    run_another(self);
}

/* ---- The life of a thread ---- */

static void thread_finish(struct thread *self)
{
    struct run *run = &model__run;

    self->state = THREAD_FINISHED;
    run->ready &= ~bit(self);
    model__trace(self, TRACE_FINISH);
    bool all_done = true;
    for (int id = 0; id < MODEL_MAX_THREADS; id++) {
        struct thread *other = &run->threads[id];
        if (other->state == THREAD_IN_JOIN && other->joining == self->id)
            model__make_ready(other);
        if (other->state != THREAD_FINISHED && other->state != THREAD_UNUSED)
            all_done = false;
    }
    if (!all_done)
        run_another(self);
    model__heap_check_leaks();
    run->self = NULL;
    model__fibre_switch(&self->fibre, &run->explorer, true);
}

static void thread_entry(void)
{
    model__fibre_entered();
    struct thread *self = model__run.self;
    self->fn(self->arg);
    thread_finish(self);
}

/*
 * A lane of the clocks can be used again by a thread that starts after the end of the former one
 * is known to the starter: its events happen before the new ones.
 */
static bool can_be_reused(const struct thread *thread, const struct thread *starter)
{
    return thread->state == THREAD_FINISHED && thread->joined &&
           starter->view.happened[thread->id] >= thread->clock;
}

static struct thread *thread_slot(const struct thread *starter)
{
    for (unsigned id = 0; id < MODEL_MAX_THREADS; id++) {
        struct thread *thread = &model__run.threads[id];
        if (thread->state == THREAD_UNUSED || (starter && can_be_reused(thread, starter)))
            return thread;
    }
    model_fail("more than %d threads at a time", MODEL_MAX_THREADS);
}

struct thread *model__thread_new(void (*fn)(void *), void *arg, const char *name)
{
    struct thread *starter = model__run.self;
    struct thread *thread = thread_slot(starter);
    struct fibre fibre = thread->fibre;
    char *copy_of_locals = thread->locals;
    int16_t clock = thread->clock;
    unsigned id = (unsigned)(thread - model__run.threads);

    memset(thread, 0, sizeof *thread);
    thread->fibre = fibre;
    thread->locals = copy_of_locals;
    thread->id = id;
    thread->clock = clock;
    thread->fn = fn;
    thread->arg = arg;
    thread->name = name;
    thread->spin_step = thread->previous_spin_step = -1;
    thread->spin_changes = UINT32_MAX;
    if (starter != NULL) {
        thread->view = starter->view;
        starter->just_switched = false; /* there is somebody new to switch to */
    }
    model__locals_clear(thread);
    model__fibre_prepare(&thread->fibre, thread_entry);
    model__make_ready(thread);
    return thread;
}

/* ---- An execution ---- */

static void execution_begin(void)
{
    struct run *run = &model__run;
    const struct model_options *options = &run->options;

    for (int id = 0; id < MODEL_MAX_THREADS; id++) {
        run->threads[id].state = THREAD_UNUSED;
        run->threads[id].clock = 0;
    }
    run->self = NULL;
    run->ready = run->spinning = run->timed = 0;
    run->step = 0;
    run->preemptions_left = options->preemptions;
    run->stale_reads_left = options->stale_reads;
    run->spurious_cas_left = options->spurious_cas;
    run->spurious_wakes_left = options->spurious_wakes;
    run->timeouts_left = options->timeouts;
    run->preemptions_used = 0;
    run->changes = 0;
    run->locations_hash = run->seq_cst_trail = 0;
    run->fenced = (clock_vector){0};
    run->now_ns = INT64_C(1000000000);
    run->refused_starts = 0;
    run->seed = 1;
    run->failed = run->pruned = false;
    model__locations_reset();
    model__heap_reset();
    model__trace_reset();
}

static void call_test(void *arg)
{
    void (*test)(void) = *(void (**)(void))arg;
    test();
}

/* One execution, from the first operation to the last, or to where it fails. */
void model__execute(void (*test)(void))
{
    struct run *run = &model__run;

    execution_begin();
    struct thread *thread = model__thread_new(call_test, &test, "main");
    run->self = thread;
    run->active = true;
    model__locals_switch(NULL, thread);
    model__fibre_switch(&run->explorer, &thread->fibre, false);
    run->active = false;
}

/* Ends a failed execution: all fibres are left where they are. */
_Noreturn void model__abandon(void)
{
    struct run *run = &model__run;
    struct thread *self = run->self;

    run->self = NULL;
    model__fibre_switch(&self->fibre, &run->explorer, true);
    __builtin_unreachable();
}
