/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts by comparison. The elements are keys with their places before the sort: in the right order
 * means by key, equal ones by place; and then each place is there once if no key has another than
 * it had, and places ascend among equal keys.
 */
#include "par/sort.h"

#include "par_items.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

BLZ_PAR_DEFINE_SORT(item, item, a->key < b->key)
BLZ_PAR_DEFINE_SORT(u64, uint64_t, *a < *b)

enum { MOST = 70001 };

/* ---- inputs and what becomes of them ---- */

static bool are_in_order(const item *v, size_t n, bool stable)
{
    for (size_t i = 1; i < n; i++) {
        if (v[i].key < v[i - 1].key)
            return false;
        if (stable && v[i].key == v[i - 1].key && v[i].place <= v[i - 1].place)
            return false;
    }
    return true;
}

static void check_sorts(blz_par *par, size_t n, int pattern)
{
    item *v = items_of(n, pattern);
    uint64_t sum = sum_of(v, n);

    check(item_stable_sort(par, v, n, NULL, NULL) == 0);
    check(are_in_order(v, n, true) && sum_of(v, n) == sum);
    free(v);
    v = items_of(n, pattern);
    check(item_sort(par, v, n, NULL, NULL) == 0);
    check(are_in_order(v, n, false) && sum_of(v, n) == sum);
    free(v);
}

/* ---- all sizes, all patterns ---- */

static void check_all_sizes(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= 4096; n += is_sanitized() && n > 600 ? 7 : 1) {
        item *v = items_of(n, PATTERN_RANDOM);
        uint64_t sum = sum_of(v, n);

        check(item_stable_sort(par, v, n, NULL, NULL) == 0);
        check(are_in_order(v, n, true) && sum_of(v, n) == sum);
        free(v);
    }
}

static void arrays_of_all_sizes_are_sorted(void **state)
{
    (void)state;
    in_pool_of(2, check_all_sizes, NULL);
}

static void check_all_patterns(blz_par *par, void *arg)
{
    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        for (size_t n = 0; n <= 2500; n = next_size(n))
            check_sorts(par, n, pattern);
        check_sorts(par, MOST, pattern);
    }
}

static void all_patterns_are_sorted_by_any_number_of_threads(void **state)
{
    (void)state;
    in_pools(check_all_patterns, NULL);
}

static void check_against_qsort_order(blz_par *par, void *arg)
{
    uint64_t *v = values_of(MOST, PATTERN_RANDOM), *w = values_of(MOST, PATTERN_RANDOM);

    (void)arg;
    check(u64_sort(par, v, MOST, NULL, NULL) == 0);
    check(blz_par_radix_sort_u64(par, w, MOST, NULL) == 0);
    check(memcmp(v, w, MOST * sizeof *v) == 0);
    free(v);
    free(w);
}

static void a_sort_and_a_radix_sort_agree(void **state)
{
    (void)state;
    in_pools(check_against_qsort_order, NULL);
}

/* ---- the ways that are seldom taken ---- */

/* Levels of distributions that are left; and into the spare array, too. */
static void check_few_levels(blz_par *par, void *arg)
{
    const blz_par_options options = {0};
    sorter s = {&item_kernels_, NULL, &options};

    (void)arg;
    for (unsigned levels = 0; levels < 3; levels++)
        for (int into_spare = 0; into_spare < 2; into_spare++) {
            item *v = items_of(MOST, PATTERN_RANDOM);
            uint64_t sum = sum_of(v, MOST);
            span sp;
            void *room = blz__sort_get_room(par, &s, (char *)v, MOST, &sp);

            check(room);
            sp.levels = levels;
            sp.into_spare = into_spare;
            blz__sort_span(par, &s, &sp);
            check(are_in_order(into_spare ? (item *)(void *)sp.spare : v, MOST, true));
            check(sum_of(into_spare ? (item *)(void *)sp.spare : v, MOST) == sum);
            blz__sort_free_room(par, &s, room, MOST);
            free(v);
        }
}

static void a_span_that_divides_badly_is_merge_sorted(void **state)
{
    (void)state;
    in_pool_of(1, check_few_levels, NULL);
    in_pool_of(2, check_few_levels, NULL);
}

static void check_without_memory(blz_par *par, void *arg)
{
    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++)
        for (size_t n = 5; n <= MOST; n = n < 20000 ? 3 * n : n + 60000) {
            item *v = items_of(n, pattern), *before = items_of(n, pattern);
            uint64_t sum = sum_of(v, n);
            int rc;

            memory_fail_at(the_memory(), 1, true);
            rc = item_stable_sort(par, v, n, NULL, NULL);
            check(rc == 0 || rc == -ENOMEM);
            check(rc == -ENOMEM || are_in_order(v, n, true));
            check(sum_of(v, n) == sum);
            memcpy(v, before, n * sizeof *v);
            check(item_sort(par, v, n, NULL, NULL) == 0);
            check(are_in_order(v, n, false) && sum_of(v, n) == sum);
            memory_fail_at(the_memory(), 0, false);
            free(v);
            free(before);
        }
}

