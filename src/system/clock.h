/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. base/clock.h has a cheaper one, for statistics. */
#ifndef BLZ_SYSTEM_CLOCK_H
#define BLZ_SYSTEM_CLOCK_H

#include <stdint.h>

/*
 * Nanoseconds of a clock that never goes back and that nobody sets. Whether it counts the time that
 * the machine is suspended differs between systems; on Linux it does not. [any thread, signal
 * handlers]
 */
int64_t blz__clock_ns(void);

/* Nanoseconds since 1970-01-01 00:00 UTC, as the machine's clock is set. [any thread] */
int64_t blz__clock_wall_ns(void);

#endif
