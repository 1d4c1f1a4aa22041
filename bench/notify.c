/* SPDX-License-Identifier: Apache-2.0 */
/* Notify: a task that notifies itself, and two that notify each other. */
#include "bench.h"

struct notify_self {
    BLZ_FRAME;
    struct run *run;
    uint64_t left;
    int64_t rc;
    blz_notify notify;
    blz_notify_op wait;
};

BLZ_ASYNC(notify_self)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        blz_notify_one(&self->notify);
        BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, &self->notify));
    }
    bench_stop(self->run);
    BLZ_END(self->rc);
}

static void run_notify_self(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, notify_self, .run = run), "notify_self");
}

/* ---- one round trip ---- */

/*
 * What is shared lies apart from the frames that use it, as it would in a program. In one cache
 * line with them it costs more: an atomic operation waits for the stores around it.
 */
static struct {
    _Alignas(64) blz_notify ask;
    _Alignas(64) blz_notify answer;
} turns;

struct answers {
    BLZ_FRAME;
    uint64_t left;
    int64_t rc;
    blz_notify_op wait;
};

BLZ_ASYNC(answers)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, &turns.ask));
        blz_notify_one(&turns.answer);
    }
    BLZ_END(self->rc);
}

struct asks {
    BLZ_FRAME;
    struct run *run;
    uint64_t left;
    int64_t rc;
    blz_handle other;
    blz_handle_join_op join;
    blz_notify_op wait;
};

BLZ_ASYNC(asks)
{
    BLZ_BEGIN;
    bench_check(BLZ_SPAWN_JOIN(&self->other, answers, .left = self->run->n), "spawn");
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        blz_notify_one(&turns.ask);
        BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, &turns.answer));
    }
    bench_stop(self->run);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->other));
    BLZ_END(self->rc);
}

static void run_notify_pingpong(struct run *run)
{
    blz_notify_init(&turns.ask);
    blz_notify_init(&turns.answer);
    bench_check(BLZ_BLOCK_ON(run->rt, asks, .run = run), "notify_pingpong");
}

const struct bench notify_benches[] = {
    {"notify_self", 5000000, run_notify_self, false},
    {"notify_pingpong", 300000, run_notify_pingpong, false},
    {NULL, 0, NULL, false},
};
