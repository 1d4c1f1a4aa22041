/* SPDX-License-Identifier: Apache-2.0 */
/* The ground floor: errors, version, lock, clock, pages, random numbers. */
#include "harness.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/rng.h"
#include "system/clock.h"
#include "system/cpu.h"
#include "system/futex.h"
#include "system/memory.h"
#include "system/random.h"

#include <sched.h>
#include <string.h>

/* ---- errors and version ---- */

static void every_error_has_a_text(void **state)
{
    (void)state;
    assert_string_equal(blz_strerror(0), "success");
    assert_string_equal(blz_strerror(17), "success");
    assert_string_equal(blz_strerror(-ENOENT), "No such file or directory");
    assert_string_equal(blz_strerror(-ECONNREFUSED), "Connection refused");
    for (int error = -5000; error < 0; error++)
        assert_true(strlen(blz_strerror(error)) > 0);
    assert_non_null(blz_strerror(INT32_MIN));
    assert_non_null(blz_strerror(INT32_MAX));
    assert_string_equal(blz_strerror(INT64_MIN), "unknown error");
    assert_string_equal(blz_strerror(-(INT64_C(1) << 32) - ENOENT), "unknown error");
    assert_string_equal(blz_strerror(INT64_MAX), "success");
}

/* As far as the system's would say something else: of connections, of devices, of files. */
static void errors_of_the_library_have_texts_of_their_own(void **state)
{
    static const struct {
        int error;
        const char *text;
    } texts[] = {
        {-EAGAIN, "Not ready now, try again"},
        {-EBADF, "Bad handle or descriptor: it is closed, or was never open"},
        {-EBUSY, "Busy: in use by another operation"},
        {-ECANCELED, "Operation canceled"},
        {-EDEADLK, "Would wait for itself"},
        {-ENODATA, "No data, or less than was asked for"},
        {-ENONET, "No such host"},
        {-ENOTSUP, "Not supported here"},
        {-ENXIO, "No runtime on this thread, or no such device or reader"},
        {-EOVERFLOW, "Too many, or too large a value"},
        {-EOWNERDEAD, "Belongs to the parent process"},
        {-EPIPE, "Closed at the other end"},
        {-EPROTONOSUPPORT, "Unknown service or protocol"},
        {-EREMOTEIO, "Failure of the name server, or of another machine"},
        {-ESHUTDOWN, "Shutting down"},
        {-ETIMEDOUT, "Timed out"},
        {-EXDEV, "Belongs to another runtime, or to another file system"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(blz_strerror(texts[i].error), texts[i].text);
}

static void the_library_is_of_the_version_of_its_headers(void **state)
{
    (void)state;
    assert_string_equal(blz_version(), BLZ_VERSION_STRING);
    assert_true(BLZ_VERSION_AT_LEAST(BLZ_VERSION_MAJOR, BLZ_VERSION_MINOR, BLZ_VERSION_PATCH));
    assert_false(BLZ_VERSION_AT_LEAST(BLZ_VERSION_MAJOR, BLZ_VERSION_MINOR, BLZ_VERSION_PATCH + 1));
    assert_false(BLZ_VERSION_AT_LEAST(BLZ_VERSION_MAJOR + 1, 0, 0));
}

/* ---- lock ---- */

enum { LOCKERS = 4, TIMES = 20000 };

static struct {
    blz__lock lock;
    int64_t value; /* plain: the lock is what orders it */
} guarded;

static void *lock_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        if (i % 16 != 0 || !blz__lock_try(&guarded.lock))
            blz__lock_acquire(&guarded.lock);
        guarded.value++;
        if (i % 1000 == 0)
            sched_yield(); /* so that others have to sleep */
        blz__lock_release(&guarded.lock);
    }
    return NULL;
}

