/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: what it says of a poll that takes too long, who runs the tasks behind it, and that
 * it sleeps when there is nothing to watch. A task here blocks its worker until the watchdog has
 * done what the test waits for.
 *
 * A machine may stop any thread for longer than the limit; then what was short is rightly reported.
 * So each test only counts the reports of the task that it is about.
 */
#include "harness.h"

#include "sched/rt.h"
#include "system/clock.h"
#include "system/thread.h"
#include "time/time.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS (60 * BLZ_MSEC)

static struct {
    struct event called;
    const char *about; /* the name of the task */
    blz_stuck last;
    char task[64];
} report;

static void note_stuck(const blz_stuck *stuck, void *arg)
{
    check(arg == &report);
    if (strcmp(stuck->task, report.about) != 0)
        return;
    report.last = *stuck;
    snprintf(report.task, sizeof report.task, "%s", stuck->task);
    event_post(&report.called);
}

static blz_rt *new_watched_rt(unsigned workers, const char *about)
{
    memset(&report, 0, sizeof report);
    report.called = (struct event)EVENT_INIT;
    report.about = about;
    return new_rt(&(blz_options){
        .workers = workers, .watchdog_ns = LIMIT_NS, .on_stuck = note_stuck, .hook_arg = &report});
}

/* ---- reporting ---- */

struct blocks {
    BLZ_FRAME;
    struct event *until;
};

/* Keeps its worker in one poll until the event has been posted. */
BLZ_ASYNC(blocks)
{
    BLZ_BEGIN;
    event_wait(self->until, 1);
    BLZ_END(0);
}

static void a_poll_that_takes_too_long_is_reported(void **state)
{
    blz_rt *rt = new_watched_rt(2, "blocks");
    blz_handle handle;
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, blocks, .until = &report.called), 0);
    uint64_t id = blz_task_id(handle.task);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(event_count(&report.called), 1);
    assert_int_equal(report.last.task_id, id);
    assert_string_equal(report.task, "blocks");
    assert_true(report.last.for_ns >= LIMIT_NS);
    assert_true(report.last.worker < 2);
    assert_false(report.last.refused);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.stuck, 1);
    free_rt(rt);
}

static void a_named_task_is_reported_by_its_name(void **state)
{
    blz_rt *rt = new_watched_rt(1, "the slow one");
    blz_handle handle;

    (void)state;
    assert_int_equal(
        BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &handle, .name = "the slow one"}),
                       blocks, .until = &report.called),
        0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_string_equal(report.task, "the slow one");
    free_rt(rt);
}

static void the_same_poll_is_reported_once(void **state)
{
    blz_rt *rt = new_watched_rt(2, "blocks");
    struct event enough = EVENT_INIT;
    blz_handle first, second;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &first, blocks, .until = &enough), 0);
    event_wait(&report.called, 1);
    /* A second one on the other worker, reported while the first still goes on. */
    assert_int_equal(BLZ_SPAWN_ON(rt, &second, blocks, .until = &enough), 0);
    event_wait(&report.called, 2);
    event_post(&enough);
    assert_int_equal(blz_handle_wait(&first), 0);
    assert_int_equal(blz_handle_wait(&second), 0);
    assert_int_equal(event_count(&report.called), 2);
    free_rt(rt);
}

struct hurries {
    BLZ_FRAME;
    int64_t until_ns, last_ns, pauses, rc;
    blz_future op;
};

/* Polls for as long as that; gives how often one may have taken half the limit, or more. */
BLZ_ASYNC(hurries)
{
    BLZ_BEGIN;
    for (self->last_ns = blz__clock_ns(); self->last_ns < self->until_ns;) {
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
        int64_t now_ns = blz__clock_ns();
        self->pauses += now_ns - self->last_ns >= LIMIT_NS / 2;
        self->last_ns = now_ns;
    }
    BLZ_END(self->pauses);
}

