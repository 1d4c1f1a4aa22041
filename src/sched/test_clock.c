/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test clock of test_clock.h, and the public functions that set it. It never goes backwards.
 * Whoever changes it wakes the worker, which may have more time or less to sleep now.
 */
#include "sched/rt.h"
#include "system/clock.h"

#include <errno.h>

/* The same in every run, and not 0, so that a deadline can be in the past. */
#define START_NS (1000 * BLZ_SEC)

void blz__test_clock_init(test_clock *clock)
{
    *clock = (test_clock){.on = true, .set_ns = START_NS};
}

/* Under the lock. */
static int64_t read(const test_clock *clock)
{
    if (!clock->running)
        return clock->set_ns;
    return blz_time_add(clock->set_ns, blz__clock_ns() - clock->set_at);
}

static void set(test_clock *clock, int64_t ns)
{
    clock->set_ns = ns;
    clock->set_at = blz__clock_ns();
}

int64_t blz__test_clock_now(test_clock *clock)
{
    int64_t now_ns;

    blz__lock_acquire(&clock->lock);
    now_ns = read(clock);
    blz__lock_release(&clock->lock);
    return now_ns;
}

void blz__test_clock_run(test_clock *clock, bool run)
{
    blz__lock_acquire(&clock->lock);
    set(clock, read(clock));
    clock->running = run;
    blz__lock_release(&clock->lock);
}

void blz__test_clock_advance(test_clock *clock, int64_t ns)
{
    blz__lock_acquire(&clock->lock);
    set(clock, blz_time_add(read(clock), ns));
    blz__lock_release(&clock->lock);
}

int64_t blz__test_clock_real(test_clock *clock, int64_t ns)
{
    int64_t real_ns = INT64_MAX;

    blz__lock_acquire(&clock->lock);
    if (clock->running && ns != INT64_MAX)
        real_ns = blz_time_add(clock->set_at, ns - clock->set_ns);
    blz__lock_release(&clock->lock);
    return real_ns;
}

bool blz__test_clock_skip(test_clock *clock, int64_t ns)
{
    bool skip;

    /* acquire: pairs with the release in blz__rt_release_clock */
    if (ns == INT64_MAX || blz__load(&clock->holds, ACQUIRE) != 0)
        return false;
    blz__lock_acquire(&clock->lock);
    skip = !clock->running;
    if (skip && clock->set_ns < ns)
        clock->set_ns = ns;
    blz__lock_release(&clock->lock);
    return skip;
}

/* ---- the runtime's clock ---- */

int64_t blz__rt_now(blz_rt *rt)
{
    if (blz_unlikely(rt->test_clock.on))
        return blz__test_clock_now(&rt->test_clock);
    return blz__clock_ns();
}

int64_t blz_now(void)
{
    blz_rt *rt = blz_rt_current();

    return rt ? blz__rt_now(rt) : blz__clock_ns();
}

/* By a visitor, which has entered before it changed the clock: that may end the runtime. */
static void wake_worker(blz_rt *rt)
{
    blz__parker_unpark(&rt->workers[0].parker);
}

void blz__rt_hold_clock(blz_rt *rt)
{
    if (blz_unlikely(rt->test_clock.on))
        blz__fetch_add(&rt->test_clock.holds, (uint64_t)1, RELAXED);
}

void blz__rt_release_clock(blz_rt *rt)
{
    if (blz_likely(!rt->test_clock.on))
        return;
    visitors_enter(&rt->visitors);
    /* release: what was held for; pairs with the acquire in blz__test_clock_skip */
    if (blz__fetch_sub(&rt->test_clock.holds, (uint64_t)1, RELEASE) == 1)
        wake_worker(rt);
    visitors_leave(&rt->visitors);
}

static int check_clock(const blz_rt *rt)
{
    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    return rt->test_clock.on ? 0 : -ENOTSUP;
}

static int set_running(blz_rt *rt, bool run)
{
    int rc = check_clock(rt);

    if (rc == 0) {
        visitors_enter(&rt->visitors);
        blz__test_clock_run(&rt->test_clock, run);
        wake_worker(rt);
        visitors_leave(&rt->visitors);
    }
    return rc;
}

int blz_clock_pause(blz_rt *rt)
{
    return set_running(rt, false);
}

int blz_clock_resume(blz_rt *rt)
{
    return set_running(rt, true);
}

int blz_clock_advance(blz_rt *rt, int64_t ns)
{
    int rc = check_clock(rt);

    if (rc == 0 && ns < 0)
        rc = -EINVAL;
    if (rc == 0) {
        visitors_enter(&rt->visitors);
        blz__test_clock_advance(&rt->test_clock, ns);
        wake_worker(rt);
        visitors_leave(&rt->visitors);
    }
    return rc;
}
