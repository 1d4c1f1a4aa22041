/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Visitors: threads that are not workers of a runtime, while they wake one of its workers.
 *
 * A task may run, and end, as soon as it is queued; with the last task the runtime ends. So the
 * thread that has just queued a task may find, before it has woken the worker, that the worker's
 * driver is closed, that another file has got the number of its eventfd, and that the runtime's
 * memory is free. A visitor is counted from before it queues anything until after its last access
 * to the runtime. The end of the runtime waits for visitors after its own threads have stopped and
 * before it closes the drivers.
 *
 *   visitors        event    becomes
 *   ---------------------------------------------------------------------------------------
 *   n               enter    n + 1
 *   n               leave    n - 1
 *   n               await    n | AWAITED; the end sleeps until n is 0
 *   1 | AWAITED     leave    0 | AWAITED; wakes the end
 *   n | AWAITED     enter    n + 1 | AWAITED: sees that the runtime is shut down
 *
 * What a visitor is about to queue (a task that is not complete, an operation in flight) keeps the
 * runtime from ending until it has entered. A timer does not: a program that resets or cancels one
 * must not free the runtime meanwhile (blitz/time.h).
 */
#ifndef BLZ_SCHED_VISITORS_H
#define BLZ_SCHED_VISITORS_H

#include "base/atomic.h"
#include "system/futex.h"

#define VISITORS_AWAITED 0x80000000u

/* [any thread that is not a worker of the runtime] */
static inline void visitors_enter(uint32_t *visitors)
{
    blz__fetch_add(visitors, 1u, ACQUIRE); /* pairs with visitors_await: the phase of the runtime */
}

/* The runtime may be gone when this returns. [the thread that has entered] */
static inline void visitors_leave(uint32_t *visitors)
{
    /* release: our use of drivers and queues; pairs with the acquires in visitors_await */
    if (blz_unlikely(blz__fetch_sub(visitors, 1u, RELEASE) == (VISITORS_AWAITED | 1)))
        blz__futex_wake(visitors, 1); /* needs the address alone, not the memory */
}

/* Sleeps until all visitors have left. [the thread that ends the runtime, once] */
static inline void visitors_await(uint32_t *visitors)
{
    uint32_t seen = blz__fetch_or(visitors, VISITORS_AWAITED, ACQ_REL) | VISITORS_AWAITED;

    while (seen != VISITORS_AWAITED) {
        blz__futex_wait(visitors, seen);
        seen = blz__load(visitors, ACQUIRE);
    }
}

#endif
