/* SPDX-License-Identifier: Apache-2.0 */
/* An embedded runtime with a test clock: all that happens is in blz_rt_turn, by the test. */
#ifndef CLOCK_RT_H
#define CLOCK_RT_H

#include "harness.h"
#include "sched/rt.h"
#include "time/time.h"

#define MS BLZ_MSEC

/* Held, the clock goes on only by blz_clock_advance, however idle the runtime is. */
static inline blz_rt *new_clock_rt(bool held)
{
    blz_rt *rt =
        new_rt(&(blz_options){.test_clock = true, .embedded = true, .watchdog_ns = BLZ_NEVER});

    if (held)
        blz__rt_hold_clock(rt);
    return rt;
}

/* The instant that many milliseconds after the beginning of such a clock. */
static inline int64_t at_ms(int64_t ms)
{
    return 1000 * BLZ_SEC + ms * MS;
}

static inline void advance(blz_rt *rt, int64_t ns)
{
    assert_int_equal(blz_clock_advance(rt, ns), 0);
    turn_all(rt);
}

static inline int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

#endif
