/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms over elements that have no bytes, over no elements, into no groups. */
#include "par.h"

#include <string.h>

enum { N = 1000 };

/* All elements are here; nobody may write to it. */
static char place;

/* ---- no bytes ---- */

struct tally {
    int calls, odd; /* of all calls; every second one says yes */
};

static int count_map(void *out, const void *in, void *arg)
{
    check(out == &place && in == &place);
    __atomic_fetch_add(&((struct tally *)arg)->calls, 1, __ATOMIC_RELAXED);
    return 0;
}

static int compare(const void *a, const void *b, void *arg)
{
    (void)arg;
    check(a == &place && b == &place);
    return 0;
}

static void check_loops(blz_par *par, void *arg)
{
    struct tally tally = {0};
    size_t index;

    (void)arg;
    check(blz_par_map(par, &place, &place, N, 0, 0, count_map, &tally, NULL) == 0);
    check(tally.calls == N);
    check(blz_par_fill(par, &place, N, 0, &place, NULL) == 0);
    check(blz_par_min(par, &index, &place, N, 0, compare, NULL, NULL) == 0 && index == 0);
    check(blz_par_max(par, &index, &place, N, 0, compare, NULL, NULL) == 0 && index == 0);
}

static int fold_nothing(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    (void)par, (void)acc;
    __atomic_fetch_add(&((struct tally *)arg)->calls, (int)(end - begin), __ATOMIC_RELAXED);
    return 0;
}

static int combine_nothing(void *acc, void *right, void *arg)
{
    (void)acc, (void)right, (void)arg;
    return 0;
}

static void check_folds(blz_par *par, void *arg)
{
    static const blz_par_reducer nothing = {0, NULL, fold_nothing, combine_nothing, {0, 0}};
    struct tally tally = {0};

    (void)arg;
    check(blz_par_reduce(par, NULL, N, &nothing, &tally, NULL) == 0 && tally.calls == N);
    check(blz_par_deterministic_reduce(par, NULL, N, &nothing, &tally, NULL) == 0);
    check(tally.calls == 2 * N);
}

static void count_op(void *sum, const void *x, void *arg)
{
    (void)sum, (void)x;
    __atomic_fetch_add(&((struct tally *)arg)->calls, 1, __ATOMIC_RELAXED);
}

static bool keep(const void *x, void *arg)
{
    (void)arg;
    check(x == &place);
    return true;
}

static bool is_equal(const void *a, const void *b, void *arg)
{
    (void)arg;
    check(a == &place && b == &place);
    return true;
}

static void check_scans_with(blz_par *par, const blz_par_options *o)
{
    struct tally tally = {0};
    size_t nr, indices[N];
    bool flags[N] = {false};

    flags[1] = flags[N - 1] = true;
    check(blz_par_scan_inclusive(par, &place, &place, N, 0, count_op, &tally, o) == 0);
    check(tally.calls >= N - 1);
    check(blz_par_scan_exclusive(par, &place, &place, &place, N, 0, &place, count_op, &tally, o) ==
          0);
    check(blz_par_filter(par, &place, &nr, &place, N, 0, keep, NULL, o) == 0 && nr == N);
    check(blz_par_filter_index(par, indices, &nr, &place, N, 0, keep, NULL, o) == 0 && nr == N);
    check(indices[N - 1] == N - 1);
    check(blz_par_partition(par, &place, NULL, &nr, &place, N, 0, keep, NULL, o) == 0 && nr == N);
    check(blz_par_partition(par, &place, &place, &nr, &place, N, 0, keep, NULL, o) == 0);
    check(blz_par_unique(par, &place, &nr, &place, N, 0, is_equal, NULL, o) == 0 && nr == 1);
    check(blz_par_pack(par, &place, &nr, &place, N, 0, flags, o) == 0 && nr == 2);
}

static void check_scans(blz_par *par, void *arg)
{
    (void)arg;
    check_scans_with(par, NULL);
    check_scans_with(par, &(blz_par_options){.grain = 7});
}

static int64_t to_bucket(const void *x, void *arg)
{
    (void)arg;
    check(x == &place);
    return 1;
}

static void check_moves(blz_par *par, void *arg)
{
    size_t index[N] = {0}, counts[2];
    blz_par_slice slices[2] = {{&place, 300}, {&place, 700}};
    size_t offsets[3];

    (void)arg;
    check(blz_par_offsets(par, offsets, slices, 2, NULL) == 0 && offsets[2] == N);
    check(blz_par_flatten(par, &place, slices, 2, 0, offsets, NULL) == 0);
    check(blz_par_gather(par, &place, &place, 1, 0, index, N, NULL) == 0);
    check(blz_par_scatter(par, &place, 1, &place, N, 0, index, NULL) == 0);
    index[N - 1] = 1;
    check(blz_par_gather(par, &place, &place, 1, 0, index, N, NULL) == -ERANGE);
    check(blz_par_histogram(par, counts, 2, &place, N, 0, to_bucket, NULL, NULL) == 0);
    check(counts[0] == 0 && counts[1] == N);
    check(blz_par_shuffle(par, &place, N, 0, 1, NULL) == 0);
    check(blz_par_shuffle(par, &place, 1000000, 0, 1, NULL) == 0);
}

