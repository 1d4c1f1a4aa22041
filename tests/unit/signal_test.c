/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: every subscriber gets every signal, counted, in tasks of all runtimes and in threads;
 * nothing is lost between two waits or by a cancelled one; handlers from before come back and get
 * what nobody has received.
 */
#include "signals.h"

#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Until one comes that was sent to the process; the thread sanitizer delivers it in usleep. */
static int64_t wait_for_one(blz_signal *sub, blz_signal_info *info)
{
    int64_t count;

    if (!is_sanitized())
        return blz_signal_wait(sub, info);
    while ((count = blz_signal_try_recv(sub, info)) == -EAGAIN)
        usleep(100);
    return count;
}

/* ---- the program's own handler ---- */

static struct {
    int calls; /* atomic */
    sem_t called;
} own;

static void count_call(int signal)
{
    (void)signal;
    __atomic_fetch_add(&own.calls, 1, __ATOMIC_RELAXED);
    sem_post(&own.called);
}

static int own_calls(void)
{
    return __atomic_load_n(&own.calls, __ATOMIC_RELAXED);
}

static void install_own(int signal)
{
    struct sigaction action = {.sa_handler = count_call, .sa_flags = SA_NODEFER};

    own.calls = 0;
    sem_init(&own.called, 0, 0);
    sigaddset(&action.sa_mask, SIGWINCH);
    sigaction(signal, &action, NULL);
}

static bool own_is_installed(int signal)
{
    struct sigaction now;

    sigaction(signal, NULL, &now);
    return now.sa_handler == count_call && (now.sa_flags & SA_NODEFER) &&
           !(now.sa_flags & SA_RESTART) && sigismember(&now.sa_mask, SIGWINCH);
}

/* ---- tasks ---- */

struct receives {
    BLZ_FRAME;
    blz_signal *sub; /* NULL: one of its own, to `signal` */
    int signal;
    struct event *ready;
    int64_t enough; /* ends when it has received so many */
    int64_t rc, total;
    blz_signal own;
    blz_signal_op op;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    if (!self->sub)
        self->own = subscribed(self->signal);
    if (self->ready)
        event_post(self->ready);
    for (self->total = 0; self->total < self->enough; self->total += self->rc) {
        BLZ_AWAIT(self->rc, blz_signal_recv(&self->op, self->sub ? self->sub : &self->own, NULL));
        if (self->rc < 0)
            break;
    }
    blz_signal_close(&self->own);
    BLZ_END(self->rc < 0 ? self->rc : self->total);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- receiving ---- */

struct listener {
    struct event *ready;
    int64_t count;
};

static void *listen_on_a_thread(void *arg)
{
    struct listener *listener = arg;
    blz_signal sub = subscribed(SIGUSR1);

    event_post(listener->ready);
    listener->count = blz_signal_wait(&sub, NULL);
    blz_signal_close(&sub);
    return NULL;
}

static void everyone_gets_it(blz_rt *rt)
{
    enum { TASKS = 20 };
    blz_rt *other = new_rt(&(blz_options){.workers = 1});
    struct event ready = EVENT_INIT;
    struct listener listener = {&ready, 0};
    pthread_t thread = start_thread(listen_on_a_thread, &listener);
    blz_handle handles[2 * TASKS];

    for (int i = 0; i < 2 * TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(i % 2 ? other : rt, &handles[i], receives, .signal = SIGUSR1,
                                      .enough = 1, .ready = &ready),
                         0);
    event_wait(&ready, 2 * TASKS + 1);
    raise(SIGUSR1);
    for (int i = 0; i < 2 * TASKS; i++)
        assert_int_equal(result_of(&handles[i]), 1);
    join_thread(thread);
    assert_int_equal(listener.count, 1);
    free_rt(other);
}

static void every_subscriber_gets_it_in_tasks_and_threads(void **state)
{
    (void)state;
    on_every_backend_of(2, everyone_gets_it);
}

static void what_comes_before_the_wait_is_kept_and_counted(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_signal sub = subscribed(SIGUSR1);
    blz_handle handle;

    (void)state;
    assert_int_equal(received(&sub), 0);
    for (int i = 0; i < 3; i++)
        raise(SIGUSR1);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .sub = &sub, .enough = 3), 0);
    assert_int_equal(turn_all(rt), 1); /* ready at once */
    assert_int_equal(result_of(&handle), 3);
    assert_int_equal(received(&sub), 0);
    blz_signal_close(&sub);
    free_rt(rt);
}

