/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping, and timers that call back. Mostly by a test clock, so that hours pass in no time and
 * everything happens at a known instant; what concerns real clocks and several workers is at the
 * end.
 */
#include "harness.h"
#include "sched/sched.h"

#include <poll.h>
#include <string.h>

#define MS BLZ_MSEC

/*
 * Everything happens in blz_rt_turn, on this thread. Held, the clock goes on only by
 * blz_clock_advance.
 */
static blz_rt *new_clock_rt(bool held)
{
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true, .embedded = true, .watchdog_ns = -1});

    if (held)
        blz__rt_hold_clock(rt);
    return rt;
}

static void advance(blz_rt *rt, int64_t ns)
{
    assert_int_equal(blz_clock_advance(rt, ns), 0);
    turn_all(rt);
}

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static int64_t real_now(void)
{
    return blz_now(); /* this thread is no worker, but in a turn */
}

/* ---- arithmetic ---- */

static void sums_saturate(void **state)
{
    (void)state;
    assert_int_equal(blz_time_add(1, 2), 3);
    assert_int_equal(blz_time_add(INT64_MAX, 1), INT64_MAX);
    assert_int_equal(blz_time_add(INT64_MIN, -1), INT64_MIN);
    assert_int_equal(blz_time_add(INT64_MAX, INT64_MIN), -1);
    assert_int_equal(blz_time_sub(1, 2), -1);
    assert_int_equal(blz_time_sub(INT64_MIN, 1), INT64_MIN);
    assert_int_equal(blz_time_sub(INT64_MAX, -1), INT64_MAX);
    assert_int_equal(blz_time_sub(0, INT64_MIN), INT64_MAX);
    assert_int_equal(blz_time_of(3, BLZ_HOUR), 3 * 3600 * BLZ_SEC);
    assert_int_equal(blz_time_of(INT64_MAX, BLZ_DAY), INT64_MAX);
    assert_int_equal(blz_time_of(INT64_MIN, BLZ_DAY), INT64_MIN);
    assert_int_equal(blz_time_of(INT64_MIN, -1), INT64_MAX);
    assert_int_equal(blz_time_in(1999 * MS, BLZ_SEC), 1);
    assert_int_equal(blz_time_in(-1999 * MS, BLZ_SEC), -1);
}

static void deadlines_saturate_too(void **state)
{
    (void)state;
    assert_int_equal(blz_deadline(INT64_MAX), BLZ_NEVER);
    assert_int_equal(blz_deadline_left(BLZ_NEVER), BLZ_NEVER);
    assert_int_equal(blz_deadline_left(INT64_MIN), 0);
    assert_int_equal(blz_deadline_left(blz_now()), 0);
    assert_true(blz_deadline_left(blz_deadline(BLZ_HOUR)) > 59 * BLZ_MINUTE);
}

/* ---- sleeping ---- */

struct sleeper {
    BLZ_FRAME;
    int64_t ns;
    int64_t began, ended;
    int *order; /* where to put our number, or NULL */
    int number;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    self->began = blz_now();
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, self->ns));
    self->ended = blz_now();
    if (self->rc == 0)
        check(self->ended >= blz_time_add(self->began, self->ns) || self->ns <= 0);
    if (self->order) {
        int at = 0;
        while (self->order[at])
            at++;
        self->order[at] = self->number;
    }
    BLZ_END(self->rc < 0 ? self->rc : self->ended - self->began);
}

static void an_hour_passes_in_no_time(void **state)
{
    int64_t began = real_now();
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true});

    (void)state;
    assert_int_equal(blz_rt_workers(rt), 1);
    assert_int_equal(BLZ_BLOCK_ON(rt, sleeper, .ns = BLZ_HOUR), BLZ_HOUR);
    assert_int_equal(BLZ_BLOCK_ON(rt, sleeper, .ns = 1000 * BLZ_DAY), 1000 * BLZ_DAY);
    free_rt(rt);
    assert_true(real_now() - began < 10 * BLZ_SEC);
}

static int64_t end_of_a_sleep(void)
{
    blz_rt *rt = new_clock_rt(false);
    struct sleeper *frame;
    blz_handle handle;
    int64_t ended;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = 5 * MS), 0);
    turn_all(rt);
    frame = blz_handle_frame(&handle);
    assert_non_null(frame);
    ended = frame->ended;
    blz_handle_detach(&handle);
    free_rt(rt);
    return ended;
}

static void a_test_clock_begins_alike_in_every_run(void **state)
{
    (void)state;
    assert_int_equal(end_of_a_sleep(), end_of_a_sleep());
}

static void a_held_clock_goes_on_when_it_is_told_to(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = 10 * MS), 0);
    turn_all(rt);
    advance(rt, 10 * MS - 1);
    assert_false(blz_handle_done(&handle));
    advance(rt, 1);
    assert_int_equal(result_of(&handle), 10 * MS);
    free_rt(rt);
}

static void sleepers_wake_in_the_order_of_their_deadlines(void **state)
{
    static const int64_t delays[] = {70, 3, 5000, 3, 64, 1, 100, 4096, 63, 70};
    int order[16] = {0};
    blz_rt *rt = new_clock_rt(true);

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeper, .ns = delays[i] * MS, .order = order,
                                      .number = i + 1),
                         0);
    turn_all(rt);
    advance(rt, BLZ_HOUR); /* all at once */
    for (int i = 0; i + 1 < 10; i++) {
        int64_t a = delays[order[i] - 1], b = delays[order[i + 1] - 1];
        assert_true(a < b || (a == b && order[i] < order[i + 1]));
    }
    free_rt(rt);
}

/* ---- limits ---- */

struct limited {
    BLZ_FRAME;
    int64_t inner_ns, limit_ns;
    int64_t rc;
    blz_timeout limit;
    blz_sleep_op op;
};

BLZ_ASYNC(limited)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, self->limit_ns, blz_sleep(&self->op, self->inner_ns)));
    BLZ_END(self->rc);
}

static void the_one_that_is_first_decides(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, limited, .inner_ns = 10 * MS, .limit_ns = 20 * MS), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, limited, .inner_ns = 20 * MS, .limit_ns = 10 * MS),
                     -ETIMEDOUT);
    free_rt(rt);
}

/* ---- real clocks ---- */

static void a_real_sleep_is_never_early(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_true(BLZ_BLOCK_ON(rt, sleeper, .ns = i * 300 * BLZ_USEC) >= i * 300 * BLZ_USEC);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_saturate),
        TEST(deadlines_saturate_too),
        TEST(an_hour_passes_in_no_time),
        TEST(a_test_clock_begins_alike_in_every_run),
        TEST(a_held_clock_goes_on_when_it_is_told_to),
        TEST(sleepers_wake_in_the_order_of_their_deadlines),
        TEST(the_one_that_is_first_decides),
        TEST(a_real_sleep_is_never_early),
    };
    return RUN_TESTS(tests);
}
