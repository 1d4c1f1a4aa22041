/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All algorithms over arrays, one like the other: cancelled at each look at the cancellation, with
 * each allocation failing in turn, waiting in every way.
 *
 * The function below stands in for blz_par_cancel_code of the library (variants.cmake), so that the
 * kth look finds what the one before it did not: k = 1, 2, ... until a call looks less often.
 * (Sanitized programs are slow: they leave some out.)
 */
#include "par.h"

#include <stdlib.h>
#include <string.h>

enum {
    MANY = 2000,
    KEYS = 10000,  /* more than the table of a block has */
    LARGE = 33000, /* more than a bucket of a shuffle has */
};

struct data {
    size_t n;
    uint64_t *in, *out;   /* out has room for 3 n + 3 words */
    size_t *index;        /* a permutation of [0, n) */
    uint32_t *few, *many; /* numbers below 7; below n */
    bool *flags;
    size_t nr; /* words of out that are the result */
};

/* ---- looks at the cancellation ---- */

static struct {
    const blz_par_cancel *cancel;
    int64_t seen, at;
} looks;

int real_blz_par_cancel_code(const blz_par_cancel *cancel);

int blz_par_cancel_code(const blz_par_cancel *cancel)
{
    if (cancel == __atomic_load_n(&looks.cancel, __ATOMIC_RELAXED) &&
        __atomic_add_fetch(&looks.seen, 1, __ATOMIC_RELAXED) == looks.at)
        blz_par_cancel_set((blz_par_cancel *)(uintptr_t)cancel, -EINTR);
    return real_blz_par_cancel_code(cancel);
}

static void cancel_at(const blz_par_cancel *cancel, int64_t at)
{
    looks.seen = 0;
    looks.at = at;
    __atomic_store_n(&looks.cancel, cancel, __ATOMIC_RELAXED);
}

/* ---- loops and folds ---- */

static int square_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const struct data *d = arg;

    (void)par;
    for (size_t i = begin; i < end; i++)
        d->out[i] = d->in[i] * d->in[i];
    return 0;
}

static int call_for(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n;
    return blz_par_for(par, d->n, square_range, d, o);
}

static int square_tile(blz_par *par, const blz_par_tile *t, void *arg)
{
    for (size_t row = t->row; row < t->row_end; row++)
        (void)square_range(par, row * 40 + t->col, row * 40 + t->col_end, arg);
    return 0;
}

static int call_for_2d(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n / 40 * 40;
    return blz_par_for_2d(par, d->n / 40, 40, square_tile, d, o);
}

static int square(void *out, const void *in, void *arg)
{
    (void)arg;
    *(uint64_t *)out = *(const uint64_t *)in * *(const uint64_t *)in;
    return 0;
}

static int call_map(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n;
    return blz_par_map(par, d->out, d->in, d->n, 8, 8, square, NULL, o);
}

static int call_fill(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n;
    return blz_par_fill(par, d->out, d->n, 8, d->in, o);
}

struct big {
    uint64_t sum[20]; /* not in a frame */
};

static const struct big zero;

static int fold_big(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    const struct data *d = arg;

    (void)par;
    for (size_t i = begin; i < end; i++)
        ((struct big *)acc)->sum[i % 20] += d->in[i];
    return 0;
}

static int add_big(void *acc, void *right, void *arg)
{
    (void)arg;
    for (int k = 0; k < 20; k++)
        ((struct big *)acc)->sum[k] += ((struct big *)right)->sum[k];
    return 0;
}

static const blz_par_reducer big_sum = {sizeof zero, &zero, fold_big, add_big, {0, 0}};

static int call_reduce(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = 20;
    return blz_par_reduce(par, d->out, d->n, &big_sum, d, o);
}

static int call_deterministic_reduce(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = 20;
    return blz_par_deterministic_reduce(par, d->out, d->n, &big_sum, d, o);
}

static bool is_the_middle(size_t i, void *arg)
{
    return i == *(size_t *)arg / 2;
}

static int call_find(blz_par *par, struct data *d, const blz_par_options *o)
{
    int rc = blz_par_find_first(par, (size_t *)d->out, d->n, is_the_middle, &d->n, o);

    d->nr = 1;
    check(rc == 0 || d->out[0] == d->n);
    return rc;
}

static int call_count(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = 1;
    return blz_par_count(par, (size_t *)d->out, d->n, is_the_middle, &d->n, o);
}

static int compare(const void *a, const void *b, void *arg)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    (void)arg;
    return (x > y) - (x < y);
}

static int call_max(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = 1;
    return blz_par_max(par, (size_t *)d->out, d->in, d->n, 8, compare, NULL, o);
}

