/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.on_ready: a loop that knows of nothing but the calls. It sleeps on a condition variable,
 * and makes one turn for each call. If a call were lost, it would hang.
 */
#include "net_probe.h"

#include <stdlib.h>
#include <string.h>

struct loop {
    blz_rt *rt;
    struct event called;
    int64_t seen; /* calls that a turn has been made for */
};

static void on_ready(void *arg)
{
    event_post(arg);
}

static void open_loop(struct loop *loop, const char *backend)
{
    *loop = (struct loop){.called = EVENT_INIT};
    loop->rt = new_rt(&(blz_options){.embedded = true,
                                     .watchdog_ns = BLZ_NEVER,
                                     .backend = backend,
                                     .on_ready = on_ready,
                                     .hook_arg = &loop->called});
}

static void turn_when_called(struct loop *loop)
{
    event_wait(&loop->called, loop->seen + 1);
    loop->seen = event_count(&loop->called);
    assert_true(blz_rt_turn(loop->rt) >= 0);
}

static int64_t loop_until_done(struct loop *loop, blz_handle *handle)
{
    while (!blz_handle_done(handle))
        turn_when_called(loop);
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* The backend poll has no wait for another thread. */
#define ON_EACH_READY(name)                       \
    static void name##_with(const char *backend); \
    ON_EACH_BACKEND(name)                         \
    {                                             \
        if (strcmp(backend, "poll") != 0)         \
            name##_with(backend);                 \
    }                                             \
    static void name##_with(const char *backend)

/* ---- tasks ---- */

ON_EACH_READY(a_task_spawned_before_the_first_turn_is_told)
{
    struct loop loop;
    blz_handle handle;

    open_loop(&loop, backend);
    assert_int_equal(BLZ_SPAWN_ON(loop.rt, &handle, yields, .times = 3, .value = 4), 0);
    assert_int_equal(loop_until_done(&loop, &handle), 4);
    free_rt(loop.rt);
}

static void *spawn_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        check(BLZ_SPAWN_ON(arg, NULL, yields, .times = 2) == 0);
    return NULL;
}

ON_EACH_READY(spawns_of_other_threads_are_told)
{
    struct loop loop;
    blz_stats stats;

    open_loop(&loop, backend);
    pthread_t thread = start_thread(spawn_many, loop.rt);
    do {
        turn_when_called(&loop);
        blz_rt_stats(loop.rt, &stats);
    } while (stats.total.completed < 200);
    join_thread(thread);
    free_rt(loop.rt);
}

static void *open_gate(void *arg)
{
    gate_open(arg, 6);
    return NULL;
}

ON_EACH_READY(wakes_of_other_threads_are_told)
{
    struct loop loop;

    open_loop(&loop, backend);
    for (int i = 0; i < 50; i++) {
        struct gate gate = GATE_INIT;
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(loop.rt, &handle, enters, .gate = &gate), 0);
        if (i % 2)
            turn_all(loop.rt); /* also turns that no call has asked for */
        pthread_t thread = start_thread(open_gate, &gate);
        assert_int_equal(loop_until_done(&loop, &handle), 6);
        join_thread(thread);
    }
    free_rt(loop.rt);
}

ON_EACH_READY(a_turn_that_leaves_something_is_followed_by_a_call)
{
    struct loop loop;
    blz_handle handle;

    open_loop(&loop, backend);
    assert_int_equal(BLZ_SPAWN_ON(loop.rt, &handle, yields, .times = 100000), 0);
    loop_until_done(&loop, &handle);
    assert_true(loop.seen > 1);
    free_rt(loop.rt);
}

/* ---- timers ---- */

