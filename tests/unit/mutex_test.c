/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes: order, how often the first may be passed, cancellation at every moment, misuse. */
#include "in_line.h"

#include <signal.h>
#include <unistd.h>

enum { MANY = 100 };

static blz_mutex mutex;
static blz_mutex_op ops[MANY];

static void begin(void)
{
    begin_line();
    blz_mutex_init(&mutex);
}

/* The i-th of a test wants it. */
static void want(struct in_line *who, int i)
{
    join_line(who, blz_mutex_lock(&ops[i], &mutex));
}

static void pass(void)
{
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    blz_mutex_unlock(&mutex);
}

/* Nobody waits, and it can be had. */
static void end(void)
{
    pass();
    assert_false(blz_mutex_is_locked(&mutex));
    assert_null(mutex.waiters.first);
    assert_int_equal(mutex.word, 0);
    end_line();
}

/* ---- locking and unlocking ---- */

static void it_is_locked_and_unlocked(void **state)
{
    blz_mutex m = BLZ_MUTEX_INIT;

    (void)state;
    assert_false(blz_mutex_is_locked(&m));
    assert_int_equal(blz_mutex_try_lock(&m), 0);
    assert_true(blz_mutex_is_locked(&m));
    assert_int_equal(blz_mutex_try_lock(&m), -EAGAIN);
    blz_mutex_unlock(&m);
    assert_int_equal(blz_mutex_try_lock(&m), 0);
    blz_mutex_unlock(&m);
}

static void a_free_one_is_had_at_once(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    want(&a, 0);
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(blz_mutex_try_lock(&mutex), -EAGAIN);
    blz_mutex_unlock(&mutex);
    end();
}

static void it_is_had_in_order(void **state)
{
    static struct in_line who[MANY];

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    for (int i = 0; i < MANY; i++)
        want(&who[i], i);
    for (int i = 0; i < MANY; i++) {
        assert_true(is_waiting(&who[i]));
        blz_mutex_unlock(&mutex);
        assert_int_equal(outcome_of(&who[i]), 0);
        assert_int_equal(who[i].turn, i + 1);
    }
    blz_mutex_unlock(&mutex);
    end();
}

static void *unlock(void *arg)
{
    blz_mutex_unlock(arg);
    return NULL;
}

static void it_may_be_unlocked_by_another_thread(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    want(&a, 0);
    assert_int_equal(outcome_of(&a), 0);
    join_thread(start_thread(unlock, &mutex));
    end();
}

/* ---- passing ---- */

static void the_first_in_line_is_passed_a_few_times_only(void **state)
{
    struct in_line a, b;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    want(&b, 1);
    blz_mutex_unlock(&mutex); /* calls it, and it has not come yet */
    for (int i = 0; i < BLZ_MUTEX_PASSES; i++)
        pass();
    assert_int_equal(blz_mutex_try_lock(&mutex), -EAGAIN);
    assert_int_equal(outcome_of(&a), 0);
    assert_true(is_waiting(&b));
    blz_mutex_unlock(&mutex);
    for (int i = 0; i < BLZ_MUTEX_PASSES; i++)
        pass(); /* from the beginning, for the next one */
    assert_int_equal(blz_mutex_try_lock(&mutex), -EAGAIN);
    assert_int_equal(outcome_of(&b), 0);
    blz_mutex_unlock(&mutex);
    end();
}

/* It comes for nothing once; after that the mutex is given into its hands. */
static void who_comes_and_finds_it_taken_is_next(void **state)
{
    struct in_line a, b;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    want(&b, 1);
    blz_mutex_unlock(&mutex);
    assert_int_equal(blz_mutex_try_lock(&mutex), 0); /* passes */
    assert_true(is_waiting(&a));
    blz_mutex_unlock(&mutex);
    assert_int_equal(blz_mutex_try_lock(&mutex), -EAGAIN); /* though it has not run yet */
    assert_true(blz_mutex_is_locked(&mutex));
    assert_int_equal(outcome_of(&a), 0);
    blz_mutex_unlock(&mutex);
    assert_int_equal(outcome_of(&b), 0);
    blz_mutex_unlock(&mutex);
    end();
}

