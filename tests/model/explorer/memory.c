/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory model: what each atomic operation may read, and what it makes known.
 *
 * The stores to a location are kept in the order in which they were executed, which is taken as
 * their modification order. A read-modify-write reads the newest. A load may read any store from
 * the newest down to a floor, each of which is a branch of the exploration. The floor is the latest
 * store that
 *
 *  - was read or written by an event that is visible to the loading thread (coherence: the events
 *    that happen before, its own ones included, and those that seq_cst fences order before it);
 *  - for a seq_cst load, was read or written by an earlier seq_cst access, or is visible to a
 *    seq_cst fence that was executed earlier;
 *  - after a seq_cst fence, was read or written by a seq_cst access executed before that fence.
 *
 * The last two are the four cases of C++20 [atomics.order]/4, with the order of execution as the
 * single total order S.
 *
 * A release store carries the thread's view; a relaxed one the view of the thread's last release
 * fence; a read-modify-write adds its view to that of the store it replaces (release sequences, in
 * the form of C++20: only read-modify-writes continue them). An acquire load joins what it reads
 * into the thread's view, a relaxed one into what the next acquire fence will join.
 */
#include "explorer.h"

#include <string.h>

static uint64_t truncate_to(uint64_t value, size_t size)
{
    return size == 8 ? value : value & ((UINT64_C(1) << (8 * size)) - 1);
}

/* ---- What may be read ---- */

static bool any_lane(clock_vector mask)
{
    typedef uint64_t half_vector __attribute__((vector_size(sizeof(clock_vector))));
    half_vector halves = (half_vector)mask;
    return (halves[0] | halves[1]) != 0;
}

static bool must_be_seen(const struct store *store, const struct thread *self, bool seq_cst)
{
    if (any_lane(store->seen <= self->view.visible))
        return true;
    if (store->seq_cst_step != 0 && (seq_cst || store->seq_cst_step < self->view.fence))
        return true;
    return seq_cst && any_lane(store->seen <= model__run.fenced);
}

static uint32_t load_floor(struct location *location, const struct thread *self, bool seq_cst)
{
    uint32_t index = location->newest;

    while (index > location->oldest &&
           !must_be_seen(&location->stores[index % MAX_HISTORY], self, seq_cst))
        index--;
    return index;
}

/*
 * The indices that a load chooses from, newest first. A CAS that fails is a load too, but only of a
 * value that makes it fail; pass what it expects.
 */
static unsigned load_candidates(struct location *location, const struct thread *self, bool seq_cst,
                                const uint64_t *expected, uint32_t *candidates)
{
    uint32_t floor = load_floor(location, self, seq_cst);
    unsigned count = 0;

    candidates[count++] = location->newest;
    for (uint32_t index = location->newest; index-- > floor;) {
        const struct store *store = &location->stores[index % MAX_HISTORY];

        if (store->stale_reads[self->id] >= model__run.options.stale_rereads)
            continue;
        if (expected != NULL && store->value == *expected)
            continue;
        candidates[count++] = index;
    }
    return count;
}

static struct store *choose_store(struct location *location, struct thread *self, bool seq_cst,
                                  const uint64_t *expected)
{
    struct run *run = &model__run;
    uint32_t candidates[MAX_HISTORY];

    if (location->newest == location->oldest || self->wants_newest)
        return newest_store(location);
    unsigned count = load_candidates(location, self, seq_cst, expected, candidates);
    if (count == 1)
        return newest_store(location);
    if (run->stale_reads_left == 0) {
        run->stale_reads_ran_out = true;
        return newest_store(location);
    }
    unsigned chosen = model__choose_thread(count, 2);
    struct store *store = &location->stores[candidates[chosen] % MAX_HISTORY];
    if (chosen > 0) {
        run->stale_reads_left--;
        store->stale_reads[self->id]++;
    }
    return store;
}

/* ---- What becomes known ---- */

static uint32_t event_of(const struct thread *self)
{
    return (self->id + 1) << 16 | (uint32_t)self->clock;
}