/* Many limits long, in many polls. The time is what makes the test, so a clock measures it. */
static void short_polls_are_not_reported(void **state)
{
    blz_rt *rt = new_watched_rt(1, "hurries");
    int64_t until_ns = blz__clock_ns() + 5 * LIMIT_NS;
    int64_t pauses = BLZ_BLOCK_ON(rt, hurries, .until_ns = until_ns);

    (void)state;
    assert_in_range(event_count(&report.called), 0, pauses);
    free_rt(rt);
}

static void without_a_watchdog_nothing_is_reported(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(&(blz_options){
        .workers = 1, .watchdog_ns = BLZ_NEVER, .on_stuck = note_stuck, .hook_arg = &report});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_int_equal(nr_threads(), before + 1);
    free_rt(rt);
}

/* ---- helping ---- */

struct hides_work {
    BLZ_FRAME;
    struct event *done;
    int children;
};

struct posts {
    BLZ_FRAME;
    struct event *done;
};

BLZ_ASYNC(posts)
{
    BLZ_BEGIN;
    event_post(self->done);
    BLZ_END(0);
}

/* Spawns, so that the last child is in the LIFO slot, and blocks until all of them have run. */
BLZ_ASYNC(hides_work)
{
    BLZ_BEGIN;
    for (int i = 0; i < self->children; i++)
        check(BLZ_SPAWN(posts, .done = self->done) == 0);
    event_wait(self->done, self->children);
    BLZ_END(0);
}

static void tasks_behind_a_stuck_poll_run_elsewhere(void **state)
{
    blz_rt *rt = new_watched_rt(2, "hides_work");
    struct event done = EVENT_INIT;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, hides_work, .done = &done, .children = 1), 0);
    assert_int_equal(event_count(&report.called), 1);
    done = (struct event)EVENT_INIT;
    assert_int_equal(BLZ_BLOCK_ON(rt, hides_work, .done = &done, .children = 50), 0);
    free_rt(rt);
}

struct yields_then_posts {
    BLZ_FRAME;
    struct event *yielded, *done;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(yields_then_posts)
{
    BLZ_BEGIN;
    event_post(self->yielded);
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    event_post(self->done);
    BLZ_END(0);
}

struct hides_yielded {
    BLZ_FRAME;
    struct event *yielded, *done;
    int64_t rc;
    blz_future op;
};

/* A child that yields, on the same worker; then this one blocks until the child goes on. */
BLZ_ASYNC(hides_yielded)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN(yields_then_posts, .yielded = self->yielded, .done = self->done) == 0);
    while (event_count(self->yielded) == 0)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    event_wait(self->done, 1);
    BLZ_END(0);
}

static void yielded_tasks_behind_a_stuck_poll_run_elsewhere(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        blz_rt *rt = new_watched_rt(2, "hides_yielded");
        struct event yielded = EVENT_INIT, done = EVENT_INIT;
        assert_int_equal(BLZ_BLOCK_ON(rt, hides_yielded, .yielded = &yielded, .done = &done), 0);
        free_rt(rt);
    }
}

/* ---- timers of a stuck worker ---- */

/* A timer that calls back over and over, and one behind it that wakes: its waker posts an event. */
static struct {
    blz_timer calls, wakes;
    struct event called, woken;
    uint64_t worker_thread;
    int64_t times;
} timers;

static void count_call(void *arg)
{
    check(arg == &timers);
    check(blz_rt_current() != NULL);
    check(blz__thread_id() == timers.worker_thread);
    if (++timers.times < 3)
        check(blz_timer_start(&timers.calls, blz_now(), NULL) == 0);
    event_post(&timers.called);
}

static void post_woken(void *data)
{
    event_post(data);
}

struct blocks_timers {
    BLZ_FRAME;
};

