/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/signal.h. */
#include "conform.h"

#include "base/atomic.h"
#include "base/sanitize.h"
#include "system/signal.h"
#include "system/thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the handler has seen. */
static struct {
    uint32_t count;
    int number, nested, blocked;
    int64_t pid;
    uint32_t uid;
    uint64_t thread;
} seen;

static blz__signal_action previous[BLZ__SIGNAL_LIMIT];

static uint32_t nr_seen(void)
{
    return blz__load(&seen.count, ACQUIRE);
}

static void on_signal(int number, int64_t pid, uint32_t uid)
{
    seen.number = number;
    seen.pid = pid;
    seen.uid = uid;
    seen.thread = blz__thread_id();
    blz__fetch_add(&seen.count, 1u, RELEASE);
}

static void catch_signal(int number, blz__signal_handler *handler)
{
    int rc = blz__signal_catch(number, handler, &previous[number]);

    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    memset(&seen, 0, sizeof seen);
}

static void until_seen(uint32_t count)
{
    while (nr_seen() < count)
        blz__thread_yield();
}

/* Runs fn in a forked process: the status of its end. */
static int status_of_fork(int (*fn)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- handlers ---- */

static void each_signal_that_is_raised_is_delivered(void **state)
{
    (void)state;
    catch_signal(SIGINT, on_signal);
    for (uint32_t i = 1; i <= 100; i++) {
        blz__signal_raise(SIGINT);
        assert_int_equal(nr_seen(), i);
    }
    assert_int_equal(seen.number, SIGINT);
    blz__signal_restore(SIGINT, &previous[SIGINT]);
}

static void a_signal_is_raised_in_the_calling_thread(void **state)
{
    (void)state;
    catch_signal(SIGINT, on_signal);
    blz__signal_raise(SIGINT);
    assert_int_equal(seen.thread, blz__thread_id());
    blz__signal_restore(SIGINT, &previous[SIGINT]);
}

static void the_sender_is_the_process_that_sent_it(void **state)
{
    (void)state;
    catch_signal(SIGUSR1, on_signal);
    blz__signal_send_self(SIGUSR1);
    until_seen(1);
    assert_int_equal(seen.pid, getpid());
    assert_int_equal(seen.uid, getuid());
    blz__signal_raise(SIGUSR1);
    assert_int_equal(seen.pid, getpid());
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
}

static void a_signal_of_the_system_has_no_sender(void **state)
{
    struct itimerval soon = {.it_value.tv_usec = 1};

    (void)state;
    catch_signal(SIGALRM, on_signal);
    seen.pid = -1;
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    until_seen(1);
    assert_int_equal(seen.pid, 0);
    assert_int_equal(seen.uid, 0);
    blz__signal_restore(SIGALRM, &previous[SIGALRM]);
}

static void change_errno(int number, int64_t pid, uint32_t uid)
{
    errno = ENOSPC;
    on_signal(number, pid, uid);
}

static void errno_is_kept(void **state)
{
    (void)state;
    catch_signal(SIGUSR1, change_errno);
    errno = EDOM;
    blz__signal_raise(SIGUSR1);
    assert_int_equal(errno, EDOM);
    assert_int_equal(nr_seen(), 1);
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
}

/* Raises another one, and itself: both wait until this ends. */
static void raise_others(int number, int64_t pid, uint32_t uid)
{
    seen.nested += seen.blocked++ > 0 && nr_seen() == 0;
    if (nr_seen() == 0 && seen.blocked == 1) {
        blz__signal_raise(SIGUSR2);
        blz__signal_raise(number);
    }
    on_signal(number, pid, uid);
}

static void a_handler_is_not_interrupted_by_signals(void **state)
{
    (void)state;
    catch_signal(SIGUSR2, raise_others);
    catch_signal(SIGUSR1, raise_others);
    blz__signal_raise(SIGUSR1);
    until_seen(3);
    assert_int_equal(seen.nested, 0);
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
    blz__signal_restore(SIGUSR2, &previous[SIGUSR2]);
}

static int ends[2];
static int64_t was_read;
static uint32_t reads;

static void *read_a_byte(void *arg)
{
    char byte;

    (void)arg;
    blz__signal_let_in(blz__signal_bit(SIGUSR1));
    blz__store(&reads, 1u, RELEASE);
    was_read = read(ends[0], &byte, 1);
    return NULL;
}

static void an_interrupted_call_goes_on(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    catch_signal(SIGUSR1, on_signal);
    assert_int_equal(pthread_create(&thread, NULL, read_a_byte, NULL), 0);
    while (!blz__load(&reads, ACQUIRE))
        blz__thread_yield();
    for (int i = 0; i < 1000; i++) { /* ThreadSanitizer has handlers wait for the end of the read */
        assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
        blz__thread_yield();
    }
    assert_int_equal(write(ends[1], "", 1), 1);
    pthread_join(thread, NULL);
    assert_int_equal(was_read, 1);
    assert_true(nr_seen() > 0);
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
    close(ends[0]);
    close(ends[1]);
}

static int raise_in_child(void)
{
    memset(&seen, 0, sizeof seen);
    if (!blz__signal_is_caught(SIGUSR1))
        return 1;
    blz__signal_raise(SIGUSR1);
    return nr_seen() == 1 && seen.pid == getpid() ? 0 : 2;
}

static void a_forked_child_has_the_handler(void **state)
{
    (void)state;
    catch_signal(SIGUSR1, on_signal);
    assert_int_equal(status_of_fork(raise_in_child), 0);
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
}

/* ---- which signals ---- */

static void signals_of_instructions_and_kills_cannot_be_caught(void **state)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    blz__signal_action action;

    (void)state;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_false(blz__signal_can_be_caught(never[i]));
        assert_int_equal(blz__signal_catch(never[i], on_signal, &action), -EINVAL);
    }
}

