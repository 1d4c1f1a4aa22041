/* SPDX-License-Identifier: Apache-2.0 */
/* Join and try_join: what they wait for, and what they give. */
#include "crowd.h"

static blz_rt *rt;
static blz_branches op;

enum { FEW = 3 };

static blz_handle start(combinator *make, struct leaf *leaves, size_t count)
{
    rt = new_clock_rt(true);
    return start_crowd(rt, make, &op, leaves, count);
}

static int64_t end(blz_handle *handle)
{
    int64_t result = result_of(handle);

    end_quietly(rt);
    return result;
}

/* ---- all ---- */

static void a_join_waits_for_all_in_any_order(void **state)
{
    const int orders[][FEW] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    combinator *const makes[] = {blz_join_array, blz_try_join_array};

    (void)state;
    for (int i = 0; i < 12; i++) {
        struct leaf leaves[FEW] = {0};
        blz_handle handle = start(makes[i % 2], leaves, FEW);

        for (int j = 0; j < FEW; j++) {
            assert_false(blz_handle_done(&handle));
            make_ready(&leaves[orders[i / 2][j]], 10 + j);
            turn_all(rt);
        }
        assert_int_equal(end(&handle), 0);
        for (int j = 0; j < FEW; j++) {
            assert_int_equal(leaves[orders[i / 2][j]].future.result, 10 + j);
            assert_int_equal(leaves[j].cancels, 0);
        }
    }
}

static void a_join_counts_those_that_failed(void **state)
{
    struct leaf leaves[FEW] = {0};
    blz_handle handle = start(blz_join_array, leaves, FEW);

    (void)state;
    make_ready(&leaves[1], -EIO);
    turn_all(rt);
    make_ready(&leaves[0], -ECANCELED); /* of its own accord */
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[2], 7);
    turn_all(rt);
    assert_int_equal(end(&handle), 2);
    assert_int_equal(leaves[0].future.result, -ECANCELED);
    assert_int_equal(leaves[1].future.result, -EIO);
    assert_int_equal(leaves[2].future.result, 7);
    assert_int_equal(leaves[0].cancels + leaves[1].cancels + leaves[2].cancels, 0);
}

static void branches_that_are_all_ready_are_joined_in_one_poll(void **state)
{
    combinator *const makes[] = {blz_join_array, blz_try_join_array};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct leaf leaves[BLZ_BRANCHES_MAX];

        for (int j = 0; j < BLZ_BRANCHES_MAX; j++)
            leaves[j] = (struct leaf){.ready = true, .value = j};
        rt = new_clock_rt(true);
        blz_handle handle = spawn_crowd(rt, makes[i], &op, leaves, BLZ_BRANCHES_MAX);
        assert_int_equal(turn_all(rt), 1);
        assert_int_equal(end(&handle), 0);
        for (int j = 0; j < BLZ_BRANCHES_MAX; j++) {
            assert_int_equal(leaves[j].polls, 1);
            assert_int_equal(leaves[j].future.result, j);
        }
    }
}

static void nobody_is_joined_at_once(void **state)
{
    blz_handle handle = start(blz_join_array, NULL, 0);

    (void)state;
    assert_int_equal(end(&handle), 0);
    handle = start(blz_try_join_array, NULL, 0);
    assert_int_equal(end(&handle), 0);
}

/* Waits before it is polled: it must be taken out of the queue. */
static void what_began_to_wait_is_told_that_there_are_too_many(void **state)
{
    enum { COUNT = BLZ_BRANCHES_MAX + 1 };
    struct leaf leaves[COUNT] = {0};
    blz_future *list[COUNT];
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_notify_op wait = {0};

    (void)state;
    for (int i = 0; i < COUNT; i++)
        list[i] = make_leaf(&leaves[i]);
    list[3] = blz_notify_await(&wait, &notify);
    assert_false(blz_notify_enable(&wait));
    assert_int_equal(blz_wait(blz_join_array(&op, list, COUNT)), -E2BIG);
    assert_int_equal(wait.future.result, -ECANCELED);
    blz_notify_one(&notify); /* finds nobody */
    assert_int_equal(blz_notify_try_await(&notify), 0);
}

static void too_many_are_not_joined(void **state)
{
    combinator *const makes[] = {blz_join_array, blz_try_join_array, blz_select_array};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct leaf leaves[BLZ_BRANCHES_MAX + 1] = {0};
        blz_handle handle = start(makes[i], leaves, BLZ_BRANCHES_MAX + 1);

        assert_int_equal(end(&handle), -E2BIG);
        for (int j = 0; j <= BLZ_BRANCHES_MAX; j++) {
            assert_int_equal(leaves[j].polls, 0);
            assert_int_equal(leaves[j].future.result, -E2BIG);
        }
    }
}

/* ---- the first error ---- */

