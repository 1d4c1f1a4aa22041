/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten, gather, scatter, histograms: against loops; out of range, cancelled, without memory. */
#include "par.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

/* ---- flatten ---- */

/* Slices of many lengths of one array: empty ones, short ones, one that is nearly all. */
static size_t length_of(size_t i, int pattern)
{
    switch (pattern) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return mix(i) % 5;
    case 3:
        return i == 7 ? 3000 : mix(i) % 2;
    default:
        return i % 2 * 50;
    }
}

static void check_flatten_of(blz_par *par, size_t nr, int pattern)
{
    static uint32_t data[MOST], out[100 * MOST], expected[100 * MOST];
    blz_par_slice slices[300];
    size_t offsets[301], total = 0;
    blz_par_options o = {.grain = nr / 9 + 1};

    fill_pattern((uint64_t *)(void *)data, MOST / 2, PATTERN_RANDOM);
    for (size_t i = 0; i < nr; i++) {
        slices[i] = (blz_par_slice){data + i, length_of(i, pattern)};
        if (slices[i].len > 0)
            memcpy(expected + total, slices[i].data, slices[i].len * sizeof *data);
        total += slices[i].len;
    }
    check(blz_par_offsets(par, offsets, slices, nr, &o) == 0 && offsets[nr] == total);
    check(blz_par_flatten(par, out, slices, nr, sizeof *data, offsets, &o) == 0);
    check(memcmp(out, expected, total * sizeof *out) == 0);
}

static void check_flatten(blz_par *par, void *arg)
{
    (void)arg;
    for (int pattern = 0; pattern <= 4; pattern++)
        for (size_t nr = 0; nr <= 300; nr = next_size(nr))
            check_flatten_of(par, nr, pattern);
}

static void flatten_puts_arrays_one_behind_the_other(void **state)
{
    (void)state;
    in_pools(check_flatten, NULL);
}

/* ---- gather and scatter ---- */

static void check_moves_of(blz_par *par, size_t n, size_t size)
{
    char *in = malloc(2 * n * size + 1), *out = in + n * size;
    size_t *index = malloc(n * sizeof *index + 1);
    blz_par_options o = {.grain = n / 9 + 1};

    check(in && index);
    for (size_t i = 0; i < n * size; i++)
        in[i] = (char)mix(i);
    for (size_t i = 0; i < n; i++)
        index[i] = mix(i) % n;
    check(blz_par_gather(par, out, in, n, size, index, n, &o) == 0);
    for (size_t i = 0; i < n; i++)
        check(memcmp(out + i * size, in + index[i] * size, size) == 0);
    for (size_t i = 0; i < n; i++)
        index[i] = (i + n / 3) % n; /* all different */
    check(blz_par_scatter(par, out, n, in, n, size, index, &o) == 0);
    for (size_t i = 0; i < n; i++)
        check(memcmp(out + index[i] * size, in + i * size, size) == 0);
    free(in);
    free(index);
}

static void check_moves(blz_par *par, void *arg)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 100};

    (void)arg;
    for (size_t n = 0; n <= 1000; n = next_size(n))
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_moves_of(par, n, sizes[k]);
}

static void gather_and_scatter_move_elements_of_any_size(void **state)
{
    (void)state;
    in_pools(check_moves, NULL);
}

static void check_bad_indices(blz_par *par, void *arg)
{
    enum { N = 100 };
    uint64_t in[N] = {0}, out[N];
    size_t index[N];
    blz_par_options o = {.grain = 7};

    (void)arg;
    for (size_t i = 0; i < N; i++)
        index[i] = i;
    for (size_t bad = 0; bad < N; bad++) {
        index[bad] = N;
        check(blz_par_gather(par, out, in, N, 8, index, N, &o) == -ERANGE);
        check(blz_par_scatter(par, out, N, in, N, 8, index, &o) == -ERANGE);
        index[bad] = bad;
    }
}

static void an_index_out_of_range_is_an_error(void **state)
{
    (void)state;
    in_pools(check_bad_indices, NULL);
}

/* ---- histograms ---- */

BLZ_PAR_DEFINE_HISTOGRAM(low_bits, uint64_t, x % *(uint64_t *)arg)
BLZ_PAR_DEFINE_HISTOGRAM(byte, uint8_t, x)

static int64_t low_bits_of(const void *x, void *arg)
{
    return (int64_t)(*(const uint64_t *)x % *(uint64_t *)arg);
}

static void check_histogram_of(blz_par *par, const uint64_t *in, size_t n, uint64_t nr)
{
    size_t *counts = malloc(2 * nr * sizeof *counts), *expected = counts + nr;
    blz_par_options o = {.grain = n / 13 + 1};

    check(counts);
    memset(expected, 0, nr * sizeof *expected);
    for (size_t i = 0; i < n; i++)
        expected[in[i] % nr]++;
    for (int way = 0; way < 3; way++) {
        memset(counts, 0xff, nr * sizeof *counts);
        if (way < 2)
            check(low_bits_histogram(par, counts, nr, in, n, &nr, way ? &o : NULL) == 0);
        else
            check(blz_par_histogram(par, counts, nr, in, n, 8, low_bits_of, &nr, &o) == 0);
        check(memcmp(counts, expected, nr * sizeof *counts) == 0);
    }
    free(counts);
}

