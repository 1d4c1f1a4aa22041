/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel folds against serial ones: order, errors, the same bits, smallest and greatest. */
#include "par.h"

#include <string.h>

enum { MOST = 4096, BIG = 200000 };

/* ---- sums ---- */

BLZ_PAR_DEFINE_SUM(sum, uint64_t, const uint64_t, v, i, v[i])
BLZ_PAR_DEFINE_SUM(sum_of_doubles, double, const double, v, i, v[i])
BLZ_PAR_DEFINE_REDUCE(product, uint64_t, const uint64_t, v, i, 1, acc *(v[i] | 1), acc *right)

static void check_sums(blz_par *par, const uint64_t *v, size_t n)
{
    uint64_t expected = 0, factor = 1, a, b, c, d;

    for (size_t i = 0; i < n; i++) {
        expected += v[i];
        factor *= v[i] | 1;
    }
    check(sum(par, &a, n, v, NULL) == 0 && a == expected);
    check(sum_deterministic(par, &b, n, v, NULL) == 0 && b == expected);
    check(product(par, &c, n, v, NULL) == 0 && c == factor);
    check(product_deterministic(par, &d, n, v, NULL) == 0 && d == factor);
}

static void sum_all_sizes(blz_par *par, void *arg)
{
    static uint64_t v[MOST];

    (void)arg;
    fill_pattern(v, MOST, PATTERN_RANDOM);
    for (size_t n = 0; n <= MOST; n += is_sanitized() ? 9 : 1)
        check_sums(par, v, n);
}

static void sums_are_those_of_a_loop_for_every_size(void **state)
{
    (void)state;
    in_pool_of(1, sum_all_sizes, NULL); /* in one piece: long ones at four places in turn */
    in_pool_of(2, sum_all_sizes, NULL);
}

static void sum_patterns(blz_par *par, void *arg)
{
    static uint64_t v[MOST];

    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++)
        for (size_t n = 1; n <= MOST; n = n * 3 + 1) {
            fill_pattern(v, n, pattern);
            check_sums(par, v, n);
        }
}

static void sums_are_those_of_a_loop_in_every_pool(void **state)
{
    (void)state;
    in_pools(sum_patterns, NULL);
}

/* ---- order ---- */

/* A run of successive numbers; combining runs that do not meet spoils it. */
struct chain {
    size_t begin, end;
    bool spoilt;
    char big[]; /* what makes it larger than the room in a frame */
};

struct chains {
    size_t size, cancel_at;
    blz_par_cancel cancel;
    size_t begun, combined;
};

static int append(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    struct chain *c = acc;
    struct chains *all = arg;

    (void)par;
    if (c->begin == c->end) {
        __atomic_fetch_add(&all->begun, 1, __ATOMIC_RELAXED);
        c->begin = c->end = begin;
    }
    c->spoilt |= c->end != begin;
    c->end = end;
    if (begin <= all->cancel_at && all->cancel_at < end)
        blz_par_cancel_set(&all->cancel, -EINTR);
    for (int64_t volatile spin = 0; spin < 200; spin++)
        continue;
    return 0;
}

static int concatenate(void *acc, void *right, void *arg)
{
    struct chain *a = acc, *b = right;
    struct chains *all = arg;

    if (b->begin == b->end)
        return 0;
    __atomic_fetch_add(&all->combined, 1, __ATOMIC_RELAXED);
    a->spoilt |= b->spoilt || (a->begin != a->end && a->end != b->begin);
    a->begin = a->begin == a->end ? b->begin : a->begin;
    a->end = b->end;
    return 0;
}

static int reduce_chains(blz_par *par, bool fixed, size_t n, struct chains *all,
                         struct chain *result)
{
    static const char identity[1000];
    blz_par_reducer reducer = {all->size, identity, append, concatenate, {0, 0}};
    blz_par_options options = {.cancel = &all->cancel};

    if (fixed)
        return blz_par_deterministic_reduce(par, result, n, &reducer, all, &options);
    return blz_par_reduce(par, result, n, &reducer, all, &options);
}

static void check_order(blz_par *par, void *arg)
{
    bool fixed = *(bool *)arg;
    _Alignas(16) char room[1000];
    struct chain *c = (void *)room;

    for (size_t size = sizeof *c; size <= sizeof room; size += 250)
        for (size_t n = 0; n <= 3000; n = n * 2 + 1) {
            struct chains all = {.size = size, .cancel_at = SIZE_MAX};
            check(reduce_chains(par, fixed, n, &all, c) == 0);
            check(c->begin == 0 && c->end == n && !c->spoilt);
            check(n == 0 || fixed || all.begun == all.combined + 1);
        }
}

static void parts_are_combined_in_their_order(void **state)
{
    (void)state;
    in_pools(check_order, &(bool){false});
    in_pools(check_order, &(bool){true});
}

static void check_cancelled(blz_par *par, void *arg)
{
    bool fixed = *(bool *)arg;
    _Alignas(16) char room[1000];

    for (size_t at = 0; at < 2000; at += 97) {
        struct chains all = {.size = sizeof room, .cancel_at = at};
        int rc = reduce_chains(par, fixed, 2000, &all, (void *)room);
        /* 0: by then all parts had begun */
        check(rc == -EINTR || (rc == 0 && ((struct chain *)(void *)room)->end == 2000));
        check(fixed || all.begun <= all.combined + 1);
    }
}