/* The two timers are due. This poll goes on until the watchdog has fired the second one. */
BLZ_ASYNC(blocks_timers)
{
    static const blz_waker_ops ops = {.wake = post_woken};

    BLZ_BEGIN;
    timers.worker_thread = blz__thread_id();
    blz_timer_init(&timers.calls, count_call, &timers);
    check(blz_timer_start(&timers.calls, blz_now(), NULL) == 0);
    timers.wakes = (blz_timer){.target.waker = {&timers.woken, &ops}};
    blz__timer_arm(&timers.wakes, blz_now(), cx);
    event_wait(&timers.woken, 1);
    check(event_count(&timers.called) == 0);
    check(blz_timer_is_armed(&timers.calls));
    BLZ_END(0);
}

static void a_callback_waits_for_the_end_of_a_stuck_poll(void **state)
{
    blz_rt *rt = new_watched_rt(1, "blocks_timers");

    (void)state;
    memset(&timers, 0, sizeof timers);
    timers.called = timers.woken = (struct event)EVENT_INIT;
    assert_int_equal(BLZ_BLOCK_ON(rt, blocks_timers), 0);
    event_wait(&timers.called, 3);
    free_rt(rt);
}

/* ---- the callback of the watchdog ---- */

static struct {
    blz_rt *rt;
    struct event seen;
    int lines;
} used;

static void count_line(const char *line, void *arg)
{
    (void)arg;
    (void)line;
    used.lines++;
}

static void use_runtime(const blz_stuck *stuck, void *arg)
{
    blz_stats stats;

    (void)arg;
    check(!stuck->refused);
    if (strcmp(stuck->task, "blocks") != 0)
        return;
    check(blz_rt_shutdown(used.rt, 0) == -EDEADLK); /* that would wait for this thread */
    check(blz_rt_free(used.rt) == -EDEADLK);
    blz_rt_stats(used.rt, &stats);
    check(blz_task_dump(used.rt, count_line, NULL) == 0);
    check(BLZ_SPAWN_ON(used.rt, NULL, posts, .done = &used.seen) == 0);
}

static void the_callback_may_use_the_runtime(void **state)
{
    (void)state;
    used.seen = (struct event)EVENT_INIT;
    used.rt =
        new_rt(&(blz_options){.workers = 2, .watchdog_ns = LIMIT_NS, .on_stuck = use_runtime});
    /* Blocks until the task that the callback spawns has run. */
    assert_int_equal(BLZ_BLOCK_ON(used.rt, blocks, .until = &used.seen), 0);
    assert_true(used.lines >= 1);
    free_rt(used.rt);
}

/* ---- sleeping ---- */

static void it_sleeps_while_all_workers_do(void **state)
{
    blz_rt *rt = new_watched_rt(2, "give");

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
        while (blz__load(&rt->watchdog.state, ACQUIRE) != WATCHDOG_ASLEEP)
            sched_yield();
    }
    free_rt(rt);
}

static void it_wakes_up_with_the_first_worker(void **state)
{
    blz_rt *rt = new_watched_rt(2, "blocks");

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    while (blz__load(&rt->watchdog.state, ACQUIRE) != WATCHDOG_ASLEEP)
        sched_yield();
    assert_int_equal(BLZ_BLOCK_ON(rt, blocks, .until = &report.called), 0);
    assert_int_equal(event_count(&report.called), 1);
    free_rt(rt);
}

static void an_embedded_runtime_has_none(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(&(blz_options){.embedded = true, .watchdog_ns = LIMIT_NS});

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    turn_all(rt);
    assert_int_equal(nr_threads(), before);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_poll_that_takes_too_long_is_reported),
        TEST(a_named_task_is_reported_by_its_name),
        TEST(the_same_poll_is_reported_once),
        TEST(short_polls_are_not_reported),
        TEST(without_a_watchdog_nothing_is_reported),
        TEST(tasks_behind_a_stuck_poll_run_elsewhere),
        TEST(yielded_tasks_behind_a_stuck_poll_run_elsewhere),
        TEST(a_callback_waits_for_the_end_of_a_stuck_poll),
        TEST(the_callback_may_use_the_runtime),
        TEST(it_sleeps_while_all_workers_do),
        TEST(it_wakes_up_with_the_first_worker),
        TEST(an_embedded_runtime_has_none),
    };
    return RUN_TESTS(tests);
}
