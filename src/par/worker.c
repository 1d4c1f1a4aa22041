/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a pool do: look for jobs, run them, wait.
 *
 * A worker without a computation takes any job: from the rings of the others, beginning at a
 * random one, then from those that came from outside. If there is none it spins for about two
 * microseconds, yields a few times, announces that it is about to sleep, looks once more, and
 * sleeps (sleep.h). If it was woken in vain it goes back to sleep without the first two.
 *
 * A worker that waits for a job which another has taken does the same, takes only the jobs of that
 * other one (leapfrogging: they are parts of what it waits for, so its stack and its locks see
 * nothing that is foreign to them), or none. In the last two cases it is not among those whom a new
 * job wakes, since it might not be allowed to take it.
 *
 * Leapfrogging takes only what was forked by the awaited job or by jobs that belong to it: the ring
 * of the thief was empty when it took that job, since it was waiting or idle itself, and whoever
 * helps it leapfrogs in turn. If they stole instead, their rings would have jobs of others, too. So
 * a job of an isolated region says so, and isolates whoever takes it.
 *
 * To wait without taking a job is always possible, since jobs wait only for those that they have
 * forked. That is what a worker does when its stack is short.
 */
#include "par/pool.h"

#ifdef BLZ_MODEL
enum { ASK_EVERY = 1 };
#else
enum { ASK_EVERY = 32 };
#endif

_Thread_local blz_par *blz__par_current;

/* ---- running ---- */

static void run_stolen(worker *w, blz_par_job *job)
{
    blz_pool *pool = w->pool;
    uint32_t owner = job->owner, isolated = w->isolated;
    block_list frame, *saved;
    uint64_t began, now;

    blz__store(&job->thief, w->index, RELAXED);
    par_count(w->stats.stolen);
    blz__par_fresh_fuel(w, false);
    began = w->looked_at;
    blz__par_frame_begin(w, &frame, &saved);
    w->isolated = job->isolated;
    job->run(&w->ring.own, job);
    w->isolated = isolated;
    if (latch_set(&job->latch)) /* the job is gone now */
        blz__par_sleep_wake(&pool->sleep, owner);
    now = blz__clock_ticks(&pool->clock);
    blz__par_judge(pool, now, now - began >= pool->small_ticks);
    blz__par_frame_end(w, &frame, saved);
}

static void run_root(worker *w, root *r)
{
    par_count(w->stats.injected);
    blz__par_fresh_fuel(w, true);
    r->fn(&w->ring.own, r->arg);
    blz__par_end_root(w);
    r->finish(r);
    blz__par_run_base(w);
}

/* ---- finding ---- */

/* The victim publishes at its next fork. */
static void ask(worker *victim)
{
    blz_par *par = &victim->ring.own;

    if (blz__load(&par->enough, RELAXED) != INT64_MAX)
        blz__store(&par->enough, INT64_MAX, RELAXED);
    if (blz__load(&par->fuel, RELAXED) > 0)
        blz__store(&par->fuel, (int32_t)PAR_FUEL_ASKED, RELAXED);
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
        if (asking && victim != w)
            ask(victim);
    }
    return NULL;
}

typedef struct found {
    blz_par_job *job;
    task_block *block;
    root *root;
} found;

/* Looks everywhere. */
static bool find(worker *w, bool asking, found *f)
{
    *f = (found){.job = steal_from_any(w, asking)};
    if (!f->job)
        f->block = blz__par_take_offer(w, NULL);
    if (!f->job && !f->block)
        f->root = blz__par_inject_take(&w->pool->injected);
    return f->job || f->block || f->root;
}

static void run_found(worker *w, const found *f)
{
    if (f->job)
        run_stolen(w, f->job);
    else if (f->block)
        blz__par_run_block(w, f->block);
    else
        run_root(w, f->root);
}

/* Looks everywhere, and runs what it finds. [without work] */
static bool run_any(worker *w, bool asking)
{
    found f;

    if (blz__par_run_broadcast(w))
        return true;
    if (!find(w, asking, &f))
        return false;
    blz__par_sleep_end_looking(&w->pool->sleep);
    w->fruitless = false;
    run_found(w, &f);
    blz__par_sleep_begin_looking(&w->pool->sleep);
    return true;
}

bool blz_par_yield(blz_par *par)
{
    worker *w = worker_of(par);
    found f;

    blz__par_look(w);
    if (!find(w, true, &f)) {
        blz__spin_hint();
        return false;
    }
    run_found(w, &f);
    return true;
}

/* ---- waiting ---- */

/* One round of waiting without work: true while it is too early to sleep. */
static bool idle_round(const blz_pool *pool, uint32_t *rounds)
{
    if (*rounds >= pool->rounds)
        return false;
    if ((*rounds)++ < pool->spins)
        blz__spin_hint();
    else
        blz__thread_yield();
    return true;
}

/* Runs whatever there is until the latch is set. */
static void work_until(worker *w, uint32_t *latch)
{
    sleep_state *sleep = &w->pool->sleep;
    uint32_t event;
    uint32_t rounds = 0;

    blz__par_sleep_begin_looking(sleep);
    while (!latch_is_set(latch)) {
        if (run_any(w, rounds % ASK_EVERY == 0)) {
            rounds = 0;
        } else if (w->fruitless || !idle_round(w->pool, &rounds)) {
            event = blz__par_sleep_announce(sleep);
            if (run_any(w, true))
                continue;
            if (w->fruitless)
                par_count(w->stats.vain);
            w->fruitless = blz__par_sleep(sleep, w->index, event, latch);
            if (w->fruitless)
                par_count(w->stats.sleeps);
        }
    }
    blz__par_sleep_end_looking(sleep);
}

