/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: order, big requests, cancellation at every moment, forgetting, closing, limits. */
#include "in_line.h"

enum { MANY = 1000 };

static blz_semaphore semaphore;
static blz_semaphore_op ops[MANY];

/* The i-th waiter of a test asks for n. */
static void ask(struct in_line *who, int i, uint32_t n)
{
    join_line(who, blz_semaphore_acquire(&ops[i], &semaphore, n));
}

static void begin(uint32_t permits)
{
    begin_line();
    blz_semaphore_init(&semaphore, permits);
}

/* ---- taking and giving ---- */

static void permits_are_taken_and_given_back(void **state)
{
    blz_semaphore s = BLZ_SEMAPHORE_INIT(3);

    (void)state;
    assert_int_equal(blz_semaphore_available(&s), 3);
    assert_int_equal(blz_semaphore_try_acquire(&s, 2), 0);
    assert_int_equal(blz_semaphore_try_acquire(&s, 2), -EAGAIN);
    assert_int_equal(blz_semaphore_available(&s), 1);
    assert_int_equal(blz_semaphore_try_acquire(&s, 1), 0);
    assert_int_equal(blz_semaphore_try_acquire(&s, 1), -EAGAIN);
    assert_int_equal(blz_semaphore_release(&s, 3), 0);
    assert_int_equal(blz_semaphore_available(&s), 3);
    assert_int_equal(blz_semaphore_add(&s, 4), 0);
    assert_int_equal(blz_semaphore_try_acquire(&s, 7), 0);
}

static void free_permits_are_had_at_once(void **state)
{
    struct in_line a;

    (void)state;
    begin(2);
    ask(&a, 0, 2);
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(blz_semaphore_available(&semaphore), 0);
    end_line();
}

static void none_at_all_is_always_had(void **state)
{
    struct in_line a, b;

    (void)state;
    begin(0);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 0), 0);
    ask(&a, 0, 1);
    ask(&b, 1, 0);
    assert_int_equal(outcome_of(&b), 0);
    assert_int_equal(blz_semaphore_release(&semaphore, 0), 0);
    assert_true(is_waiting(&a));
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of(&a), 0);
    end_line();
}

static void waiters_are_served_in_order(void **state)
{
    struct in_line who[4];

    (void)state;
    begin(0);
    for (int i = 0; i < 4; i++)
        ask(&who[i], i, 1);
    for (int i = 0; i < 4; i++) {
        assert_true(is_waiting(&who[i]));
        assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
        assert_int_equal(outcome_of(&who[i]), 0);
        assert_int_equal(who[i].turn, i + 1);
    }
    assert_int_equal(blz_semaphore_available(&semaphore), 0);
    end_line();
}

static void one_release_serves_many(void **state)
{
    static struct in_line who[MANY];

    (void)state;
    begin(0);
    for (int i = 0; i < MANY; i++)
        spawn_line(&who[i], blz_semaphore_acquire(&ops[i], &semaphore, 1));
    assert_true(is_waiting(&who[0]));
    assert_int_equal(blz_semaphore_release(&semaphore, MANY + 5), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(outcome_of(&who[i]), 0);
    assert_int_equal(blz_semaphore_available(&semaphore), 5);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 5), 0);
    end_line();
}

static void a_big_request_is_not_overtaken(void **state)
{
    struct in_line big, small;

    (void)state;
    begin(1);
    ask(&big, 0, 3);
    ask(&small, 1, 1);
    assert_true(is_waiting(&small));
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 1), -EAGAIN);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_true(is_waiting(&big) && is_waiting(&small));
    assert_int_equal(blz_semaphore_available(&semaphore), 2);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of(&big), 0);
    assert_true(is_waiting(&small));
    assert_int_equal(blz_semaphore_release(&semaphore, 3), 0);
    assert_int_equal(outcome_of(&small), 0);
    assert_int_equal(blz_semaphore_available(&semaphore), 2);
    end_line();
}

