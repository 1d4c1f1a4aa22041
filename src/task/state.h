/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state word of a task: everything about a task that two threads may decide at once.
 *
 *   63        38 37         6    5        4       3         2          1         0
 *  +------------+-------------+--------+------+--------+----------+----------+---------+
 *  | references | wake groups | PINNED | JOIN | CANCEL | COMPLETE | NOTIFIED | RUNNING |
 *  +------------+-------------+--------+------+--------+----------+----------+---------+
 *
 * The lifecycle is spelled by three bits:
 *
 *   idle       none of them          waits for a waker
 *   scheduled  NOTIFIED              is in exactly one queue, or about to be put into one
 *   running    RUNNING               a worker polls it, or will, from its queue; or a dump reads it
 *   rerun      RUNNING | NOTIFIED    woken while running: the next poll answers it
 *   complete   COMPLETE              its result is valid for ever
 *
 * That "scheduled" is NOTIFIED without RUNNING makes the end of a poll one subtraction: whoever
 * clears RUNNING sees in the old value whether it must queue the task.
 *
 * A wake makes an idle task running at once: whoever takes it from its queue need not change the
 * word again. So a task that waits and is woken, over and over, costs two atomic operations each
 * time, and not three.
 *
 *   event        idle        scheduled   running     rerun      complete   who acts next
 *   ---------------------------------------------------------------------------------------
 *   wake         running     same (1)    rerun       same (1)   same       waker: queues, if idle
 *   + a group    the same, and the group's bit is set in the same step     the same
 *   cancel       scheduled   + CANCEL    rerun       + CANCEL   same       same as wake
 *                + CANCEL                + CANCEL
 *   begin        -           running     running     running    -          worker: polls
 *   take groups  -           -           all bits are cleared   -          worker: polls branches
 *   pend         -           -           idle        scheduled  -          worker: queues, if rerun
 *   complete     -           -           complete    complete   -          worker: wakes the joiner
 *   claim (2)    running     fails       fails       fails      fails      dump: reads
 *
 *   (1) stays a release operation: what the waker wrote before is seen by the poll that it
 *       coalesced with.
 *   (2) A dump, or the shutdown, which hold no reference: the memory of tasks is never given back
 *       while they look, and they touch the word only by a compare-and-swap from exactly idle.
 *
 * Wake groups tell which part of a task was woken. A combinator (src/combine) has one for each of
 * its branches; the wakers made there set its bit together with NOTIFIED, so that the poll which
 * answers the wake finds it. The first combinator that looks takes them all, once in a poll, for
 * itself and for those that look after it; what is set later is for the next poll, which is certain
 * to come. Wakes of combinators that the poll did not reach are put back at its end. A bit that is
 * set after its combinator has ended costs the next one that uses the group a needless poll.
 *
 * References: one is the task's own, from spawn until it completes. Handles and wakers have one
 * each. Two rules save most of the atomic operations:
 *
 * - While a task is scheduled or running, and its word shows one reference, nobody else can touch
 *   the word: there is no handle, no waker, and a claim needs it idle. The worker then starts and
 *   completes it with plain stores.
 * - Whoever makes a task running adds BIAS references in the same operation. Wakers made during
 *   the poll are taken from these; the rest goes back with the operation that ends the poll.
 *
 * JOIN: the join-waker slot of the header is filled, and belongs to the worker that will complete
 * the task. The joiner fills the slot while JOIN is clear, then sets it; it takes the slot back by
 * clearing JOIN. Both fail once COMPLETE is set: from then on a filled slot is the completer's.
 */
#ifndef BLZ_TASK_STATE_H
#define BLZ_TASK_STATE_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/panic.h"
#include "tuning.h"

#include <blitz/base.h>

#define TASK_RUNNING  0x1u
#define TASK_NOTIFIED 0x2u
#define TASK_COMPLETE 0x4u
#define TASK_CANCEL   0x8u
#define TASK_JOIN     0x10u
#define TASK_PINNED   0x20u

#define TASK_LIFECYCLE (TASK_RUNNING | TASK_NOTIFIED | TASK_COMPLETE)

#define TASK_GROUP_SHIFT 6
#define TASK_GROUP_COUNT 32u
#define TASK_GROUP(n)    ((uint64_t)1 << (TASK_GROUP_SHIFT + (n)))

#define TASK_REF_SHIFT 38
#define TASK_REF       ((uint64_t)1 << TASK_REF_SHIFT)
#define TASK_REF_MAX   ((uint64_t)1 << 25) /* half of what fits: racing increments cannot wrap */

/* What the caller of a transition has to do next. */
enum task_action {
    TASK_NOTHING,
    TASK_QUEUE,   /* put it into a run queue */
    TASK_DESTROY, /* the last reference is gone */
};

static inline uint64_t task_state_refs(uint64_t state)
{
    return state >> TASK_REF_SHIFT;
}

static inline bool task_state_is_idle(uint64_t state)
{
    return task_state_refs(state) > 0 && (state & TASK_LIFECYCLE) == 0;
}

