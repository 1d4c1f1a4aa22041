/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers and their wheels: which thread arms a timer in which wheel, and which one fires it. A
 * wheel is part of its worker, so this file sees the worker's struct; see docs/design/time.md.
 *
 * A task arms a timer on the worker that polls it, and disarms it from wherever it is by then.
 * Other threads use the wheel of worker 0, and wake that worker if it would sleep too long. A
 * worker fires what is due when it looks at its driver; nothing is woken or called under the
 * wheel's lock.
 *
 * Tasks go behind those that are queued, in the order of their timers: not into the LIFO slot,
 * which would turn the order round.
 */
#include "observe/trace.h"
#include "sched/rt.h"
#include "time/time.h"

#include <blitz/error.h>

/* Timers that fire in one go. As many as a worker polls tasks until it looks again, or more. */
enum { FIRE_BATCH = 64 };

static blz_worker *worker_of(const blz_timer *timer)
{
    return blz_container_of((blz__wheel *)timer->wheel, blz_worker, wheel);
}

/* ---- arming ---- */

void blz__timer_arm(blz_timer *timer, int64_t deadline_ns, blz_cx *cx)
{
    blz__wheel_insert(&cx->worker->wheel, timer, deadline_ns, true); /* this worker is awake */
}

/* The first timer from outside may be the first thing that the runtime hears of. */
static int start_for_timers(blz_rt *rt)
{
    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    if (blz__load(&rt->phase, RELAXED) != RT_OPEN)
        return -ESHUTDOWN;
    return blz__load(&rt->started, ACQUIRE) ? 0 : blz__rt_start(rt, false);
}

/* On the wheel of this thread's worker, or of worker 0. */
static void arm_here(blz_timer *timer, int64_t deadline_ns, blz_rt *rt)
{
    blz_worker *self = blz__worker_current();
    bool mine = self && self->rt == rt;
    blz_worker *home = mine ? self : rt->workers;

    if (blz__wheel_insert(&home->wheel, timer, deadline_ns, mine) && !mine)
        blz__parker_unpark(&home->parker);
}

int blz__timer_arm_remote(blz_timer *timer, int64_t deadline_ns, blz_rt *rt)
{
    int rc;

    visitors_enter(&rt->visitors); /* the runtime may end when the timer has fired */
    rc = start_for_timers(rt);
    if (rc == 0 && timer_is_armed(timer))
        rc = -EBUSY;
    if (rc == 0)
        arm_here(timer, deadline_ns, rt);
    visitors_leave(&rt->visitors);
    return rc;
}

int blz__timer_arm_own(blz_timer *timer, int64_t ns, blz_rt *rt)
{
    int rc;

    visitors_enter(&rt->visitors); /* the runtime may end when the timer has fired */
    rc = blz__load(&rt->started, ACQUIRE) ? 0 : blz__rt_start(rt, false);
    if (rc == 0)
        arm_here(timer, blz_time_add(blz__rt_now(rt), ns), rt);
    visitors_leave(&rt->visitors);
    return rc;
}

bool blz__timer_stop(blz_timer *timer, blz_cx *cx)
{
    if (!blz__wheel_remove(timer, timer->wheel == &cx->worker->wheel))
        return false;
    task_waker_give_back(cx, &timer->target.waker);
    return true;
}

bool blz__timer_disarm(blz_timer *timer)
{
    blz_worker *home;

    if (!timer_is_armed(timer))
        return false;
    home = worker_of(timer);
    return !rt_is_forked(home->rt) && blz__wheel_remove(timer, home == blz__worker_current());
}

/* By another thread than the timer's worker: the runtime may end when the timer has fired. */
static bool move_from_outside(blz_timer *timer, int64_t deadline_ns, blz_worker *home)
{
    blz_rt *rt = home->rt;
    int rc;

    visitors_enter(&rt->visitors);
    rc = blz__wheel_reset(timer, deadline_ns, false);
    if (rc == WHEEL_RESET_WAKE)
        blz__parker_unpark(&home->parker);
    visitors_leave(&rt->visitors);
    return rc != WHEEL_RESET_LATE;
}

bool blz__timer_move(blz_timer *timer, int64_t deadline_ns)
{
    blz_worker *home;

    if (!timer_is_armed(timer))
        return false;
    home = worker_of(timer); /* before the reset: then it may fire, and be armed elsewhere */
    if (rt_is_forked(home->rt))
        return false;
    if (home != blz__worker_current())
        return move_from_outside(timer, deadline_ns, home);
    return blz__wheel_reset(timer, deadline_ns, true) != WHEEL_RESET_LATE;
}

/* ---- firing ---- */

static void wake_task(blz_worker *w, blz_waker *waker)
{
    uint64_t group;
    blz_task *task = task_of_waker(waker, &group);
    enum task_action action;

    if (!task || w != blz__worker_current()) {
        blz_waker_wake(waker);
        return;
    }
    action = task_state_wake_group(&task->state, group, true);
    if (action == TASK_QUEUE)
        blz__worker_wake_back(w, task);
    else
        task_act(task, action);
}

static void dispatch(blz_worker *w, wheel_fired *fired, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (trace_watched(TRACE_EVENT))
            blz__trace_timer();
        if (fired[i].calls)
            fired[i].target.call.fn(fired[i].target.call.arg);
        else
            wake_task(w, &fired[i].target.waker);
    }
}

/*
 * When very many are due at once, the worker wakes as many as its ring takes, and runs these while
 * they are in the cache; the others are due at its next look.
 */
void blz__worker_expire(blz_worker *w)
{
    bool mine = w == blz__worker_current();
    int64_t now_ns = blz__rt_now(w->rt);
    wheel_fired fired[FIRE_BATCH];
    size_t n;

    if (now_ns < wheel_next_guess(&w->wheel))
        return;
    do {
        n = blz__wheel_collect(&w->wheel, now_ns, fired, FIRE_BATCH, mine);
        dispatch(w, fired, n);
    } while (n == FIRE_BATCH && (!mine || blz__runq_room(&w->ring) > FIRE_BATCH));
}

void blz__worker_drop_timers(blz_worker *w)
{
    while (blz__wheel_drop(&w->wheel))
        ;
}
