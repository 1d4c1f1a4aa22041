/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that is cheap enough to read around a poll: the CPU's counter where it runs at a constant
 * rate, the system's monotonic clock elsewhere. In ticks; the rate is measured when a runtime
 * starts (to about a per cent, at a cost of 50 us) and can be measured anew, exactly, at any time
 * later. For statistics only: timers use the system's clock.
 */
#ifndef BLZ_BASE_CLOCK_H
#define BLZ_BASE_CLOCK_H

#include "system/clock.h"
#include "tuning.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct blz__clock {
    uint64_t start_ticks;
    int64_t start_ns;
    double ns_per_tick; /* the first measurement */
    bool counter;       /* ticks are the CPU's counter */
} blz__clock;

void blz__clock_init(blz__clock *clock);

static inline uint64_t blz__clock_ticks(const blz__clock *clock)
{
#if defined(__x86_64__) && CLOCK_COUNTER
    if (clock->counter)
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__) && CLOCK_COUNTER
    if (clock->counter) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    (void)clock;
    return (uint64_t)blz__clock_ns();
}

/* The rate over the clock's whole life. */
double blz__clock_ns_per_tick(const blz__clock *clock);

#endif
