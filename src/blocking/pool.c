/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking pool of a runtime: three lanes, made when the first job comes, so that a runtime
 * without blocking work pays nothing. It hangs on the runtime as a service (sched/sched.h): closed
 * when the last task has ended, freed with the runtime.
 *
 * The limits: the program's jobs get as many threads as options.max_blocking_threads says, because
 * jobs that wait for each other need them all. File operations keep a disk busy with far fewer, and
 * name lookups are few at a time or hang together; both get theirs on top, so that no lane can take
 * another one's.
 */
#include "blocking/lane.h"

#include "sched/sched.h"

#include <blitz/error.h>
#include <stdio.h>

enum { MAX_FILES_THREADS = 128, MAX_DNS_THREADS = 32 };

typedef struct pool {
    blz__service service;
    lane_config config;
    lane lanes[BLZ__NR_LANES];
} pool;

/* ---- life ---- */

static int pool_close(blz__service *service, int64_t deadline_ns)
{
    pool *p = blz_container_of(service, pool, service);
    int rc = 0;

    for (int i = 0; i < BLZ__NR_LANES; i++)
        blz__lane_close(&p->lanes[i]);
    for (int i = 0; i < BLZ__NR_LANES; i++)
        if (!blz__lane_wait(&p->lanes[i], deadline_ns))
            rc = -ETIMEDOUT;
    return rc;
}

static void pool_destroy(blz__service *service)
{
    pool *p = blz_container_of(service, pool, service);

    blz__rt_free(p->config.rt, p, sizeof *p, _Alignof(pool));
}

static bool pool_is_mine(const blz__service *service)
{
    return blz__lane_is_mine(&((const pool *)service)->config); /* the service is its beginning */
}

static bool pool_is_brisk(const blz__service *service)
{
    const pool *p = (const pool *)service;
    bool brisk = false;

    for (int i = 0; i < BLZ__NR_LANES && !brisk; i++)
        brisk = blz__lane_is_brisk(&p->lanes[i]);
    return brisk;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void pool_init(pool *p, blz_rt *rt)
{
    const blz_options *options = blz__rt_options(rt);
    uint32_t most = options->max_blocking_threads;

    p->service = (blz__service){pool_close, pool_destroy, pool_is_mine, pool_is_brisk};
    p->config = (lane_config){.rt = rt,
                              .eager = options->workers,
                              .keep_alive_ns = options->blocking_keep_alive_ns,
                              .stack_size = options->stack_size};
    snprintf(p->config.thread_name, sizeof p->config.thread_name, "%.8s-block", options->name);
    blz__lane_init(&p->lanes[BLZ__LANE_USER], &p->config, most);
    blz__lane_init(&p->lanes[BLZ__LANE_FILES], &p->config, min_u32(most, MAX_FILES_THREADS));
    blz__lane_init(&p->lanes[BLZ__LANE_DNS], &p->config, min_u32(most, MAX_DNS_THREADS));
}

static pool *pool_of(blz__service *service)
{
    return service ? blz_container_of(service, pool, service) : NULL;
}

/* Makes the pool; somebody else may be faster. */
static BLZ_NOINLINE int make_pool(blz_rt *rt, pool **out)
{
    pool *mine = blz__rt_alloc(rt, sizeof *mine, _Alignof(pool));

    if (!mine)
        return -ENOMEM;
    blz__plain_write(&mine->config);
    pool_init(mine, rt);
    *out = pool_of(blz__rt_set_blocking(rt, &mine->service));
    if (*out != mine)
        pool_destroy(&mine->service);
    return *out ? 0 : -ESHUTDOWN;
}

/* ---- jobs ---- */

int blz__blocking_submit(blz_rt *rt, uint32_t which, blz__job *job)
{
    pool *p;
    int rc;

    if (!rt)
        return -ENXIO; /* blz_wait, on a thread that has none */
    if (blz__rt_is_forked(rt))
        return -EOWNERDEAD;
    p = pool_of(blz__rt_blocking(rt));
    if (blz_unlikely(!p)) {
        rc = make_pool(rt, &p);
        if (rc < 0)
            return rc;
    }
    blz__plain_read(&p->config);
    job->lane = which;
    return blz__lane_submit(&p->lanes[which], job);
}

bool blz__blocking_withdraw(blz_rt *rt, blz__job *job)
{
    return blz__lane_withdraw(&pool_of(blz__rt_blocking(rt))->lanes[job->lane], job);
}

int blz__blocking_door(blz_rt **rt)
{
    blz_rt *current = blz_rt_current();

    if (!*rt)
        *rt = current;
    if (!*rt)
        return -ENXIO;
    if (blz__rt_is_forked(*rt))
        return -EOWNERDEAD;
    if (*rt == current && blz__sched_current_cx())
        return 0;
    return blz__rt_is_open(*rt) ? 0 : -ESHUTDOWN;
}

/* ---- statistics ---- */

/* The locks are held for a moment each; the sums are of slightly different moments. */
void blz__blocking_count(const blz_rt *rt, blz__blocking_counts *out)
{
    pool *p = pool_of(blz__rt_blocking(rt));

    *out = (blz__blocking_counts){0};
    if (!p || blz__rt_is_forked(rt)) /* in a child, a lock may be held for ever */
        return;
    for (int i = 0; i < BLZ__NR_LANES; i++) {
        lane *l = &p->lanes[i];

        blz__lock_acquire(&l->lock);
        out->threads += l->threads;
        out->idle += l->nr_idle;
        out->queued += l->queued;
        out->jobs += l->taken;
        out->started += l->started;
        blz__lock_release(&l->lock);
    }
}
