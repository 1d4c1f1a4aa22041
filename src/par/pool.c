/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a pool. Its threads are started when it is made, and all have begun when that
 * returns: a pool that exists is ready. Freeing it sets each worker's latch `ended`, for which it
 * waits whenever it has nothing else to do, and joins the threads.
 */
#include "par/pool.h"

#include "base/assert.h"
#include "system/fence.h"
#include "system/fork.h"
#include "system/futex.h"
#include "system/thread.h"
#include "tuning.h"

#include <blitz/error.h>
#include <string.h>

/*
 * What waking a thread costs, more or less; how often a busy worker looks around; jobs that were
 * not worth a steal; for how long computations are kept from others after such jobs.
 */
static const double solo_ns = 10000, look_ns = 2000, small_ns = 5000;
static const double calm_ns = PAR_CALM_NS;

/* Rounds of looking for work without and with a yield before a worker sleeps, by blz_pool_spin. */
static const struct spin {
    uint32_t spins, yields;
} spins_of[] = {{PAR_SPINS, PAR_YIELDS}, {0, 0}, {PAR_SPINS_LONG, PAR_YIELDS}};

/* ---- memory ---- */

static size_t slots_size(const blz_pool *pool)
{
    return sizeof *pool->slots * pool->ring_size * blz_pool_indices(pool);
}

static void free_memory(blz_pool *pool)
{
    blz_allocator a = pool->allocator;
    size_t count = blz_pool_indices(pool);

    blz__plain_write(&pool->sleep.sleepers); /* nobody is about to wake another */
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
    w->shown = -1;
    blz__rng_init(&w->rng, index + 1);
    blz__par_tasks_init(&w->tasks, pool->sleep.asymmetric_fences);
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
    uint32_t started;

    for (uint32_t i = 0; i < pool->nr_workers; i++) {
        worker *w = &pool->workers[i];
        int rc = blz__thread_start(&w->thread, blz__par_worker_main, w, options->stack_size,
                                   options->name);
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

static void init_pool(blz_pool *pool, const blz_pool_options *options)
{
    memset(pool, 0, sizeof *pool);
    pool->allocator = *options->allocator;
    pool->nr_workers = options->threads;
    pool->nr_guests = options->guests;
    pool->ring_size = options->ring_size;
    pool->waiting = options->waiting;
    pool->spins = spins_of[options->spin].spins;
    pool->rounds = pool->spins + spins_of[options->spin].yields;
    pool->on_thread_start = options->on_thread_start;
    pool->on_thread_stop = options->on_thread_stop;
    pool->hook_arg = options->hook_arg;
    pool->sleep.nr_sleepers = pool->nr_workers; /* and guests, as they come */
    pool->sleep.asymmetric_fences = blz__fence_asymmetric_init();
    blz__par_inject_init(&pool->injected);
    blz__clock_init(&pool->clock);
    pool->solo_ticks = (uint64_t)(solo_ns / pool->clock.ns_per_tick);
    pool->look_ticks = (uint64_t)(look_ns / pool->clock.ns_per_tick);
    pool->small_ticks = (uint64_t)(small_ns / pool->clock.ns_per_tick);
    pool->calm_ticks = (uint64_t)(calm_ns / pool->clock.ns_per_tick);
    pool->calm_until = blz__clock_ticks(&pool->clock) - pool->solo_ticks; /* long ago: force.c */
}

int blz_pool_new(blz_pool **out, const blz_pool_options *options)
{
    blz_pool_options o;
    blz_pool *pool;
    int rc = blz__par_options_resolve(&o, options);

    if (rc < 0)
        return rc;
    pool = blz__alloc(o.allocator, sizeof *pool, BLZ_CACHE_LINE);
    if (!pool)
        return -ENOMEM;
    init_pool(pool, &o);
    rc = -ENOMEM;
    if (allocate(pool))
        rc = start_threads(pool, &o);
    if (rc < 0) {
        free_memory(pool);
        return rc;
    }
    *out = pool;
    return 0;
}

/* A thread of this pool, whose computation in another one is over, may be here before the thread
 * there has gone through with waking it. */
static void wait_for_wakers(const blz_pool *pool)
{
    while (blz__load(&pool->nr_wakers, ACQUIRE)) /* pairs with the release in wake_waiter */
        blz__thread_yield();
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
    wait_for_wakers(pool);
    for (uint32_t i = 0; i < blz_pool_indices(pool); i++) {
        BLZ_ASSERT_VALID(blz__deque_check_idle(&pool->workers[i].ring));
        blz__par_tasks_free(&pool->workers[i]);
    }
    blz__par_pile_free(pool);
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