/* ---- cancelling ---- */

static void permits_gathered_for_a_cancelled_request_serve_those_behind_it(void **state)
{
    struct in_line big, first, second, third;

    (void)state;
    begin(1);
    ask(&big, 0, 4);
    ask(&first, 1, 1);
    ask(&second, 2, 1);
    ask(&third, 3, 1);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of_cancel(&big), -ECANCELED);
    assert_int_equal(outcome_of(&first), 0);
    assert_int_equal(outcome_of(&second), 0);
    assert_true(is_waiting(&third));
    assert_int_equal(blz_semaphore_available(&semaphore), 0);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of(&third), 0);
    end_line();
}

static void the_last_waiter_that_is_cancelled_leaves_all_to_everybody(void **state)
{
    struct in_line big;

    (void)state;
    begin(2);
    ask(&big, 0, 3);
    assert_int_equal(outcome_of_cancel(&big), -ECANCELED);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 2), 0);
    end_line();
}

static void a_waiter_in_the_middle_can_be_cancelled(void **state)
{
    struct in_line a, b, c;

    (void)state;
    begin(0);
    ask(&a, 0, 1);
    ask(&b, 1, 1);
    ask(&c, 2, 1);
    assert_int_equal(outcome_of_cancel(&b), -ECANCELED);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of(&a), 0);
    assert_true(is_waiting(&c));
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of(&c), 0);
    end_line();
}

static void a_cancel_that_comes_too_late_loses_no_permit(void **state)
{
    struct in_line a;

    (void)state;
    begin(0);
    ask(&a, 0, 2);
    assert_int_equal(blz_semaphore_release(&semaphore, 2), 0);
    assert_int_equal(outcome_of_cancel(&a), 0); /* it has them */
    assert_int_equal(blz_semaphore_available(&semaphore), 0);
    end_line();
}

static void who_is_cancelled_before_its_first_poll_takes_nothing(void **state)
{
    struct in_line a;

    (void)state;
    begin(1);
    spawn_line(&a, blz_semaphore_acquire(&ops[0], &semaphore, 1));
    assert_int_equal(outcome_of_cancel(&a), -ECANCELED);
    assert_int_equal(blz_semaphore_available(&semaphore), 1);
    end_line();
}

struct impatient {
    BLZ_FRAME;
    int64_t rc;
    blz_timeout limit;
    blz_semaphore_op op;
};

BLZ_ASYNC(impatient)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, 0, blz_semaphore_acquire(&self->op, &semaphore, 2)));
    BLZ_END(self->rc);
}

static void a_timeout_leaves_the_line(void **state)
{
    (void)state;
    blz_semaphore_init(&semaphore, 1);
    assert_int_equal(BLZ_RUN(impatient), -ETIMEDOUT);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 1), 0);
    assert_int_equal(blz_semaphore_release(&semaphore, 2), 0);
    assert_int_equal(BLZ_RUN(impatient), 0);
    assert_int_equal(blz_semaphore_available(&semaphore), 0);
}

struct two_at_once {
    BLZ_FRAME;
    int64_t rc;
    blz_race_op race;
    blz_semaphore_op a, b;
};

BLZ_ASYNC(two_at_once)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_race(&self->race, blz_semaphore_acquire(&self->a, &semaphore, 1),
                                 blz_semaphore_acquire(&self->b, &semaphore, 1)));
    check(self->a.future.result == 0 || self->b.future.result == 0);
    if (self->a.future.result == 0)
        check(blz_semaphore_release(&semaphore, 1) == 0);
    if (self->b.future.result == 0)
        check(blz_semaphore_release(&semaphore, 1) == 0);
    BLZ_END(self->rc);
}