static void each_subscription_counts_for_itself(void **state)
{
    blz_signal early = subscribed(SIGUSR1), late, other = subscribed(SIGUSR2);

    (void)state;
    raise(SIGUSR1);
    assert_int_equal(received(&early), 1);
    raise(SIGUSR1);
    late = subscribed(SIGUSR1);
    assert_int_equal(received(&late), 0);
    raise(SIGUSR1);
    assert_int_equal(received(&early), 2);
    assert_int_equal(received(&late), 1);
    assert_int_equal(received(&other), 0);
    blz_signal_close(&early);
    raise(SIGUSR1);
    assert_int_equal(received(&late), 1);
    blz_signal_close(&late);
    blz_signal_close(&other);
}

static void it_says_who_has_sent_it(void **state)
{
    blz_signal sub = subscribed(SIGUSR1);
    blz_signal_info info;
    int status;
    pid_t pid;

    (void)state;
    raise(SIGUSR1);
    assert_int_equal(blz_signal_try_recv(&sub, &info), 1);
    assert_int_equal(info.signal, SIGUSR1);
    assert_int_equal(info.count, 1);
    assert_int_equal(info.pid, getpid());
    assert_int_equal(info.uid, getuid());
    pid = fork();
    if (pid == 0) {
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    assert_int_equal(wait_for_one(&sub, &info), 1);
    assert_int_equal(info.pid, pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    blz_signal_close(&sub);
    sub = subscribed(SIGCHLD);
    pid = fork();
    if (pid == 0)
        _exit(0);
    assert_true(wait_for_one(&sub, &info) >= 1); /* a child that is stopped makes more of them */
    assert_int_equal(info.pid, 0);               /* nobody has sent it */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    blz_signal_close(&sub);
}

static void several_share_a_subscription(void **state)
{
    enum { TASKS = 5 };
    blz_rt *rt = new_embedded_rt();
    blz_signal sub = subscribed(SIGUSR1);
    blz_handle handles[TASKS];
    int ended = 0;

    (void)state;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], receives, .sub = &sub, .enough = 1), 0);
    turn_all(rt);
    raise(SIGUSR1);
    while (ended == 0) {
        turn_all(rt);
        for (int i = 0; i < TASKS; i++)
            ended += blz_handle_done(&handles[i]);
    }
    assert_int_equal(ended, 1);
    for (int i = 0; i < TASKS; i++)
        blz_handle_cancel(&handles[i]);
    turn_all(rt);
    for (int i = 0; i < TASKS; i++) {
        int64_t result = result_of(&handles[i]);
        ended -= result == 1;
        assert_true(result == 1 || result == -ECANCELED);
    }
    assert_int_equal(ended, 0);
    blz_signal_close(&sub);
    free_rt(rt);
}

static void a_cancelled_wait_loses_nothing(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_signal sub = subscribed(SIGUSR1);
    blz_handle handles[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], receives, .sub = &sub, .enough = 1), 0);
    blz_handle_cancel(&handles[1]); /* before it has begun */
    turn_all(rt);
    raise(SIGUSR1);
    blz_handle_cancel(&handles[0]);
    while (!blz_handle_done(&handles[0]))
        turn_all(rt);
    assert_int_equal(result_of(&handles[1]), -ECANCELED);
    assert_int_equal(result_of(&handles[0]), -ECANCELED);
    assert_int_equal(received(&sub), 1);
    blz_signal_close(&sub);
    free_rt(rt);
}

static void a_runtime_that_ends_takes_its_subscriptions_along(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct event ready = EVENT_INIT;
    blz_handle handles[10];

    (void)state;
    install_own(SIGUSR1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], receives, .signal = SIGUSR1, .enough = 1,
                                      .ready = &ready),
                         0);
    event_wait(&ready, 10);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(result_of(&handles[i]), -ECANCELED);
    assert_true(own_is_installed(SIGUSR1));
    free_rt(rt);
}

static void what_is_not_open_says_so(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_signal sub = {{0}};
    blz_handle handle;

    (void)state;
    assert_int_equal(received(&sub), -EBADF);
    blz_signal_close(&sub);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .sub = &sub, .enough = 1), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EBADF);
    sub = subscribed(SIGUSR1);
    blz_signal_close(&sub);
    blz_signal_close(&sub);
    assert_int_equal(received(&sub), -EBADF);
    free_rt(rt);
}

