/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of cancelling a task from another thread: its futures are told once, in a poll that sees
 * what the canceller wrote before; a shield holds it off but does not lose it; and a task that
 * ends first is left alone.
 */
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

static blz_rt *rt;
static blz_handle handle;
static blz_task *target; /* the canceller's reference */
static uint32_t reason;  /* what the canceller wrote */

/* ---- a leaf that waits for `fired` ---- */

struct leaf {
    blz_future future;
    uint32_t fired;
    blz_waker waker;
    unsigned told; /* ghost */
    bool cancelled;
};

static struct leaf leaf, second_leaf;

static blz_poll leaf_poll(blz_future *future, blz_cx *cx)
{
    struct leaf *self = (struct leaf *)future;

    if (blz__load(&self->fired, ACQUIRE)) /* pairs with fire */
        return blz_future_done(future, 1);
    if (self->cancelled) {
        blz_waker_drop(&self->waker);
        return blz_future_done(future, -ECANCELED);
    }
    if (!self->waker.ops)
        self->waker = blz_cx_waker(cx);
    return BLZ_PENDING;
}

static void leaf_cancel(blz_future *future, blz_cx *cx)
{
    struct leaf *self = (struct leaf *)future;

    (void)cx;
    blz__plain_read(&reason);
    self->told++;
    self->cancelled = true;
}

static const blz_future_ops leaf_ops = {.name = "leaf", .poll = leaf_poll, .cancel = leaf_cancel};

static blz_future *leaf_await(struct leaf *self)
{
    self->future = (blz_future){.ops = &leaf_ops};
    return &self->future;
}

/* ---- threads ---- */

static void canceller(void *unused)
{
    (void)unused;
    blz__plain_write(&reason);
    blz_task_cancel(target);
    blz_task_unref(target);
}

/* Another canceller, with nothing to say. */
static void silent_canceller(void *unused)
{
    (void)unused;
    blz_task_cancel(target);
    blz_task_unref(target);
}

/* With a waker of its own: the leaf's is touched by the task only. */
static blz_waker firing;

static void fire(void *unused)
{
    (void)unused;
    blz__store(&leaf.fired, 1u, RELEASE); /* pairs with leaf_poll */
    blz_waker_wake(&firing);
}

/* ---- tasks ---- */

struct waits {
    BLZ_FRAME;
    int64_t rc;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, leaf_await(&leaf));
    BLZ_END(self->rc);
}

struct ends {
    BLZ_FRAME;
};

BLZ_ASYNC(ends)
{
    BLZ_BEGIN;
    BLZ_END(1);
}

struct shielded {
    BLZ_FRAME;
    int64_t first, second;
};

BLZ_ASYNC(shielded)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->first, leaf_await(&leaf));
    model_assert(self->first == 1);
    BLZ_AWAIT(self->second, leaf_await(&second_leaf));
    BLZ_END(self->second);
}

/* ---- models ---- */

static void set_up(void)
{
    rt = small_rt_new(1, NULL);
    leaf = second_leaf = (struct leaf){.fired = 0};
    small_rt_be(&rt->workers[0]);
}

static void take_references(unsigned count)
{
    target = handle.task;
    for (unsigned i = 0; i < count; i++)
        blz_task_ref(target);
}

static void tear_down(void)
{
    small_rt_poll_all(&rt->workers[0]);
    small_rt_free(rt);
}

/* Spawned and polled: it waits for the leaf. */
static void spawn_waiting(unsigned references)
{
    set_up();
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, waits)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    take_references(references);
}

static void a_cancel_of_a_waiting_task_is_delivered_once(void)
{
    spawn_waiting(1);
    model_thread other = model_start(canceller, NULL);
    model_assert(small_rt_join(&rt->workers[0], &handle) == -ECANCELED);
    model_assert(leaf.told == 1);
    model_join(other);
    tear_down();
}

static void a_cancel_against_the_first_poll_is_delivered_once(void)
{
    set_up();
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, waits)) == 0);
    take_references(1);
    model_thread other = model_start(canceller, NULL);
    model_assert(small_rt_join(&rt->workers[0], &handle) == -ECANCELED);
    model_assert(leaf.told <= 1); /* or the await was refused */
    model_join(other);
    tear_down();
}

static void two_cancels_are_delivered_once(void)
{
    spawn_waiting(2);
    blz__plain_write(&reason);
    model_thread first = model_start(silent_canceller, NULL);
    model_thread second = model_start(silent_canceller, NULL);
    model_assert(small_rt_join(&rt->workers[0], &handle) == -ECANCELED);
    model_assert(leaf.told == 1);
    model_join(first);
    model_join(second);
    tear_down();
}

static void a_cancel_against_a_wake_ends_the_task_once(void)
{
    spawn_waiting(1);
    firing = blz_waker_clone(&leaf.waker);
    blz_waker_drop(&leaf.waker);
    leaf.waker = blz_waker_noop();
    model_thread first = model_start(canceller, NULL), second = model_start(fire, NULL);
    int64_t result = small_rt_join(&rt->workers[0], &handle);
    model_assert(result == 1 || (result == -ECANCELED && leaf.told == 1));
    model_assert(leaf.told <= 1);
    model_join(first);
    model_join(second);
    tear_down();
}

static void a_cancel_against_the_end_is_harmless(void)
{
    set_up();
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, ends)) == 0);
    take_references(1);
    model_thread other = model_start(canceller, NULL);
    model_assert(small_rt_join(&rt->workers[0], &handle) == 1);
    model_join(other);
    tear_down();
}

static void a_cancel_against_an_unshield_is_not_lost(void)
{
    set_up();
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, shielded)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    take_references(1);
    blz__store(&leaf.fired, 1u, RELEASE);
    blz_waker_wake(&leaf.waker);
    model_thread other = model_start(canceller, NULL);
    model_assert(small_rt_join(&rt->workers[0], &handle) == -ECANCELED);
    model_assert(leaf.told == 0 && second_leaf.told <= 1);
    model_join(other);
    tear_down();
}

static const struct model models[] = {
    MODEL(a_cancel_of_a_waiting_task_is_delivered_once, .preemptions = 3, .reduce = true),
    MODEL(a_cancel_against_the_first_poll_is_delivered_once, .preemptions = 3, .stale_reads = 1,
          .reduce = true),
    MODEL(two_cancels_are_delivered_once, .stale_reads = 1, .reduce = true),
    MODEL(a_cancel_against_a_wake_ends_the_task_once, .stale_reads = 1, .reduce = true),
    MODEL(a_cancel_against_the_end_is_harmless, .preemptions = 3, .reduce = true),
    MODEL(a_cancel_against_an_unshield_is_not_lost, .preemptions = 3, .stale_reads = 1,
          .reduce = true),
};

MODEL_MAIN(models)
