/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of all combinators: which of them a wake has polled, and the wakers made in them. */
#include "crowd.h"
#include "probe.h"

#include <string.h>

static blz_rt *rt;
static blz_branches op;

enum { GROUPS = 32, FEW = 3 };

static combinator *const all[] = {blz_select_array, blz_select_biased_array, blz_race_array,
                                  blz_join_array, blz_try_join_array};
enum { ALL = sizeof all / sizeof all[0] };

static blz_handle start(combinator *make, struct leaf *leaves, size_t count)
{
    rt = new_clock_rt(true);
    return start_crowd(rt, make, &op, leaves, count);
}

static void end(blz_handle *handle, struct leaf *leaves, size_t count)
{
    end_crowd(rt, leaves, count);
    assert_true(result_of(handle) >= 0);
    end_quietly(rt);
}

/* ---- who is polled ---- */

static void a_wake_has_one_branch_polled(void **state)
{
    (void)state;
    for (int c = 0; c < ALL; c++) {
        struct leaf leaves[GROUPS] = {0};
        blz_handle handle = start(all[c], leaves, GROUPS);

        assert_int_equal(count_polls(leaves, GROUPS), GROUPS);
        for (int i = 0; i < GROUPS; i++) {
            forget_polls(leaves, GROUPS);
            nudge(&leaves[i]);
            assert_int_equal(turn_all(rt), 1);
            assert_int_equal(leaves[i].polls, 1);
            assert_int_equal(count_polls(leaves, GROUPS), 1);
        }
        end(&handle, leaves, GROUPS);
    }
}

/* There are 32 groups. */
static void of_sixty_four_branches_a_wake_has_two_polled(void **state)
{
    struct leaf leaves[BLZ_BRANCHES_MAX] = {0};
    blz_handle handle = start(blz_join_array, leaves, BLZ_BRANCHES_MAX);

    (void)state;
    for (int i = 0; i < BLZ_BRANCHES_MAX; i++) {
        forget_polls(leaves, BLZ_BRANCHES_MAX);
        nudge(&leaves[i]);
        turn_all(rt);
        assert_int_equal(leaves[i].polls, 1);
        assert_int_equal(leaves[(i + GROUPS) % BLZ_BRANCHES_MAX].polls, 1);
        assert_int_equal(count_polls(leaves, BLZ_BRANCHES_MAX), 2);
    }
    for (int i = 0; i < BLZ_BRANCHES_MAX; i++) {
        assert_false(blz_handle_done(&handle));
        make_ready(&leaves[i], i);
        turn_all(rt);
    }
    end(&handle, leaves, BLZ_BRANCHES_MAX);
}

static void each_of_several_that_are_woken_is_polled_once(void **state)
{
    (void)state;
    for (int c = 0; c < ALL; c++) {
        struct leaf leaves[GROUPS] = {0};
        blz_handle handle = start(all[c], leaves, GROUPS);

        forget_polls(leaves, GROUPS);
        for (int i = 0; i < GROUPS; i += 3)
            nudge(&leaves[i]);
        assert_int_equal(turn_all(rt), 1);
        for (int i = 0; i < GROUPS; i++)
            assert_int_equal(leaves[i].polls, i % 3 == 0);
        end(&handle, leaves, GROUPS);
    }
}

static void branches_are_left_alone_when_the_task_is_woken_for_something_else(void **state)
{
    (void)state;
    for (int c = 0; c < ALL; c++) {
        struct leaf leaves[FEW] = {0};
        blz_waker waker;
        blz_handle handle;

        rt = new_clock_rt(true);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, crowd, .make = all[c], .op = &op,
                                      .leaves = leaves, .count = FEW, .waker = &waker),
                         0);
        turn_all(rt);
        blz_waker_wake(&waker);
        assert_int_equal(turn_all(rt), 1);
        assert_int_equal(count_polls(leaves, FEW), FEW); /* the first time, all of them */
        end(&handle, leaves, FEW);
    }
}

static void a_cancellation_has_all_of_them_polled(void **state)
{
    (void)state;
    for (int c = 0; c < ALL; c++) {
        struct leaf leaves[FEW] = {{.stubborn = true}, {.stubborn = true}, {.stubborn = true}};
        blz_handle handle = start(all[c], leaves, FEW);

        blz_handle_cancel(&handle);
        turn_all(rt);
        for (int i = 0; i < FEW; i++) {
            assert_int_equal(leaves[i].cancels, 1);
            assert_int_equal(leaves[i].polls, 2);
        }
        nudge(&leaves[1]); /* from now on as before */
        turn_all(rt);
        assert_int_equal(leaves[1].polls, 3);
        assert_int_equal(count_polls(leaves, FEW), 7);
        end(&handle, leaves, FEW);
    }
}