static void without_memory_a_sort_works_in_place_and_a_stable_one_says_so(void **state)
{
    (void)state;
    in_pool_of(1, check_without_memory, NULL);
    in_pool_of(2, check_without_memory, NULL);
}

static void check_each_allocation(blz_par *par, void *arg)
{
    (void)arg;
    for (int nth = 1;; nth++) {
        item *v = items_of(MOST, PATTERN_RANDOM);
        uint64_t sum = sum_of(v, MOST);
        bool failed;

        memory_fail_at(the_memory(), nth, false);
        check(item_sort(par, v, MOST, NULL, NULL) == 0);
        failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        check(are_in_order(v, MOST, false) && sum_of(v, MOST) == sum);
        free(v);
        if (!failed)
            return;
    }
}

static void a_sort_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    in_pool_of(2, check_each_allocation, NULL);
}

/* ---- in place, by blocks ---- */

static void sort_by_blocks(blz_par *par, const struct blz_sort_kernels_ *kernels, void *arg,
                           item *v, size_t n)
{
    const blz_par_options options = {0};
    sorter s = {kernels, arg, &options};

    blz__sort_without_room(par, &s, (char *)v, n, 2);
}

static void check_blocks(blz_par *par, void *arg)
{
    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++)
        for (size_t n = 4096; n <= 30000; n += n < 5000 ? 311 : 25000) {
            item *v = items_of(n, pattern);
            uint64_t sum = sum_of(v, n);

            sort_by_blocks(par, &item_kernels_, NULL, v, n);
            check(are_in_order(v, n, false) && sum_of(v, n) == sum);
            free(v);
        }
}

static void many_elements_are_distributed_in_place(void **state)
{
    (void)state;
    in_pool_of(1, check_blocks, NULL);
    in_pool_of(3, check_blocks, NULL);
}

/* Blocks that have to change places in many small circles, or in one that is long. */
static void check_rotated(blz_par *par, void *arg)
{
    enum { N = 65536 };

    (void)arg;
    for (size_t by = 64; by < N; by *= 8) {
        item *v = malloc(N * sizeof *v);
        uint64_t sum;

        check(v);
        for (size_t i = 0; i < N; i++)
            v[i] = (item){(uint32_t)(i ^ by), (uint32_t)i};
        sum = sum_of(v, N);
        sort_by_blocks(par, &item_kernels_, NULL, v, N);
        check(are_in_order(v, N, false) && sum_of(v, N) == sum);
        for (size_t i = 0; i < N; i++)
            v[i] = (item){(uint32_t)((i + by) % N), (uint32_t)i};
        sum = sum_of(v, N);
        sort_by_blocks(par, &item_kernels_, NULL, v, N);
        check(are_in_order(v, N, false) && sum_of(v, N) == sum);
        free(v);
    }
}

static void blocks_that_go_round_in_circles_arrive(void **state)
{
    (void)state;
    in_pool_of(1, check_rotated, NULL);
    in_pool_of(2, check_rotated, NULL);
}

/* So many that the sort takes this way by itself. */
static void check_very_many(blz_par *par, void *arg)
{
    enum { N = SORT_BLOCKS + 12345 };
    item *v = items_of(N, PATTERN_RANDOM);
    uint64_t sum = sum_of(v, N), *w = values_of(N, PATTERN_RANDOM);

    (void)arg;
    memory_fail_at(the_memory(), 3, true); /* some buckets get no room */
    check(item_sort(par, v, N, NULL, NULL) == 0);
    memory_fail_at(the_memory(), 0, false);
    check(are_in_order(v, N, false) && sum_of(v, N) == sum);
    check(blz_par_radix_sort_u64(par, w, N, NULL) == 0);
    for (size_t i = 1; i < N; i++)
        check(w[i - 1] <= w[i]);
    free(v);
    free(w);
}

static void very_many_elements_are_sorted(void **state)
{
    (void)state;
    in_pool_of(1, check_very_many, NULL);
    in_pool_of(2, check_very_many, NULL);
}

/*
 * McIlroy's adversary: it decides what an element is as late as it can, so that each pivot turns
 * out to be among the least.
 */
struct adversary {
    uint32_t *values, gas, nr_solid, candidate;
    uint64_t nr_comparisons;
};

static void freeze(struct adversary *foe, uint32_t element)
{
    foe->values[element] = foe->nr_solid++;
}

