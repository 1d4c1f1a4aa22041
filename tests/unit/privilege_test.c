/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with more privileges than their caller: a set-user-ID copy of this program is run by
 * another user, who chooses its environment. The copy must not obey it.
 */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, NOT_RAISED = 77 };

/* ---- in the copy ---- */

struct makes_temp_dir {
    BLZ_FRAME;
    blz_fs_op op;
    blz_bytes path;
    const char *expected; /* how the path begins */
    int64_t rc;
};

BLZ_ASYNC(makes_temp_dir)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_temp_dir(&self->op, &self->path, NULL, "t"));
    check(self->rc == 0);
    self->rc = strncmp(self->path.data, self->expected, strlen(self->expected)) == 0;
    check(rmdir(self->path.data) == 0);
    blz_bytes_free(&self->path);
    BLZ_END(self->rc);
}

/* The number of the first part that obeys the environment, or 0. */
static int obeyed_part(void)
{
    blz_rt *rt = NULL;
    blz_pool *pool = NULL;

    if (blz_rt_new(&rt, NULL) < 0)
        return 1; /* BLZ_WORKERS, BLZ_SEED, BLZ_WATCHDOG_MS */
    if (blz_rt_free(rt) < 0)
        return 6;
    if (BLZ_RUN(makes_temp_dir, .expected = "/tmp/t") != 1)
        return 2; /* TMPDIR */
    if (blz_rt_new(&rt, &(blz_options){.workers = 1, .seed = 1, .watchdog_ns = BLZ_NEVER}) < 0)
        return 3;
    if (strstr(blz_rt_backend_reason(rt), "BLZ_BACKEND"))
        return 4; /* BLZ_BACKEND */
    if (blz_rt_free(rt) < 0)
        return 7;
    if (blz_pool_new(&pool, NULL) < 0)
        return 5; /* BLZ_POOL_THREADS */
    blz_pool_free(pool);
    return 0;
}

static int in_copy(void)
{
    alarm(CHILD_SECONDS);
    return getauxval(AT_SECURE) ? obeyed_part() : NOT_RAISED;
}

/* An ordinary program obeys: this is what shows that the variables mean something. */
static int in_ordinary_program(void)
{
    blz_rt *rt = NULL;

    alarm(CHILD_SECONDS);
    if (blz_rt_new(&rt, &(blz_options){.workers = 1}) < 0)
        return 1;
    if (blz_rt_free(rt) < 0)
        return 8;
    return 0;
}

/* ---- here ---- */

static char dir[64], program[96], victim[96];

static void write_text(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void begin(void)
{
    char command[256];

    strcpy(dir, "/tmp/blitz-privilege-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(program, sizeof program, "%s/program", dir);
    snprintf(victim, sizeof victim, "%s/victim", dir);
    snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), program);
    assert_int_equal(system(command), 0);
    write_text(victim, "precious", 0600);
}

static void end(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* Runs the copy as another user, with this environment; gives its exit code. */
static int run_copy(mode_t mode, const char *what, const char *const *environment)
{
    int status = -1;
    pid_t pid;

    assert_int_equal(chmod(program, mode), 0);
    pid = fork();
    if (pid == 0) {
        char *argv[] = {program, (char *)(uintptr_t)what, NULL};
        if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0)
            execve(program, argv, (char **)(uintptr_t)environment);
        _exit(126);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool cannot_raise(void)
{
    const char *why = getenv("EMULATOR") ? "the emulator has no set-user-ID programs"
                      : geteuid() != 0   ? "only root can make a set-user-ID program"
                                         : NULL;
    const char *none[] = {NULL};

    if (!why) {
        begin();
        if (run_copy(04755, "raised", none) == NOT_RAISED)
            why = "the file system of /tmp ignores the set-user-ID bit";
        end();
    }
    if (why)
        print_message("skipped: %s\n", why);
    return why != NULL;
}

static void a_set_user_id_program_does_not_trace_where_its_caller_wants(void **state)
{
    char variable[128], text[16] = {0};
    const char *environment[] = {variable, NULL};

    (void)state;
    if (cannot_raise())
        skip();
    begin();
    snprintf(variable, sizeof variable, "BLZ_TRACE=%s", victim);
    assert_int_equal(run_copy(04755, "raised", environment), 0);
    int fd = open(victim, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read_fully(fd, text, sizeof text), 8);
    close(fd);
    assert_string_equal(text, "precious");
    end();
}

static void a_set_user_id_program_obeys_no_variable(void **state)
{
    char temp[128];
    const char *bad[] = {"BLZ_BACKEND=none",
                         "BLZ_WORKERS=x",
                         "BLZ_WATCHDOG_MS=x",
                         "BLZ_SEED=x",
                         "BLZ_POOL_THREADS=x",
                         "BLZ_OBSERVE=x",
                         temp,
                         NULL};

    (void)state;
    if (cannot_raise())
        skip();
    begin();
    snprintf(temp, sizeof temp, "TMPDIR=%s", dir);
    assert_int_equal(run_copy(04755, "raised", bad), 0);
    end();
}

static void an_ordinary_program_obeys(void **state)
{
    const char *good[] = {"BLZ_SEED=1", NULL}, *bad[] = {"BLZ_SEED=x", NULL};

    (void)state;
    if (cannot_raise())
        skip();
    begin();
    assert_int_equal(run_copy(0755, "ordinary", good), 0);
    assert_int_equal(run_copy(0755, "ordinary", bad), 1);
    end();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_set_user_id_program_does_not_trace_where_its_caller_wants),
        TEST(a_set_user_id_program_obeys_no_variable),
        TEST(an_ordinary_program_obeys),
    };
    if (argc > 1 && strcmp(argv[1], "raised") == 0)
        return in_copy();
    if (argc > 1 && strcmp(argv[1], "ordinary") == 0)
        return in_ordinary_program();
    return RUN_TESTS(tests);
}