static void a_decision_has_the_losers_polled(void **state)
{
    struct leaf leaves[FEW] = {{.stubborn = true}, {.polls = 0}, {.stubborn = true}};
    blz_handle handle = start(blz_select_array, leaves, FEW);

    (void)state;
    make_ready(&leaves[1], 0);
    turn_all(rt);
    assert_int_equal(leaves[0].polls, 2);
    assert_int_equal(leaves[2].polls, 2);
    nudge(&leaves[2]);
    turn_all(rt);
    assert_int_equal(leaves[0].polls, 2);
    assert_int_equal(leaves[2].polls, 3);
    end(&handle, leaves, FEW);
}

/* ---- yields ---- */

struct mixed {
    BLZ_FRAME;
    combinator *make;
    struct leaf *leaf;
    int times;
    int64_t rc;
    struct yields yields;
    blz_future *branches[2];
};

static blz_future *make_mixed(struct mixed *self)
{
    self->branches[0] = make_leaf(self->leaf);
    self->branches[1] = BLZ_FUTURE(self->yields, yields, .times = self->times);
    return self->make(&op, self->branches, 2);
}

BLZ_ASYNC(mixed)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_mixed(self));
    BLZ_END(self->rc);
}

static void a_branch_that_yields_is_polled_again_alone(void **state)
{
    (void)state;
    for (int c = 0; c < ALL; c++) {
        struct leaf leaf = {0};
        blz_handle handle;
        bool selects = all[c] != blz_join_array && all[c] != blz_try_join_array;

        rt = new_clock_rt(true);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, mixed, .make = all[c], .leaf = &leaf,
                                      .times = 10),
                         0);
        turn_all(rt);
        assert_int_equal(leaf.polls, selects ? 2 : 1); /* a loser is polled to its end */
        if (!selects)
            make_ready(&leaf, 0);
        turn_all(rt);
        assert_int_equal(result_of(&handle), selects ? 1 : 0);
        end_quietly(rt);
    }
}

/* ---- wakers ---- */

static void wakers_of_branches_are_values_like_others(void **state)
{
    struct leaf leaves[FEW] = {0};
    blz_handle handle = start(blz_join_array, leaves, FEW);
    blz_waker clone = blz_waker_clone(&leaves[1].waker);

    (void)state;
    assert_true(blz_waker_will_wake(&clone, &leaves[1].waker));
    assert_false(blz_waker_will_wake(&clone, &leaves[0].waker));
    forget_polls(leaves, FEW);
    blz_waker_wake_by_ref(&clone);
    blz_waker_wake_by_ref(&clone);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(leaves[1].polls, 1);
    clone.ops->wake_by_ref(clone.data);
    turn_all(rt);
    assert_int_equal(leaves[1].polls, 2);
    clone.ops->wake(clone.data); /* consumes it */
    turn_all(rt);
    assert_int_equal(leaves[1].polls, 3);
    assert_int_equal(count_polls(leaves, FEW), 3);
    clone = blz_waker_clone(&leaves[2].waker);
    blz_waker_drop(&clone);
    end(&handle, leaves, FEW);
}

/* Of both halves of the groups, through the functions that other wakers go through as well. */
static void every_group_has_its_wakers(void **state)
{
    struct leaf leaves[GROUPS] = {0};
    blz_handle handle = start(blz_join_array, leaves, GROUPS);

    (void)state;
    for (int i = 0; i < GROUPS; i++) {
        blz_waker clone = blz_waker_clone(&leaves[i].waker);

        for (int j = 0; j < i; j++)
            assert_false(blz_waker_will_wake(&clone, &leaves[j].waker));
        forget_polls(leaves, GROUPS);
        clone.ops->wake_by_ref(clone.data);
        turn_all(rt);
        assert_int_equal(leaves[i].polls, 1);
        clone.ops->wake(clone.data);
        turn_all(rt);
        assert_int_equal(leaves[i].polls, 2);
        assert_int_equal(count_polls(leaves, GROUPS), 2);
    }
    end(&handle, leaves, GROUPS);
}

struct twice {
    BLZ_FRAME;
    struct leaf *leaves; /* two for each */
    int64_t rc;
    blz_join_op join;
};

