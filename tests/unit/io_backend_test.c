/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which backend a runtime gets, and that it works, where the system refuses some of its calls: a
 * system call filter plays the container, the administrator and the old kernel. A filter cannot be
 * taken back, so each case is a program of its own: this one, started with the case's name.
 */
#include "io_fixture.h"

#include "filter.h"
#include "talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- talking ---- */

/* Talks in a runtime that must get that backend, and give a reason with these words in it. */
static int talk_with(const blz_options *options, const char *backend, const char *words,
                     int64_t result)
{
    blz_rt *rt = NULL;
    int64_t rc;

    check(blz_rt_new(&rt, options) == 0);
    if (strcmp(blz_rt_backend(rt), backend) != 0 || !strstr(blz_rt_backend_reason(rt), words)) {
        fprintf(stderr, "%s: %s\n", blz_rt_backend(rt), blz_rt_backend_reason(rt));
        return 2;
    }
    rc = talk_everywhere(rt);
    if (rc != result) {
        fprintf(stderr, "talks: %lld\n", (long long)rc);
        return 3;
    }
    check(blz_rt_free(rt) == 0);
    return 0;
}

static int talk_on(const blz_options *given, const char *backend, const char *words, int64_t result)
{
    int status = 0;

    for (unsigned workers = 1; workers <= 2 && status == 0; workers++) {
        blz_options options = given ? *given : (blz_options){0};
        options.workers = workers;
        status = talk_with(&options, backend, words, result);
    }
    return status;
}

/* ---- the cases ---- */

static int no_permission(void)
{
    refuse_call(SYS_io_uring_setup, EPERM);
    return talk_on(NULL, "epoll", "io_uring was refused: not permitted", 0);
}

static int no_such_call(void)
{
    refuse_call(SYS_io_uring_setup, ENOSYS);
    return talk_on(NULL, "epoll", "the kernel does not have it", 0);
}

static int too_old(void)
{
    refuse_call(SYS_io_uring_setup, EINVAL);
    return talk_on(NULL, "epoll", "too old", 0);
}

static int no_locked_memory(void)
{
    refuse_call(SYS_io_uring_setup, ENOMEM);
    return talk_on(NULL, "epoll", "locked memory", 0);
}

static int security_module(void)
{
    refuse_call(SYS_io_uring_setup, EACCES);
    return talk_on(NULL, "epoll", "security module", 0);
}

/* Not the backend's fault: a program that is short of descriptors is told. */
static int no_descriptors(void)
{
    refuse_call(SYS_io_uring_setup, EMFILE);
    return talk_on(NULL, "none", "too many open files", -EMFILE);
}

static int a_ring_that_cannot_be_entered(void)
{
    refuse_call(SYS_io_uring_enter, EPERM);
    return talk_on(NULL, "epoll", "io_uring was refused: not permitted", 0);
}

static int a_ring_that_cannot_be_set_up(void)
{
    refuse_call(SYS_io_uring_register, EPERM);
    return talk_on(NULL, "epoll", "io_uring was refused: not permitted", 0);
}

/* A kernel that does not signal a ring's eventfd: the call that registers it succeeds, and does
 * nothing. */
static int a_ring_that_wakes_nobody(void)
{
    enum { REGISTER_EVENTFD = 4, SUCCEEDS = 0 };

    refuse_calls(&(struct filter_rule){SYS_io_uring_register, SUCCEEDS, REGISTER_EVENTFD}, 1);
    if (talk_on(&(blz_options){.backend = "io_uring"}, "none", "do not wake", -ETIME) != 0)
        return 4;
    return talk_on(NULL, "epoll", "io_uring was refused: on this kernel its events do not wake", 0);
}

static int neither_ring_nor_epoll(void)
{
    const struct filter_rule rules[] = {{SYS_io_uring_setup, ENOSYS, FILTER_ANY},
                                        {SYS_epoll_create1, ENOSYS, FILTER_ANY}};

    refuse_calls(rules, 2);
    return talk_on(NULL, "poll", "epoll was refused", 0);
}

static int nothing_at_all(void)
{
    const struct filter_rule rules[] = {{SYS_io_uring_setup, ENOSYS, FILTER_ANY},
                                        {SYS_eventfd2, ENOSYS, FILTER_ANY}};

    refuse_calls(rules, 2);
    return talk_on(NULL, "none", "no backend works", -ENOSYS);
}

static int epoll_without_precise_waits(void)
{
    refuse_call(SYS_epoll_pwait2, ENOSYS);
    return talk_on(&(blz_options){.backend = "epoll"}, "epoll", "asked for by options", 0);
}

static int the_one_that_was_asked_for_is_refused(void)
{
    blz_rt *rt;

    refuse_call(SYS_io_uring_setup, EPERM);
    if (blz_rt_new(&rt, &(blz_options){.backend = "io_uring", .embedded = true}) != -EPERM)
        return 1;
    return talk_on(&(blz_options){.backend = "io_uring"}, "none", "not permitted", -EPERM);
}

