/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a future: limits, shields, where it cannot be done. */
#include "harness.h"

static blz_semaphore semaphore;

static int64_t soon(void)
{
    return blz_now() + BLZ_MSEC;
}

static void it_ends_when_it_is_too_late(void **state)
{
    const int64_t deadlines[] = {soon(), 0, -1, INT64_MIN};

    (void)state;
    blz_semaphore_init(&semaphore, 0);
    for (int i = 0; i < 4; i++) {
        blz_semaphore_op op = {0};
        assert_int_equal(blz_wait_until(blz_semaphore_acquire(&op, &semaphore, 1), deadlines[i]),
                         -ETIMEDOUT);
    }
    assert_int_equal(blz_semaphore_release(&semaphore, 1), 0); /* nobody is in line */
    assert_int_equal(blz_semaphore_available(&semaphore), 1);
}

static void what_is_there_is_never_too_late(void **state)
{
    blz_semaphore_op op = {0};

    (void)state;
    blz_semaphore_init(&semaphore, 1);
    assert_int_equal(blz_wait_until(blz_semaphore_acquire(&op, &semaphore, 1), -1), 0);
}

struct restless {
    BLZ_FRAME;
    blz_future op;
    int64_t rc;
};

BLZ_ASYNC(restless)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    } while (self->rc == 0);
    BLZ_END(self->rc);
}

static void who_never_sleeps_is_too_late_as_well(void **state)
{
    struct restless frame;

    (void)state;
    assert_int_equal(blz_wait_until(BLZ_FUTURE(frame, restless), soon()), -ETIMEDOUT);
}

struct shielded {
    BLZ_FRAME;
    struct gate *gate;
    struct gate_wait enter;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(shielded)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->rc, gate_enter(&self->enter, self->gate));
    if (self->rc == 3)
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc == -ECANCELED && self->enter.future.result == 3 ? 7 : self->rc);
}

static void *open_when_one_waits(void *arg)
{
    struct gate *gate = arg;

    event_wait(&gate->arrived, 1);
    gate_open(gate, 3);
    return NULL;
}

/* It is too late from the beginning. The wait goes on behind the shield; what comes after it is
 * refused. */
static void a_shield_holds_it_off(void **state)
{
    struct gate gate = GATE_INIT;
    struct shielded frame;
    pthread_t thread = start_thread(open_when_one_waits, &gate);

    (void)state;
    assert_int_equal(blz_wait_until(BLZ_FUTURE(frame, shielded, .gate = &gate), 0), 7);
    join_thread(thread);
}

struct waits {
    BLZ_FRAME;
    blz_semaphore_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_END(blz_wait(blz_semaphore_acquire(&self->op, &semaphore, 1)));
}

static void a_worker_must_not_wait(void **state)
{
    (void)state;
    blz_semaphore_init(&semaphore, 1);
    assert_int_equal(BLZ_RUN_WITH((&(blz_options){.workers = 1}), waits), -EDEADLK);
    assert_int_equal(blz_semaphore_available(&semaphore), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_ends_when_it_is_too_late),
        TEST(what_is_there_is_never_too_late),
        TEST(who_never_sleeps_is_too_late_as_well),
        TEST(a_shield_holds_it_off),
        TEST(a_worker_must_not_wait),
    };
    return RUN_TESTS(tests);
}