/* ---- scans, filters ---- */

static void add(void *sum, const void *x, void *arg)
{
    (void)arg;
    *(uint64_t *)sum += *(const uint64_t *)x;
}

static int call_scan(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n;
    return blz_par_scan_inclusive(par, d->out, d->in, d->n, 8, add, NULL, o);
}

static int call_scan_of_large(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n / 10 * 10;
    return blz_par_scan_exclusive(par, d->out, NULL, d->in, d->n / 10, 80, d->in, add, NULL, o);
}

static bool is_odd(const void *x, void *arg)
{
    (void)arg;
    return *(const uint64_t *)x & 1;
}

static int call_filter(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_filter(par, d->out, &d->nr, d->in, d->n, 8, is_odd, NULL, o);
}

static int call_filter_index(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_filter_index(par, (size_t *)d->out, &d->nr, d->in, d->n, 8, is_odd, NULL, o);
}

static int call_partition(blz_par *par, struct data *d, const blz_par_options *o)
{
    size_t nr;

    d->nr = d->n;
    return blz_par_partition(par, d->out, NULL, &nr, d->in, d->n, 8, is_odd, NULL, o);
}

static int call_partition_in_two(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_partition(par, d->out, d->out + d->n, &d->nr, d->in, d->n, 8, is_odd, NULL, o);
}

static bool are_alike(const void *a, const void *b, void *arg)
{
    (void)arg;
    return (*(const uint64_t *)a & 1) == (*(const uint64_t *)b & 1);
}

static int call_unique(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_unique(par, d->out, &d->nr, d->in, d->n, 8, are_alike, NULL, o);
}

static int call_pack(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_pack(par, d->out, &d->nr, d->in, d->n, 8, d->flags, o);
}

static int call_pack_index(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_pack_index(par, (size_t *)d->out, &d->nr, d->flags, d->n, o);
}

/* ---- moves, histograms ---- */

/* Both steps. Some arrays are empty, one is nearly all. */
static int call_flatten(blz_par *par, struct data *d, const blz_par_options *o)
{
    blz_par_slice slices[101];
    size_t offsets[102];
    int rc;

    for (size_t i = 0; i < 101; i++)
        slices[i] = (blz_par_slice){d->in + i, i == 50 ? d->n - 600 : i % 10};
    rc = blz_par_offsets(par, offsets, slices, 101, o);
    d->nr = offsets[101];
    return rc < 0 ? rc : blz_par_flatten(par, d->out, slices, 101, 8, offsets, o);
}

static int call_gather(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n;
    return blz_par_gather(par, d->out, d->in, d->n, 8, d->index, d->n, o);
}

static int call_scatter(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n;
    return blz_par_scatter(par, d->out, d->n, d->in, d->n, 8, d->index, o);
}

static int64_t remainder_of(const void *x, void *arg)
{
    return (int64_t)(*(const uint64_t *)x % *(size_t *)arg);
}

static int call_histogram(blz_par *par, struct data *d, const blz_par_options *o)
{
    size_t nr = d->nr = 10;

    return blz_par_histogram(par, (size_t *)d->out, nr, d->in, d->n, 8, remainder_of, &nr, o);
}

static int call_histogram_of_many(blz_par *par, struct data *d, const blz_par_options *o)
{
    size_t nr = d->nr = d->n;

    return blz_par_histogram(par, (size_t *)d->out, nr, d->in, d->n, 8, remainder_of, &nr, o);
}

/* ---- groups, shuffling ---- */

static uint64_t hash(const void *x, void *arg)
{
    (void)arg;
    return *(const uint64_t *)x % 300;
}

static bool same(const void *a, const void *b, void *arg)
{
    return hash(a, arg) == hash(b, arg);
}

static int call_group(blz_par *par, struct data *d, const blz_par_options *o)
{
    size_t nr;
    int rc;

    memset(d->out, 0, (d->n + 300) * sizeof *d->out);
    rc = blz_par_group(par, (uint32_t *)(void *)d->out, (size_t *)d->out + d->n, &nr, d->in, d->n,
                       8, hash, same, NULL, o);
    d->nr = d->n + nr;
    return rc;
}

static int call_distinct(blz_par *par, struct data *d, const blz_par_options *o)
{
    return blz_par_distinct(par, d->out, &d->nr, d->in, d->n, 8, hash, same, NULL, o);
}

static int call_reduce_by_key(blz_par *par, struct data *d, const blz_par_options *o)
{
    size_t nr;

    d->nr = 600;
    memset(d->out, 0, d->nr * sizeof *d->out);
    return blz_par_reduce_by_key(par, d->out, d->out + 300, &nr, d->in, d->in, d->n, 8, 8, hash,
                                 same, add, NULL, o);
}

