/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel as a data structure: levels and their boundaries, strange deadlines, pauses of
 * any length. Random operations are in wheel_random_test.c.
 */
#include "harness.h"
#include "time/wheel.h"
#include "system/fence.h"

#define MS BLZ_MSEC

static blz__wheel wheel;

static void never_called(void *arg)
{
    (void)arg;
    fail();
}

/* The timer's number is its callback's argument: that is how it is recognised when it fires. */
static void init_numbered(blz_timer *timer, size_t number)
{
    blz_timer_init(timer, never_called, (void *)(uintptr_t)number);
}

static size_t number_of(const wheel_fired *fired)
{
    assert_true(fired->calls);
    return (size_t)(uintptr_t)fired->target.call.arg;
}

static size_t collect(int64_t now_ns)
{
    wheel_fired fired[8];
    size_t n = blz__wheel_collect(&wheel, now_ns, fired, 8, true);

    assert_null(blz__wheel_check(&wheel));
    return n;
}

/* ---- rounding ---- */

static void a_timer_fires_at_its_tick_and_not_before(void **state)
{
    blz_timer timer;

    (void)state;
    blz__wheel_init(&wheel, 5 * MS, blz__fence_asymmetric_init());
    init_numbered(&timer, 0);
    blz__wheel_insert(&wheel, &timer, 10 * MS, true);
    assert_int_equal(blz__wheel_next(&wheel, true), 10 * MS);
    assert_int_equal(collect(10 * MS - 1), 0);
    assert_true(timer_is_armed(&timer));
    assert_int_equal(collect(10 * MS), 1);
    assert_false(timer_is_armed(&timer));
    assert_int_equal(blz__wheel_next(&wheel, true), INT64_MAX);
}

static void a_deadline_within_a_tick_rounds_up(void **state)
{
    blz_timer timer;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    init_numbered(&timer, 0);
    blz__wheel_insert(&wheel, &timer, 10 * MS + 1, true);
    assert_int_equal(collect(11 * MS - 1), 0);
    assert_int_equal(collect(11 * MS), 1);
}

/* ---- levels ---- */

/* One tick before, at, and after each power of 64, from many starting points. */
static void every_boundary_between_levels_is_exact(void **state)
{
    const uint64_t starts[] = {0, 1, 62, 63, 64, 65, 4095, 4096, 262143, 1073741823, 1ull << 36};

    (void)state;
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
        for (unsigned level = 0; level <= 7; level++)
            for (int64_t off = -2; off <= 2; off++) {
                int64_t delay = (int64_t)(1ull << (6 * level)) + off;
                int64_t start = (int64_t)starts[s] * MS, due = start + delay * MS;
                blz_timer timer;

                if (delay < 0)
                    continue;
                blz__wheel_init(&wheel, start, blz__fence_asymmetric_init());
                init_numbered(&timer, 0);
                blz__wheel_insert(&wheel, &timer, due, true);
                if (delay > 0)
                    assert_int_equal(collect(due - 1), 0);
                assert_int_equal(collect(due), 1);
                assert_int_equal(blz__wheel_next(&wheel, true), INT64_MAX);
            }
}

/* The owner sleeps until the timer is due, not until the slot begins in which it waits. */
static void a_distant_timer_is_waited_for_in_one_go(void **state)
{
    blz_timer timer;

    (void)state;
    for (int64_t delay = 1; delay < BLZ_DAY / MS; delay = delay * 3 + 1) {
        blz__wheel_init(&wheel, 777 * MS, blz__fence_asymmetric_init());
        init_numbered(&timer, 0);
        blz__wheel_insert(&wheel, &timer, (777 + delay) * MS, true);
        assert_int_equal(blz__wheel_next(&wheel, true), (777 + delay) * MS);
        blz__wheel_remove(&timer, true);
    }
}

static void timers_beyond_the_top_level_wait_their_time(void **state)
{
    const int64_t year = 365 * BLZ_DAY, due = 200 * year;
    blz_timer timer, near;
    int64_t now = 0, steps = 0;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    init_numbered(&timer, 0);
    init_numbered(&near, 1);
    blz__wheel_insert(&wheel, &timer, due, true);
    blz__wheel_insert(&wheel, &near, year, true);
    while (timer_is_armed(&timer)) {
        now = blz__wheel_next(&wheel, true);
        collect(now);
        steps++;
        assert_true(timer_is_armed(&near) == (now < year));
        assert_true(timer_is_armed(&timer) == (now < due));
    }
    assert_int_equal(now, due);
    assert_true(steps < 200);
}

/* ---- strange deadlines ---- */

