/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes when the system or the memory says no, at every call that starting, capturing and
 * dropping make: the error reaches the caller with its step, and no descriptor, block or child is
 * left. The child's own calls are counted too: it shares the parent's memory.
 */
#include "harness.h"

#include "faulty.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

static bool has_no_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* With something of every kind in it. */
static blz_command full_command(void)
{
    blz_command cmd;

    blz_command_init_with(&cmd, "sh", test_memory());
    blz_command_args(&cmd, (const char *const[]){"-c", "printf out; printf err >&2", NULL});
    blz_command_env(&cmd, "PATH", "/bin:/usr/bin");
    blz_command_dir(&cmd, "/");
    blz_command_stdio(&cmd, 0, BLZ_STDIO_NULL);
    blz_command_fd(&cmd, 5, 2);
    blz_command_group(&cmd, 0);
    blz_command_rlimit(&cmd, RLIMIT_CORE, 0, 0);
    return cmd;
}

/* The same, with who it is; the group is that of its session. */
static blz_command own_command(void)
{
    static const gid_t groups[] = {0, 1};
    blz_command cmd;

    blz_command_init_with(&cmd, "/bin/sh", test_memory());
    blz_command_args(&cmd, (const char *const[]){"-c", "printf out; printf err >&2", NULL});
    blz_command_session(&cmd);
    if (geteuid() == 0) /* nobody else may */
        blz_command_groups(&cmd, groups, 2);
    blz_command_gid(&cmd, getegid());
    blz_command_uid(&cmd, geteuid());
    return cmd;
}

/* Gives the result, and checks that an output is whole. */
static int64_t capture(blz_rt *rt, blz_command *cmd)
{
    blz_output out = {0};
    int64_t rc = BLZ_BLOCK_ON(rt, captures, .cmd = cmd, .out = &out);

    if (rc == 0)
        assert_true(strcmp(out.out, "out") == 0 && strcmp(out.err, "err") == 0);
    blz_output_free(&out);
    return rc;
}

static blz_rt *warm_rt(const char *backend)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = backend});
    blz_command cmd = full_command();

    assert_int_equal(capture(rt, &cmd), 0);
    blz_command_free(&cmd);
    return rt;
}

/* ---- system calls ---- */

struct fault {
    enum faulty call;
    int error;
    const char *step; /* where it happens */
    int least;        /* how often, at least */
};

static const struct fault full_faults[] = {
    {FAULTY_PIPE_NEW, EMFILE, "pipe", 2},    {KERNEL_CLONE, EAGAIN, "clone", 1},
    {CHILD_OPENAT, EMFILE, "open stdin", 1}, {CHILD_DUP3, EMFILE, "descriptors", 4},
    {CHILD_FCNTL, EMFILE, "descriptors", 1}, {CHILD_SETPGID, EPERM, "group", 1},
    {CHILD_PRLIMIT, EPERM, "rlimit", 1},     {CHILD_CHDIR, EACCES, "chdir", 1},
    {CHILD_EXECVE, ENOMEM, "exec", 1},       {ATTACH, ENOMEM, "register", 1},
};

static const struct fault own_faults[] = {
    {CHILD_SETSID, EPERM, "session", 1},
    {CHILD_SETRESGID, EPERM, "gid", 1},
    {CHILD_SETRESUID, EAGAIN, "uid", 1},
    {CHILD_SETGROUPS, EPERM, "groups", 1}, /* the last: only of a privileged one */
};

static void fail_each(blz_rt *rt, blz_command *cmd, const struct fault *fault)
{
    int failures = 0, fds = nr_fds();

    for (int n = 1;; n++) {
        fail_call(fault->call, n, false, fault->error);
        int64_t rc = capture(rt, cmd);
        bool failed = stop_failing(fault->call);
        assert_int_equal(rc, failed ? -fault->error : 0);
        assert_int_equal(nr_fds(), fds);
        assert_true(has_no_children());
        if (!failed)
            break;
        assert_string_equal(blz_command_failed_step(cmd), fault->step);
        failures++;
    }
    assert_true(failures >= fault->least);
}

static const char *const backends[] = {"io_uring", "epoll", "poll"};

static void each_call_of_a_start_fails_once(void **state)
{
    size_t nr_own = sizeof own_faults / sizeof *own_faults - (geteuid() != 0);

    (void)state;
    for (int b = 0; b < 3; b++) {
        blz_rt *rt = warm_rt(backends[b]);
        blz_command full = full_command(), own = own_command();
        for (size_t i = 0; i < sizeof full_faults / sizeof *full_faults; i++)
            fail_each(rt, &full, &full_faults[i]);
        for (size_t i = 0; i < nr_own; i++)
            fail_each(rt, &own, &own_faults[i]);
        blz_command_free(&full);
        blz_command_free(&own);
        free_rt(rt);
    }
}

