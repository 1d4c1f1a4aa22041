/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: errors, too much output, ends that are asked for; nobody stays behind. */
#include "process_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- errors ---- */

static void the_step_that_failed_is_named(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = command("/nonexistent/program");

    (void)state;
    expect_failure(rt, &cmd, "exec", -ENOENT);
    cmd = command("/dev/null");
    expect_failure(rt, &cmd, "exec", -EACCES);
    cmd = shell("exit 0");
    blz_command_dir(&cmd, "/nonexistent");
    expect_failure(rt, &cmd, "chdir", -ENOENT);
    cmd = shell("exit 0");
    blz_command_stdio(&cmd, 1, BLZ_STDIO_PIPE);
    blz_command_stdio_path(&cmd, 0, "/nonexistent", O_RDONLY, 0);
    expect_failure(rt, &cmd, "open stdin", -ENOENT);
    cmd = shell("exit 0");
    blz_command_stdio_path(&cmd, 2, "/", O_WRONLY, 0);
    expect_failure(rt, &cmd, "open stderr", -EISDIR);
    cmd = shell("exit 0");
    blz_command_fd(&cmd, 5, 9999);
    expect_failure(rt, &cmd, "descriptors", -EBADF);
    cmd = shell("exit 0");
    blz_command_rlimit(&cmd, 9999, 1, 1);
    expect_failure(rt, &cmd, "rlimit", -EINVAL);
    cmd = shell("exit 0");
    blz_command_group(&cmd, INT32_MAX);
    expect_failure(rt, &cmd, "group", -EPERM);
    assert_true(has_no_children());
    free_rt(rt);
}

static void what_makes_no_sense_is_said_at_the_start(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = command("true");

    (void)state;
    blz_command_env(&cmd, "A=B", "c");
    blz_command_arg(&cmd, "ignored from here on");
    expect_failure(rt, &cmd, "build", -EINVAL);
    cmd = command("true");
    blz_command_group(&cmd, 0);
    blz_command_session(&cmd);
    expect_failure(rt, &cmd, "build", -EINVAL);
    cmd = command("");
    expect_failure(rt, &cmd, "build", -ENOENT);
    cmd = (blz_command){0};
    expect_failure(rt, &cmd, "build", -EINVAL);
    cmd = command("true");
    blz_child child;
    assert_int_equal(blz_command_spawn(&cmd, &child, NULL), -ENXIO);
    blz_command_free(&cmd);
    free_rt(rt);
}

/* ---- output ---- */

static void both_streams(blz_rt *rt)
{
    /* More than a pipe holds, of each, one after the other. */
    blz_command cmd = shell("head -c 200000 /dev/zero >&2; head -c 300000 /dev/zero; exit 3");
    blz_output out = {0};

    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = &cmd, .out = &out), 3);
    assert_int_equal(out.out_len, 300000);
    assert_int_equal(out.err_len, 200000);
    assert_int_equal(out.out[300000], 0);
    blz_output_free(&out);
    blz_command_free(&cmd);
}

static void output_and_errors_are_kept_at_the_same_time(void **state)
{
    (void)state;
    on_every_backend(both_streams);
}

static void over_the_limit(blz_rt *rt)
{
    blz_command cmd = shell("exec yes");
    blz_output out = {.max_out = 5000};

    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = &cmd, .out = &out), -EMSGSIZE);
    assert_int_equal(out.out_len, 5000);
    assert_memory_equal(out.out, "y\ny\n", 4);
    blz_output_free(&out);
    blz_command_free(&cmd);
    assert_true(has_no_children());
}

static void a_child_that_writes_too_much_is_killed(void **state)
{
    (void)state;
    on_every_backend(over_the_limit);
}

static void as_much_as_the_limit_is_fine(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("printf 12345; printf 123 >&2");
    blz_output out = {.max_out = 5, .max_err = 3};

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = &cmd, .out = &out), 0);
    assert_string_equal(out.out, "12345");
    assert_string_equal(out.err, "123");
    blz_output_free(&out);
    out.max_err = 2;
    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = &cmd, .out = &out), -EMSGSIZE);
    blz_output_free(&out);
    blz_command_free(&cmd);
    free_rt(rt);
}

