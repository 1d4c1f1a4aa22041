/* SPDX-License-Identifier: Apache-2.0 */
/* Races: who wins, what the others end with, and cancellation from outside at every moment. */
#include "leaf.h"

static blz_rt *rt;

enum { RUNNERS = 3 };

struct racer {
    BLZ_FRAME;
    struct leaf *leaves; /* RUNNERS of them */
    int64_t rc;
    blz_race_op race;
};

BLZ_ASYNC(racer)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_race(&self->race, make_leaf(&self->leaves[0]),
                                 make_leaf(&self->leaves[1]), make_leaf(&self->leaves[2])));
    BLZ_END(self->rc);
}

static blz_handle start_race(struct leaf *leaves)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, racer, .leaves = leaves), 0);
    turn_all(rt);
    return handle;
}

static void the_first_wins_and_the_others_end(void **state)
{
    (void)state;
    for (int winner = 0; winner < RUNNERS; winner++) {
        struct leaf leaves[RUNNERS] = {0};
        blz_handle handle;

        rt = new_clock_rt(true);
        handle = start_race(leaves);
        make_ready(&leaves[winner], 100 + winner);
        turn_all(rt);
        assert_int_equal(result_of(&handle), winner);
        for (int i = 0; i < RUNNERS; i++) {
            assert_int_equal(leaves[i].cancels, i != winner);
            assert_int_equal(leaves[i].future.result, i == winner ? 100 + i : -ECANCELED);
        }
        end_quietly(rt);
    }
}

static void losers_are_waited_for_and_keep_their_results(void **state)
{
    struct leaf leaves[RUNNERS] = {{.stubborn = true}, {.polls = 0}, {.stubborn = true}};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_race(leaves);
    make_ready(&leaves[1], 5);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[2], 77);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[0], -ECANCELED);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
    assert_int_equal(leaves[2].future.result, 77);
    assert_int_equal(leaves[0].future.result, -ECANCELED);
    end_quietly(rt);
}

static void who_is_ready_at_once_wins_before_the_others_start(void **state)
{
    struct leaf leaves[RUNNERS] = {{.polls = 0},
                                   {.ready = true, .value = 9},
                                   {.ready = true, .value = 8}};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_race(leaves);
    assert_int_equal(result_of(&handle), 1);
    assert_int_equal(leaves[0].cancels, 1);
    assert_int_equal(leaves[0].future.result, -ECANCELED);
    assert_int_equal(leaves[2].polls, 0);
    assert_int_equal(leaves[2].cancels, 0);
    assert_int_equal(leaves[2].future.result, -ECANCELED);
    end_quietly(rt);
}

static void of_several_at_once_the_first_in_the_list_wins(void **state)
{
    struct leaf leaves[RUNNERS] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_race(leaves);
    make_ready(&leaves[2], 3);
    make_ready(&leaves[1], 2);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
    assert_int_equal(leaves[2].future.result, 3); /* came all the same */
    end_quietly(rt);
}

static void a_cancelled_race_ends_all_branches(void **state)
{
    struct leaf leaves[RUNNERS] = {{.polls = 0}, {.stubborn = true}, {.polls = 0}};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_race(leaves);
    blz_handle_cancel(&handle);
    turn_all(rt);
    for (int i = 0; i < RUNNERS; i++)
        assert_int_equal(leaves[i].cancels, 1);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[1], -ECANCELED);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    end_quietly(rt);
}

static void a_result_that_comes_in_spite_of_a_cancel_wins(void **state)
{
    struct leaf leaves[RUNNERS] = {{.polls = 0}, {.stubborn = true}, {.polls = 0}};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_race(leaves);
    blz_handle_cancel(&handle);
    turn_all(rt);
    make_ready(&leaves[1], 512);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
    end_quietly(rt);
}

static void a_race_in_a_cancelled_scope_starts_nobody(void **state)
{
    struct leaf leaves[RUNNERS] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, racer, .leaves = leaves), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    for (int i = 0; i < RUNNERS; i++) {
        assert_int_equal(leaves[i].polls, 0);
        assert_int_equal(leaves[i].future.result, -ECANCELED);
    }
    end_quietly(rt);
}

/* ---- races of many, of none, in races ---- */

struct crowd {
    BLZ_FRAME;
    struct leaf *leaves;
    size_t count;
    blz_future *branches[BLZ_BRANCHES_MAX + 1];
    int64_t rc;
    blz_race_op race;
};

static blz_future *make_crowd(struct crowd *self)
{
    for (size_t i = 0; i < self->count; i++)
        self->branches[i] = make_leaf(&self->leaves[i]);
    return blz_race_array(&self->race, self->branches, self->count);
}

BLZ_ASYNC(crowd)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_crowd(self));
    BLZ_END(self->rc);
}

static void sixty_four_can_race(void **state)
{
    struct leaf leaves[BLZ_BRANCHES_MAX] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, crowd, .leaves = leaves, .count = 64), 0);
    turn_all(rt);
    make_ready(&leaves[63], 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 63);
    for (int i = 0; i < 63; i++)
        assert_int_equal(leaves[i].cancels, 1);
    end_quietly(rt);
}

static void nobody_or_too_many_cannot_race(void **state)
{
    struct leaf leaves[BLZ_BRANCHES_MAX + 1] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, crowd, .leaves = leaves, .count = 0), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EINVAL);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, crowd, .leaves = leaves, .count = 65), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -E2BIG);
    assert_int_equal(leaves[0].polls, 0);
    assert_int_equal(leaves[64].future.result, -E2BIG);
    end_quietly(rt);
}

struct heats {
    BLZ_FRAME;
    struct leaf *leaves;
    int64_t rc;
    blz_race_op heat[2], final;
    blz_sleep_op nap;
    blz_timeout limit;
};

BLZ_ASYNC(heats)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, 100 * MS,
                               blz_race(&self->final,
                                        blz_race(&self->heat[0], make_leaf(&self->leaves[0]),
                                                 make_leaf(&self->leaves[1])),
                                        blz_race(&self->heat[1], make_leaf(&self->leaves[2]),
                                                 blz_sleep(&self->nap, 50 * MS)))));
    BLZ_END(self->rc);
}

static void races_nest(void **state)
{
    struct leaf first[RUNNERS] = {0}, second[RUNNERS] = {0}, third[RUNNERS] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, heats, .leaves = first), 0);
    turn_all(rt);
    make_ready(&first[1], 6);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    assert_int_equal(first[2].future.result, -ECANCELED);

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, heats, .leaves = second), 0);
    turn_all(rt);
    advance(rt, 50 * MS);
    assert_int_equal(result_of(&handle), 1);

    third[0].stubborn = third[2].stubborn = true;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, heats, .leaves = third), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(third[0].cancels, 1);
    assert_int_equal(third[2].cancels, 1);
    make_ready(&third[0], -ECANCELED);
    make_ready(&third[2], -ECANCELED);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    end_quietly(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_wins_and_the_others_end),
        TEST(losers_are_waited_for_and_keep_their_results),
        TEST(who_is_ready_at_once_wins_before_the_others_start),
        TEST(of_several_at_once_the_first_in_the_list_wins),
        TEST(a_cancelled_race_ends_all_branches),
        TEST(a_result_that_comes_in_spite_of_a_cancel_wins),
        TEST(a_race_in_a_cancelled_scope_starts_nobody),
        TEST(sixty_four_can_race),
        TEST(nobody_or_too_many_cannot_race),
        TEST(races_nest),
    };
    return RUN_TESTS(tests);
}