/* Both are served by one release, or one of them is served after it has lost the race. */
static void one_task_may_wait_twice(void **state)
{
    (void)state;
    for (uint32_t released = 1; released <= 2; released++) {
        blz_handle handle;

        begin(0);
        assert_int_equal(BLZ_SPAWN_ON(line_rt, &handle, two_at_once), 0);
        turn_all(line_rt);
        assert_int_equal(blz_semaphore_release(&semaphore, released), 0);
        turn_all(line_rt);
        assert_int_equal(blz_handle_wait(&handle), 0);
        assert_int_equal(handle.result, 0);
        assert_int_equal(blz_semaphore_available(&semaphore), released);
        end_line();
    }
}

/* ---- forgetting, closing, limits ---- */

static void forgetting_says_how_many_there_were(void **state)
{
    struct in_line a;

    (void)state;
    begin(5);
    assert_int_equal(blz_semaphore_forget(&semaphore, 2), 2);
    assert_int_equal(blz_semaphore_available(&semaphore), 3);
    assert_int_equal(blz_semaphore_forget(&semaphore, UINT32_MAX), 3);
    assert_int_equal(blz_semaphore_forget(&semaphore, 1), 0);
    ask(&a, 0, 2);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(blz_semaphore_forget(&semaphore, 1), 1); /* what was kept for it */
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_true(is_waiting(&a));
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    assert_int_equal(outcome_of(&a), 0);
    end_line();
}

static void a_close_ends_all_waits(void **state)
{
    struct in_line a, b, late;

    (void)state;
    begin(1);
    ask(&a, 0, 2);
    ask(&b, 1, 1);
    assert_false(blz_semaphore_is_closed(&semaphore));
    blz_semaphore_close(&semaphore);
    assert_true(blz_semaphore_is_closed(&semaphore));
    assert_int_equal(outcome_of(&a), -EPIPE);
    assert_int_equal(outcome_of(&b), -EPIPE);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 1), -EPIPE);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 0), -EPIPE);
    ask(&late, 2, 1);
    assert_int_equal(outcome_of(&late), -EPIPE);
    blz_semaphore_close(&semaphore);
    end_line();
}

static void who_was_served_before_the_close_has_its_permits(void **state)
{
    struct in_line a, b;

    (void)state;
    begin(0);
    ask(&a, 0, 1);
    ask(&b, 1, 1);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0);
    blz_semaphore_close(&semaphore);
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(outcome_of(&b), -EPIPE);
    end_line();
}

static void nothing_opens_it_again(void **state)
{
    (void)state;
    blz_semaphore_init(&semaphore, 2);
    blz_semaphore_close(&semaphore);
    assert_int_equal(blz_semaphore_forget(&semaphore, 2), 2);
    assert_int_equal(blz_semaphore_forget(&semaphore, 2), 0);
    assert_true(blz_semaphore_is_closed(&semaphore));
    assert_int_equal(blz_semaphore_release(&semaphore, 2), 0);
    assert_int_equal(blz_semaphore_available(&semaphore), 2);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 1), -EPIPE);
}

static void there_are_never_too_many(void **state)
{
    struct in_line a;

    (void)state;
    begin(BLZ_SEMAPHORE_MAX);
    assert_int_equal(blz_semaphore_release(&semaphore, 1), -EOVERFLOW);
    assert_int_equal(blz_semaphore_available(&semaphore), BLZ_SEMAPHORE_MAX);
    assert_int_equal(blz_semaphore_try_acquire(&semaphore, 1), 0);
    ask(&a, 0, BLZ_SEMAPHORE_MAX);
    assert_int_equal(blz_semaphore_release(&semaphore, 3), 0); /* enough for the waiter, and 2 */
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(blz_semaphore_available(&semaphore), 2);
    assert_int_equal(blz_semaphore_forget(&semaphore, 2), 2);
    ask(&a, 0, 1);
    assert_int_equal(blz_semaphore_release(&semaphore, BLZ_SEMAPHORE_MAX), 0);
    assert_int_equal(outcome_of(&a), 0);
    assert_int_equal(blz_semaphore_forget(&semaphore, UINT32_MAX), BLZ_SEMAPHORE_MAX - 1);
    end_line();
}

