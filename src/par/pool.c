/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a pool. Its threads are started when it is made, and all have begun when that
 * returns: a pool that exists is ready. Freeing it sets each worker's latch `ended`, for which it
 * waits whenever it has nothing else to do, and joins the threads.
 */
#include "par/pool.h"

#include <errno.h>
#include <string.h>

/*
 * What waking a thread costs, more or less; how often a busy worker looks around; jobs that were
 * not worth a steal; for how long computations are kept from others after such jobs.
 */
static const double solo_ns = 10000, look_ns = 2000, small_ns = 5000, calm_ns = 1e6;

enum { DEFAULT_RING_SIZE = 4096, MAX_RING_SIZE = 1 << 24, DEFAULT_GUESTS = 8 };

/* ---- memory ---- */

static size_t slots_size(const blz_pool *pool)
{
    return sizeof *pool->slots * pool->ring_size * blz_pool_indices(pool);
}

static void free_memory(blz_pool *pool)
{
    blz_allocator a = pool->allocator;
    size_t count = blz_pool_indices(pool);

    if (pool->workers)
        blz__free(&a, pool->workers, sizeof *pool->workers * count, BLZ_CACHE_LINE);
    if (pool->sleep.sleepers)
        blz__free(&a, pool->sleep.sleepers, sizeof *pool->sleep.sleepers * count, BLZ_CACHE_LINE);
    if (pool->slots)
        blz__free(&a, pool->slots, slots_size(pool), BLZ_CACHE_LINE);
    blz__fork_word_free(pool->fork_word);
    blz__free(&a, pool, sizeof *pool, BLZ_CACHE_LINE);
}

static void init_worker(blz_pool *pool, uint32_t index)
{
    worker *w = &pool->workers[index];

    memset(w, 0, sizeof *w);
    ring_init(&w->ring, pool->slots + (size_t)index * pool->ring_size, pool->ring_size, 0);
    w->pool = pool;
    w->index = index;
    w->burst = 1;
    w->woke_for = -1;
    blz__rng_init(&w->rng, index + 1);
    pool->sleep.sleepers[index].word = SLEEP_RUNNING;
}

static bool allocate(blz_pool *pool)
{
    const blz_allocator *a = &pool->allocator;
    uint32_t count = blz_pool_indices(pool);

    pool->workers = blz__alloc(a, sizeof *pool->workers * count, BLZ_CACHE_LINE);
    pool->sleep.sleepers = blz__alloc(a, sizeof *pool->sleep.sleepers * count, BLZ_CACHE_LINE);
    pool->slots = blz__alloc(a, slots_size(pool), BLZ_CACHE_LINE);
    pool->fork_word = blz__fork_word_new();
    if (!pool->workers || !pool->sleep.sleepers || !pool->slots || !pool->fork_word)
        return false;
    memset(pool->slots, 0, slots_size(pool));
    for (uint32_t i = 0; i < count; i++)
        init_worker(pool, i);
    return true;
}

/* ---- threads ---- */

static void end_threads(blz_pool *pool, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (latch_set(&pool->workers[i].ended))
            blz__par_sleep_wake(&pool->sleep, i);
    for (uint32_t i = 0; i < count; i++)
        blz__thread_join(pool->workers[i].thread);
}

static int start_threads(blz_pool *pool, const blz_pool_options *options)
{
    const char *name = options->name ? options->name : "blz-par";
    uint32_t started;

    for (uint32_t i = 0; i < pool->nr_workers; i++) {
        worker *w = &pool->workers[i];
        int rc = blz__thread_start(&w->thread, blz__par_worker_main, w, options->stack_size, name);
        if (rc < 0) {
            end_threads(pool, i);
            return rc;
        }
    }
    /* acquire: pairs with the release in blz__par_worker_main */
    while ((started = blz__load(&pool->nr_started, ACQUIRE)) < pool->nr_workers)
        blz__futex_wait(&pool->nr_started, started);
    return 0;
}

/* ---- new and free ---- */

static bool are_valid(const blz_pool_options *o)
{
    return o->threads <= BLZ_POOL_MAX_THREADS && o->guests <= BLZ_POOL_MAX_THREADS &&
           o->threads + o->guests <= BLZ_POOL_MAX_THREADS && o->ring_size <= MAX_RING_SIZE &&
           (o->ring_size & (o->ring_size - 1)) == 0 && o->waiting <= BLZ_PAR_WAIT_BLOCK;
}

static void init_pool(blz_pool *pool, const blz_pool_options *options, blz_allocator allocator)
{
    unsigned cpus = options->threads ? options->threads : blz__cpu_count();
    unsigned guests = options->guests ? options->guests : DEFAULT_GUESTS;
    unsigned most = BLZ_POOL_MAX_THREADS - guests;

    memset(pool, 0, sizeof *pool);
    pool->allocator = allocator;
    pool->nr_workers = cpus < most ? cpus : most;
    pool->nr_guests = guests;
    pool->ring_size = options->ring_size ? options->ring_size : DEFAULT_RING_SIZE;
    pool->waiting = options->waiting ? options->waiting : BLZ_PAR_WAIT_LEAPFROG;
    pool->sleep.nr_sleepers = pool->nr_workers; /* and guests, as they come */
    pool->sleep.asymmetric_fences = blz__fence_asymmetric_init();
    blz__par_inject_init(&pool->injected);
    blz__clock_init(&pool->clock);
    pool->solo_ticks = (uint64_t)(solo_ns / pool->clock.ns_per_tick);
    pool->look_ticks = (uint64_t)(look_ns / pool->clock.ns_per_tick);
    pool->small_ticks = (uint64_t)(small_ns / pool->clock.ns_per_tick);
    pool->calm_ticks = (uint64_t)(calm_ns / pool->clock.ns_per_tick);
    pool->calm_until = blz__clock_ticks(&pool->clock);
}

int blz_pool_new(blz_pool **out, const blz_pool_options *options)
{
    static const blz_pool_options defaults;
    const blz_pool_options *o = options ? options : &defaults;
    blz_allocator allocator = o->allocator ? *o->allocator : blz__system_allocator;
    blz_pool *pool;
    int rc = -ENOMEM;

    if (!are_valid(o))
        return -EINVAL;
    pool = blz__alloc(&allocator, sizeof *pool, BLZ_CACHE_LINE);
    if (!pool)
        return -ENOMEM;
    init_pool(pool, o, allocator);
    if (allocate(pool))
        rc = start_threads(pool, o);
    if (rc < 0) {
        free_memory(pool);
        return rc;
    }
    *out = pool;
    return 0;
}

static bool has_guests(const blz_pool *pool)
{
    for (uint32_t i = pool->nr_workers; i < pool_nr_in_use(pool); i++)
        if (blz__load(&pool->workers[i].entries, ACQUIRE)) /* pairs with blz_pool_leave */
            return true;
    return false;
}

int blz_pool_free(blz_pool *pool)
{
    if (!pool)
        return 0;
    if (pool_is_forked(pool))
        return -EOWNERDEAD;
    if (blz__par_context_in(pool))
        return -EDEADLK;
    if (has_guests(pool))
        return -EBUSY;
    end_threads(pool, pool->nr_workers);
    free_memory(pool);
    return 0;
}

unsigned blz_pool_threads(const blz_pool *pool)
{
    return pool->nr_workers;
}

unsigned blz_pool_indices(const blz_pool *pool)
{
    return pool->nr_workers + pool->nr_guests;
}

unsigned blz_par_index(const blz_par *par)
{
    return worker_of(par)->index;
}

blz_pool *blz_par_pool(const blz_par *par)
{
    return worker_of(par)->pool;
}
