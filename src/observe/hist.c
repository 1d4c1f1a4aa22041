/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms as users see them: the workers count in ticks of the clock; here the buckets are
 * turned into nanoseconds and added up.
 */
#include "observe/hist.h"

#include "sched/rt.h"

#include <blitz/error.h>
#include <string.h>

uint64_t blz_histogram_floor(unsigned bucket)
{
    if (bucket < 4)
        return bucket;
    return (uint64_t)(4 + bucket % 4) << (bucket / 4 - 1);
}

uint64_t blz_histogram_quantile(const blz_histogram *histogram, double share)
{
    double wanted = (double)histogram->count * share;
    uint64_t seen = 0;
    unsigned last = 0;

    for (unsigned i = 0; i < BLZ_HISTOGRAM_BUCKETS; i++) {
        if (!histogram->buckets[i])
            continue;
        seen += histogram->buckets[i];
        last = i;
        if ((double)seen >= wanted)
            break;
    }
    return blz_histogram_floor(last);
}

int blz_rt_histogram(const blz_rt *rt, int which, blz_histogram *out)
{
    double ns_per_tick = blz__clock_ns_per_tick(&rt->clock);

    if (which != BLZ_HISTOGRAM_POLL && which != BLZ_HISTOGRAM_LATENCY)
        return -EINVAL;
    memset(out, 0, sizeof *out);
    for (uint32_t w = 0; w < rt->nr_workers; w++) {
        const tick_histogram *h = which == BLZ_HISTOGRAM_POLL ? &rt->workers[w].poll_histogram
                                                              : &rt->workers[w].latency_histogram;
        for (unsigned i = 0; i < BLZ_HISTOGRAM_BUCKETS; i++) {
            uint64_t count = blz__load(&h->buckets[i], RELAXED);
            /* the middle of the bucket decides where it goes */
            double ticks = (double)(blz_histogram_floor(i) + blz_histogram_floor(i + 1)) / 2;
            out->buckets[histogram_bucket((uint64_t)(ticks * ns_per_tick))] += count;
            out->count += count;
        }
    }
    return 0;
}
