/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a pool do: look for jobs, run them, wait for more.
 *
 * A worker without a computation takes any job: from the rings of the others, beginning at a
 * random one, then from those that came from outside. If there is none it spins for about two
 * microseconds, yields a few times, announces that it is about to sleep, looks once more, and
 * sleeps (sleep.h). In a calm it does not yield: what it could find is too small (join.c). If it
 * was woken in vain it goes back to sleep without either.
 *
 * A worker that waits for a job which another has taken may do the same, in a pool that is made so.
 * What it takes then is foreign to what it waits for, and one deeper. How else it may wait is in
 * help.c.
 */
#include "par/pool.h"

#include "observe/trace.h"
#include "system/futex.h"
#include "system/thread.h"

/* So many yields that found nothing to do, and it yields to other threads. */
enum { VAIN_YIELDS = 16 };

/* ---- running ---- */

static void run_stolen(worker *w, blz_par_job *job)
{
    blz_pool *pool = w->pool;
    uint32_t owner = job->owner, isolated = w->isolated;
    task_frame frame;
    par_taken claim;
    uint64_t began, now;

    par_count(w->stats.stolen);
    blz__par_fresh_fuel(w, false);
    began = w->looked_at;
    blz__par_frame_begin(w, &frame, false);
    blz__par_claim(w, &claim, &job->claim, &job->latch);
    blz__par_isolate(job->isolated);
    job->run(&w->ring.own, job);
    blz__par_isolate(isolated);
    blz__par_unclaim(w, &claim);
    if (latch_set(&job->latch)) /* the job is gone now */
        blz__par_sleep_wake(&pool->sleep, owner);
    now = blz__clock_ticks(&pool->clock);
    blz__par_judge(pool, now, now - began >= pool->small_ticks);
    blz__par_frame_end(w, &frame);
}

static void run_root(worker *w, root *r)
{
    uint32_t isolated = w->isolated;
    task_frame frame;

    par_count(w->stats.injected);
    blz__par_fresh_fuel(w, true);
    blz__par_frame_begin(w, &frame, !r->is_awaited);
    blz__par_isolate(r->isolated);
    r->fn(&w->ring.own, r->arg);
    blz__par_isolate(isolated);
    blz__par_end_root(w);
    r->finish(r);
    blz__par_frame_end(w, &frame);
}

/* ---- finding ---- */

/* The victim publishes at its next fork, if it is not solo. */
bool blz__par_ask(worker *victim)
{
    blz_par *par = &victim->ring.own;
    int32_t fuel = blz__load(&par->fuel, RELAXED);

    blz__par_ask_for_tasks(victim);
    if (blz__load(&par->enough, RELAXED) != INT64_MAX)
        blz__store(&par->enough, INT64_MAX, RELAXED);
    if (fuel != PAR_FUEL_ASKED)
        blz__store(&par->fuel, (int32_t)PAR_FUEL_ASKED, RELAXED);
    return fuel <= 0 && !blz__load(&victim->is_solo, RELAXED);
}

static blz_par_job *steal_from(worker *victim)
{
    blz_par_job *job;
    ring_steal_result result;

    while ((result = ring_steal(&victim->ring, &job)) == RING_LOST)
        blz__spin_hint();
    return result == RING_TAKEN ? job : NULL;
}

static blz_par_job *steal_from_any(worker *w, bool asking)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool), start = blz__rng_below(&w->rng, count);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = start + i;
        worker *victim = &pool->workers[at < count ? at : at - count];
        blz_par_job *job = victim == w ? NULL : steal_from(victim);

        if (job)
            return job;
        if (asking && victim != w && !blz__par_ask(victim))
            w->is_unheard = true;
    }
    return NULL;
}