/* A pipe whose end could not be made non-blocking, where the backend wants it so. */
static void a_pipe_that_stays_blocking_is_an_error(void **state)
{
    static const struct fault fault = {FAULTY_HANDLE_SET_NONBLOCKING, EPERM, "pipe", 2};
    blz_rt *rt = warm_rt("epoll");
    blz_command cmd = full_command();

    (void)state;
    fail_each(rt, &cmd, &fault);
    blz_command_free(&cmd);
    free_rt(rt);
}

/* ---- memory ---- */

static void each_allocation_of_a_command_fails_once(void **state)
{
    blz_rt *rt = warm_rt("epoll");
    int failures = 0;

    (void)state;
    for (int n = 1;; n++) {
        memory_fail_at(the_memory(), n, false);
        blz_command cmd = full_command();
        bool failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        blz_child child;
        int rc = blz_command_spawn(&cmd, &child, rt);
        if (!failed) {
            assert_int_equal(rc, 0);
            blz_child_kill(&child);
            while (blz_child_try_await(&child) == -EAGAIN)
                sched_yield();
            blz_child_drop(&child);
            blz_command_free(&cmd);
            break;
        }
        assert_int_equal(rc, -ENOMEM);
        assert_string_equal(blz_command_failed_step(&cmd), "build");
        blz_command_free(&cmd);
        failures++;
    }
    assert_true(failures >= 7);
    free_rt(rt);
}

/* Each round has a fresh runtime: its descriptors are allocated in chunks. */
static void fail_allocations_of_a_capture(const char *backend)
{
    int failures = 0;
    bool failed = true;

    for (int n = 1; failed; n++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = backend});
        blz_command cmd = full_command();
        assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
        memory_fail_at(the_memory(), n, false);
        int64_t rc = capture(rt, &cmd);
        failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        assert_true(rc == 0 || (failed && rc == -ENOMEM));
        assert_true(has_no_children());
        failures += rc < 0;
        blz_command_free(&cmd);
        free_rt(rt);
    }
    assert_true(failures >= 5); /* plan, child, descriptors, two streams */
}

static void each_allocation_of_a_capture_fails_once(void **state)
{
    (void)state;
    for (int b = 0; b < 3; b++)
        fail_allocations_of_a_capture(backends[b]);
}

/* ---- orphans ---- */

static void drop_running(blz_rt *rt, bool killed)
{
    blz_command cmd;
    blz_child child;

    blz_command_init_with(&cmd, "/bin/sleep", test_memory());
    blz_command_arg(&cmd, "1000");
    if (killed)
        blz_command_kill_on_drop(&cmd);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    blz_child_drop(&child);
    blz_command_free(&cmd);
}

/* What could not be watched is looked at when the next child is dropped. */
static void orphans_that_could_not_be_watched_are_found_later(void **state)
{
    static const struct {
        enum faulty call;
        int error;
    } faults[] = {{FAULTY_PROCESS_SET_OPEN, EMFILE},
                  {FAULTY_THREAD_START, EAGAIN},
                  {FAULTY_PROCESS_SET_ADD, ENOMEM}};

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int64_t blocks = memory_blocks(the_memory());
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = "poll"});
        fail_call(faults[i].call, 1, true, faults[i].error);
        drop_running(rt, true);
        assert_true(stop_failing(faults[i].call));
        drop_running(rt, true);
        free_rt(rt);
        while (!has_no_children() || memory_blocks(the_memory()) != blocks)
            sched_yield();
    }
}

static void without_a_keeper_each_drop_looks_after_the_others(void **state)
{
    int64_t blocks = memory_blocks(the_memory());
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = "poll"});

    (void)state;
    fail_call(FAULTY_PROCESS_SET_OPEN, 1, true, EMFILE);
    for (int i = 0; i < 10; i++)
        drop_running(rt, true);
    assert_true(stop_failing(FAULTY_PROCESS_SET_OPEN));
    drop_running(rt, true);
    free_rt(rt);
    while (!has_no_children() || memory_blocks(the_memory()) != blocks)
        sched_yield();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_call_of_a_start_fails_once),
        TEST(a_pipe_that_stays_blocking_is_an_error),
        TEST(each_allocation_of_a_command_fails_once),
        TEST(each_allocation_of_a_capture_fails_once),
        TEST(orphans_that_could_not_be_watched_are_found_later),
        TEST(without_a_keeper_each_drop_looks_after_the_others),
    };
    return RUN_TESTS(tests);
}
