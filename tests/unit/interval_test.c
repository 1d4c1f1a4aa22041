/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals: what becomes of ticks that nobody awaited in time, for each policy. */
#include "clock_rt.h"

#include <string.h>

/* Waits for ticks, and works for a while after each; notes when they came and what they said. */
struct ticker {
    BLZ_FRAME;
    int policy;
    int64_t period_ns;
    const int64_t *work_ms;
    int64_t *at_ms, *dropped;
    int count, i;
    int64_t began, rc;
    blz_interval iv;
};

BLZ_ASYNC(ticker)
{
    BLZ_BEGIN;
    self->began = blz_now();
    self->rc = blz_interval_init(&self->iv, self->began, self->period_ns, self->policy);
    check(self->rc == 0);
    for (self->i = 0; self->i < self->count; self->i++) {
        BLZ_AWAIT(self->rc, blz_interval_tick(&self->iv));
        if (self->rc < 0)
            break;
        self->at_ms[self->i] = (blz_now() - self->began) / MS;
        self->dropped[self->i] = self->rc;
        check(blz_clock_advance(blz_rt_current(), self->work_ms[self->i] * MS) == 0);
    }
    BLZ_END(self->rc < 0 ? self->rc : 0);
}

enum { TICKS = 6 };

/* A period of 10 ms, and one tick whose work takes 35. */
static void check_ticks(int policy, const int64_t *at_ms, const int64_t *dropped)
{
    static const int64_t work_ms[TICKS] = {1, 35, 1, 1, 1, 1};
    int64_t at[TICKS] = {0}, lost[TICKS] = {0};
    blz_rt *rt = new_clock_rt(false);
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, ticker, .policy = policy, .period_ns = 10 * MS,
                                  .work_ms = work_ms, .at_ms = at, .dropped = lost, .count = TICKS),
                     0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    assert_memory_equal(at, at_ms, sizeof at);
    assert_memory_equal(lost, dropped, sizeof lost);
    free_rt(rt);
}

static void late_ticks_of_a_burst_follow_at_once(void **state)
{
    (void)state;
    check_ticks(BLZ_INTERVAL_BURST, (int64_t[]){0, 10, 45, 46, 47, 50},
                (int64_t[]){0, 0, 0, 0, 0, 0});
}

static void a_late_tick_delays_those_that_follow(void **state)
{
    (void)state;
    check_ticks(BLZ_INTERVAL_DELAY, (int64_t[]){0, 10, 45, 55, 65, 75},
                (int64_t[]){0, 0, 2, 0, 0, 0});
}

static void late_ticks_are_skipped(void **state)
{
    (void)state;
    check_ticks(BLZ_INTERVAL_SKIP, (int64_t[]){0, 10, 45, 50, 60, 70},
                (int64_t[]){0, 0, 2, 0, 0, 0});
}

/* A machine that was asleep for a year. */
static void a_long_pause_is_no_storm_of_ticks(void **state)
{
    static int64_t at[300], lost[300], work[300];

    (void)state;
    for (int policy = BLZ_INTERVAL_BURST; policy <= BLZ_INTERVAL_SKIP; policy++) {
        blz_rt *rt = new_clock_rt(false);
        const int64_t year_ms = 365 * BLZ_DAY / MS;
        int64_t total = 0;
        blz_handle handle;

        memset(work, 0, sizeof work);
        work[0] = year_ms;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, ticker, .policy = policy, .period_ns = MS,
                                      .work_ms = work, .at_ms = at, .dropped = lost, .count = 300),
                         0);
        turn_all(rt);
        assert_int_equal(result_of(&handle), 0);
        for (int i = 0; i < 300; i++)
            total += lost[i] + 1;
        assert_int_equal(at[1], year_ms);
        assert_true(lost[1] > year_ms - 100);
        assert_true(total - (at[299] + 1) <= 1 && total - (at[299] + 1) >= -1);
        assert_true(at[299] > year_ms + 200); /* the later ones came in their own time */
        free_rt(rt);
    }
}

static void nonsensical_intervals_are_refused(void **state)
{
    blz_interval iv;

    (void)state;
    assert_int_equal(blz_interval_init(&iv, 0, 0, BLZ_INTERVAL_SKIP), -EINVAL);
    assert_int_equal(blz_interval_init(&iv, 0, -1, BLZ_INTERVAL_SKIP), -EINVAL);
    assert_int_equal(blz_interval_init(&iv, 0, 1, 3), -EINVAL);
    assert_int_equal(blz_interval_init(&iv, 0, 1, -1), -EINVAL);
}

struct impatient {
    BLZ_FRAME;
    int64_t began, rc;
    blz_interval iv;
    blz_timeout limit;
};

BLZ_ASYNC(impatient)
{
    BLZ_BEGIN;
    self->began = blz_now();
    self->rc = blz_interval_init(&self->iv, blz_deadline(50 * MS), 50 * MS, BLZ_INTERVAL_SKIP);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 30 * MS, blz_interval_tick(&self->iv)));
    check(self->rc == -ETIMEDOUT);
    BLZ_AWAIT(self->rc, blz_interval_tick(&self->iv));
    check(self->rc == 0);
    BLZ_END(blz_now() - self->began);
}

static void a_cancelled_tick_is_not_lost(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.test_clock = true});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, impatient), 50 * MS);
    free_rt(rt);
}

/* Ticks of an interval that begins at any time at all: never early, and never for ever. */
struct strange {
    BLZ_FRAME;
    int64_t start_ns, period_ns;
    int policy, i;
    int64_t rc;
    blz_interval iv;
    blz_timeout limit;
};

BLZ_ASYNC(strange)
{
    BLZ_BEGIN;
    self->rc = blz_interval_init(&self->iv, self->start_ns, self->period_ns, self->policy);
    check(self->rc == 0);
    for (self->i = 0; self->i < 1000; self->i++) {
        check(self->iv.next_ns >= self->start_ns);
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, MS, blz_interval_tick(&self->iv)));
        check(self->rc >= 0 || self->rc == -ETIMEDOUT);
    }
    BLZ_END(0);
}

static void strange_starts_and_periods_do_no_harm(void **state)
{
    static const int64_t starts[] = {INT64_MIN, -1, 0, INT64_MAX - 1};
    static const int64_t periods[] = {1, BLZ_SEC, INT64_MAX};
    blz_rt *rt = new_clock_rt(false);

    (void)state;
    for (int policy = BLZ_INTERVAL_BURST; policy <= BLZ_INTERVAL_SKIP; policy++)
        for (int i = 0; i < 12; i++) {
            blz_handle handle;

            assert_int_equal(BLZ_SPAWN_ON(rt, &handle, strange, .start_ns = starts[i % 4],
                                          .period_ns = periods[i / 4], .policy = policy),
                             0);
            turn_all(rt);
            assert_int_equal(result_of(&handle), 0);
        }
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(late_ticks_of_a_burst_follow_at_once),
        TEST(a_late_tick_delays_those_that_follow),
        TEST(late_ticks_are_skipped),
        TEST(a_long_pause_is_no_storm_of_ticks),
        TEST(nonsensical_intervals_are_refused),
        TEST(a_cancelled_tick_is_not_lost),
        TEST(strange_starts_and_periods_do_no_harm),
    };
    return RUN_TESTS(tests);
}