/* A new task, scheduled: its own reference, and one for a handle if there is one. */
static inline uint64_t task_state_new(bool handle, bool pinned)
{
    return TASK_NOTIFIED | (handle ? 2 : 1) * TASK_REF | (pinned ? TASK_PINNED : 0);
}

/*
 * Before a poll: scheduled -> running, or, if the task is running already (it was woken, or stayed
 * so over a yield), answers the wakes that came meanwhile. Only the worker that took the task from
 * its queue calls this. `alone` is the number of references with which the word is ours alone: 1,
 * or 2 if the caller also has the handle. Returns the word as it was.
 */
static inline uint64_t task_state_begin(uint64_t *word, uint32_t alone)
{
    /* acquire: pairs with the release of every wake that this poll answers */
    uint64_t state = blz__load(word, ACQUIRE);
    const uint64_t delta = TASK_BIAS * TASK_REF + TASK_RUNNING - TASK_NOTIFIED;

    BLZ_ASSERT(state & (TASK_RUNNING | TASK_NOTIFIED));
    BLZ_ASSERT(!(state & TASK_COMPLETE));
    BLZ_ASSERT(task_state_refs(state) >= alone);
    if (state & TASK_RUNNING)
        return state & TASK_NOTIFIED ? blz__fetch_sub(word, (uint64_t)TASK_NOTIFIED, ACQUIRE)
                                     : state;
    if (task_state_refs(state) == alone)
        blz__store(word, state + delta, RELAXED); /* nobody else can touch it */
    else
        state = blz__fetch_add(word, delta, ACQUIRE);
    return state;
}

/*
 * running -> idle, or scheduled if woken meanwhile (then *action is TASK_QUEUE). `unused` is what
 * is left of the bias. Sequentially consistent, because the worker looks at the runtime's closing
 * flag next: pairs with the closer, which sets the flag and then looks for idle tasks.
 */
static inline enum task_action task_state_pend(uint64_t *word, uint32_t unused)
{
    uint64_t state = blz__fetch_sub(word, unused * TASK_REF + TASK_RUNNING, SEQ_CST);
    BLZ_ASSERT((state & (TASK_RUNNING | TASK_COMPLETE)) == TASK_RUNNING);
    BLZ_ASSERT(task_state_refs(state) > unused);
    return state & TASK_NOTIFIED ? TASK_QUEUE : TASK_NOTHING;
}

/*
 * Whether a running task is ours alone (see begin) and nobody waits for it, so that it can complete
 * without anyone noticing.
 */
static inline bool task_state_is_private(const uint64_t *word, uint32_t unused, uint32_t alone)
{
    BLZ_ASSERT(blz__peek(word) & TASK_RUNNING);
    /* acquire: pairs with the release of references dropped by others */
    uint64_t state = blz__load(word, ACQUIRE);
    return unused == TASK_BIAS && task_state_refs(state) == alone + TASK_BIAS &&
           !(state & TASK_JOIN);
}

/*
 * running -> complete. True: JOIN was set, the caller takes the join waker from the slot, wakes it,
 * and then drops `unused` + 1 references. False: they are dropped already, and *destroy says
 * whether they were the last.
 */
static inline bool task_state_complete(uint64_t *word, uint32_t unused, bool *destroy)
{
    uint64_t state = blz__load(word, RELAXED), next;

    do {
        BLZ_ASSERT((state & (TASK_RUNNING | TASK_COMPLETE)) == TASK_RUNNING);
        BLZ_ASSERT(task_state_refs(state) > unused);
        next = (state & ~(uint64_t)TASK_LIFECYCLE) | TASK_COMPLETE;
        if (!(state & TASK_JOIN))
            next -= (unused + 1) * TASK_REF;
        /* release: publishes the result; acquire: the join waker, and others' last accesses */
    } while (!blz__cas_weak(word, &state, next, ACQ_REL, RELAXED));
    *destroy = task_state_refs(next) == 0;
    return state & TASK_JOIN;
}

/* A wake of a group, a bit of the word, or 0. `consume` drops the waker's reference as well. */
static inline enum task_action task_state_wake_group(uint64_t *word, uint64_t group, bool consume)
{
    uint64_t state = blz__load(word, RELAXED), next;

    do {
        BLZ_ASSERT(task_state_refs(state) > 0); /* the waker's */
        if ((state & TASK_LIFECYCLE) == 0)
            next = (state | group) + TASK_RUNNING + TASK_BIAS * TASK_REF;
        else
            next = state & TASK_COMPLETE ? state : state | TASK_NOTIFIED | group;
        if (consume)
            next -= TASK_REF;
        else if (state & TASK_COMPLETE)
            return TASK_NOTHING;
        /* release: pairs with the acquire in begin; acquire: for a last reference */
    } while (!blz__cas_weak(word, &state, next, ACQ_REL, RELAXED));
    if (task_state_refs(next) == 0)
        return TASK_DESTROY;
    return (state & TASK_LIFECYCLE) == 0 ? TASK_QUEUE : TASK_NOTHING;
}

static inline enum task_action task_state_wake(uint64_t *word, bool consume)
{
    return task_state_wake_group(word, 0, consume);
}

