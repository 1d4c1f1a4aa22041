/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that use processes, and commands for them. */
#ifndef PROCESS_TASKS_H
#define PROCESS_TASKS_H

#include "io_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- tasks ---- */

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

struct waits {
    BLZ_FRAME;
    blz_child *child;
    struct event *begun;
    int64_t rc;
    blz_child_await_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    if (self->begun)
        event_post(self->begun);
    BLZ_AWAIT(self->rc, blz_child_await(&self->op, self->child));
    BLZ_END(self->rc);
}

struct runs {
    BLZ_FRAME;
    blz_command *cmd;
    int64_t rc;
    blz_command_run_op op;
};

BLZ_ASYNC(runs)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_command_run(&self->op, self->cmd));
    BLZ_END(self->rc);
}

struct reads {
    BLZ_FRAME;
    const blz_pipe *pipe;
    char *buf;
    size_t len;
    int64_t rc;
    blz_io io;
};

BLZ_ASYNC(reads)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pipe_read_exact(&self->io, self->pipe, self->buf, self->len));
    BLZ_END(self->rc);
}

struct writes {
    BLZ_FRAME;
    const blz_pipe *pipe;
    const char *text;
    int64_t rc;
    blz_io io;
};

BLZ_ASYNC(writes)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pipe_write_all(&self->io, self->pipe, self->text, strlen(self->text)));
    BLZ_END(self->rc);
}

struct terminates {
    BLZ_FRAME;
    blz_child *child;
    int64_t grace_ns;
    struct event *begun;
    int64_t rc;
    blz_child_terminate_op op;
};

BLZ_ASYNC(terminates)
{
    BLZ_BEGIN;
    if (self->begun)
        event_post(self->begun);
    BLZ_AWAIT(self->rc, blz_child_terminate(&self->op, self->child, self->grace_ns));
    BLZ_END(self->rc);
}

struct watches {
    BLZ_FRAME;
    pid_t pid;
    struct event *begun;
    int64_t rc;
    blz_process_watch_op op;
};

BLZ_ASYNC(watches)
{
    BLZ_BEGIN;
    if (self->begun)
        event_post(self->begun);
    BLZ_AWAIT(self->rc, blz_process_watch(&self->op, self->pid));
    BLZ_END(self->rc);
}

/* ---- commands ---- */

static inline blz_command command(const char *program)
{
    blz_command cmd;

    blz_command_init_with(&cmd, program, test_memory());
    return cmd;
}

static inline blz_command shell(const char *script)
{
    blz_command cmd = command("/bin/sh");

    blz_command_arg(&cmd, "-c");
    blz_command_arg(&cmd, script);
    return cmd;
}

/* A shell that says "x" when it is ready, and then does something. */
static inline blz_child started(blz_rt *rt, blz_command *cmd)
{
    blz_child child;
    char ready;

    blz_command_stdio(cmd, 1, BLZ_STDIO_PIPE);
    assert_int_equal(blz_command_spawn(cmd, &child, rt), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, reads, .pipe = &child.out, .buf = &ready, .len = 1), 1);
    return child;
}

/* What it wrote must be `expected`. Frees the command. */
static inline void expect_output(blz_rt *rt, blz_command *cmd, const char *expected)
{
    blz_output out = {0};

    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = cmd, .out = &out), 0);
    assert_string_equal(out.out ? out.out : "", expected);
    blz_output_free(&out);
    blz_command_free(cmd);
}

static inline void expect_failure(blz_rt *rt, blz_command *cmd, const char *step, int error)
{
    blz_child child;

    assert_int_equal(blz_command_spawn(cmd, &child, rt), error);
    assert_string_equal(blz_command_failed_step(cmd), step);
    assert_int_equal(blz_child_pid(&child), -EBADF);
    blz_child_drop(&child);
    blz_command_free(cmd);
}

/* Whether the process has no children, ended or not. */
static inline bool has_no_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static inline void wait_until_no_children(int64_t blocks)
{
    while (!has_no_children() || memory_blocks(the_memory()) != blocks)
        sched_yield();
}

static inline blz_rt *one_rt(void)
{
    return new_rt(&(blz_options){.workers = 1});
}

#endif