static uint64_t hash_of_all(const void *x, void *arg)
{
    (void)arg;
    return *(const uint64_t *)x;
}

static bool is_same(const void *a, const void *b, void *arg)
{
    return hash_of_all(a, arg) == hash_of_all(b, arg);
}

/* All are different: more keys than a table of a block has. */
static int call_reduce_by_many_keys(blz_par *par, struct data *d, const blz_par_options *o)
{
    size_t nr;

    d->nr = 2 * d->n;
    return blz_par_reduce_by_key(par, d->out, d->out + d->n, &nr, d->in, d->in, d->n, 8, 8,
                                 hash_of_all, is_same, add, NULL, o);
}

static int call_group_order(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = d->n + 8;
    return blz_par_group_order(par, (size_t *)d->out + d->n, (size_t *)d->out, d->few, d->n, 7, o);
}

static int call_group_order_of_many(blz_par *par, struct data *d, const blz_par_options *o)
{
    d->nr = 2 * d->n + 1;
    return blz_par_group_order(par, (size_t *)d->out + d->n, (size_t *)d->out, d->many, d->n, d->n,
                               o);
}

static uint64_t checksum(const uint64_t *v, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += mix(v[i]);
    return sum;
}

static int call_shuffle(blz_par *par, struct data *d, const blz_par_options *o)
{
    int rc;

    d->nr = d->n;
    memcpy(d->out, d->in, d->n * sizeof *d->in);
    rc = blz_par_shuffle(par, d->out, d->n, 8, 77, o);
    check(checksum(d->out, d->n) == checksum(d->in, d->n)); /* all are there, in any case */
    return rc;
}

/* ---- each of them ---- */

struct algorithm {
    int (*call)(blz_par *par, struct data *d, const blz_par_options *options);
    size_t n, grain;
    bool needs_memory; /* others are only slower without it */
};

static const struct algorithm algorithms[] = {
    {call_for, MANY, 0, false},
    {call_for_2d, MANY, 0, false},
    {call_map, MANY, 20, false},
    {call_fill, MANY, 20, false},
    {call_reduce, MANY, 20, true},
    {call_deterministic_reduce, MANY, 0, true},
    {call_find, MANY, 20, false},
    {call_count, MANY, 20, false},
    {call_max, MANY, 20, false},
    {call_scan, MANY, 100, false},
    {call_scan_of_large, MANY, 10, true},
    {call_filter, MANY, 100, false},
    {call_filter_index, MANY, 100, false},
    {call_partition, MANY, 100, false},
    {call_partition_in_two, MANY, 100, false},
    {call_unique, MANY, 100, false},
    {call_pack, MANY, 100, false},
    {call_pack_index, MANY, 100, false},
    {call_flatten, MANY, 10, false},
    {call_gather, MANY, 20, false},
    {call_scatter, MANY, 20, false},
    {call_histogram, MANY, 50, false},
    {call_histogram_of_many, MANY, 50, false},
    {call_group, MANY, 400, true},
    {call_distinct, MANY, 400, true},
    {call_reduce_by_key, MANY, 400, true},
    {call_reduce_by_many_keys, KEYS, 0, true},
    {call_group_order, LARGE, 0, true},
    {call_group_order_of_many, KEYS, 0, true},
    {call_shuffle, LARGE, 0, true},
};

enum { NR = sizeof algorithms / sizeof *algorithms };

static void *room(size_t nr, size_t size)
{
    void *p = malloc(nr * size);

    check(p);
    return p;
}

static void data_init(struct data *d, size_t n)
{
    d->n = n;
    d->in = room(n, 8);
    d->out = room(3 * n + 3, 8);
    d->index = room(n, sizeof *d->index);
    d->few = room(n, 4);
    d->many = room(n, 4);
    d->flags = room(n, 1);
    fill_pattern(d->in, n, PATTERN_RANDOM);
    for (size_t i = 0; i < n; i++) {
        d->index[i] = (i * 7919 + 1) % n;
        d->few[i] = (uint32_t)(d->in[i] % 7);
        d->many[i] = (uint32_t)(d->in[i] % n);
        d->flags[i] = d->in[i] & 1;
    }
}

static void data_free(struct data *d)
{
    free(d->in);
    free(d->out);
    free(d->index);
    free(d->few);
    free(d->many);
    free(d->flags);
}

/* The results of each algorithm when nothing goes wrong. */
static struct result {
    uint64_t *words;
    size_t nr;
} results[NR];