static uint64_t hash(const void *x, void *arg)
{
    (void)arg;
    check(x == &place);
    return 5;
}

static bool is_same(const void *a, const void *b, void *arg)
{
    (void)arg;
    check(a == &place && b == &place);
    return true;
}

static void check_groups(blz_par *par, void *arg)
{
    blz_par_options o = {.grain = 100};
    struct tally tally = {0};
    uint32_t ids[N];
    size_t first, nr;

    (void)arg;
    check(blz_par_group(par, ids, &first, &nr, &place, N, 0, hash, is_same, NULL, &o) == 0);
    check(nr == 1 && first == 0 && ids[0] == 0 && ids[N - 1] == 0);
    check(blz_par_distinct(par, &place, &nr, &place, N, 0, hash, is_same, NULL, &o) == 0);
    check(nr == 1);
    check(blz_par_reduce_by_key(par, &place, &place, &nr, &place, &place, N, 0, 0, hash, is_same,
                                count_op, &tally, &o) == 0);
    check(nr == 1 && tally.calls == N - 1);
}

static void elements_need_no_bytes(void **state)
{
    (void)state;
    in_pools(check_loops, NULL);
    in_pools(check_folds, NULL);
    in_pools(check_scans, NULL);
    in_pools(check_moves, NULL);
    in_pools(check_groups, NULL);
    assert_int_equal(place, 0);
}

/* ---- no elements ---- */

static void check_nothing(blz_par *par, void *arg)
{
    struct tally none = {0};
    uint64_t first = 3, total = 0;
    size_t nr = 7, offsets[1] = {9}, counts[1] = {9};

    (void)arg;
    check(blz_par_map(par, NULL, NULL, 0, 8, 8, count_map, &none, NULL) == 0);
    check(blz_par_fill(par, NULL, 0, 8, &first, NULL) == 0);
    check(blz_par_scan_inclusive(par, NULL, NULL, 0, 8, count_op, &none, NULL) == 0);
    check(blz_par_scan_exclusive(par, NULL, &total, NULL, 0, 8, &first, count_op, &none, NULL) ==
          0);
    check(total == 3);
    check(blz_par_filter(par, NULL, &nr, NULL, 0, 8, keep, NULL, NULL) == 0 && nr == 0);
    check(blz_par_partition(par, NULL, NULL, &nr, NULL, 0, 8, keep, NULL, NULL) == 0 && nr == 0);
    check(blz_par_unique(par, NULL, &nr, NULL, 0, 8, is_equal, NULL, NULL) == 0 && nr == 0);
    check(blz_par_offsets(par, offsets, NULL, 0, NULL) == 0 && offsets[0] == 0);
    check(blz_par_flatten(par, NULL, NULL, 0, 8, offsets, NULL) == 0);
    check(blz_par_gather(par, NULL, NULL, 0, 8, NULL, 0, NULL) == 0);
    check(blz_par_scatter(par, NULL, 0, NULL, 0, 8, NULL, NULL) == 0);
    check(blz_par_histogram(par, counts, 1, NULL, 0, 8, to_bucket, NULL, NULL) == 0);
    check(counts[0] == 0);
    check(blz_par_histogram(par, NULL, 0, NULL, 0, 8, to_bucket, NULL, NULL) == 0);
    check(blz_par_group(par, NULL, NULL, &nr, NULL, 0, 8, hash, is_same, NULL, NULL) == 0);
    check(nr == 0);
    check(blz_par_shuffle(par, NULL, 0, 8, 1, NULL) == 0);
    check(none.calls == 0);
}

static void without_elements_there_is_nothing_to_do(void **state)
{
    (void)state;
    in_pools(check_nothing, NULL);
}

/* ---- no groups, no buckets ---- */

static void check_no_groups(blz_par *par, void *arg)
{
    uint32_t ids[N] = {0};
    size_t offsets[1] = {9}, order[N];
    blz_par_cancel cancel = {0};
    blz_par_options o = {.cancel = &cancel};

    (void)arg;
    check(blz_par_group_order(par, offsets, NULL, NULL, 0, 0, &o) == 0 && offsets[0] == 0);
    check(blz_par_group_order(par, offsets, order, ids, N, 0, &o) == -ERANGE);
    check(blz_par_group_order(par, offsets, order, ids, 1, 0, &o) == -ERANGE);
    check(blz_par_histogram(par, NULL, 0, &place, N, 0, to_bucket, NULL, &o) == -ERANGE);
    blz_par_cancel_set(&cancel, -EINTR);
    check(blz_par_group_order(par, offsets, NULL, NULL, 0, 0, &o) == -EINTR);
    check(blz_par_fill(par, &place, N, 0, &place, &o) == -EINTR);
    check(blz_par_shuffle(par, &place, N, 0, 1, &o) == -EINTR);
}

static void without_groups_any_number_is_out_of_range(void **state)
{
    (void)state;
    in_pools(check_no_groups, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(elements_need_no_bytes),
        TEST(without_elements_there_is_nothing_to_do),
        TEST(without_groups_any_number_is_out_of_range),
    };
    return RUN_TESTS(tests);
}
