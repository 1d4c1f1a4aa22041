/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscriptions when a call of the system fails, each in its turn: an error, and everything as it
 * was, for those who have subscribed before, too.
 */
#include "harness.h"

#include "faulty.h"

#include <sched.h>
#include <signal.h>

static int calls;

static void count_call(int signal)
{
    (void)signal;
    calls++;
}

static bool is_own(int number)
{
    struct sigaction now;

    check(sigaction(number, NULL, &now) == 0);
    return now.sa_handler == count_call;
}

static void begin(void)
{
    calls = 0;
    signal(SIGINT, count_call);
    signal(SIGTERM, count_call);
    signal(SIGUSR1, count_call);
}

static void everything_is_as_before(void)
{
    calls = 0;
    assert_true(is_own(SIGINT) && is_own(SIGTERM) && is_own(SIGUSR1));
    raise(SIGINT);
    raise(SIGTERM);
    raise(SIGUSR1);
    assert_int_equal(calls, 3);
}

/* The nth such call fails. False: there was none. */
static bool opening_a_subscription_fails(enum faulty call, int n, int error)
{
    blz_signal sub;
    int rc;

    fail_call(call, n, false, error);
    rc = blz_signal_open(&sub, SIGUSR1);
    if (!stop_failing(call)) {
        assert_int_equal(rc, 0);
        blz_signal_close(&sub);
        return false;
    }
    assert_int_equal(rc, -error);
    assert_int_equal(blz_signal_try_recv(&sub, NULL), -EBADF);
    everything_is_as_before();
    return true;
}

static bool opening_a_stop_fails(enum faulty call, int n, int error)
{
    blz_stop stop;
    int rc;

    fail_call(call, n, false, error);
    rc = blz_stop_open(&stop);
    if (!stop_failing(call)) {
        assert_int_equal(rc, 0);
        blz_stop_close(&stop);
        return false;
    }
    assert_int_equal(rc, -error);
    assert_int_equal(blz_stop_received(&stop), -EBADF);
    everything_is_as_before();
    return true;
}

static const struct {
    enum faulty call;
    int error;
} faults[] = {{FAULTY_SIGNAL_CATCH, EINVAL},
              {FAULTY_THREAD_START, EAGAIN},
              {FAULTY_THREAD_START, ENOMEM}};

enum { NR_FAULTS = sizeof faults / sizeof faults[0] };

static void each_call_that_fails_is_told(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < NR_FAULTS; i++) {
        int subs = 0, stops = 0;
        while (opening_a_subscription_fails(faults[i].call, subs + 1, faults[i].error))
            subs++;
        while (opening_a_stop_fails(faults[i].call, stops + 1, faults[i].error))
            stops++;
        assert_true(subs >= 1 && stops >= 1);
        everything_is_as_before();
    }
}

static void those_who_have_subscribed_notice_nothing(void **state)
{
    blz_signal sub, more;
    blz_stop stop;

    (void)state;
    begin();
    assert_int_equal(blz_signal_open(&sub, SIGINT), 0);
    fail_call(FAULTY_SIGNAL_CATCH, 1, false, EINVAL); /* of SIGTERM: SIGINT is caught already */
    assert_int_equal(blz_stop_open(&stop), -EINVAL);
    assert_true(stop_failing(FAULTY_SIGNAL_CATCH));
    assert_true(!is_own(SIGINT) && is_own(SIGTERM));
    raise(SIGINT);
    assert_int_equal(blz_signal_try_recv(&sub, NULL), 1);
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN); /* there is a herald */
    assert_int_equal(blz_signal_open(&more, SIGUSR1), 0);
    assert_false(stop_failing(FAULTY_THREAD_START));
    raise(SIGUSR1);
    assert_int_equal(blz_signal_wait(&more, NULL), 1);
    blz_signal_close(&more);
    blz_signal_close(&sub);
    everything_is_as_before();
}

static void on_the_way(int signal)
{
    (void)signal;
    calls++;
}

static void a_handler_of_its_own_is_left_when_restoring_fails(void **state)
{
    blz_signal sub;

    (void)state;
    begin();
    assert_int_equal(blz_signal_open(&sub, SIGUSR1), 0);
    signal(SIGUSR1, on_the_way);
    fail_call(KERNEL_SIGACTION, 1, false, EINVAL);
    blz_signal_close(&sub); /* cannot even look */
    assert_true(stop_failing(KERNEL_SIGACTION));
    raise(SIGUSR1);
    assert_int_equal(calls, 1);
}

static struct {
    uint32_t go, done; /* atomic */
    blz_signal sub;
} late;

static void *subscribe_late(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&late.go, __ATOMIC_ACQUIRE))
        sched_yield();
    check(blz_signal_open(&late.sub, SIGUSR1) == 0);
    __atomic_store_n(&late.done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* In the handler. */
static void let_subscribe(void)
{
    __atomic_store_n(&late.go, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&late.done, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* The handler has found nobody, and somebody subscribes before it has passed the signal on. */
static void who_subscribes_while_a_signal_is_passed_on_gets_it(void **state)
{
    struct sigaction ours;
    pthread_t thread;
    blz_signal sub;

    (void)state;
    begin();
    assert_int_equal(blz_signal_open(&sub, SIGUSR1), 0);
    assert_int_equal(sigaction(SIGUSR1, NULL, &ours), 0);
    blz_signal_close(&sub);
    assert_int_equal(sigaction(SIGUSR1, &ours, NULL), 0); /* as if it were still running */
    thread = start_thread(subscribe_late, NULL);
    before_call[KERNEL_SIGACTION] = let_subscribe;
    raise(SIGUSR1);
    join_thread(thread);
    assert_int_equal(blz_signal_try_recv(&late.sub, NULL), 1);
    raise(SIGUSR1);
    assert_int_equal(blz_signal_try_recv(&late.sub, NULL), 1);
    assert_int_equal(calls, 0);
    blz_signal_close(&late.sub);
    everything_is_as_before();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_call_that_fails_is_told),
        TEST(those_who_have_subscribed_notice_nothing),
        TEST(a_handler_of_its_own_is_left_when_restoring_fails),
        TEST(who_subscribes_while_a_signal_is_passed_on_gets_it),
    };
    return RUN_TESTS(tests);
}
