/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pool know of each other. */
#ifndef BLZ_PAR_POOL_H
#define BLZ_PAR_POOL_H

#include "par/deque.h"
#include "par/help.h"
#include "par/inject.h"
#include "par/latch.h"
#include "par/sleep.h"
#include "par/tasks.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/thread_locals.h"
#include "system/thread.h"
#include "tuning.h"

/* par.fuel, written by a thief that found nothing: publish a job at the next fork. */
enum { PAR_FUEL_ASKED = -1 };

/* So many forks of a computation that others may see are looked at one by one: coarse ones are few.
 */
enum { PAR_FIRST_LOOKS = 16 };

/* Calms, and the watcher's sleeps, become twice as long so many times. */
enum { PAR_MAX_DOUBLED = 3 };

/* Written by the worker alone. */
#define par_count(field) blz__stat_store(&(field), blz__stat_load(&(field)) + 1)

typedef struct broadcast_node {
    struct broadcast_node *next;
    blz_par_fn fn;
    void *arg;
    uint32_t number;
} broadcast_node;

typedef struct broadcast_list {
    blz__cache_aligned blz__lock lock;
    broadcast_node *first, *last;
    uint32_t last_number; /* written under the lock */
} broadcast_list;

typedef struct worker_stats {
    uint64_t injected, published, stolen, sleeps, vain;
} worker_stats;

/* What a worker saw of another one when it looked for private jobs. */
typedef struct par_sight {
    uint32_t victim;
    int32_t fuel;
    int64_t tail;
    uint64_t looked_at;
} par_sight;

typedef struct worker {
    ring ring; /* first: its beginning is the blz_par of the computation */
    blz_pool *pool;
    uint32_t index;
    int32_t burst;       /* forks between two looks at the clock */
    uint32_t looks;      /* in this computation, up to a few */
    uint64_t looked_at;  /* ticks of the last look; others read it */
    uint64_t solo_until; /* ticks; until then the computation is kept from others */
    int64_t shown; /* index of the last job for which somebody was woken, or of a first fork */
    blz__rng rng;
    blz__thread thread;
    blz_par *outer;           /* of a guest: the context that its thread has in another pool */
    struct worker *sleeps_as; /* the context as which its thread may be asleep, in another pool */
    uint32_t entries;         /* of a guest: how often its thread has entered; 0: nobody's place */
    uint32_t ended;           /* a latch: the pool is being freed */
    uint32_t isolated;        /* in how many regions its thread is, one in the other */
    uint32_t depth; /* in how many waits in which its thread takes anything; helpers read it */
    par_taken *taken;
    bool computes;   /* of a guest: within blz_pool_run, or a scope that it began outside of it */
    bool is_solo;    /* solo_until is not over, or has not been looked at; others read it */
    bool is_excused; /* solo, and longer than it was to */
    bool is_fresh;   /* solo, and it has not forked yet */
    bool fruitless;  /* the last time it was woken there was nothing to do */
    bool is_watcher; /* it was not woken: it is the watcher, whose time is over (force.c) */
    bool watching;   /* has_watcher is because of this one */
    bool is_unheard; /* what it asked for the last time may have been missed */
    uint8_t watches; /* how often it has been the watcher in a row, up to a few */
    uint8_t yields;  /* since the last one that found something to do */
    par_sight sight;
    worker_stats stats;
    uint32_t broadcast_number; /* of the last one that it has called */
    task_state tasks;
} worker;

struct blz_pool {
    worker *workers;     /* then the guests */
    blz_par_job **slots; /* of all of them */
    uint32_t nr_workers, nr_guests, ring_size;
    uint32_t *fork_word; /* reads 0 in a forked child */
    blz_par_wait_mode waiting;
    uint32_t spins, rounds; /* before a worker sleeps: without yields, and in all */
    void (*on_thread_start)(unsigned index, void *arg);
    void (*on_thread_stop)(unsigned index, void *arg);
    void *hook_arg;
    blz_pool *older; /* of the default pool: that of the parent process */
    uint64_t solo_ticks, look_ticks, small_ticks, calm_ticks;
    blz__clock clock;
    blz_allocator allocator;
    sleep_state sleep;
    inject_queue injected;
    task_pile pile;
    broadcast_list broadcasts;
    uint32_t nr_wakers;  /* threads of other pools that are to wake one of this */
    uint32_t nr_away;    /* its workers and guests that sleep in another pool */
    blz__lock away_lock; /* of that, and of sleeps_as */
    uint32_t nr_started; /* also a futex: blz_pool_new waits for all */
    uint32_t has_watcher;
    uint32_t vain;                          /* jobs in a row that were shown in vain, up to a few */
    blz__cache_aligned uint64_t calm_until; /* ticks; jobs were too small to share lately */
};

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

/* The workers, and the guests up to the last place that was ever taken: all that may have jobs. */
static inline uint32_t pool_nr_in_use(const blz_pool *pool)
{
    /* Relaxed: a guest moves it before it posts a job or counts itself as asleep, and whoever looks
     * for the one or the other is ordered with that by sleep.h. */
    return blz__load(&pool->sleep.nr_sleepers, RELAXED);
}

/* Nothing but its looking around takes that back. */
static inline void blz__par_ask_for_tasks(worker *victim)
{
    if (!blz__load(&victim->tasks.is_asked, RELAXED))
        blz__store(&victim->tasks.is_asked, 1u, RELAXED);
}

