/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by key, by bits and by a function that compares; merging; the kth. */
#include "par_items.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70001 };

typedef struct record {
    char name[20];
    uint32_t place;
    int32_t key;
    char rest[11];
} record;

BLZ_PAR_DEFINE_SORT_BY_KEY(by_key, item, uint32_t, it->key % 1000)

static uint64_t nr_keys;

static uint32_t costly(const item *it)
{
    __atomic_fetch_add(&nr_keys, 1, __ATOMIC_RELAXED);
    return it->key % 1000;
}

BLZ_PAR_DEFINE_SORT_BY_CACHED_KEY(by_cached, item, uint32_t, costly(it), *a < *b)
BLZ_PAR_DEFINE_SORT(item, item, a->key < b->key)

/* ---- keys ---- */

static void check_stable_by_thousands(item *v, size_t n, uint64_t sum)
{
    check(sum_of(v, n) == sum);
    for (size_t i = 1; i < n; i++) {
        uint32_t a = v[i - 1].key % 1000, b = v[i].key % 1000;
        check(a < b || (a == b && v[i - 1].place < v[i].place));
    }
    free(v);
}

static uint64_t thousands(const void *element, void *arg)
{
    (void)arg;
    return ((const item *)element)->key % 1000;
}

static void check_keys(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n = n < 300 ? next_size(n) : 9 * n) {
        item *v = items_of(n, PATTERN_RANDOM);
        uint64_t sum = sum_of(v, n);

        check(by_key_stable_sort(par, v, n, NULL, NULL) == 0);
        check_stable_by_thousands(v, n, sum);
        v = items_of(n, PATTERN_RANDOM);
        nr_keys = 0;
        check(by_cached_sort(par, v, n, NULL, NULL) == 0);
        check(nr_keys == (n > 1 ? n : 0));
        check_stable_by_thousands(v, n, sum);
        v = items_of(n, PATTERN_RANDOM);
        check(blz_par_sort_by_key(par, v, n, sizeof *v, thousands, NULL, NULL) == 0);
        check_stable_by_thousands(v, n, sum);
    }
}

static void keys_are_sorted_stably_and_cached_ones_are_computed_once(void **state)
{
    (void)state;
    in_pools(check_keys, NULL);
}

static void check_cached_without_memory(blz_par *par, void *arg)
{
    int rc = -ENOMEM;

    (void)arg;
    for (int nth = 1; rc == -ENOMEM; nth++) {
        item *v = items_of(5000, PATTERN_RANDOM);
        uint64_t sum = sum_of(v, 5000);

        memory_fail_at(the_memory(), nth, true);
        rc = by_cached_sort(par, v, 5000, NULL, NULL);
        memory_fail_at(the_memory(), 0, false);
        for (uint32_t i = 0; rc < 0 && i < 5000; i++)
            check(v[i].place == i);
        check(rc == 0 || nth <= 3);
        check(sum_of(v, 5000) == sum);
        free(v);
    }
    check(rc == 0);
}

static void without_memory_for_keys_the_array_is_as_it_was(void **state)
{
    (void)state;
    in_pool_of(1, check_cached_without_memory, NULL);
}

/* ---- bits ---- */

#define CHECK_RADIX(suffix, type, from)                                         \
    static void check_radix_##suffix(blz_par *par, size_t n, int pattern)       \
    {                                                                           \
        uint64_t *bits = malloc((n + 1) * sizeof *bits), before = 0, after = 0; \
        type *v = malloc((n + 1) * sizeof *v);                                  \
                                                                                \
        check(bits &&v);                                                        \
        fill_pattern(bits, n, pattern);                                         \
        for (size_t i = 0; i < n; i++) {                                        \
            v[i] = (type)(from);                                                \
            before += mix((uint64_t)(int64_t)v[i]);                             \
        }                                                                       \
        check(blz_par_radix_sort_##suffix(par, v, n, NULL) == 0);               \
        for (size_t i = 0; i < n; i++) {                                        \
            check(i == 0 || v[i - 1] <= v[i]);                                  \
            after += mix((uint64_t)(int64_t)v[i]);                              \
        }                                                                       \
        check(before == after);                                                 \
        free(bits);                                                             \
        free(v);                                                                \
    }

CHECK_RADIX(u32, uint32_t, bits[i])
CHECK_RADIX(u64, uint64_t, bits[i])
CHECK_RADIX(i32, int32_t, (int32_t)(uint32_t)(bits[i] * 3))
CHECK_RADIX(i64, int64_t, (int64_t)(bits[i] * 3))
CHECK_RADIX(f32, float, (float)(int32_t)(uint32_t)bits[i] / 16)
CHECK_RADIX(f64, double, (double)((int64_t)(bits[i] * 3) >> 8) / 1024)

static void check_radix(blz_par *par, void *arg)
{
    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++)
        for (size_t n = 0; n <= MOST; n = n < 600 ? n + n / 2 + 1 : 13 * n) {
            check_radix_u32(par, n, pattern);
            check_radix_u64(par, n, pattern);
            check_radix_i32(par, n, pattern);
            check_radix_i64(par, n, pattern);
            check_radix_f32(par, n, pattern);
            check_radix_f64(par, n, pattern);
        }
}

