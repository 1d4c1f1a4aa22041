/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: what a command says arrives in the child, ends are told, nobody stays behind. */
#include "io_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    blz_child_wait_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    if (self->begun)
        event_post(self->begun);
    BLZ_AWAIT(self->rc, blz_child_wait(&self->op, self->child));
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

static blz_command command(const char *program)
{
    blz_command cmd;

    blz_command_init_with(&cmd, program, test_memory());
    return cmd;
}

static blz_command shell(const char *script)
{
    blz_command cmd = command("/bin/sh");

    blz_command_arg(&cmd, "-c");
    blz_command_arg(&cmd, script);
    return cmd;
}

/* A shell that says "x" when it is ready, and then does something. */
static blz_child started(blz_rt *rt, blz_command *cmd)
{
    blz_child child;
    char ready;

    blz_command_stdio(cmd, 1, BLZ_STDIO_PIPE);
    assert_int_equal(blz_command_spawn(cmd, &child, rt), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, reads, .pipe = &child.out, .buf = &ready, .len = 1), 1);
    return child;
}

/* What it wrote must be `expected`. Frees the command. */
static void expect_output(blz_rt *rt, blz_command *cmd, const char *expected)
{
    blz_output out = {0};

    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = cmd, .out = &out), 0);
    assert_string_equal(out.out ? out.out : "", expected);
    blz_output_free(&out);
    blz_command_free(cmd);
}

static void expect_failure(blz_rt *rt, blz_command *cmd, const char *step, int error)
{
    blz_child child;

    assert_int_equal(blz_command_spawn(cmd, &child, rt), error);
    assert_string_equal(blz_command_failed_step(cmd), step);
    assert_int_equal(blz_child_pid(&child), -EBADF);
    blz_child_drop(&child);
    blz_command_free(cmd);
}

/* Whether the process has no children, ended or not. */
static bool has_no_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static void wait_until_no_children(int64_t blocks)
{
    while (!has_no_children() || memory_blocks(the_memory()) != blocks)
        sched_yield();
}

/* ---- what arrives ---- */

static void ends(blz_rt *rt)
{
    static const struct {
        const char *script;
        int code, signal;
    } cases[] = {{"exit 0", 0, 0}, {"exit 255", 255, 0}, {"kill -TERM $$", -1, SIGTERM}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blz_command cmd = shell(cases[i].script);
        blz_child child;
        assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
        assert_true(blz_child_pid(&child) > 0);
        int64_t status = BLZ_BLOCK_ON(rt, waits, .child = &child);
        assert_true(status >= 0);
        assert_int_equal(blz_exit_code(status), cases[i].code);
        assert_int_equal(blz_exit_signal(status), cases[i].signal);
        assert_false(blz_exit_dumped_core(status));
        assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), status); /* and again */
        assert_int_equal(blz_child_try_wait(&child), status);
        assert_int_equal(blz_child_kill(&child), -ESRCH);
        blz_child_drop(&child);
        blz_command_free(&cmd);
    }
    assert_true(has_no_children());
}

static void the_end_of_a_child_is_told_with_code_or_signal(void **state)
{
    (void)state;
    on_every_backend(ends);
}

static void talks(blz_rt *rt)
{
    blz_command cmd = command("cat");
    blz_child child;
    char buf[6] = "";

    blz_command_stdio(&cmd, 0, BLZ_STDIO_PIPE);
    blz_command_stdio(&cmd, 1, BLZ_STDIO_PIPE);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    assert_null(child.err.entry_);
    assert_int_equal(BLZ_BLOCK_ON(rt, writes, .pipe = &child.in, .text = "hello"), 5);
    assert_int_equal(BLZ_BLOCK_ON(rt, reads, .pipe = &child.out, .buf = buf, .len = 5), 5);
    assert_string_equal(buf, "hello");
    assert_int_equal(blz_pipe_close(&child.in), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 0);
    blz_child_drop(&child);
    blz_command_free(&cmd);
}

static void a_child_is_talked_to_through_its_pipes(void **state)
{
    (void)state;
    on_every_backend(talks);
}

static blz_rt *one_rt(void)
{
    return new_rt(&(blz_options){.workers = 1});
}

static void arguments_arrive_as_they_are(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("printf '%s|' \"$0\" \"$@\"");
    const char *const more[] = {"$HOME", "", "it's", NULL};

    (void)state;
    blz_command_arg(&cmd, "zero");
    blz_command_args(&cmd, more);
    expect_output(rt, &cmd, "zero|$HOME||it's|");
    cmd = command("/bin/sh");
    blz_command_name(&cmd, "other");
    blz_command_arg(&cmd, "-c");
    blz_command_arg(&cmd, "printf %s $0");
    expect_output(rt, &cmd, "other");
    free_rt(rt);
}

