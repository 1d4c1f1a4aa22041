/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/clock.h, system/random.h, system/cpu.h, system/fence.h. */
#include "conform.h"

#include "base/atomic.h"
#include "system/clock.h"
#include "system/cpu.h"
#include "system/fence.h"
#include "system/random.h"
#include "system/thread.h"

#include <string.h>
#include <time.h>

static void the_clock_never_goes_back(void **state)
{
    int64_t last = blz__clock_ns();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        int64_t now = blz__clock_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void read_after(void *arg)
{
    *(int64_t *)arg = blz__clock_ns();
}

static void the_clock_is_the_same_on_every_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        int64_t before = blz__clock_ns(), other = 0;
        blz__thread thread;

        assert_int_equal(blz__thread_start(&thread, read_after, &other, 0, NULL), 0);
        blz__thread_join(thread);
        assert_true(before <= other && other <= blz__clock_ns());
    }
}

static void the_clock_runs_in_nanoseconds(void **state)
{
    struct timespec a, b;
    int64_t before, after, least, most;

    (void)state;
    before = blz__clock_ns();
    timespec_get(&a, TIME_UTC);
    do
        timespec_get(&b, TIME_UTC);
    while ((b.tv_sec - a.tv_sec) * BLZ_SEC + (b.tv_nsec - a.tv_nsec) < 20 * BLZ_MSEC);
    after = blz__clock_ns();
    least = (b.tv_sec - a.tv_sec) * BLZ_SEC + (b.tv_nsec - a.tv_nsec);
    most = after - before;
    assert_true(most >= least - least / 10); /* the machine's clock may be being adjusted */
}

static void the_wall_clock_is_the_c_librarys(void **state)
{
    int64_t before = time(NULL), now = blz__clock_wall_ns();

    (void)state;
    assert_true(now / BLZ_SEC >= before - 1 && now / BLZ_SEC <= time(NULL) + 1);
}

static void random_bytes_fill_the_whole_buffer_and_no_more(void **state)
{
    unsigned char buf[4096 + 16];
    int zeros = 0;

    (void)state;
    memset(buf, 0, sizeof buf);
    assert_int_equal(blz__random_bytes(buf, 4096), 0);
    for (int i = 0; i < 4096; i++)
        zeros += buf[i] == 0;
    assert_true(zeros < 64); /* 16 are expected */
    for (int i = 4096; i < 4096 + 16; i++)
        assert_int_equal(buf[i], 0);
    assert_int_equal(blz__random_bytes(buf, 0), 0);
}

static void random_bytes_differ_from_call_to_call(void **state)
{
    unsigned char a[16], b[16];

    (void)state;
    assert_int_equal(blz__random_bytes(a, sizeof a), 0);
    assert_int_equal(blz__random_bytes(b, sizeof b), 0);
    assert_memory_not_equal(a, b, sizeof a);
}

static void seeds_differ_from_call_to_call(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(blz__random_seed() != blz__random_seed());
}

static void there_is_a_cpu(void **state)
{
    (void)state;
    assert_true(blz__cpu_count() >= 1);
}

/* Dekker: with the light fence on one side and the heavy one on the other, not both read 0. */
static struct {
    uint32_t light, heavy, seen_by_light, round, done;
} litmus;

enum { ROUNDS = 3000 };

static void light_side(void *arg)
{
    (void)arg;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (blz__load(&litmus.round, ACQUIRE) != round)
            blz__thread_yield();
        blz__store(&litmus.light, 1u, RELAXED);
        __asm__ __volatile__("" ::: "memory"); /* the light fence */
        litmus.seen_by_light = blz__load(&litmus.heavy, RELAXED);
        blz__store(&litmus.done, round, RELEASE);
    }
}

static void a_heavy_and_a_light_fence_order_two_threads(void **state)
{
    blz__thread thread;

    (void)state;
    if (!blz__fence_asymmetric_init())
        skip();
    assert_int_equal(blz__thread_start(&thread, light_side, NULL, 0, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint32_t seen;

        blz__store(&litmus.light, 0u, RELAXED);
        blz__store(&litmus.heavy, 0u, RELAXED);
        blz__store(&litmus.round, round, RELEASE);
        blz__store(&litmus.heavy, 1u, RELAXED);
        blz__fence_heavy();
        seen = blz__load(&litmus.light, RELAXED);
        while (blz__load(&litmus.done, ACQUIRE) != round)
            blz__thread_yield();
        assert_true(seen || litmus.seen_by_light);
    }
    blz__thread_join(thread);
}

static void asking_for_fences_again_gives_the_same_answer(void **state)
{
    bool works = blz__fence_asymmetric_init();

    (void)state;
    assert_int_equal(blz__fence_asymmetric_init(), works);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_clock_never_goes_back),
        TEST(the_clock_is_the_same_on_every_thread),
        TEST(the_clock_runs_in_nanoseconds),
        TEST(the_wall_clock_is_the_c_librarys),
        TEST(random_bytes_fill_the_whole_buffer_and_no_more),
        TEST(random_bytes_differ_from_call_to_call),
        TEST(seeds_differ_from_call_to_call),
        TEST(there_is_a_cpu),
        TEST(a_heavy_and_a_light_fence_order_two_threads),
        TEST(asking_for_fences_again_gives_the_same_answer),
    };

    return RUN_TESTS(tests);
}
