/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: whether the child or the timer is first, what the child ends with, and cancellation from
 * outside at every moment. The test makes its leaves ready, and moves the clock, by hand.
 */
#include "leaf.h"

static blz_rt *rt;

struct limited {
    BLZ_FRAME;
    struct leaf *leaf;
    int64_t ns;
    bool absolute;
    bool shield; /* the await of the limit */
    bool *cancelled_after;
    int64_t rc;
    blz_timeout limit;
};

static blz_future *make_limit(struct limited *self)
{
    blz_future *inner = make_leaf(self->leaf);

    return self->absolute ? blz_with_deadline(&self->limit, self->ns, inner)
                          : blz_with_timeout(&self->limit, self->ns, inner);
}

BLZ_ASYNC(limited)
{
    BLZ_BEGIN;
    if (self->shield)
        BLZ_AWAIT_SHIELDED(self->rc, make_limit(self));
    else
        BLZ_AWAIT(self->rc, make_limit(self));
    if (self->cancelled_after)
        *self->cancelled_after = blz_cancelled(cx);
    BLZ_END(self->rc);
}

static blz_handle start_limited(struct leaf *leaf, int64_t ns)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = leaf, .ns = ns), 0);
    turn_all(rt);
    return handle;
}

static uint64_t timers_armed(void)
{
    blz_stats stats;

    blz_rt_stats(rt, &stats);
    return stats.total.timers_armed;
}

static void a_child_in_time_gives_its_result(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    advance(rt, 9 * MS);
    make_ready(&leaf, 42);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 42);
    assert_int_equal(leaf.cancels, 0);
    end_quietly(rt);
}

static void a_child_that_is_ready_arms_no_timer(void **state)
{
    struct leaf leaf = {.ready = true, .value = -EPIPE};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    assert_int_equal(result_of(&handle), -EPIPE);
    assert_int_equal(timers_armed(), 0);
    end_quietly(rt);
}

static void a_late_child_is_cancelled(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    advance(rt, 10 * MS - 1);
    assert_int_equal(leaf.cancels, 0);
    advance(rt, 1);
    assert_int_equal(leaf.cancels, 1);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    end_quietly(rt);
}

static void a_late_child_is_waited_for(void **state)
{
    struct leaf leaf = {.stubborn = true};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    advance(rt, 10 * MS);
    assert_int_equal(leaf.cancels, 1);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaf, -ECANCELED);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    end_quietly(rt);
}

static void a_real_result_survives_the_limit(void **state)
{
    struct leaf leaf = {.stubborn = true};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    advance(rt, 10 * MS);
    make_ready(&leaf, 4096);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 4096);
    end_quietly(rt);
}

static void if_both_are_ready_the_child_wins(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    assert_int_equal(blz_clock_advance(rt, 10 * MS), 0);
    make_ready(&leaf, 1);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
    assert_int_equal(leaf.cancels, 0);
    end_quietly(rt);
}

static void without_time_there_is_one_poll(void **state)
{
    static const int64_t none[] = {0, -1, INT64_MIN};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct leaf slow = {0}, quick = {.ready = true, .value = 7};
        blz_handle handle;

        rt = new_clock_rt(true);
        handle = start_limited(&slow, none[i]);
        assert_int_equal(result_of(&handle), -ETIMEDOUT);
        assert_int_equal(slow.cancels, 1);
        handle = start_limited(&quick, none[i]);
        assert_int_equal(result_of(&handle), 7);
        assert_int_equal(timers_armed(), 0);
        end_quietly(rt);
    }
}

static void a_limit_without_end_never_comes(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, BLZ_NEVER);
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    advance(rt, 100 * 365 * BLZ_DAY);
    assert_int_equal(leaf.cancels, 0);
    make_ready(&leaf, 3);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 3);
    end_quietly(rt);
}

static void a_deadline_is_an_instant(void **state)
{
    struct leaf late = {0}, past = {0}, quick = {.ready = true, .value = 5};
    int64_t deadline = 1000 * BLZ_SEC + 10 * MS; /* the clock begins at 1000 s */
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = &late, .ns = deadline,
                                  .absolute = true),
                     0);
    turn_all(rt);
    advance(rt, 9 * MS);
    assert_false(blz_handle_done(&handle));
    advance(rt, 1 * MS);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = &past, .ns = deadline,
                                  .absolute = true),
                     0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    assert_int_equal(past.polls, 2);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = &quick, .ns = deadline,
                                  .absolute = true),
                     0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 5);
    end_quietly(rt);
}

/* ---- limits and cancellation ---- */

static void a_cancelled_limit_is_no_timeout(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(leaf.cancels, 1);
    assert_int_equal(result_of(&handle), -ECANCELED);
    end_quietly(rt);
}

static void a_cancelled_limit_that_waits_does_not_time_out_later(void **state)
{
    struct leaf leaf = {.stubborn = true};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_limited(&leaf, 10 * MS);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    advance(rt, 20 * MS);
    assert_int_equal(leaf.cancels, 1);
    make_ready(&leaf, -ECANCELED);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    end_quietly(rt);
}

static void a_timeout_that_came_first_is_one(void **state)
{
    struct leaf leaf = {.stubborn = true};
    bool cancelled = false;
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = &leaf, .ns = 10 * MS,
                                  .cancelled_after = &cancelled),
                     0);
    turn_all(rt);
    advance(rt, 10 * MS);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(leaf.cancels, 1); /* not told twice */
    make_ready(&leaf, -ECANCELED);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    assert_true(cancelled);
    end_quietly(rt);
}

