/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that have been started, when the system says no: signals that are refused, waits that
 * fail, are interrupted, or end for no reason. On every backend. Nobody waits for what may never
 * come, and no descriptor, block or child is left.
 */
#include "harness.h"

#include "faulty.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};

/* ---- tasks ---- */

struct waits {
    BLZ_FRAME;
    blz_child *child;
    int64_t rc;
    blz_child_await_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_child_await(&self->op, self->child));
    BLZ_END(self->rc);
}

struct terminates {
    BLZ_FRAME;
    blz_child *child;
    int64_t rc;
    char buf[16];
    blz_io io;
    blz_child_terminate_op op;
};

/* After it has said that it is ready to ignore it. */
BLZ_ASYNC(terminates)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pipe_read(&self->io, &self->child->out, self->buf, sizeof self->buf));
    check(self->rc > 0);
    BLZ_AWAIT(self->rc, blz_child_terminate(&self->op, self->child, 0));
    BLZ_END(self->rc);
}

struct captures {
    BLZ_FRAME;
    blz_command *cmd;
    blz_output *out;
    int64_t rc;
    blz_output_op op;
};

BLZ_ASYNC(captures)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_command_output(&self->op, self->cmd, self->out));
    BLZ_END(self->rc);
}

struct watches {
    BLZ_FRAME;
    pid_t pid;
    int64_t rc;
    blz_process_watch_op op;
};

BLZ_ASYNC(watches)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_process_watch(&self->op, self->pid));
    BLZ_END(self->rc);
}

/* ---- children ---- */

static bool has_no_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static void wait_for_no_children(void)
{
    while (!has_no_children())
        sched_yield();
}

static blz_child start(blz_rt *rt, const char *script, int stdio)
{
    blz_command cmd;
    blz_child child;

    blz_command_init_with(&cmd, "/bin/sh", test_memory());
    blz_command_args(&cmd, (const char *const[]){"-c", script, NULL});
    blz_command_stdio(&cmd, 0, BLZ_STDIO_PIPE);
    blz_command_stdio(&cmd, 1, stdio);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    blz_command_free(&cmd);
    return child;
}

/* One that ends when its input does. */
static blz_child start_waiting(blz_rt *rt)
{
    return start(rt, "read x; exit 3", BLZ_STDIO_NULL);
}

static void end_waiting(blz_child *child)
{
    assert_int_equal(blz_pipe_close(&child->in), 0);
}

static blz_rt *new_rt_of(int b)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = backends[b]});
    blz_child child = start(rt, "exit 0", BLZ_STDIO_NULL);

    assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 0); /* all is set up */
    blz_child_drop(&child);
    return rt;
}

#define ON_EVERY_BACKEND(rt)       \
    for (int b_ = 0; b_ < 3; b_++) \
        for (blz_rt *rt = new_rt_of(b_); rt; free_rt(rt), rt = NULL)

/* ---- waiting ---- */

/* The only worker has done everything that it was told before. */
static void settle(blz_rt *rt)
{
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
}

static void until_it_was_ready_for_no_reason(blz_rt *rt)
{
    while (!has_failed(READABLE))
        sched_yield();
    stop_failing(READABLE);
    settle(rt);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* Readiness is a hint: whoever finds that it still runs waits again. */
static void a_wait_that_is_ready_too_early_goes_on(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_child child = start_waiting(rt);
        blz_handle handle;
        fail_call(READABLE, 1, false, EAGAIN);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .child = &child), 0);
        until_it_was_ready_for_no_reason(rt);
        assert_false(blz_handle_done(&handle));
        end_waiting(&child);
        assert_int_equal(result_of(&handle), 3);
        blz_child_drop(&child);
    }
}

static void a_watch_that_is_ready_too_early_goes_on(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_child child = start_waiting(rt);
        blz_handle handle;
        fail_call(READABLE, 1, false, EAGAIN);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, watches, .pid = blz_child_pid(&child)), 0);
        until_it_was_ready_for_no_reason(rt);
        assert_false(blz_handle_done(&handle));
        end_waiting(&child);
        assert_int_equal(result_of(&handle), 0);
        assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 3);
        blz_child_drop(&child);
    }
}

static void a_wait_that_is_interrupted_goes_on(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_child child = start(rt, "exit 4", BLZ_STDIO_NULL);
        fail_call(KERNEL_WAITID, 1, false, EINTR);
        assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 4);
        assert_true(stop_failing(KERNEL_WAITID));
        blz_child_drop(&child);
        assert_true(has_no_children());
    }
}

/* As if a stranger had taken its status. */
static void a_status_that_is_lost_is_told(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_child child = start(rt, "exit 4", BLZ_STDIO_NULL);
        pid_t pid = blz_child_pid(&child);
        int status;
        fail_call(FAULTY_PROCESS_REAP, 1, false, ECHILD);
        assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), -ECHILD);
        assert_true(stop_failing(FAULTY_PROCESS_REAP));
        assert_int_equal(blz_child_try_await(&child), -ECHILD);
        assert_int_equal(blz_child_kill(&child), -ESRCH); /* its number is somebody else's */
        blz_child_drop(&child);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
}

/* ---- watching ---- */

