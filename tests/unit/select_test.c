/* SPDX-License-Identifier: Apache-2.0 */
/* Select: who is chosen, and what becomes of the others. (What all combinators share: branches.) */
#include "crowd.h"

static blz_rt *rt;

enum { FEW = 3, ROUNDS = 3000 };

static int64_t select_once(combinator *make, struct leaf *leaves, size_t count)
{
    blz_branches op = {0};
    blz_handle handle = start_crowd(rt, make, &op, leaves, count);

    end_crowd(rt, leaves, count);
    return result_of(&handle);
}

/* ---- who is chosen ---- */

/* The same numbers in every run. */
static blz_rt *new_seeded_rt(void)
{
    return new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .seed = 1});
}

/* By chance, whose bounds are nine deviations wide. */
static void assert_even(const int *wins, int count, int rounds)
{
    for (int i = 0; i < count; i++)
        assert_in_range(wins[i], rounds / count - rounds / 12, rounds / count + rounds / 12);
}

static void of_several_ready_at_once_each_is_chosen_as_often(void **state)
{
    int wins[FEW] = {0};

    (void)state;
    rt = new_seeded_rt();
    for (int round = 0; round < ROUNDS; round++) {
        struct leaf leaves[FEW] = {{.ready = true}, {.ready = true}, {.ready = true}};
        wins[select_once(blz_select_array, leaves, FEW)]++;
    }
    assert_even(wins, FEW, ROUNDS);
    free_rt(rt);
}

static void of_several_woken_at_once_each_is_chosen_as_often(void **state)
{
    int wins[FEW] = {0};

    (void)state;
    rt = new_seeded_rt();
    for (int round = 0; round < ROUNDS; round++) {
        struct leaf leaves[FEW + 2] = {0};
        blz_branches op = {0};
        blz_handle handle = start_crowd(rt, blz_select_array, &op, leaves, FEW + 2);

        make_ready(&leaves[0], 0);
        make_ready(&leaves[3], 0);
        make_ready(&leaves[4], 0);
        turn_all(rt);
        int64_t chosen = result_of(&handle);
        wins[chosen == 0 ? 0 : chosen - 2]++;
        assert_true(chosen != 1 && chosen != 2);
    }
    assert_even(wins, FEW, ROUNDS);
    free_rt(rt);
}

static void a_biased_select_and_a_race_choose_the_first_in_the_list(void **state)
{
    combinator *const biased[] = {blz_select_biased_array, blz_race_array};

    (void)state;
    rt = new_clock_rt(true);
    for (int round = 0; round < 200; round++) {
        struct leaf at_once[FEW] = {{.polls = 0}, {.ready = true}, {.ready = true}};
        struct leaf later[FEW] = {0};
        blz_branches op = {0};
        blz_handle handle;

        assert_int_equal(select_once(biased[round % 2], at_once, FEW), 1);
        assert_int_equal(at_once[2].polls, 0);
        handle = start_crowd(rt, biased[round % 2], &op, later, FEW);
        make_ready(&later[2], 0);
        make_ready(&later[1], 0);
        turn_all(rt);
        assert_int_equal(result_of(&handle), 1);
        assert_int_equal(op.first, 1);
    }
    end_quietly(rt);
}

static void the_only_one_that_is_ready_is_chosen(void **state)
{
    (void)state;
    rt = new_clock_rt(true);
    for (int i = 0; i < BLZ_BRANCHES_MAX; i++) {
        struct leaf leaves[BLZ_BRANCHES_MAX] = {0};
        blz_branches op = {0};
        blz_handle handle = start_crowd(rt, blz_select_array, &op, leaves, BLZ_BRANCHES_MAX);

        make_ready(&leaves[i], 1000 + i);
        turn_all(rt);
        assert_int_equal(result_of(&handle), i);
        assert_int_equal(leaves[i].future.result, 1000 + i);
        assert_int_equal(leaves[i].cancels, 0);
        for (int j = 0; j < BLZ_BRANCHES_MAX; j++)
            if (j != i) {
                assert_int_equal(leaves[j].cancels, 1);
                assert_int_equal(leaves[j].future.result, -ECANCELED);
            }
    }
    end_quietly(rt);
}

/* ---- the others ---- */

static void branches_that_were_not_started_are_not(void **state)
{
    bool started[FEW] = {false};

    (void)state;
    rt = new_clock_rt(true);
    for (int round = 0; round < 100; round++) {
        struct leaf leaves[FEW] = {{.polls = 0}, {.ready = true}, {.polls = 0}};

        assert_int_equal(select_once(blz_select_array, leaves, FEW), 1);
        for (int i = 0; i < FEW; i++) {
            started[i] |= leaves[i].polls > 0;
            assert_int_equal(leaves[i].cancels, i != 1 && leaves[i].polls > 0);
            assert_int_equal(leaves[i].future.result, i == 1 ? 0 : -ECANCELED);
        }
    }
    assert_true(started[0] && started[2]); /* sometimes: the order is not that of the list */
    end_quietly(rt);
}