/* Looks everywhere. */
static bool find(worker *w, par_effort how, par_found *f)
{
    *f = (par_found){.job = steal_from_any(w, how > PAR_LOOK)};
    if (!f->job)
        f->block = blz__par_take_offer(w, NULL);
    if (!f->job && !f->block)
        f->root = blz__par_inject_take(&w->pool->injected);
    if (f->job || f->block || f->root)
        return true;
    return how == PAR_FORCE && blz__par_force_any(w, f);
}

static void run_found(worker *w, const par_found *f)
{
    if (f->job)
        run_stolen(w, f->job);
    else if (f->block)
        blz__par_run_block(w, f->block);
    else
        run_root(w, f->root);
}

static BLZ_COLD void run_watched(worker *w, const par_found *f)
{
    uint32_t ticket = blz__trace_work(f->job     ? "stolen job"
                                      : f->block ? "scope tasks"
                                                 : "computation");

    run_found(w, f);
    blz__trace_work_done(ticket);
}

void blz__par_run_found(worker *w, const par_found *f)
{
    if (trace_watched(TRACE_WORKER))
        run_watched(w, f);
    else
        run_found(w, f);
}

/* Looks everywhere, and runs what it finds. [without work] */
static bool run_any(worker *w, par_effort how)
{
    par_found f;

    if (blz__par_run_broadcast(w))
        return true;
    if (!find(w, how, &f))
        return false;
    blz__par_stop_looking(w);
    w->fruitless = w->is_watcher = false;
    w->watches = 0;
    blz__par_run_found(w, &f);
    blz__par_sleep_begin_looking(&w->pool->sleep);
    return true;
}

/* ---- waiting ---- */

bool blz__par_idle_round(const blz_pool *pool, uint32_t *rounds)
{
    if (*rounds >= pool->rounds)
        return false;
    if ((*rounds)++ < pool->spins)
        blz__spin_hint();
    else
        blz__thread_yield();
    return true;
}

/* What this thread takes from now on is foreign to what it has taken before. */
static void go_deeper(void)
{
    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer) {
        worker *w = worker_of(par);
        blz__store(&w->depth, w->depth + 1, RELAXED); /* helpers see it with the jobs that follow */
    }
}

/* No longer so. A helper may be asleep that could not take what was shown before, meanwhile. */
static void come_up(void)
{
    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer) {
        worker *w = worker_of(par);
        blz__store(&w->depth, w->depth - 1, RELAXED);
        if (!w->taken || !ring_has_public(&w->ring))
            continue;
        blz__par_sleep_post(&w->pool->sleep, 0); /* its fence */
        blz__par_tell_helper(w, blz__load(&w->ring.top, RELAXED));
    }
}

static sleep_end sleep_traced(worker *w, uint32_t event, uint32_t *latch, int64_t deadline_ns)
{
    uint32_t ticket = 0;
    sleep_end end;

    if (trace_watched(TRACE_WORKER))
        ticket = blz__trace_work("asleep");
    end = blz__par_sleep(&w->pool->sleep, w->index, event, latch, deadline_ns);
    if (blz_unlikely(ticket != 0))
        blz__trace_work_done(ticket);
    return end;
}

static void go_to_sleep(worker *w, uint32_t event, uint32_t *latch)
{
    int64_t deadline_ns = blz__par_watch_begin(w);
    sleep_end end;

    if (w->fruitless && !w->is_watcher)
        par_count(w->stats.vain);
    end = sleep_traced(w, event, latch, deadline_ns);
    blz__par_watch_end(w);
    if (end == SLEEP_WOKEN)
        par_count(w->stats.sleeps);
    w->fruitless = end != SLEEP_NOT_AT_ALL;
    w->is_watcher = end == SLEEP_OVER;
}

/* ---- in several pools ---- */

static bool is_in_several(const worker *w)
{
    return blz_unlikely(w->outer || blz__thread_locals()->par != &w->ring.own);
}

/* Whether something has come to its pool from outside. */
static bool is_called(const worker *w)
{
    return blz__load(&w->pool->injected.len, RELAXED) > 0 || blz__par_has_broadcast(w);
}