static void a_cancelled_fold_leaves_nothing_behind(void **state)
{
    (void)state;
    in_pools(check_cancelled, &(bool){false});
    in_pools(check_cancelled, &(bool){true});
}

static int fail_to_fold(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    (void)par, (void)acc;
    return begin <= *(size_t *)arg && *(size_t *)arg < end ? -EDOM : 0;
}

static int fail_to_combine(void *acc, void *right, void *arg)
{
    (void)acc, (void)right, (void)arg;
    return -ERANGE;
}

static void check_errors(blz_par *par, void *arg)
{
    static const uint64_t zero;
    blz_par_reducer reducer = {sizeof zero, &zero, fail_to_fold, fail_to_combine, {0, 0}};
    uint64_t result;

    (void)arg;
    for (size_t at = 0; at < 300; at += 13) {
        int rc = blz_par_reduce(par, &result, 300, &reducer, &at, NULL);
        check(rc == -EDOM || rc == -ERANGE);
        rc = blz_par_deterministic_reduce(par, &result, 300, &reducer, &at, NULL);
        check(rc == -EDOM || rc == -ERANGE);
    }
    check(blz_par_deterministic_reduce(par, &result, 300, &reducer, &(size_t){300}, NULL) ==
          -ERANGE);
}

static void errors_of_fold_and_combine_are_returned(void **state)
{
    (void)state;
    in_pools(check_errors, NULL);
}

/* ---- the same bits ---- */

static double values[BIG];

static void sum_into(blz_par *par, void *arg)
{
    double *result = arg;

    for (int i = 0; i < 3; i++) {
        double again;
        check(sum_of_doubles_deterministic(par, &again, BIG, values, NULL) == 0);
        check(i == 0 || memcmp(&again, result, sizeof again) == 0);
        *result = again;
    }
}

static void a_deterministic_sum_has_the_same_bits_in_every_pool(void **state)
{
    double results[9];

    (void)state;
    for (size_t i = 0; i < BIG; i++)
        values[i] = (double)mix(i) / (double)(1 + mix(i + BIG) % 100000);
    for (unsigned threads = 1; threads <= 8; threads++) {
        in_pool_of(threads, sum_into, &results[threads]);
        assert_memory_equal(&results[threads], &results[1], sizeof results[1]);
    }
}

static void sum_carelessly(blz_par *par, void *arg)
{
    double result, error = 0;

    check(sum_of_doubles(par, &result, BIG, values, NULL) == 0);
    for (size_t i = 0; i < BIG; i++)
        error += values[i];
    error -= result;
    check((error < 0 ? -error : error) <= result * 1e-9);
    (void)arg;
}

static void a_sum_of_doubles_is_about_right(void **state)
{
    (void)state;
    in_pools(sum_carelessly, NULL);
}

/* ---- smallest and greatest ---- */

BLZ_PAR_DEFINE_EXTREMES(by_value, uint64_t, const uint64_t, v, i, v[i])
BLZ_PAR_DEFINE_EXTREMES_BY(by_comparison, const uint64_t, v, i, j, v[i] < v[j])

static int compare_u64(const void *a, const void *b, void *arg)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    (void)arg;
    return x < y ? -1 : x > y;
}

static void check_extremes(blz_par *par, const uint64_t *v, size_t n)
{
    size_t min = 0, max = 0, index;

    for (size_t i = 1; i < n; i++) {
        min = v[i] < v[min] ? i : min;
        max = v[i] > v[max] ? i : max;
    }
    check(by_value_min(par, &index, n, v, NULL) == 0 && index == min);
    check(by_value_max(par, &index, n, v, NULL) == 0 && index == max);
    check(by_comparison_min(par, &index, n, v, NULL) == 0 && index == min);
    check(by_comparison_max(par, &index, n, v, NULL) == 0 && index == max);
    check(blz_par_min(par, &index, v, n, sizeof *v, compare_u64, NULL, NULL) == 0 && index == min);
    check(blz_par_max(par, &index, v, n, sizeof *v, compare_u64, NULL, NULL) == 0 && index == max);
}

static void find_extremes(blz_par *par, void *arg)
{
    static uint64_t v[MOST];

    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++)
        for (size_t n = 0; n <= MOST; n = next_size(n) + n / 3) {
            fill_pattern(v, n, pattern);
            check_extremes(par, v, n);
        }
}

static void the_first_of_the_smallest_and_the_greatest_is_found(void **state)
{
    (void)state;
    in_pools(find_extremes, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_are_those_of_a_loop_for_every_size),
        TEST(sums_are_those_of_a_loop_in_every_pool),
        TEST(parts_are_combined_in_their_order),
        TEST(a_cancelled_fold_leaves_nothing_behind),
        TEST(errors_of_fold_and_combine_are_returned),
        TEST(a_deterministic_sum_has_the_same_bits_in_every_pool),
        TEST(a_sum_of_doubles_is_about_right),
        TEST(the_first_of_the_smallest_and_the_greatest_is_found),
    };
    return RUN_TESTS(tests);
}
