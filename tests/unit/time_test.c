/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping, and the test clock, by which hours pass in no time and everything happens at a known
 * instant; at the end, real clocks and several workers.
 */
#include "clock_rt.h"

#include <sched.h>

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
    assert_true(real_now() - began < BLZ_HOUR);
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

static void a_sleep_of_nothing_is_ready_at_once(void **state)
{
    static const int64_t none[] = {0, -1, INT64_MIN};
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;
    blz_stats stats;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = none[i]), 0);
        turn_all(rt);
        assert_int_equal(result_of(&handle), 0);
    }
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.timers_armed, 0);
    free_rt(rt);
}

static void a_sleep_without_end_ends_when_it_is_cancelled(void **state)
{
    blz_rt *rt = new_clock_rt(false);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = BLZ_NEVER), 0);
    turn_all(rt);
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    advance(rt, 100 * 365 * BLZ_DAY);
    assert_false(blz_handle_done(&handle));
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

static void a_cancelled_sleep_leaves_no_timer(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = BLZ_SEC), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    advance(rt, BLZ_HOUR);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.timers_armed, 1);
    assert_int_equal(stats.total.timers_fired, 0);
    free_rt(rt);
}

/* The timer fires, and the task is cancelled before it has run: it has slept, all the same. */
static void a_sleep_that_is_over_is_not_cancelled(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = BLZ_SEC), 0);
    turn_all(rt);
    assert_int_equal(blz_clock_advance(rt, BLZ_SEC), 0);
    blz__worker_expire(&rt->workers[0]);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), BLZ_SEC);
    free_rt(rt);
}

/* ---- resetting a sleep ---- */

struct shifted {
    BLZ_FRAME;
    int64_t began, rc;
    blz_sleep_op op;
};

BLZ_ASYNC(shifted)
{
    BLZ_BEGIN;
    self->began = blz_now();
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, 100 * MS));
    BLZ_END(self->rc < 0 ? self->rc : blz_now() - self->began);
}

/* Between two turns this thread is the task's worker. */
static struct shifted *start_shifted(blz_rt *rt, blz_handle *handle)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, shifted), 0);
    turn_all(rt);
    return (struct shifted *)(void *)handle->task->root;
}

static void a_sleep_can_be_made_shorter_and_longer(void **state)
{
    static const int64_t lengths[] = {50, 1, 500, 100000, 0};
    blz_rt *rt = new_clock_rt(true);

    (void)state;
    for (int i = 0; i < 5; i++) {
        blz_handle handle;
        struct shifted *task = start_shifted(rt, &handle);

        blz_sleep_reset(&task->op, task->began + lengths[i] * MS);
        if (lengths[i] > 1) {
            advance(rt, lengths[i] * MS - 1);
            assert_false(blz_handle_done(&handle));
        }
        advance(rt, 2 * MS); /* it rounds up */
        assert_true(result_of(&handle) >= lengths[i] * MS);
    }
    free_rt(rt);
}

static void a_sleep_that_has_fired_can_be_prolonged(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;
    struct shifted *task;

    (void)state;
    task = start_shifted(rt, &handle);
    assert_int_equal(blz_clock_advance(rt, 100 * MS), 0);
    blz__worker_expire(&rt->workers[0]); /* the task is queued, and has not run */
    blz_sleep_reset(&task->op, task->began + 300 * MS);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    advance(rt, 200 * MS);
    assert_int_equal(result_of(&handle), 300 * MS);
    free_rt(rt);
}

/* ---- the test clock ---- */

static void only_one_worker_can_have_a_test_clock(void **state)
{
    blz_rt *rt = NULL;

    (void)state;
    assert_int_equal(blz_rt_new(&rt, &(blz_options){.test_clock = true, .workers = 2}), -EINVAL);
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(blz_clock_pause(rt), -ENOTSUP);
    assert_int_equal(blz_clock_resume(rt), -ENOTSUP);
    assert_int_equal(blz_clock_advance(rt, 1), -ENOTSUP);
    free_rt(rt);
    rt = new_rt(&(blz_options){.test_clock = true});
    assert_int_equal(blz_clock_advance(rt, -1), -EINVAL);
    assert_int_equal(blz_clock_advance(rt, INT64_MAX), 0);
    assert_int_equal(blz_clock_advance(rt, INT64_MAX), 0);
    free_rt(rt);
}

