/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: armed and cancelled, armed and expired; limits around futures. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The same delays as every peer: xorshift64. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#define SEED 88172645463325252u

static uint64_t wall_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- armed and cancelled ---- */

static void do_nothing(void *arg)
{
    (void)arg;
}

struct insert_cancel {
    BLZ_FRAME;
    struct run *run;
};

BLZ_ASYNC(insert_cancel)
{
    BLZ_BEGIN;
    struct run *run = self->run;
    blz_timer *timers = calloc(run->n, sizeof *timers);
    uint64_t random = SEED, inserted;
    int64_t base;

    bench_check(timers ? 0 : -ENOMEM, "timers");
    bench_start(run);
    base = blz_now();
    for (uint64_t i = 0; i < run->n; i++) {
        blz_timer_init(&timers[i], do_nothing, NULL);
        int64_t ms = (int64_t)(1000 + next_random(&random) % 59000);
        bench_check(blz_timer_start(&timers[i], base + ms * BLZ_MSEC, NULL), "start");
    }
    inserted = wall_now() - run->wall_start;
    for (uint64_t i = 0; i < run->n; i++)
        blz_timer_cancel(&timers[i]);
    bench_stop(run);
    snprintf(run->extra, sizeof run->extra, " insert_ns=%.1f cancel_ns=%.1f",
             (double)inserted / (double)run->n, (double)(run->wall_ns - inserted) / (double)run->n);
    free(timers);
    BLZ_END(0);
}

static void timer_insert_cancel(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, insert_cancel, .run = run), "timer_insert_cancel");
}

/* ---- armed and expired ---- */

struct sleeper {
    BLZ_FRAME;
    int64_t ns;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, self->ns));
    BLZ_END(self->rc);
}

struct insert_expire {
    BLZ_FRAME;
    struct run *run;
    blz_handle *handles;
    uint64_t i;
    int64_t rc;
    blz_handle_join_op join;
};

static void spawn_sleepers(struct insert_expire *self)
{
    uint64_t random = SEED;

    for (uint64_t i = 0; i < self->run->n; i++) {
        int64_t ms = (int64_t)(1 + next_random(&random) % 100);
        bench_check(BLZ_SPAWN_JOIN(&self->handles[i], sleeper, .ns = ms * BLZ_MSEC), "spawn");
    }
}

BLZ_ASYNC(insert_expire)
{
    BLZ_BEGIN;
    bench_start(self->run);
    self->handles = malloc(self->run->n * sizeof *self->handles);
    bench_check(self->handles ? 0 : -ENOMEM, "handles");
    spawn_sleepers(self);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
        bench_check(self->handles[self->i].result, "sleep");
    }
    free(self->handles);
    bench_stop(self->run);
    BLZ_END(0);
}

static void timer_insert_expire(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, insert_expire, .run = run), "timer_insert_expire");
}

/* ---- limits ---- */

struct limits {
    BLZ_FRAME;
    struct run *run;
    bool yields;
    uint64_t i;
    int64_t rc;
    blz_timeout limit;
    blz_future op;
};

BLZ_ASYNC(limits)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        if (self->yields)
            BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_SEC, blz_yield(&self->op)));
        else
            BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_SEC, blz_ready(&self->op, 0)));
        bench_check(self->rc, "limit");
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void timeout_ready(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, limits, .run = run), "timeout_ready");
}

static void timeout_yield(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, limits, .run = run, .yields = true), "timeout_yield");
}

const struct bench time_benches[] = {
    {"timer_insert_cancel", 100000, timer_insert_cancel, false},
    {"timer_insert_expire", 100000, timer_insert_expire, false},
    {"timeout_ready", 2000000, timeout_ready, false},
    {"timeout_yield", 1000000, timeout_yield, false},
    {NULL, 0, NULL, false},
};