static void the_first_error_cancels_the_others(void **state)
{
    (void)state;
    for (int failing = 0; failing < FEW; failing++) {
        struct leaf leaves[FEW] = {0};
        int fine = (failing + 1) % FEW, late = (failing + 2) % FEW;
        blz_handle handle = start(blz_try_join_array, leaves, FEW);

        make_ready(&leaves[fine], 3);
        turn_all(rt);
        make_ready(&leaves[failing], -EIO);
        turn_all(rt);
        assert_int_equal(end(&handle), -EIO);
        assert_int_equal(op.first, failing);
        assert_int_equal(leaves[fine].future.result, 3);
        assert_int_equal(leaves[fine].cancels, 0);
        assert_int_equal(leaves[late].future.result, -ECANCELED);
        assert_int_equal(leaves[late].cancels, 1);
    }
}

static void the_first_error_in_time_is_reported(void **state)
{
    struct leaf leaves[FEW] = {{.stubborn = true}, {.stubborn = true}, {.stubborn = true}};
    blz_handle handle = start(blz_try_join_array, leaves, FEW);

    (void)state;
    make_ready(&leaves[2], -EPIPE);
    turn_all(rt);
    make_ready(&leaves[0], -EIO);
    turn_all(rt);
    assert_false(blz_handle_done(&handle)); /* the others are awaited */
    make_ready(&leaves[1], 8);
    turn_all(rt);
    assert_int_equal(end(&handle), -EPIPE);
    assert_int_equal(op.first, 2);
    assert_int_equal(leaves[0].future.result, -EIO);
    assert_int_equal(leaves[1].future.result, 8);
}

static void an_error_at_once_keeps_the_others_from_starting(void **state)
{
    struct leaf leaves[FEW] = {{.polls = 0}, {.ready = true, .value = -EIO}, {.polls = 0}};
    blz_handle handle = start(blz_try_join_array, leaves, FEW);

    (void)state;
    assert_int_equal(end(&handle), -EIO);
    assert_int_equal(leaves[0].cancels, 1);
    assert_int_equal(leaves[0].future.result, -ECANCELED);
    assert_int_equal(leaves[2].polls, 0);
    assert_int_equal(leaves[2].cancels, 0);
    assert_int_equal(leaves[2].future.result, -ECANCELED);
}

static void a_branch_that_ends_cancelled_by_itself_has_failed(void **state)
{
    struct leaf leaves[FEW] = {0};
    blz_handle handle = start(blz_try_join_array, leaves, FEW);

    (void)state;
    make_ready(&leaves[1], -ECANCELED);
    turn_all(rt);
    assert_int_equal(end(&handle), -ECANCELED);
    assert_int_equal(op.first, 1);
    assert_int_equal(leaves[0].cancels, 1);
}

/* ---- cancelled from outside ---- */

static void a_cancellation_is_passed_on_and_awaited(void **state)
{
    combinator *const makes[] = {blz_join_array, blz_try_join_array};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct leaf leaves[FEW] = {{.polls = 0}, {.stubborn = true}, {.polls = 0}};
        blz_handle handle = start(makes[i], leaves, FEW);

        make_ready(&leaves[2], 1);
        turn_all(rt);
        blz_handle_cancel(&handle);
        turn_all(rt);
        assert_int_equal(leaves[0].cancels, 1);
        assert_int_equal(leaves[1].cancels, 1);
        assert_int_equal(leaves[2].cancels, 0);
        assert_false(blz_handle_done(&handle));
        make_ready(&leaves[1], 4);
        turn_all(rt);
        assert_int_equal(end(&handle), -ECANCELED);
        assert_int_equal(leaves[1].future.result, 4);
    }
}

static void what_ends_well_in_spite_of_a_cancel_counts(void **state)
{
    combinator *const makes[] = {blz_join_array, blz_try_join_array};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct leaf leaves[2] = {{.stubborn = true}, {.stubborn = true}};
        blz_handle handle = start(makes[i], leaves, 2);

        blz_handle_cancel(&handle);
        turn_all(rt);
        end_crowd(rt, leaves, 2);
        assert_int_equal(end(&handle), 0);
    }
}

static void a_real_error_after_a_cancel_is_reported(void **state)
{
    struct leaf leaves[FEW] = {{.polls = 0}, {.stubborn = true}, {.polls = 0}};
    blz_handle handle = start(blz_try_join_array, leaves, FEW);

    (void)state;
    blz_handle_cancel(&handle);
    turn_all(rt);
    make_ready(&leaves[1], -EIO);
    turn_all(rt);
    assert_int_equal(end(&handle), -EIO);
    assert_int_equal(op.first, 1);
}

static void in_a_cancelled_scope_nobody_is_started(void **state)
{
    combinator *const makes[] = {blz_join_array, blz_try_join_array, blz_select_array};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct leaf leaves[FEW] = {{.polls = 0}, {.ready = true}, {.polls = 0}};
        blz_handle handle;

        rt = new_clock_rt(true);
        handle = spawn_crowd(rt, makes[i], &op, leaves, FEW);
        blz_handle_cancel(&handle);
        turn_all(rt);
        assert_int_equal(end(&handle), -ECANCELED);
        for (int j = 0; j < FEW; j++) {
            assert_int_equal(leaves[j].polls, 0);
            assert_int_equal(leaves[j].future.result, -ECANCELED);
        }
    }
}

