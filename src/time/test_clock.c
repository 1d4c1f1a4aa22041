/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test clock of test_clock.h. It never goes backwards. All but `on` and `holds` is under its
 * lock. A change is told to the runtime that the clock belongs to by clock.c.
 */
#include "time/test_clock.h"

#include "base/assert.h"
#include "system/clock.h"

#include <blitz/time.h>

/* The same in every run, and not 0, so that a deadline can be in the past. */
#define START_NS (1000 * BLZ_SEC)

void blz__test_clock_init(test_clock *clock)
{
    *clock = (test_clock){.on = true, .set_ns = START_NS};
}

/* Under the lock. */
static int64_t read(const test_clock *clock)
{
    BLZ_ASSERT(blz__lock_is_held(&clock->lock));
    if (!clock->running)
        return clock->set_ns;
    return blz_time_add(clock->set_ns, blz__clock_ns() - clock->set_at);
}

static void set(test_clock *clock, int64_t ns)
{
    BLZ_ASSERT(blz__lock_is_held(&clock->lock));
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