static void note_seq_cst(const struct thread *self)
{
    model__run.seq_cst_trail = model__mix(model__run.seq_cst_trail, event_of(self));
}

static void mark_seen(struct store *store, const struct thread *self, bool seq_cst)
{
    if (store->seen[self->id] == NEVER)
        store->seen[self->id] = self->clock;
    if (seq_cst && store->seq_cst_step == 0)
        store->seq_cst_step = model__run.step;
    if (seq_cst)
        note_seq_cst(self);
}

static void note_read(struct store *store, struct thread *self, int order)
{
    mark_seen(store, self, order == __ATOMIC_SEQ_CST);
    self->trail = model__mix(self->trail, store->event);
    view_join(takes_acquire(order) ? &self->view : &self->acquire_fence, &store->message);
}

/* Appends a store; `replaced` is what a read-modify-write has read. */
static void append_store(struct location *location, struct thread *self, uint64_t value, int order,
                         const struct store *replaced)
{
    struct run *run = &model__run;
    bool changes = newest_store(location)->value != value;
    struct view message = takes_release(order) ? self->view : self->release_fence;

    if (replaced != NULL)
        view_join(&message, &replaced->message);
    location->newest++;
    if (location->newest - location->oldest >= (uint32_t)run->options.history)
        location->oldest++;
    struct store *store = newest_store(location);
    store->value = value;
    store->event = event_of(self);
    run->locations_hash -= model__mix(location->trail, location->address);
    location->trail = model__mix(location->trail, store->event);
    run->locations_hash += model__mix(location->trail, location->address);
    store->message = message;
    store->seen = (clock_vector){0} + NEVER;
    store->seq_cst_step = 0;
    memset(store->stale_reads, 0, sizeof store->stale_reads);
    mark_seen(store, self, order == __ATOMIC_SEQ_CST);
    model__memory_write((volatile void *)location->address, location->size, value);
    if (changes) {
        run->changes++;
        self->own_changes++;
        self->wants_newest = false;
    }
}

void model__seq_cst_fence(struct thread *self)
{
    struct run *run = &model__run;

    view_join(&self->view, &self->acquire_fence);
    self->view.visible = clock_max(self->view.visible, run->fenced);
    self->view.fence = run->step;
    run->fenced = self->view.visible;
    self->release_fence = self->view;
    note_seq_cst(self);
}

/* ---- The operations ---- */

static struct thread *begin(struct model_site *site)
{
    struct thread *self = model__run.self;

    model__schedule_point(self);
    model__step(self);
    site->executed++;
    return self;
}

static struct trace_event *trace_access(struct thread *self, const struct model_site *site,
                                        struct location *location, uint64_t value)
{
    self->last_site = site;
    location->what = site->what;
    struct trace_event *event = model__trace(self, TRACE_SITE);

    event->location = location->number;
    event->value = value;
    return event;
}

uint64_t model_load(const volatile void *memory, size_t size, struct model_site *site)
{
    if (!model__run.active)
        return model__memory_read(memory, size);

    struct thread *self = begin(site);
    struct location *location = model__location(memory, size);
    int order = site->effective;
    struct store *store = choose_store(location, self, order == __ATOMIC_SEQ_CST, NULL);

    note_read(store, self, order);
    struct trace_event *event = trace_access(self, site, location, store->value);
    event->stale = store != newest_store(location);
    event->second = newest_store(location)->value;
    return store->value;
}

void model_store(volatile void *memory, size_t size, uint64_t value, struct model_site *site)
{
    value = truncate_to(value, size);
    if (!model__run.active) {
        model__memory_write(memory, size, value);
        return;
    }
    struct thread *self = begin(site);
    struct location *location = model__location(memory, size);

    append_store(location, self, value, site->effective, NULL);
    trace_access(self, site, location, value);
}

static uint64_t apply(enum model_rmw_op op, uint64_t old, uint64_t operand)
{
    switch (op) {
    case MODEL_ADD:
        return old + operand;
    case MODEL_SUB:
        return old - operand;
    case MODEL_OR:
        return old | operand;
    case MODEL_AND:
        return old & operand;
    default:
        return operand;
    }
}