/* The shell tells its number through a pipe, so that the test knows when it runs. */
static void cancelled_capture(blz_rt *rt)
{
    int fds[2];
    char ready;
    blz_command cmd = shell("printf x >&5; exec 5>&-; printf part; exec sleep 1000");
    blz_output out = {0};
    blz_handle handle;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    blz_command_fd(&cmd, 5, fds[1]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, captures, .cmd = &cmd, .out = &out), 0);
    assert_int_equal(read(fds[0], &ready, 1), 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    assert_true(has_no_children());
    blz_output_free(&out);
    blz_command_free(&cmd);
    close(fds[0]);
    close(fds[1]);
}

static void a_cancelled_capture_kills_and_leaves_nothing(void **state)
{
    (void)state;
    on_every_backend(cancelled_capture);
}

/* ---- ending ---- */

static void grace(blz_rt *rt)
{
    blz_command cmd = shell("echo; exec sleep 1000");
    blz_child child = started(rt, &cmd);

    int64_t status = BLZ_BLOCK_ON(rt, terminates, .child = &child, .grace_ns = BLZ_HOUR);
    assert_int_equal(blz_exit_signal(status), SIGTERM);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    cmd = shell("trap '' TERM; echo; read line");
    blz_command_stdio(&cmd, 0, BLZ_STDIO_PIPE);
    child = started(rt, &cmd);
    status = BLZ_BLOCK_ON(rt, terminates, .child = &child, .grace_ns = 5 * BLZ_MSEC);
    assert_int_equal(blz_exit_signal(status), SIGKILL);
    assert_int_equal(BLZ_BLOCK_ON(rt, terminates, .child = &child, .grace_ns = 0), status);
    blz_child_drop(&child);
    blz_command_free(&cmd);
}

static void terminate_asks_and_then_kills(void **state)
{
    (void)state;
    on_every_backend_of(1, grace);
}

static void a_cancelled_terminate_kills_at_once(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("trap '' TERM; echo; read line");
    struct event begun = EVENT_INIT;
    blz_child child;
    blz_handle handle;

    (void)state;
    blz_command_stdio(&cmd, 0, BLZ_STDIO_PIPE);
    child = started(rt, &cmd);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, terminates, .child = &child, .grace_ns = BLZ_HOUR,
                                  .begun = &begun),
                     0);
    event_wait(&begun, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(blz_exit_signal(handle.result), SIGKILL);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
}

static void cancelled_wait(blz_rt *rt)
{
    blz_command cmd = shell("echo; exec sleep 1000");
    blz_child child = started(rt, &cmd);
    struct event begun = EVENT_INIT;
    blz_handle handle;

    assert_int_equal(blz_child_try_await(&child), -EAGAIN);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .child = &child, .begun = &begun), 0);
    event_wait(&begun, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    assert_int_equal(blz_child_signal(&child, SIGUSR1), 0); /* it is still there */
    assert_int_equal(blz_exit_signal(BLZ_BLOCK_ON(rt, waits, .child = &child)), SIGUSR1);
    blz_child_drop(&child);
    blz_command_free(&cmd);
}

static void a_cancelled_wait_leaves_the_child_alone(void **state)
{
    (void)state;
    on_every_backend(cancelled_wait);
}

/* ---- dropping ---- */

static void a_dropped_child_runs_on_and_leaves_no_zombie(void **state)
{
    int64_t blocks = memory_blocks(the_memory());
    blz_rt *rt = one_rt();
    blz_command cmd = shell("echo; read line");
    int fds[2];
    blz_child child;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    blz_command_fd(&cmd, 0, fds[0]);
    child = started(rt, &cmd);
    pid_t pid = blz_child_pid(&child);
    blz_child_drop(&child);
    blz_child_drop(&child); /* none */
    assert_int_equal(kill(pid, 0), 0);
    blz_command_free(&cmd);
    free_rt(rt); /* it outlives the runtime */
    close(fds[0]);
    close(fds[1]);
    wait_until_no_children(blocks);
}

