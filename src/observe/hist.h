/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms of durations in ticks: four buckets to each power of two. One thread adds, others
 * read.
 */
#ifndef BLZ_OBSERVE_HIST_H
#define BLZ_OBSERVE_HIST_H

#include "base/atomic.h"

#include <blitz/stats.h>

typedef struct tick_histogram {
    uint64_t buckets[BLZ_HISTOGRAM_BUCKETS];
} tick_histogram;

/* 0..3 have their own buckets; above, the two bits below the highest one choose among four. */
static inline unsigned histogram_bucket(uint64_t value)
{
    unsigned log, bucket;

    if (value < 4)
        return (unsigned)value;
    log = 63 - (unsigned)__builtin_clzll(value);
    bucket = (log - 1) * 4 + ((unsigned)(value >> (log - 2)) & 3);
    return bucket < BLZ_HISTOGRAM_BUCKETS ? bucket : BLZ_HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(tick_histogram *h, uint64_t value)
{
    uint64_t *bucket = &h->buckets[histogram_bucket(value)];

    blz__stat_store(bucket, blz__stat_load(bucket) + 1);
}

#endif