static bool adverse_less(const uint32_t *a, const uint32_t *b, void *arg)
{
    struct adversary *foe = arg;

    foe->nr_comparisons++;
    if (foe->values[*a] == foe->gas && foe->values[*b] == foe->gas)
        freeze(foe, *a == foe->candidate ? *a : *b);
    if (foe->values[*a] == foe->gas)
        foe->candidate = *a;
    else if (foe->values[*b] == foe->gas)
        foe->candidate = *b;
    return foe->values[*a] < foe->values[*b];
}

BLZ_PAR_DEFINE_SORT(adverse, uint32_t, adverse_less(a, b, arg))

static void check_adversary(blz_par *par, void *arg)
{
    enum { N = 8000 };
    struct adversary foe = {malloc(N * sizeof(uint32_t)), N, 0, 0, 0};
    uint32_t *v = malloc(N * sizeof *v);

    (void)arg;
    check(foe.values && v);
    for (uint32_t i = 0; i < N; i++) {
        v[i] = i;
        foe.values[i] = foe.gas;
    }
    memory_fail_at(the_memory(), 1, true);
    check(adverse_sort(par, v, N, &foe, NULL) == 0);
    memory_fail_at(the_memory(), 0, false);
    check(foe.nr_comparisons < 100 * N); /* log2(N) is 13 */
    for (size_t i = 1; i < N; i++)
        check(foe.values[v[i - 1]] <= foe.values[v[i]]);
    free(foe.values);
    free(v);
}

static void an_adversary_does_not_make_it_quadratic(void **state)
{
    (void)state;
    in_pool_of(1, check_adversary, NULL);
}

/* ---- bad comparisons ---- */

static bool nonsense(const item *a, const item *b, void *arg)
{
    switch (*(int *)arg) {
    case 0:
        return true;
    case 1:
        return false;
    case 2:
        return mix((uint64_t)a->place << 32 ^ b->place) & 1;
    case 3:
        return (int32_t)(a->key - b->key) < 0; /* not transitive */
    default:
        return !(a->key < b->key); /* not strict */
    }
}

/* Says something else each time. */
static uint64_t moods;

static bool moody(void)
{
    return mix(__atomic_fetch_add(&moods, 1, __ATOMIC_RELAXED)) & 1;
}

BLZ_PAR_DEFINE_SORT(nonsense, item, nonsense(a, b, arg))
BLZ_PAR_DEFINE_SORT(moody, item, moody())

static void check_bad(blz_par *par, size_t n, int how, bool memory)
{
    item *v = items_of(n, PATTERN_RANDOM), *out = malloc((n + 1) * sizeof *out);
    uint64_t sum = sum_of(v, n);
    bool is_moody = how == 5;

    check(out);
    memory_fail_at(the_memory(), !memory, true);
    check((is_moody ? moody_sort : nonsense_sort)(par, v, n, &how, NULL) == 0);
    check(sum_of(v, n) == sum);
    check(n == 0 || (is_moody ? moody_kth : nonsense_kth)(par, v, n, n / 3, &how, NULL) == 0);
    check(sum_of(v, n) == sum);
    check((is_moody ? moody_merge : nonsense_merge)(par, out, v, n / 3, v + n / 3, n - n / 3, &how,
                                                    NULL) == 0);
    check(sum_of(out, n) == sum);
    memory_fail_at(the_memory(), 0, false);
    free(v);
    free(out);
}

static void check_bad_blocks(blz_par *par, int how)
{
    item *v = items_of(MOST, PATTERN_RANDOM);
    uint64_t sum = sum_of(v, MOST);

    sort_by_blocks(par, how == 5 ? &moody_kernels_ : &nonsense_kernels_, &how, v, MOST);
    check(sum_of(v, MOST) == sum);
    free(v);
}

static void check_all_bad(blz_par *par, void *arg)
{
    (void)arg;
    for (int how = 0; how < 6; how++)
        check_bad_blocks(par, how);
    for (int how = 0; how < 6; how++)
        for (int memory = 0; memory < 2; memory++) {
            for (size_t n = 0; n <= 3000; n = n < 20 ? n + 1 : n + n / 3 + 1)
                check_bad(par, n, how, memory);
            check_bad(par, MOST, how, memory);
        }
}

static void comparisons_that_make_no_sense_lose_no_element(void **state)
{
    (void)state;
    in_pool_of(1, check_all_bad, NULL);
    in_pool_of(3, check_all_bad, NULL);
}

/* ---- runs ---- */

/* Sorted runs of that length, of which there are as many as it takes. */
static void check_runs_of(blz_par *par, size_t n, size_t len)
{
    item *v = malloc(n * sizeof *v);
    uint64_t sum;

    check(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (item){(uint32_t)(i % len), (uint32_t)i};
    sum = sum_of(v, n);
    check(item_stable_sort(par, v, n, NULL, NULL) == 0);
    check(are_in_order(v, n, true) && sum_of(v, n) == sum);
    free(v);
}

static void check_runs(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 513; n < 1100; n++)
        for (size_t len = n / 64; len <= n / 64 + 1; len++)
            check_runs_of(par, n, len);
}

