/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors of a pool.
 *
 * A thread that is in a pool has a context there: a worker for its whole life, a guest from
 * blz_pool_enter to blz_pool_leave. It may be in several pools at a time, having entered one after
 * the other; its contexts make a list then, from the innermost outwards.
 *
 * A guest has a worker's place without a worker's thread: a ring, and a word to sleep on. Its place
 * keeps the ring from one guest to the next. It is empty in between, so a thief that looks there
 * finds nothing, and its indices go on, so a thief that has looked before takes nothing. Thieves
 * look at guests' places only up to the last one that was ever taken.
 *
 * A computation of a thread that is not in the pool is handed over (inject.h), and the thread
 * sleeps until it is done. A worker of another pool works there meanwhile: that pool might have
 * nobody else for what the computation asks of it in turn. No pool needs its guests, so one who is
 * a guest besides does not work as such; one who is only a guest works in the pool that it entered
 * last. But a guest that is in the middle of something that it has taken there works there: others
 * of that pool may wait for it, and what it would take elsewhere might need them. If that is so in
 * several pools it takes what comes to any of them (away.c). In a forked child the contexts in
 * pools of the parent are dead: their jobs are not the child's.
 */
#include "par/pool.h"

#include "base/panic.h"

#include <blitz/error.h>

blz_par *blz__par_context_in(const blz_pool *pool)
{
    blz_par *par = blz__thread_locals()->par;

    while (par && worker_of(par)->pool != pool)
        par = worker_of(par)->outer;
    return par;
}

/* ---- guests ---- */

/* Thieves look at this place from now on. */
static void use_place(blz_pool *pool, uint32_t index)
{
    uint32_t in_use = pool_nr_in_use(pool);

    while (in_use <= index &&
           !blz__cas(&pool->sleep.nr_sleepers, &in_use, index + 1, RELAXED, RELAXED))
        ;
}

static worker *take_place(blz_pool *pool)
{
    for (uint32_t i = pool->nr_workers; i < blz_pool_indices(pool); i++) {
        worker *w = &pool->workers[i];
        uint32_t entries = blz__load(&w->entries, RELAXED);

        /* acquire: pairs with the release in blz_pool_leave; the ring is as the last guest left
         * it */
        if (entries == 0 && blz__cas(&w->entries, &entries, 1u, ACQUIRE, RELAXED))
            return w;
    }
    return NULL;
}

/* By the thread that is in. */
static void change_entries(worker *w, uint32_t by)
{
    blz__store(&w->entries, blz__load(&w->entries, RELAXED) + by, RELAXED);
}

blz_par *blz_pool_enter(blz_pool *named)
{
    blz_pool *pool = named ? named : blz_pool_default();
    blz_par *here = blz__par_context_in(pool);
    worker *w;

    if (!pool || pool_is_forked(pool))
        return NULL;
    if (here) {
        change_entries(worker_of(here), 1);
        return here;
    }
    w = take_place(pool);
    if (!w)
        return NULL;
    use_place(pool, w->index);
    blz__plain_write(&w->outer);
    w->outer = blz__thread_locals()->par;
    blz__store(&w->isolated, w->outer ? worker_of(w->outer)->isolated : 0, RELAXED);
    /* As deep as its thread, which counts down in all contexts that it has then. */
    blz__store(&w->depth, w->outer ? worker_of(w->outer)->depth : 0, RELAXED);
    blz__thread_locals()->par = &w->ring.own;
    blz__par_fresh_fuel(w, false);
    return blz__thread_locals()->par;
}

/* Contexts are left in any order. */
static void forget(worker *w)
{
    blz_par **link = &blz__thread_locals()->par;

    while (*link && *link != &w->ring.own)
        link = &worker_of(*link)->outer;
    if (!*link)
        blz__panic("blz_pool_leave: this thread has not entered the pool");
    *link = w->outer;
    blz__plain_write(&w->outer);
    w->outer = NULL;
}

