/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/futex.h. */
#include "conform.h"

#include "base/atomic.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/memory.h"
#include "system/thread.h"

enum { SLEEPERS = 4 };

struct sleeper {
    uint32_t word;
    uint32_t nr_up; /* threads that have seen the word change */
};

static void sleep_on_word(void *arg)
{
    struct sleeper *s = arg;

    while (blz__load(&s->word, ACQUIRE) == 0)
        blz__futex_wait(&s->word, 0);
    blz__fetch_add(&s->nr_up, 1u, RELAXED);
}

static void a_wait_returns_at_once_if_the_word_has_another_value(void **state)
{
    uint32_t word = 7;

    (void)state;
    assert_true(blz__futex_wait_until(&word, 6, 0));
    assert_true(blz__futex_wait_until(&word, 6, INT64_MAX));
    blz__futex_wait(&word, 6);
}

static void a_wake_after_a_store_is_never_lost(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct sleeper s = {0, 0};
        blz__thread thread;

        assert_int_equal(blz__thread_start(&thread, sleep_on_word, &s, 0, NULL), 0);
        for (int i = 0; i < round % 7; i++)
            blz__thread_yield();
        blz__store(&s.word, 1u, RELEASE);
        blz__futex_wake(&s.word, 1);
        blz__thread_join(thread);
        assert_int_equal(s.nr_up, 1);
    }
}

static void a_wake_reaches_as_many_threads_as_it_names(void **state)
{
    struct sleeper s = {0, 0};
    blz__thread threads[SLEEPERS];

    (void)state;
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(blz__thread_start(&threads[i], sleep_on_word, &s, 0, NULL), 0);
    blz__store(&s.word, 1u, RELEASE);
    blz__futex_wake(&s.word, SLEEPERS);
    for (int i = 0; i < SLEEPERS; i++)
        blz__thread_join(threads[i]);
    assert_int_equal(s.nr_up, SLEEPERS);
}

static void wakes_of_one_thread_each_reach_all_in_the_end(void **state)
{
    struct sleeper s = {0, 0};
    blz__thread threads[SLEEPERS];

    (void)state;
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(blz__thread_start(&threads[i], sleep_on_word, &s, 0, NULL), 0);
    blz__store(&s.word, 1u, RELEASE);
    for (int i = 0; i < SLEEPERS; i++)
        blz__futex_wake(&s.word, 1);
    for (int i = 0; i < SLEEPERS; i++)
        blz__thread_join(threads[i]);
    assert_int_equal(s.nr_up, SLEEPERS);
}

static void a_wait_with_a_deadline_says_false_once_it_has_passed_and_not_earlier(void **state)
{
    uint32_t word = 0;
    int64_t deadline_ns = blz__clock_ns() + 2 * BLZ_MSEC;

    (void)state;
    while (blz__futex_wait_until(&word, 0, deadline_ns))
        ; /* early, for no reason: allowed */
    assert_true(blz__clock_ns() >= deadline_ns);
}

static void a_deadline_in_the_past_says_false_without_sleeping(void **state)
{
    uint32_t word = 0;

    (void)state;
    while (blz__futex_wait_until(&word, 0, 0))
        ;
    while (blz__futex_wait_until(&word, 0, -1))
        ;
    while (blz__futex_wait_until(&word, 0, INT64_MIN))
        ;
}

static void a_deadline_that_never_comes_waits_for_the_wake(void **state)
{
    struct sleeper s = {0, 0};
    blz__thread thread;

    (void)state;
    assert_int_equal(blz__thread_start(&thread, sleep_on_word, &s, 0, NULL), 0);
    blz__store(&s.word, 1u, RELEASE);
    blz__futex_wake(&s.word, 1);
    while (blz__load(&s.nr_up, ACQUIRE) == 0)
        assert_true(blz__futex_wait_until(&s.nr_up, 0, blz__clock_ns() + BLZ_MSEC) ||
                    blz__load(&s.nr_up, RELAXED) <= 1);
    blz__thread_join(thread);
}

static void a_wake_of_memory_that_is_gone_is_harmless(void **state)
{
    size_t size = 1 << 16;
    uint32_t *word = blz__pages_map(size);

    (void)state;
    assert_non_null(word);
    blz__pages_unmap(word, size);
    blz__futex_wake(word, 1);
}

static void a_wake_that_nobody_waits_for_is_not_remembered(void **state)
{
    uint32_t word = 0;
    int64_t deadline_ns;

    (void)state;
    blz__futex_wake(&word, 1);
    deadline_ns = blz__clock_ns() + BLZ_MSEC;
    while (blz__futex_wait_until(&word, 0, deadline_ns))
        ;
    assert_true(blz__clock_ns() >= deadline_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_returns_at_once_if_the_word_has_another_value),
        TEST(a_wake_after_a_store_is_never_lost),
        TEST(a_wake_reaches_as_many_threads_as_it_names),
        TEST(wakes_of_one_thread_each_reach_all_in_the_end),
        TEST(a_wait_with_a_deadline_says_false_once_it_has_passed_and_not_earlier),
        TEST(a_deadline_in_the_past_says_false_without_sleeping),
        TEST(a_deadline_that_never_comes_waits_for_the_wake),
        TEST(a_wake_of_memory_that_is_gone_is_harmless),
        TEST(a_wake_that_nobody_waits_for_is_not_remembered),
    };

    return RUN_TESTS(tests);
}
