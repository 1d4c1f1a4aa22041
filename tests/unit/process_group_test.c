/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children with a group of their own are ended with the whole of it, and signals never meet a group
 * of somebody else. Grandchildren hold the writing end of a pipe: its reader sees when the last of
 * them is gone.
 */
#include "process_tasks.h"

#include <linux/capability.h>
#include <linux/sched.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* A leader with a grandchild that ignores SIGTERM; each says "x" once it is ready. */
#define LEADER "sh -c 'trap \"\" TERM; printf x >&3; exec sleep 1000' & "

struct family {
    blz_rt *rt;
    blz_command cmd;
    blz_child child;
    int alive; /* reads the end when nobody of the group is left */
    int theirs;
};

static struct family make_family(const char *script)
{
    struct family f = {.rt = one_rt(), .cmd = shell(script)};
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    f.alive = fds[0];
    f.theirs = fds[1];
    blz_command_fd(&f.cmd, 3, fds[1]);
    blz_command_group(&f.cmd, 0);
    return f;
}

/* It has been started: waits until all of them are there. */
static void await_ready(struct family *f, int count)
{
    char text[8];

    close(f->theirs);
    assert_int_equal(read_fully(f->alive, text, (size_t)count), count);
}

static struct family start_family(const char *script, int count)
{
    struct family f = make_family(script);

    assert_int_equal(blz_command_spawn(&f.cmd, &f.child, f.rt), 0);
    await_ready(&f, count);
    return f;
}

/* Returns when the last one is gone. */
static void await_nobody(struct family *f)
{
    char c;

    assert_int_equal(read_fully(f->alive, &c, 1), 0);
}

static void end_family(struct family *f)
{
    blz_child_drop(&f->child);
    blz_command_free(&f->cmd);
    close(f->alive);
    free_rt(f->rt);
}

/* ---- what ends a group ---- */

static void terminate_ends_the_group_of_a_child_that_ends_itself(void **state)
{
    struct family f = start_family(LEADER "printf x >&3; wait", 2);
    int64_t status;

    (void)state;
    status = BLZ_BLOCK_ON(f.rt, terminates, .child = &f.child, .grace_ns = 1000 * BLZ_SEC);
    assert_int_equal(blz_exit_signal(status), SIGTERM);
    await_nobody(&f);
    end_family(&f);
}

static void terminate_ends_the_group_of_a_child_that_does_not_listen(void **state)
{
    struct family f = start_family("trap '' TERM; " LEADER "printf x >&3; wait", 2);
    int64_t status;

    (void)state;
    status = BLZ_BLOCK_ON(f.rt, terminates, .child = &f.child, .grace_ns = BLZ_MSEC);
    assert_int_equal(blz_exit_signal(status), SIGKILL);
    await_nobody(&f);
    end_family(&f);
}

static void terminate_ends_what_a_child_has_left_in_its_group(void **state)
{
    struct family f = start_family(LEADER "exit 0", 1);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(f.rt, waits, .child = &f.child), 0);
    assert_int_equal(BLZ_BLOCK_ON(f.rt, terminates, .child = &f.child, .grace_ns = BLZ_SEC), 0);
    await_nobody(&f);
    end_family(&f);
}

static void a_drop_that_kills_ends_the_group(void **state)
{
    struct family f = make_family(LEADER "printf x >&3; wait");

    (void)state;
    blz_command_kill_on_drop(&f.cmd);
    assert_int_equal(blz_command_spawn(&f.cmd, &f.child, f.rt), 0);
    await_ready(&f, 2);
    blz_child_drop(&f.child);
    await_nobody(&f);
    end_family(&f);
    wait_until_no_children(0);
}

