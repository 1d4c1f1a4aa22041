/* SPDX-License-Identifier: Apache-2.0 */
/* A leaf that does what the test says, in the frame of nobody; and a runtime to await it in. */
#ifndef LEAF_H
#define LEAF_H

#include "clock_rt.h"

struct leaf {
    blz_future future;
    blz_waker waker;
    int polls, cancels;
    bool stubborn; /* goes on after a cancel */
    bool ready;
    int64_t value;
    struct event *waits; /* posted when it begins to, if there is one */
};

static inline blz_poll leaf_poll(blz_future *future, blz_cx *cx)
{
    struct leaf *leaf = (struct leaf *)future;

    leaf->polls++;
    if (leaf->ready) {
        blz_waker_drop(&leaf->waker);
        return blz_future_done(future, leaf->value);
    }
    if (!leaf->waker.ops) {
        leaf->waker = blz_cx_waker(cx);
        if (leaf->waits)
            event_post(leaf->waits);
    }
    return BLZ_PENDING;
}

static inline void leaf_cancel(blz_future *future, blz_cx *cx)
{
    struct leaf *leaf = (struct leaf *)future;

    (void)cx;
    leaf->cancels++;
    if (!leaf->stubborn && !leaf->ready) {
        leaf->ready = true;
        leaf->value = -ECANCELED;
    }
}

static const blz_future_ops leaf_ops = {.name = "leaf", .poll = leaf_poll, .cancel = leaf_cancel};

static inline blz_future *make_leaf(struct leaf *leaf)
{
    leaf->future = (blz_future){.ops = &leaf_ops};
    return &leaf->future;
}

/* Without running the task. */
static inline void make_ready(struct leaf *leaf, int64_t value)
{
    leaf->ready = true;
    leaf->value = value;
    blz_waker_wake(&leaf->waker);
}

/* No timer is left behind: the clock could go on for ever. */
static inline void end_quietly(blz_rt *rt)
{
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    advance(rt, BLZ_DAY);
    free_rt(rt);
}

#endif
