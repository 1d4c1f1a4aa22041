/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/process.h, what a launch does. Ends and signals are in process_test.c. */
#include "launched.h"

#include <grp.h>
#include <sys/stat.h>

char this_program[PATH_MAX];

/* ---- what the child is ---- */

static void a_child_ends_with_the_code_of_its_program(void **state)
{
    static const char *const codes[] = {"0", "1", "127", "255"};
    struct launched it;

    (void)state;
    for (int i = 0; i < 4; i++) {
        PLAN(&it, "exit", codes[i]);
        assert_int_equal(launch(&it), 0);
        assert_null(it.step);
        assert_true(it.child.id > 0);
        await_and_forget(&it, atoi(codes[i]));
    }
}

static void arguments_come_in_their_order(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "say", "one", "", "two words", "\"quoted\" \\");
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "one\n\ntwo words\n\"quoted\" \\\n");
    await_and_forget(&it, 0);
}

static void the_environment_is_that_of_the_plan_alone(void **state)
{
    static const char *const envp[] = {"ONE=1", "EMPTY=", "TWO=a=b", NULL};
    struct launched it;

    (void)state;
    PLAN(&it, "env");
    it.plan.envp = envp;
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "ONE=1\nEMPTY=\nTWO=a=b\n");
    await_and_forget(&it, 0);
}

static void the_directory_is_that_of_the_plan(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "where");
    it.plan.directory = "/";
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "/\n");
    await_and_forget(&it, 0);
}

static void without_a_directory_it_is_that_of_this_process(void **state)
{
    char here[PATH_MAX], expected[PATH_MAX + 2];
    struct launched it;

    (void)state;
    PLAN(&it, "where");
    assert_int_equal(launch(&it), 0);
    sprintf(expected, "%s\n", getcwd(here, sizeof here));
    assert_string_equal(output_of(&it), expected);
    await_and_forget(&it, 0);
}

static void a_program_is_searched_for_in_each_directory(void **state)
{
    char search[PATH_MAX + 64], *slash;
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "3");
    sprintf(search, "/nowhere:/etc/passwd:/:%s", this_program);
    slash = strrchr(search, '/');
    it.plan.program = strrchr(this_program, '/') + 1;
    *slash = '\0';
    it.plan.search = search;
    assert_int_equal(launch(&it), 0);
    await_and_forget(&it, 3);
}

static void a_limit_is_in_force(void **state)
{
    static const blz__process_limit limits[] = {{RLIMIT_NOFILE, 77, 99}};
    struct launched it;
    int rc;

    (void)state;
    PLAN(&it, "limit");
    it.plan.limits = limits;
    it.plan.nr_limits = 1;
    rc = launch(&it);
    if (rc == -ENOTSUP)
        forget(&it);
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    assert_string_equal(output_of(&it), "77\n");
    await_and_forget(&it, 0);
}

