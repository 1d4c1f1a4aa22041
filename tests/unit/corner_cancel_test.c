/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners where two rules meet, about cancelling: what has no budget left or was never polled,
 * futures around a join, branches of a task.
 */
#include "harness.h"

/* ---- cancellations before the first poll that gets anywhere ---- */

static blz_rt *new_frugal_rt(void)
{
    return new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .budget = 5});
}

/* From now on the task is cancelled, which it is told at its next poll; and it must let go. */
static void cancel_and_spend_budget(blz_cx *cx)
{
    blz_task_cancel(cx->task);
    while (cx->budget > 0)
        check(blz_coop_take(cx));
}

struct receives_late {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(receives_late)
{
    BLZ_BEGIN;
    cancel_and_spend_budget(cx);
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void a_receiver_without_budget_is_cancelled(void **state)
{
    blz_rt *rt = new_frugal_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_late, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(blz_oneshot_try_recv(&channel, NULL), -EAGAIN); /* it may be repeated */
    free_rt(rt);
}

static void a_value_sent_before_wins_over_the_cancellation_of_a_receiver_without_budget(
    void **state)
{
    blz_rt *rt = new_frugal_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(blz_oneshot_send(&channel, 6), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_late, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 6);
    free_rt(rt);
}

struct joins_late {
    BLZ_FRAME;
    blz_handle *child;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(joins_late)
{
    BLZ_BEGIN;
    cancel_and_spend_budget(cx);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, self->child));
    BLZ_END(self->rc);
}

static void a_joiner_without_budget_is_cancelled_and_keeps_its_handle(void **state)
{
    blz_rt *rt = new_frugal_rt();
    struct gate gate = GATE_INIT;
    blz_handle handle, child;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &child, enters, .gate = &gate), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, joins_late, .child = &child), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    gate_open(&gate, 8);
    turn_all(rt);
    assert_int_equal(result_of(&child), 8);
    free_rt(rt);
}

/* A future that is a task by itself, cancelled before its first poll. */
static int64_t spawn_and_cancel(blz_rt *rt, const void *future, size_t size)
{
    blz_handle handle;

    assert_int_equal(blz_spawn(future, size, &(blz_spawn_args){.rt = rt, .handle = &handle}), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    return result_of(&handle);
}

static void a_receive_that_is_a_task_is_cancelled_before_its_first_poll(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot_op wait = {0};
    blz_oneshot channel;

    (void)state;
    blz_oneshot_init(&channel);
    blz_ignore(blz_oneshot_recv(&wait, &channel, NULL));
    assert_int_equal(spawn_and_cancel(rt, &wait, sizeof wait), -ECANCELED);
    assert_int_equal(blz_oneshot_try_recv(&channel, NULL), -EAGAIN); /* it may be repeated */
    free_rt(rt);
}

static void a_join_that_is_a_task_is_cancelled_before_its_first_poll(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct gate gate = GATE_INIT;
    blz_handle child;
    blz_handle_join_op join = {0};

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &child, enters, .gate = &gate), 0);
    turn_all(rt);
    blz_ignore(blz_handle_join(&join, &child));
    assert_int_equal(spawn_and_cancel(rt, &join, sizeof join), -ECANCELED);
    gate_open(&gate, 9);
    turn_all(rt);
    assert_int_equal(result_of(&child), 9);
    free_rt(rt);
}

/* ---- futures around the join of a scope ---- */

struct cleans_up {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    struct gate_wait op;
};

BLZ_ASYNC(cleans_up)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->rc, gate_enter(&self->op, self->gate));
    BLZ_END(self->rc);
}

static int64_t same(int64_t result, void *arg)
{
    ++*(int *)arg;
    return result;
}

static blz_future *no_more(int64_t result, void *arg)
{
    (void)result;
    ++*(int *)arg;
    return NULL;
}

struct wraps_join {
    BLZ_FRAME;
    struct gate *gate;
    bool by_then;
    int called;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op wait;
    blz_map map;
    blz_then then;
};

