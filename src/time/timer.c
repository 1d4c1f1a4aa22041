/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers for the program: in its own memory or on the heap, calling back or waking a task. All
 * that matters happens in the wheel (wheel.c) and in its tie to the worker (timers.c).
 */
#include "base/alloc.h"
#include "time/time.h"

#include <blitz/runtime.h>
#include <blitz/error.h>

_Static_assert(sizeof(blz_timer) == 64, "part of the ABI");

void blz_timer_init(blz_timer *timer, void (*fn)(void *arg), void *arg)
{
    *timer = (blz_timer){.target.call = {fn, arg}, .calls = true};
}

int blz_timer_start(blz_timer *timer, int64_t deadline_ns, blz_rt *rt)
{
    if (!rt)
        rt = blz_rt_current();
    return rt ? blz__timer_arm_remote(timer, deadline_ns, rt) : -ENXIO;
}

bool blz_timer_cancel(blz_timer *timer)
{
    if (!blz__timer_disarm(timer))
        return false;
    if (!timer->calls)
        blz_waker_drop(&timer->target.waker);
    return true;
}

bool blz_timer_reset(blz_timer *timer, int64_t deadline_ns)
{
    return blz__timer_move(timer, deadline_ns);
}

bool blz_timer_is_armed(const blz_timer *timer)
{
    return timer_is_armed(timer);
}

void blz_timer_wake_at(blz_timer *timer, int64_t deadline_ns, blz_cx *cx)
{
    timer->target.waker = blz_cx_waker(cx);
    timer->calls = false;
    blz__timer_arm(timer, deadline_ns, cx);
}

/* ---- on the heap ---- */

/* Knows where its memory came from, so that it can outlive its runtime. */
struct heap_timer {
    blz_timer timer;
    blz_allocator allocator;
};

blz_timer *blz_timer_new(void (*fn)(void *arg), void *arg, blz_rt *rt)
{
    const blz_allocator *allocator;
    struct heap_timer *heap;

    if (!rt)
        rt = blz_rt_current();
    allocator = rt ? blz__rt_allocator(rt) : &blz__system_allocator;
    heap = blz__alloc(allocator, sizeof *heap, _Alignof(struct heap_timer));
    if (!heap)
        return NULL;
    heap->allocator = *allocator;
    blz_timer_init(&heap->timer, fn, arg);
    return &heap->timer;
}

void blz_timer_free(blz_timer *timer)
{
    struct heap_timer *heap = (struct heap_timer *)timer;
    blz_allocator allocator;

    if (!timer)
        return;
    blz_timer_cancel(timer);
    allocator = heap->allocator;
    blz__free(&allocator, heap, sizeof *heap, _Alignof(struct heap_timer));
}
