/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping. Until it is armed, the timer's `tick` holds what was asked for. `line` says how far it
 * is:
 *
 *   line       event      next      what happens
 *   ------------------------------------------------------------------------------------
 *   FOR        poll       UNTIL     the clock is read; then as below
 *   UNTIL      poll       WAITING   arms the timer, or is ready, if it is late already
 *   WAITING    poll       -         ready if the timer has fired
 *   WAITING    reset      WAITING   the timer is moved; if it has fired, UNTIL
 *   any        cancel     STOPPED   disarms; but if the timer has fired, it is ready as always
 */
#include "time/time.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

_Static_assert(sizeof(blz_sleep_op) == 96, "part of the ABI");

enum { SLEEP_FOR, SLEEP_UNTIL, SLEEP_WAITING, SLEEP_STOPPED };

/* Ready without waiting: that must not go on for ever without others having their turn. */
static blz_poll end_at_once(blz_future *future, blz_cx *cx)
{
    return blz_coop_take(cx) ? blz_future_done(future, 0) : BLZ_PENDING;
}

static blz_poll begin(blz_sleep_op *op, blz_cx *cx)
{
    int64_t asked = (int64_t)op->timer.tick, now_ns, deadline_ns;

    if (asked <= 0)
        return end_at_once(&op->future, cx);
    if (blz_unlikely(!cx->worker))
        return blz_future_done(&op->future, -ENXIO); /* blz_wait: no clock */
    now_ns = blz__rt_now(blz_cx_rt(cx));
    deadline_ns = op->future.line == SLEEP_FOR ? blz_time_add(now_ns, asked) : asked;
    if (deadline_ns <= now_ns)
        return end_at_once(&op->future, cx);
    op->future.line = SLEEP_WAITING;
    blz_timer_wake_at(&op->timer, deadline_ns, cx);
    return BLZ_PENDING;
}

static blz_poll sleep_poll(blz_future *future, blz_cx *cx)
{
    blz_sleep_op *op = (blz_sleep_op *)future;

    switch (future->line) {
    case SLEEP_WAITING:
        return timer_is_armed(&op->timer) ? BLZ_PENDING : blz_future_done(future, 0);
    case SLEEP_STOPPED:
        return blz_future_done(future, -ECANCELED);
    default:
        return begin(op, cx);
    }
}

static void sleep_cancel(blz_future *future, blz_cx *cx)
{
    blz_sleep_op *op = (blz_sleep_op *)future;

    if (future->line != SLEEP_WAITING || blz__timer_stop(&op->timer, cx))
        future->line = SLEEP_STOPPED;
}

static void sleep_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_sleep_op *op = (const blz_sleep_op *)(const void *)future;

    info->kind = "timer";
    info->object = &op->timer;
    if (future->line == SLEEP_WAITING)
        info->due_ns = timer_due_ns(&op->timer);
}

static const blz_future_ops sleep_ops = {.name = "sleep",
                                         .poll = sleep_poll,
                                         .cancel = sleep_cancel,
                                         .describe_wait = sleep_describe};

static blz_future *make(blz_sleep_op *op, uint32_t line, int64_t asked)
{
    if (op->future.line != SLEEP_UNTIL) /* made, and never polled */
        blz_op_check(&op->future, &sleep_ops);
    op->future = (blz_future){.ops = &sleep_ops, .line = line};
    op->timer.tick = (uint64_t)asked;
    return &op->future;
}

blz_future *blz_sleep(blz_sleep_op *op, int64_t ns)
{
    return make(op, SLEEP_FOR, ns);
}

blz_future *blz_sleep_until(blz_sleep_op *op, int64_t deadline_ns)
{
    return make(op, SLEEP_UNTIL, deadline_ns);
}

/* A timer that has fired has woken the task: the poll that follows arms it anew. */
void blz_sleep_reset(blz_sleep_op *op, int64_t deadline_ns)
{
    if (op->future.line > SLEEP_WAITING)
        return; /* cancelled, or ready: too late */
    if (op->future.line == SLEEP_WAITING && blz_timer_reset(&op->timer, deadline_ns))
        return;
    op->future.line = SLEEP_UNTIL;
    op->timer.tick = (uint64_t)deadline_ns;
}