BLZ_ASYNC(twice)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_join(&self->join, make_leaf(&self->leaves[0]), make_leaf(&self->leaves[1])));
    BLZ_AWAIT(self->rc,
              blz_join(&self->join, make_leaf(&self->leaves[2]), make_leaf(&self->leaves[3])));
    BLZ_END(self->rc);
}

static void a_wake_that_comes_too_late_does_no_harm(void **state)
{
    struct leaf leaves[4] = {0};
    blz_waker late, later;
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, twice, .leaves = leaves), 0);
    turn_all(rt);
    late = blz_waker_clone(&leaves[0].waker);
    later = blz_waker_clone(&leaves[1].waker);
    make_ready(&leaves[0], 0);
    make_ready(&leaves[1], 0);
    turn_all(rt);
    blz_waker_wake(&late); /* the second join has the same groups, so it may poll one for nothing */
    turn_all(rt);
    assert_true(count_polls(&leaves[2], 2) <= 3);
    forget_polls(leaves, 4);
    nudge(&leaves[3]);
    turn_all(rt);
    assert_int_equal(leaves[3].polls, 1);
    assert_int_equal(leaves[2].polls, 0); /* it has had its poll */
    make_ready(&leaves[2], 0);
    make_ready(&leaves[3], 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    blz_waker_wake(&later); /* the task is no more */
    end_quietly(rt);
}

static void more_wakers_than_a_poll_has_references_for(void **state)
{
    struct leaf leaves[BLZ_BRANCHES_MAX] = {0};
    blz_waker clones[BLZ_BRANCHES_MAX];
    blz_handle handle = start(blz_join_array, leaves, BLZ_BRANCHES_MAX);

    (void)state;
    for (int i = 0; i < BLZ_BRANCHES_MAX; i++)
        clones[i] = blz_waker_clone(&leaves[i].waker);
    end_crowd(rt, leaves, BLZ_BRANCHES_MAX);
    assert_int_equal(result_of(&handle), 0);
    for (int i = 0; i < BLZ_BRANCHES_MAX; i++)
        blz_waker_wake(&clones[i]);
    end_quietly(rt);
}

/* ---- without a task ---- */

static void outside_of_a_task_every_poll_is_of_all(void **state)
{
    (void)state;
    for (int c = 0; c < ALL; c++) {
        struct probe probes[FEW];
        blz_future *branches[FEW], scope = {0};
        blz_cx cx = cx_for(&scope);

        for (int i = 0; i < FEW; i++)
            branches[i] = probe_init(&probes[i]);
        blz_future *future = all[c](&op, branches, FEW);
        assert_true(blz_is_pending(poll_once(future, &cx)));
        assert_true(blz_is_pending(poll_once(future, &cx)));
        for (int i = 0; i < FEW; i++) {
            assert_int_equal(probes[i].polls, 2);
            probes[i].ready = true;
        }
        assert_true(blz_is_ready(poll_once(future, &cx)));
        assert_true(future->result >= 0);
    }
}

/* ---- dumps look at idle tasks ---- */

static void find_join(const char *line, void *arg)
{
    *(bool *)arg |= strstr(line, "join") != NULL;
}

static void a_dump_does_not_keep_a_wake_from_its_branch(void **state)
{
    struct leaf leaves[FEW] = {0};
    blz_handle handle = start(blz_join_array, leaves, FEW);
    bool found = false;

    (void)state;
    assert_int_equal(blz_task_dump(rt, find_join, &found), 0);
    assert_true(found);
    forget_polls(leaves, FEW);
    nudge(&leaves[1]);
    assert_int_equal(blz_task_dump(rt, find_join, &found), 0);
    turn_all(rt);
    assert_int_equal(leaves[1].polls, 1);
    assert_int_equal(count_polls(leaves, FEW), 1);
    end(&handle, leaves, FEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wake_has_one_branch_polled),
        TEST(of_sixty_four_branches_a_wake_has_two_polled),
        TEST(each_of_several_that_are_woken_is_polled_once),
        TEST(branches_are_left_alone_when_the_task_is_woken_for_something_else),
        TEST(a_cancellation_has_all_of_them_polled),
        TEST(a_decision_has_the_losers_polled),
        TEST(a_branch_that_yields_is_polled_again_alone),
        TEST(wakers_of_branches_are_values_like_others),
        TEST(every_group_has_its_wakers),
        TEST(a_wake_that_comes_too_late_does_no_harm),
        TEST(more_wakers_than_a_poll_has_references_for),
        TEST(outside_of_a_task_every_poll_is_of_all),
        TEST(a_dump_does_not_keep_a_wake_from_its_branch),
    };
    return RUN_TESTS(tests);
}