static void numbers_that_there_are_not_cannot_be_caught(void **state)
{
    static const int none[] = {0, -1, BLZ__SIGNAL_LIMIT, 1000};
    blz__signal_action action;

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(blz__signal_can_be_caught(none[i]));
        assert_int_equal(blz__signal_catch(none[i], on_signal, &action), -EINVAL);
    }
}

static void the_signals_that_ask_to_stop_can_be_caught(void **state)
{
    static const int stops[] = {SIGINT, SIGTERM};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_true(blz__signal_can_be_caught(stops[i]));
        assert_int_equal(blz__signal_catch(stops[i], on_signal, &previous[stops[i]]), 0);
        blz__signal_restore(stops[i], &previous[stops[i]]);
    }
}

/* ---- putting back ---- */

static int calls;

static void own_handler(int number)
{
    (void)number;
    calls++;
}

static void the_handler_from_before_is_put_back(void **state)
{
    (void)state;
    calls = 0;
    signal(SIGINT, own_handler);
    catch_signal(SIGINT, on_signal);
    blz__signal_raise(SIGINT);
    assert_int_equal(calls, 0);
    blz__signal_restore(SIGINT, &previous[SIGINT]);
    blz__signal_raise(SIGINT);
    assert_int_equal(calls, 1);
    assert_int_equal(nr_seen(), 1);
    signal(SIGINT, SIG_DFL);
}

static void an_ignored_signal_is_ignored_again(void **state)
{
    (void)state;
    signal(SIGINT, SIG_IGN);
    catch_signal(SIGINT, on_signal);
    blz__signal_restore(SIGINT, &previous[SIGINT]);
    blz__signal_raise(SIGINT);
    assert_int_equal(nr_seen(), 0);
    assert_true(signal(SIGINT, SIG_DFL) == SIG_IGN);
}

static void a_handler_over_ours_stays(void **state)
{
    (void)state;
    calls = 0;
    catch_signal(SIGINT, on_signal);
    assert_true(blz__signal_is_caught(SIGINT));
    signal(SIGINT, own_handler);
    assert_false(blz__signal_is_caught(SIGINT));
    blz__signal_restore(SIGINT, &previous[SIGINT]);
    blz__signal_raise(SIGINT);
    assert_int_equal(calls, 1);
    signal(SIGINT, SIG_DFL);
}

static void a_signal_that_is_not_caught_says_so(void **state)
{
    (void)state;
    assert_false(blz__signal_is_caught(SIGINT));
    catch_signal(SIGINT, on_signal);
    assert_true(blz__signal_is_caught(SIGINT));
    blz__signal_restore(SIGINT, &previous[SIGINT]);
    assert_false(blz__signal_is_caught(SIGINT));
}

static void catching_again_keeps_what_was_there_before_the_first_time(void **state)
{
    (void)state;
    calls = 0;
    signal(SIGINT, own_handler);
    catch_signal(SIGINT, on_signal);
    catch_signal(SIGINT, change_errno);
    blz__signal_raise(SIGINT);
    assert_int_equal(nr_seen(), 1);
    blz__signal_restore(SIGINT, &previous[SIGINT]);
    blz__signal_raise(SIGINT);
    assert_int_equal(calls, 1);
    signal(SIGINT, SIG_DFL);
}

static int end_by_default(void)
{
    blz__signal_set_default(SIGTERM);
    blz__signal_raise(SIGTERM);
    return 0;
}

static void the_default_action_can_be_had(void **state)
{
    int status;

    (void)state;
    catch_signal(SIGTERM, on_signal);
    status = status_of_fork(end_by_default);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    blz__signal_restore(SIGTERM, &previous[SIGTERM]);
}

static void by_default_in_handler(int number, int64_t pid, uint32_t uid)
{
    (void)pid;
    (void)uid;
    blz__signal_set_default(number);
    blz__signal_raise(number);
    seen.count++; /* it comes when the handler ends */
}

static int end_in_handler(void)
{
    blz__signal_raise(SIGTERM);
    return 0;
}

