/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: what a command says arrives in the child, and its end is told. */
#include "process_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
        assert_int_equal(blz_child_try_await(&child), status);
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
        assert_int_equal(blz_child_signal(&child, SIGKILL), -ESRCH);
        assert_int_equal(blz_child_signal_group(&child, SIGKILL), 0); /* until it is dropped */
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
    };
    return RUN_TESTS(tests);
}
