/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: a future that may not take longer than that. The inner future is a cancel scope of its
 * own (a branch), polled before the timer is looked at, so that it wins if both are ready. The
 * timer is armed only once it is pending, and until then `tick` holds what was asked for.
 *
 *   line      event                   next       what happens
 *   ----------------------------------------------------------------------------------------
 *   FOR       inner is pending        UNTIL      the clock is read; then as below
 *   FOR       pending, in blz_wait    NO_CLOCK   cancels the branch, and polls it again
 *   UNTIL     inner is pending        WAITING    arms the timer; EXPIRED if it is late already
 *   WAITING   pending, timer fired    EXPIRED    cancels the branch, and polls it again
 *   WAITING   cancelled from outside  STOPPED    disarms, cancels the branch
 *   any       inner is ready          -          disarms; -ECANCELED is -ETIMEDOUT if EXPIRED,
 *                                                and -ENXIO if NO_CLOCK
 *
 * Who is first decides: a cancellation from outside after the timer fired is not heard of, since
 * the branch is ending already, and one before it makes the timer needless.
 */
#include "time/time.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

_Static_assert(sizeof(blz_timeout) == 96, "part of the ABI");

enum { LIMIT_FOR, LIMIT_UNTIL, LIMIT_WAITING, LIMIT_EXPIRED, LIMIT_STOPPED, LIMIT_NO_CLOCK };

static blz_poll finish(blz_timeout *op, blz_cx *cx)
{
    int64_t result = op->future.child->result;

    if (op->future.line == LIMIT_WAITING)
        blz__timer_stop(&op->timer, cx);
    if (op->future.line == LIMIT_EXPIRED && result == -ECANCELED)
        result = -ETIMEDOUT;
    if (blz_unlikely(op->future.line == LIMIT_NO_CLOCK && result == -ECANCELED))
        result = -ENXIO;
    op->future.child = NULL;
    return blz_future_done(&op->future, result);
}

/* `line` says why. */
static blz_poll give_up(blz_timeout *op, blz_cx *cx, uint32_t line)
{
    op->future.line = line;
    blz_cancel_branch(op->future.child, cx);
    return blz_is_ready(blz_poll_branch(op->future.child, cx)) ? finish(op, cx) : BLZ_PENDING;
}

/* The inner future is pending for the first time. */
static BLZ_NOINLINE blz_poll begin(blz_timeout *op, blz_cx *cx)
{
    int64_t asked = (int64_t)op->timer.tick, now_ns, deadline_ns;

    if (asked <= 0)
        return give_up(op, cx, LIMIT_EXPIRED);
    if (blz_unlikely(!cx->worker))
        return give_up(op, cx, LIMIT_NO_CLOCK);
    now_ns = blz__rt_now(blz_cx_rt(cx));
    deadline_ns = op->future.line == LIMIT_FOR ? blz_time_add(now_ns, asked) : asked;
    if (deadline_ns <= now_ns)
        return give_up(op, cx, LIMIT_EXPIRED);
    op->future.line = LIMIT_WAITING;
    blz_timer_wake_at(&op->timer, deadline_ns, cx);
    return BLZ_PENDING;
}

static blz_poll timeout_poll(blz_future *future, blz_cx *cx)
{
    blz_timeout *op = (blz_timeout *)future;

    if (blz_is_ready(blz_poll_branch(future->child, cx)))
        return finish(op, cx);
    if (future->line < LIMIT_WAITING)
        return begin(op, cx);
    if (future->line == LIMIT_WAITING && !timer_is_armed(&op->timer))
        return give_up(op, cx, LIMIT_EXPIRED);
    return BLZ_PENDING;
}

static void timeout_cancel(blz_future *future, blz_cx *cx)
{
    blz_timeout *op = (blz_timeout *)future;

    if (future->line == LIMIT_WAITING)
        blz__timer_stop(&op->timer, cx);
    if (future->line < LIMIT_EXPIRED)
        future->line = LIMIT_STOPPED;
    blz_cancel_branch(future->child, cx);
}

static void timeout_describe(const blz_future *future, blz_wait_info *info)
{
    info->any = true;
    if (future->line == LIMIT_WAITING)
        info->due_ns = timer_due_ns(&((const blz_timeout *)future)->timer);
}

static const blz_future_ops timeout_ops = {.name = "timeout",
                                           .poll = timeout_poll,
                                           .cancel = timeout_cancel,
                                           .describe_wait = timeout_describe};

static inline blz_future *make(blz_timeout *op, uint32_t line, int64_t asked, blz_future *inner)
{
    if (blz_unlikely(!inner))
        blz__panic("the future inside of `timeout` is NULL");
    if (op->future.line != LIMIT_UNTIL) /* made, and never polled */
        blz_op_check(&op->future, &timeout_ops);
    op->future = (blz_future){.ops = &timeout_ops,
                              .child = inner,
                              .line = line,
                              .flags = inner->flags & BLZ_FUTURE_ALWAYS};
    op->timer.tick = (uint64_t)asked;
    return &op->future;
}

blz_future *blz_with_timeout(blz_timeout *op, int64_t ns, blz_future *inner)
{
    return make(op, LIMIT_FOR, ns, inner);
}

blz_future *blz_with_deadline(blz_timeout *op, int64_t deadline_ns, blz_future *inner)
{
    return make(op, LIMIT_UNTIL, deadline_ns, inner);
}