static void numbers_are_sorted_by_their_bits(void **state)
{
    (void)state;
    in_pools(check_radix, NULL);
}

static void check_floats(blz_par *par, void *arg)
{
    double inf = __builtin_inf(), nan = __builtin_nan("");
    double v[] = {nan, 1, -0.0, inf, -1, 0.0, -nan, -inf, 5e-324, -5e-324};
    enum { N = sizeof v / sizeof *v };

    (void)arg;
    check(blz_par_radix_sort_f64(par, v, N, NULL) == 0);
    check(v[0] != v[0] && v[N - 1] != v[N - 1]);
    check(v[1] == -inf && v[2] == -1 && v[3] < 0 && v[6] > 0 && v[7] == 1 && v[8] == inf);
    check(v[4] == 0 && __builtin_signbit(v[4]) && v[5] == 0 && !__builtin_signbit(v[5]));
}

static void floats_have_a_total_order(void **state)
{
    (void)state;
    in_pool_of(1, check_floats, NULL);
}

static void check_radix_pairs(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n = n < 600 ? next_size(n) : 13 * n) {
        item *v = items_of(n, PATTERN_FEW_DISTINCT);
        uint64_t sum = sum_of(v, n);

        check(blz_par_radix_sort(par, v, n, sizeof *v, 0, BLZ_PAR_KEY_U32, NULL) == 0);
        check_stable_by_thousands(v, n, sum);
    }
}

static void check_radix_records(blz_par *par, void *arg)
{
    enum { N = 5000 };
    record *v = calloc(N, sizeof *v);

    (void)arg;
    check(v);
    for (uint32_t i = 0; i < N; i++) {
        v[i].place = i;
        v[i].key = (int32_t)(mix(i) % 100) - 50;
        memcpy(v[i].name, &v[i].key, sizeof v[i].key);
    }
    check(blz_par_radix_sort(par, v, N, sizeof *v, offsetof(record, key), BLZ_PAR_KEY_I32, NULL) ==
          0);
    for (size_t i = 0; i < N; i++) {
        check(memcmp(v[i].name, &v[i].key, sizeof v[i].key) == 0);
        check(i == 0 || v[i - 1].key < v[i].key ||
              (v[i - 1].key == v[i].key && v[i - 1].place < v[i].place));
    }
    check(blz_par_radix_sort(par, v, N, sizeof *v, sizeof *v - 3, BLZ_PAR_KEY_I32, NULL) ==
          -EINVAL);
    check(blz_par_radix_sort(par, v, N, 3, 0, BLZ_PAR_KEY_I32, NULL) == -EINVAL);
    free(v);
}

static void elements_are_sorted_stably_by_the_bits_of_a_key(void **state)
{
    (void)state;
    in_pools(check_radix_pairs, NULL);
    in_pools(check_radix_records, NULL);
}

/* ---- any size ---- */

static int compare_first_bytes(const void *a, const void *b, void *arg)
{
    ++*(uint64_t *)arg; /* one thread only */
    return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* The first byte is the key, the last ones the place. */
static void fill_bytes(unsigned char *v, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t place = (uint16_t)i;
        memset(v + i * size, 0, size);
        v[i * size] = (unsigned char)mix(i);
        if (size >= 3)
            memcpy(v + (i + 1) * size - 2, &place, 2);
    }
}

static void check_bytes(const unsigned char *v, size_t n, size_t size, bool stable)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t place = 0, before = 0;
        if (size >= 3) {
            memcpy(&place, v + (i + 1) * size - 2, 2);
            check(v[i * size] == (unsigned char)mix(place));
        }
        if (i == 0)
            continue;
        check(v[(i - 1) * size] <= v[i * size]);
        memcpy(&before, v + i * size - 2 * (size >= 3), 2 * (size >= 3));
        check(!stable || size < 3 || v[(i - 1) * size] < v[i * size] || before < place);
    }
}

static void check_any_size(blz_par *par, void *arg)
{
    uint64_t calls = 0;

    (void)arg;
    for (size_t size = 1; size <= 80; size = size < 34 ? size + 1 : size + 15)
        for (size_t n = 0; n <= 2000; n = n < 8 ? n + 1 : 5 * n) {
            unsigned char *v = malloc(n * size + 1);

            check(v);
            fill_bytes(v, n, size);
            check(blz_par_stable_sort(par, v, n, size, compare_first_bytes, &calls, NULL) == 0);
            check_bytes(v, n, size, true);
            fill_bytes(v, n, size);
            check(blz_par_sort(par, v, n, size, compare_first_bytes, &calls, NULL) == 0);
            check_bytes(v, n, size, false);
            fill_bytes(v, n, size);
            memory_fail_at(the_memory(), 1, true);
            check(blz_par_sort(par, v, n, size, compare_first_bytes, &calls, NULL) == 0);
            memory_fail_at(the_memory(), 0, false);
            check_bytes(v, n, size, false);
            free(v);
        }
    check(calls > 0);
}

