/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that nobody shows.
 *
 * A worker publishes when it forks (join.c). One that runs a long branch does not fork, and what it
 * forked before that may be private: there was fuel left, or the pool is calm. So a worker that is
 * about to sleep, and has found nothing that is public, takes the oldest private job of another
 * (ring_force_begin in deque.h); a helper, of the one that it helps, if it belongs to what it waits
 * for. That interrupts every thread of the process for a moment, which is little beside a sleep; in
 * a calm it is left out. From who has no private job it asks for the next one.
 */
#include "par/pool.h"

static bool may_force(const blz_pool *pool)
{
    uint64_t now;

    if (!pool->sleep.asymmetric_fences)
        return false;
    now = blz__clock_ticks(&pool->clock);
    return (int64_t)(blz__load(&pool->calm_until, RELAXED) - now) <= 0;
}

/* NULL: any job; otherwise one that belongs to what is claimed there. */
static blz_par_job *force(worker *victim, const uint64_t *claim_at, uint64_t claim)
{
    blz_par_job *job;

    if (!ring_has_private(&victim->ring))
        return NULL;
    job = ring_force_begin(&victim->ring);
    if (!job)
        return NULL;
    if (claim_at && !blz__par_belongs(victim, claim_at, claim, job->index)) {
        ring_force_cancel(&victim->ring);
        return NULL;
    }
    job_prepare(job, victim);
    ring_force_end(&victim->ring);
    return job;
}

blz_par_job *blz__par_force_part(worker *victim, const uint64_t *claim_at, uint64_t claim)
{
    return may_force(victim->pool) ? force(victim, claim_at, claim) : NULL;
}

blz_par_job *blz__par_force_any(worker *w)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool), start;

    if (!may_force(pool))
        return NULL;
    start = blz__rng_below(&w->rng, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = start + i;
        worker *victim = &pool->workers[at < count ? at : at - count];
        blz_par_job *job = victim == w ? NULL : force(victim, NULL, 0);

        if (job)
            return job;
    }
    return NULL;
}
