/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of the conformance suite. The test program itself is what they run: called with
 * arguments, it does what the first one says, and ends.
 *
 *   exit CODE         ends with that code
 *   say TEXT...       writes its arguments to standard output, each with a newline
 *   complain TEXT     writes to standard error
 *   env               writes its environment
 *   where             writes its working directory
 *   fds               writes the numbers of its open descriptors
 *   read FD           writes what it reads from that descriptor
 *   wait              ends when standard input does
 *   parent            starts a child that does `wait`, writes a byte, and waits for its own input
 *   leave             starts a child that does `wait`, and ends
 *   ids               writes "pid group session parent's-group"
 *   limit             writes its soft limit of descriptors
 *   signals           writes which signals are blocked, ignored, and handled, a line each
 */
#ifndef BLZ_TESTS_SYSTEM_LAUNCHED_H
#define BLZ_TESTS_SYSTEM_LAUNCHED_H

#include "conform.h"

#include "system/env.h"
#include "system/handle.h"
#include "system/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char this_program[PATH_MAX];

/* ---- in the child ---- */

static inline void write_line(const char *text)
{
    dprintf(1, "%s\n", text);
}

static inline int wait_for_input(void)
{
    char byte;

    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

static inline int write_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
            write_line(entry->d_name);
    closedir(dir);
    return 0;
}

static inline int write_all_of(int fd)
{
    char buf[256];
    ssize_t n;

    while ((n = read(fd, buf, sizeof buf)) > 0)
        if (write(1, buf, (size_t)n) != n)
            return 1;
    return n < 0;
}

static inline int write_signals(void)
{
    char lines[3][512] = {"blocked", "ignored", "handled"};
    sigset_t blocked;

    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGILL)
            continue; /* a sanitizer that this program is built with handles them */
        int line = -1;
        if (sigaction(i, NULL, &action) < 0)
            continue;
        if (action.sa_handler != SIG_DFL)
            line = action.sa_handler == SIG_IGN ? 1 : 2;
        if (line > 0)
            sprintf(lines[line] + strlen(lines[line]), " %d", i);
        if (sigismember(&blocked, i))
            sprintf(lines[0] + strlen(lines[0]), " %d", i);
    }
    for (int i = 0; i < 3; i++)
        write_line(lines[i]);
    return 0;
}

static inline int be_parent(bool leaves)
{
    if (fork() == 0)
        _exit(wait_for_input());
    write_line("begun");
    return leaves ? 0 : wait_for_input();
}

static inline int be_child(int argc, char **argv)
{
    char path[PATH_MAX];
    struct rlimit limit;

    if (strcmp(argv[1], "exit") == 0)
        return atoi(argv[2]);
    if (strcmp(argv[1], "say") == 0)
        for (int i = 2; i < argc; i++)
            write_line(argv[i]);
    else if (strcmp(argv[1], "complain") == 0)
        dprintf(2, "%s\n", argv[2]);
    else if (strcmp(argv[1], "env") == 0)
        for (char **variable = environ; *variable; variable++)
            write_line(*variable);
    else if (strcmp(argv[1], "where") == 0)
        write_line(getcwd(path, sizeof path));
    else if (strcmp(argv[1], "fds") == 0)
        return write_fds();
    else if (strcmp(argv[1], "read") == 0)
        return write_all_of(atoi(argv[2]));
    else if (strcmp(argv[1], "wait") == 0)
        return wait_for_input();
    else if (strcmp(argv[1], "parent") == 0 || strcmp(argv[1], "leave") == 0)
        return be_parent(argv[1][0] == 'l');
    else if (strcmp(argv[1], "ids") == 0)
        dprintf(1, "%d %d %d %d\n", getpid(), getpgrp(), getsid(0), getpgid(getppid()));
    else if (strcmp(argv[1], "limit") == 0)
        dprintf(1, "%lld\n", getrlimit(RLIMIT_NOFILE, &limit) < 0 ? -1 : (long long)limit.rlim_cur);
    else if (strcmp(argv[1], "signals") == 0)
        return write_signals();
    return 0;
}

/* ---- in the test ---- */

/* Finds this program; what it has inherited it does not pass on. */
static inline bool begin_launches(void)
{
    for (int fd = 3; fd < 1024; fd++)
        (void)blz__handle_set_inherited(fd, false);
    return realpath("/proc/self/exe", this_program) != NULL;
}

enum { MAX_FDS = 8 };

/* A plan, and what it points to. */
struct launched {
    blz__process_plan plan;
    blz__process child;
    const char *step;
    const char *argv[8];
    blz__process_fd fds[MAX_FDS];
    int output; /* the reading end of its standard output, or -1 */
    int input;  /* the writing end of its standard input, or -1 */
    int theirs[2];
};

/* A plan to run this program with up to six arguments; standard input and output are pipes. */
static inline void plan_child(struct launched *it, const char *const *args)
{
    int in[2], out[2];
    size_t n = 1;

    memset(it, 0, sizeof *it);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    it->argv[0] = "launched";
    for (; args[n - 1]; n++)
        it->argv[n] = args[n - 1];
    it->plan.program = this_program;
    it->plan.argv = it->argv;
    it->plan.envp = blz__env_list();
    it->plan.fds = it->fds;
    it->plan.scratch = aligned_alloc(16, (blz__process_scratch_size() + 15) & ~(size_t)15);
    it->fds[it->plan.nr_fds++] = (blz__process_fd){.target = 0, .source = in[0]};
    it->fds[it->plan.nr_fds++] = (blz__process_fd){.target = 1, .source = out[1]};
    it->input = in[1];
    it->output = out[0];
    it->theirs[0] = in[0];
    it->theirs[1] = out[1];
}

#define PLAN(it, ...) plan_child((it), (const char *const[]){__VA_ARGS__, NULL})

static inline int launch(struct launched *it)
{
    int rc = blz__process_launch(&it->plan, &it->child, &it->step);

    close(it->theirs[0]);
    close(it->theirs[1]);
    return rc;
}

static inline void close_input(struct launched *it)
{
    close(it->input);
    it->input = -1;
}

/* Everything that it writes. */
static inline const char *output_of(struct launched *it)
{
    static char text[16384];
    size_t len = 0;
    ssize_t n;

    while ((n = read(it->output, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

/* Closes what the test has of it; `child` has been reaped, or was never there. */
static inline void forget(struct launched *it)
{
    if (it->input >= 0)
        close(it->input);
    close(it->output);
    blz__process_close(&it->child);
    free(it->plan.scratch);
}

static inline void await_and_forget(struct launched *it, int64_t status)
{
    assert_int_equal(blz__process_await(&it->child), status);
    forget(it);
}

/* The launch fails at that step, with that error, and no child is left. */
static inline void assert_fails(struct launched *it, const char *step, int error)
{
    assert_int_equal(launch(it), error);
    assert_string_equal(it->step, step);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is there to wait for */
    forget(it);
}

/* Until its end can be seen, without reaping it. */
static inline void until_ended(const blz__process *process)
{
    struct pollfd it = {.fd = blz__process_ends_handle(process), .events = POLLIN};

    while (poll(&it, 1, -1) < 1)
        continue;
}

#endif
