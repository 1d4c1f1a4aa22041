/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ready thread of an embedded runtime: it waits in the worker's driver while the worker is
 * parked between two turns, and calls options.on_ready when a turn has something to do.
 *
 *   state      arm [turn's end]   wait [thread]          event [thread]      disarm [turn's begin]
 *   ----------------------------------------------------------------------------------------------
 *   IN_TURN    ARMED, wakes the   sleeps on the futex    -                   -
 *              thread
 *   ARMED      -                  WAITING, waits in      -                   IN_TURN
 *                                 the driver
 *   WAITING    -                  -                      IN_TURN, calls      IN_TURN, ends the
 *                                                        on_ready; or        thread's wait
 *                                                        ARMED: the wait
 *                                                        was ended
 *   STOP       -                  the thread returns     -                   -
 *
 * IN_TURN also means that on_ready has been called and the turn has not begun yet, so there is at
 * most one call for each turn. The driver's readiness is a level, so whatever happened before the
 * thread waits ends its wait. A turn may come without a call, while the thread waits until a
 * deadline that is out of date: disarming ends that wait.
 */
#ifndef BLZ_SCHED_READY_THREAD_H
#define BLZ_SCHED_READY_THREAD_H

#include "base/atomic.h"
#include "system/thread.h"

enum { READY_IN_TURN, READY_ARMED, READY_WAITING, READY_STOP };

typedef struct ready_thread {
    uint32_t state; /* futex: READY_IN_TURN and on */
    bool running;
    int64_t deadline_ns; /* when the next timer is due; written before the state is READY_ARMED */
    uint64_t thread_id;
    blz__thread thread;
} ready_thread;

/*
 * Starts the thread, if options.on_ready is set. 0; -ENOTSUP: the driver cannot be waited for by
 * another thread; or a negative errno. [the thread that creates the runtime]
 */
int blz__ready_thread_start(blz_rt *rt);

/* Ends it; on_ready is not called any more when this returns. [any other thread] */
void blz__ready_thread_stop(blz_rt *rt);

/* The worker is parked, or has woken its driver. [the thread that makes the turns] */
void blz__ready_thread_arm(blz_rt *rt);

/* The worker runs. [the thread that makes the turns] */
void blz__ready_thread_disarm(blz_rt *rt);

/* Whether this is that thread: in on_ready. [any thread] */
bool blz__ready_thread_is_me(const blz_rt *rt);

#endif