static void check_histograms(blz_par *par, void *arg)
{
    static const uint64_t numbers[] = {1, 2, 7, 256, 5000};
    static uint64_t in[MOST];

    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        fill_pattern(in, MOST, pattern);
        for (size_t n = 0; n <= MOST; n = n < 4 ? n + 1 : 4 * n)
            for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
                check_histogram_of(par, in, n, numbers[k]);
    }
}

static void a_histogram_counts_what_a_loop_counts(void **state)
{
    (void)state;
    in_pools(check_histograms, NULL);
}

static void check_large_histograms(blz_par *par, void *arg)
{
    enum { N = 200000 };
    uint64_t *in = malloc(N * sizeof *in);
    size_t counts[256], total = 0;

    (void)arg;
    check(in);
    fill_pattern(in, N, PATTERN_RANDOM);
    check_histogram_of(par, in, N, 100);    /* in tables, in turn */
    check_histogram_of(par, in, N, 3000);   /* in tables */
    check_histogram_of(par, in, N, 150000); /* by atomic operations */
    check(byte_histogram(par, counts, 256, (const uint8_t *)in, N * sizeof *in, NULL, NULL) == 0);
    for (size_t k = 0; k < 256; k++)
        total += counts[k];
    check(total == N * sizeof *in);
    free(in);
}

static void a_large_histogram_is_counted_in_other_ways(void **state)
{
    (void)state;
    in_pools(check_large_histograms, NULL);
}

static int64_t fail_at(const void *x, void *arg)
{
    return *(const uint64_t *)x == *(uint64_t *)arg ? -EILSEQ : 0;
}

static void check_bad_buckets(blz_par *par, void *arg)
{
    enum { N = 100 };
    uint64_t in[N], many = 1000;
    size_t counts[2];

    (void)arg;
    fill_pattern(in, N, PATTERN_EQUAL);
    for (size_t grain = 0; grain <= 100; grain += 20) {
        blz_par_options o = {.grain = grain};
        for (size_t bad = 0; bad < N; bad++) {
            in[bad] = 700 + bad;
            check(low_bits_histogram(par, counts, 2, in, N, &many, &o) == -ERANGE);
            check(blz_par_histogram(par, counts, 2, in, N, 8, low_bits_of, &many, &o) == -ERANGE);
            check(blz_par_histogram(par, counts, 2, in, N, 8, fail_at, &in[bad], &o) == -EILSEQ);
            in[bad] = 1;
        }
    }
}

static void a_bucket_out_of_range_is_an_error(void **state)
{
    (void)state;
    in_pools(check_bad_buckets, NULL);
}

static void check_without_memory(blz_par *par, void *arg)
{
    static uint64_t in[MOST];

    (void)arg;
    fill_pattern(in, MOST, PATTERN_RANDOM);
    memory_fail_at(the_memory(), 1, true);
    check_histogram_of(par, in, MOST, 10);
    memory_fail_at(the_memory(), 0, false);
}

static void without_memory_a_histogram_is_slower(void **state)
{
    (void)state;
    in_pools(check_without_memory, NULL);
}

static void check_cancelled(blz_par *par, void *arg)
{
    uint64_t in[10] = {0}, out[10], one = 1;
    size_t index[10] = {0}, counts[1], nr;
    blz_par_cancel cancel = {0};
    blz_par_options o = {.cancel = &cancel};
    blz_par_slice slice = {in, 10};
    size_t offsets[2] = {0, 10};

    (void)arg;
    (void)nr;
    blz_par_cancel_set(&cancel, -EINTR);
    check(blz_par_offsets(par, offsets, &slice, 1, &o) == -EINTR);
    offsets[1] = 10;
    check(blz_par_flatten(par, out, &slice, 1, 8, offsets, &o) == -EINTR);
    check(blz_par_gather(par, out, in, 10, 8, index, 10, &o) == -EINTR);
    check(blz_par_scatter(par, out, 10, in, 1, 8, index, &o) == -EINTR);
    check(low_bits_histogram(par, counts, 1, in, 10, &one, &o) == -EINTR);
}

static void what_is_cancelled_does_not_begin(void **state)
{
    (void)state;
    in_pools(check_cancelled, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(flatten_puts_arrays_one_behind_the_other),
        TEST(gather_and_scatter_move_elements_of_any_size),
        TEST(an_index_out_of_range_is_an_error),
        TEST(a_histogram_counts_what_a_loop_counts),
        TEST(a_large_histogram_is_counted_in_other_ways),
        TEST(a_bucket_out_of_range_is_an_error),
        TEST(without_memory_a_histogram_is_slower),
        TEST(what_is_cancelled_does_not_begin),
    };
    return RUN_TESTS(tests);
}