/* pid, group, session of the child */
static void launch_and_ask_ids(struct launched *it, int ids[4])
{
    int rc = launch(it);

    if (rc == -ENOTSUP)
        forget(it);
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    assert_int_equal(sscanf(output_of(it), "%d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3]), 4);
    assert_int_equal(ids[0], it->child.id);
}

static void a_child_is_in_the_group_and_session_of_its_parent(void **state)
{
    struct launched it;
    int ids[4];

    (void)state;
    PLAN(&it, "ids");
    launch_and_ask_ids(&it, ids);
    assert_int_equal(ids[1], getpgrp());
    assert_int_equal(ids[2], getsid(0));
    await_and_forget(&it, 0);
}

static void a_child_leads_a_session_of_its_own(void **state)
{
    struct launched it;
    int ids[4];

    (void)state;
    PLAN(&it, "ids");
    it.plan.flags = BLZ__PROCESS_SESSION;
    launch_and_ask_ids(&it, ids);
    assert_int_equal(ids[1], ids[0]);
    assert_int_equal(ids[2], ids[0]);
    await_and_forget(&it, 0);
}

static void a_child_leads_a_group_of_its_own(void **state)
{
    struct launched it;
    int ids[4];

    (void)state;
    PLAN(&it, "ids");
    it.plan.flags = BLZ__PROCESS_GROUP;
    launch_and_ask_ids(&it, ids);
    assert_int_equal(ids[1], ids[0]);
    assert_int_equal(ids[2], getsid(0));
    await_and_forget(&it, 0);
}

static void a_child_joins_the_group_of_another(void **state)
{
    struct launched leader, it;
    int ids[4];

    (void)state;
    PLAN(&leader, "wait");
    leader.plan.flags = BLZ__PROCESS_GROUP;
    assert_int_equal(launch(&leader), 0);
    PLAN(&it, "ids");
    it.plan.flags = BLZ__PROCESS_GROUP;
    it.plan.group = leader.child.id;
    launch_and_ask_ids(&it, ids);
    assert_int_equal(ids[1], leader.child.id);
    await_and_forget(&it, 0);
    close_input(&leader);
    await_and_forget(&leader, 0);
}

/* ---- signals ---- */

static void ignore_signal(int number)
{
    (void)number;
}

static void signals_are_as_a_new_program_expects_them(void **state)
{
    struct launched it;
    sigset_t all, before, after;
    char expected[64];

    (void)state;
    signal(SIGUSR1, ignore_signal);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    PLAN(&it, "signals");
    assert_int_equal(launch(&it), 0);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    assert_int_equal(sigismember(&after, SIGUSR2), 1); /* the mask here is what it was */
    sprintf(expected, "blocked\nignored %d\nhandled\n", SIGUSR2);
    assert_string_equal(output_of(&it), expected);
    await_and_forget(&it, 0);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
}

/* ---- descriptors ---- */

static void nothing_is_inherited_but_the_standard_streams(void **state)
{
    struct launched it;
    int more = open("/", O_RDONLY | O_CLOEXEC);

    (void)state;
    PLAN(&it, "fds");
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "0\n1\n2\n");
    await_and_forget(&it, 0);
    close(more);
}

static void what_the_program_has_made_inheritable_is_inherited(void **state)
{
    struct launched it;
    int more = open("/", O_RDONLY | O_CLOEXEC);
    char expected[64];

    (void)state;
    assert_int_equal(blz__handle_set_inherited(more, true), 0);
    PLAN(&it, "fds");
    assert_int_equal(launch(&it), 0);
    sprintf(expected, "0\n1\n2\n%d\n", more);
    assert_string_equal(output_of(&it), expected);
    await_and_forget(&it, 0);
    close(more);
}

static int file_with(const char *text)
{
    char name[] = "/tmp/blitz-launch-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);

    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Three files with the numbers of each other: a -> b, b -> c, c -> a. */
static void each_target_gets_what_its_source_was_before(void **state)
{
    static const char *const texts[] = {"first", "second", "third"};
    int fds[3];

    (void)state;
    for (int read = 0; read < 3; read++) {
        struct launched it;
        char number[16];
        for (int i = 0; i < 3; i++)
            fds[i] = file_with(texts[i]);
        sprintf(number, "%d", fds[read]);
        PLAN(&it, "read", number);
        for (int i = 0; i < 3; i++)
            it.fds[it.plan.nr_fds++] =
                (blz__process_fd){.target = fds[i], .source = fds[(i + 1) % 3]};
        assert_int_equal(launch(&it), 0);
        assert_string_equal(output_of(&it), texts[(read + 1) % 3]);
        await_and_forget(&it, 0);
        for (int i = 0; i < 3; i++)
            close(fds[i]);
    }
}

static void a_source_may_be_its_own_target(void **state)
{
    struct launched it;
    int fd = file_with("the same");
    char number[16];

    (void)state;
    sprintf(number, "%d", fd);
    PLAN(&it, "read", number);
    it.fds[it.plan.nr_fds++] = (blz__process_fd){.target = fd, .source = fd};
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "the same");
    await_and_forget(&it, 0);
    assert_int_equal(blz__handle_is_inherited(fd), 0); /* here nothing has changed */
    close(fd);
}

static void one_source_may_have_several_targets(void **state)
{
    struct launched it;
    int fd = file_with("text");

    (void)state;
    for (int target = 40; target <= 41; target++) {
        PLAN(&it, "read", target == 40 ? "40" : "41");
        it.fds[it.plan.nr_fds++] = (blz__process_fd){.target = 40, .source = fd};
        it.fds[it.plan.nr_fds++] = (blz__process_fd){.target = 41, .source = fd};
        lseek(fd, 0, SEEK_SET);
        assert_int_equal(launch(&it), 0);
        assert_string_equal(output_of(&it), "text");
        await_and_forget(&it, 0);
    }
    close(fd);
}

static void the_null_device_is_empty(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "read", "0");
    it.fds[0].what = BLZ__PROCESS_NULL;
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "");
    await_and_forget(&it, 0);
}

