/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier: who has arrived is counted, and who waits is in a queue, both under a lock. There is no
 * path without the lock: all but one of the parties have to join the queue in any case.
 *
 *   event     arrived            next           what happens
 *   ---------------------------------------------------------------------------------------
 *   arrive    < parties - 1      arrived + 1    joins the queue
 *   arrive    = parties - 1      0, round + 1   claims the queue, serves it; is the leader
 *   signal    < parties - 1      arrived + 1
 *   signal    = parties - 1      0, round + 1   as the leader
 *   cancel    in the queue       arrived - 1    leaves the queue
 *   leave     < parties - 1      the same       parties - 1
 *   leave     = parties - 1      0, round + 1   parties - 1; the first in the queue is the leader
 *
 * The queue is served after the lock, so the last access to the barrier in a round is the release
 * of the lock by the party that ends it, and it may be freed by any of them, if the others do not
 * get cancelled at that moment.
 *
 * A round needs no number to tell it from the next: a waiter that has been claimed is not in the
 * queue any more, and whoever arrives in the next round is.
 */
#include <blitz/barrier.h>
#include <blitz/wait_info.h>

#include "base/assert.h"
#include "base/panic.h"
#include "sync/sync.h"

_Static_assert(sizeof(blz_barrier) == 40, "part of the ABI");
_Static_assert(sizeof(blz_barrier_op) == 96, "part of the ABI");

/* The state of a waiter that has been served, as the leader. */
enum { LEADER = WAITER_OWN };

/* future.line */
enum { FRESH, QUEUED, CANCELLED };

static blz__lock *lock_of(blz_barrier *barrier)
{
    return (blz__lock *)(void *)&barrier->lock;
}

int blz_barrier_init(blz_barrier *barrier, uint32_t parties)
{
    *barrier = (blz_barrier)BLZ_BARRIER_INIT(parties);
    return parties ? 0 : -EINVAL;
}

uint64_t blz_barrier_rounds(const blz_barrier *barrier)
{
    return blz__load(&barrier->round, RELAXED); /* says nothing of what else has happened */
}

/* ---- arriving; under the lock ---- */

static bool is_last(blz_barrier *barrier)
{
    BLZ_ASSERT(blz__lock_is_held(lock_of(barrier)));
    return barrier->arrived + 1 >= barrier->parties;
}

/* All are there: those who wait are the caller's to serve, after the lock. */
static blz_waiters end_round(blz_barrier *barrier)
{
    BLZ_ASSERT(blz__lock_is_held(lock_of(barrier)));
    barrier->arrived = 0;
    blz__store(&barrier->round, barrier->round + 1, RELAXED); /* under the lock: the only writer */
    return waiters_claim_all(&barrier->waiters);
}

/* ---- without waiting ---- */

int blz_barrier_try_arrive(blz_barrier *barrier)
{
    blz_waiters claimed = {NULL, NULL};
    bool last;

    blz__lock_acquire(lock_of(barrier));
    last = is_last(barrier);
    if (last)
        claimed = end_round(barrier);
    blz__lock_release(lock_of(barrier));
    waiters_serve(&claimed, WAITER_SERVED);
    return last ? 1 : -EAGAIN;
}

int blz_barrier_signal(blz_barrier *barrier)
{
    blz_waiters claimed = {NULL, NULL};
    bool last;

    blz__lock_acquire(lock_of(barrier));
    last = is_last(barrier);
    if (last)
        claimed = end_round(barrier);
    else
        barrier->arrived++;
    blz__lock_release(lock_of(barrier));
    waiters_serve(&claimed, WAITER_SERVED);
    return last;
}

void blz_barrier_leave(blz_barrier *barrier)
{
    blz_waiters claimed = {NULL, NULL};
    blz_waiter *leader;

    blz__lock_acquire(lock_of(barrier));
    if (barrier->parties == 0)
        blz__panic("blz_barrier_leave: there are no parties any more");
    if (is_last(barrier) && barrier->arrived > 0)
        claimed = end_round(barrier);
    barrier->parties--;
    blz__lock_release(lock_of(barrier));
    leader = waiters_take_first(&claimed);
    if (leader)
        waiter_serve_claimed(leader, LEADER);
    waiters_serve(&claimed, WAITER_SERVED);
}

/* ---- waiting ---- */

/* Arrives. True: as the last. */
static bool arrive(blz_barrier_op *op, blz_cx *cx)
{
    blz_barrier *barrier = op->barrier;
    blz_waiters claimed = {NULL, NULL};
    bool last;

    blz__lock_acquire(lock_of(barrier));
    last = is_last(barrier);
    if (last) {
        claimed = end_round(barrier);
    } else {
        barrier->arrived++;
        waiter_enqueue(&op->waiter, &barrier->waiters, cx);
    }
    blz__lock_release(lock_of(barrier));
    waiters_serve(&claimed, WAITER_SERVED);
    return last;
}

static blz_poll arrive_poll(blz_future *future, blz_cx *cx)
{
    blz_barrier_op *op = (blz_barrier_op *)future;

    if (future->line == CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (future->line == FRESH) {
        if (!blz_coop_take(cx))
            return BLZ_PENDING;
        if (arrive(op, cx))
            return blz_future_done(future, 1);
        future->line = QUEUED;
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
    if (!waiter_is_served(&op->waiter))
        return BLZ_PENDING;
    return blz_future_done(future, waiter_state(&op->waiter) == LEADER);
}

/* Takes the arrival back. False: the round is over. */
static bool withdraw(blz_barrier_op *op)
{
    blz_barrier *barrier = op->barrier;
    bool left;

    blz__lock_acquire(lock_of(barrier));
    left = waiter_leave(&op->waiter, &barrier->waiters);
    if (left)
        barrier->arrived--;
    blz__lock_release(lock_of(barrier));
    return left;
}

static void arrive_cancel(blz_future *future, blz_cx *cx)
{
    blz_barrier_op *op = (blz_barrier_op *)future;

    (void)cx;
    if (future->line == FRESH) {
        future->line = CANCELLED;
    } else if (future->line == QUEUED && !waiter_is_served(&op->waiter) && withdraw(op)) {
        future->line = CANCELLED;
        blz_waker_drop(&op->waiter.waker);
    }
}

static void arrive_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_barrier_op *op = (const blz_barrier_op *)(const void *)future;

    info->kind = "barrier";
    info->object = op->barrier;
}

blz_future *blz_barrier_arrive(blz_barrier_op *op, blz_barrier *barrier)
{
    static const blz_future_ops ops = {.name = "barrier_arrive",
                                       .poll = arrive_poll,
                                       .cancel = arrive_cancel,
                                       .describe_wait = arrive_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->waiter.state = WAITER_IDLE;
    op->barrier = barrier;
    return &op->future;
}