static void elements_of_any_size_are_sorted(void **state)
{
    (void)state;
    in_pool_of(1, check_any_size, NULL);
}

/* ---- merging ---- */

static int compare_items(const void *a, const void *b, void *arg)
{
    uint32_t x = ((const item *)a)->key, y = ((const item *)b)->key;

    (void)arg;
    return (x > y) - (x < y);
}

/* The places of b are above all of a. */
static void check_merge(blz_par *par, size_t na, size_t nb, int pattern)
{
    item *v = items_of(na + nb, pattern), *out = malloc((na + nb + 1) * sizeof *out);
    item *again = malloc((na + nb + 1) * sizeof *again);
    uint64_t sum = sum_of(v, na + nb);

    check(out && again);
    check(item_stable_sort(par, v, na, NULL, NULL) == 0);
    check(item_stable_sort(par, v + na, nb, NULL, NULL) == 0);
    check(item_merge(par, out, v, na, v + na, nb, NULL, NULL) == 0);
    check(sum_of(out, na + nb) == sum);
    for (size_t i = 1; i < na + nb; i++)
        check(out[i - 1].key < out[i].key ||
              (out[i - 1].key == out[i].key && out[i - 1].place < out[i].place));
    check(blz_par_merge(par, again, v, na, v + na, nb, sizeof *v, compare_items, NULL, NULL) == 0);
    check(memcmp(out, again, (na + nb) * sizeof *out) == 0);
    free(v);
    free(out);
    free(again);
}

static void check_merges(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t na = 0; na <= 20; na++)
        for (size_t nb = 0; nb <= 20; nb++)
            check_merge(par, na, nb, na & 1 ? PATTERN_RANDOM : PATTERN_FEW_DISTINCT);
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        check_merge(par, 15000, 16000, pattern);
        check_merge(par, 3, 12000, pattern);
        check_merge(par, 12000, 7, pattern);
    }
}

static void a_merge_is_stable(void **state)
{
    (void)state;
    in_pools(check_merges, NULL);
}

/* ---- the kth ---- */

static void check_kth_of(const item *v, size_t n, size_t k, uint64_t sum)
{
    check(sum_of(v, n) == sum);
    for (size_t i = 0; i < n; i++)
        check(i < k ? v[i].key <= v[k].key : v[i].key >= v[k].key);
}

static void check_kth(blz_par *par, size_t n, size_t k, int pattern)
{
    for (int memory = 0; memory < 2; memory++) {
        item *v = items_of(n, pattern);
        uint64_t sum = sum_of(v, n);

        memory_fail_at(the_memory(), !memory, true);
        check(item_kth(par, v, n, k, NULL, NULL) == 0);
        check_kth_of(v, n, k, sum);
        free(v);
        v = items_of(n, pattern);
        check(blz_par_kth(par, v, n, sizeof *v, k, compare_items, NULL, NULL) == 0);
        check_kth_of(v, n, k, sum);
        memory_fail_at(the_memory(), 0, false);
        free(v);
    }
}

static void check_kths(blz_par *par, void *arg)
{
    item one = {1, 2};

    (void)arg;
    check(item_kth(par, &one, 1, 1, NULL, NULL) == -EINVAL);
    check(blz_par_kth(par, &one, 1, sizeof one, 1, compare_items, NULL, NULL) == -EINVAL);
    check(blz_par_kth(par, &one, 1, 5, 1, compare_items, NULL, NULL) == -EINVAL);
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        for (size_t n = 1; n < 40; n += 6)
            for (size_t k = 0; k < n; k++)
                check_kth(par, n, k, pattern);
        for (size_t k = 0; k < 20000; k += 4999)
            check_kth(par, 20000, k, pattern);
        check_kth(par, MOST, MOST - 1, pattern);
    }
}

static void the_kth_is_where_a_sort_would_put_it(void **state)
{
    (void)state;
    in_pool_of(1, check_kths, NULL);
    in_pool_of(2, check_kths, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_are_sorted_stably_and_cached_ones_are_computed_once),
        TEST(without_memory_for_keys_the_array_is_as_it_was),
        TEST(numbers_are_sorted_by_their_bits),
        TEST(floats_have_a_total_order),
        TEST(elements_are_sorted_stably_by_the_bits_of_a_key),
        TEST(elements_of_any_size_are_sorted),
        TEST(a_merge_is_stable),
        TEST(the_kth_is_where_a_sort_would_put_it),
    };

    return RUN_TESTS(tests);
}
