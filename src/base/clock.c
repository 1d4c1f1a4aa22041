/* SPDX-License-Identifier: Apache-2.0 */
/* The cheap clock: does the counter run at a constant rate, and at which? */
#include "base/clock.h"

#include "system/clock.h"

#if defined(__x86_64__) && CLOCK_COUNTER
#include <cpuid.h>

/* "Invariant TSC": constant rate in all power states, in step on all cores. */
static bool counter_is_constant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}
#else
/* That of 64-bit ARM always is, by its architecture. */
static bool counter_is_constant(void)
{
#if defined(__aarch64__) && CLOCK_COUNTER
    return true;
#else
    return false;
#endif
}
#endif

/*
 * Both clocks at the same instant. A thread may lose its CPU between two reads, for longer than all
 * that is measured; so of some attempts the shortest counts.
 */
static void read_both(const blz__clock *clock, int64_t *ns, uint64_t *ticks)
{
    uint64_t shortest = 0;

    for (int i = 0; i < 3; i++) {
        uint64_t before = blz__clock_ticks(clock);
        int64_t now_ns = blz__clock_ns();
        uint64_t took = blz__clock_ticks(clock) - before;
        if (i == 0 || took < shortest) {
            shortest = took;
            *ns = now_ns;
            *ticks = before + took / 2;
        }
    }
}

void blz__clock_init(blz__clock *clock)
{
    const int64_t measure_ns = 50000;
    int64_t now_ns;
    uint64_t ticks;

    clock->counter = counter_is_constant();
    clock->ns_per_tick = 1.0;
    read_both(clock, &clock->start_ns, &clock->start_ticks);
    if (!clock->counter)
        return;
    do
        now_ns = blz__clock_ns();
    while (now_ns - clock->start_ns < measure_ns);
    read_both(clock, &now_ns, &ticks);
    clock->ns_per_tick = (double)(now_ns - clock->start_ns) / (double)(ticks - clock->start_ticks);
}

double blz__clock_ns_per_tick(const blz__clock *clock)
{
    const int64_t long_enough_ns = 10000000;
    int64_t now_ns;
    uint64_t ticks;

    if (!clock->counter || blz__clock_ns() - clock->start_ns < long_enough_ns)
        return clock->ns_per_tick;
    read_both(clock, &now_ns, &ticks);
    return (double)(now_ns - clock->start_ns) / (double)(ticks - clock->start_ticks);
}
