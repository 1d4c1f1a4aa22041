/* SPDX-License-Identifier: Apache-2.0 */
/* The cheap clock: does the counter run at a constant rate, and at which? */
#include "base/clock.h"

#if defined(__x86_64__) && !defined(BLZ_MODEL)
#include <cpuid.h>

/* "Invariant TSC": constant rate in all power states, in step on all cores. */
static bool counter_is_constant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}
#else
static bool counter_is_constant(void)
{
    return false;
}
#endif

void blz__clock_init(blz__clock *clock)
{
    const int64_t measure_ns = 50000;

    clock->counter = counter_is_constant();
    clock->start_ns = blz__clock_ns();
    clock->start_ticks = blz__clock_ticks(clock);
    clock->ns_per_tick = 1.0;
    if (!clock->counter)
        return;
    int64_t now_ns;
    do
        now_ns = blz__clock_ns();
    while (now_ns - clock->start_ns < measure_ns);
    uint64_t ticks = blz__clock_ticks(clock) - clock->start_ticks;
    clock->ns_per_tick = (double)(now_ns - clock->start_ns) / (double)ticks;
}

double blz__clock_ns_per_tick(const blz__clock *clock)
{
    const int64_t long_enough_ns = 10000000;
    int64_t ns = blz__clock_ns() - clock->start_ns;

    if (!clock->counter || ns < long_enough_ns)
        return clock->ns_per_tick;
    return (double)ns / (double)(blz__clock_ticks(clock) - clock->start_ticks);
}
