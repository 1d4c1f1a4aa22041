/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics and histograms of runtimes: that they add up, and that they count what they say. */
#include "harness.h"

#include "sched/rt.h"

#include <sched.h>

static blz_rt *rt;

static blz_stats stats(void)
{
    blz_stats s;

    blz_rt_stats(rt, &s);
    return s;
}

/*
 * Until all workers sleep, and nothing changes any more. A worker is counted as parked before it
 * notes when it went to sleep, and forgets that before it is counted out: in this order, then.
 */
static blz_stats stats_asleep(void)
{
    uint32_t asleep;

    do {
        asleep = 0;
        if (stats().workers_parked == rt->nr_workers)
            while (asleep < rt->nr_workers &&
                   blz__load(&rt->workers[asleep].parked_at, ACQUIRE) != 0)
                asleep++;
        else
            sched_yield();
    } while (asleep < rt->nr_workers);
    return stats();
}

/* ---- adding up ---- */

struct fans_out {
    BLZ_FRAME;
    int children, times;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(fans_out)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < self->children; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = self->times) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void tasks_are_counted_when_they_begin_and_end(void **state)
{
    enum { PARENTS = 5, CHILDREN = 40 };
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    for (int i = 0; i < PARENTS; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, fans_out, .children = CHILDREN, .times = 3), 0);
    s = stats();
    assert_int_equal(s.remote_spawned, PARENTS);
    assert_int_equal(s.total.spawned, PARENTS * CHILDREN);
    assert_int_equal(s.total.completed, PARENTS * (CHILDREN + 1));
    assert_int_equal(s.live_tasks, 0);
    assert_int_equal(s.workers, 2);
    assert_true(s.total.polls >= PARENTS * (CHILDREN * 4 + 2));
    assert_int_equal(s.total.yields, PARENTS * CHILDREN * 3);
    assert_int_equal(s.total.budget_yields, 0);
    assert_int_equal(s.total.refused, 0);
    assert_int_equal(s.inject_depth, 0);
    assert_int_equal(s.total.queue_depth, 0);
    free_rt(rt);
}

static void the_total_is_the_sum_of_the_workers(void **state)
{
    blz_worker_stats sum = {0}, one;
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 3});
    for (int i = 0; i < 20; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, fans_out, .children = 100, .times = 2), 0);
    s = stats_asleep();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(blz_rt_worker_stats(rt, i, &one), 0);
        sum.spawned += one.spawned;
        sum.completed += one.completed;
        sum.polls += one.polls;
        sum.lifo_hits += one.lifo_hits;
        sum.steals += one.steals;
        sum.stolen += one.stolen;
        sum.yields += one.yields;
        sum.parks += one.parks;
        sum.inject_tasks += one.inject_tasks;
        sum.maintenances += one.maintenances;
    }
    assert_int_equal(sum.spawned, s.total.spawned);
    assert_int_equal(sum.completed, s.total.completed);
    assert_int_equal(sum.polls, s.total.polls);
    assert_int_equal(sum.lifo_hits, s.total.lifo_hits);
    assert_int_equal(sum.steals, s.total.steals);
    assert_int_equal(sum.stolen, s.total.stolen);
    assert_int_equal(sum.yields, s.total.yields);
    assert_int_equal(sum.parks, s.total.parks);
    assert_int_equal(sum.inject_tasks, s.total.inject_tasks);
    assert_int_equal(sum.maintenances, s.total.maintenances);
    assert_true(s.total.stolen >= s.total.steals);
    assert_int_equal(blz_rt_worker_stats(rt, 3, &one), -EINVAL);
    free_rt(rt);
}

static void a_runtime_that_has_not_started_has_counted_nothing(void **state)
{
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    s = stats();
    assert_int_equal(s.total.polls, 0);
    assert_int_equal(s.total.spawned, 0);
    assert_int_equal(s.total.busy_ns, 0);
    assert_int_equal(s.live_tasks, 0);
    assert_int_equal(s.workers, 2);
    free_rt(rt);
}