static void the_environment_is_inherited_set_removed_and_cleared(void **state)
{
    blz_rt *rt = one_rt();
    const char *script = "printf '%s,%s,%s' \"${BLZ_A-none}\" \"${BLZ_B-none}\" \"${BLZ_C-none}\"";
    blz_command cmd = shell(script);

    (void)state;
    setenv("BLZ_A", "a", 1);
    setenv("BLZ_B", "b", 1);
    blz_command_env(&cmd, "BLZ_C", "first");
    blz_command_env(&cmd, "BLZ_C", "c=c");
    blz_command_env_remove(&cmd, "BLZ_B");
    expect_output(rt, &cmd, "a,none,c=c");
    cmd = shell(script);
    blz_command_env(&cmd, "BLZ_B", "forgotten");
    blz_command_env_clear(&cmd);
    blz_command_env(&cmd, "BLZ_C", "c");
    expect_output(rt, &cmd, "none,none,c");
    cmd = shell(script);
    blz_command_env(&cmd, "BLZ_A", "b");
    blz_command_env_remove(&cmd, "BLZ_A");
    blz_command_env(&cmd, "BLZ_B", "");
    expect_output(rt, &cmd, "none,,none");
    unsetenv("BLZ_A");
    unsetenv("BLZ_B");
    free_rt(rt);
}

static void a_program_is_looked_for_in_the_childs_path(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = command("sh");

    (void)state;
    blz_command_env(&cmd, "PATH", "/nonexistent:/dev/null:/bin");
    blz_command_args(&cmd, (const char *const[]){"-c", "printf found", NULL});
    expect_output(rt, &cmd, "found");
    cmd = command("sh");
    blz_command_env_clear(&cmd); /* then there is a default */
    blz_command_args(&cmd, (const char *const[]){"-c", "printf found", NULL});
    expect_output(rt, &cmd, "found");
    cmd = command("sh");
    blz_command_env(&cmd, "PATH", "/nonexistent");
    expect_failure(rt, &cmd, "exec", -ENOENT);
    free_rt(rt);
}

static void it_runs_in_its_directory(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("pwd");

    (void)state;
    blz_command_dir(&cmd, "/usr/bin");
    expect_output(rt, &cmd, "/usr/bin\n");
    free_rt(rt);
}

/* ---- descriptors ---- */

static void files_and_null_are_its_descriptors(void **state)
{
    blz_rt *rt = one_rt();
    char path[] = "/tmp/blitz-process-XXXXXX", text[32] = "";
    int fd = mkstemp(path);
    blz_command cmd = shell("cat; printf more; printf err >&2");

    (void)state;
    assert_true(fd >= 0 && write(fd, "text", 4) == 4);
    blz_command_stdio_path(&cmd, 0, path, O_RDONLY, 0);
    expect_output(rt, &cmd, "textmore");
    cmd = shell("printf one; printf two >&2");
    blz_command_stdio(&cmd, 1, BLZ_STDIO_NULL);
    blz_command_stdio_path(&cmd, 2, path, O_WRONLY | O_TRUNC, 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, runs, .cmd = &cmd), 0);
    blz_command_free(&cmd);
    assert_int_equal(pread(fd, text, sizeof text, 0), 3);
    assert_string_equal(text, "two");
    cmd = shell("cat"); /* what is read from null ends at once */
    expect_output(rt, &cmd, "");
    close(fd);
    unlink(path);
    free_rt(rt);
}

/* Sources that are targets of others: each copy must be made of what was there before. */
static void descriptors_may_be_exchanged(void **state)
{
    blz_rt *rt = one_rt();
    int a[2], b[2];
    char text[8] = "";
    blz_command cmd = shell("cd /proc/$$/fd; printf A >57; printf B >58; printf C >59");

    (void)state;
    assert_true(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0);
    assert_int_equal(dup3(a[1], 57, O_CLOEXEC), 57);
    assert_int_equal(dup3(b[1], 58, O_CLOEXEC), 58);
    assert_int_equal(dup3(b[1], 59, O_CLOEXEC), 59);
    blz_command_fd(&cmd, 57, 58);
    blz_command_fd(&cmd, 58, 57);
    blz_command_fd(&cmd, 59, 59);
    assert_int_equal(BLZ_BLOCK_ON(rt, runs, .cmd = &cmd), 0);
    assert_int_equal(read(a[0], text, sizeof text), 1);
    assert_string_equal(text, "B");
    assert_int_equal(read(b[0], text, sizeof text), 2);
    assert_memory_equal(text, "AC", 2);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    close(57);
    close(58);
    close(59);
    blz_command_free(&cmd);
    free_rt(rt);
}

static void what_was_not_given_is_not_open_in_the_child(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("[ -e /proc/$$/fd/5 ] && [ ! -e /proc/$$/fd/50 ] && printf fine");

    (void)state;
    assert_int_equal(dup3(1, 50, O_CLOEXEC), 50);
    blz_command_fd(&cmd, 5, 50);
    expect_output(rt, &cmd, "fine");
    close(50);
    free_rt(rt);
}