/* Runs something in another pool that needs this thread (away.c), if it is called there. */
static bool serve_others(worker *w)
{
    worker *other = NULL;

    for (blz_par *par = blz__thread_locals()->par; par && !other; par = worker_of(par)->outer)
        if (worker_of(par) != w && blz__par_is_needed(worker_of(par)) && is_called(worker_of(par)))
            other = worker_of(par);
    if (!other)
        return false;
    blz__par_stop_looking(w); /* nobody relies on it meanwhile */
    w->fruitless = false;
    blz__par_sleep_begin_looking(&other->pool->sleep);
    run_any(other, PAR_LOOK);
    blz__par_stop_looking(other);
    blz__par_sleep_begin_looking(&w->pool->sleep);
    return true;
}

/* In all pools that need this thread. */
static bool run_anywhere(worker *w, par_effort how, const uint32_t *latch)
{
    bool found = run_any(w, how);

    if (is_in_several(w) && !latch_is_set(latch))
        found |= serve_others(w);
    return found;
}

/* ---- waiting for a latch ---- */

/* Or waits a little. In a calm what there is to find is too small to wait for it. */
static bool has_looked_enough(const blz_pool *pool, uint32_t *rounds)
{
    if (*rounds >= pool->spins && blz__par_is_calm(pool))
        return true;
    return !blz__par_idle_round(pool, rounds);
}

void blz__par_work_until(worker *w, uint32_t *latch)
{
    sleep_state *sleep = &w->pool->sleep;
    uint32_t event;
    uint32_t rounds = 0;

    go_deeper();
    blz__par_sleep_begin_looking(sleep);
    while (!latch_is_set(latch)) {
        if (run_anywhere(w, rounds % PAR_ASK_EVERY == 0 ? PAR_ASK : PAR_LOOK, latch)) {
            rounds = 0;
        } else if (w->fruitless || has_looked_enough(w->pool, &rounds)) {
            blz__par_watch_prepare(w);
            event = blz__par_sleep_announce(sleep);
            if (is_in_several(w))
                blz__par_away(w);
            if (!run_anywhere(w, PAR_FORCE, latch))
                go_to_sleep(w, event, latch);
        }
    }
    if (is_in_several(w))
        blz__par_back();
    blz__par_stop_looking(w);
    come_up();
}

/* The one that it waits for may have been woken on this processor. */
static void yield_in_vain(worker *w)
{
    if (++w->yields % VAIN_YIELDS == 0)
        blz__thread_yield();
    else
        blz__spin_hint();
}

bool blz_par_yield(blz_par *par)
{
    worker *w = worker_of(par);
    par_found f;

    w->is_fresh = false;
    w->is_excused = true;
    w->solo_until = w->looked_at; /* it waits for somebody: nothing is held back */
    blz__par_look(w);
    if (w->isolated || !blz__par_may_take(w) || !find(w, PAR_ASK, &f)) {
        yield_in_vain(w);
        return false;
    }
    w->yields = 0;
    go_deeper();
    blz__par_run_found(w, &f);
    come_up();
    return true;
}

/* ---- the thread ---- */

void blz__par_worker_main(void *arg)
{
    worker *w = arg;
    blz_pool *pool = w->pool;

    blz__thread_locals()->par = &w->ring.own;
    blz__thread_spread(w->index);
    if (pool->on_thread_start)
        pool->on_thread_start(w->index, pool->hook_arg);
    /* release: pairs with the acquire in blz_pool_new */
    if (blz__fetch_add(&pool->nr_started, 1u, RELEASE) + 1 == pool->nr_workers)
        blz__futex_wake(&pool->nr_started, 1);
    blz__par_work_until(w, &w->ended);
    if (pool->on_thread_stop)
        pool->on_thread_stop(w->index, pool->hook_arg);
    blz__thread_locals()->par = NULL;
}
