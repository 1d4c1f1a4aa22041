/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule of blitz/time.h, for every function that takes a limit: zero and everything below means
 * that the time has passed; BLZ_NEVER is no limit. What each does within its limit is tested
 * elsewhere.
 */
#include "net_probe.h"

#include <semaphore.h>
#include <signal.h>

static const int64_t passed[] = {0, -1, -BLZ_SEC, INT64_MIN};

#define FOR_EACH_PASSED(ns)                                        \
    for (size_t i_ = 0; i_ < sizeof passed / sizeof *passed; i_++) \
        for (int64_t ns = passed[i_], once_ = 1; once_; once_ = 0)

static void a_timeout_has_passed(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_timeout limit = {0};
    blz_future never, now;

    (void)state;
    FOR_EACH_PASSED(ns)
    {
        assert_int_equal(AWAIT(rt, blz_with_timeout(&limit, ns, blz_pending(&never))), -ETIMEDOUT);
        assert_int_equal(AWAIT(rt, blz_with_timeout(&limit, ns, blz_ready(&now, 7))), 7);
    }
    assert_int_equal(AWAIT(rt, blz_with_timeout(&limit, BLZ_NEVER, blz_yield(&now))), 0);
    free_rt(rt);
}

static void a_sleep_is_over(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_sleep_op nap = {0};

    (void)state;
    FOR_EACH_PASSED(ns)
    assert_int_equal(AWAIT(rt, blz_sleep(&nap, ns)), 0);
    free_rt(rt);
}

static int64_t wait_at_gate(void *gate)
{
    return sem_wait(gate);
}

/* A name is looked up by the only thread of the pool, which has something else to do. */
ON_EACH_BACKEND(a_connect_has_no_time)
{
    blz_rt *rt = new_rt(&(blz_options){
        .backend = backend, .embedded = true, .max_blocking_threads = 1, .watchdog_ns = BLZ_NEVER});
    blz_tcp_connect_op op = {0};
    blz_tcp conn;
    sem_t gate;

    sem_init(&gate, 0, 0);
    assert_int_equal(blz_blocking_spawn(rt, wait_at_gate, &gate, NULL), 0);
    FOR_EACH_PASSED(ns)
    assert_int_equal(AWAIT(rt, blz_tcp_connect(&op, &conn, "name.invalid:1", ns)), -ETIMEDOUT);
    assert_int_equal(AWAIT(rt, blz_tcp_connect_name(&op, &conn, "name.invalid:1",
                                                    &(blz_tcp_connect_options){.timeout_ns = -1})),
                     -ETIMEDOUT);
    sem_post(&gate);
    free_rt(rt);
    sem_destroy(&gate);
}

ON_EACH_BACKEND(a_connect_has_all_the_time)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    char text[BLZ_ADDR_TEXT];
    blz_tcp_connect_op op = {0};
    blz_tcp_listener ln;
    blz_tcp conn;

    assert_int_equal(blz_tcp_listen_with(&ln, &addr, &(blz_tcp_listen_options){.rt = rt}), 0);
    assert_int_equal(blz_tcp_listener_addr(&ln, &addr), 0);
    assert_true(blz_addr_format(&addr, text, sizeof text) > 0);
    assert_int_equal(AWAIT(rt, blz_tcp_connect(&op, &conn, text, BLZ_NEVER)), 0);
    blz_tcp_close(&conn);
    assert_int_equal(AWAIT(rt, blz_tcp_connect_name(&op, &conn, text, NULL)), 0);
    blz_tcp_close(&conn);
    blz_tcp_listener_close(&ln);
    free_rt(rt);
}

static int64_t give_seven(void *arg)
{
    (void)arg;
    return 7;
}

static void a_deadline_has_passed(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_fdset_ready_op ready = {0};
    blz_timeout limit = {0};
    blz_sleep_op nap = {0};
    blz_fdset set = {{0}};
    blz_future op;

    (void)state;
    FOR_EACH_PASSED(ns)
    {
        assert_int_equal(AWAIT(rt, blz_sleep_until(&nap, ns)), 0);
        assert_int_equal(AWAIT(rt, blz_with_deadline(&limit, ns, blz_pending(&op))), -ETIMEDOUT);
        assert_int_equal(AWAIT(rt, blz_with_deadline(&limit, ns, blz_ready(&op, 7))), 7);
        assert_int_equal(AWAIT(rt, blz_fdset_ready(&ready, &set, ns)), 0);
    }
    assert_int_equal(AWAIT(rt, blz_with_deadline(&limit, BLZ_NEVER, blz_yield(&op))), 0);
    assert_int_equal(AWAIT(rt, blz_fdset_close(&ready, &set)), 0);
    free_rt(rt);
}

static void a_thread_tries_once(void **state)
{
    blz_future op;

    (void)state;
    FOR_EACH_PASSED(ns)
    {
        assert_int_equal(blz_wait_until(blz_pending(&op), ns), -ETIMEDOUT);
        assert_int_equal(blz_wait_until(blz_ready(&op, 7), ns), 7);
    }
    assert_int_equal(blz_wait_until(blz_yield(&op), BLZ_NEVER), 0);
}

static void an_interval_needs_time(void **state)
{
    blz_interval ticks;

    (void)state;
    FOR_EACH_PASSED(ns)
    assert_int_equal(blz_interval_init(&ticks, 0, ns, BLZ_INTERVAL_SKIP), -EINVAL);
}

/* ---- children ---- */

/* `cat`, which waits for what never comes, and ends with this process; what is ignored here is
 * ignored there. */
