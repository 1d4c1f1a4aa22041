/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the blocking pool, and tasks that await them. */
#ifndef BLOCKING_JOBS_H
#define BLOCKING_JOBS_H

#include "harness.h"

#include <sched.h>

/* ---- functions ---- */

static inline int64_t double_it(void *arg)
{
    return 2 * *(int64_t *)arg;
}

/* Counts its calls, in an atomic. */
static inline int64_t count_up(void *arg)
{
    return (int64_t)__atomic_add_fetch((uint64_t *)arg, 1, __ATOMIC_ACQ_REL);
}

/* Says that it has begun, and waits until it may end. */
struct halt {
    struct event begun, go_on;
    struct event destroyed;
    int64_t value;
};

#define HALT_INIT(v)                            \
    {                                           \
        EVENT_INIT, EVENT_INIT, EVENT_INIT, (v) \
    }

static inline int64_t halt(void *arg)
{
    struct halt *h = arg;

    event_post(&h->begun);
    event_wait(&h->go_on, 1);
    return h->value;
}

static inline void halt_destroy(void *arg)
{
    event_post(&((struct halt *)arg)->destroyed);
}

/* Waits until as many have come. */
struct meeting {
    struct event arrived;
    int64_t members;
};

static inline int64_t meet(void *arg)
{
    struct meeting *m = arg;

    event_post(&m->arrived);
    event_wait(&m->arrived, m->members);
    return 1;
}

/* ---- tasks ---- */

struct awaits {
    BLZ_FRAME;
    int64_t (*fn)(void *arg);
    void *arg;
    struct event *done; /* posted at the end, if there is one */
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(awaits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking(&self->op, self->fn, self->arg));
    if (self->done)
        event_post(self->done);
    BLZ_END(self->rc);
}

/* ---- waiting for the pool ---- */

static inline blz_stats stats_of(blz_rt *rt)
{
    blz_stats stats;

    blz_rt_stats(rt, &stats);
    return stats;
}

/* Until as many jobs are in the queues. */
static inline void wait_for_queued(blz_rt *rt, uint64_t count)
{
    while (stats_of(rt).blocking_queued != count)
        sched_yield();
}

/* Until as many threads are idle. */
static inline void wait_for_idle(blz_rt *rt, uint64_t count)
{
    while (stats_of(rt).blocking_idle != count)
        sched_yield();
}

#endif