static void the_null_device_takes_everything(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "say", "text");
    it.fds[1].what = BLZ__PROCESS_NULL;
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "");
    await_and_forget(&it, 0);
}

static void errors_go_where_the_output_goes(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "complain", "a pity");
    it.plan.flags = BLZ__PROCESS_MERGE;
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "a pity\n");
    await_and_forget(&it, 0);
}

/* A new empty directory, which becomes that of this process. */
static void enter_new_directory(char *name)
{
    assert_non_null(mkdtemp(name));
    assert_int_equal(chdir(name), 0);
}

static void files_are_opened_where_this_process_is(void **state)
{
    char here[PATH_MAX], dir[] = "/tmp/blitz-launch-XXXXXX", text[16] = "";
    struct launched it;
    struct stat st;
    int fd;

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    enter_new_directory(dir);
    PLAN(&it, "where");
    it.plan.directory = "/";
    it.fds[1] = (blz__process_fd){.what = BLZ__PROCESS_OPEN,
                                  .target = 1,
                                  .path = "output",
                                  .flags = O_WRONLY | O_CREAT | O_EXCL,
                                  .mode = 0600};
    assert_int_equal(launch(&it), 0);
    await_and_forget(&it, 0);
    fd = open("output", O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) == 2 && strcmp(text, "/\n") == 0);
    assert_true(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600);
    close(fd);
    assert_int_equal(unlink("output"), 0);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* ---- steps that fail ---- */

static void a_program_that_is_not_there_fails_at_exec(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.program = "/nowhere/program";
    assert_fails(&it, "exec", -ENOENT);
    PLAN(&it, "exit", "0");
    it.plan.program = "program";
    it.plan.search = "/nowhere:/";
    assert_fails(&it, "exec", -ENOENT);
}

static void a_program_that_must_not_be_run_fails_at_exec(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.program = "/etc/passwd";
    assert_fails(&it, "exec", -EACCES);
    PLAN(&it, "exit", "0");
    it.plan.program = "passwd";
    it.plan.search =
        "/etc:/nowhere"; /* one that may not be run is the error if there is no other */
    assert_fails(&it, "exec", -EACCES);
}

static void a_directory_that_is_not_there_fails_at_chdir(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.directory = "/nowhere";
    assert_fails(&it, "chdir", -ENOENT);
}

static void a_file_that_cannot_be_opened_fails_at_its_stream(void **state)
{
    static const char *const steps[] = {"open stdin", "open stdout", "open stderr"};
    struct launched it;

    (void)state;
    for (int target = 0; target < 3; target++) {
        PLAN(&it, "exit", "0");
        it.plan.nr_fds = 1;
        it.fds[0] = (blz__process_fd){.what = BLZ__PROCESS_OPEN,
                                      .target = target,
                                      .path = "/nowhere/file",
                                      .flags = O_RDWR};
        assert_fails(&it, steps[target], -ENOENT);
    }
}

static void a_source_that_is_not_open_fails_at_descriptors(void **state)
{
    struct launched it;
    int fd = open("/", O_RDONLY | O_CLOEXEC);

    (void)state;
    close(fd);
    PLAN(&it, "exit", "0");
    it.fds[it.plan.nr_fds++] = (blz__process_fd){.target = 50, .source = fd + 10};
    assert_fails(&it, "descriptors", -EBADF);
}

static void a_limit_that_cannot_be_fails_at_rlimit(void **state)
{
    static const blz__process_limit limits[] = {{RLIMIT_NOFILE, 100, 50}};
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.limits = limits;
    it.plan.nr_limits = 1;
    assert_fails(&it, "rlimit", -EINVAL);
}

static void a_group_that_is_not_there_fails_at_group(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.flags = BLZ__PROCESS_GROUP;
    it.plan.group = 1; /* it is in another session */
    assert_fails(&it, "group", -EPERM);
}

static void skip_unless(bool possible, const char *name, const char *what)
{
    if (possible)
        return;
    print_message("skipped: %s: %s\n", name, what);
    skip();
}

