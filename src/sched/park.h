/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parker: how a worker goes to sleep, and how it is woken, each exactly once.
 *
 *   state       event: park            unpark                wake-up
 *   ---------------------------------------------------------------------------------
 *   EMPTY       FUTEX or DRIVER        NOTIFIED              -
 *   FUTEX       -                      NOTIFIED, wakes the   EMPTY
 *                                      futex
 *   DRIVER      -                      NOTIFIED, wakes the   EMPTY
 *                                      driver
 *   NOTIFIED    EMPTY, no sleep        NOTIFIED              EMPTY
 *
 * Every change is a read-modify-write, also of NOTIFIED to itself: the worker that consumes the
 * token synchronises with every unpark that was folded into it. A token may be left over from a
 * wake-up that the worker noticed by other means; then one later park returns at once.
 */
#ifndef BLZ_SCHED_PARK_H
#define BLZ_SCHED_PARK_H

#include "base/atomic.h"
#include "sched/driver.h"

enum { PARK_EMPTY, PARK_FUTEX, PARK_DRIVER, PARK_NOTIFIED };

typedef struct parker {
    uint32_t state;
    blz__driver *driver; /* or NULL */
} parker;

/* Sleeps until unparked, or until the deadline (INT64_MAX: none). [owner] */
void blz__parker_wait(parker *p, int64_t deadline_ns);

/*
 * The same in two halves, for a sleep in the driver. begin: false if there was a token, then do not
 * sleep. end: after the driver returned, or at the next embedded turn. [owner]
 */
bool blz__parker_begin_driver(parker *p);
void blz__parker_end_driver(parker *p);

/* Wakes the worker, or makes its next park return at once. [any thread] */
void blz__parker_unpark(parker *p);

#endif
