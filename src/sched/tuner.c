/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuning: how many polls may pass before a worker looks at the inject queue and at its driver, so
 * that 200 us pass at most. Polls of 1 us: every 127; of 20 us: every 10; of 1 ms: every 2.
 *
 * From a moving average of the polls that were timed, with the weight 0.1 for the newest. A first
 * guess of 50 us makes a new worker look often. When polls get long, all of them are timed,
 * so that the next look is not put off by 16 long polls.
 */
#include "sched/rt.h"

enum {
    INTERVAL_MIN = 2,
    INTERVAL_MAX = 127,
    FIRST_GUESS_DIVISOR = 4, /* of the 200 us */
    WEIGHT = 10,             /* 1 / 0.1 */
};

static void derive_intervals(tuner *t, const blz_rt *rt)
{
    uint64_t interval = rt->target_ticks / (t->mean_ticks + 1);

    if (interval < INTERVAL_MIN)
        interval = INTERVAL_MIN;
    if (interval > INTERVAL_MAX)
        interval = INTERVAL_MAX;
    if (!t->fixed_inject)
        blz__store(&t->inject_interval, (uint32_t)interval, RELAXED);
    t->sample_interval = interval > SAMPLE_INTERVAL && !rt->observe_full ? SAMPLE_INTERVAL : 1;
}

void blz__tuner_init(tuner *t, const blz_rt *rt)
{
    t->mean_ticks = rt->target_ticks / FIRST_GUESS_DIVISOR;
    t->fixed_inject = rt->options.inject_interval != 0;
    t->inject_interval = rt->options.inject_interval;
    derive_intervals(t, rt);
}

void blz__tuner_sample(tuner *t, const blz_rt *rt, uint64_t ticks)
{
    int64_t error = (int64_t)ticks - (int64_t)t->mean_ticks;

    blz__store(&t->mean_ticks, t->mean_ticks + (uint64_t)(error / WEIGHT), RELAXED);
    derive_intervals(t, rt);
}