/* Is cancelled before it joins. Gives the number of its children that still live after that. */
BLZ_ASYNC(wraps_join)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    check(BLZ_SCOPE_SPAWN(&self->scope, cleans_up, .gate = self->gate) == 0);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    check(self->rc == -ECANCELED);
    if (self->by_then)
        BLZ_AWAIT(self->rc, blz_then_init(&self->then, blz_scope_join(&self->wait, &self->scope),
                                          no_more, &self->called));
    else
        BLZ_AWAIT(self->rc, blz_map_init(&self->map, blz_scope_join(&self->wait, &self->scope),
                                         same, &self->called));
    check(self->called == 1);
    BLZ_END((int64_t)blz_scope_live(&self->scope));
}

static void cancel_wrapped_join(bool by_then)
{
    blz_rt *rt = new_embedded_rt();
    struct gate gate = GATE_INIT;
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, wraps_join, .gate = &gate, .by_then = by_then), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    gate_open(&gate, 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void a_mapped_join_in_a_cancelled_task_still_joins(void **state)
{
    (void)state;
    cancel_wrapped_join(false);
}

static void a_join_with_something_after_it_in_a_cancelled_task_still_joins(void **state)
{
    (void)state;
    cancel_wrapped_join(true);
}

/* ---- branches that are cancelled ---- */

struct goes_on {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

/* One await after it has been cancelled. */
BLZ_ASYNC(goes_on)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

struct gives_up {
    blz_future future;
    bool gave_up;
    struct goes_on inner;
};

static blz_poll gives_up_poll(blz_future *future, blz_cx *cx)
{
    struct gives_up *self = (struct gives_up *)future;

    if (blz_is_ready(blz_poll_branch(&self->inner.blz_frame, cx)))
        return blz_future_done(future, self->inner.blz_frame.result);
    if (self->gave_up)
        return BLZ_PENDING;
    self->gave_up = true;
    blz_cancel_branch(&self->inner.blz_frame, cx);
    return blz_cx_yield(cx);
}

static blz_future *gives_up_init(struct gives_up *op)
{
    static const blz_future_ops ops = {.name = "gives_up", .poll = gives_up_poll};

    *op = (struct gives_up){.future.ops = &ops, .inner.blz_frame.ops = &goes_on_ops};
    return &op->future;
}

struct gives_up_often {
    BLZ_FRAME;
    int times;
    int64_t rc;
    struct gives_up op;
};

BLZ_ASYNC(gives_up_often)
{
    BLZ_BEGIN;
    for (; self->times > 0; self->times--) {
        BLZ_AWAIT(self->rc, gives_up_init(&self->op));
        check(self->rc == -ECANCELED);
    }
    check(!blz_cancelled(cx));
    BLZ_END(0);
}

static void count_refused(const blz_stuck *stuck, void *arg)
{
    *(int *)arg += stuck->refused;
}

static void a_task_whose_branches_are_cancelled_does_not_ignore_its_cancellation(void **state)
{
    int reports = 0;
    blz_rt *rt = new_rt(&(blz_options){.embedded = true,
                                       .watchdog_ns = BLZ_NEVER,
                                       .on_stuck = count_refused,
                                       .hook_arg = &reports});
    blz_handle handle;
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, gives_up_often, .times = 1500), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.refused, 1500);
    assert_int_equal(reports, 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_receiver_without_budget_is_cancelled),
        TEST(a_value_sent_before_wins_over_the_cancellation_of_a_receiver_without_budget),
        TEST(a_joiner_without_budget_is_cancelled_and_keeps_its_handle),
        TEST(a_receive_that_is_a_task_is_cancelled_before_its_first_poll),
        TEST(a_join_that_is_a_task_is_cancelled_before_its_first_poll),
        TEST(a_mapped_join_in_a_cancelled_task_still_joins),
        TEST(a_join_with_something_after_it_in_a_cancelled_task_still_joins),
        TEST(a_task_whose_branches_are_cancelled_does_not_ignore_its_cancellation),
    };
    return RUN_TESTS(tests);
}
