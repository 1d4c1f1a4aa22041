/* SPDX-License-Identifier: Apache-2.0 */
/* Oneshots: alone, and between two tasks that are made for one exchange. */
#include "bench.h"

/* ---- in one task: create, send, receive ---- */

struct alone {
    BLZ_FRAME;
    struct run *run;
    uint64_t i;
    blz_oneshot channel;
    blz_oneshot_op op;
    int64_t rc, value;
};

BLZ_ASYNC(alone)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        blz_oneshot_init(&self->channel);
        bench_check(blz_oneshot_send(&self->channel, (int64_t)self->i), "send");
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->op, &self->channel, &self->value));
        bench_check(self->rc == 0 && self->value == (int64_t)self->i ? 0 : -EIO, "receive");
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void oneshot(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, alone, .run = run), "oneshot");
}

/* ---- pairs of tasks: the first makes two oneshots and the second ---- */

enum { ROUND = 1000 };

struct pong {
    BLZ_FRAME;
    blz_oneshot *there, *back;
    blz_oneshot_op op;
    int64_t rc;
};

BLZ_ASYNC(pong)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->op, self->there, NULL));
    bench_check(self->rc, "there");
    bench_check(blz_oneshot_send(self->back, 0), "back");
    BLZ_END(0);
}

struct ping {
    BLZ_FRAME;
    uint64_t *left;
    blz_oneshot *last;
    blz_oneshot there, back;
    blz_oneshot_op op;
    int64_t rc;
};

BLZ_ASYNC(ping)
{
    BLZ_BEGIN;
    blz_oneshot_init(&self->there);
    blz_oneshot_init(&self->back);
    bench_check(BLZ_SPAWN(pong, .there = &self->there, .back = &self->back), "spawn");
    bench_check(blz_oneshot_send(&self->there, 0), "send");
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->op, &self->back, NULL));
    bench_check(self->rc, "receive");
    if (__atomic_fetch_sub(self->left, 1, __ATOMIC_ACQ_REL) == 1)
        bench_check(blz_oneshot_send(self->last, 0), "last");
    BLZ_END(0);
}

struct pings {
    BLZ_FRAME;
    struct run *run;
    uint64_t round, left;
    blz_oneshot last;
    blz_oneshot_op op;
    int64_t rc;
};

BLZ_ASYNC(pings)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->round = 0; self->round < self->run->n / ROUND; self->round++) {
        self->left = ROUND;
        blz_oneshot_init(&self->last);
        for (int i = 0; i < ROUND; i++)
            bench_check(BLZ_SPAWN(ping, .left = &self->left, .last = &self->last), "spawn");
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->op, &self->last, NULL));
    }
    bench_stop(self->run);
    BLZ_END(0);
}

static void pingpong_oneshot(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, pings, .run = run), "pingpong_oneshot");
}

const struct bench oneshot_benches[] = {
    {"oneshot", 2000000, oneshot, false},
    {"pingpong_oneshot", 200000, pingpong_oneshot, false},
    {NULL, 0, NULL, false},
};
