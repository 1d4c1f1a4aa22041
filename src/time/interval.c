/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals. `next_ns` is when the next tick is due, and moves on only when a tick is delivered: a
 * tick that was cancelled is not lost. The policy decides what happens to ticks that are due
 * already when one is delivered:
 *
 *   BURST    they follow at once; but after a long pause only the last few, not millions
 *   DELAY    they are dropped, and the next one comes a whole period after this one
 *   SKIP     they are dropped, and the next one comes where it would have come anyway
 */
#include "time/time.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

_Static_assert(sizeof(blz_interval) == 128, "part of the ABI");

enum { TICK_FRESH, TICK_WAITING, TICK_STOPPED };

/* Late ticks that BURST catches up with. */
enum { BURST_MAX = 64 };

/* DELAY: what is late by no more than this is on time, or every tick would add to a drift. */
#define ON_TIME_NS (5 * BLZ_MSEC)

/* When the tick after the one that is due, and after those that are dropped, comes. */
static int64_t tick_after(const blz_interval *iv, int64_t dropped)
{
    return blz_time_add(iv->next_ns, blz_time_of(blz_time_add(dropped, 1), iv->period_ns));
}

/* A tick is delivered now. Gives the number of ticks that are dropped. */
static int64_t move_on(blz_interval *iv, int64_t now_ns)
{
    int64_t late_ns = blz_time_sub(now_ns, iv->next_ns), missed = late_ns / iv->period_ns;

    switch (iv->policy) {
    case BLZ_INTERVAL_BURST:
        missed = missed > BURST_MAX ? missed - BURST_MAX : 0;
        iv->next_ns = tick_after(iv, missed);
        break;
    case BLZ_INTERVAL_DELAY:
        iv->next_ns = missed || late_ns > ON_TIME_NS ? blz_time_add(now_ns, iv->period_ns)
                                                     : tick_after(iv, 0);
        break;
    default:
        iv->next_ns = tick_after(iv, missed);
        break;
    }
    return missed;
}

static blz_poll tick_poll(blz_future *future, blz_cx *cx)
{
    blz_interval *iv = (blz_interval *)future;
    int64_t now_ns;

    if (future->line == TICK_STOPPED)
        return blz_future_done(future, -ECANCELED);
    if (future->line == TICK_WAITING && timer_is_armed(&iv->timer))
        return BLZ_PENDING;
    if (blz_unlikely(!cx->worker))
        return blz_future_done(future, -ENXIO); /* blz_wait: no clock */
    now_ns = blz__rt_now(blz_cx_rt(cx));
    if (now_ns < iv->next_ns) {
        future->line = TICK_WAITING;
        blz_timer_wake_at(&iv->timer, iv->next_ns, cx);
        return BLZ_PENDING;
    }
    return blz_coop_take(cx) ? blz_future_done(future, move_on(iv, now_ns)) : BLZ_PENDING;
}

static void tick_cancel(blz_future *future, blz_cx *cx)
{
    blz_interval *iv = (blz_interval *)future;

    if (future->line != TICK_WAITING || blz__timer_stop(&iv->timer, cx))
        future->line = TICK_STOPPED;
}

static void tick_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_interval *op = (const blz_interval *)(const void *)future;

    info->kind = "timer";
    info->object = &op->timer;
    if (future->line == TICK_WAITING)
        info->due_ns = timer_due_ns(&op->timer);
}

static const blz_future_ops tick_ops = {.name = "interval_tick",
                                        .poll = tick_poll,
                                        .cancel = tick_cancel,
                                        .describe_wait = tick_describe};

int blz_interval_init(blz_interval *iv, int64_t start_ns, int64_t period_ns, int policy)
{
    if (period_ns <= 0 || policy < BLZ_INTERVAL_BURST || policy > BLZ_INTERVAL_SKIP)
        return -EINVAL;
    *iv = (blz_interval){.next_ns = start_ns, .period_ns = period_ns, .policy = policy};
    return 0;
}

blz_future *blz_interval_tick(blz_interval *iv)
{
    blz_op_check(&iv->future, &tick_ops);
    iv->future = (blz_future){.ops = &tick_ops};
    return &iv->future;
}