void blz_pool_leave(blz_par *par)
{
    worker *w = worker_of(par);
    uint32_t entries;

    if (!par)
        return;
    entries = blz__load(&w->entries, RELAXED);
    if (entries == 0)
        blz__panic("blz_pool_leave: left more often than entered");
    if (entries > 1 || w->index < w->pool->nr_workers) {
        change_entries(w, -1u);
        return;
    }
    if (par->tail != blz__load(&par->bottom, RELAXED))
        blz__panic("blz_pool_leave: between a fork and its unfork");
    if (w->tasks.innermost != &w->tasks.base.list)
        blz__panic("blz_pool_leave: in a scope");
    blz__par_run_base(w);
    forget(w);
    blz__store(&w->entries, 0u, RELEASE); /* pairs with the acquire in take_place */
}

/* ---- computations ---- */

static void run_here(blz_par *par, blz_par_fn fn, void *arg)
{
    worker *w = worker_of(par);
    bool is_root = par->tail == blz__load(&par->bottom, RELAXED), computes = w->computes;

    w->computes = true;
    if (is_root)
        blz__par_fresh_fuel(w, true); /* nothing of an outer one is held back */
    fn(par, arg);
    if (is_root)
        blz__par_end_root(w);
    w->computes = computes;
    blz__par_run_base(w);
}

void blz__par_start(blz_pool *pool, root *r)
{
    blz__par_inject_push(&pool->injected, r);
    blz__par_sleep_post(&pool->sleep, 1);
    blz__par_call_away(pool);
}

/* A computation that a thread waits for, perhaps a worker of another pool. */
struct awaited {
    root root;
    blz_pool *pool; /* of who waits, or NULL */
    uint32_t index;
};

static void wake_waiter(root *r)
{
    struct awaited *a = blz_container_of(r, struct awaited, root);
    blz_pool *pool = a->pool;
    uint32_t index = a->index;

    if (latch_set(&r->latch)) /* it is gone now, but for its pool */
        blz__par_sleep_wake(&pool->sleep, index);
    if (pool)
        blz__fetch_sub(&pool->nr_wakers, 1u, RELEASE); /* pairs with wait_for_wakers */
}

worker *blz__par_serving(void)
{
    worker *serving = NULL;

    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer) {
        worker *w = worker_of(par);
        bool is_worker = w->index < w->pool->nr_workers;
        bool is_awaited = w->tasks.frame != &w->tasks.base;

        /* What is to be done in a pool of the parent process is not done in a child. */
        if (!pool_is_forked(w->pool) && (is_worker || is_awaited || !serving))
            serving = w;
        if (is_awaited)
            break;
    }
    return serving;
}

/* Whether this worker has something that others may be waiting for. */
static bool has_taken(const worker *w)
{
    const task_frame *frame = w->tasks.frame;

    while (frame->is_root)
        frame = frame->outer;
    return frame != &w->tasks.base;
}

bool blz__par_is_awaited(void)
{
    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer)
        if (!pool_is_forked(worker_of(par)->pool) && has_taken(worker_of(par)))
            return true;
    return false;
}

static void run_there(blz_pool *pool, blz_par_fn fn, void *arg)
{
    worker *w = blz__par_serving();
    struct awaited a = {
        .root = {.fn = fn, .arg = arg, .finish = wake_waiter, .is_awaited = blz__par_is_awaited()}};

    if (w) {
        a.root.isolated = w->isolated;
        a.pool = w->pool;
        a.index = w->index;
        blz__fetch_add(&w->pool->nr_wakers, 1u, RELAXED); /* which is not freed before this ends */
    }
    blz__par_start(pool, &a.root);
    blz__par_wait_outside(w, pool, &a.root.latch);
}

int blz_pool_run(blz_pool *named, blz_par_fn fn, void *arg)
{
    blz_pool *pool = named ? named : blz_pool_default();
    blz_par *here = blz__par_context_in(pool);

    if (!pool)
        return -EAGAIN;
    if (pool_is_forked(pool))
        return -EOWNERDEAD;
    if (here)
        run_here(here, fn, arg);
    else
        run_there(pool, fn, arg);
    return 0;
}
