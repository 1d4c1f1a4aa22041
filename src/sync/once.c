/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once: a value, and who makes it. The state is a word that is read without the lock and changed
 * under it:
 *
 *   event                 EMPTY               MAKING                          SET
 *   ---------------------------------------------------------------------------------------------
 *   get, with `make`      MAKING: makes it    joins the makers                the value
 *   get, without          joins the waiters   joins the waiters               the value
 *   set                   SET, serves all     -EBUSY                          -EEXIST
 *   `make` has a value    -                   SET, serves all                 -
 *   `make` has failed     -                   the first maker's turn, or      -
 *                                             EMPTY if there is none
 *   cancel of who waits   leaves              leaves, or, if it is its turn,  the value stands
 *                                             lets the next have it
 *
 * Whose turn it is has been served with TURN, and MAKING is its own to end. So somebody is always
 * responsible for the state MAKING: the one that runs its `make`, or the one that is about to.
 *
 * A `make` that is not needed has never been polled. All that it can own then is the memory of a
 * box, which is given back by refusing it; one that must run in any case (BLZ_FUTURE_ALWAYS) is
 * cancelled, and awaited.
 *
 *   line       what the op does
 *   ------------------------------------------------------------------------------------------
 *   FRESH      nothing yet
 *   WAITING    is in a queue, or has been served
 *   MAKING     awaits `make`
 *   LEAVING    was cancelled when its turn, or the value, had come or was about to
 *   CANCELLED  was cancelled before
 *   ENDING     has its result; awaits the end of a `make` that must run in any case
 */
#include <blitz/wait_info.h>
#include <blitz/once.h>

#include "sync/sync.h"

#include "base/assert.h"

#include <blitz/async.h>

_Static_assert(sizeof(blz_once) == 56, "part of the ABI");
_Static_assert(sizeof(blz_once_op) == 96, "part of the ABI");

enum { STATE_EMPTY, STATE_MAKING, STATE_SET };

/* The state of a waiter that has been served: it is to make the value. */
enum { TURN = WAITER_OWN };

/* future.line */
enum { FRESH, WAITING, MAKING, LEAVING, CANCELLED, ENDING };

static blz__lock *lock_of(blz_once *once)
{
    return (blz__lock *)(void *)&once->lock;
}

void blz_once_init(blz_once *once)
{
    *once = (blz_once)BLZ_ONCE_INIT;
}

/* ---- the value ---- */

int64_t blz_once_try_get(const blz_once *once)
{
    if (blz__load(&once->state, ACQUIRE) != STATE_SET) /* pairs with the release in publish */
        return -EAGAIN;
    blz__plain_read(&once->value);
    return once->value;
}

/* Under the lock; releases it. */
static void publish(blz_once *once, int64_t value)
{
    blz_waiters makers, waiters;

    BLZ_ASSERT(blz__lock_is_held(lock_of(once)));
    BLZ_ASSERT(blz__peek(&once->state) != STATE_SET);
    BLZ_ASSERT(value >= 0);
    blz__plain_write(&once->value);
    once->value = value;
    blz__store(&once->state, STATE_SET, RELEASE); /* pairs with the acquire in try_get */
    makers = waiters_claim_all(&once->makers);
    waiters = waiters_claim_all(&once->waiters);
    blz__lock_release(lock_of(once));
    waiters_serve(&makers, WAITER_SERVED);
    waiters_serve(&waiters, WAITER_SERVED);
}

int blz_once_set(blz_once *once, int64_t value)
{
    uint32_t state;

    if (value < 0)
        return -EINVAL;
    blz__lock_acquire(lock_of(once));
    state = blz__load(&once->state, RELAXED); /* ordered by the lock */
    if (state == STATE_EMPTY) {
        publish(once, value);
        return 0;
    }
    blz__lock_release(lock_of(once));
    return state == STATE_SET ? -EEXIST : -EBUSY;
}

/* The turn goes to the next, or there is nobody who makes the value. */
static void give_up_turn(blz_once *once)
{
    blz_waiters claimed = {NULL, NULL};

    blz__lock_acquire(lock_of(once));
    if (waiters_empty(&once->makers))
        blz__store(&once->state, STATE_EMPTY, RELAXED); /* the next takes the lock to see it */
    else
        waiter_claim(once->makers.first, &once->makers, &claimed);
    blz__lock_release(lock_of(once));
    waiters_serve(&claimed, TURN);
}

/* ---- the end of an op ---- */

/* Awaits the end of a `make` that has been cancelled. */
static blz_poll poll_ending(blz_once_op *op, blz_cx *cx)
{
    if (blz_is_pending(blz_poll_branch(op->make, cx)))
        return BLZ_PENDING;
    op->future.child = NULL;
    return blz_future_done(&op->future, op->future.result);
}