/* In a process without privileges and without groups: which of the steps is not as it should. */
static int fail_without_privileges(void)
{
    static const struct {
        unsigned flag;
        const char *step;
    } cases[] = {{BLZ__PROCESS_GROUPS, "groups"},
                 {BLZ__PROCESS_GID, "gid"},
                 {BLZ__PROCESS_UID, "uid"}};
    struct launched it;

    for (int i = 0; i < 3; i++) {
        PLAN(&it, "exit", "0");
        it.plan.flags = cases[i].flag;
        it.plan.uid = getuid() + 1;
        it.plan.gid = getgid() + 1;
        if (launch(&it) != -EPERM || strcmp(it.step, cases[i].step) != 0)
            return i + 1;
    }
    return 0;
}

static void a_user_that_may_not_be_fails_at_its_step(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    skip_unless(geteuid() == 0, __func__, "it needs root, to give up everything");
    pid = fork();
    if (pid == 0)
        _exit(setgroups(0, NULL) == 0 && setresgid(65533, 65533, 65533) == 0 &&
                      setresuid(65533, 65533, 65533) == 0
                  ? fail_without_privileges()
                  : 9);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void another_user_has_no_groups_of_this_one(void **state)
{
    struct launched it;
    gid_t before[64];
    int nr = getgroups(64, before);

    (void)state;
    skip_unless(geteuid() == 0 && setgroups(1, &(gid_t){65530}) == 0, __func__, "it needs root");
    PLAN(&it, "groups");
    it.plan.program = "/usr/bin/id";
    it.argv[1] = "-G";
    it.plan.flags = BLZ__PROCESS_UID | BLZ__PROCESS_GID;
    it.plan.uid = it.plan.gid = 65534;
    assert_int_equal(launch(&it), 0);
    assert_string_equal(output_of(&it), "65534\n");
    await_and_forget(&it, 0);
    assert_int_equal(setgroups((size_t)nr, before), 0);
}

static void too_many_groups_fail_at_groups(void **state)
{
    static const uint32_t groups[65537];
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.flags = BLZ__PROCESS_GROUPS;
    it.plan.groups = groups;
    it.plan.nr_groups = 65537;
    assert_fails(&it, "groups", geteuid() == 0 ? -EINVAL : -EPERM);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_child_ends_with_the_code_of_its_program),
        TEST(arguments_come_in_their_order),
        TEST(the_environment_is_that_of_the_plan_alone),
        TEST(the_directory_is_that_of_the_plan),
        TEST(without_a_directory_it_is_that_of_this_process),
        TEST(a_program_is_searched_for_in_each_directory),
        TEST(a_limit_is_in_force),
        TEST(a_child_is_in_the_group_and_session_of_its_parent),
        TEST(a_child_leads_a_session_of_its_own),
        TEST(a_child_leads_a_group_of_its_own),
        TEST(a_child_joins_the_group_of_another),
        TEST(signals_are_as_a_new_program_expects_them),
        TEST(nothing_is_inherited_but_the_standard_streams),
        TEST(what_the_program_has_made_inheritable_is_inherited),
        TEST(each_target_gets_what_its_source_was_before),
        TEST(a_source_may_be_its_own_target),
        TEST(one_source_may_have_several_targets),
        TEST(the_null_device_is_empty),
        TEST(the_null_device_takes_everything),
        TEST(errors_go_where_the_output_goes),
        TEST(files_are_opened_where_this_process_is),
        TEST(a_program_that_is_not_there_fails_at_exec),
        TEST(a_program_that_must_not_be_run_fails_at_exec),
        TEST(a_directory_that_is_not_there_fails_at_chdir),
        TEST(a_file_that_cannot_be_opened_fails_at_its_stream),
        TEST(a_source_that_is_not_open_fails_at_descriptors),
        TEST(a_limit_that_cannot_be_fails_at_rlimit),
        TEST(a_group_that_is_not_there_fails_at_group),
        TEST(a_user_that_may_not_be_fails_at_its_step),
        TEST(another_user_has_no_groups_of_this_one),
        TEST(too_many_groups_fail_at_groups),
    };

    if (argc > 1)
        return be_child(argc, argv);
    return begin_launches() ? RUN_TESTS(tests) : 1;
}