struct naps {
    BLZ_FRAME;
    int times;
    int64_t ns;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(naps)
{
    BLZ_BEGIN;
    for (; self->times > 0; self->times--)
        BLZ_AWAIT(self->rc, blz_sleep(&self->op, self->ns));
    BLZ_END(self->rc);
}

ON_EACH_READY(timers_that_are_due_are_told)
{
    struct loop loop;
    blz_handle handle;

    open_loop(&loop, backend);
    assert_int_equal(BLZ_SPAWN_ON(loop.rt, &handle, naps, .times = 5, .ns = BLZ_MSEC), 0);
    assert_int_equal(loop_until_done(&loop, &handle), 0);
    free_rt(loop.rt);
}

static void *spawn_nap(void *arg)
{
    check(BLZ_SPAWN_ON(arg, NULL, naps, .times = 1, .ns = BLZ_MSEC) == 0);
    return NULL;
}

/* The thread waits for a timer that is due in an hour, when the loop arms one by itself. */
ON_EACH_READY(a_timer_that_becomes_the_first_is_told)
{
    struct loop loop;
    blz_handle late, soon;

    open_loop(&loop, backend);
    assert_int_equal(BLZ_SPAWN_ON(loop.rt, &late, naps, .times = 1, .ns = BLZ_HOUR), 0);
    for (int i = 0; i < 20; i++) {
        turn_all(loop.rt);
        assert_int_equal(BLZ_SPAWN_ON(loop.rt, &soon, naps, .times = 1, .ns = BLZ_MSEC), 0);
        turn_all(loop.rt); /* no call has asked for it */
        assert_int_equal(loop_until_done(&loop, &soon), 0);
    }
    pthread_t thread = start_thread(spawn_nap, loop.rt);
    blz_stats stats;
    do {
        turn_when_called(&loop);
        blz_rt_stats(loop.rt, &stats);
    } while (stats.total.completed < 21);
    join_thread(thread);
    blz_handle_cancel(&late);
    assert_int_equal(loop_until_done(&loop, &late), -ECANCELED);
    free_rt(loop.rt);
}

/* ---- operations ---- */

static void *write_byte(void *arg)
{
    check(write(*(int *)arg, "x", 1) == 1);
    return NULL;
}

ON_EACH_READY(operations_that_end_are_told)
{
    struct loop loop;
    blz_io io = {0};
    blz_pipe pipe;
    int fds[2];
    char byte;

    open_loop(&loop, backend);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(blz_pipe_from_fd(&pipe, fds[0], loop.rt), 0);
    for (int i = 0; i < 50; i++) {
        blz_handle handle;
        blz_future *read = blz_pipe_read(&io, &pipe, &byte, 1);
        assert_int_equal(BLZ_SPAWN_ON(loop.rt, &handle, awaits, .op = read), 0);
        if (i % 2)
            turn_all(loop.rt);
        pthread_t thread = start_thread(write_byte, &fds[1]);
        assert_int_equal(loop_until_done(&loop, &handle), 1);
        join_thread(thread);
    }
    blz_pipe_close(&pipe);
    close(fds[1]);
    free_rt(loop.rt);
}

ON_EACH_READY(operations_of_files_that_end_are_told)
{
    struct loop loop;
    blz_io io = {0};
    blz_file file;
    char buf[64];

    open_loop(&loop, backend);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(blz_file_from_fd(&file, fd, loop.rt), 0);
    for (int i = 0; i < 50; i++) {
        blz_handle handle;
        blz_future *read = blz_file_read_at(&io, &file, buf, sizeof buf, i * 4096);
        assert_int_equal(BLZ_SPAWN_ON(loop.rt, &handle, awaits, .op = read), 0);
        assert_int_equal(loop_until_done(&loop, &handle), sizeof buf);
    }
    blz_file_close(&file);
    free_rt(loop.rt);
}

/* ---- the rules ---- */

/* No turn is made, so the second spawn is not told. Freeing waits for calls that are under way. */
ON_EACH_READY(there_is_one_call_for_a_turn)
{
    struct loop loop;

    open_loop(&loop, backend);
    assert_int_equal(BLZ_SPAWN_ON(loop.rt, NULL, give), 0);
    event_wait(&loop.called, 1);
    assert_int_equal(BLZ_SPAWN_ON(loop.rt, NULL, give), 0);
    free_rt(loop.rt);
    assert_int_equal(event_count(&loop.called), 1);
}

static struct {
    blz_rt *rt;
    int64_t turn, shutdown, free;
    struct event done;
} forbidden = {.done = EVENT_INIT};

static void call_what_is_forbidden(void *unused)
{
    (void)unused;
    forbidden.turn = blz_rt_turn(forbidden.rt);
    forbidden.shutdown = blz_rt_shutdown(forbidden.rt, 0);
    forbidden.free = blz_rt_free(forbidden.rt);
    event_post(&forbidden.done);
}

static void the_callback_cannot_turn_or_free(void **state)
{
    (void)state;
    forbidden.rt = new_rt(&(blz_options){.embedded = true,
                                         .watchdog_ns = BLZ_NEVER,
                                         .on_ready = call_what_is_forbidden});
    assert_int_equal(BLZ_SPAWN_ON(forbidden.rt, NULL, give), 0);
    event_wait(&forbidden.done, 1);
    assert_int_equal(forbidden.turn, -EDEADLK);
    assert_int_equal(forbidden.shutdown, -EDEADLK);
    assert_int_equal(forbidden.free, -EDEADLK);
    assert_int_equal(turn_all(forbidden.rt), 1);
    free_rt(forbidden.rt);
}

static void a_runtime_that_is_never_used_is_freed(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct loop loop;
        open_loop(&loop, NULL);
        free_rt(loop.rt);
    }
}

static void what_it_cannot_serve_is_refused(void **state)
{
    blz_rt *rt;

    (void)state;
    assert_int_equal(blz_rt_new(&rt, &(blz_options){.on_ready = on_ready}), -EINVAL);
    assert_int_equal(
        blz_rt_new(&rt, &(blz_options){.embedded = true, .backend = "poll", .on_ready = on_ready}),
        -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_spawned_before_the_first_turn_is_told),
        TEST(spawns_of_other_threads_are_told),
        TEST(wakes_of_other_threads_are_told),
        TEST(a_turn_that_leaves_something_is_followed_by_a_call),
        TEST(timers_that_are_due_are_told),
        TEST(a_timer_that_becomes_the_first_is_told),
        TEST(operations_that_end_are_told),
        TEST(operations_of_files_that_end_are_told),
        TEST(there_is_one_call_for_a_turn),
        TEST(the_callback_cannot_turn_or_free),
        TEST(a_runtime_that_is_never_used_is_freed),
        TEST(what_it_cannot_serve_is_refused),
    };
    if (getenv("BLZ_BACKEND") && strcmp(getenv("BLZ_BACKEND"), "poll") == 0)
        unsetenv("BLZ_BACKEND"); /* poll cannot serve it */
    return RUN_TESTS(tests);
}
