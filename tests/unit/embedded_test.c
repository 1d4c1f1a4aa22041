/* SPDX-License-Identifier: Apache-2.0 */
/* Embedded runtimes: turns, the descriptor that says when, and who may turn. */
#include "harness.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { NOW_MS = 0 }; /* how long poll(2) waits for what must not come */

static bool is_readable(blz_rt *rt, int wait_ms)
{
    struct pollfd pfd = {.fd = blz_rt_fd(rt), .events = POLLIN};
    return poll(&pfd, 1, wait_ms) == 1;
}

/* What an event loop does: wait for the descriptor, turn. Until the task has ended. */
static void loop_until_done(blz_rt *rt, const blz_handle *handle)
{
    while (!blz_handle_done(handle)) {
        assert_true(is_readable(rt, PATIENCE_MS));
        assert_true(blz_rt_turn(rt) >= 0);
    }
}

static void no_threads_are_started(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_embedded_rt();

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(nr_threads(), before);
    free_rt(rt);
}

static void a_turn_runs_what_can_run_on_this_thread(void **state)
{
    blz_rt *rt = new_embedded_rt();
    uint64_t count = 0;
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_rt_turn(rt), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, yields, .times = 3, .count = &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(turn_all(rt), 4);
    assert_int_equal(count, 3);
    assert_true(blz_handle_done(&handle));
    blz_handle_detach(&handle);
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    free_rt(rt);
}

static void a_task_spawned_before_the_first_turn_makes_the_descriptor_readable(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, yields, .times = 3), 0);
    loop_until_done(rt, &handle);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void a_task_spawned_between_turns_makes_the_descriptor_readable(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    turn_all(rt);
    for (int i = 0; i < 100; i++) {
        assert_false(is_readable(rt, NOW_MS));
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, yields, .times = 3), 0);
        loop_until_done(rt, &handle);
        blz_handle_detach(&handle);
        turn_all(rt);
    }
    free_rt(rt);
}

static void an_idle_runtime_is_not_readable(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    turn_all(rt);
    assert_false(is_readable(rt, NOW_MS));
    free_rt(rt);
}

/* ---- other threads ---- */

struct other {
    blz_rt *rt;
    blz_handle handle;
    struct gate *gate;
    struct event spawned;
};

static void *spawn_from_elsewhere(void *arg)
{
    struct other *other = arg;

    for (int i = 0; i < 200; i++)
        check(BLZ_SPAWN_ON(other->rt, NULL, yields, .times = 2) == 0);
    check(BLZ_SPAWN_ON(other->rt, &other->handle, give, .value = 21) == 0);
    event_post(&other->spawned);
    return NULL;
}

static void spawns_from_other_threads_make_the_descriptor_readable(void **state)
{
    struct other other = {.rt = new_embedded_rt(), .spawned = EVENT_INIT};
    pthread_t thread;
    blz_stats stats;

    (void)state;
    turn_all(other.rt);
    thread = start_thread(spawn_from_elsewhere, &other);
    do {
        assert_true(is_readable(other.rt, PATIENCE_MS));
        assert_true(blz_rt_turn(other.rt) >= 0);
        blz_rt_stats(other.rt, &stats);
    } while (stats.total.completed < 201);
    join_thread(thread);
    assert_int_equal(blz_handle_wait(&other.handle), 0);
    assert_int_equal(other.handle.result, 21);
    free_rt(other.rt);
}

static void *open_from_elsewhere(void *arg)
{
    gate_open(arg, 6);
    return NULL;
}

static void wakes_from_other_threads_make_the_descriptor_readable(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct gate gate = GATE_INIT;
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
        if (i % 2)
            turn_all(rt);
        pthread_t thread = start_thread(open_from_elsewhere, &gate);
        loop_until_done(rt, &handle);
        join_thread(thread);
        assert_int_equal(blz_handle_wait(&handle), 0);
        assert_int_equal(handle.result, 6);
    }
    free_rt(rt);
}

static void *turn_from_elsewhere(void *arg)
{
    check(blz_rt_turn(arg) == -EPERM);
    check(blz_rt_shutdown(arg, 0) == -EPERM);
    check(blz_rt_free(arg) == -EPERM);
    return NULL;
}

static void only_the_first_thread_may_turn(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    assert_int_equal(blz_rt_turn(rt), 0);
    join_thread(start_thread(turn_from_elsewhere, rt));
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    assert_int_equal(turn_all(rt), 1);
    free_rt(rt);
}

static int64_t turn_inside(void *arg)
{
    return blz_rt_turn(arg);
}

static void a_task_cannot_turn(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, calls, .fn = turn_inside, .arg = rt), 0);
    turn_all(rt);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -EDEADLK);
    free_rt(rt);
}

