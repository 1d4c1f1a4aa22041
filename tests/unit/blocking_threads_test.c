/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the blocking pool: when they come, how many, when they go; lanes; statistics. */
#include "blocking_jobs.h"

#include "blocking/blocking.h"

#include <stdlib.h>

/* ---- coming ---- */

static void a_runtime_without_blocking_work_has_no_pool(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, yields, .times = 10), 0);
    assert_int_equal(nr_threads(), before + 1);
    assert_int_equal(stats_of(rt).blocking_started, 0);
    free_rt(rt);
}

static void meet_on(blz_rt *rt, int64_t members)
{
    struct meeting m = {.arrived = EVENT_INIT, .members = members};
    blz_handle *handles = calloc((size_t)members, sizeof *handles);

    for (int64_t i = 0; i < members; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], awaits, .fn = meet, .arg = &m), 0);
    for (int64_t i = 0; i < members; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, 1);
    }
    free(handles);
}

static void as_many_calls_as_there_may_be_threads_can_wait_for_each_other(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .blocking_keep_alive_ns = BLZ_NEVER});

    (void)state;
    meet_on(rt, 512); /* the default */
    meet_on(rt, 512); /* all idle now */
    assert_int_equal(stats_of(rt).blocking_started, 512);
    free_rt(rt);
}

static void calls_that_wait_for_each_other_may_come_from_one_burst(void **state)
{
    enum { MEMBERS = 40 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .max_blocking_threads = MEMBERS});
    struct meeting m = {.arrived = EVENT_INIT, .members = MEMBERS};
    blz_blocking_op ops[MEMBERS] = {0};

    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(blz_blocking_start(&ops[i], meet, &m, rt), 0);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(blz_blocking_wait(&ops[i]), 1);
    free_rt(rt);
}

struct crowd {
    uint64_t inside, most; /* atomic */
};

static int64_t be_inside(void *arg)
{
    struct crowd *c = arg;
    uint64_t now = __atomic_add_fetch(&c->inside, 1, __ATOMIC_ACQ_REL);
    uint64_t most = __atomic_load_n(&c->most, __ATOMIC_RELAXED);

    while (now > most && !__atomic_compare_exchange_n(&c->most, &most, now, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        ;
    sched_yield();
    __atomic_sub_fetch(&c->inside, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static void there_are_never_more_threads_than_allowed(void **state)
{
    enum { LIMIT = 3, CALLS = 500 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2,
                                       .max_blocking_threads = LIMIT,
                                       .blocking_keep_alive_ns = BLZ_NEVER});
    blz_blocking_op *ops = calloc(CALLS, sizeof *ops);
    struct crowd crowd = {0, 0};

    (void)state;
    meet_on(rt, LIMIT);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(blz_blocking_start(&ops[i], be_inside, &crowd, rt), 0);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(blz_blocking_wait(&ops[i]), 0);
    assert_in_range(crowd.most, 1, LIMIT);
    assert_int_equal(stats_of(rt).blocking_started, LIMIT);
    free(ops);
    free_rt(rt);
}

/* A thread costs as much as hundreds of these. */
static void small_calls_do_not_bring_many_threads(void **state)
{
    enum { CALLS = 10000 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_blocking_op *ops = calloc(CALLS, sizeof *ops);
    uint64_t count = 0;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CALLS; i++)
            assert_int_equal(blz_blocking_start(&ops[i], count_up, &count, rt), 0);
        for (int i = 0; i < CALLS; i++)
            assert_true(blz_blocking_wait(&ops[i]) > 0);
    }
    assert_int_equal(count, 3 * CALLS);
    assert_in_range(stats_of(rt).blocking_started, 1, 50);
    free(ops);
    free_rt(rt);
}

static void one_call_at_a_time_needs_one_thread(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .blocking_keep_alive_ns = BLZ_NEVER});
    uint64_t count = 0;

    (void)state;
    for (uint64_t i = 1; i <= 200; i++) {
        assert_int_equal(blz_blocking_run(rt, count_up, &count), i);
        wait_for_idle(rt, 1);
    }
    assert_int_equal(stats_of(rt).blocking_started, 1);
    free_rt(rt);
}

/* ---- going ---- */

static void idle_threads_leave(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(
        &(blz_options){.workers = 1, .blocking_keep_alive_ns = BLZ_MSEC, .watchdog_ns = BLZ_NEVER});

    (void)state;
    for (int round = 0; round < 5; round++) {
        meet_on(rt, 8);
        wait_for_idle(rt, 0);
        assert_true(wait_for_threads(before + 1)); /* the worker */
        assert_int_equal(stats_of(rt).blocking_threads, 0);
    }
    free_rt(rt);
}

/* A call comes as the thread's time is up: one of the two wins, and the call is made. */
static void calls_that_meet_a_leaving_thread_are_made(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .blocking_keep_alive_ns = 30 * BLZ_USEC});
    uint64_t count = 0, seed = 1;

    (void)state;
    for (int i = 1; i <= scaled(3000); i++) {
        assert_int_equal(blz_blocking_run(rt, count_up, &count), i);
        for (uint32_t pause = random_below(&seed, 2000); pause > 0; pause--)
            __asm__ __volatile__("" ::: "memory");
    }
    free_rt(rt);
}

