/* SPDX-License-Identifier: Apache-2.0 */
/* One sender, four receivers: every message to all of them, and the latest value to all of them. */
#include "bench.h"

#include <stdio.h>

enum { RECEIVERS = 4, ROUND = 512, CAPACITY = 1024 };

/* ---- broadcast: rounds of 512 messages, each acknowledged by all ---- */

BLZ_BROADCAST(numbers, uint64_t)

BLZ_CHANNEL(acks, uint8_t)

struct listener {
    BLZ_FRAME;
    numbers_receiver rx;
    acks_sender done;
    uint64_t rounds, i, value;
    int64_t rc;
    numbers_op op;
    acks_op ack;
};

BLZ_ASYNC(listener)
{
    BLZ_BEGIN;
    for (; self->rounds > 0; self->rounds--) {
        for (self->i = 0; self->i < ROUND; self->i++) {
            BLZ_AWAIT(self->rc, numbers_recv(&self->op, &self->rx, &self->value));
            bench_check(self->rc, "receive");
        }
        BLZ_AWAIT(self->rc, acks_send(&self->ack, &self->done, 1));
        bench_check(self->rc, "acknowledge");
    }
    numbers_receiver_drop(&self->rx);
    acks_sender_drop(&self->done);
    BLZ_END(0);
}

struct speaker {
    BLZ_FRAME;
    struct run *run;
    uint64_t rounds;
    numbers_sender tx;
    acks_sender done;
    acks_receiver acks;
    acks_op op;
    uint8_t ack;
    int i;
    int64_t rc;
};

BLZ_ASYNC(speaker)
{
    BLZ_BEGIN;
    self->rounds = self->run->n / ROUND;
    bench_check(numbers_new(&self->tx, NULL, CAPACITY), "new");
    bench_check(acks_new(&self->done, &self->acks, 8), "new");
    for (int i = 0; i < RECEIVERS; i++)
        bench_check(BLZ_SPAWN(listener, .rx = numbers_subscribe(&self->tx),
                              .done = acks_sender_clone(&self->done), .rounds = self->rounds),
                    "spawn");
    bench_start(self->run);
    for (; self->rounds > 0; self->rounds--) {
        for (uint64_t i = 0; i < ROUND; i++)
            bench_check(numbers_send(&self->tx, i), "send");
        for (self->i = 0; self->i < RECEIVERS; self->i++) {
            BLZ_AWAIT(self->rc, acks_recv(&self->op, &self->acks, &self->ack));
            bench_check(self->rc, "acknowledged");
        }
    }
    bench_stop(self->run);
    numbers_sender_drop(&self->tx);
    acks_sender_drop(&self->done);
    acks_receiver_drop(&self->acks);
    BLZ_END(0);
}

static void broadcast_1_4(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, speaker, .run = run), "broadcast_1_4");
}

/* ---- watch: the sender yields after each value ---- */

BLZ_WATCH(level, uint64_t)

struct watcher {
    BLZ_FRAME;
    level_receiver rx;
    uint64_t value;
    int64_t rc, seen;
    level_op op;
};

BLZ_ASYNC(watcher)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, level_changed(&self->op, &self->rx));
        if (self->rc < 0)
            break;
        level_get(&self->rx, &self->value);
        self->seen++;
    }
    level_receiver_drop(&self->rx);
    BLZ_END(self->seen);
}

struct setter {
    BLZ_FRAME;
    struct run *run;
    level_sender tx;
    blz_handle handles[RECEIVERS];
    uint64_t i;
    int64_t rc, seen;
    blz_future yield;
    blz_handle_join_op join;
};

BLZ_ASYNC(setter)
{
    BLZ_BEGIN;
    bench_check(level_new(&self->tx, NULL, 0), "new");
    for (int i = 0; i < RECEIVERS; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->handles[i], watcher, .rx = level_subscribe(&self->tx)),
                    "spawn");
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        bench_check(level_send(&self->tx, self->i), "send");
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    level_sender_drop(&self->tx);
    for (self->i = 0; self->i < RECEIVERS; self->i++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
        self->seen += self->handles[self->i].result;
    }
    bench_stop(self->run);
    snprintf(self->run->extra, sizeof self->run->extra, " seen_per_rx=%.2f",
             (double)self->seen / RECEIVERS / (double)self->run->n);
    BLZ_END(0);
}

static void watch_1_4(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, setter, .run = run), "watch_1_4");
}

const struct bench broadcast_benches[] = {
    {"broadcast_1_4", 512000, broadcast_1_4, false},
    {"watch_1_4", 300000, watch_1_4, false},
    {NULL, 0, NULL, false},
};