static void losers_are_awaited_and_their_results_can_be_read(void **state)
{
    struct leaf leaves[FEW] = {{.stubborn = true}, {.polls = 0}, {.stubborn = true}};
    blz_branches op = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    handle = start_crowd(rt, blz_select_array, &op, leaves, FEW);
    make_ready(&leaves[1], 5);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[2], 77); /* after it was told: this came all the same */
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[0], -EIO);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
    assert_int_equal(leaves[0].future.result, -EIO);
    assert_int_equal(leaves[2].future.result, 77);
    end_quietly(rt);
}

/* ---- real futures ---- */

struct listener {
    BLZ_FRAME;
    blz_oneshot *channels; /* two of them */
    int64_t rc;
    int64_t first, second;
    blz_oneshot_op waits[2];
    int64_t value;
    blz_sleep_op nap;
    blz_select_op select;
};

BLZ_ASYNC(listener)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_select(&self->select,
                                   blz_oneshot_recv(&self->waits[0], self->channels, &self->value),
                                   blz_sleep(&self->nap, 10 * MS)));
    self->first = self->rc;
    BLZ_AWAIT(self->rc, blz_select_biased(&self->select, blz_sleep(&self->nap, 10 * MS),
                                          blz_oneshot_recv(&self->waits[1], self->channels + 1,
                                                           &self->value)));
    self->second = self->rc;
    BLZ_END(self->first * 10 + self->second);
}

static void messages_and_timers_are_selected(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        blz_oneshot channels[2];
        blz_handle handle;

        rt = new_clock_rt(true);
        blz_oneshot_init(&channels[0]);
        blz_oneshot_init(&channels[1]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, listener, .channels = channels), 0);
        turn_all(rt);
        for (int j = 0; j < 2; j++) {
            if (i >> j & 1)
                assert_int_equal(blz_oneshot_send(&channels[j], 1), 0);
            else
                assert_int_equal(blz_clock_advance(rt, 10 * MS), 0);
            turn_all(rt);
        }
        assert_int_equal(result_of(&handle), (i & 1 ? 0 : 10) + (i & 2 ? 1 : 0));
        end_quietly(rt);
    }
}

/* ---- on a thread ---- */

static void *send_soon(void *channel)
{
    check(blz_oneshot_send(channel, 9) == 0);
    return NULL;
}

static void a_thread_can_select(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        blz_oneshot channels[2] = {BLZ_ONESHOT_INIT, BLZ_ONESHOT_INIT};
        blz_oneshot_op waits[2] = {0};
        int64_t values[2] = {0};
        blz_select_op select = {0};
        pthread_t sender = start_thread(send_soon, &channels[i]);

        assert_int_equal(
            blz_wait(blz_select(&select, blz_oneshot_recv(&waits[0], &channels[0], &values[0]),
                                blz_oneshot_recv(&waits[1], &channels[1], &values[1]))),
            i);
        assert_int_equal(values[i], 9);
        assert_int_equal(waits[!i].future.result, -ECANCELED);
        join_thread(sender);
    }
}

/* ---- a set of tasks ---- */

struct nursery {
    BLZ_FRAME;
    struct gate *gates; /* FEW */
    struct leaf *bell;  /* rung again and again */
    int rings;
    int64_t rc, sum;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle child;
    blz_select_op select;
};

static void note_child(struct nursery *self)
{
    self->sum = 10 * self->sum + self->child.result;
    blz_handle_detach(&self->child);
}

BLZ_ASYNC(nursery)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < FEW; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, enters, .gate = &self->gates[i]) == 0);
    for (;;) {
        self->bell->ready = false;
        BLZ_AWAIT(self->rc,
                  blz_select(&self->select, blz_scope_next(&self->wait, &self->scope, &self->child),
                             make_leaf(self->bell)));
        if (self->wait.future.result == 1)
            note_child(self);
        else if (self->wait.future.result == 0)
            break;
        self->rings += self->bell->future.result >= 0;
    }
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(1000 * self->rings + self->sum);
}

static void tasks_are_taken_as_they_end_among_other_things(void **state)
{
    struct gate gates[FEW] = {GATE_INIT, GATE_INIT, GATE_INIT};
    struct leaf bell = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, nursery, .gates = gates, .bell = &bell), 0);
    turn_all(rt);
    for (int i = 0; i < FEW; i++) {
        make_ready(&bell, 0); /* the children do not care */
        turn_all(rt);
        gate_open(&gates[(i + 1) % FEW], (i + 1) % FEW);
        turn_all(rt);
    }
    assert_int_equal(result_of(&handle), 3120);
    end_quietly(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_several_ready_at_once_each_is_chosen_as_often),
        TEST(of_several_woken_at_once_each_is_chosen_as_often),
        TEST(a_biased_select_and_a_race_choose_the_first_in_the_list),
        TEST(the_only_one_that_is_ready_is_chosen),
        TEST(branches_that_were_not_started_are_not),
        TEST(losers_are_awaited_and_their_results_can_be_read),
        TEST(messages_and_timers_are_selected),
        TEST(a_thread_can_select),
        TEST(tasks_are_taken_as_they_end_among_other_things),
    };
    return RUN_TESTS(tests);
}
