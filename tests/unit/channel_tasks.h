/* SPDX-License-Identifier: Apache-2.0 */
/* Channels of numbers, and tasks that send and receive one, for tests with an embedded runtime. */
#ifndef CHANNEL_TASKS_H
#define CHANNEL_TASKS_H

#include "harness.h"

BLZ_CHANNEL(nums, uint64_t)

/* ---- tasks ---- */

struct sends {
    BLZ_FRAME;
    nums_sender *tx;
    uint64_t value;
    int64_t rc;
    nums_op op;
};

BLZ_ASYNC(sends)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, nums_send(&self->op, self->tx, self->value));
    BLZ_END(self->rc);
}

/* Ends with the number, or a negative errno. */
struct receives {
    BLZ_FRAME;
    nums_receiver *rx;
    uint64_t value;
    int64_t rc;
    nums_op op;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, nums_recv(&self->op, self->rx, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : (int64_t)self->value);
}

struct reserves {
    BLZ_FRAME;
    nums_sender *tx;
    uint32_t count;
    blz_permit *permit;
    int64_t rc;
    blz_channel_op op;
};

BLZ_ASYNC(reserves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sender_reserve(&self->op, &self->tx->raw, self->permit, self->count));
    BLZ_END(self->rc);
}

/* ---- a channel, and the tasks of a test ---- */

enum { MAX_TASKS = 8 };

struct fixture {
    blz_rt *rt;
    nums_sender tx;
    nums_receiver rx;
    blz_handle tasks[MAX_TASKS];
    int count;
};

static inline void channel_new(struct fixture *f, size_t capacity)
{
    blz_channel_options options = {.capacity = capacity, .allocator = test_memory()};

    assert_int_equal(nums_new_with(&f->tx, &f->rx, &options), 0);
}

static inline struct fixture begin(size_t capacity)
{
    struct fixture f = {.rt = new_embedded_rt()};

    channel_new(&f, capacity);
    return f;
}

/* Starts a task and lets it go as far as it can; gives its number. */
#define START(f, ...)                                                                  \
    (assert_int_equal(BLZ_SPAWN_ON((f)->rt, &(f)->tasks[(f)->count], __VA_ARGS__), 0), \
     turn_all((f)->rt), (f)->count++)

static inline int start_send(struct fixture *f, uint64_t value)
{
    return START(f, sends, .tx = &f->tx, .value = value);
}

static inline int start_recv(struct fixture *f)
{
    return START(f, receives, .rx = &f->rx);
}

static inline int start_reserve(struct fixture *f, uint32_t count, blz_permit *permit)
{
    return START(f, reserves, .tx = &f->tx, .count = count, .permit = permit);
}

static inline bool is_done(struct fixture *f, int task)
{
    turn_all(f->rt);
    return blz_handle_done(&f->tasks[task]);
}

static inline int64_t result_of(struct fixture *f, int task)
{
    assert_true(is_done(f, task));
    assert_int_equal(blz_handle_wait(&f->tasks[task]), 0);
    return f->tasks[task].result;
}

static inline int64_t cancelled(struct fixture *f, int task)
{
    blz_handle_cancel(&f->tasks[task]);
    return result_of(f, task);
}

/* The number that is received without waiting, or a negative errno. */
static inline int64_t try_recv(struct fixture *f)
{
    uint64_t value = UINT64_MAX;
    int rc = nums_try_recv(&f->rx, &value);

    return rc < 0 ? rc : (int64_t)value;
}

static inline int try_send(struct fixture *f, uint64_t value)
{
    return nums_try_send(&f->tx, value);
}

static inline void end(struct fixture *f)
{
    nums_sender_drop(&f->tx);
    nums_receiver_drop(&f->rx);
    free_rt(f->rt);
}

#endif