/* ---- which signals ---- */

static bool is_the_library_s(int signal) /* of threads */
{
    return signal >= 32 && signal < SIGRTMIN;
}

static bool is_refused(int signal)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (signal == never[i])
            return true;
    return signal < 1 || signal > SIGRTMAX || is_the_library_s(signal);
}

static void any_signal_that_can_be_caught(void **state)
{
    (void)state;
    for (int signal = -1; signal <= SIGRTMAX + 1; signal++) {
        blz_signal sub = {{1, 2, 3}};
        struct sigaction before = {0}, after = {0};

        sigaction(signal, NULL, &before);
        assert_int_equal(blz_signal_open(&sub, signal), is_refused(signal) ? -EINVAL : 0);
        if (is_refused(signal)) {
            assert_int_equal(received(&sub), -EBADF);
            continue;
        }
        raise(signal);
        int64_t count = received(&sub); /* whoever stops us lets us continue */
        assert_true(signal == SIGCONT ? count >= 1 : count == 1);
        blz_signal_close(&sub);
        sigaction(signal, NULL, &after);
        assert_true(before.sa_handler == after.sa_handler);
        assert_false(after.sa_flags & (SA_SIGINFO | SA_RESTART | SA_ONSTACK));
    }
}

static void queued_signals_are_counted_one_by_one(void **state)
{
    enum { COUNT = 100 };
    blz_signal sub = subscribed(SIGRTMIN);
    int64_t total = 0, queued = 0;

    (void)state;
    if (is_sanitized()) {
        blz_signal_close(&sub);
        skip(); /* the thread sanitizer merges them */
    }
    for (int i = 0; i < COUNT; i++) /* the system may refuse some */
        queued += sigqueue(getpid(), SIGRTMIN, (union sigval){i}) == 0;
    while (total < queued)
        total += blz_signal_wait(&sub, NULL);
    assert_int_equal(total, queued);
    assert_int_equal(received(&sub), 0);
    blz_signal_close(&sub);
}

/* ---- handlers ---- */

static void the_last_one_closed_puts_the_handler_back(void **state)
{
    blz_signal first, second;

    (void)state;
    install_own(SIGUSR1);
    first = subscribed(SIGUSR1);
    assert_false(own_is_installed(SIGUSR1));
    second = subscribed(SIGUSR1);
    blz_signal_close(&first);
    assert_false(own_is_installed(SIGUSR1));
    raise(SIGUSR1);
    assert_int_equal(own_calls(), 0); /* not called meanwhile */
    assert_int_equal(received(&second), 1);
    blz_signal_close(&second);
    assert_true(own_is_installed(SIGUSR1));
    assert_int_equal(own_calls(), 0);
    raise(SIGUSR1);
    assert_int_equal(own_calls(), 1);
}

static void what_nobody_has_received_is_raised_again(void **state)
{
    blz_signal first, second;

    (void)state;
    install_own(SIGUSR1);
    first = subscribed(SIGUSR1);
    second = subscribed(SIGUSR1);
    raise(SIGUSR1);
    raise(SIGUSR1);
    blz_signal_close(&first);
    assert_int_equal(own_calls(), 0);
    blz_signal_close(&second);
    while (sem_wait(&own.called) < 0)
        continue;
    assert_int_equal(own_calls(), 1); /* they have been merged */
}

static void what_one_has_received_is_not_raised_again(void **state)
{
    blz_signal first, second;

    (void)state;
    install_own(SIGUSR1);
    first = subscribed(SIGUSR1);
    second = subscribed(SIGUSR1);
    raise(SIGUSR1);
    assert_int_equal(received(&first), 1);
    blz_signal_close(&first);
    blz_signal_close(&second); /* which has not */
    raise(SIGUSR1);            /* the next that it gets */
    assert_int_equal(own_calls(), 1);
}

