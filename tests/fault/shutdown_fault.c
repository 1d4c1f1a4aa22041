/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdowns when memory, handlers or threads fail, each in turn: an error, and nothing is left. */
#include "harness.h"

#include "faulty.h"

#include <signal.h>
#include <string.h>

static void on_own(int signal)
{
    (void)signal;
}

static bool is_own(int number)
{
    struct sigaction now;

    check(sigaction(number, NULL, &now) == 0);
    return now.sa_handler == on_own;
}

static void begin(void)
{
    signal(SIGINT, on_own);
    signal(SIGTERM, on_own);
}

static int try_new(void)
{
    blz_shutdown *s;
    int rc = blz_shutdown_new(&s, &(blz_shutdown_options){.allocator = test_memory()});

    if (rc < 0) {
        assert_null(s);
        assert_true(is_own(SIGINT) && is_own(SIGTERM));
        assert_int_equal(memory_blocks(the_memory()), 0);
    }
    blz_shutdown_free(s);
    return rc;
}

static void making_one_without_memory(void **state)
{
    int n = 0;

    (void)state;
    begin();
    do {
        memory_fail_at(the_memory(), ++n, false);
        assert_true(try_new() == (the_memory()->failed ? -ENOMEM : 0));
    } while (the_memory()->failed);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(n, 1 + 4 + 1); /* itself, and a token for each phase */
}

static void making_one_without_signals(void **state)
{
    static const struct {
        enum faulty call;
        int error;
    } faults[] = {{FAULTY_SIGNAL_CATCH, EINVAL},
                  {FAULTY_THREAD_START, EAGAIN},
                  {FAULTY_THREAD_START, ENOMEM}};

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        int n = 0, rc;
        do {
            fail_call(faults[i].call, ++n, false, faults[i].error);
            rc = try_new();
        } while (stop_failing(faults[i].call) && rc == -faults[i].error);
        /* Each of the two signals is caught by one call. */
        assert_int_equal(rc, 0);
        assert_true(n >= (faults[i].call == FAULTY_SIGNAL_CATCH ? 3 : 2));
        signal(SIGINT, on_own);
        signal(SIGTERM, on_own);
    }
}

/* ---- a report without memory ---- */

static struct {
    int nr_lines;
    bool told;
} said;

/* The first line comes before the tasks are written down. */
static void note_line(const char *line, void *arg)
{
    (void)arg;
    if (said.nr_lines++ == 0)
        memory_fail_at(the_memory(), 1, true);
    if (strstr(line, blz_strerror(-ENOMEM)))
        said.told = true;
}

struct runs {
    BLZ_FRAME;
    blz_shutdown *shutdown;
    int64_t rc;
    blz_shutdown_op op;
};

BLZ_ASYNC(runs)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_shutdown_run(&self->op, self->shutdown));
    memory_fail_at(the_memory(), 0, false);
    BLZ_END(self->rc);
}

static void a_report_without_memory_says_so(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_guard stuck;
    blz_handle handle;
    blz_shutdown *s;

    (void)state;
    said.nr_lines = 0;
    assert_int_equal(blz_shutdown_new(&s, &(blz_shutdown_options){.no_signals = true,
                                                                  .write = note_line,
                                                                  .allocator = test_memory()}),
                     0);
    assert_int_equal(blz_guard_work(&stuck, s), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, runs, .shutdown = s), 0);
    blz_shutdown_begin(s);
    turn_all(rt);
    for (int i = 0; i < 3; i++) { /* cancelling, forcing, ended */
        blz_shutdown_hurry(s);
        turn_all(rt);
    }
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ETIMEDOUT);
    assert_int_equal(said.nr_lines, 6); /* a head and an error for each phase that was late */
    assert_true(said.told);
    blz_guard_leave(&stuck);
    blz_shutdown_free(s);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(making_one_without_memory),
        TEST(making_one_without_signals),
        TEST(a_report_without_memory_says_so),
    };
    return RUN_TESTS(tests);
}