/* Who comes when no more may pass queues behind the one that is coming, and is not forgotten. */
static void who_may_not_pass_is_called_in_turn(void **state)
{
    struct in_line a, late;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    blz_mutex_unlock(&mutex);
    for (int i = 0; i < BLZ_MUTEX_PASSES; i++)
        pass();
    spawn_line(&late, blz_mutex_lock(&ops[1], &mutex));
    assert_int_equal(outcome_of(&a), 0);
    assert_true(is_waiting(&late));
    blz_mutex_unlock(&mutex);
    assert_int_equal(outcome_of(&late), 0);
    blz_mutex_unlock(&mutex);
    end();
}

/* ---- cancelling ---- */

static void who_waits_can_be_cancelled(void **state)
{
    struct in_line a, b, c;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    want(&b, 1);
    want(&c, 2);
    assert_int_equal(outcome_of_cancel(&b), -ECANCELED);
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    blz_mutex_unlock(&mutex);
    assert_int_equal(outcome_of(&c), 0);
    blz_mutex_unlock(&mutex);
    end();
}

static void the_last_one_to_be_cancelled_leaves_it_as_it_was(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    blz_mutex_unlock(&mutex);
    end();
}

static void who_is_cancelled_on_its_way_calls_the_next(void **state)
{
    struct in_line a, b;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    want(&b, 1);
    blz_mutex_unlock(&mutex);
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    assert_int_equal(outcome_of(&b), 0);
    blz_mutex_unlock(&mutex);
    end();
}

/* The next one is not called then: whoever has it will do that. */
static void who_is_cancelled_on_its_way_to_a_taken_mutex_leaves_the_rest_to_its_holder(void **state)
{
    struct in_line a, b;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    want(&b, 1);
    blz_mutex_unlock(&mutex);
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    assert_true(is_waiting(&b));
    blz_mutex_unlock(&mutex);
    assert_int_equal(outcome_of(&b), 0);
    blz_mutex_unlock(&mutex);
    end();
}

/* With nobody else in line the passes are forgotten, or it would stay closed for ever. */
static void the_one_who_was_passed_gives_up_and_it_opens_again(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    blz_mutex_unlock(&mutex);
    for (int i = 0; i < BLZ_MUTEX_PASSES; i++)
        pass();
    assert_int_equal(blz_mutex_try_lock(&mutex), -EAGAIN);
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    end();
}

static void who_was_due_and_is_cancelled_leaves_it_to_the_next(void **state)
{
    struct in_line a, b;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    want(&b, 1);
    blz_mutex_unlock(&mutex);
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    assert_true(is_waiting(&a)); /* it has come, and is due */
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    blz_mutex_unlock(&mutex);
    assert_int_equal(outcome_of(&b), 0);
    blz_mutex_unlock(&mutex);
    end();
}

static void a_cancel_after_the_hand_over_comes_too_late(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    want(&a, 0);
    blz_mutex_unlock(&mutex);
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    assert_true(is_waiting(&a));
    blz_mutex_unlock(&mutex); /* into its hands */
    assert_int_equal(outcome_of_cancel(&a), 0);
    assert_true(blz_mutex_is_locked(&mutex));
    blz_mutex_unlock(&mutex);
    end();
}

static void who_is_cancelled_before_its_first_poll_does_not_lock(void **state)
{
    struct in_line a;

    (void)state;
    begin();
    spawn_line(&a, blz_mutex_lock(&ops[0], &mutex));
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    end();
}

struct twice {
    BLZ_FRAME;
    int64_t rc;
    blz_race_op race;
    blz_mutex_op a, b;
};

BLZ_ASYNC(twice)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_race(&self->race, blz_mutex_lock(&self->a, &mutex),
                                 blz_mutex_lock(&self->b, &mutex)));
    check((self->a.future.result == 0) != (self->b.future.result == 0));
    blz_mutex_unlock(&mutex);
    BLZ_END(self->rc);
}