/* Takes the groups that have been woken, as a mask from group 0: this poll answers them. */
static inline uint32_t task_state_take_groups(uint64_t *word)
{
    const uint64_t groups = (uint64_t)UINT32_MAX << TASK_GROUP_SHIFT;

    BLZ_ASSERT(blz__peek(word) & TASK_RUNNING);
    /* What was woken before this poll began is seen here, since the poll began by reading it. */
    if (!(blz__load(word, RELAXED) & groups))
        return 0;
    /* acquire: pairs with the release of a wake that came after this poll began */
    return (uint32_t)(blz__fetch_and(word, ~groups, ACQUIRE) >> TASK_GROUP_SHIFT);
}

/* Puts some of them back, for a later poll. Does not wake. */
static inline void task_state_keep_groups(uint64_t *word, uint32_t groups)
{
    BLZ_ASSERT(blz__peek(word) & TASK_RUNNING);
    blz__fetch_or(word, (uint64_t)groups << TASK_GROUP_SHIFT, RELAXED);
}

static inline enum task_action task_state_cancel(uint64_t *word)
{
    uint64_t state = blz__load(word, RELAXED);

    do {
        if (state & (TASK_COMPLETE | TASK_CANCEL))
            return TASK_NOTHING;
        /* release: what the canceller wrote before is seen by the poll that delivers it */
    } while (!blz__cas_weak(word, &state, state | TASK_CANCEL | TASK_NOTIFIED, ACQ_REL, RELAXED));
    return (state & TASK_LIFECYCLE) == 0 ? TASK_QUEUE : TASK_NOTHING;
}

/* The joiner has filled the slot. False: the task is complete, the slot is still the joiner's. */
static inline bool task_state_set_join(uint64_t *word)
{
    uint64_t state = blz__load(word, RELAXED);

    BLZ_ASSERT(task_state_refs(blz__peek(word)) > 0);
    do {
        if (state & TASK_COMPLETE) {
            (void)blz__load(word, ACQUIRE); /* pairs with the release in complete: the result */
            return false;
        }
        /* release: the filled slot; pairs with the acquire in complete */
    } while (!blz__cas_weak(word, &state, state | TASK_JOIN, RELEASE, RELAXED));
    return true;
}

/* The joiner takes the slot back. False: the task is complete, the slot is the completer's. */
static inline bool task_state_clear_join(uint64_t *word)
{
    uint64_t state = blz__load(word, RELAXED);

    BLZ_ASSERT(task_state_refs(blz__peek(word)) > 0);
    do {
        if (state & TASK_COMPLETE) {
            (void)blz__load(word, ACQUIRE); /* pairs with the release in complete: the result */
            return false;
        }
    } while (!blz__cas_weak(word, &state, state & ~(uint64_t)TASK_JOIN, ACQ_REL, RELAXED));
    return true;
}

static inline bool task_state_is_complete(const uint64_t *word)
{
    return blz__load(word, ACQUIRE) & TASK_COMPLETE; /* pairs with the release in complete */
}

/* Complete, and ours is the only reference: it can be destroyed without an atomic operation. */
static inline bool task_state_is_last(const uint64_t *word)
{
    uint64_t state = blz__load(word, ACQUIRE); /* pairs with the release of dropped references */
    return (state & TASK_COMPLETE) && task_state_refs(state) == 1;
}

static inline void task_state_ref(uint64_t *word, uint32_t count)
{
    BLZ_ASSERT(task_state_refs(blz__peek(word)) > 0);
    if (task_state_refs(blz__fetch_add(word, count * TASK_REF, RELAXED)) >= TASK_REF_MAX)
        blz__panic("a task has more than 2^25 references: wakers are cloned and never dropped");
}

/* True: that was the last, destroy it. */
static inline bool task_state_unref(uint64_t *word, uint32_t count)
{
    /* release: our accesses come before the destruction; acquire: and others' too */
    uint64_t state = blz__fetch_sub(word, count * TASK_REF, ACQ_REL);
    BLZ_ASSERT(task_state_refs(state) >= count);
    return task_state_refs(state) == count;
}

/* idle -> running, by a dump. */
static inline bool task_state_claim(uint64_t *word)
{
    uint64_t state = blz__load(word, RELAXED);
    return task_state_is_idle(state) &&
           blz__cas(word, &state, state + TASK_RUNNING, ACQUIRE, RELAXED);
}

/* running -> idle or scheduled, by a dump. */
static inline enum task_action task_state_unclaim(uint64_t *word)
{
    return task_state_pend(word, 0);
}

/* idle -> scheduled and cancelled, by the shutdown. False: it was not idle. */
static inline bool task_state_cancel_idle(uint64_t *word)
{
    uint64_t state = blz__load(word, SEQ_CST); /* pairs with the seq_cst in pend */

    while (task_state_is_idle(state))
        if (blz__cas_weak(word, &state, state | TASK_CANCEL | TASK_NOTIFIED, ACQ_REL, RELAXED))
            return true;
    return false;
}

#endif