/* Resumed, it runs as fast as the real one: a millisecond takes one. */
static void a_resumed_clock_runs(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true});
    int64_t began;

    (void)state;
    assert_int_equal(blz_clock_resume(rt), 0);
    began = real_now();
    assert_true(BLZ_BLOCK_ON(rt, sleeper, .ns = 20 * MS) >= 20 * MS);
    assert_true(real_now() - began >= 19 * MS);
    assert_int_equal(blz_clock_advance(rt, BLZ_HOUR), 0);
    assert_true(BLZ_BLOCK_ON(rt, sleeper, .ns = MS) >= MS);
    assert_int_equal(blz_clock_pause(rt), 0);
    assert_in_range(BLZ_BLOCK_ON(rt, sleeper, .ns = BLZ_DAY), BLZ_DAY, BLZ_DAY + MS);
    free_rt(rt);
}

static void wait_until_armed(blz_rt *rt, uint64_t count)
{
    blz_stats stats;

    do {
        sched_yield();
        blz_rt_stats(rt, &stats);
    } while (stats.total.timers_armed < count);
}

/* A worker that sleeps because the clock is held is woken by whoever changes that. */
static void a_sleeping_worker_notices_the_clock(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true});
    blz_handle handle;

    (void)state;
    blz__rt_hold_clock(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = BLZ_HOUR), 0);
    wait_until_armed(rt, 1);
    assert_int_equal(blz_clock_advance(rt, 30 * BLZ_MINUTE), 0);
    assert_int_equal(blz_clock_advance(rt, BLZ_HOUR), 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_true(handle.result >= 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = BLZ_HOUR), 0);
    wait_until_armed(rt, 2);
    blz__rt_release_clock(rt);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(rt);
}

/* A job of the blocking pool, which takes its time: the clock waits for it. */
static int64_t wait_for_event(void *arg)
{
    event_wait(arg, 1);
    return 8;
}

struct limited_job {
    BLZ_FRAME;
    struct event *event;
    int64_t rc;
    blz_blocking_op job;
    blz_timeout limit;
};

BLZ_ASYNC(limited_job)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_SEC,
                                         blz_blocking(&self->job, wait_for_event, self->event)));
    BLZ_END(self->rc);
}

static void the_clock_waits_for_blocking_jobs(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true});
    struct event event = EVENT_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, limited_job, .event = &event), 0);
    event_post(&event);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 8);
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

enum { MANY = 2000 };

static void many_sleep_on_two_workers_and_none_too_short(void **state)
{
    static blz_handle handles[MANY];
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    uint64_t seed = 9;
    blz_stats stats;

    (void)state;
    for (int i = 0; i < MANY; i++) /* the sleeper itself checks its end */
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], sleeper,
                                      .ns = random_below(&seed, 50000) * BLZ_USEC),
                         0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_true(handles[i].result >= 0);
    }
    blz_rt_stats(rt, &stats);
    /* One whose time is up when it is first polled needs no timer. */
    assert_in_range(stats.total.timers_armed, MANY / 2, MANY);
    assert_int_equal(stats.total.timers_fired, stats.total.timers_armed);
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
        TEST(a_sleep_of_nothing_is_ready_at_once),
        TEST(a_sleep_without_end_ends_when_it_is_cancelled),
        TEST(a_cancelled_sleep_leaves_no_timer),
        TEST(a_sleep_that_is_over_is_not_cancelled),
        TEST(a_sleep_can_be_made_shorter_and_longer),
        TEST(a_sleep_that_has_fired_can_be_prolonged),
        TEST(only_one_worker_can_have_a_test_clock),
        TEST(a_resumed_clock_runs),
        TEST(a_sleeping_worker_notices_the_clock),
        TEST(the_clock_waits_for_blocking_jobs),
        TEST(a_real_sleep_is_never_early),
        TEST(many_sleep_on_two_workers_and_none_too_short),
    };
    return RUN_TESTS(tests);
}
