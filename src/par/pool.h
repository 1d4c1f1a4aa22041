/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pool know of each other. */
#ifndef BLZ_PAR_POOL_H
#define BLZ_PAR_POOL_H

#include "par/deque.h"
#include "par/inject.h"
#include "par/latch.h"
#include "par/sleep.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/sys.h"

enum { PAR_NOBODY = 0x7fffffff }; /* job->thief before anybody has taken it */

/* par.fuel, written by a thief that found nothing: publish a job at the next fork. */
enum { PAR_FUEL_ASKED = -1 };

typedef struct worker {
    ring ring; /* first: its beginning is the blz_par of the computation */
    blz_pool *pool;
    uint32_t index;
    int32_t burst;       /* forks between two looks at the clock */
    uint64_t looked_at;  /* ticks of the last look */
    uint64_t solo_until; /* ticks; until then the computation is kept from others */
    int64_t woke_for;    /* index of the last job for which somebody was woken */
    blz__rng rng;
    blz__thread thread;
    uint32_t ended; /* a latch: the pool is being freed */
    bool fruitless; /* the last time it was woken there was nothing to do */
} worker;

struct blz_pool {
    worker *workers;
    blz_par_job **slots; /* of all workers */
    uint32_t nr_workers, ring_size;
    blz_par_wait waiting;
    uint64_t solo_ticks, look_ticks, small_ticks, calm_ticks;
    blz__clock clock;
    blz_allocator allocator;
    sleep_state sleep;
    inject_queue injected;
    uint32_t nr_started;                    /* also a futex: blz_pool_new waits for all */
    blz__cache_aligned uint64_t calm_until; /* ticks; jobs were too small to share lately */
};

/* The context of the thread, if it belongs to a pool. */
extern _Thread_local blz_par *blz__par_current;

static inline worker *worker_of(const blz_par *par)
{
    return (worker *)(void *)(uintptr_t)par;
}

/*
 * Memory for the time of an algorithm, from the pool's allocator, aligned to cache lines; NULL if
 * there is none. It is given back with the same size, by any thread of the pool.
 */
static inline void *blz__par_alloc(blz_par *par, size_t size)
{
    return blz__alloc(&worker_of(par)->pool->allocator, size, BLZ_CACHE_LINE);
}

static inline void blz__par_free(blz_par *par, void *ptr, size_t size)
{
    if (ptr)
        blz__free(&worker_of(par)->pool->allocator, ptr, size, BLZ_CACHE_LINE);
}

/* ---- worker.c ---- */

void blz__par_worker_main(void *worker);

/* Waits until the job, which another worker has, is done. [owner of the job] */
void blz__par_wait_for(worker *w, blz_par_job *job);

/* Begins the computation, in its turn; its `finish` is the last that is done. [any thread] */
void blz__par_start(blz_pool *pool, root *r);

/* ---- join.c ---- */

/* The worker begins a computation: one from outside, or a stolen job. */
void blz__par_fresh_fuel(worker *w, bool is_root);

/* A job that was shown to others was worth it, or not. [any worker] */
void blz__par_judge(blz_pool *pool, uint64_t now, bool worth_it);

#endif