/* The job of that worker is about to be shown to others, or taken by one. */
static inline void job_prepare(blz_par_job *job, const worker *owner)
{
    job->latch = LATCH_UNSET;
    job->owner = owner->index;
    job->claim = PAR_UNCLAIMED;
    /* Not less than when it was forked: that region goes on at least until the unfork. */
    job->isolated = blz__load(&owner->isolated, RELAXED);
}

/* A panic. */
#define PAR_CHILD_WAITS "a forked child waits for what a thread of its parent has taken"

static inline bool pool_is_forked(const blz_pool *pool)
{
    return blz_unlikely(blz__load(pool->fork_word, RELAXED) == 0);
}

/* ---- options.c ---- */

/* All of them said. 0; -EINVAL. */
int blz__par_options_resolve(blz_pool_options *options, const blz_pool_options *given);

/* ---- enter.c ---- */

/* The context that this thread has in the pool, or NULL. */
blz_par *blz__par_context_in(const blz_pool *pool);

/* As what this thread works while it waits for another pool; NULL: it just waits. */
worker *blz__par_serving(void);

/* Whether this thread is within something that it took from another one, in any pool, or in a
 * computation that was begun there: who waits for that may do nothing else meanwhile. */
bool blz__par_is_awaited(void);

/* Begins the computation, in its turn; its `finish` is the last that is done. [any thread] */
void blz__par_start(blz_pool *pool, root *r);

/* ---- away.c ---- */

/* Whether its pool has this thread for what comes, or somebody there may wait for what it does. */
bool blz__par_is_needed(const worker *w);

/*
 * This thread, which has announced that it will sleep as that one, is woken for what comes to the
 * other pools that need it, too; what has come there before is seen afterwards.
 */
void blz__par_away(worker *sleeps_as);

/* No more. */
void blz__par_back(void);

/* Wakes those whom this pool needs for what has been posted there. [any thread] */
void blz__par_call_away(blz_pool *pool);

/* ---- worker.c ---- */

void blz__par_worker_main(void *worker);

/* Runs whatever there is until the latch is set. */
void blz__par_work_until(worker *w, uint32_t *latch);

/* How hard to look: what is shown; asking for more; taking what is not shown, too. */
typedef enum par_effort { PAR_LOOK, PAR_ASK, PAR_FORCE } par_effort;

/* Something to do: one of these. */
typedef struct par_found {
    blz_par_job *job;
    task_block *block;
    root *root;
} par_found;

void blz__par_run_found(worker *w, const par_found *f);

/* The victim publishes at its next fork, or offers at its next spawn. False: it may not have heard
 * that, but for the spawn. */
bool blz__par_ask(worker *victim);

/* One round of waiting without work: true while it is too early to sleep. */
bool blz__par_idle_round(const blz_pool *pool, uint32_t *rounds);

/* ---- help.c ---- */

/* Whether there is room for something foreign on top of what this thread does. */
bool blz__par_may_take(const worker *w);

/* This thread is in so many isolated regions from now on, in all of its contexts. */
void blz__par_isolate(uint32_t regions);

/* A worker, or NULL: a thread of no pool, waits for a computation that it handed to this pool. */
void blz__par_wait_outside(worker *w, const blz_pool *pool, uint32_t *latch);

/* Waits until blocks of tasks that others have are done. [who began the scope] */
void blz__par_wait_for_scope(worker *w, blz_par_scope *scope);

/* Waits until the job, which another worker has, is done. [owner of the job] */
void blz__par_wait_for(worker *w, blz_par_job *job, blz_par_wait_mode waiting);

/* ---- force.c ---- */

/* What was shown to others lately was too small for that. */
bool blz__par_is_calm(const blz_pool *pool);

/*
 * Takes a job or tasks that another worker shows to nobody. False: there are none. In a calm only
 * the watcher does. [worker, about to sleep]
 */
bool blz__par_force_any(worker *w, par_found *f);

/* Tasks of that scope; NULL: none. [helper, about to sleep] */
task_block *blz__par_force_tasks(worker *w, const blz_par_scope *scope);

/* The same of that one, if it belongs to what that claims there. [helper, about to sleep] */
blz_par_job *blz__par_force_part(worker *w, worker *victim, const uint64_t *claim_at,
                                 uint64_t claim);

/* The worker is about to announce that it will sleep; in a calm it watches from now on. [worker] */
void blz__par_watch_prepare(worker *w);

/*
 * Whether the worker, which has announced it and has found nothing, must look again: when that is,
 * or 0 if it need not, or another one does. [worker]
 */
int64_t blz__par_watch_begin(worker *w);
void blz__par_watch_end(worker *w);

/* It has found something, or need not look any longer. [worker, looking for work] */
void blz__par_stop_looking(worker *w);

/* ---- broadcast.c ---- */

/* Whether there is a function that all workers call and this one has not. [worker] */
bool blz__par_has_broadcast(const worker *w);

/* Calls the next one of them, if there is one. [worker, looking for work] */
bool blz__par_run_broadcast(worker *w);

/* ---- join.c ---- */

/* The worker begins a computation: one from outside, or a stolen job. */
void blz__par_fresh_fuel(worker *w, bool is_root);

/*
 * Keeps forks from others for a while, if the pool is calm and somebody looks for them later.
 * False: it is not so. [worker]
 */
bool blz__par_go_solo(worker *w, uint64_t now);
void blz__par_end_solo(worker *w);

/* That computation from outside is over. */
void blz__par_end_root(worker *w);

/* Looks whether others need work, and makes new fuel. */
void blz__par_look(worker *w);

/* A job that was shown to others was worth it, or not. [any worker] */
void blz__par_judge(blz_pool *pool, uint64_t now, bool worth_it);

#endif