/* ---- counters, one by one ---- */

struct meets {
    BLZ_FRAME;
    pthread_barrier_t *barrier;
};

BLZ_ASYNC(meets)
{
    BLZ_BEGIN;
    pthread_barrier_wait(self->barrier);
    BLZ_END(0);
}

struct spawns_pair {
    BLZ_FRAME;
    pthread_barrier_t *barrier;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

/* Tasks that wait for each other in pairs, on two workers, all spawned on one. */
BLZ_ASYNC(spawns_pair)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 4; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, meets, .barrier = self->barrier) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void steals_are_counted(void **state)
{
    pthread_barrier_t barrier;
    blz_stats s;

    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = BLZ_NEVER});
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_pair, .barrier = &barrier), 0);
    s = stats();
    assert_true(s.total.steals >= 1);
    assert_true(s.total.stolen >= s.total.steals);
    free_rt(rt);
    pthread_barrier_destroy(&barrier);
}

static void a_full_ring_and_its_way_through_the_inject_queue_are_counted(void **state)
{
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(BLZ_BLOCK_ON(rt, fans_out, .children = 1000), 0);
    s = stats();
    assert_true(s.total.overflows >= 1);
    assert_true(s.total.inject_tasks >= 129);
    assert_true(s.total.inject_batches >= 1 && s.total.inject_batches <= s.total.inject_tasks);
    free_rt(rt);
}

static void tasks_from_other_threads_come_through_the_inject_queue(void **state)
{
    enum { TASKS = 500 };
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER});
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    s = stats();
    assert_int_equal(s.remote_spawned, TASKS);
    assert_int_equal(s.inject_depth, TASKS);
    assert_int_equal(s.live_tasks, TASKS);
    turn_all(rt);
    s = stats();
    assert_int_equal(s.total.inject_tasks, TASKS);
    assert_int_equal(s.inject_depth, 0);
    assert_int_equal(s.live_tasks, 0);
    assert_int_equal(s.total.polls, TASKS);
    free_rt(rt);
}

struct spawns_one {
    BLZ_FRAME;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

BLZ_ASYNC(spawns_one)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, give);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    BLZ_END(self->rc);
}

static void a_join_in_place_is_counted(void **state)
{
    blz_stats s;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, spawns_one), 0);
    turn_all(rt);
    s = stats();
    assert_int_equal(s.total.inline_joins, 1);
    assert_int_equal(s.total.polls, 2);
    free_rt(rt);
}

static void sleeping_workers_are_counted(void **state)
{
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 4});
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    s = stats_asleep();
    assert_int_equal(s.workers_parked, 4);
    assert_int_equal(s.workers_searching, 0);
    assert_true(s.total.parks >= 4);
    free_rt(rt);
}

static void time_asleep_is_not_busy(void **state)
{
    blz_stats first, second;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = BLZ_NEVER});
    assert_int_equal(BLZ_BLOCK_ON(rt, yields, .times = 1000), 0);
    first = stats_asleep();
    assert_true(first.total.busy_ns > 0);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    second = stats();
    /* The clock's rate is measured anew each time: allow for that, not for the time that passed. */
    assert_true(second.total.busy_ns <= first.total.busy_ns + first.total.busy_ns / 10 + BLZ_MSEC);
    free_rt(rt);
}

/* ---- histograms ---- */

static uint64_t sum_of(const blz_histogram *h)
{
    uint64_t sum = 0;

    for (int i = 0; i < BLZ_HISTOGRAM_BUCKETS; i++)
        sum += h->buckets[i];
    return sum;
}

