/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that tests can stop and set. Stopped, it goes ahead by itself when the runtime's one
 * worker has nothing to do: to the next timer, at once. See docs/design/time.md.
 */
#ifndef BLZ_TIME_TEST_CLOCK_H
#define BLZ_TIME_TEST_CLOCK_H

#include "base/atomic.h"
#include "base/lock.h"

typedef struct test_clock {
    bool on;        /* the runtime has one; never changes */
    bool running;   /* goes on like the real one; else it stands */
    blz__lock lock; /* of what is not `on` or `holds` */
    int64_t set_ns; /* what it said when it was set last */
    int64_t set_at; /* and the real time then */
    uint64_t holds; /* reasons not to go ahead */
} test_clock;

void blz__test_clock_init(test_clock *clock);

/* [any thread] */
int64_t blz__test_clock_now(test_clock *clock);
void blz__test_clock_run(test_clock *clock, bool run);
void blz__test_clock_advance(test_clock *clock, int64_t ns);

/* The real time at which it will say `ns`: INT64_MAX if it stands. [any thread] */
int64_t blz__test_clock_real(test_clock *clock, int64_t ns);

/* Goes ahead to `ns`. False: it is running, held, or there is nothing to go to. [worker] */
bool blz__test_clock_skip(test_clock *clock, int64_t ns);

#endif