static void past_deadlines_fire_at_the_next_look(void **state)
{
    const int64_t past[] = {INT64_MIN, -1, 0, 1, 99 * MS, 100 * MS};
    blz_timer timers[6];

    (void)state;
    blz__wheel_init(&wheel, 100 * MS, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 6; i++) {
        init_numbered(&timers[i], i);
        blz__wheel_insert(&wheel, &timers[i], past[i], true);
    }
    assert_true(blz__wheel_next(&wheel, true) <= 100 * MS);
    assert_int_equal(collect(100 * MS), 6);
}

static void a_timer_for_never_does_not_wake_anybody(void **state)
{
    blz_timer timer;

    (void)state;
    blz__wheel_init(&wheel, 100 * MS, blz__fence_asymmetric_init());
    init_numbered(&timer, 0);
    blz__wheel_insert(&wheel, &timer, INT64_MAX, true);
    assert_int_equal(blz__wheel_next(&wheel, true), INT64_MAX);
    assert_int_equal(collect(INT64_MAX - 1), 0);
    assert_true(timer_is_armed(&timer));
    assert_int_equal(blz__wheel_reset(&timer, 5 * MS, true), WHEEL_RESET_DONE);
    assert_int_equal(collect(INT64_MAX - 1), 0); /* that tick is over; the next one is never */
    assert_true(blz__wheel_remove(&timer, true));
    assert_false(blz__wheel_remove(&timer, true));
}

static void a_clock_that_goes_backwards_stands_still(void **state)
{
    blz_timer early, late;

    (void)state;
    blz__wheel_init(&wheel, 1000 * MS, blz__fence_asymmetric_init());
    init_numbered(&early, 0);
    init_numbered(&late, 1);
    assert_int_equal(collect(2000 * MS), 0);
    blz__wheel_insert(&wheel, &early, 1500 * MS, true);
    blz__wheel_insert(&wheel, &late, 2500 * MS, true);
    assert_int_equal(collect(10 * MS), 0);
    assert_int_equal(collect(-10 * MS), 0);
    assert_int_equal(collect(2001 * MS), 1);
    assert_false(timer_is_armed(&early));
    assert_int_equal(collect(2500 * MS), 1);
}

/* ---- looks ---- */

static void timers_of_one_tick_fire_in_the_order_of_their_insertion(void **state)
{
    blz_timer timers[100];
    wheel_fired fired[7];
    size_t expected = 0, n;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 100; i++) {
        init_numbered(&timers[i], i);
        blz__wheel_insert(&wheel, &timers[i], 70000 * MS, true); /* from level 2 down */
        if (i == 50)
            collect(65000 * MS);
    }
    do {
        n = blz__wheel_collect(&wheel, 70000 * MS, fired, 7, true);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(number_of(&fired[i]), expected++);
    } while (n == 7);
    assert_int_equal(expected, 100);
}

/* The watchdog fires the wheel of a stuck worker. */
static void another_thread_gets_only_timers_that_wake(void **state)
{
    blz_timer timers[4];
    wheel_fired fired[8];

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 4; i++) {
        init_numbered(&timers[i], i);
        timers[i].calls = i != 2;
        blz__wheel_insert(&wheel, &timers[i], (i < 3 ? 100 : 101) * MS, true);
    }
    assert_int_equal(blz__wheel_collect(&wheel, 101 * MS, fired, 8, false), 1);
    assert_false(fired[0].calls);
    assert_int_equal(blz__wheel_collect(&wheel, 102 * MS, fired, 8, false), 0);
    assert_int_equal(blz__wheel_next(&wheel, true), 100 * MS);
    assert_true(blz__wheel_remove(&timers[1], false));
    assert_int_equal(blz__wheel_collect(&wheel, 102 * MS, fired, 8, true), 2);
    assert_int_equal(number_of(&fired[0]), 0);
    assert_int_equal(number_of(&fired[1]), 3);
    assert_int_equal(blz__wheel_next(&wheel, true), INT64_MAX);
}

static void a_callback_that_waits_for_the_owner_can_be_moved_or_dropped(void **state)
{
    blz_timer timers[2];
    wheel_fired fired[8];

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 2; i++) {
        init_numbered(&timers[i], i);
        blz__wheel_insert(&wheel, &timers[i], MS, true);
    }
    assert_int_equal(blz__wheel_collect(&wheel, MS, fired, 8, false), 0);
    assert_int_equal(blz__wheel_reset(&timers[0], 9 * MS, true), WHEEL_RESET_DONE);
    assert_ptr_equal(blz__wheel_drop(&wheel), &timers[0]);
    assert_ptr_equal(blz__wheel_drop(&wheel), &timers[1]);
    assert_null(blz__wheel_drop(&wheel));
}