static void a_watch_that_cannot_begin_says_why(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        int fds = nr_fds();
        fail_call(FAULTY_PROCESS_OPEN, 1, false, EMFILE);
        assert_int_equal(BLZ_BLOCK_ON(rt, watches, .pid = getpid()), -EMFILE);
        fail_call(FAULTY_PROCESS_OPEN, 1, false, ENOTSUP);
        assert_int_equal(BLZ_BLOCK_ON(rt, watches, .pid = getpid()), -ENOTSUP);
        stop_failing(FAULTY_PROCESS_OPEN);
        fail_call(ATTACH, 1, false, ENOMEM);
        assert_int_equal(BLZ_BLOCK_ON(rt, watches, .pid = getpid()), -ENOMEM);
        assert_true(stop_failing(ATTACH));
        assert_int_equal(nr_fds(), fds);
    }
}

/* ---- signals ---- */

static void a_signal_that_is_refused_is_told(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_child child = start(rt, "echo ready; read x; exit 3", BLZ_STDIO_PIPE);
        fail_call(FAULTY_PROCESS_SIGNAL, 1, true, EPERM);
        assert_int_equal(blz_child_signal(&child, SIGTERM), -EPERM);
        assert_int_equal(blz_child_kill(&child), -EPERM);
        assert_int_equal(BLZ_BLOCK_ON(rt, terminates, .child = &child), -EPERM);
        assert_true(stop_failing(FAULTY_PROCESS_SIGNAL));
        end_waiting(&child);
        assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 3);
        blz_child_drop(&child);
    }
}

/* It ignores the first signal, and has become somebody whom we may not kill. */
static void nobody_waits_for_a_child_that_cannot_be_killed(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_child child = start(rt, "trap '' TERM; echo ready; read x; exit 3", BLZ_STDIO_PIPE);
        fail_call(FAULTY_PROCESS_SIGNAL, 2, true, EPERM);
        assert_int_equal(BLZ_BLOCK_ON(rt, terminates, .child = &child), -EPERM);
        assert_true(stop_failing(FAULTY_PROCESS_SIGNAL));
        end_waiting(&child);
        assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 3);
        blz_child_drop(&child);
    }
}

/* A descriptor that a child reads until we close the other end. */
struct tether {
    int theirs, ours;
};

static struct tether new_tether(blz_command *cmd)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    blz_command_fd(cmd, 5, fds[0]);
    return (struct tether){fds[0], fds[1]};
}

static void cut(struct tether *tether)
{
    close(tether->theirs);
    close(tether->ours);
}

static void a_capture_does_not_wait_for_what_it_cannot_kill(void **state)
{
    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_output out = {.max_out = 2};
        blz_command cmd;
        blz_command_init_with(&cmd, "/bin/sh", test_memory());
        blz_command_args(&cmd, (const char *const[]){"-c", "echo too much; read x <&5", NULL});
        struct tether tether = new_tether(&cmd);
        fail_call(FAULTY_PROCESS_SIGNAL, 1, true, EPERM);
        assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = &cmd, .out = &out), -EMSGSIZE);
        assert_true(stop_failing(FAULTY_PROCESS_SIGNAL));
        assert_false(has_no_children());
        cut(&tether);
        blz_output_free(&out);
        blz_command_free(&cmd);
        wait_for_no_children();
    }
}

/* It runs, cannot be registered, and cannot be killed: an orphan, and not somebody to wait for. */
static void a_start_does_not_wait_for_what_it_cannot_kill(void **state)
{
    int64_t blocks = memory_blocks(the_memory());

    (void)state;
    ON_EVERY_BACKEND(rt)
    {
        blz_command cmd;
        blz_child child;
        blz_command_init_with(&cmd, "/bin/sh", test_memory());
        blz_command_args(&cmd, (const char *const[]){"-c", "read x <&5", NULL});
        struct tether tether = new_tether(&cmd);
        fail_call(ATTACH, 1, false, ENOMEM);
        fail_call(FAULTY_PROCESS_SIGNAL, 1, true, EPERM);
        assert_int_equal(blz_command_spawn(&cmd, &child, rt), -ENOMEM);
        assert_true(stop_failing(FAULTY_PROCESS_SIGNAL));
        assert_true(stop_failing(ATTACH));
        assert_string_equal(blz_command_failed_step(&cmd), "register");
        assert_false(has_no_children());
        cut(&tether);
        blz_command_free(&cmd);
        wait_for_no_children();
    }
    while (memory_blocks(the_memory()) != blocks) /* the keeper frees after it has reaped */
        sched_yield();
}

/* Linux before 6.9. */
static void a_group_is_signalled_by_its_number_where_the_system_has_no_call_for_it(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_command cmd;
    blz_child child;

    (void)state;
    blz_command_init_with(&cmd, "sleep", test_memory());
    blz_command_arg(&cmd, "1000");
    blz_command_group(&cmd, 0);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    fail_call(KERNEL_SEND_SIGNAL, 1, false, EINVAL);
    assert_int_equal(blz_child_signal_group(&child, SIGKILL), 0);
    assert_true(stop_failing(KERNEL_SEND_SIGNAL));
    assert_int_equal(blz_exit_signal(BLZ_BLOCK_ON(rt, waits, .child = &child)), SIGKILL);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_that_is_ready_too_early_goes_on),
        TEST(a_watch_that_is_ready_too_early_goes_on),
        TEST(a_wait_that_is_interrupted_goes_on),
        TEST(a_status_that_is_lost_is_told),
        TEST(a_watch_that_cannot_begin_says_why),
        TEST(a_signal_that_is_refused_is_told),
        TEST(nobody_waits_for_a_child_that_cannot_be_killed),
        TEST(a_capture_does_not_wait_for_what_it_cannot_kill),
        TEST(a_start_does_not_wait_for_what_it_cannot_kill),
        TEST(a_group_is_signalled_by_its_number_where_the_system_has_no_call_for_it),
    };
    return RUN_TESTS(tests);
}
