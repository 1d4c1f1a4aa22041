/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random order, that of Rao and Sandelius: each element goes to a bucket of its own choice, all
 * being equally likely, and each bucket is put into a random order by itself. Since the buckets'
 * lengths are left to chance, every order of the whole is as likely as any other.
 *
 * An element's choice is a function of the seed and its index, the order within a bucket one of
 * the seed and the bucket; their number depends on n alone. So the threads have no part in it. The
 * buckets fit into a core's cache, which makes this faster than the usual loop over all, even in
 * one thread.
 */
#include "par/distribute.h"

#include <blitz/par_group.h>

#include <blitz/error.h>
#include <string.h>

enum { BUCKET = 1 << 15, MOST_BUCKETS = 1 << 10, ROW = 1 << 15 };

typedef struct shuffle {
    char *data, *spare; /* spare gets them by buckets */
    size_t n, size, nr_buckets;
    unsigned shift; /* of a random number, to a bucket */
    uint64_t seed;
    size_t *starts;
    const blz_par_options *options;
} shuffle;

static const uint64_t golden = 0x9e3779b97f4a7c15;

/* The kth random number of a seed. */
static uint64_t random_at(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * golden;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* ---- within a bucket ---- */

typedef struct dice {
    uint64_t seed, thrown;
} dice;

/* Uniform below n: the upper half of a product; fair, since the rest of the range is refused. */
static size_t throw_below(dice *d, size_t n)
{
    uint64_t product;
    uint32_t limit = (uint32_t)n;

    if (n > UINT32_MAX)
        return random_at(d->seed, d->thrown++) % n; /* off by less than 2^-31 */
    do
        product = (random_at(d->seed, d->thrown++) >> 32) * limit;
    while (blz_unlikely((uint32_t)product < limit) && (uint32_t)product < -limit % limit);
    return (size_t)(product >> 32);
}

/* The elements of `from` in a random order; each has been put to a random place among those so
 * far, and the one that was there has moved to the end. */
static inline __attribute__((always_inline)) void deal(char *to, const char *from, size_t n,
                                                       size_t size, dice *d)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = throw_below(d, i + 1);

        if (j != i)
            memcpy(to + i * size, to + j * size, size);
        memcpy(to + j * size, from + i * size, size);
    }
}

/* The same, for those that are in their place already. */
static inline __attribute__((always_inline)) void deal_in_place(char *data, size_t n, size_t size,
                                                                dice *d)
{
    for (size_t i = 0; i < n; i++)
        swap_elements(data + i * size, data + throw_below(d, i + 1) * size, size);
}

static void deal_few(const shuffle *s)
{
    dice d = {random_at(~s->seed, 0), 0};

    if (s->size == sizeof(uint64_t))
        deal_in_place(s->data, s->n, sizeof(uint64_t), &d);
    else
        deal_in_place(s->data, s->n, s->size, &d);
}

static void deal_bucket(const shuffle *s, size_t bucket)
{
    size_t begin = s->starts[bucket], n = s->starts[bucket + 1] - begin, at = begin * s->size;
    dice d = {random_at(~s->seed, bucket), 0};

    switch (s->size) {
    case 4:
        deal(s->data + at, s->spare + at, n, 4, &d);
        break;
    case 8:
        deal(s->data + at, s->spare + at, n, 8, &d);
        break;
    default:
        deal(s->data + at, s->spare + at, n, s->size, &d);
    }
}

static int deal_buckets(blz_par *par, size_t begin, size_t end, void *arg)
{
    const shuffle *s = arg;
    int rc = 0;

    (void)par;
    for (size_t k = begin; k < end && rc == 0; k++) {
        rc = cancelled(s->options);
        if (rc == 0)
            deal_bucket(s, k);
    }
    return rc;
}

/* ---- to the buckets ---- */

static size_t bucket_of(const shuffle *s, size_t i)
{
    return (size_t)(random_at(s->seed, i) >> s->shift);
}

static int count(size_t begin, size_t end, size_t *counts, void *arg)
{
    const shuffle *s = arg;

    for (size_t i = begin; i < end; i++)
        counts[bucket_of(s, i)]++;
    return cancelled(s->options);
}

static void move(size_t begin, size_t end, size_t *places, void *arg)
{
    const shuffle *s = arg;

    if (s->size == sizeof(uint64_t)) {
        for (size_t i = begin; i < end; i++)
            memcpy(s->spare + places[bucket_of(s, i)]++ * sizeof(uint64_t),
                   s->data + i * sizeof(uint64_t), sizeof(uint64_t));
        return;
    }
    for (size_t i = begin; i < end; i++)
        memcpy(s->spare + places[bucket_of(s, i)]++ * s->size, s->data + i * s->size, s->size);
}

static int run(blz_par *par, shuffle *s)
{
    distribution d = {s->n, ROW, s->nr_buckets, s, count, move, s->starts};
    blz_par_options each = options_with_grain(s->options, 1);
    int rc = blz__par_distribute(par, &d, s->options);

    if (rc < 0)
        return rc; /* the data is as it was */
    rc = blz_par_for(par, s->nr_buckets, deal_buckets, s, &each);
    if (rc < 0)
        memcpy(s->data, s->spare, s->n * s->size); /* all are there again */
    return rc;
}

int blz_par_shuffle(blz_par *par, void *data, size_t n, size_t size, uint64_t seed,
                    const blz_par_options *options)
{
    size_t starts[MOST_BUCKETS + 1];
    shuffle s = {.data = data, .n = n, .size = size, .nr_buckets = 1, .shift = 64};
    int rc;

    s.seed = random_at(seed, 0);
    s.starts = starts;
    s.options = options_or_defaults(options);
    rc = cancelled(s.options);
    if (rc < 0 || size == 0)
        return rc;
    if (n <= BUCKET) {
        deal_few(&s);
        return 0;
    }
    for (; s.nr_buckets < MOST_BUCKETS && s.nr_buckets * BUCKET < n; s.nr_buckets *= 2)
        s.shift--;
    s.spare = blz__par_alloc(par, n * size);
    if (!s.spare)
        return -ENOMEM;
    rc = run(par, &s);
    blz__par_free(par, s.spare, n * size);
    return rc;
}
