/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a runtime: the system's monotonic one, or a test clock (test_clock.c), which the
 * program sets. A change of the test clock wakes the worker, which may have more or less time to
 * sleep now.
 *
 * The test clock is part of the runtime, and the worker of a runtime that has one moves it ahead
 * (sched/loop.c). So this file sees the runtime's struct; see docs/design/time.md.
 */
#include "sched/rt.h"
#include "system/clock.h"
#include "time/time.h"

#include <blitz/error.h>

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

/* The caller is a visitor since before it changed the clock, which may end the runtime. */
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