static void runs_that_are_just_long_enough_are_merged(void **state)
{
    (void)state;
    in_pool_of(1, check_runs, NULL);
}

/* ---- cancellation ---- */

struct fuse {
    blz_par_cancel cancel;
    int64_t left; /* comparisons */
};

static bool burn(struct fuse *fuse, const item *a, const item *b)
{
    if (__atomic_fetch_sub(&fuse->left, 1, __ATOMIC_RELAXED) == 1)
        blz_par_cancel_set(&fuse->cancel, -ECANCELED);
    return a->key < b->key;
}

BLZ_PAR_DEFINE_SORT(burning, item, burn(arg, a, b))

typedef int (*burning_fn)(blz_par *par, item *v, size_t n, void *fuse,
                          const blz_par_options *options);

static int burning_kth_5(blz_par *par, item *v, size_t n, void *fuse,
                         const blz_par_options *options)
{
    return burning_kth(par, v, n, n / 5, fuse, options);
}

/* True: it was over before it could be cancelled. */
static bool check_cancelled_at(blz_par *par, burning_fn fn, size_t n, int pattern, int64_t at)
{
    struct fuse fuse = {{0}, at};
    blz_par_options options = {.cancel = &fuse.cancel};
    item *v = items_of(n, pattern);
    uint64_t sum = sum_of(v, n);
    int rc = fn(par, v, n, &fuse, &options);

    check(rc == blz_par_cancel_code(&fuse.cancel) || rc == 0);
    check(sum_of(v, n) == sum);
    check(rc != 0 || fn == burning_kth_5 || are_in_order(v, n, false));
    free(v);
    return fuse.left > 0;
}

static void check_cancellation(blz_par *par, void *arg)
{
    static const burning_fn fns[] = {burning_sort, burning_stable_sort, burning_kth_5};
    static const int patterns[] = {PATTERN_RANDOM, PATTERN_RUNS, PATTERN_FEW_DISTINCT};

    (void)arg;
    for (size_t f = 0; f < 3; f++)
        for (size_t p = 0; p < 3; p++) {
            check_cancelled_at(par, fns[f], MOST, patterns[p], 1);
            for (int64_t at = 3; !check_cancelled_at(par, fns[f], 20000, patterns[p], at);)
                at += at;
        }
}

static void a_cancelled_sort_leaves_a_permutation(void **state)
{
    (void)state;
    in_pool_of(1, check_cancellation, NULL);
    in_pool_of(2, check_cancellation, NULL);
}

static void check_cancelled_in_place(blz_par *par, void *arg)
{
    (void)arg;
    memory_fail_at(the_memory(), 1, true);
    for (int64_t at = 3; !check_cancelled_at(par, burning_sort, 20000, PATTERN_RANDOM, at);)
        at += at;
    memory_fail_at(the_memory(), 0, false);
}

static void a_cancelled_sort_in_place_leaves_a_permutation(void **state)
{
    (void)state;
    in_pool_of(2, check_cancelled_in_place, NULL);
}

static void check_cancelled_before(blz_par *par, void *arg)
{
    blz_par_cancel cancel = {.code = -ETIMEDOUT};
    blz_par_options options = {.cancel = &cancel};
    item v[2] = {{2, 0}, {1, 1}};

    (void)arg;
    check(item_sort(par, v, 2, NULL, &options) == -ETIMEDOUT);
    check(v[0].key == 2 && v[1].key == 1);
}

static void a_sort_that_is_cancelled_already_does_nothing(void **state)
{
    (void)state;
    in_pool_of(1, check_cancelled_before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arrays_of_all_sizes_are_sorted),
        TEST(all_patterns_are_sorted_by_any_number_of_threads),
        TEST(a_sort_and_a_radix_sort_agree),
        TEST(a_span_that_divides_badly_is_merge_sorted),
        TEST(without_memory_a_sort_works_in_place_and_a_stable_one_says_so),
        TEST(a_sort_survives_the_failure_of_each_allocation),
        TEST(many_elements_are_distributed_in_place),
        TEST(blocks_that_go_round_in_circles_arrive),
        TEST(very_many_elements_are_sorted),
        TEST(an_adversary_does_not_make_it_quadratic),
        TEST(comparisons_that_make_no_sense_lose_no_element),
        TEST(runs_that_are_just_long_enough_are_merged),
        TEST(a_cancelled_sort_leaves_a_permutation),
        TEST(a_cancelled_sort_in_place_leaves_a_permutation),
        TEST(a_sort_that_is_cancelled_already_does_nothing),
    };

    return RUN_TESTS(tests);
}