static void a_signal_that_a_handler_raises_comes_when_it_ends(void **state)
{
    int status;

    (void)state;
#ifdef BLZ_TSAN
    print_message("skipped: %s: ThreadSanitizer calls handlers at moments of its own\n", __func__);
    skip();
#endif
    catch_signal(SIGTERM, by_default_in_handler);
    status = status_of_fork(end_in_handler);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    blz__signal_restore(SIGTERM, &previous[SIGTERM]);
}

/* What an action says about children is about them, and not about the handler. */
static int children_vanish(void)
{
    pid_t pid;

    signal(SIGCHLD, SIG_IGN);
    if (blz__signal_catch(SIGCHLD, on_signal, &previous[SIGCHLD]) < 0)
        return 1;
    pid = fork();
    if (pid == 0)
        _exit(0);
    return waitpid(pid, NULL, 0) < 0 && errno == ECHILD ? 0 : 2;
}

static void children_that_were_not_waited_for_are_not_from_now_on(void **state)
{
    (void)state;
    assert_int_equal(status_of_fork(children_vanish), 0);
}

/* ---- threads ---- */

static sigset_t mask_of_thread;
static uint32_t go_on;

static void *let_one_in(void *arg)
{
    (void)arg;
    blz__signal_let_in(blz__signal_bit(SIGUSR1) | blz__signal_bit(SIGTERM));
    pthread_sigmask(SIG_SETMASK, NULL, &mask_of_thread);
    blz__store(&go_on, 1u, RELEASE);
    while (blz__load(&go_on, ACQUIRE) != 2)
        blz__thread_yield();
    return NULL;
}

/* With one more thread, which lets in SIGUSR1 and SIGTERM; this one blocks all. */
static pthread_t start_letting_in(sigset_t *before)
{
    pthread_t thread;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    blz__store(&go_on, 0u, RELAXED);
    assert_int_equal(pthread_create(&thread, NULL, let_one_in, NULL), 0);
    while (blz__load(&go_on, ACQUIRE) != 1)
        blz__thread_yield();
    return thread;
}

static void end_letting_in(pthread_t thread, const sigset_t *before)
{
    blz__store(&go_on, 2u, RELEASE);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void a_thread_lets_in_what_it_says_and_no_more(void **state)
{
    sigset_t before;
    pthread_t thread = start_letting_in(&before);

    (void)state;
    for (int i = 1; i < BLZ__SIGNAL_LIMIT; i++)
        if (blz__signal_can_be_caught(i) && (i < 32 || i > 34)) /* those are the C library's */
            assert_int_equal(sigismember(&mask_of_thread, i), i != SIGUSR1 && i != SIGTERM);
    end_letting_in(thread, &before);
}

static void a_signal_to_the_process_comes_to_a_thread_that_lets_it_in(void **state)
{
    sigset_t before;
    pthread_t thread;

    (void)state;
    catch_signal(SIGUSR1, on_signal);
    thread = start_letting_in(&before);
    blz__signal_send_self(SIGUSR1);
    until_seen(1);
    assert_int_not_equal(seen.thread, blz__thread_id()); /* this one blocks it */
    end_letting_in(thread, &before);
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
}

static void a_signal_that_is_blocked_comes_when_it_is_let_in(void **state)
{
    sigset_t before;

    (void)state;
    catch_signal(SIGUSR1, on_signal);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    blz__signal_let_in(0);
    blz__signal_raise(SIGUSR1);
    blz__signal_raise(SIGUSR1); /* what the system merges comes as one */
    assert_int_equal(nr_seen(), 0);
    blz__signal_let_in(blz__signal_bit(SIGUSR1));
    assert_int_equal(nr_seen(), 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    blz__signal_restore(SIGUSR1, &previous[SIGUSR1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_signal_that_is_raised_is_delivered),
        TEST(a_signal_is_raised_in_the_calling_thread),
        TEST(the_sender_is_the_process_that_sent_it),
        TEST(a_signal_of_the_system_has_no_sender),
        TEST(errno_is_kept),
        TEST(a_handler_is_not_interrupted_by_signals),
        TEST(an_interrupted_call_goes_on),
        TEST(a_forked_child_has_the_handler),
        TEST(signals_of_instructions_and_kills_cannot_be_caught),
        TEST(numbers_that_there_are_not_cannot_be_caught),
        TEST(the_signals_that_ask_to_stop_can_be_caught),
        TEST(the_handler_from_before_is_put_back),
        TEST(an_ignored_signal_is_ignored_again),
        TEST(a_handler_over_ours_stays),
        TEST(a_signal_that_is_not_caught_says_so),
        TEST(catching_again_keeps_what_was_there_before_the_first_time),
        TEST(the_default_action_can_be_had),
        TEST(a_signal_that_a_handler_raises_comes_when_it_ends),
        TEST(children_that_were_not_waited_for_are_not_from_now_on),
        TEST(a_thread_lets_in_what_it_says_and_no_more),
        TEST(a_signal_to_the_process_comes_to_a_thread_that_lets_it_in),
        TEST(a_signal_that_is_blocked_comes_when_it_is_let_in),
    };
    return RUN_TESTS(tests);
}