static void a_limit_in_a_cancelled_scope_does_not_start(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = &leaf, .ns = 10 * MS), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(leaf.polls, 0);
    end_quietly(rt);
}

static void under_a_shield_only_the_limit_counts(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited, .leaf = &leaf, .ns = 10 * MS,
                                  .shield = true),
                     0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(leaf.cancels, 0);
    advance(rt, 10 * MS);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    end_quietly(rt);
}

/* A function that shields its own await against the limit around it. */
struct careful {
    BLZ_FRAME;
    struct leaf *leaf;
    int64_t rc;
};

BLZ_ASYNC(careful)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->rc, make_leaf(self->leaf));
    BLZ_END(self->rc);
}

struct limits_careful {
    BLZ_FRAME;
    struct leaf *leaf;
    int64_t rc;
    blz_timeout limit;
    struct careful child;
};

BLZ_ASYNC(limits_careful)
{
    BLZ_BEGIN;
    self->child = (struct careful){.blz_frame.ops = &careful_ops, .leaf = self->leaf};
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 10 * MS, &self->child.blz_frame));
    BLZ_END(self->rc);
}

static void a_shielded_child_ends_in_its_own_time(void **state)
{
    struct leaf leaf = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limits_careful, .leaf = &leaf), 0);
    turn_all(rt);
    advance(rt, 10 * MS);
    assert_int_equal(leaf.cancels, 0);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaf, 11);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 11);
    end_quietly(rt);
}

/* ---- limits in limits ---- */

struct nested {
    BLZ_FRAME;
    struct leaf *leaf;
    int64_t outer_ns, inner_ns;
    int64_t rc;
    blz_timeout outer, inner;
};

BLZ_ASYNC(nested)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->outer, self->outer_ns,
                                         blz_with_timeout(&self->inner, self->inner_ns,
                                                          make_leaf(self->leaf))));
    if (self->rc == -ETIMEDOUT)
        self->rc = self->inner.future.result == -ETIMEDOUT ? 1 : 2;
    BLZ_END(self->rc);
}

static void the_shorter_of_two_limits_counts(void **state)
{
    static const struct {
        int64_t outer, inner, who;
    } cases[] = {{20, 10, 1}, {10, 20, 2}, {10, 10, 1}, {0, 10, 2}, {10, 0, 1}};

    (void)state;
    for (int i = 0; i < 5; i++) {
        struct leaf leaf = {0};
        blz_handle handle;

        rt = new_clock_rt(true);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, nested, .leaf = &leaf,
                                      .outer_ns = cases[i].outer * MS,
                                      .inner_ns = cases[i].inner * MS),
                         0);
        turn_all(rt);
        advance(rt, 10 * MS);
        assert_int_equal(result_of(&handle), cases[i].who);
        assert_int_equal(leaf.cancels, 1);
        end_quietly(rt);
    }
}

/* ---- what a refused limit owns ---- */

struct boxed {
    BLZ_FRAME;
    int64_t rc;
    struct leaf *leaf;
    blz_timeout limit;
    blz_box boxes[2];
    blz_race_op race;
    blz_future op;
    bool races;
};

static blz_future *limit_a_box(struct boxed *self)
{
    blz_future *box = BLZ_BOX(&self->boxes[0], careful, .leaf = self->leaf);

    if (self->races)
        box = blz_race(&self->race, box, BLZ_BOX(&self->boxes[1], careful, .leaf = self->leaf));
    return blz_with_timeout(&self->limit, 10 * MS, box);
}

/* The box is made while all is well, and the task is cancelled before it is awaited. */
BLZ_ASYNC(boxed)
{
    BLZ_BEGIN;
    limit_a_box(self);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT(self->rc, &self->limit.future);
    BLZ_END(self->rc);
}

static void a_refused_limit_gives_back_what_is_in_it(void **state)
{
    (void)state;
    for (int races = 0; races < 2; races++) {
        struct leaf leaf = {0};
        blz_handle handle;

        rt = new_clock_rt(true);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, boxed, .leaf = &leaf, .races = races), 0);
        turn_all(rt);
        blz_handle_cancel(&handle);
        turn_all(rt);
        assert_int_equal(result_of(&handle), -ECANCELED);
        assert_int_equal(leaf.polls, 0);
        end_quietly(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_child_in_time_gives_its_result),
        TEST(a_child_that_is_ready_arms_no_timer),
        TEST(a_late_child_is_cancelled),
        TEST(a_late_child_is_waited_for),
        TEST(a_real_result_survives_the_limit),
        TEST(if_both_are_ready_the_child_wins),
        TEST(without_time_there_is_one_poll),
        TEST(a_limit_without_end_never_comes),
        TEST(a_deadline_is_an_instant),
        TEST(a_cancelled_limit_is_no_timeout),
        TEST(a_cancelled_limit_that_waits_does_not_time_out_later),
        TEST(a_timeout_that_came_first_is_one),
        TEST(a_limit_in_a_cancelled_scope_does_not_start),
        TEST(under_a_shield_only_the_limit_counts),
        TEST(a_shielded_child_ends_in_its_own_time),
        TEST(the_shorter_of_two_limits_counts),
        TEST(a_refused_limit_gives_back_what_is_in_it),
    };
    return RUN_TESTS(tests);
}
