/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs and tasks that nobody shows.
 *
 * A worker publishes when it forks (join.c). One that runs a long branch does not fork, and what it
 * forked before that may be private: there was fuel left, or the pool is calm. So a worker that is
 * about to sleep, and has found nothing that is public, takes the oldest private job of another
 * (ring_force_begin in deque.h); a helper, of the one that it helps, if it belongs to what it waits
 * for. That interrupts every thread of the process for a moment, which is little beside a sleep.
 * From who has no private job it asks for the next one. Tasks are taken in the same way, under the
 * lock of who has them (tasks.h).
 *
 * Two things are left to time. In a calm jobs are private on purpose, so none is taken before it is
 * over, but from who has not moved between two looks. And to ask is to write into a word that the
 * other one counts down, which may overwrite it. In both cases somebody must look again, and one of
 * those who sleep does: the watcher sleeps only until the calm is over, or for a few milliseconds.
 * Nobody else is ever woken by a clock, and a computation that begins in a calm keeps its jobs to
 * itself only if there is, or will be, a watcher (join.c). Who spawns has a word of its own that
 * says that it was asked: nothing overwrites that.
 */
#include "par/pool.h"
#include "system/clock.h"

/* ---- taking ---- */

static bool has_private_job(const worker *victim)
{
    return victim->pool->sleep.asymmetric_fences && ring_has_private(&victim->ring);
}

/* NULL: any job; otherwise one that belongs to what is claimed there. */
static blz_par_job *force(worker *w, worker *victim, const uint64_t *claim_at, uint64_t claim)
{
    blz_par_job *job = ring_force_begin(&victim->ring);

    if (!job)
        return NULL;
    if (claim_at && !blz__par_belongs(victim, claim_at, claim, job->index)) {
        ring_force_cancel(&victim->ring);
        return NULL;
    }
    job_prepare(job, victim);
    ring_force_end(&victim->ring);
    par_count(w->stats.published); /* by us */
    return job;
}

blz_par_job *blz__par_force_part(worker *w, worker *victim, const uint64_t *claim_at,
                                 uint64_t claim)
{
    return has_private_job(victim) ? force(w, victim, claim_at, claim) : NULL;
}

bool blz__par_is_calm(const blz_pool *pool)
{
    uint64_t now = blz__clock_ticks(&pool->clock);

    return (int64_t)(blz__load(&pool->calm_until, RELAXED) - now) > 0;
}

/* Whether the victim, which has private jobs, has neither forked nor unforked since the last time
 * that it was looked at here. */
static bool is_stuck(worker *w, const worker *victim)
{
    par_sight now = {.victim = victim->index,
                     .fuel = blz__load(&victim->ring.own.fuel, RELAXED),
                     .tail = blz__load(&victim->ring.own.tail, RELAXED),
                     .looked_at = blz__load(&victim->looked_at, RELAXED)};
    bool same = w->sight.victim == now.victim && w->sight.fuel == now.fuel &&
                w->sight.tail == now.tail && w->sight.looked_at == now.looked_at;

    w->sight = now;
    return same;
}

static bool has_private(const worker *victim)
{
    return has_private_job(victim) || blz__load(&victim->tasks.kept, RELAXED);
}

bool blz__par_force_any(worker *w, par_found *f)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool), start = blz__rng_below(&w->rng, count);
    bool from_all = w->is_watcher || !pool->sleep.asymmetric_fences || !blz__par_is_calm(pool);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = start + i;
        worker *victim = &pool->workers[at < count ? at : at - count];

        if (victim == w || !has_private(victim) || !(is_stuck(w, victim) || from_all))
            continue;
        f->job = has_private_job(victim) ? force(w, victim, NULL, 0) : NULL;
        f->block = f->job ? NULL : blz__par_force_block(w, victim, NULL);
        if (f->job || f->block)
            return true;
    }
    return false;
}

task_block *blz__par_force_tasks(worker *w, const blz_par_scope *scope)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool);
    task_block *block = NULL;

    for (uint32_t i = 0; i < count && !block; i++)
        if (i != w->index)
            block = blz__par_force_block(w, &pool->workers[i], scope);
    return block;
}

/* ---- watching ---- */

/*
 * `has_watcher` is 1 from before somebody announces that it is about to sleep, or from when it is,
 * and until it is awake again. Who reads that it is 1 knows that somebody looks for what it does
 * now, later: the watcher, when its time is over; or, if it was woken and has found a job before
 * that, one of those who have relied on it. If they sleep it wakes them, as whoever finds a job.
 */
static bool start_watching(worker *w)
{
    uint32_t none = 0;

    if (!w->watching)
        w->watching = !blz__load(&w->pool->has_watcher, RELAXED) &&
                      blz__cas(&w->pool->has_watcher, &none, 1u, RELAXED, RELAXED);
    return w->watching;
}

void blz__par_watch_end(worker *w)
{
    if (!w->watching)
        return;
    w->watching = false;
    blz__store(&w->pool->has_watcher, 0u, RELAXED);
    blz__par_sleep_post(&w->pool->sleep, 0); /* who is about to sleep, relying on it, looks again */
}

void blz__par_watch_prepare(worker *w)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool);

    for (uint32_t i = 0; i < count; i++) /* before the fence: see spawn in tasks.c */
        if (i != w->index)
            blz__par_ask_for_tasks(&pool->workers[i]);
    w->is_unheard = false;
    if (pool->sleep.asymmetric_fences && blz__par_is_calm(pool))
        start_watching(w);
}

/* How long the worker may sleep, in ticks; 0: until it is woken. */
static uint64_t time_to_sleep(worker *w)
{
    blz_pool *pool = w->pool;
    uint64_t now = blz__clock_ticks(&pool->clock);
    uint64_t calm_until = blz__load(&pool->calm_until, RELAXED);

    if ((int64_t)(calm_until - now) > 0 && (w->watching || w->is_unheard))
        return calm_until - now + 2 * pool->solo_ticks; /* what began in it may be solo as long */
    if (!w->watching && !w->is_unheard)
        return 0;
    w->watches += w->watches < PAR_MAX_DOUBLED;
    return pool->calm_ticks << w->watches;
}

int64_t blz__par_watch_begin(worker *w)
{
    blz_pool *pool = w->pool;
    uint64_t ticks = pool->sleep.asymmetric_fences ? time_to_sleep(w) : 0;

    if (ticks == 0 || !start_watching(w))
        return 0;
    return blz__clock_ns() + (int64_t)((double)ticks * pool->clock.ns_per_tick);
}

void blz__par_stop_looking(worker *w)
{
    blz__par_watch_end(w);
    blz__par_sleep_end_looking(&w->pool->sleep);
}
