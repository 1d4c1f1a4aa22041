/* SPDX-License-Identifier: Apache-2.0 */
/* Once: made by the first, failing and retried, handed over when cancelled, set by hand, boxes. */
#include "harness.h"

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* Makes what the gate gives, when it opens. */
struct makes {
    BLZ_FRAME;
    struct gate *gate;
    int *calls;
    int64_t rc;
    struct gate_wait wait;
};

BLZ_ASYNC(makes)
{
    BLZ_BEGIN;
    ++*self->calls;
    BLZ_AWAIT(self->rc, gate_enter(&self->wait, self->gate));
    BLZ_END(self->rc);
}

struct gets {
    BLZ_FRAME;
    blz_once *once;
    struct gate *gate; /* NULL: only waits */
    int *calls;
    blz_handle *victim; /* is cancelled as soon as we have our result */
    int64_t rc;
    struct makes makes;
    blz_once_op get;
};

BLZ_ASYNC(gets)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_once_get(&self->get, self->once,
                                     self->gate ? BLZ_FUTURE(self->makes, makes, .gate = self->gate,
                                                             .calls = self->calls)
                                                : NULL));
    if (self->victim)
        blz_handle_cancel(self->victim);
    BLZ_END(self->rc);
}

static void get(blz_rt *rt, blz_handle *handle, blz_once *once, struct gate *gate, int *calls)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, gets, .once = once, .gate = gate, .calls = calls), 0);
    turn_all(rt);
}

static void the_first_makes_the_value_for_all(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[5];
    int calls = 0;

    (void)state;
    for (int i = 0; i < 5; i++)
        get(rt, &handles[i], &once, i == 2 ? NULL : &gate, &calls);
    assert_int_equal(calls, 1);
    assert_int_equal(blz_once_try_get(&once), -EAGAIN);
    gate_open(&gate, 7);
    turn_all(rt);
    for (int i = 0; i < 5; i++)
        assert_int_equal(result_of(&handles[i]), 7);
    assert_int_equal(blz_once_try_get(&once), 7);
    get(rt, &handles[0], &once, &gate, &calls); /* later: at once */
    assert_int_equal(result_of(&handles[0]), 7);
    assert_int_equal(calls, 1);
    free_rt(rt);
}

static void a_failure_is_the_makers_own_and_the_next_tries(void **state)
{
    blz_once once;
    struct gate bad = GATE_INIT, good = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[4];
    int calls = 0;

    (void)state;
    blz_once_init(&once);
    get(rt, &handles[0], &once, &bad, &calls);
    get(rt, &handles[1], &once, NULL, &calls); /* cannot take over */
    get(rt, &handles[2], &once, &good, &calls);
    get(rt, &handles[3], &once, &good, &calls);
    gate_open(&bad, -EIO);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), -EIO);
    assert_int_equal(calls, 2);
    for (int i = 1; i < 4; i++)
        assert_false(blz_handle_done(&handles[i]));
    gate_open(&good, 3);
    turn_all(rt);
    for (int i = 1; i < 4; i++)
        assert_int_equal(result_of(&handles[i]), 3);
    assert_int_equal(calls, 2);
    free_rt(rt);
}

static void after_a_failure_without_waiters_it_is_as_new(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate bad = GATE_INIT, good = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[2];
    int calls = 0;

    (void)state;
    gate_open(&bad, -EAGAIN);
    gate_open(&good, 0);
    get(rt, &handles[0], &once, &bad, &calls);
    assert_int_equal(result_of(&handles[0]), -EAGAIN);
    get(rt, &handles[0], &once, NULL, &calls);
    assert_false(blz_handle_done(&handles[0]));
    get(rt, &handles[1], &once, &good, &calls);
    assert_int_equal(result_of(&handles[1]), 0);
    assert_int_equal(result_of(&handles[0]), 0);
    free_rt(rt);
}

static void a_cancelled_maker_hands_over(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];
    int calls = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        get(rt, &handles[i], &once, &gate, &calls);
    blz_handle_cancel(&handles[0]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), -ECANCELED);
    assert_int_equal(calls, 2);
    gate_open(&gate, 5);
    turn_all(rt);
    assert_int_equal(result_of(&handles[1]), 5);
    assert_int_equal(result_of(&handles[2]), 5);
    free_rt(rt);
}

static void a_cancelled_wait_leaves_the_others_alone(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[4];
    int calls = 0;

    (void)state;
    for (int i = 0; i < 4; i++)
        get(rt, &handles[i], &once, i == 2 ? NULL : &gate, &calls);
    blz_handle_cancel(&handles[1]);
    blz_handle_cancel(&handles[2]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[1]), -ECANCELED);
    assert_int_equal(result_of(&handles[2]), -ECANCELED);
    gate_open(&gate, 5);
    blz_handle_cancel(&handles[3]); /* served when it hears of it, or not: either is right */
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), 5);
    assert_int_equal(calls, 1);
    blz_handle_detach(&handles[3]);
    free_rt(rt);
}

