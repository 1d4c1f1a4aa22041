/* SPDX-License-Identifier: Apache-2.0 */
/* Resident memory of a million parked tasks. One repetition in a process. */
#include "bench.h"

#include <stdio.h>

struct parked {
    BLZ_FRAME;
    uint64_t *started;
    blz_future pending;
    int64_t rc;
};

BLZ_ASYNC(parked)
{
    BLZ_BEGIN;
    __atomic_fetch_add(self->started, 1, __ATOMIC_RELAXED);
    BLZ_AWAIT(self->rc, blz_pending(&self->pending));
    BLZ_END(0);
}

struct parked_sleeper {
    BLZ_FRAME;
    uint64_t *started;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(parked_sleeper)
{
    BLZ_BEGIN;
    __atomic_fetch_add(self->started, 1, __ATOMIC_RELAXED);
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, BLZ_HOUR));
    BLZ_END(0);
}

struct park_many {
    BLZ_FRAME;
    struct run *run;
    bool asleep; /* in a sleep of an hour, or in nothing */
    uint64_t started, rss;
    int i;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(park_many)
{
    BLZ_BEGIN;
    self->rss = bench_rss();
    bench_start(self->run);
    for (uint64_t i = 0; i < self->run->n; i++)
        bench_check(self->asleep ? BLZ_SPAWN(parked_sleeper, .started = &self->started)
                                 : BLZ_SPAWN(parked, .started = &self->started),
                    "spawn");
    while (__atomic_load_n(&self->started, __ATOMIC_RELAXED) < self->run->n)
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    for (self->i = 0; self->i < 10; self->i++)
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    bench_stop(self->run);
    snprintf(self->run->extra, sizeof self->run->extra, " rss_per_task=%.1f",
             (double)(bench_rss() - self->rss) / (double)self->run->n);
    BLZ_END(0);
}

static void mem_idle_tasks(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, park_many, .run = run), "mem_idle_tasks");
}

static void mem_sleep_tasks(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, park_many, .run = run, .asleep = true), "mem_sleep_tasks");
}

const struct bench memory_benches[] = {
    {"mem_idle_tasks", 1000000, mem_idle_tasks, true},
    {"mem_sleep_tasks", 1000000, mem_sleep_tasks, true},
    {NULL, 0, NULL, false},
};