static void one_task_may_want_it_twice(void **state)
{
    blz_handle handle;

    (void)state;
    begin();
    assert_int_equal(blz_mutex_try_lock(&mutex), 0);
    assert_int_equal(BLZ_SPAWN_ON(line_rt, &handle, twice), 0);
    turn_all(line_rt);
    blz_mutex_unlock(&mutex);
    turn_all(line_rt);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 0);
    end();
}

/* ---- the budget, threads, misuse ---- */

struct greedy {
    BLZ_FRAME;
    const bool *enough;
    int64_t rc;
    blz_mutex_op op;
};

BLZ_ASYNC(greedy)
{
    BLZ_BEGIN;
    while (!*self->enough) {
        BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, &mutex));
        blz_mutex_unlock(&mutex);
    }
    BLZ_END(0);
}

static int64_t set(void *flag)
{
    *(bool *)flag = true;
    return 0;
}

static void a_loop_of_locks_lets_others_run(void **state)
{
    bool enough = false;

    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(line_rt, NULL, greedy, .enough = &enough), 0);
    assert_int_equal(BLZ_SPAWN_ON(line_rt, NULL, calls, .fn = set, .arg = &enough), 0);
    turn_all(line_rt);
    end();
}

static void *lock_and_unlock(void *arg)
{
    check(blz_mutex_lock_wait(arg) == 0);
    blz_mutex_unlock(arg);
    return NULL;
}

static void threads_take_turns(void **state)
{
    blz_mutex m = BLZ_MUTEX_INIT;
    pthread_t threads[3];

    (void)state;
    assert_int_equal(blz_mutex_lock_wait(&m), 0);
    for (int i = 0; i < 3; i++)
        threads[i] = start_thread(lock_and_unlock, &m);
    blz_mutex_unlock(&m);
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    assert_int_equal(m.word, 0);
}

static void a_thread_can_give_up(void **state)
{
    blz_mutex m = BLZ_MUTEX_INIT;
    blz_mutex_op op = {0};

    (void)state;
    assert_int_equal(blz_mutex_try_lock(&m), 0);
    assert_int_equal(blz_wait_until(blz_mutex_lock(&op, &m), 0), -ETIMEDOUT);
    blz_mutex_unlock(&m);
    assert_int_equal(m.word, 0);
}

static void unlocking_what_is_not_locked_aborts(void **state)
{
    (void)state;
    in_own_process("unlock");
}

static void end_well(int signal)
{
    (void)signal;
    _exit(0);
}

/* In a process of its own, which ends well if it aborts. */
static int unlock_an_unlocked_one(void)
{
    blz_mutex m = BLZ_MUTEX_INIT;

    signal(SIGABRT, end_well);
    blz_mutex_unlock(&m);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_locked_and_unlocked),
        TEST(a_free_one_is_had_at_once),
        TEST(it_is_had_in_order),
        TEST(it_may_be_unlocked_by_another_thread),
        TEST(the_first_in_line_is_passed_a_few_times_only),
        TEST(who_comes_and_finds_it_taken_is_next),
        TEST(who_may_not_pass_is_called_in_turn),
        TEST(who_waits_can_be_cancelled),
        TEST(the_last_one_to_be_cancelled_leaves_it_as_it_was),
        TEST(who_is_cancelled_on_its_way_calls_the_next),
        TEST(who_is_cancelled_on_its_way_to_a_taken_mutex_leaves_the_rest_to_its_holder),
        TEST(the_one_who_was_passed_gives_up_and_it_opens_again),
        TEST(who_was_due_and_is_cancelled_leaves_it_to_the_next),
        TEST(a_cancel_after_the_hand_over_comes_too_late),
        TEST(who_is_cancelled_before_its_first_poll_does_not_lock),
        TEST(one_task_may_want_it_twice),
        TEST(a_loop_of_locks_lets_others_run),
        TEST(threads_take_turns),
        TEST(a_thread_can_give_up),
        TEST(unlocking_what_is_not_locked_aborts),
    };

    (void)argv;
    if (argc > 1)
        return unlock_an_unlocked_one();
    return RUN_TESTS(tests);
}