static void many_dropped_children_leave_no_zombie(void **state)
{
    int64_t blocks = memory_blocks(the_memory());
    blz_rt *rt = one_rt();
    blz_command cmd = command("/bin/true");
    blz_child child;

    (void)state;
    for (int i = 0; i < 30; i++) {
        assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
        blz_child_drop(&child);
    }
    blz_command_free(&cmd);
    free_rt(rt);
    wait_until_no_children(blocks);
}

static void kill_on_drop_kills(void **state)
{
    int64_t blocks = memory_blocks(the_memory());
    blz_rt *rt = one_rt();
    blz_command cmd = shell("echo; exec sleep 1000");
    blz_child child;

    (void)state;
    blz_command_kill_on_drop(&cmd);
    child = started(rt, &cmd);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
    wait_until_no_children(blocks);
}

/* In a forked process: starts, drops and awaits children. */
static void use_in_forked_process(void)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_command cmd = command("/bin/true");
    blz_child child;

    for (int i = 0; i < 3; i++) {
        check(blz_command_spawn(&cmd, &child, rt) == 0);
        blz_child_drop(&child);
    }
    check(BLZ_BLOCK_ON(rt, runs, .cmd = &cmd) == 0);
    blz_command_free(&cmd);
    while (!has_no_children())
        sched_yield();
    _exit(0);
}

static void a_forked_process_has_no_orphans_but_its_own(void **state)
{
    int64_t blocks = memory_blocks(the_memory());
    blz_rt *rt;
    int status;

    (void)state;
    if (is_sanitized())
        skip(); /* no threads after a fork */
    rt = one_rt();
    blz_command cmd = shell("echo; exec sleep 1000");
    blz_child child = started(rt, &cmd);
    pid_t pid = blz_child_pid(&child), forked;
    blz_child_drop(&child);
    forked = fork();
    if (forked == 0)
        use_in_forked_process();
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    blz_command_free(&cmd);
    free_rt(rt);
    wait_until_no_children(blocks);
}

/* ---- others ---- */

static void foreign(blz_rt *rt)
{
    struct event begun = EVENT_INIT;
    blz_handle handle;
    int fds[2], status;
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        close(fds[1]);
        _exit(read(fds[0], &byte, 1) == 0 ? 7 : 1);
    }
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, watches, .pid = pid, .begun = &begun), 0);
    event_wait(&begun, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, watches, .pid = pid), 0);
    close(fds[1]);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid); /* it is still ours to wait for */
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_int_equal(BLZ_BLOCK_ON(rt, watches, .pid = pid), -ESRCH);
    close(fds[0]);
}

static void the_end_of_any_process_can_be_awaited(void **state)
{
    (void)state;
    on_every_backend(foreign);
}

static void a_status_that_somebody_else_took_is_told(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = command("/bin/true");
    blz_child child;

    (void)state;
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    assert_int_equal(waitpid(blz_child_pid(&child), NULL, 0), blz_child_pid(&child));
    assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), -ECHILD);
    assert_int_equal(blz_child_kill(&child), -ESRCH);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_step_that_failed_is_named),
        TEST(what_makes_no_sense_is_said_at_the_start),
        TEST(output_and_errors_are_kept_at_the_same_time),
        TEST(a_child_that_writes_too_much_is_killed),
        TEST(as_much_as_the_limit_is_fine),
        TEST(a_cancelled_capture_kills_and_leaves_nothing),
        TEST(terminate_asks_and_then_kills),
        TEST(a_cancelled_terminate_kills_at_once),
        TEST(a_cancelled_wait_leaves_the_child_alone),
        TEST(a_dropped_child_runs_on_and_leaves_no_zombie),
        TEST(many_dropped_children_leave_no_zombie),
        TEST(kill_on_drop_kills),
        TEST(a_forked_process_has_no_orphans_but_its_own),
        TEST(the_end_of_any_process_can_be_awaited),
        TEST(a_status_that_somebody_else_took_is_told),
    };
    return RUN_TESTS(tests);
}
