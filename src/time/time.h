/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/time: timers for the modules above, and what holds a test clock. The time
 * itself is blz__rt_now (sched/sched.h), which the scheduler needs as well.
 *
 *   wheel          the timers of one worker, a data structure over base          wheel.c
 *   timers         a worker and its wheel: arming, firing                         timers.c
 *   clock          the time of a runtime; its test clock                      clock.c, test_clock.c
 *   the API        timers, sleeping, intervals, limits    timer.c, sleep.c, interval.c, timeout.c
 */
#ifndef BLZ_TIME_TIME_H
#define BLZ_TIME_TIME_H

#include "sched/sched.h"

#include <blitz/time.h>

/* Something is under way outside of the workers: a test clock must not run ahead. [any thread] */
void blz__rt_hold_clock(blz_rt *rt);
void blz__rt_release_clock(blz_rt *rt);

/* Arms a timer whose target is filled in, on the worker that polls the task. [task] */
void blz__timer_arm(blz_timer *timer, int64_t deadline_ns, blz_cx *cx);

/* Arms a timer whose target is filled in. 0 or a negative errno. [any thread] */
int blz__timer_arm_remote(blz_timer *timer, int64_t deadline_ns, blz_rt *rt);

/*
 * Arms a callback of the library's own, `ns` from now: also while the runtime ends, as long as it
 * has workers. 0 or a negative errno; then it is not armed. [any thread]
 */
int blz__timer_arm_own(blz_timer *timer, int64_t ns, blz_rt *rt);

/* Disarms a timer that wakes the task being polled, if it is armed. [task] */
bool blz__timer_stop(blz_timer *timer, blz_cx *cx);

/* Disarms: true if it was armed; the target is the caller's again. [any thread] */
bool blz__timer_disarm(blz_timer *timer);

/* Moves an armed timer: false if it was not armed any more. [any thread] */
bool blz__timer_move(blz_timer *timer, int64_t deadline_ns);

#endif