static void threads_that_need_not_leave_stay(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .blocking_keep_alive_ns = BLZ_NEVER});

    (void)state;
    meet_on(rt, 4);
    wait_for_idle(rt, 4);
    assert_int_equal(stats_of(rt).blocking_threads, 4);
    free_rt(rt);
}

static void an_impossible_number_of_threads_is_refused(void **state)
{
    blz_options options = {.max_blocking_threads = 1000000};
    blz_rt *rt;

    (void)state;
    assert_int_equal(blz_rt_new(&rt, &options), -EINVAL);
}

/* ---- lanes ---- */

struct lane_task {
    BLZ_FRAME;
    uint32_t lane;
    int64_t (*fn)(void *arg);
    void *arg;
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(lane_task)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz__blocking_in(&self->op, self->lane, self->fn, self->arg));
    BLZ_END(self->rc);
}

struct lane_owned_task {
    BLZ_FRAME;
    uint32_t lane;
    void *arg;
    int64_t rc;
    blz_blocking_owned_op op;
};

BLZ_ASYNC(lane_owned_task)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz__blocking_owned_in(&self->op, self->lane, count_up, self->arg, NULL));
    BLZ_END(self->rc);
}

static void a_lane_that_is_full_does_not_keep_the_others_waiting(void **state)
{
    blz_rt *rt = new_rt(&(
        blz_options){.workers = 1, .max_blocking_threads = 1, .blocking_keep_alive_ns = BLZ_NEVER});

    (void)state;
    for (uint32_t full = 0; full < BLZ__NR_LANES; full++) {
        struct halt h = HALT_INIT(3);
        blz_handle running, queued;
        uint64_t count = 0, late = 0;

        assert_int_equal(BLZ_SPAWN_ON(rt, &running, lane_task, .lane = full, .fn = halt, .arg = &h),
                         0);
        event_wait(&h.begun, 1);
        assert_int_equal(BLZ_SPAWN_ON(rt, &queued, lane_task, .lane = full, .fn = count_up,
                                      .arg = &late),
                         0);
        wait_for_queued(rt, 1);
        for (uint32_t lane = 0; lane < BLZ__NR_LANES; lane++) {
            if (lane == full)
                continue;
            assert_true(BLZ_BLOCK_ON(rt, lane_task, .lane = lane, .fn = count_up, .arg = &count) >
                        0);
            assert_true(BLZ_BLOCK_ON(rt, lane_owned_task, .lane = lane, .arg = &count) > 0);
        }
        assert_int_equal(count, 2 * (BLZ__NR_LANES - 1));
        assert_int_equal(late, 0);
        event_post(&h.go_on);
        assert_int_equal(blz_handle_wait(&running), 0);
        assert_int_equal(blz_handle_wait(&queued), 0);
        assert_int_equal(queued.result, 1);
    }
    assert_int_equal(stats_of(rt).blocking_started, BLZ__NR_LANES);
    free_rt(rt);
}

/* ---- statistics ---- */

static void threads_and_calls_are_counted(void **state)
{
    blz_rt *rt = new_rt(&(
        blz_options){.workers = 1, .max_blocking_threads = 2, .blocking_keep_alive_ns = BLZ_NEVER});
    struct halt first = HALT_INIT(0), second = HALT_INIT(0);
    blz_blocking_op ops[4] = {0};
    uint64_t count = 0;
    blz_stats s = stats_of(rt);

    (void)state;
    assert_int_equal(s.blocking_threads + s.blocking_idle + s.blocking_queued + s.blocking_jobs, 0);
    assert_int_equal(blz_blocking_start(&ops[0], halt, &first, rt), 0);
    assert_int_equal(blz_blocking_start(&ops[1], halt, &second, rt), 0);
    event_wait(&first.begun, 1);
    event_wait(&second.begun, 1);
    assert_int_equal(blz_blocking_start(&ops[2], count_up, &count, rt), 0);
    assert_int_equal(blz_blocking_start(&ops[3], count_up, &count, rt), 0);
    s = stats_of(rt);
    assert_int_equal(s.blocking_threads, 2);
    assert_int_equal(s.blocking_idle, 0);
    assert_int_equal(s.blocking_queued, 2);
    assert_int_equal(s.blocking_jobs, 2);
    event_post(&first.go_on);
    event_post(&second.go_on);
    for (int i = 0; i < 4; i++)
        assert_true(blz_blocking_wait(&ops[i]) >= 0);
    wait_for_idle(rt, 2);
    s = stats_of(rt);
    assert_int_equal(s.blocking_threads, 2);
    assert_int_equal(s.blocking_queued, 0);
    assert_int_equal(s.blocking_jobs, 4);
    assert_int_equal(s.blocking_started, 2);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runtime_without_blocking_work_has_no_pool),
        TEST(as_many_calls_as_there_may_be_threads_can_wait_for_each_other),
        TEST(calls_that_wait_for_each_other_may_come_from_one_burst),
        TEST(there_are_never_more_threads_than_allowed),
        TEST(small_calls_do_not_bring_many_threads),
        TEST(one_call_at_a_time_needs_one_thread),
        TEST(idle_threads_leave),
        TEST(calls_that_meet_a_leaving_thread_are_made),
        TEST(threads_that_need_not_leave_stay),
        TEST(an_impossible_number_of_threads_is_refused),
        TEST(a_lane_that_is_full_does_not_keep_the_others_waiting),
        TEST(threads_and_calls_are_counted),
    };
    return RUN_TESTS(tests);
}