static void errors_may_go_where_the_output_goes(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("printf one; printf two >&2");

    (void)state;
    blz_command_stderr_to_stdout(&cmd);
    expect_output(rt, &cmd, "onetwo");
    free_rt(rt);
}

/* ---- who it is ---- */

static void a_child_may_lead_a_group_or_a_session(void **state)
{
    blz_rt *rt = one_rt();
    blz_child child;

    (void)state;
    for (int session = 0; session < 2; session++) {
        blz_command cmd = shell("echo; exec sleep 1000");
        if (session)
            blz_command_session(&cmd);
        else
            blz_command_group(&cmd, 0);
        child = started(rt, &cmd);
        pid_t pid = blz_child_pid(&child);
        assert_int_equal(getpgid(pid), pid);
        assert_int_equal(getsid(pid) == pid, session);
        assert_int_equal(blz_child_signal_group(&child, SIGKILL), 0);
        assert_int_equal(blz_exit_signal(BLZ_BLOCK_ON(rt, waits, .child = &child)), SIGKILL);
        assert_int_equal(blz_child_signal_group(&child, SIGKILL), -ESRCH);
        blz_child_drop(&child);
        blz_command_free(&cmd);
    }
    blz_command cmd = shell("exit 0");
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    assert_int_equal(blz_child_signal_group(&child, SIGKILL), -EINVAL); /* it is ours */
    assert_int_equal(BLZ_BLOCK_ON(rt, waits, .child = &child), 0);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
}

static void limits_are_the_childs_alone(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("ulimit -n");
    struct rlimit before, after;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &before);
    blz_command_rlimit(&cmd, RLIMIT_NOFILE, 37, 37);
    expect_output(rt, &cmd, "37\n");
    getrlimit(RLIMIT_NOFILE, &after);
    assert_memory_equal(&before, &after, sizeof before);
    free_rt(rt);
}

static void a_privileged_parent_can_give_up_its_rights_in_the_child(void **state)
{
    blz_rt *rt;
    blz_command cmd;

    (void)state;
    if (geteuid() != 0)
        skip();
    rt = one_rt();
    cmd = shell("id -u; id -g; id -G");
    blz_command_uid(&cmd, 65534);
    blz_command_gid(&cmd, 65533);
    expect_output(rt, &cmd, "65534\n65533\n65533\n");
    cmd = shell("id -G");
    blz_command_uid(&cmd, 65534);
    blz_command_gid(&cmd, 65533);
    blz_command_groups(&cmd, (const gid_t[]){65531, 65532}, 2);
    expect_output(rt, &cmd, "65533 65531 65532\n");
    assert_int_equal(geteuid(), 0);
    free_rt(rt);
}

static void on_signal(int signal)
{
    (void)signal;
}

static uint64_t bit_of(int signal)
{
    return (uint64_t)1 << (signal - 1);
}

static void signals_are_as_a_program_expects_them(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = command("cat");
    blz_output out = {0};
    struct sigaction old_usr1, old_pipe, old_usr2;

    (void)state;
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, &old_usr1);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &old_pipe);
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = SIG_IGN}, &old_usr2);
    blz_command_arg(&cmd, "/proc/self/status");
    assert_int_equal(BLZ_BLOCK_ON(rt, captures, .cmd = &cmd, .out = &out), 0);
    assert_non_null(strstr(out.out, "SigBlk:\t0000000000000000\n"));
    /* Others may be ignored as well: what a shell starts in the background ignores SIGINT. */
    assert_true(strtoull(strstr(out.out, "SigIgn:") + 7, NULL, 16) & bit_of(SIGUSR2));
    assert_false(strtoull(strstr(out.out, "SigIgn:") + 7, NULL, 16) & bit_of(SIGPIPE));
    assert_non_null(strstr(out.out, "SigCgt:\t0000000000000000\n"));
    blz_output_free(&out);
    blz_command_free(&cmd);
    sigaction(SIGUSR1, &old_usr1, NULL);
    sigaction(SIGPIPE, &old_pipe, NULL);
    sigaction(SIGUSR2, &old_usr2, NULL);
    free_rt(rt);
}

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

    assert_int_equal(blz_child_try_wait(&child), -EAGAIN);
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
        TEST(the_end_of_a_child_is_told_with_code_or_signal),
        TEST(a_child_is_talked_to_through_its_pipes),
        TEST(arguments_arrive_as_they_are),
        TEST(the_environment_is_inherited_set_removed_and_cleared),
        TEST(a_program_is_looked_for_in_the_childs_path),
        TEST(it_runs_in_its_directory),
        TEST(files_and_null_are_its_descriptors),
        TEST(descriptors_may_be_exchanged),
        TEST(what_was_not_given_is_not_open_in_the_child),
        TEST(errors_may_go_where_the_output_goes),
        TEST(a_child_may_lead_a_group_or_a_session),
        TEST(limits_are_the_childs_alone),
        TEST(a_privileged_parent_can_give_up_its_rights_in_the_child),
        TEST(signals_are_as_a_program_expects_them),
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