/* Helps the thief until the latch is set. */
static void leapfrog_until(worker *w, blz_par_job *awaited)
{
    uint32_t rounds = 0;

    while (!latch_is_set(&awaited->latch)) {
        uint32_t thief = blz__load(&awaited->thief, RELAXED);
        worker *victim = thief == PAR_NOBODY ? NULL : &w->pool->workers[thief];
        blz_par_job *job = victim ? steal_from(victim) : NULL;

        if (job) {
            run_stolen(w, job);
            rounds = 0;
            continue;
        }
        if (victim && rounds % ASK_EVERY == 0)
            ask(victim);
        if (!idle_round(w->pool, &rounds))
            latch_block(&awaited->latch);
    }
}

static void block_until(const blz_pool *pool, uint32_t *latch)
{
    uint32_t rounds = 0;

    while (!latch_is_set(latch))
        if (!idle_round(pool, &rounds))
            latch_block(latch);
}

/* ---- which way to wait ---- */

/* The stack of this thread; size 0: not known. */
static _Thread_local struct {
    uintptr_t low, size;
    bool looked;
} stack;

/* Whether there is stack for another job on top of this one: a quarter must be left. */
static BLZ_NOINLINE bool has_stack(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!stack.looked) {
        blz__thread_stack(&stack.low, &stack.size);
        stack.looked = true;
    }
    return here - stack.low >= stack.size / 4; /* below `low` we are on a stack of the user's own */
}

static blz_par_wait way_to_wait(const worker *w, blz_par_wait wish)
{
    blz_par_wait way = wish == BLZ_PAR_WAIT_DEFAULT ? w->pool->waiting : wish;

    if (!has_stack())
        return BLZ_PAR_WAIT_BLOCK;
    return way == BLZ_PAR_WAIT_STEAL && w->isolated ? BLZ_PAR_WAIT_LEAPFROG : way;
}

void blz_par_isolated(blz_par *par, blz_par_fn fn, void *arg)
{
    worker_of(par)->isolated++;
    fn(par, arg);
    worker_of(par)->isolated--;
}

void blz__par_wait_for(worker *w, blz_par_job *job, blz_par_wait waiting)
{
    switch (way_to_wait(w, waiting)) {
    case BLZ_PAR_WAIT_STEAL:
        work_until(w, &job->latch);
        break;
    case BLZ_PAR_WAIT_DEFAULT:
    case BLZ_PAR_WAIT_LEAPFROG:
        leapfrog_until(w, job);
        break;
    case BLZ_PAR_WAIT_BLOCK:
        block_until(w->pool, &job->latch);
        break;
    }
}

/* Helps with tasks of the scope, and those who have some, until all are done. */
static void help_until(worker *w, blz_par_scope *scope)
{
    uint32_t rounds = 0;

    while (!latch_is_set(&scope->latch)) {
        task_block *block = blz__par_take_offer(w, scope);
        uint32_t thief = blz__load(&scope->thief, RELAXED);
        worker *victim = thief == PAR_NOBODY ? NULL : &w->pool->workers[thief];
        blz_par_job *job = block || !victim ? NULL : steal_from(victim);

        if (block || job) {
            if (block)
                blz__par_run_block(w, block);
            else
                run_stolen(w, job);
            rounds = 0;
            continue;
        }
        if (victim && rounds % ASK_EVERY == 0)
            ask(victim);
        if (!idle_round(w->pool, &rounds))
            latch_block(&scope->latch);
    }
}

void blz__par_wait_for_scope(worker *w, blz_par_scope *scope)
{
    switch (way_to_wait(w, BLZ_PAR_WAIT_DEFAULT)) {
    case BLZ_PAR_WAIT_STEAL:
        work_until(w, &scope->latch);
        break;
    case BLZ_PAR_WAIT_DEFAULT:
    case BLZ_PAR_WAIT_LEAPFROG:
        help_until(w, scope);
        break;
    case BLZ_PAR_WAIT_BLOCK:
        block_until(w->pool, &scope->latch);
        break;
    }
}

void blz__par_wait_outside(worker *w, const blz_pool *pool, uint32_t *latch)
{
    if (w && !w->isolated && way_to_wait(w, BLZ_PAR_WAIT_DEFAULT) != BLZ_PAR_WAIT_BLOCK)
        work_until(w, latch);
    else
        block_until(pool, latch);
}

void blz__par_wait_for_all(worker *w, const blz_pool *pool, uint32_t *latch)
{
    if (w)
        work_until(w, latch);
    else
        block_until(pool, latch);
}

/* ---- the thread ---- */

void blz__par_worker_main(void *arg)
{
    worker *w = arg;
    blz_pool *pool = w->pool;

    blz__par_current = &w->ring.own;
    if (pool->on_thread_start)
        pool->on_thread_start(pool->hook_arg, w->index);
    /* release: pairs with the acquire in blz_pool_new */
    if (blz__fetch_add(&pool->nr_started, 1u, RELEASE) + 1 == pool->nr_workers)
        blz__futex_wake(&pool->nr_started, 1);
    work_until(w, &w->ended);
    if (pool->on_thread_stop)
        pool->on_thread_stop(pool->hook_arg, w->index);
    blz__par_current = NULL;
}
