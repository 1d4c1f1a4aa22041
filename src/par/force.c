/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that nobody shows.
 *
 * A worker publishes when it forks (join.c). One that runs a long branch does not fork, and what it
 * forked before that may be private: there was fuel left, or the pool is calm. So a worker that is
 * about to sleep, and has found nothing that is public, takes the oldest private job of another
 * (ring_force_begin in deque.h). That interrupts every thread of the process for a moment, which is
 * little beside a sleep; in a calm it is left out. From who has no private job it asks for the next
 * one.
 */
#include "par/pool.h"

static bool is_calm(const blz_pool *pool, uint64_t now)
{
    return (int64_t)(blz__load(&pool->calm_until, RELAXED) - now) > 0;
}

static blz_par_job *force(worker *victim)
{
    blz_par_job *job;

    if (!ring_has_private(&victim->ring))
        return NULL;
    job = ring_force_begin(&victim->ring);
    if (job) {
        job_prepare(job, victim);
        ring_force_end(&victim->ring);
    }
    return job;
}

blz_par_job *blz__par_force_any(worker *w)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool), start;

    if (!pool->sleep.asymmetric_fences)
        return NULL;
    if (is_calm(pool, blz__clock_ticks(&pool->clock)))
        return NULL;
    start = blz__rng_below(&w->rng, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = start + i;
        worker *victim = &pool->workers[at < count ? at : at - count];
        blz_par_job *job = victim == w ? NULL : force(victim);

        if (job)
            return job;
    }
    return NULL;
}
