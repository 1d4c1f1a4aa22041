/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: producers and consumers, and two tasks that take turns. */
#include "bench.h"

BLZ_CHANNEL(u64s, uint64_t)

enum { CAPACITY = 1024, MAX_TASKS = 4 };

/* ---- producers and consumers ---- */

struct produce {
    BLZ_FRAME;
    u64s_sender tx;
    uint64_t n, i;
    int64_t rc;
    u64s_op op;
};

BLZ_ASYNC(produce)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->n; self->i++) {
        BLZ_AWAIT(self->rc, u64s_send(&self->op, &self->tx, self->i));
        bench_check(self->rc, "send");
    }
    u64s_sender_drop(&self->tx);
    BLZ_END(0);
}

/* To an unbounded channel: never waits, and yields after each 1,024 messages. */
struct pour {
    BLZ_FRAME;
    u64s_sender tx;
    uint64_t n, i;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(pour)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->n; self->i++) {
        bench_check(u64s_try_send(&self->tx, self->i), "send");
        if (self->i % CAPACITY == CAPACITY - 1)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    u64s_sender_drop(&self->tx);
    BLZ_END(0);
}

struct consume {
    BLZ_FRAME;
    u64s_receiver rx;
    uint64_t count, value;
    int64_t rc;
    u64s_op op;
};

BLZ_ASYNC(consume)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, u64s_recv(&self->op, &self->rx, &self->value));
        if (self->rc < 0)
            break;
        self->count++;
    }
    u64s_receiver_drop(&self->rx);
    BLZ_END((int64_t)self->count);
}

struct stream {
    BLZ_FRAME;
    struct run *run;
    size_t capacity;
    unsigned producers, consumers, i;
    u64s_sender tx;
    u64s_receiver rx;
    blz_handle handles[MAX_TASKS];
    int64_t rc, count;
    struct consume consume;
    blz_handle_join_op join;
};

static void start_producers(struct stream *s)
{
    uint64_t n = s->run->n / s->producers;

    for (unsigned i = 0; i < s->producers; i++) {
        u64s_sender tx = u64s_sender_clone(&s->tx);
        bench_check(s->capacity == BLZ_UNBOUNDED ? BLZ_SPAWN(pour, .tx = tx, .n = n)
                                                 : BLZ_SPAWN(produce, .tx = tx, .n = n),
                    "spawn");
    }
    u64s_sender_drop(&s->tx);
}

static void start_consumers(struct stream *s)
{
    for (unsigned i = 0; i < s->consumers; i++)
        bench_check(BLZ_SPAWN_JOIN(&s->handles[i], consume, .rx = u64s_receiver_clone(&s->rx)),
                    "spawn");
    u64s_receiver_drop(&s->rx);
}

/* Without consumers of their own, the measuring task is the one. */
BLZ_ASYNC(stream)
{
    BLZ_BEGIN;
    bench_check(u64s_new(&self->tx, &self->rx, self->capacity), "channel");
    bench_start(self->run);
    start_producers(self);
    if (self->consumers == 0) {
        BLZ_CALL(self->count, self->consume, consume, .rx = self->rx);
    } else {
        start_consumers(self);
        for (self->i = 0; self->i < self->consumers; self->i++) {
            BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
            self->count += self->handles[self->i].result;
        }
    }
    bench_stop(self->run);
    bench_check(self->count == (int64_t)(self->run->n / self->producers * self->producers) ? 0
                                                                                           : -EIO,
                "count");
    BLZ_END(0);
}

static void mpsc_1_1(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, stream, .run = run, .capacity = CAPACITY, .producers = 1),
                "mpsc_1_1");
}

static void mpsc_4_1(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, stream, .run = run, .capacity = CAPACITY, .producers = 4),
                "mpsc_4_1");
}

static void mpsc_unbounded_1_1(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, stream, .run = run, .capacity = BLZ_UNBOUNDED,
                             .producers = 1),
                "mpsc_unbounded_1_1");
}

static void mpmc_4_4(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, stream, .run = run, .capacity = CAPACITY, .producers = 4,
                             .consumers = 4),
                "mpmc_4_4");
}

/* ---- taking turns ---- */

struct answer {
    BLZ_FRAME;
    u64s_receiver rx;
    u64s_sender tx;
    uint64_t value;
    int64_t rc;
    u64s_op op;
};

BLZ_ASYNC(answer)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, u64s_recv(&self->op, &self->rx, &self->value));
        if (self->rc < 0)
            break;
        BLZ_AWAIT(self->rc, u64s_send(&self->op, &self->tx, self->value + 1));
        bench_check(self->rc, "send");
    }
    u64s_receiver_drop(&self->rx);
    u64s_sender_drop(&self->tx);
    BLZ_END(0);
}

struct ask {
    BLZ_FRAME;
    struct run *run;
    u64s_sender tx, their_tx;
    u64s_receiver rx, their_rx;
    uint64_t i, value;
    blz_handle handle;
    int64_t rc;
    u64s_op op;
    blz_handle_join_op join;
};

BLZ_ASYNC(ask)
{
    BLZ_BEGIN;
    bench_check(u64s_new(&self->tx, &self->their_rx, 1), "channel");
    bench_check(u64s_new(&self->their_tx, &self->rx, 1), "channel");
    bench_check(BLZ_SPAWN_JOIN(&self->handle, answer, .rx = self->their_rx, .tx = self->their_tx),
                "spawn");
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        BLZ_AWAIT(self->rc, u64s_send(&self->op, &self->tx, self->i));
        bench_check(self->rc, "send");
        BLZ_AWAIT(self->rc, u64s_recv(&self->op, &self->rx, &self->value));
        bench_check(self->value == self->i + 1 ? self->rc : -EIO, "recv");
    }
    bench_stop(self->run);
    u64s_sender_drop(&self->tx);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    u64s_receiver_drop(&self->rx);
    BLZ_END(0);
}

static void pingpong_mpsc(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, ask, .run = run), "pingpong_mpsc");
}

const struct bench channel_benches[] = {
    {"mpsc_1_1", 3000000, mpsc_1_1, false},
    {"mpsc_4_1", 3000000, mpsc_4_1, false},
    {"mpsc_unbounded_1_1", 3000000, mpsc_unbounded_1_1, false},
    {"mpmc_4_4", 2000000, mpmc_4_4, false},
    {"pingpong_mpsc", 300000, pingpong_mpsc, false},
    {NULL, 0, NULL, false},
};
