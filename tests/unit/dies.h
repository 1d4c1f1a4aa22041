/* SPDX-License-Identifier: Apache-2.0 */
/* Misuse: what is done in a process of its own must end in a panic with the right sentence. */
#ifndef BLZ_TESTS_DIES_H
#define BLZ_TESTS_DIES_H

#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs an async function in the child, on its one thread: TSan allows no others after a fork. */
#define RUN_ALONE(...) \
    (void)BLZ_RUN_WITH((&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER}), __VA_ARGS__)

/* The child: what it writes to stderr goes to `fd`. */
static inline void die_in_child(void (*misuse)(void), int fd)
{
    dup2(fd, STDERR_FILENO);
    signal(SIGABRT, SIG_DFL); /* cmocka has one of its own */
    alarm(60);                /* for one that hangs */
    misuse();
    _exit(0);
}

/* Asserts that `misuse` aborts, and that its last words contain `words`. */
static inline void assert_dies(void (*misuse)(void), const char *words)
{
    char said[4096];
    size_t len = 0;
    ssize_t n;
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0)
        die_in_child(misuse, ends[1]);
    assert_true(child > 0);
    close(ends[1]);
    while ((n = read(ends[0], said + len, sizeof said - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!strstr(said, words))
        fail_msg("it said \"%s\", and not \"%s\"", said, words);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

#endif