static int64_t terminate_cat(blz_rt *rt, bool ignores, int64_t grace_ns)
{
    blz_child_terminate_op op = {0};
    blz_command cmd;
    blz_child child;
    int64_t status;

    blz_command_init(&cmd, "cat");
    blz_command_stdio(&cmd, 0, BLZ_STDIO_PIPE);
    if (ignores)
        signal(SIGTERM, SIG_IGN);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    signal(SIGTERM, SIG_DFL);
    status = AWAIT(rt, blz_child_terminate(&op, &child, grace_ns));
    blz_child_drop(&child);
    blz_command_free(&cmd);
    return status;
}

ON_EACH_BACKEND(a_child_has_no_grace)
{
    blz_rt *rt = turning_rt(backend);

    FOR_EACH_PASSED(ns)
    assert_int_equal(blz_exit_signal(terminate_cat(rt, true, ns)), SIGKILL);
    assert_int_equal(blz_exit_signal(terminate_cat(rt, false, BLZ_NEVER)), SIGTERM);
    free_rt(rt);
}

/* ---- shutting down ---- */

static void phases_without_time_are_late_at_once(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_shutdown_options options = {
        .no_signals = true, .stop_ns = -1, .drain_ns = -1, .cancel_ns = -1, .force_ns = -1};
    blz_shutdown_report report;
    blz_shutdown_op op = {0};
    blz_shutdown *shutdown;
    blz_guard guard;

    (void)state;
    assert_int_equal(blz_shutdown_new(&shutdown, &options), 0);
    assert_int_equal(blz_guard_accept(&guard, shutdown), 0);
    blz_shutdown_begin(shutdown);
    assert_int_equal(AWAIT(rt, blz_shutdown_run(&op, shutdown)), -ETIMEDOUT);
    blz_shutdown_get_report(shutdown, &report);
    for (int phase = BLZ_SHUTDOWN_STOPPING; phase < BLZ_SHUTDOWN_ENDED; phase++)
        assert_int_equal(report.steps[phase].end, BLZ_SHUTDOWN_LATE);
    blz_guard_leave(&guard);
    blz_shutdown_free(shutdown);
    free_rt(rt);
}

/* Threads end as soon as they have nothing to do, or never. */
static void idle_threads_have_no_time_or_all(void **state)
{
    static const int64_t keep_alive[] = {-1, INT64_MIN, BLZ_NEVER};

    (void)state;
    for (size_t i = 0; i < sizeof keep_alive / sizeof *keep_alive; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .blocking_keep_alive_ns = keep_alive[i]});
        for (int call = 0; call < 3; call++) {
            blz_blocking_op op = {0};
            assert_int_equal(blz_blocking_start(&op, give_seven, NULL, rt), 0);
            assert_int_equal(blz_blocking_wait(&op), 7);
        }
        free_rt(rt);
    }
}

static void a_runtime_without_patience_ends(void **state)
{
    (void)state;
    assert_int_equal(blz_rt_free(new_rt(&(blz_options){.workers = 1, .shutdown_ns = -1})), 0);
    assert_int_equal(blz_rt_free(new_rt(&(blz_options){.workers = 1, .shutdown_ns = BLZ_NEVER})),
                     0);
}

struct door {
    sem_t entered, open;
};

static int64_t pass_door(void *arg)
{
    struct door *door = arg;

    sem_post(&door->entered);
    return sem_wait(&door->open);
}

static void a_shutdown_without_time_does_not_wait(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_blocking_op op = {0};
    struct door door;

    (void)state;
    sem_init(&door.entered, 0, 0);
    sem_init(&door.open, 0, 0);
    assert_int_equal(blz_blocking_start(&op, pass_door, &door, rt), 0);
    sem_wait(&door.entered);
    FOR_EACH_PASSED(ns)
    assert_int_equal(blz_rt_shutdown(rt, ns), -ETIMEDOUT);
    sem_post(&door.open);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    blz_blocking_wait(&op);
    free_rt(rt);
    sem_destroy(&door.entered);
    sem_destroy(&door.open);
}

/* ---- options in which a negative time makes no sense ---- */

static void a_watchdog_needs_time(void **state)
{
    blz_rt *rt = NULL;

    (void)state;
    assert_int_equal(blz_rt_new(&rt, &(blz_options){.workers = 1, .watchdog_ns = -1}), -EINVAL);
    assert_null(rt);
    free_rt(new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER}));
}

static void idleness_needs_time(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_copy_both_op op = {0};
    blz_stream a, b, c, d;

    (void)state;
    assert_int_equal(blz_stream_pair(&a, &b, 0, NULL), 0);
    assert_int_equal(blz_stream_pair(&c, &d, 0, NULL), 0);
    assert_int_equal(AWAIT(rt, blz_copy_both(&op, b, c, &(blz_copy_options){.idle_ns = -1})),
                     -EINVAL);
    blz_stream_close(&a);
    blz_stream_close(&b);
    blz_stream_close(&c);
    blz_stream_close(&d);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_timeout_has_passed),
        TEST(a_sleep_is_over),
        TEST(a_connect_has_no_time),
        TEST(a_connect_has_all_the_time),
        TEST(a_shutdown_without_time_does_not_wait),
        TEST(a_deadline_has_passed),
        TEST(a_thread_tries_once),
        TEST(an_interval_needs_time),
        TEST(a_child_has_no_grace),
        TEST(phases_without_time_are_late_at_once),
        TEST(idle_threads_have_no_time_or_all),
        TEST(a_runtime_without_patience_ends),
        TEST(a_watchdog_needs_time),
        TEST(idleness_needs_time),
    };
    return RUN_TESTS(tests);
}