static void a_drop_that_kills_ends_what_a_child_has_left_in_its_group(void **state)
{
    struct family f = make_family(LEADER "exit 0");

    (void)state;
    blz_command_kill_on_drop(&f.cmd);
    assert_int_equal(blz_command_spawn(&f.cmd, &f.child, f.rt), 0);
    await_ready(&f, 1);
    assert_int_equal(BLZ_BLOCK_ON(f.rt, waits, .child = &f.child), 0);
    blz_child_drop(&f.child);
    await_nobody(&f);
    end_family(&f);
    assert_true(has_no_children());
}

static void a_drop_that_does_not_kill_leaves_the_group_alone(void **state)
{
    struct family f = make_family("sh -c 'printf x >&3; read line; printf y >&3' <&4 & exit 0");
    int fds[2];
    char c = 0;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    blz_command_fd(&f.cmd, 4, fds[0]);
    assert_int_equal(blz_command_spawn(&f.cmd, &f.child, f.rt), 0);
    close(fds[0]);
    await_ready(&f, 1);
    assert_int_equal(BLZ_BLOCK_ON(f.rt, waits, .child = &f.child), 0);
    blz_child_drop(&f.child);
    assert_int_equal(write(fds[1], "\n", 1), 1);
    assert_int_equal(read_fully(f.alive, &c, 1), 1);
    assert_int_equal(c, 'y');
    close(fds[1]);
    await_nobody(&f);
    end_family(&f);
}

static void a_cancelled_run_ends_the_group(void **state)
{
    struct family f = make_family(LEADER "printf x >&3; wait");
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(f.rt, &handle, runs, .cmd = &f.cmd), 0);
    char text[2];
    assert_int_equal(read_fully(f.alive, text, 2), 2);
    close(f.theirs);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    await_nobody(&f);
    end_family(&f);
}

static void an_output_that_is_too_long_ends_the_group(void **state)
{
    struct family f = make_family(LEADER "echo more than ten bytes; wait");
    blz_output out = {.max_out = 10};

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(f.rt, captures, .cmd = &f.cmd, .out = &out), -EMSGSIZE);
    close(f.theirs);
    for (char c; read_fully(f.alive, &c, 1) == 1;) /* it may have said that it is ready */
        ;
    blz_output_free(&out);
    end_family(&f);
}

static void a_group_can_be_signalled_after_the_end_of_its_leader(void **state)
{
    struct family f = start_family(LEADER "exit 0", 1);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(f.rt, waits, .child = &f.child), 0);
    assert_int_equal(blz_child_signal(&f.child, SIGKILL), -ESRCH);
    assert_int_equal(blz_child_signal_group(&f.child, SIGKILL), 0);
    await_nobody(&f);
    assert_int_equal(blz_child_try_await(&f.child), 0);
    end_family(&f);
    assert_true(has_no_children());
}

/* ---- strangers ---- */

/* A process with this number, which leads a group; 0: the system does not let us choose. */
static pid_t stranger_with(pid_t pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD,
                              .set_tid = (uint64_t)(uintptr_t)&pid,
                              .set_tid_size = 1};
    int fds[2];
    char c;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    long rc = syscall(SYS_clone3, &args, sizeof args);
    if (rc == 0) {
        syscall(SYS_setpgid, 0L, 0L);
        syscall(SYS_write, (long)fds[1], "x", 1L);
        for (;;)
            syscall(SYS_rt_sigsuspend, &(uint64_t){0}, 8L);
    }
    close(fds[1]);
    if (rc > 0)
        assert_int_equal(read_fully(fds[0], &c, 1), 1);
    close(fds[0]);
    return rc > 0 ? (pid_t)rc : 0;
}