static void note_results(blz_par *par, void *arg)
{
    struct data d;

    (void)arg;
    for (size_t k = 0; k < NR; k++) {
        data_init(&d, algorithms[k].n);
        check(algorithms[k].call(par, &d, NULL) == 0);
        results[k] = (struct result){d.out, d.nr};
        d.out = NULL;
        data_free(&d);
    }
}

/* After a call nobody may write any more: what is written to out now stays. */
static const uint64_t the_stamp = 0x5ca1ab1e5ca1ab1e;

static void stamp(struct data *d)
{
    for (size_t i = 0; i < 3 * d->n + 3; i++)
        d->out[i] = the_stamp;
}

static void check_stamp(const struct data *d)
{
    uint64_t changed = 0;

    for (size_t i = 0; i < 3 * d->n + 3; i++)
        changed |= d->out[i] ^ the_stamp;
    check(changed == 0);
}

/* Calls it with memory that is nobody else's. */
static int call(blz_par *par, struct data *d, size_t k, const blz_par_options *options)
{
    blz_par_options o = *options;
    int64_t blocks = memory_blocks(the_memory());
    int rc;

    o.grain = algorithms[k].grain;
    rc = algorithms[k].call(par, d, &o);
    check(memory_blocks(the_memory()) == blocks);
    if (rc == 0)
        check(d->nr == results[k].nr && memcmp(d->out, results[k].words, d->nr * 8) == 0);
    stamp(d);
    return rc;
}

/* Calls body(par, &k) for each of them, in pools of 3, 1 and 5 threads; sanitized: of 3. */
static void for_each_algorithm(blz_par_fn body)
{
    static const unsigned threads[] = {3, 1, 5};

    in_pool_of(1, note_results, NULL);
    for (size_t i = 0; i < (is_sanitized() ? 1 : 3); i++) {
        for (size_t k = 0; k < NR; k++)
            in_pool_of(threads[i], body, &k);
    }
    for (size_t k = 0; k < NR; k++)
        free(results[k].words);
}

/* ---- what goes wrong ---- */

static void cancel_everywhere(blz_par *par, void *arg)
{
    size_t k = *(size_t *)arg;
    struct data d;
    int rc = -EINTR;

    data_init(&d, algorithms[k].n);
    stamp(&d);
    for (int64_t at = 1; rc != 0; at += is_sanitized() ? 1 + at / 4 : 1) {
        blz_par_cancel cancel = {0};

        check_stamp(&d);
        cancel_at(&cancel, at);
        rc = call(par, &d, k, &(blz_par_options){.cancel = &cancel});
        cancel_at(NULL, 0);
        check(rc == (real_blz_par_cancel_code(&cancel) ? -EINTR : 0));
        check(rc == 0 || at < 100000);
    }
    check_stamp(&d);
    data_free(&d);
}

static void each_can_be_cancelled_at_every_split(void **state)
{
    (void)state;
    for_each_algorithm(cancel_everywhere);
}

static void starve(blz_par *par, void *arg)
{
    size_t k = *(size_t *)arg;
    struct memory *m = the_memory();
    bool is_over = false;
    struct data d;

    data_init(&d, algorithms[k].n);
    for (int64_t nth = 1; !is_over; nth++) {
        for (int all = 0; all <= 1; all++) {
            int rc;

            memory_fail_at(m, nth, all);
            rc = call(par, &d, k, &(blz_par_options){0});
            is_over = !m->failed;
            memory_fail_at(m, 0, false);
            check(rc == 0 || (rc == -ENOMEM && !is_over && algorithms[k].needs_memory));
        }
    }
    data_free(&d);
}

static void each_survives_every_allocation_that_fails(void **state)
{
    (void)state;
    for_each_algorithm(starve);
}

static void wait_in_every_way(blz_par *par, void *arg)
{
    size_t k = *(size_t *)arg;
    struct data d;

    data_init(&d, algorithms[k].n);
    for (int way = BLZ_PAR_WAIT_DEFAULT; way <= BLZ_PAR_WAIT_BLOCK; way++)
        for (int i = 0; i < 5; i++)
            check(call(par, &d, k, &(blz_par_options){.waiting = (blz_par_wait_mode)way}) == 0);
    data_free(&d);
}

static void each_can_wait_in_every_way(void **state)
{
    (void)state;
    for_each_algorithm(wait_in_every_way);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_can_be_cancelled_at_every_split),
        TEST(each_survives_every_allocation_that_fails),
        TEST(each_can_wait_in_every_way),
    };
    return RUN_TESTS(tests);
}
