/* SPDX-License-Identifier: Apache-2.0 */
/* A task that awaits a combinator over leaves of the test's; the op, too, is the test's. */
#ifndef CROWD_H
#define CROWD_H

#include "leaf.h"

typedef blz_future *combinator(blz_branches *op, blz_future **branches, size_t count);

struct crowd {
    BLZ_FRAME;
    combinator *make;
    blz_branches *op;
    struct leaf *leaves;
    size_t count;
    blz_waker *waker; /* NULL, or where the task leaves one that is no branch's */
    int64_t rc;
    blz_future *branches[BLZ_BRANCHES_MAX + 1];
};

static inline blz_future *make_crowd(struct crowd *self, blz_cx *cx)
{
    if (self->waker)
        *self->waker = blz_cx_waker(cx);
    for (size_t i = 0; i < self->count; i++)
        self->branches[i] = make_leaf(&self->leaves[i]);
    return self->make(self->op, self->branches, self->count);
}

BLZ_ASYNC(crowd)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_crowd(self, cx));
    BLZ_END(self->rc);
}

/* Not polled yet. */
static inline blz_handle spawn_crowd(blz_rt *rt, combinator *make, blz_branches *op,
                                     struct leaf *leaves, size_t count)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, crowd, .make = make, .op = op, .leaves = leaves,
                                  .count = count),
                     0);
    return handle;
}

static inline blz_handle start_crowd(blz_rt *rt, combinator *make, blz_branches *op,
                                     struct leaf *leaves, size_t count)
{
    blz_handle handle = spawn_crowd(rt, make, op, leaves, count);

    turn_all(rt);
    return handle;
}

/* Wakes a leaf that has nothing to say. */
static inline void nudge(struct leaf *leaf)
{
    blz_waker_wake(&leaf->waker);
}

static inline void forget_polls(struct leaf *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        leaves[i].polls = 0;
}

static inline int count_polls(const struct leaf *leaves, size_t count)
{
    int polls = 0;

    for (size_t i = 0; i < count; i++)
        polls += leaves[i].polls;
    return polls;
}

/* All that have not been are ready now. */
static inline void end_crowd(blz_rt *rt, struct leaf *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!leaves[i].ready)
            make_ready(&leaves[i], 0);
    turn_all(rt);
}

#endif
