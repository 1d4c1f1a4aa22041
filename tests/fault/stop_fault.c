/* SPDX-License-Identifier: Apache-2.0 */
/* Stop signals when there is no memory and no thread: an error, and everything as it was. */
#include "harness.h"

#include "faulty.h"

#include <signal.h>

struct waits {
    BLZ_FRAME;
    int64_t rc;
    blz_stop_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_stop_signal(&self->op));
    BLZ_END(self->rc);
}

static int calls;

static void count_call(int signal)
{
    (void)signal;
    calls++;
}

static bool is_own(int number)
{
    struct sigaction now;

    sigaction(number, NULL, &now);
    return now.sa_handler == count_call;
}

static void opening_fails_with(int error)
{
    blz_stop stop;

    assert_int_equal(blz_stop_open(&stop), -error);
    assert_int_equal(blz_stop_received(&stop), -EBADF);
    blz_stop_close(&stop);
    assert_true(is_own(SIGINT) && is_own(SIGTERM));
    raise(SIGINT);
    assert_int_equal(calls, 1);
    calls = 0;
}

static void opening_works(void)
{
    blz_stop stop;

    assert_int_equal(blz_stop_open(&stop), 0);
    assert_false(is_own(SIGINT) || is_own(SIGTERM));
    blz_stop_close(&stop);
    assert_true(is_own(SIGINT) && is_own(SIGTERM));
}

static void begin(void)
{
    calls = 0;
    signal(SIGINT, count_call);
    signal(SIGTERM, count_call);
}

/* The page is asked for once in the life of a process: these come first. */
static void opening_without_a_page(void **state)
{
    (void)state;
    begin();
    fail_call(FAULTY_FORK_WORD_NEW, 1, true, ENOMEM);
    opening_fails_with(ENOMEM);
    assert_true(stop_failing(FAULTY_FORK_WORD_NEW));
    opening_works();
}

static void opening_without_a_thread(void **state)
{
    (void)state;
    begin();
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    opening_fails_with(EAGAIN);
    assert_true(stop_failing(FAULTY_THREAD_START));
    opening_works();
    fail_call(FAULTY_THREAD_START, 1, true, ENOMEM);
    opening_fails_with(ENOMEM);
    assert_true(stop_failing(FAULTY_THREAD_START));
    opening_works();
}

static void waiting_without_a_thread(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits), 0);
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    turn_all(rt);
    assert_true(stop_failing(FAULTY_THREAD_START));
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -EAGAIN);
    assert_true(is_own(SIGINT) && is_own(SIGTERM));
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opening_without_a_page),
        TEST(opening_without_a_thread),
        TEST(waiting_without_a_thread),
    };
    return RUN_TESTS(tests);
}
