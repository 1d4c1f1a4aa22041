/* SPDX-License-Identifier: Apache-2.0 */
/* Spawning and joining: what a task costs from birth to join. */
#include "bench.h"

#include <stdlib.h>

/* Every round of these has as many tasks. */
enum { ROUND = 10000, CHAIN = 1000 };

struct noop {
    BLZ_FRAME;
};

BLZ_ASYNC(noop)
{
    BLZ_BEGIN;
    BLZ_END(0);
}

static blz_handle *new_handles(uint64_t n)
{
    blz_handle *handles = malloc(n * sizeof *handles);

    bench_check(handles ? 0 : -ENOMEM, "handles");
    return handles;
}

/* ---- from inside: keep all handles, then await them in order ---- */

struct join_in {
    BLZ_FRAME;
    struct run *run;
    blz_handle *handles;
    uint64_t i;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(join_in)
{
    BLZ_BEGIN;
    bench_start(self->run);
    self->handles = new_handles(self->run->n);
    for (uint64_t i = 0; i < self->run->n; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->handles[i], noop), "spawn");
    for (self->i = 0; self->i < self->run->n; self->i++)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
    free(self->handles);
    bench_stop(self->run);
    BLZ_END(0);
}

static void spawn_join_in(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, join_in, .run = run), "spawn_join_in");
}

/* ---- from outside ---- */

static void spawn_and_wait(struct run *run, blz_handle *handles, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        bench_check(BLZ_SPAWN_ON(run->rt, &handles[i], noop), "spawn");
    for (uint64_t i = 0; i < n; i++)
        bench_check(blz_handle_wait(&handles[i]), "wait");
}

static void spawn_join_out(struct run *run)
{
    blz_handle *handles;

    bench_check(BLZ_BLOCK_ON(run->rt, noop), "first task");
    bench_start(run);
    handles = new_handles(run->n);
    spawn_and_wait(run, handles, run->n);
    free(handles);
    bench_stop(run);
}

static void spawn_many_remote_idle(struct run *run)
{
    blz_handle *handles = new_handles(ROUND);

    bench_check(BLZ_BLOCK_ON(run->rt, noop), "first task");
    bench_start(run);
    for (uint64_t round = 0; round < run->n / ROUND; round++)
        spawn_and_wait(run, handles, ROUND);
    bench_stop(run);
    free(handles);
}

/* ---- the same while all workers have something to do ---- */

struct busy {
    BLZ_FRAME;
    const bool *stop;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(busy)
{
    BLZ_BEGIN;
    while (!__atomic_load_n(self->stop, __ATOMIC_RELAXED))
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    BLZ_END(0);
}

static void spawn_many_remote_busy(struct run *run)
{
    unsigned nr_busy = 2 * run->threads;
    blz_handle *tasks = new_handles(nr_busy);
    bool stop = false;

    for (unsigned i = 0; i < nr_busy; i++)
        bench_check(BLZ_SPAWN_ON(run->rt, &tasks[i], busy, .stop = &stop), "spawn");
    spawn_many_remote_idle(run);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < nr_busy; i++)
        bench_check(blz_handle_wait(&tasks[i]), "wait");
    free(tasks);
}

/* ---- one at a time ---- */

struct await_seq {
    BLZ_FRAME;
    struct run *run;
    uint64_t i;
    blz_handle handle;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(await_seq)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        bench_check(BLZ_SPAWN_JOIN(&self->handle, noop), "spawn");
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void spawn_await_seq(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, await_seq, .run = run), "spawn_await_seq");
}

/* ---- rounds of detached tasks; the last one of a round says so ---- */

struct count_down {
    BLZ_FRAME;
    uint64_t *left;
    blz_oneshot *last;
};

BLZ_ASYNC(count_down)
{
    BLZ_BEGIN;
    if (__atomic_fetch_sub(self->left, 1, __ATOMIC_ACQ_REL) == 1)
        blz_oneshot_send(self->last, 0);
    BLZ_END(0);
}

struct many_local {
    BLZ_FRAME;
    struct run *run;
    uint64_t round, left;
    blz_oneshot last;
    blz_oneshot_op wait;
    int64_t rc;
};

BLZ_ASYNC(many_local)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->round = 0; self->round < self->run->n / ROUND; self->round++) {
        self->left = ROUND;
        blz_oneshot_init(&self->last);
        for (int i = 0; i < ROUND; i++)
            bench_check(BLZ_SPAWN(count_down, .left = &self->left, .last = &self->last), "spawn");
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->last, NULL));
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void spawn_many_local(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, many_local, .run = run), "spawn_many_local");
}

/* ---- each task spawns the next ---- */

struct chain {
    BLZ_FRAME;
    int left;
    blz_oneshot *end;
};

BLZ_ASYNC(chain)
{
    BLZ_BEGIN;
    if (self->left == 0)
        blz_oneshot_send(self->end, 0);
    else
        bench_check(BLZ_SPAWN(chain, .left = self->left - 1, .end = self->end), "spawn");
    BLZ_END(0);
}

struct chains {
    BLZ_FRAME;
    struct run *run;
    uint64_t i;
    blz_oneshot end;
    blz_oneshot_op wait;
    int64_t rc;
};

BLZ_ASYNC(chains)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n / CHAIN; self->i++) {
        blz_oneshot_init(&self->end);
        bench_check(BLZ_SPAWN(chain, .left = CHAIN, .end = &self->end), "spawn");
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->end, NULL));
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void chained_spawn(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, chains, .run = run), "chained_spawn");
}

const struct bench spawn_benches[] = {
    {"spawn_join_in", 1000000, spawn_join_in, false},
    {"spawn_join_out", 1000000, spawn_join_out, false},
    {"spawn_await_seq", 300000, spawn_await_seq, false},
    {"spawn_many_local", 1000000, spawn_many_local, false},
    {"spawn_many_remote_idle", 500000, spawn_many_remote_idle, false},
    {"spawn_many_remote_busy", 500000, spawn_many_remote_busy, false},
    {"chained_spawn", 1000000, chained_spawn, false},
    {NULL, 0, NULL, false},
};
