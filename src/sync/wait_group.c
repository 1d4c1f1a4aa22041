/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait group: a word with a count, and a queue of those who wait for its end, under a lock.
 *
 *   bit 0      WAITING: somebody is in the queue. Set and cleared under the lock
 *   the rest   the count
 *
 *   event    word                   next           what happens
 *   ------------------------------------------------------------------------------------------
 *   add      any                    count + n
 *   done     count > 1              count - 1
 *   done     count = 1              0              the group may be gone
 *   done     count = 1, WAITING     0              under the lock: claims the queue; serves it
 *                                                  after the lock; then the group may be gone
 *   await    count > 0              + WAITING      under the lock: joins the queue
 *   cancel   WAITING                - WAITING      under the lock: leaves the queue; if it was
 *                                                  the last
 *
 * The memory may go when every wait has ended. A wait that has not begun ends when it sees that the
 * count is zero: then who made it so is through with the group, or it claims a queue under the
 * lock, and those in the queue have not ended and hold the memory until they are served. That is
 * why nobody sets the count to zero under the lock but to claim somebody.
 */
#include <blitz/wait_info.h>
#include <blitz/wait_group.h>

#include "base/assert.h"
#include "base/panic.h"
#include "sync/sync.h"

_Static_assert(sizeof(blz_wait_group) == 32, "part of the ABI");
_Static_assert(sizeof(blz_wait_group_op) == 96, "part of the ABI");

#define WAITING 0x1u
#define ONE     0x2u

_Static_assert(BLZ_WAIT_GROUP_MAX == UINT32_MAX / ONE, "the count fits");

/* future.line */
enum { FRESH, QUEUED, CANCELLED };

static blz__lock *lock_of(blz_wait_group *group)
{
    return (blz__lock *)(void *)&group->lock;
}

void blz_wait_group_init(blz_wait_group *group)
{
    *group = (blz_wait_group)BLZ_WAIT_GROUP_INIT;
}

/* ---- counting ---- */

int blz_wait_group_add(blz_wait_group *group, uint32_t n)
{
    uint32_t word = blz__load(&group->word, RELAXED);

    do {
        if (n > BLZ_WAIT_GROUP_MAX - word / ONE)
            return -EOVERFLOW;
        /* relaxed: who adds publishes nothing; what others have published goes on with it */
    } while (!blz__cas_weak(&group->word, &word, word + n * ONE, RELAXED, RELAXED));
    return 0;
}

/* The last, and somebody waits. False: not any more. */
static BLZ_NOINLINE bool finish(blz_wait_group *group)
{
    blz_waiters claimed = {NULL, NULL};
    uint32_t word = ONE | WAITING;
    bool last;

    blz__lock_acquire(lock_of(group));
    /* acquire: what the others have done; release: and us, for a wait that begins now */
    last = blz__cas(&group->word, &word, 0u, ACQ_REL, RELAXED);
    if (last)
        claimed = waiters_claim_all(&group->waiters);
    blz__lock_release(lock_of(group));
    waiters_serve(&claimed, WAITER_SERVED);
    return last;
}

void blz_wait_group_done(blz_wait_group *group)
{
    uint32_t word = blz__load(&group->word, RELAXED);

    for (;;) {
        if (blz_unlikely(word < ONE))
            blz__panic("blz_wait_group_done was called more often than was added");
        if (word == (ONE | WAITING)) {
            if (finish(group))
                return;
            word = blz__load(&group->word, RELAXED);
            /* release: what was done; pairs with the acquire of is_zero and finish */
        } else if (blz__cas_weak(&group->word, &word, word - ONE, RELEASE, RELAXED)) {
            return;
        }
    }
}

uint32_t blz_wait_group_count(const blz_wait_group *group)
{
    return blz__load(&group->word, RELAXED) / ONE;
}

/* ---- waiting ---- */

static bool is_zero(blz_wait_group *group)
{
    return blz__load(&group->word, ACQUIRE) < ONE; /* pairs with the release in done and finish */
}

int blz_wait_group_try_await(blz_wait_group *group)
{
    return is_zero(group) ? 0 : -EAGAIN;
}

/* Says that somebody waits, under the lock. False: the count is zero. */
static bool set_waiting(blz_wait_group *group)
{
    uint32_t word = blz__load(&group->word, ACQUIRE); /* as in is_zero, if that is what it is */

    BLZ_ASSERT(blz__lock_is_held(lock_of(group)));
    do {
        if (word < ONE)
            return false;
        /* acquire: as above; who sees the bit takes the lock, so that needs no release */
    } while (!blz__cas_weak(&group->word, &word, word | WAITING, ACQUIRE, ACQUIRE));
    return true;
}

static bool join_queue(blz_wait_group_op *op, blz_cx *cx)
{
    blz_wait_group *group = op->group;
    bool joined;

    blz__lock_acquire(lock_of(group));
    joined = set_waiting(group);
    if (joined)
        waiter_enqueue(&op->waiter, &group->waiters, cx);
    blz__lock_release(lock_of(group));
    return joined;
}

static blz_poll begin(blz_wait_group_op *op, blz_cx *cx)
{
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (is_zero(op->group) || !join_queue(op, cx))
        return blz_future_done(&op->future, 0);
    op->future.line = QUEUED;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static blz_poll await_poll(blz_future *future, blz_cx *cx)
{
    blz_wait_group_op *op = (blz_wait_group_op *)future;

    if (future->line == FRESH)
        return begin(op, cx);
    if (future->line == CANCELLED)
        return blz_future_done(future, -ECANCELED);
    return waiter_is_served(&op->waiter) ? blz_future_done(future, 0) : BLZ_PENDING;
}

static bool leave_queue(blz_wait_group_op *op)
{
    blz_wait_group *group = op->group;
    bool left;

    blz__lock_acquire(lock_of(group));
    left = waiter_leave(&op->waiter, &group->waiters);
    if (left && waiters_empty(&group->waiters))
        blz__fetch_and(&group->word, ~WAITING,
                       RELAXED); /* who misses it takes the lock, and sees */
    blz__lock_release(lock_of(group));
    return left;
}

static void await_cancel(blz_future *future, blz_cx *cx)
{
    blz_wait_group_op *op = (blz_wait_group_op *)future;

    (void)cx;
    if (future->line == FRESH) {
        future->line = CANCELLED;
    } else if (future->line == QUEUED && !waiter_is_served(&op->waiter) && leave_queue(op)) {
        future->line = CANCELLED;
        blz_waker_drop(&op->waiter.waker);
    }
}

static void await_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_wait_group_op *op = (const blz_wait_group_op *)(const void *)future;

    info->kind = "wait group";
    info->object = op->group;
}

blz_future *blz_wait_group_await(blz_wait_group_op *op, blz_wait_group *group)
{
    static const blz_future_ops ops = {.name = "wait_group_await",
                                       .poll = await_poll,
                                       .cancel = await_cancel,
                                       .describe_wait = await_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->waiter.state = WAITER_IDLE;
    op->group = group;
    return &op->future;
}