static void a_signal_does_not_meet_a_group_that_has_the_number_now(void **state)
{
    blz_rt *rt = one_rt();
    blz_command cmd = shell("exit 0");
    blz_child child;
    pid_t pid, stranger;
    int status = -1;

    (void)state;
    blz_command_group(&cmd, 0);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    pid = blz_child_pid(&child);
    assert_int_equal(waitpid(pid, &status, 0), pid); /* a stranger reaps the child */
    stranger = stranger_with(pid);
    if (stranger == 0)
        print_message("skipped: numbers of processes cannot be chosen here\n");
    assert_int_equal(blz_child_signal_group(&child, SIGKILL), -ESRCH);
    assert_int_equal(blz_child_signal(&child, SIGKILL), -ESRCH);
    assert_int_equal(BLZ_BLOCK_ON(rt, terminates, .child = &child, .grace_ns = 0), -ECHILD);
    if (stranger > 0) {
        assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
        assert_int_equal(kill(stranger, SIGTERM), 0);
        assert_int_equal(waitpid(stranger, &status, 0), stranger);
        assert_int_equal(WTERMSIG(status), SIGTERM); /* and it was the first */
    }
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
}

/* ---- supplementary groups ---- */

enum { USER = 65534, OTHER = 65533 };

/* Becomes a user with supplementary groups and these capabilities. */
static void become(unsigned capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = capabilities, .permitted = capabilities}};

    check(setgroups(2, (const gid_t[]){65531, 65532}) == 0);
    check(prctl(PR_SET_KEEPCAPS, 1) == 0);
    check(setresgid(USER, USER, USER) == 0 && setresuid(USER, USER, USER) == 0);
    check(syscall(SYS_capset, &header, data) == 0);
    check(prctl(PR_SET_DUMPABLE, 1) == 0); /* as sanitizers need it */
}

static int groups_are_dropped(void)
{
    blz_command cmd = shell("id -G");
    blz_rt *rt;

    become(1u << CAP_SETUID | 1u << CAP_SETGID);
    rt = one_rt();
    blz_command_uid(&cmd, OTHER);
    expect_output(rt, &cmd, "65534\n");
    free_rt(rt);
    return 0;
}

static int groups_cannot_be_dropped(void)
{
    blz_command cmd = shell("id -G");
    blz_rt *rt;

    become(1u << CAP_SETUID);
    rt = one_rt();
    blz_command_uid(&cmd, OTHER);
    expect_failure(rt, &cmd, "groups", -EPERM);
    cmd = shell("id -G");
    blz_command_uid(&cmd, USER);
    expect_output(rt, &cmd, "65534 65531 65532\n"); /* they are its own */
    free_rt(rt);
    return 0;
}

static bool is_not_root(void)
{
    if (geteuid() != 0)
        print_message("skipped: only root can become another user\n");
    return geteuid() != 0;
}

static void a_parent_with_the_capability_drops_groups(void **state)
{
    (void)state;
    if (is_not_root())
        skip();
    in_own_process("groups_are_dropped");
}

static void a_parent_that_cannot_drop_groups_gives_them_to_nobody(void **state)
{
    (void)state;
    if (is_not_root())
        skip();
    in_own_process("groups_cannot_be_dropped");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(terminate_ends_the_group_of_a_child_that_ends_itself),
        TEST(terminate_ends_the_group_of_a_child_that_does_not_listen),
        TEST(terminate_ends_what_a_child_has_left_in_its_group),
        TEST(a_drop_that_kills_ends_the_group),
        TEST(a_drop_that_kills_ends_what_a_child_has_left_in_its_group),
        TEST(a_drop_that_does_not_kill_leaves_the_group_alone),
        TEST(a_cancelled_run_ends_the_group),
        TEST(an_output_that_is_too_long_ends_the_group),
        TEST(a_group_can_be_signalled_after_the_end_of_its_leader),
        TEST(a_signal_does_not_meet_a_group_that_has_the_number_now),
        TEST(a_parent_with_the_capability_drops_groups),
        TEST(a_parent_that_cannot_drop_groups_gives_them_to_nobody),
    };
    if (argc > 1 && strcmp(argv[1], "groups_are_dropped") == 0)
        return groups_are_dropped();
    if (argc > 1 && strcmp(argv[1], "groups_cannot_be_dropped") == 0)
        return groups_cannot_be_dropped();
    return RUN_TESTS(tests);
}