static int the_environment_names_one(void)
{
    setenv("BLZ_BACKEND", "poll", 1);
    if (talk_on(NULL, "poll", "asked for by BLZ_BACKEND", 0) != 0)
        return 4;
    if (talk_on(&(blz_options){.backend = "epoll"}, "epoll", "asked for by options.backend", 0))
        return 5;
    setenv("BLZ_BACKEND", "", 1);
    return talk_on(NULL, "io_uring", "it works here", 0);
}

static int a_name_that_nobody_has(void)
{
    blz_rt *rt;

    if (blz_rt_new(&rt, &(blz_options){.backend = "kqueue", .embedded = true}) != -EINVAL)
        return 1;
    setenv("BLZ_BACKEND", "uring", 1);
    return talk_on(NULL, "none", "no such backend", -EINVAL);
}

/* A ring locks this much, in kernels that count it. A user of whom there is nothing else has locked
 * nothing so far. */
enum { RING_BYTES = 84 * 1024 };

static bool become_somebody(int rings)
{
    uid_t nobody_else = 100000 + (uid_t)getpid();
    const struct rlimit limit = {(rlim_t)rings * RING_BYTES, (rlim_t)rings * RING_BYTES};

    check(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    return setresuid(nobody_else, nobody_else, nobody_else) == 0;
}

/* On Linux 6.1 and 6.12 a ring does not count as locked memory. */
static bool rings_are_counted(void)
{
    char params[120] = {0};
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        become_somebody(0);
        _exit(syscall(SYS_io_uring_setup, 1, params) < 0);
    }
    check(waitpid(pid, &status, 0) == pid);
    return status != 0;
}

/* Some would get their rings; so all do without, and at once: there is no use in waiting. */
static int locked_memory_for_some(void)
{
    bool counted = rings_are_counted();

    if (!become_somebody(5) && geteuid() == 0)
        return 0; /* root, and not allowed to be anybody else: there is no limit */
    if (!counted)
        return talk_with(&(blz_options){.workers = 8}, "io_uring", "it works here", 0);
    if (talk_with(&(blz_options){.workers = 8}, "epoll", "locked memory", 0) != 0)
        return 4;
    return talk_with(&(blz_options){.workers = 8, .backend = "io_uring"}, "none", "locked memory",
                     -ENOMEM);
}

/* And one more, by which it is known that rings work. */
static int locked_memory_for_all(void)
{
    if (!become_somebody(9))
        return 0;
    return talk_with(&(blz_options){.workers = 8}, "io_uring", "it works here", 0);
}

static const struct {
    const char *name;
    int (*fn)(void);
    bool needs_ring;
} cases[] = {
    {"no_permission", no_permission, false},
    {"no_such_call", no_such_call, false},
    {"too_old", too_old, false},
    {"no_locked_memory", no_locked_memory, false},
    {"security_module", security_module, false},
    {"no_descriptors", no_descriptors, false},
    {"a_ring_that_cannot_be_entered", a_ring_that_cannot_be_entered, true},
    {"a_ring_that_cannot_be_set_up", a_ring_that_cannot_be_set_up, true},
    {"a_ring_that_wakes_nobody", a_ring_that_wakes_nobody, true},
    {"neither_ring_nor_epoll", neither_ring_nor_epoll, false},
    {"nothing_at_all", nothing_at_all, false},
    {"epoll_without_precise_waits", epoll_without_precise_waits, false},
    {"the_one_that_was_asked_for_is_refused", the_one_that_was_asked_for_is_refused, false},
    {"the_environment_names_one", the_environment_names_one, true},
    {"a_name_that_nobody_has", a_name_that_nobody_has, false},
    {"locked_memory_for_some", locked_memory_for_some, true},
    {"locked_memory_for_all", locked_memory_for_all, true},
};

static int run_case(const char *name)
{
    alarm(CHILD_SECONDS);
    unsetenv("BLZ_BACKEND");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0)
            return cases[i].fn();
    return 99;
}

static bool has_ring(void)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = "io_uring"});
    bool has = strcmp(blz_rt_backend(rt), "io_uring") == 0;

    free_rt(rt);
    return has;
}

static void a_backend_that_is_refused_is_replaced(void **state)
{
    bool ring = has_ring();

    (void)state;
    allow_seconds(300);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = -1;
        pid_t pid;
        if (cases[i].needs_ring && !ring)
            continue;
        pid = fork();
        if (pid == 0) {
            execl("/proc/self/exe", "io_backend", cases[i].name, (char *)NULL);
            _exit(98);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fail_msg("%s: status %#x", cases[i].name, (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backend_that_is_refused_is_replaced),
    };

    return argc > 1 ? run_case(argv[1]) : RUN_TESTS(tests);
}