/* ---- the budget ---- */

struct greedy {
    BLZ_FRAME;
    const bool *enough;
    int64_t rc;
    blz_semaphore_op op;
};

BLZ_ASYNC(greedy)
{
    BLZ_BEGIN;
    while (!*self->enough) {
        BLZ_AWAIT(self->rc, blz_semaphore_acquire(&self->op, &semaphore, 1));
        check(blz_semaphore_release(&semaphore, 1) == 0);
    }
    BLZ_END(0);
}

struct sets {
    BLZ_FRAME;
    bool *flag;
};

BLZ_ASYNC(sets)
{
    BLZ_BEGIN;
    *self->flag = true;
    BLZ_END(0);
}

static void a_loop_of_acquires_lets_others_run(void **state)
{
    bool enough = false;
    blz_handle handle;

    (void)state;
    begin(1);
    assert_int_equal(BLZ_SPAWN_ON(line_rt, &handle, greedy, .enough = &enough), 0);
    assert_int_equal(BLZ_SPAWN_ON(line_rt, NULL, sets, .flag = &enough), 0);
    turn_all(line_rt);
    assert_int_equal(blz_handle_wait(&handle), 0);
    end_line();
}

/* ---- threads ---- */

static void *acquire_two(void *arg)
{
    check(blz_semaphore_acquire_wait(arg, 2) == 0);
    return NULL;
}

static void a_thread_can_wait(void **state)
{
    blz_semaphore s = BLZ_SEMAPHORE_INIT(1);
    pthread_t thread = start_thread(acquire_two, &s);

    (void)state;
    assert_int_equal(blz_semaphore_release(&s, 1), 0);
    join_thread(thread);
    assert_int_equal(blz_semaphore_available(&s), 0);
}

static void a_thread_can_give_up(void **state)
{
    blz_semaphore s = BLZ_SEMAPHORE_INIT(1);
    blz_semaphore_op op = {0};

    (void)state;
    assert_int_equal(blz_wait_until(blz_semaphore_acquire(&op, &s, 2), 0), -ETIMEDOUT);
    assert_int_equal(blz_semaphore_try_acquire(&s, 1), 0);
}

static int64_t wait_on_a_worker(void *arg)
{
    return blz_semaphore_acquire_wait(arg, 1);
}

static void a_worker_does_not_wait(void **state)
{
    blz_semaphore s = BLZ_SEMAPHORE_INIT(1);

    (void)state;
    assert_int_equal(BLZ_RUN(calls, .fn = wait_on_a_worker, .arg = &s), -EDEADLK);
    assert_int_equal(blz_semaphore_available(&s), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(permits_are_taken_and_given_back),
        TEST(free_permits_are_had_at_once),
        TEST(none_at_all_is_always_had),
        TEST(waiters_are_served_in_order),
        TEST(one_release_serves_many),
        TEST(a_big_request_is_not_overtaken),
        TEST(permits_gathered_for_a_cancelled_request_serve_those_behind_it),
        TEST(the_last_waiter_that_is_cancelled_leaves_all_to_everybody),
        TEST(a_waiter_in_the_middle_can_be_cancelled),
        TEST(a_cancel_that_comes_too_late_loses_no_permit),
        TEST(who_is_cancelled_before_its_first_poll_takes_nothing),
        TEST(a_timeout_leaves_the_line),
        TEST(one_task_may_wait_twice),
        TEST(forgetting_says_how_many_there_were),
        TEST(a_close_ends_all_waits),
        TEST(who_was_served_before_the_close_has_its_permits),
        TEST(nothing_opens_it_again),
        TEST(there_are_never_too_many),
        TEST(a_loop_of_acquires_lets_others_run),
        TEST(a_thread_can_wait),
        TEST(a_thread_can_give_up),
        TEST(a_worker_does_not_wait),
    };
    return RUN_TESTS(tests);
}