/* A callback that arms its timer for "now" must not keep one look going for ever. */
static void a_look_ends_although_its_timers_are_armed_again(void **state)
{
    blz_timer timers[4];
    wheel_fired fired[2];
    size_t n, total = 0;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 4; i++) {
        init_numbered(&timers[i], i);
        blz__wheel_insert(&wheel, &timers[i], 0, true);
    }
    do {
        n = blz__wheel_collect(&wheel, 3 * MS, fired, 2, true);
        for (size_t i = 0; i < n; i++)
            blz__wheel_insert(&wheel, &timers[number_of(&fired[i])], 0, true);
        total += n;
    } while (n == 2 && total < 100);
    assert_int_equal(total, 4);
    assert_int_equal(blz__wheel_next(&wheel, true), 4 * MS);
    assert_int_equal(collect(4 * MS), 4);
}

static void a_long_pause_costs_no_more_than_its_timers(void **state)
{
    blz_timer timer;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    init_numbered(&timer, 0);
    for (int64_t now = 0; now < 290 * 365 * BLZ_DAY; now += 5 * 365 * BLZ_DAY) {
        blz__wheel_insert(&wheel, &timer, now + 1, true);
        assert_int_equal(collect(now + 4 * 365 * BLZ_DAY), 1);
    }
}

static void a_cancelled_timer_leaves_nothing_to_wake_up_for(void **state)
{
    blz_timer timer;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    init_numbered(&timer, 0);
    for (int64_t delay = 1; delay < 1ll << 40; delay *= 2) {
        blz__wheel_insert(&wheel, &timer, delay * MS, true);
        assert_true(blz__wheel_remove(&timer, true));
        assert_int_equal(blz__wheel_next(&wheel, true), INT64_MAX);
        assert_int_equal(blz__wheel_sleep(&wheel), INT64_MAX);
    }
}

/* ---- the sleeping owner ---- */

static void only_an_earlier_timer_wakes_the_owner(void **state)
{
    blz_timer timers[4];

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 4; i++)
        init_numbered(&timers[i], i);
    assert_false(blz__wheel_insert(&wheel, &timers[0], 50 * MS, true)); /* awake */
    assert_int_equal(blz__wheel_sleep(&wheel), 50 * MS);
    assert_false(blz__wheel_insert(&wheel, &timers[1], 60 * MS, true));
    assert_false(blz__wheel_insert(&wheel, &timers[2], 50 * MS, true));
    assert_true(blz__wheel_insert(&wheel, &timers[3], 49 * MS, true));
    assert_int_equal(blz__wheel_reset(&timers[1], 55 * MS, true), WHEEL_RESET_DONE);
    assert_int_equal(blz__wheel_reset(&timers[1], 10 * MS, true), WHEEL_RESET_WAKE);
    assert_int_equal(collect(60 * MS), 4);
    assert_int_equal(blz__wheel_reset(&timers[1], 99 * MS, true), WHEEL_RESET_LATE);
}

static void everything_can_be_dropped(void **state)
{
    blz_timer timers[50];
    size_t dropped = 0;

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    for (size_t i = 0; i < 50; i++) {
        init_numbered(&timers[i], i);
        blz__wheel_insert(&wheel, &timers[i], i > 42 ? INT64_MAX : ((int64_t)1 << i) * MS, true);
    }
    while (blz__wheel_drop(&wheel))
        dropped++;
    assert_int_equal(dropped, 50);
    for (size_t i = 0; i < 50; i++)
        assert_false(timer_is_armed(&timers[i]));
    assert_int_equal(blz__wheel_next(&wheel, true), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_timer_fires_at_its_tick_and_not_before),
        TEST(a_deadline_within_a_tick_rounds_up),
        TEST(every_boundary_between_levels_is_exact),
        TEST(a_distant_timer_is_waited_for_in_one_go),
        TEST(timers_beyond_the_top_level_wait_their_time),
        TEST(past_deadlines_fire_at_the_next_look),
        TEST(a_timer_for_never_does_not_wake_anybody),
        TEST(a_clock_that_goes_backwards_stands_still),
        TEST(timers_of_one_tick_fire_in_the_order_of_their_insertion),
        TEST(another_thread_gets_only_timers_that_wake),
        TEST(a_callback_that_waits_for_the_owner_can_be_moved_or_dropped),
        TEST(a_look_ends_although_its_timers_are_armed_again),
        TEST(a_long_pause_costs_no_more_than_its_timers),
        TEST(a_cancelled_timer_leaves_nothing_to_wake_up_for),
        TEST(only_an_earlier_timer_wakes_the_owner),
        TEST(everything_can_be_dropped),
    };
    return RUN_TESTS(tests);
}
