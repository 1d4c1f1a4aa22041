/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: rounds, leaders, parties that do not wait, leave, or are cancelled; threads. */
#include "harness.h"

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

struct arrives {
    BLZ_FRAME;
    blz_barrier *barrier;
    int rounds;
    int64_t rc, led;
    blz_barrier_op wait;
};

/* Ends with how often it was the leader. */
BLZ_ASYNC(arrives)
{
    BLZ_BEGIN;
    while (self->rounds-- > 0) {
        BLZ_AWAIT(self->rc, blz_barrier_arrive(&self->wait, self->barrier));
        if (self->rc < 0)
            break;
        self->led += self->rc;
    }
    BLZ_END(self->rc < 0 ? self->rc : self->led);
}

static void spawn(blz_rt *rt, blz_handle *handle, blz_barrier *barrier, int rounds)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, arrives, .barrier = barrier, .rounds = rounds), 0);
    turn_all(rt);
}

static void a_barrier_of_nobody_is_refused(void **state)
{
    blz_barrier barrier;

    (void)state;
    assert_int_equal(blz_barrier_init(&barrier, 0), -EINVAL);
}

static void a_lone_party_leads_every_round(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(1);
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    spawn(rt, &handle, &barrier, 1000); /* and lets others run in between: the budget */
    assert_int_equal(result_of(&handle), 1000);
    assert_int_equal(blz_barrier_rounds(&barrier), 1000);
    free_rt(rt);
}

static void nobody_goes_on_before_all_are_there(void **state)
{
    blz_barrier barrier;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[5];

    (void)state;
    assert_int_equal(blz_barrier_init(&barrier, 5), 0);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < i; j++)
            assert_false(blz_handle_done(&handles[j]));
        spawn(rt, &handles[i], &barrier, 1);
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(result_of(&handles[i]), i == 4); /* the last to come leads */
    free_rt(rt);
}

static void each_of_many_rounds_has_one_leader(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(3);
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];
    int64_t led = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        spawn(rt, &handles[i], &barrier, 100);
    for (int i = 0; i < 3; i++)
        led += result_of(&handles[i]);
    assert_int_equal(led, 100);
    assert_int_equal(blz_barrier_rounds(&barrier), 100);
    free_rt(rt);
}

static void who_tries_arrives_only_as_the_last(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(2);
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_barrier_try_arrive(&barrier), -EAGAIN);
    assert_int_equal(blz_barrier_try_arrive(&barrier), -EAGAIN);
    spawn(rt, &handle, &barrier, 1);
    assert_int_equal(blz_barrier_try_arrive(&barrier), 1);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void who_signals_is_counted_and_does_not_wait(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(3);
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_barrier_signal(&barrier), 0);
    spawn(rt, &handle, &barrier, 1);
    assert_int_equal(blz_barrier_signal(&barrier), 1);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    assert_int_equal(blz_barrier_signal(&barrier), 0); /* the next round */
    free_rt(rt);
}

static void a_cancelled_arrival_is_taken_back(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(3);
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[4];

    (void)state;
    spawn(rt, &handles[0], &barrier, 1);
    spawn(rt, &handles[1], &barrier, 1);
    blz_handle_cancel(&handles[0]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), -ECANCELED);
    spawn(rt, &handles[2], &barrier, 1);
    assert_false(blz_handle_done(&handles[1])); /* two are there */
    spawn(rt, &handles[3], &barrier, 1);
    for (int i = 1; i < 4; i++)
        assert_int_equal(result_of(&handles[i]), i == 3);
    free_rt(rt);
}

static void a_round_that_is_over_stands(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(2);
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    spawn(rt, &handle, &barrier, 1);
    assert_int_equal(blz_barrier_signal(&barrier), 1);
    blz_handle_cancel(&handle); /* before it has run */
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    assert_int_equal(blz_barrier_try_arrive(&barrier), -EAGAIN);
    free_rt(rt);
}

static void who_leaves_lets_the_others_go_on(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(4);
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[2];

    (void)state;
    blz_barrier_leave(&barrier); /* before anyone is there: three are left */
    spawn(rt, &handles[0], &barrier, 2);
    spawn(rt, &handles[1], &barrier, 2);
    assert_int_equal(blz_barrier_rounds(&barrier), 0);
    blz_barrier_leave(&barrier); /* the last that was missing */
    turn_all(rt);
    assert_int_equal(blz_barrier_rounds(&barrier), 2); /* the second round is of two */
    assert_int_equal(result_of(&handles[0]) + result_of(&handles[1]), 2);
    free_rt(rt);
}

static void who_leaves_makes_the_first_the_leader(void **state)
{
    blz_barrier barrier = BLZ_BARRIER_INIT(3);
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[2];

    (void)state;
    spawn(rt, &handles[0], &barrier, 1);
    spawn(rt, &handles[1], &barrier, 1);
    blz_barrier_leave(&barrier);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), 1);
    assert_int_equal(result_of(&handles[1]), 0);
    free_rt(rt);
}

/* ---- threads ---- */

enum { THREADS = 3, ROUNDS = 300 };

struct meeting {
    blz_barrier barrier;
    int64_t led;         /* atomic */
    int counts[THREADS]; /* how many rounds each has begun: written by one, read by all */
};

struct party {
    struct meeting *meeting;
    int me;
};

static void *meet(void *arg)
{
    struct party *party = arg;
    struct meeting *meeting = party->meeting;

    for (int round = 1; round <= ROUNDS; round++) {
        meeting->counts[party->me] = round;
        int64_t rc = blz_barrier_arrive_wait(&meeting->barrier);
        check(rc == 0 || rc == 1);
        __atomic_fetch_add(&meeting->led, rc, __ATOMIC_RELAXED);
        for (int i = 0; i < THREADS; i++)
            check(meeting->counts[i] == round);
        check(blz_barrier_arrive_wait(&meeting->barrier) >= 0); /* all have looked */
    }
    return NULL;
}

static void threads_meet(void **state)
{
    static struct meeting meeting;
    struct party parties[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    meeting.barrier = (blz_barrier)BLZ_BARRIER_INIT(THREADS);
    meeting.led = 0;
    for (int i = 0; i < THREADS; i++) {
        parties[i] = (struct party){&meeting, i};
        threads[i] = start_thread(meet, &parties[i]);
    }
    for (int i = 0; i < THREADS; i++)
        join_thread(threads[i]);
    assert_int_equal(meeting.led, ROUNDS);
    assert_int_equal(blz_barrier_rounds(&meeting.barrier), 2 * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_barrier_of_nobody_is_refused),
        TEST(a_lone_party_leads_every_round),
        TEST(nobody_goes_on_before_all_are_there),
        TEST(each_of_many_rounds_has_one_leader),
        TEST(who_tries_arrives_only_as_the_last),
        TEST(who_signals_is_counted_and_does_not_wait),
        TEST(a_cancelled_arrival_is_taken_back),
        TEST(a_round_that_is_over_stands),
        TEST(who_leaves_lets_the_others_go_on),
        TEST(who_leaves_makes_the_first_the_leader),
        TEST(threads_meet),
    };
    return RUN_TESTS(tests);
}
