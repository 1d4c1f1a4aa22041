/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Millions of random operations on a timer wheel, compared with a plain sorted list: insertions,
 * removals, resets, and looks at a clock that goes on by anything from nothing to centuries, and at
 * times backwards.
 */
#include "harness.h"
#include "time/wheel.h"
#include "system/fence.h"

#include <string.h>

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

enum { NR_TIMERS = 300 };

/* What the wheel should do: entries sorted by (tick, order of insertion). */
struct expected {
    uint64_t tick, order;
    size_t number;
};

static struct {
    blz_timer timers[NR_TIMERS];
    struct expected list[NR_TIMERS];
    size_t len;
    uint64_t order, floor;
    int64_t now, latest; /* the clock, and the latest that the wheel has seen */
    uint64_t seed;
    int64_t fired, early_wakes;
} world;

static uint64_t random_bits(void)
{
    uint64_t high = random_below(&world.seed, UINT32_MAX);
    return high << 32 | random_below(&world.seed, UINT32_MAX);
}

/* All sizes are equally likely, from nothing to hundreds of years. */
static int64_t random_span(void)
{
    return (int64_t)(random_bits() >> (1 + random_below(&world.seed, 63)));
}

static int64_t random_deadline(void)
{
    switch (random_below(&world.seed, 16)) {
    case 0:
        return INT64_MAX;
    case 1:
        return -random_span();
    case 2:
        return blz_time_sub(world.now, random_span());
    default:
        return blz_time_add(world.now, random_span());
    }
}

static void expect_insert(size_t number, int64_t deadline_ns)
{
    uint64_t tick = deadline_ns <= 0 ? 0 : ((uint64_t)deadline_ns + MS - 1) / MS;
    struct expected e = {tick > world.floor ? tick : world.floor, world.order++, number};
    size_t at = world.len++;

    for (; at > 0 && world.list[at - 1].tick > e.tick; at--)
        world.list[at] = world.list[at - 1];
    world.list[at] = e;
}

static bool expect_remove(size_t number)
{
    for (size_t i = 0; i < world.len; i++)
        if (world.list[i].number == number) {
            memmove(&world.list[i], &world.list[i + 1], (--world.len - i) * sizeof *world.list);
            return true;
        }
    return false;
}

static void random_insert(size_t number)
{
    int64_t deadline_ns = random_deadline();

    init_numbered(&world.timers[number], number);
    blz__wheel_insert(&wheel, &world.timers[number], deadline_ns, true);
    expect_insert(number, deadline_ns);
}

static void random_reset(size_t number)
{
    int64_t deadline_ns = random_deadline();
    bool armed = expect_remove(number);

    assert_int_equal(blz__wheel_reset(&world.timers[number], deadline_ns, true) != WHEEL_RESET_LATE,
                     armed);
    if (armed)
        expect_insert(number, deadline_ns);
}

/* Nothing early, nothing late, nothing twice, all in order. */
static void expect_fired(const wheel_fired *fired, size_t n, uint64_t now_tick)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(world.len > 0);
        assert_int_equal(number_of(&fired[i]), world.list[0].number);
        assert_true(world.list[0].tick <= now_tick);
        expect_remove(world.list[0].number);
        assert_false(timer_is_armed(&world.timers[number_of(&fired[i])]));
    }
    world.fired += (int64_t)n;
}

/* It says when to look next: never late, and early only because of what was cancelled. */
static void check_next(void)
{
    int64_t next_ns = blz__wheel_next(&wheel, true);

    if (world.len == 0)
        assert_int_equal(next_ns, INT64_MAX);
    else if (next_ns != INT64_MAX)
        assert_true((uint64_t)next_ns / MS <= world.list[0].tick);
    else
        assert_true(world.list[0].tick >= INT64_MAX / MS);
}

static void random_look(void)
{
    size_t max = 1 + random_below(&world.seed, 40), n;
    uint64_t now_tick = world.now <= 0 ? 0 : (uint64_t)world.now / MS;
    bool all = random_below(&world.seed, 4) > 0; /* else as a worker whose ring is full */
    wheel_fired fired[40];

    if (world.floor <= now_tick)
        world.floor = now_tick + 1;
    if (random_below(&world.seed, 8) == 0) { /* the watchdog looks first: all of these call back */
        assert_int_equal(blz__wheel_collect(&wheel, world.now, fired, max, false), 0);
        check_next();
        all = true;
    }
    do {
        n = blz__wheel_collect(&wheel, world.now, fired, max, true);
        expect_fired(fired, n, now_tick);
    } while (n == max && all);
    assert_true(n == max || world.len == 0 || world.list[0].tick > now_tick);
}

static void move_clock(void)
{
    switch (random_below(&world.seed, 8)) {
    case 0:
        world.now = blz_time_sub(world.now, random_span() >> 20); /* backwards */
        break;
    case 1:
        world.now = blz_time_add(world.now, random_span() >> 8);
        break;
    case 2: { /* exactly to where the wheel wants it */
        int64_t next_ns = blz__wheel_next(&wheel, true);
        if (next_ns != INT64_MAX)
            world.now = next_ns - (random_below(&world.seed, 2) ? 0 : 1);
        break;
    }
    case 3:
        break;
    default:
        world.now = blz_time_add(world.now, random_below(&world.seed, 200000000));
    }
}

static void step(void)
{
    size_t number = random_below(&world.seed, NR_TIMERS);

    switch (random_below(&world.seed, 8)) {
    case 0:
    case 1:
    case 2:
        if (!timer_is_armed(&world.timers[number]))
            random_insert(number);
        else
            random_reset(number);
        break;
    case 3:
        assert_int_equal(blz__wheel_remove(&world.timers[number], true), expect_remove(number));
        break;
    case 4:
        random_reset(number);
        break;
    case 5:
        check_next();
        break;
    default:
        move_clock();
        random_look();
    }
}

static void begin_world(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.now = random_below(&world.seed, 2) ? random_span() >> 4 : random_span() >> 20;
    blz__wheel_init(&wheel, world.now, blz__fence_asymmetric_init());
    world.floor = (uint64_t)world.now / MS;
}

static void a_wheel_does_what_a_sorted_list_does(void **state)
{
    const int64_t steps = scaled(4000000), worlds = 400;
    int64_t fired = 0;

    (void)state;
    allow_seconds(120);
    for (int64_t w = 0; w < worlds; w++) {
        begin_world((uint64_t)w * 77 + 1);
        for (int64_t i = 0; i < steps / worlds; i++) {
            step();
            if (i % 64 == 0)
                assert_null(blz__wheel_check(&wheel));
        }
        fired += world.fired;
        while (blz__wheel_drop(&wheel))
            ;
    }
    assert_true(fired > steps / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wheel_does_what_a_sorted_list_does),
    };
    return RUN_TESTS(tests);
}