uint64_t model_rmw(volatile void *memory, size_t size, enum model_rmw_op op, uint64_t operand,
                   struct model_site *site)
{
    if (!model__run.active) {
        uint64_t found = model__memory_read(memory, size);
        model__memory_write(memory, size, apply(op, found, operand));
        return found;
    }
    struct thread *self = begin(site);
    struct location *location = model__location(memory, size);
    struct store *store = newest_store(location);
    uint64_t old = store->value;
    uint64_t value = truncate_to(apply(op, old, operand), size);

    note_read(store, self, site->effective);
    append_store(location, self, value, site->effective, store);
    trace_access(self, site, location, old)->second = value;
    return old;
}

static bool cas_directly(volatile void *memory, size_t size, void *expected, uint64_t desired)
{
    uint64_t found = model__memory_read(memory, size);

    if (found == model__memory_read(expected, size)) {
        model__memory_write(memory, size, desired);
        return true;
    }
    model__memory_write(expected, size, found);
    return false;
}

static bool fails_spuriously(bool weak)
{
    struct run *run = &model__run;

    if (!weak || run->spurious_cas_left == 0 || model__choose_weighted(2, 8) == 0)
        return false;
    run->spurious_cas_left--;
    return true;
}

static bool cas_fail(struct location *location, struct thread *self, struct store *store,
                     void *expected, bool spurious, struct model_site *site)
{
    note_read(store, self, site->effective_fail);
    struct trace_event *event = trace_access(self, site, location, store->value);
    event->stale = store != newest_store(location);
    event->second = newest_store(location)->value;
    event->succeeded = false;
    self->trail = model__mix(self->trail, UINT64_MAX - spurious);
    event->spurious = spurious;
    model__memory_write(expected, location->size, store->value);
    return false;
}

bool model_cas(volatile void *memory, size_t size, void *expected, uint64_t desired, bool weak,
               struct model_site *site)
{
    desired = truncate_to(desired, size);
    if (!model__run.active)
        return cas_directly(memory, size, expected, desired);

    struct thread *self = begin(site);
    struct location *location = model__location(memory, size);
    uint64_t wanted = model__memory_read(expected, size);
    struct store *store = newest_store(location);

    if (!model__run.options.fresh_cas)
        store = choose_store(location, self, site->effective_fail == __ATOMIC_SEQ_CST, &wanted);
    if (store->value != wanted)
        return cas_fail(location, self, store, expected, false, site);
    if (fails_spuriously(weak))
        return cas_fail(location, self, store, expected, true, site);

    note_read(store, self, site->effective);
    append_store(location, self, desired, site->effective, store);
    struct trace_event *event = trace_access(self, site, location, wanted);
    event->second = desired;
    event->succeeded = true;
    return true;
}

void model_fence(struct model_site *site)
{
    if (!model__run.active)
        return;
    struct thread *self = model__run.self;
    int order = site->effective;

    /* Acquire and release fences concern this thread alone: where they run makes no difference. */
    if (order == __ATOMIC_SEQ_CST && !site->dropped)
        model__schedule_point(self);
    model__step(self);
    site->executed++;
    self->last_site = site;
    model__trace(self, TRACE_SITE);
    if (site->dropped)
        return;
    if (order == __ATOMIC_SEQ_CST) {
        model__seq_cst_fence(self);
        return;
    }
    if (takes_acquire(order))
        view_join(&self->view, &self->acquire_fence);
    if (takes_release(order))
        self->release_fence = self->view;
}

/* For the futex: the kernel compares with the newest value. */
struct location *model__read_newest(struct thread *self, const volatile void *memory, size_t size,
                                    uint64_t *value)
{
    struct location *location = model__location(memory, size);
    struct store *store = newest_store(location);

    note_read(store, self, __ATOMIC_RELAXED);
    *value = store->value;
    return location;
}