/* The turn has come, and the cancellation too, before the task runs. */
static void a_turn_that_comes_to_a_cancelled_task_goes_on(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate bad = GATE_INIT, good = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];
    int calls = 0;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[0], gets, .once = &once, .gate = &bad,
                                  .calls = &calls, .victim = &handles[1]),
                     0);
    turn_all(rt);
    get(rt, &handles[1], &once, &good, &calls);
    get(rt, &handles[2], &once, &good, &calls);
    gate_open(&bad, -EIO);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), -EIO);
    assert_int_equal(result_of(&handles[1]), -ECANCELED);
    assert_int_equal(calls, 2); /* the third's */
    gate_open(&good, 9);
    turn_all(rt);
    assert_int_equal(result_of(&handles[2]), 9);
    free_rt(rt);
}

static void a_value_is_set_by_hand(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;
    int calls = 0;

    (void)state;
    assert_int_equal(blz_once_set(&once, -1), -EINVAL);
    get(rt, &handle, &once, NULL, &calls);
    assert_int_equal(blz_once_set(&once, INT64_MAX), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), INT64_MAX);
    assert_int_equal(blz_once_set(&once, 1), -EEXIST);
    blz_once_init(&once); /* may be used again */
    get(rt, &handle, &once, &gate, &calls);
    assert_int_equal(blz_once_set(&once, 1), -EBUSY);
    gate_open(&gate, 2);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 2);
    assert_int_equal(blz_once_set(&once, 1), -EEXIST);
    free_rt(rt);
}

/* ---- a `make` that is not needed ---- */

struct gets_by_box {
    BLZ_FRAME;
    blz_once *once;
    struct gate *gate;
    int *calls;
    int64_t rc;
    blz_box box;
    blz_once_op get;
};

BLZ_ASYNC(gets_by_box)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_once_get(&self->get, self->once,
                           BLZ_BOX(&self->box, makes, .gate = self->gate, .calls = self->calls)));
    BLZ_END(self->rc);
}

static void a_box_that_is_not_needed_is_given_back(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[4];
    int calls = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], gets_by_box, .once = &once, .gate = &gate,
                                      .calls = &calls),
                         0);
    turn_all(rt);
    blz_handle_cancel(&handles[1]);
    turn_all(rt);
    gate_open(&gate, 1);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[3], gets_by_box, .once = &once, .gate = &gate,
                                  .calls = &calls),
                     0);
    turn_all(rt);
    for (int i = 0; i < 4; i++)
        assert_int_equal(result_of(&handles[i]), i == 1 ? -ECANCELED : 1);
    assert_int_equal(calls, 1);
    free_rt(rt); /* the balance of memory is looked at */
}

/* A race is one of those that are told, not refused. */
struct gets_by_race {
    BLZ_FRAME;
    blz_once *once;
    struct gate *gate;
    int64_t rc;
    blz_race_op race;
    struct gate_wait waits[2];
    blz_once_op get;
};

BLZ_ASYNC(gets_by_race)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_once_get(&self->get, self->once,
                                     blz_race(&self->race, gate_enter(&self->waits[0], self->gate),
                                              gate_enter(&self->waits[1], self->gate))));
    BLZ_END(self->rc);
}

static void a_race_that_is_not_needed_ends(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], gets_by_race, .once = &once, .gate = &gate),
                         0);
        turn_all(rt);
    }
    blz_handle_cancel(&handles[2]);
    turn_all(rt);
    gate_open(&gate, 1);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), 0);
    assert_int_equal(result_of(&handles[1]), 0);
    assert_int_equal(result_of(&handles[2]), -ECANCELED);
    assert_int_equal(event_count(&gate.arrived), 2); /* only those of the first have waited */
    free_rt(rt);
}

/* ---- threads ---- */

static int64_t make_on_thread(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
    return 11;
}

struct asker {
    blz_once *once;
    int *calls;
};

static void *ask(void *arg)
{
    struct asker *asker = arg;
    blz_lazy make;

    check(blz_once_get_wait(asker->once, blz_lazy_init(&make, make_on_thread, asker->calls)) == 11);
    return NULL;
}

static void threads_get_one_value(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (int round = 0; round < 50; round++) {
        blz_once once = BLZ_ONCE_INIT;
        int calls = 0;
        struct asker asker = {&once, &calls};
        for (int i = 0; i < 4; i++)
            threads[i] = start_thread(ask, &asker);
        assert_int_equal(blz_once_get_wait(&once, NULL), 11);
        for (int i = 0; i < 4; i++)
            join_thread(threads[i]);
        assert_int_equal(calls, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_makes_the_value_for_all),
        TEST(a_failure_is_the_makers_own_and_the_next_tries),
        TEST(after_a_failure_without_waiters_it_is_as_new),
        TEST(a_cancelled_maker_hands_over),
        TEST(a_cancelled_wait_leaves_the_others_alone),
        TEST(a_turn_that_comes_to_a_cancelled_task_goes_on),
        TEST(a_value_is_set_by_hand),
        TEST(a_box_that_is_not_needed_is_given_back),
        TEST(a_race_that_is_not_needed_ends),
        TEST(threads_get_one_value),
    };
    return RUN_TESTS(tests);
}
