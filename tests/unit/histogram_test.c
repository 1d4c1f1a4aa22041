/* SPDX-License-Identifier: Apache-2.0 */
/* Histogram buckets and quantiles. */
#include "harness.h"

#include "observe/hist.h"

#include <string.h>

static void the_first_values_have_buckets_of_their_own(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 8; value++) {
        assert_int_equal(histogram_bucket(value), value);
        assert_int_equal(blz_histogram_floor((unsigned)value), value);
    }
}

static void a_buckets_floor_falls_into_it_and_the_value_below_does_not(void **state)
{
    (void)state;
    for (unsigned bucket = 1; bucket < BLZ_HISTOGRAM_BUCKETS; bucket++) {
        uint64_t floor = blz_histogram_floor(bucket);
        assert_int_equal(histogram_bucket(floor), bucket);
        assert_int_equal(histogram_bucket(floor - 1), bucket - 1);
    }
}

static void buckets_are_a_quarter_of_a_power_of_two_wide(void **state)
{
    (void)state;
    for (unsigned bucket = 4; bucket + 1 < BLZ_HISTOGRAM_BUCKETS; bucket++) {
        uint64_t floor = blz_histogram_floor(bucket), next = blz_histogram_floor(bucket + 1);
        assert_true(next > floor);
        assert_true((next - floor) * 4 <= floor);
    }
}

static void the_last_bucket_holds_the_rest(void **state)
{
    (void)state;
    assert_int_equal(histogram_bucket(UINT64_MAX), BLZ_HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_bucket(blz_histogram_floor(BLZ_HISTOGRAM_BUCKETS - 1)),
                     BLZ_HISTOGRAM_BUCKETS - 1);
    assert_true(blz_histogram_floor(BLZ_HISTOGRAM_BUCKETS - 1) > 1000 * (uint64_t)BLZ_SEC);
}

static void samples_are_counted_in_their_bucket(void **state)
{
    tick_histogram h;

    (void)state;
    memset(&h, 0, sizeof h);
    histogram_add(&h, 1000);
    histogram_add(&h, 1001);
    histogram_add(&h, 5);
    assert_int_equal(h.buckets[histogram_bucket(1000)], 2);
    assert_int_equal(h.buckets[5], 1);
}

static void a_quantile_is_the_floor_of_the_bucket_that_reaches_it(void **state)
{
    blz_histogram h;

    (void)state;
    memset(&h, 0, sizeof h);
    assert_int_equal(blz_histogram_quantile(&h, 0.5), 0);
    h.buckets[10] = 50;
    h.buckets[20] = 49;
    h.buckets[30] = 1;
    h.count = 100;
    assert_int_equal(blz_histogram_quantile(&h, 0), blz_histogram_floor(10));
    assert_int_equal(blz_histogram_quantile(&h, 0.5), blz_histogram_floor(10));
    assert_int_equal(blz_histogram_quantile(&h, 0.51), blz_histogram_floor(20));
    assert_int_equal(blz_histogram_quantile(&h, 0.99), blz_histogram_floor(20));
    assert_int_equal(blz_histogram_quantile(&h, 0.999), blz_histogram_floor(30));
    assert_int_equal(blz_histogram_quantile(&h, 1), blz_histogram_floor(30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_values_have_buckets_of_their_own),
        TEST(a_buckets_floor_falls_into_it_and_the_value_below_does_not),
        TEST(buckets_are_a_quarter_of_a_power_of_two_wide),
        TEST(the_last_bucket_holds_the_rest),
        TEST(samples_are_counted_in_their_bucket),
        TEST(a_quantile_is_the_floor_of_the_bucket_that_reaches_it),
    };
    return RUN_TESTS(tests);
}
