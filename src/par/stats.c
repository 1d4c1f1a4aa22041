/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics: adds up what the workers counted. Each counter is written by its worker alone, with
 * plain loads and stores, and none on the way of a fork that nobody else sees.
 */
#include "par/pool.h"

#include <string.h>

static void add_worker(const worker *w, blz_par_stats *out)
{
    out->injected += blz__load(&w->stats.injected, RELAXED);
    out->published += blz__load(&w->stats.published, RELAXED);
    out->stolen += blz__load(&w->stats.stolen, RELAXED);
    out->sleeps += blz__load(&w->stats.sleeps, RELAXED);
    out->vain += blz__load(&w->stats.vain, RELAXED);
}

void blz_pool_stats(const blz_pool *pool, blz_par_stats *out)
{
    uint64_t counters = blz__load(&pool->sleep.counters, RELAXED);

    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < pool_nr_in_use(pool); i++) {
        add_worker(&pool->workers[i], out);
        if (i >= pool->nr_workers && blz__load(&pool->workers[i].entries, RELAXED))
            out->guests++;
    }
    out->queued = blz__load(&pool->injected.len, RELAXED);
    out->threads = pool->nr_workers;
    out->sleeping = sleep_nr_asleep(counters);
    out->looking = sleep_nr_looking(counters);
}