/* ---- branches that own memory ---- */

struct boxes {
    BLZ_FRAME;
    combinator *make;
    int64_t first; /* what the first branch gives at once */
    int64_t rc;
    blz_box boxes[FEW];
    blz_future *branches[FEW];
};

static blz_future *make_boxes(struct boxes *self)
{
    self->branches[0] = BLZ_BOX(&self->boxes[0], give, .value = self->first);
    self->branches[1] = BLZ_BOX(&self->boxes[1], yields, .times = 2);
    self->branches[2] = BLZ_BOX(&self->boxes[2], yields, .times = 1);
    return self->make(&op, self->branches, FEW);
}

BLZ_ASYNC(boxes)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_boxes(self));
    BLZ_END(self->rc);
}

static void boxes_are_freed_whether_they_were_started_or_not(void **state)
{
    combinator *const makes[] = {blz_join_array, blz_try_join_array, blz_select_array};
    const int64_t results[][2] = {{0, 1}, {0, -EIO}, {0, 0}};

    (void)state;
    for (int i = 0; i < 12; i++) {
        bool fails = i % 2, cancelled = i / 2 % 2;
        blz_handle handle;

        rt = new_clock_rt(true);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, boxes, .make = makes[i / 4],
                                      .first = fails ? -EIO : 0),
                         0);
        if (cancelled)
            blz_handle_cancel(&handle);
        turn_all(rt);
        assert_int_equal(end(&handle), cancelled ? -ECANCELED : results[i / 4][fails]);
    } /* and the harness counts blocks */
}

/* ---- taking turns ---- */

/* Needs one unit of budget in each of its polls, as often as it says; or all that there is. */
struct consumer {
    blz_future future;
    int times;
    bool greedy;
    const struct consumer *other;
    int others_times; /* when this one ended */
};

static blz_poll consumer_poll(blz_future *future, blz_cx *cx)
{
    struct consumer *self = (struct consumer *)future;

    do {
        if (!blz_coop_take(cx))
            return BLZ_PENDING;
        self->times--;
    } while (self->greedy && self->times > 0);
    if (self->times > 0)
        return blz_cx_yield(cx);
    self->others_times = self->other->times;
    return blz_future_done(future, 0);
}

static const blz_future_ops consumer_ops = {.name = "consumer", .poll = consumer_poll};

struct shares {
    BLZ_FRAME;
    struct consumer *consumers; /* two of them */
    int64_t rc;
    blz_join_op join;
};

BLZ_ASYNC(shares)
{
    BLZ_BEGIN;
    self->consumers[0].future = self->consumers[1].future = (blz_future){.ops = &consumer_ops};
    BLZ_AWAIT(self->rc,
              blz_join(&self->join, &self->consumers[0].future, &self->consumers[1].future));
    BLZ_END(self->rc);
}

static void a_branch_that_uses_up_the_budget_leaves_some_to_the_others(void **state)
{
    enum { BUDGETS = 40, SMALL = 10 };

    (void)state;
    for (int greedy = 0; greedy < 2; greedy++) {
        struct consumer consumers[2] = {{.times = SMALL, .other = &consumers[1]},
                                        {.times = SMALL, .other = &consumers[0]}};
        blz_handle handle;

        consumers[greedy].times = BUDGETS * 128;
        consumers[greedy].greedy = true;
        rt = new_clock_rt(true);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, shares, .consumers = consumers), 0);
        turn_all(rt);
        assert_true(consumers[!greedy].others_times > 0);
        assert_int_equal(consumers[greedy].others_times, 0);
        assert_int_equal(end(&handle), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_waits_for_all_in_any_order),
        TEST(a_join_counts_those_that_failed),
        TEST(branches_that_are_all_ready_are_joined_in_one_poll),
        TEST(nobody_is_joined_at_once),
        TEST(too_many_are_not_joined),
        TEST(what_began_to_wait_is_told_that_there_are_too_many),
        TEST(the_first_error_cancels_the_others),
        TEST(the_first_error_in_time_is_reported),
        TEST(an_error_at_once_keeps_the_others_from_starting),
        TEST(a_branch_that_ends_cancelled_by_itself_has_failed),
        TEST(a_cancellation_is_passed_on_and_awaited),
        TEST(what_ends_well_in_spite_of_a_cancel_counts),
        TEST(a_real_error_after_a_cancel_is_reported),
        TEST(in_a_cancelled_scope_nobody_is_started),
        TEST(boxes_are_freed_whether_they_were_started_or_not),
        TEST(a_branch_that_uses_up_the_budget_leaves_some_to_the_others),
    };
    return RUN_TESTS(tests);
}