/* It has its result, and its `make` has not been started. */
static blz_poll end(blz_once_op *op, int64_t result, blz_cx *cx)
{
    blz_future *make = op->make;

    op->future.child = NULL;
    if (make && (make->flags & BLZ_FUTURE_ALWAYS)) {
        op->future.child = make;
        op->future.line = ENDING;
        op->future.result = result;
        blz_cancel_branch(make, cx);
        return poll_ending(op, cx);
    }
    if (make)
        blz_await_refuse_(make, cx, -ECANCELED);
    return blz_future_done(&op->future, result);
}

/* Awaits `make`: the value, or the next one's turn. */
static blz_poll poll_make(blz_once_op *op, blz_cx *cx)
{
    int64_t result;

    if (blz_is_pending(op->make->ops->poll(op->make, cx)))
        return BLZ_PENDING;
    result = op->make->result;
    op->future.child = NULL;
    if (result < 0) {
        give_up_turn(op->once);
    } else {
        blz__lock_acquire(lock_of(op->once));
        publish(op->once, result);
    }
    return blz_future_done(&op->future, result);
}

/* ---- getting ---- */

enum { ENTER_VALUE, ENTER_TURN, ENTER_QUEUE };

/* What there is to do, decided under the lock; in a queue already, if that is it. */
static int enter(blz_once_op *op, blz_cx *cx)
{
    blz_once *once = op->once;
    uint32_t state;
    int entry;

    blz__lock_acquire(lock_of(once));
    state = blz__load(&once->state, RELAXED); /* ordered by the lock */
    if (state == STATE_SET) {
        entry = ENTER_VALUE;
    } else if (state == STATE_EMPTY && op->make) {
        blz__store(&once->state, STATE_MAKING, RELAXED); /* as above */
        entry = ENTER_TURN;
    } else {
        waiter_enqueue(&op->waiter, op->make ? &once->makers : &once->waiters, cx);
        entry = ENTER_QUEUE;
    }
    blz__lock_release(lock_of(once));
    return entry;
}

static blz_poll begin(blz_once_op *op, blz_cx *cx)
{
    int64_t value;

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    value = blz_once_try_get(op->once);
    if (value >= 0)
        return end(op, value, cx);
    switch (enter(op, cx)) {
    case ENTER_VALUE:
        return end(op, blz_once_try_get(op->once), cx);
    case ENTER_TURN:
        op->future.line = MAKING;
        return poll_make(op, cx);
    default:
        op->future.line = WAITING;
        op->future.child = NULL;
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
}

/* In a queue, or served. */
static blz_poll poll_waiter(blz_once_op *op, blz_cx *cx)
{
    uint32_t state = waiter_state(&op->waiter);

    if (state < WAITER_SERVED)
        return BLZ_PENDING;
    if (state != TURN)
        return end(op, blz_once_try_get(op->once), cx);
    if (op->future.line == LEAVING) {
        give_up_turn(op->once);
        return end(op, -ECANCELED, cx);
    }
    op->future.line = MAKING;
    op->future.child = op->make;
    return poll_make(op, cx);
}

static blz_poll get_poll(blz_future *future, blz_cx *cx)
{
    blz_once_op *op = (blz_once_op *)future;

    switch (future->line) {
    case FRESH:
        return begin(op, cx);
    case MAKING:
        return poll_make(op, cx);
    case CANCELLED:
        return end(op, -ECANCELED, cx);
    case ENDING:
        return poll_ending(op, cx);
    default:
        return poll_waiter(op, cx);
    }
}

/* ---- cancelling ---- */

static bool leave_queue(blz_once_op *op)
{
    blz_once *once = op->once;
    bool left;

    blz__lock_acquire(lock_of(once));
    left = waiter_leave(&op->waiter, op->make ? &once->makers : &once->waiters);
    blz__lock_release(lock_of(once));
    return left;
}

static void get_cancel(blz_future *future, blz_cx *cx)
{
    blz_once_op *op = (blz_once_op *)future;

    if (future->line == MAKING) {
        blz_future_cancel(op->make, cx);
    } else if (future->line == FRESH) {
        future->line = CANCELLED;
    } else if (future->line == WAITING) {
        bool left = !waiter_is_served(&op->waiter) && leave_queue(op);
        future->line = left ? CANCELLED : LEAVING;
        if (left)
            blz_waker_drop(&op->waiter.waker);
    }
}

static void get_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_once_op *op = (const blz_once_op *)(const void *)future;

    info->kind = "once";
    info->object = op->once;
}

blz_future *blz_once_get(blz_once_op *op, blz_once *once, blz_future *make)
{
    static const blz_future_ops ops = {.name = "once_get",
                                       .poll = get_poll,
                                       .cancel = get_cancel,
                                       .describe_wait = get_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops, .child = make};
    if (make)
        op->future.flags = make->flags & BLZ_FUTURE_ALWAYS;
    op->waiter.state = WAITER_IDLE;
    op->once = once;
    op->make = make;
    return &op->future;
}
