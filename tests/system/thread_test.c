/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/thread.h. */
#include "conform.h"

#include "base/atomic.h"
#include "system/thread.h"

#include <signal.h>
#include <string.h>

struct report {
    blz__thread self;
    uint64_t id;
    uintptr_t low, size, local;
    char name[32];
    bool ran, blocks_signals;
};

static bool all_signals_are_blocked(void)
{
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGINT) &&
           sigismember(&blocked, SIGUSR1) && sigismember(&blocked, SIGCHLD);
}

static void report_self(void *arg)
{
    struct report *r = arg;

    r->self = blz__thread_self();
    r->id = blz__thread_id();
    r->local =
        (uintptr_t)__builtin_frame_address(0); /* not the address of a local: ASan moves it */
    blz__thread_stack(&r->low, &r->size);
    blz__thread_name(r->name, sizeof r->name);
    r->blocks_signals = all_signals_are_blocked();
    blz__store(&r->ran, true, RELEASE);
}

static struct report run_thread(size_t stack_size, const char *name)
{
    struct report r = {0};
    blz__thread thread;

    assert_int_equal(blz__thread_start(&thread, report_self, &r, stack_size, name), 0);
    blz__thread_join(thread);
    assert_true(r.ran);
    return r;
}

static void a_join_waits_for_the_end_of_the_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        run_thread(0, NULL);
}

static void a_thread_starts_with_all_signals_blocked(void **state)
{
    (void)state;
    assert_true(run_thread(0, NULL).blocks_signals);
    assert_false(all_signals_are_blocked()); /* ours stay as they were */
}

static void a_thread_has_the_name_that_it_was_given(void **state)
{
    (void)state;
    assert_string_equal(run_thread(0, "blitz-test").name, "blitz-test");
}

static void a_long_name_is_cut_after_fifteen_bytes_or_later(void **state)
{
    const char *name = "a-name-of-more-than-fifteen-bytes";
    struct report r;

    (void)state;
    r = run_thread(0, name);
    assert_memory_equal(r.name, name, 15);
    assert_memory_equal(r.name, name, strlen(r.name));
}

static void a_thread_may_name_itself(void **state)
{
    char before[32], name[32];

    (void)state;
    blz__thread_name(before, sizeof before);
    blz__thread_set_name("renamed");
    blz__thread_name(name, sizeof name);
    assert_string_equal(name, "renamed");
    blz__thread_set_name(before);
}

static void a_thread_knows_where_its_stack_is(void **state)
{
    struct report r = run_thread(256 << 10, NULL);

    (void)state;
    if (r.size == 0) /* unknown: allowed */
        skip();
    assert_true(r.low <= r.local && r.local < r.low + r.size);
}

static void a_stack_has_at_least_the_size_that_was_asked_for(void **state)
{
    struct report r = run_thread(1 << 20, NULL);

    (void)state;
    if (r.size == 0)
        skip();
    assert_true(r.size >= (1 << 20) - 65536); /* a guard, and what the C library keeps there */
}

static void the_first_thread_knows_its_stack_too(void **state)
{
    struct report r = {0};

    (void)state;
    report_self(&r);
    if (r.size == 0)
        skip();
    assert_true(r.low <= r.local && r.local < r.low + r.size);
}

static void live_threads_have_different_numbers_and_none_is_zero(void **state)
{
    struct report r = run_thread(0, NULL);

    (void)state;
    assert_true(r.id != 0);
    assert_true(blz__thread_id() != 0);
    assert_true(r.id != blz__thread_id());
    assert_true(blz__thread_id() == blz__thread_id());
}

static void a_thread_is_joined_by_what_it_says_it_is(void **state)
{
    struct report r = {0};
    blz__thread thread;

    (void)state;
    assert_int_equal(blz__thread_start(&thread, report_self, &r, 0, NULL), 0);
    while (!blz__load(&r.ran, ACQUIRE))
        blz__thread_yield();
    blz__thread_join(r.self);
}

static void a_stack_size_that_no_thread_can_have_is_an_error(void **state)
{
    struct report r = {0};
    blz__thread thread;

    (void)state;
    assert_true(blz__thread_start(&thread, report_self, &r, SIZE_MAX / 4096 * 4096, NULL) < 0);
    assert_false(r.ran);
}

static void spread_leaves_the_thread_where_it_can_run(void **state)
{
    (void)state;
    for (unsigned number = 0; number < 64; number++)
        blz__thread_spread(number);
    run_thread(0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_waits_for_the_end_of_the_thread),
        TEST(a_thread_starts_with_all_signals_blocked),
        TEST(a_thread_has_the_name_that_it_was_given),
        TEST(a_long_name_is_cut_after_fifteen_bytes_or_later),
        TEST(a_thread_may_name_itself),
        TEST(a_thread_knows_where_its_stack_is),
        TEST(a_stack_has_at_least_the_size_that_was_asked_for),
        TEST(the_first_thread_knows_its_stack_too),
        TEST(live_threads_have_different_numbers_and_none_is_zero),
        TEST(a_thread_is_joined_by_what_it_says_it_is),
        TEST(a_stack_size_that_no_thread_can_have_is_an_error),
        TEST(spread_leaves_the_thread_where_it_can_run),
    };

    return RUN_TESTS(tests);
}