static void every_poll_is_timed_when_all_are_observed(void **state)
{
    blz_histogram polls, latency;
    blz_stats s;

    (void)state;
    rt = new_rt(
        &(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .observe = BLZ_OBSERVE_FULL});
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, fans_out, .children = 50, .times = 10), 0);
    turn_all(rt);
    s = stats();
    assert_int_equal(blz_rt_histogram(rt, BLZ_HISTOGRAM_POLL, &polls), 0);
    assert_int_equal(polls.count, s.total.polls);
    assert_int_equal(sum_of(&polls), polls.count);
    assert_int_equal(blz_rt_histogram(rt, BLZ_HISTOGRAM_LATENCY, &latency), 0);
    assert_int_equal(sum_of(&latency), latency.count);
    assert_true(latency.count >= 50);
    assert_true(s.total.mean_poll_ns > 0);
    free_rt(rt);
}

static void one_poll_in_sixteen_is_timed_otherwise(void **state)
{
    blz_histogram polls;
    blz_stats s;

    (void)state;
    rt = new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER});
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, yields, .times = 20000), 0);
    turn_all(rt);
    s = stats();
    assert_int_equal(blz_rt_histogram(rt, BLZ_HISTOGRAM_POLL, &polls), 0);
    assert_true(polls.count >= s.total.polls / 16);
    assert_true(polls.count < s.total.polls); /* more than that only while polls are long */
    free_rt(rt);
}

static void a_long_poll_is_in_a_high_bucket(void **state)
{
    blz_histogram polls;

    (void)state;
    rt = new_rt(
        &(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .observe = BLZ_OBSERVE_FULL});
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, fans_out, .children = 20000), 0);
    turn_all(rt);
    assert_int_equal(blz_rt_histogram(rt, BLZ_HISTOGRAM_POLL, &polls), 0);
    /* The poll that spawned 20,000 tasks took longer than most of theirs. */
    assert_true(blz_histogram_quantile(&polls, 1) > 10 * blz_histogram_quantile(&polls, 0.5));
    free_rt(rt);
}

static void other_histograms_do_not_exist(void **state)
{
    blz_histogram h;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(blz_rt_histogram(rt, 2, &h), -EINVAL);
    assert_int_equal(blz_rt_histogram(rt, -1, &h), -EINVAL);
    free_rt(rt);
}

/* ---- at any time ---- */

struct reader {
    blz_rt *rt;
    uint32_t stop; /* atomic */
};

static void *read_all(void *arg)
{
    struct reader *reader = arg;
    blz_histogram h;
    blz_stats s;

    while (!__atomic_load_n(&reader->stop, __ATOMIC_RELAXED)) {
        blz_rt_stats(reader->rt, &s);
        check(s.total.lifo_hits <= s.total.polls + 1000);
        check(blz_rt_histogram(reader->rt, BLZ_HISTOGRAM_POLL, &h) == 0);
        check(blz_rt_histogram(reader->rt, BLZ_HISTOGRAM_LATENCY, &h) == 0);
        sched_yield();
    }
    return NULL;
}

static void statistics_are_read_while_everything_runs(void **state)
{
    struct reader reader = {0};
    pthread_t thread;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    reader.rt = rt;
    thread = start_thread(read_all, &reader);
    for (int i = 0; i < 50; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, fans_out, .children = 100, .times = 2), 0);
    __atomic_store_n(&reader.stop, 1, __ATOMIC_RELAXED);
    join_thread(thread);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_are_counted_when_they_begin_and_end),
        TEST(the_total_is_the_sum_of_the_workers),
        TEST(a_runtime_that_has_not_started_has_counted_nothing),
        TEST(steals_are_counted),
        TEST(a_full_ring_and_its_way_through_the_inject_queue_are_counted),
        TEST(tasks_from_other_threads_come_through_the_inject_queue),
        TEST(a_join_in_place_is_counted),
        TEST(sleeping_workers_are_counted),
        TEST(time_asleep_is_not_busy),
        TEST(every_poll_is_timed_when_all_are_observed),
        TEST(one_poll_in_sixteen_is_timed_otherwise),
        TEST(a_long_poll_is_in_a_high_bucket),
        TEST(other_histograms_do_not_exist),
        TEST(statistics_are_read_while_everything_runs),
    };
    return RUN_TESTS(tests);
}
