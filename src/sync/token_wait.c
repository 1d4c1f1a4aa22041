/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futures of tokens: one that waits until the token is cancelled, and one that awaits another until
 * then. Both join the token's queue at their first poll that is pending, and are served when it is
 * cancelled.
 *
 * The guard is a combinator of one branch, as blz_with_timeout: the inner future is polled before
 * the token is looked at, so that it wins if both are ready.
 *
 *   line       event                      next       what happens
 *   --------------------------------------------------------------------------------------------
 *   FRESH      the token is cancelled     STOPPED    the inner future is refused
 *   FRESH      inner is pending           WAITING    joins the queue; STOPPED if it is too late
 *   WAITING    served, inner is pending   STOPPED    cancels the branch, and polls it again
 *   FRESH,     cancelled from outside     STOPPED    cancels the branch; what becomes of the token
 *   WAITING                                          does not matter any more
 *   any        inner is ready             LEAVING    leaves the queue
 *   LEAVING    out of the queue           -          ready; but one that has been claimed waits
 *                                                    until it is served
 */
#include "sync/token.h"

#include "base/panic.h"

#include <blitz/async.h>
#include <blitz/wait_info.h>

_Static_assert(sizeof(blz_token_op) == 96, "part of the ABI");
_Static_assert(sizeof(blz_token_guard_op) == 96, "part of the ABI");

/* future.line */
enum { FRESH, WAITING, CANCELLED, STOPPED, LEAVING };

/* Waits with a waker of the task being polled. False: the token is cancelled. */
static bool join_queue(blz_token *token, blz_waiter *waiter, blz_cx *cx)
{
    bool cancelled;

    blz__lock_acquire(&token->lock);
    cancelled = blz__load(&token->cancelled, RELAXED); /* ordered by the lock */
    if (!cancelled)
        waiter_enqueue(waiter, &token->waiters, cx);
    blz__lock_release(&token->lock);
    return !cancelled;
}

/* Does not wait any more. False: it has been claimed, and is served, or about to be. */
static bool leave_queue(blz_token *token, blz_waiter *waiter)
{
    bool left;

    if (waiter_is_served(waiter))
        return false;
    blz__lock_acquire(&token->lock);
    left = waiter_leave(waiter, &token->waiters);
    blz__lock_release(&token->lock);
    if (left)
        blz_waker_drop(&waiter->waker);
    return left;
}

/* ---- waiting ---- */

static blz_poll begin(blz_token_op *op, blz_cx *cx)
{
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (token_is_cancelled(op->token) || !join_queue(op->token, &op->waiter, cx))
        return blz_future_done(&op->future, 0);
    op->future.line = WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static blz_poll cancelled_poll(blz_future *future, blz_cx *cx)
{
    blz_token_op *op = (blz_token_op *)future;

    if (future->line == FRESH)
        return begin(op, cx);
    if (future->line == CANCELLED)
        return blz_future_done(future, -ECANCELED);
    return waiter_is_served(&op->waiter) ? blz_future_done(future, 0) : BLZ_PENDING;
}

static void cancelled_cancel(blz_future *future, blz_cx *cx)
{
    blz_token_op *op = (blz_token_op *)future;

    (void)cx;
    if (future->line == FRESH || (future->line == WAITING && leave_queue(op->token, &op->waiter)))
        future->line = CANCELLED;
}

static void cancelled_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_token_op *op = (const blz_token_op *)(const void *)future;

    info->kind = "token";
    info->object = op->token;
}

blz_future *blz_token_cancelled(blz_token_op *op, blz_token *token)
{
    static const blz_future_ops ops = {.name = "token_cancelled",
                                       .poll = cancelled_poll,
                                       .cancel = cancelled_cancel,
                                       .describe_wait = cancelled_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->waiter.state = WAITER_IDLE;
    op->token = token;
    return &op->future;
}

/* ---- guarding ---- */

/* The inner future has its result, which is ours when nobody else knows our waiter. */
static blz_poll finish(blz_token_guard_op *op, int64_t result)
{
    blz_waiter *waiter = &op->waiter;
    uint32_t state = waiter_state(waiter);

    op->future.child = NULL;
    op->future.line = LEAVING;
    op->future.result = result;
    if (state == WAITER_IDLE || state >= WAITER_SERVED || leave_queue(op->token, waiter))
        return blz_future_done(&op->future, result);
    return waiter_is_served(waiter) ? blz_future_done(&op->future, result) : BLZ_PENDING;
}

static blz_poll poll_inner(blz_token_guard_op *op, blz_cx *cx)
{
    if (blz_is_pending(blz_poll_branch(op->future.child, cx)))
        return BLZ_PENDING;
    return finish(op, op->future.child->result);
}

/* The token is cancelled, and the inner future is not ready. */
static blz_poll stop(blz_token_guard_op *op, blz_cx *cx)
{
    op->future.line = STOPPED;
    blz_cancel_branch(op->future.child, cx);
    return poll_inner(op, cx);
}

/* The token was cancelled before the inner future has started. */
static blz_poll refuse(blz_token_guard_op *op, blz_cx *cx)
{
    if (op->future.child->flags & BLZ_FUTURE_ALWAYS)
        return stop(op, cx);
    blz_await_refuse_(op->future.child, cx, -ECANCELED);
    return finish(op, -ECANCELED);
}

static blz_poll guard_poll(blz_future *future, blz_cx *cx)
{
    blz_token_guard_op *op = (blz_token_guard_op *)future;
    uint32_t line = future->line;

    if (line == LEAVING)
        return finish(op, future->result);
    if (line == FRESH && token_is_cancelled(op->token))
        return refuse(op, cx);
    if (blz_is_ready(poll_inner(op, cx)))
        return BLZ_READY;
    if (future->line == LEAVING || line == STOPPED)
        return BLZ_PENDING;
    if (line == FRESH && join_queue(op->token, &op->waiter, cx)) {
        future->line = WAITING;
        return BLZ_PENDING;
    }
    return line == FRESH || waiter_is_served(&op->waiter) ? stop(op, cx) : BLZ_PENDING;
}

static void guard_cancel(blz_future *future, blz_cx *cx)
{
    if (future->line == LEAVING)
        return;
    future->line = STOPPED;
    blz_cancel_branch(future->child, cx);
}

/* It ends what it awaits, if need be. */
static void guard_describe(const blz_future *future, blz_wait_info *info)
{
    (void)future;
    info->any = true;
}

blz_future *blz_token_guard(blz_token_guard_op *op, blz_token *token, blz_future *inner)
{
    static const blz_future_ops ops = {.name = "token_guard",
                                       .poll = guard_poll,
                                       .cancel = guard_cancel,
                                       .describe_wait = guard_describe};

    if (blz_unlikely(!inner))
        blz__panic("the future inside of `token_guard` is NULL");
    blz_op_check(&op->future, &ops);
    op->future =
        (blz_future){.ops = &ops, .child = inner, .flags = inner->flags & BLZ_FUTURE_ALWAYS};
    op->waiter.state = WAITER_IDLE;
    op->token = token;
    return &op->future;
}