static void a_handler_put_over_ours_is_left_alone(void **state)
{
    struct sigaction ours;
    blz_signal sub;

    (void)state;
    signal(SIGUSR1, SIG_IGN);
    sub = subscribed(SIGUSR1);
    sigaction(SIGUSR1, NULL, &ours);
    assert_true(ours.sa_flags & SA_RESTART);
    install_own(SIGUSR1);
    blz_signal_close(&sub);
    assert_true(own_is_installed(SIGUSR1));
    /* What the program had put aside may even come back after the end. */
    sigaction(SIGUSR1, &ours, NULL);
    raise(SIGUSR1); /* passed on to the handler from before us: ignored */
    sigaction(SIGUSR1, NULL, &ours);
    assert_true(ours.sa_handler == SIG_IGN);
    assert_int_equal(own_calls(), 0);
}

static void children_that_nobody_waits_for_stay_so(void **state)
{
    blz_signal sub;
    pid_t pid;

    (void)state;
    signal(SIGCHLD, SIG_IGN); /* children end without leaving a zombie */
    sub = subscribed(SIGCHLD);
    pid = fork();
    if (pid == 0)
        _exit(0);
    assert_true(wait_for_one(&sub, NULL) >= 1);
    assert_int_equal(waitpid(pid, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    blz_signal_close(&sub);
    signal(SIGCHLD, SIG_DFL);
}

static void a_subscription_to_children_takes_none_away(void **state)
{
    blz_signal sub = subscribed(SIGCHLD);
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(7);
    assert_true(wait_for_one(&sub, NULL) >= 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    blz_signal_close(&sub);
}

static void errno_survives_the_handler(void **state)
{
    blz_signal sub = subscribed(SIGUSR1);

    (void)state;
    errno = EXDEV;
    raise(SIGUSR1);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(received(&sub), 1);
    blz_signal_close(&sub);
}

/* ---- with a stop ---- */

static void a_stop_and_a_subscription_both_get_it(void **state)
{
    blz_signal sub = subscribed(SIGTERM);
    blz_stop stop;

    (void)state;
    assert_int_equal(blz_stop_open(&stop), 0);
    raise(SIGTERM);
    assert_int_equal(blz_stop_received(&stop), SIGTERM);
    assert_int_equal(received(&sub), 1);
    raise(SIGTERM); /* the stop's second, but there is somebody who wants it */
    assert_int_equal(received(&sub), 1);
    assert_int_equal(blz_stop_received(&stop), SIGTERM);
    blz_stop_close(&stop);
    raise(SIGTERM);
    assert_int_equal(received(&sub), 1);
    assert_int_equal(blz_stop_open(&stop), 0); /* which begins anew */
    assert_int_equal(blz_stop_received(&stop), 0);
    blz_signal_close(&sub);
    raise(SIGINT);
    assert_int_equal(blz_stop_received(&stop), SIGINT);
    blz_stop_close(&stop);
}

static void of_two_stops_the_first_is_told(void **state)
{
    blz_stop stop;

    (void)state;
    assert_int_equal(blz_stop_open(&stop), 0);
    blz_signal sub = subscribed(SIGINT); /* so that neither can be the second one */
    blz_signal other = subscribed(SIGTERM);
    raise(SIGTERM);
    raise(SIGINT);
    assert_int_equal(blz_stop_received(&stop), SIGTERM);
    assert_int_equal(received(&sub) + received(&other), 2);
    blz_signal_close(&sub);
    blz_signal_close(&other);
    blz_stop_close(&stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_subscriber_gets_it_in_tasks_and_threads),
        TEST(what_comes_before_the_wait_is_kept_and_counted),
        TEST(each_subscription_counts_for_itself),
        TEST(it_says_who_has_sent_it),
        TEST(several_share_a_subscription),
        TEST(a_cancelled_wait_loses_nothing),
        TEST(a_runtime_that_ends_takes_its_subscriptions_along),
        TEST(what_is_not_open_says_so),
        TEST(any_signal_that_can_be_caught),
        TEST(queued_signals_are_counted_one_by_one),
        TEST(the_last_one_closed_puts_the_handler_back),
        TEST(what_nobody_has_received_is_raised_again),
        TEST(what_one_has_received_is_not_raised_again),
        TEST(a_handler_put_over_ours_is_left_alone),
        TEST(children_that_nobody_waits_for_stay_so),
        TEST(a_subscription_to_children_takes_none_away),
        TEST(errno_survives_the_handler),
        TEST(a_stop_and_a_subscription_both_get_it),
        TEST(of_two_stops_the_first_is_told),
    };
    return RUN_TESTS(tests);
}