static void one_thread_at_a_time_has_a_lock(void **state)
{
    pthread_t threads[LOCKERS];

    (void)state;
    memset(&guarded, 0, sizeof guarded);
    for (int i = 0; i < LOCKERS; i++)
        threads[i] = start_thread(lock_often, NULL);
    for (int i = 0; i < LOCKERS; i++)
        join_thread(threads[i]);
    assert_int_equal(guarded.value, LOCKERS * TIMES);
    assert_int_equal(guarded.lock.word, 0);
    assert_true(blz__lock_try(&guarded.lock));
    assert_false(blz__lock_try(&guarded.lock));
    blz__lock_release(&guarded.lock);
}

/* ---- clock ---- */

/* We may lose the CPU between any two reads, so time is measured from both sides. */
static void the_cheap_clock_runs_like_the_systems(void **state)
{
    int64_t before[2], after[2];
    blz__clock clock;
    uint64_t ticks;
    double ns;

    (void)state;
    blz__clock_init(&clock);
    before[0] = blz__clock_ns();
    ticks = blz__clock_ticks(&clock);
    after[0] = blz__clock_ns();
    do
        before[1] = blz__clock_ns();
    while (before[1] - after[0] < 30 * BLZ_MSEC);
    ticks = blz__clock_ticks(&clock) - ticks;
    after[1] = blz__clock_ns();
    ns = (double)ticks * blz__clock_ns_per_tick(&clock);
    assert_true(ns > 0.9 * (double)(before[1] - after[0]));
    assert_true(ns < 1.1 * (double)(after[1] - before[0]));
    assert_true(clock.ns_per_tick > 0);
}

static void a_wait_with_a_deadline_ends_no_earlier(void **state)
{
    uint32_t word = 0;
    int64_t deadline = blz__clock_ns() + 5 * BLZ_MSEC;

    (void)state;
    while (blz__futex_wait_until(&word, 0, deadline))
        ;
    assert_true(blz__clock_ns() >= deadline);
    assert_true(blz__futex_wait_until(&word, 1, deadline)); /* not what it was to be: no wait */
}

/* ---- memory of the system ---- */

static void pages_are_aligned_to_their_size(void **state)
{
    const size_t size = 2 * 1024 * 1024;

    (void)state;
    for (int prefault = 0; prefault < 2; prefault++) {
        char *pages = blz__pages_map(size);
        assert_non_null(pages);
        if (prefault)
            blz__pages_prefault(pages, size);
        assert_int_equal((uintptr_t)pages % size, 0);
        memset(pages, 1, size);
        blz__pages_unmap(pages, size);
    }
    assert_null(blz__pages_map((size_t)1 << 62));
}

static void there_is_at_least_one_cpu(void **state)
{
    (void)state;
    assert_true(blz__cpu_count() >= 1);
}

/* ---- random numbers ---- */

static void random_numbers_are_below_their_bound_and_reach_all_values(void **state)
{
    bool seen[10] = {false};
    blz__rng rng;

    (void)state;
    blz__rng_init(&rng, 0); /* not a state that stays 0 */
    for (int i = 0; i < 1000; i++) {
        uint32_t value = blz__rng_below(&rng, 10);
        assert_true(value < 10);
        seen[value] = true;
    }
    for (int i = 0; i < 10; i++)
        assert_true(seen[i]);
    assert_int_equal(blz__rng_below(&rng, 1), 0);
    assert_true(blz__random_seed() != blz__random_seed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_error_has_a_text),
        TEST(errors_of_the_library_have_texts_of_their_own),
        TEST(the_library_is_of_the_version_of_its_headers),
        TEST(one_thread_at_a_time_has_a_lock),
        TEST(the_cheap_clock_runs_like_the_systems),
        TEST(a_wait_with_a_deadline_ends_no_earlier),
        TEST(pages_are_aligned_to_their_size),
        TEST(there_is_at_least_one_cpu),
        TEST(random_numbers_are_below_their_bound_and_reach_all_values),
    };
    return RUN_TESTS(tests);
}