static void the_turning_thread_cannot_block_on_its_own_tasks(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_rt_turn(rt), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), -EDEADLK);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeps), 0);
    assert_int_equal(blz_handle_wait(&handle), -EDEADLK);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void *block_from_elsewhere(void *arg)
{
    struct other *other = arg;

    check(BLZ_BLOCK_ON(other->rt, yields, .times = 10, .value = 2) == 2);
    event_post(&other->spawned);
    return NULL;
}

static void another_thread_may_block_while_this_one_turns(void **state)
{
    struct other other = {.rt = new_embedded_rt(), .spawned = EVENT_INIT};
    pthread_t thread;

    (void)state;
    turn_all(other.rt);
    thread = start_thread(block_from_elsewhere, &other);
    do {
        assert_true(is_readable(other.rt, PATIENCE_MS));
        assert_true(blz_rt_turn(other.rt) >= 0);
        blz_stats stats;
        blz_rt_stats(other.rt, &stats);
        if (stats.total.completed == 1)
            break;
    } while (true);
    event_wait(&other.spawned, 1);
    join_thread(thread);
    free_rt(other.rt);
}

/* ---- how long a turn takes ---- */

static void a_task_that_only_yields_does_not_keep_a_turn(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, yields, .times = INT32_MAX), 0);
    for (int i = 0; i < 10; i++) {
        assert_true(is_readable(rt, NOW_MS));
        int64_t polls = blz_rt_turn(rt);
        assert_true(polls > 0 && polls < 10000);
    }
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_true(blz_handle_done(&handle));
    blz_handle_detach(&handle);
    free_rt(rt);
}

struct wakes_itself {
    blz_future future;
    int times;
};

static blz_poll wakes_itself_poll(blz_future *future, blz_cx *cx)
{
    struct wakes_itself *self = (struct wakes_itself *)future;
    blz_waker waker = blz_cx_waker(cx);

    if (--self->times == 0) {
        blz_waker_drop(&waker);
        return blz_future_done(future, 0);
    }
    blz_waker_wake(&waker);
    return BLZ_PENDING;
}

static void a_task_that_wakes_itself_does_not_keep_a_turn(void **state)
{
    static const blz_future_ops ops = {.name = "wakes_itself", .poll = wakes_itself_poll};
    struct wakes_itself frame = {.future.ops = &ops, .times = 100000};
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;
    int turns = 0;

    (void)state;
    assert_int_equal(blz_spawn(&frame, sizeof frame,
                               &(blz_spawn_args){.rt = rt, .handle = &handle}),
                     0);
    for (; !blz_handle_done(&handle); turns++) {
        assert_true(is_readable(rt, NOW_MS));
        assert_true(blz_rt_turn(rt) < 10000);
    }
    assert_true(turns >= 10);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void a_long_event_interval_does_not_stop_the_turns(void **state)
{
    blz_rt *rt = new_rt(
        &(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .event_interval = 1u << 30});
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give, .value = 1), 0);
    assert_int_equal(blz_rt_turn(rt), 1);
    assert_true(blz_handle_done(&handle));
    blz_handle_detach(&handle);
    free_rt(rt);
}

/* ---- the end ---- */

static void freeing_runs_the_tasks_to_their_end(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[0], sleeps), 0);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[1], sleeps), 0); /* never polled before */
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[2], give, .value = 1), 0);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, i == 2 ? 1 : -ECANCELED);
    }
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[0], give), -ESHUTDOWN);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_threads_are_started),
        TEST(a_turn_runs_what_can_run_on_this_thread),
        TEST(a_task_spawned_before_the_first_turn_makes_the_descriptor_readable),
        TEST(a_task_spawned_between_turns_makes_the_descriptor_readable),
        TEST(an_idle_runtime_is_not_readable),
        TEST(spawns_from_other_threads_make_the_descriptor_readable),
        TEST(wakes_from_other_threads_make_the_descriptor_readable),
        TEST(only_the_first_thread_may_turn),
        TEST(a_task_cannot_turn),
        TEST(the_turning_thread_cannot_block_on_its_own_tasks),
        TEST(another_thread_may_block_while_this_one_turns),
        TEST(a_task_that_only_yields_does_not_keep_a_turn),
        TEST(a_task_that_wakes_itself_does_not_keep_a_turn),
        TEST(a_long_event_interval_does_not_stop_the_turns),
        TEST(freeing_runs_the_tasks_to_their_end),
    };
    if (getenv("BLZ_BACKEND") && strcmp(getenv("BLZ_BACKEND"), "poll") == 0)
        unsetenv("BLZ_BACKEND"); /* poll has no descriptor to wait for */
    return RUN_TESTS(tests);
}
