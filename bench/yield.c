/* SPDX-License-Identifier: Apache-2.0 */
/* Yielding, and two tasks that wake each other. */
#include "bench.h"

#include <stdlib.h>

struct yielder {
    BLZ_FRAME;
    uint64_t left;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(yielder)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--)
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    BLZ_END(0);
}

struct yielders {
    BLZ_FRAME;
    struct run *run;
    uint64_t tasks, i;
    blz_handle *handles;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(yielders)
{
    BLZ_BEGIN;
    bench_start(self->run);
    self->handles = malloc(self->tasks * sizeof *self->handles);
    bench_check(self->handles ? 0 : -ENOMEM, "handles");
    for (uint64_t i = 0; i < self->tasks; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->handles[i], yielder, .left = self->run->n / self->tasks),
                    "spawn");
    for (self->i = 0; self->i < self->tasks; self->i++)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
    free(self->handles);
    bench_stop(self->run);
    BLZ_END(0);
}

static void yield_1(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, yielders, .run = run, .tasks = 1), "yield_1");
}

static void yield_1000(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, yielders, .run = run, .tasks = 1000), "yield_1000");
}

/* ---- ping-pong: a ball, and a waker for each player; no channel between them ---- */

struct table {
    uint64_t ball; /* whose turn it is: 0 or 1, or 2: the game is over */
    blz_waker wakers[2];
};

struct player {
    BLZ_FRAME;
    struct table *table;
    unsigned me;
    uint64_t left;
};

/* Hand-written: waits for the ball, passes it on. */
static blz_poll player_poll(blz_future *future, blz_cx *cx)
{
    struct player *p = (struct player *)(void *)future;
    struct table *table = p->table;

    if (!table->wakers[p->me].ops)
        table->wakers[p->me] = blz_cx_waker(cx);
    while (__atomic_load_n(&table->ball, __ATOMIC_ACQUIRE) == p->me) {
        if (p->left-- == 0) {
            __atomic_store_n(&table->ball, 2, __ATOMIC_RELEASE);
            blz_waker_wake_by_ref(&table->wakers[1 - p->me]);
            return blz_future_done(future, 0);
        }
        __atomic_store_n(&table->ball, 1 - p->me, __ATOMIC_RELEASE);
        blz_waker_wake_by_ref(&table->wakers[1 - p->me]);
    }
    if (__atomic_load_n(&table->ball, __ATOMIC_ACQUIRE) == 2)
        return blz_future_done(future, 0);
    return BLZ_PENDING;
}

static const blz_future_ops player_ops = {.name = "player", .poll = player_poll};

struct game {
    BLZ_FRAME;
    struct run *run;
    struct table table;
    blz_handle players[2];
    blz_future yield;
    int i;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(game)
{
    BLZ_BEGIN;
    self->table.ball = 3; /* nobody's */
    for (unsigned i = 0; i < 2; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->players[i], player, .table = &self->table, .me = i,
                                   .left = self->run->n / 2),
                    "spawn");
    while (!__atomic_load_n(&self->table.wakers[0].ops, __ATOMIC_ACQUIRE) ||
           !__atomic_load_n(&self->table.wakers[1].ops, __ATOMIC_ACQUIRE))
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    for (self->i = 0; self->i < 10; self->i++) /* until both wait */
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    bench_start(self->run);
    __atomic_store_n(&self->table.ball, 0, __ATOMIC_RELEASE);
    blz_waker_wake_by_ref(&self->table.wakers[0]);
    for (self->i = 0; self->i < 2; self->i++)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->players[self->i]));
    bench_stop(self->run);
    for (int i = 0; i < 2; i++)
        blz_waker_drop(&self->table.wakers[i]);
    BLZ_END(0);
}

static void pingpong_task(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, game, .run = run), "pingpong_task");
}

const struct bench yield_benches[] = {
    {"yield_1", 2000000, yield_1, false},
    {"yield_1000", 4000000, yield_1000, false},
    {"pingpong_task", 2000000, pingpong_task, false},
    {NULL, 0, NULL, false},
};
