/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that may kill: when all threads block them, and in a forked child, which is on its own.
 * Each case is a program of its own: this one, started again with an argument.
 */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * All threads block the signal. The herald lets it in as long as somebody wants it; before that and
 * after that it waits, and does not do what it would: kill.
 */
static int blocked_everywhere(void)
{
    blz_signal other, sub;
    sigset_t set, pending;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    other = subscribed(SIGUSR1); /* the herald stays */
    for (int i = 0; i < 100; i++) {
        kill(getpid(), SIGUSR2);
        sub = subscribed(SIGUSR2);
        check(blz_signal_wait(&sub, NULL) == 1);
        blz_signal_close(&sub);
        kill(getpid(), SIGUSR2);
        sigpending(&pending);
        check(sigismember(&pending, SIGUSR2) == 1);
        check(sigwaitinfo(&set, NULL) == SIGUSR2);
    }
    blz_signal_close(&other);
    return 0;
}

/* What it inherits is void, but it may have its own; its parent does not hear of it. */
static int forked(void)
{
    blz_signal sub = subscribed(SIGUSR1);
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        blz_signal mine;
        if (received(&sub) != -EOWNERDEAD)
            _exit(1);
        if (blz_signal_open(&mine, SIGUSR1) != 0 || received(&mine) != 0)
            _exit(2);
        raise(SIGUSR1);
        if (received(&mine) != 1)
            _exit(3);
        blz_signal_close(&sub); /* the parent's: nothing happens */
        raise(SIGUSR1);
        if (blz_signal_wait(&mine, NULL) != 1)
            _exit(4);
        blz_signal_close(&mine);
        raise(SIGUSR1); /* the default action: the handler from before the parent's */
        _exit(5);
    }
    check(waitpid(pid, &status, 0) == pid);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    check(received(&sub) == 0); /* that was not for us */
    raise(SIGUSR1);
    check(received(&sub) == 1);
    blz_signal_close(&sub);
    return 0;
}

/* It has never subscribed itself, and gets a signal. */
static int forked_and_killed(void)
{
    blz_signal sub = subscribed(SIGUSR1);
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        raise(SIGUSR1);
        _exit(1);
    }
    check(waitpid(pid, &status, 0) == pid);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    check(received(&sub) == 0);
    blz_signal_close(&sub);
    return 0;
}

static const struct {
    const char *name;
    int (*fn)(void);
} programs[] = {
    {"blocked_everywhere", blocked_everywhere},
    {"forked", forked},
    {"forked_and_killed", forked_and_killed},
};

static int run_program(const char *name)
{
    signal(SIGUSR1, SIG_DFL); /* not as the program before has left it */
    alarm(CHILD_SECONDS);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (strcmp(name, programs[i].name) == 0)
            return programs[i].fn();
    return 99;
}

static void a_signal_that_all_threads_block_is_received_all_the_same(void **state)
{
    (void)state;
    if (is_sanitized())
        skip(); /* the thread sanitizer holds signals back from a thread that sleeps */
    in_own_process("blocked_everywhere");
}

static void a_forked_child_has_a_table_of_its_own(void **state)
{
    (void)state;
    if (is_sanitized())
        skip(); /* the thread sanitizer forbids threads after a fork */
    in_own_process("forked");
}

static void a_forked_child_has_the_handlers_from_before(void **state)
{
    (void)state;
    if (is_sanitized())
        skip(); /* as above */
    in_own_process("forked_and_killed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_signal_that_all_threads_block_is_received_all_the_same),
        TEST(a_forked_child_has_a_table_of_its_own),
        TEST(a_forked_child_has_the_handlers_from_before),
    };

    return argc > 1 ? run_program(argv[1]) : RUN_TESTS(tests);
}
