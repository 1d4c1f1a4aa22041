/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms.
 *
 * With few buckets each part of the array is counted in tables of its own, four of them in turn (an
 * addition to a place that has just been added to waits for the first one), which are added to the
 * result when the part is done. Parts are so long that this costs little: PART_FACTOR elements for
 * each bucket.
 *
 * With so many buckets that such parts would be too few for the threads, all add to the result
 * itself, by atomic operations: they seldom meet then.
 */
#include "par/blocks.h"

#include <blitz/par_scan.h>

#include <errno.h>
#include <string.h>

enum { PART_FACTOR = 32, PART_MIN = 1 << 14, TABLES = 4, MOST_IN_TURN = 1 << 12 };

typedef struct histogram {
    struct blz_par_arrays_ *arrays;
    blz_par_tally_fn_ tally;
    blz_par_tally_shared_fn_ tally_shared;
    size_t *counts;
    size_t nr;
} histogram;

int blz_par_out_of_range_(void)
{
    return -ERANGE;
}

/* Several tables in turn, if they stay small. */
static size_t nr_tables(const histogram *h)
{
    return h->nr <= MOST_IN_TURN ? TABLES : 1;
}

static size_t total(const size_t *tables, size_t nr, size_t count, size_t bucket)
{
    size_t sum = 0;

    for (size_t k = 0; k < count; k++)
        sum += tables[k * nr + bucket];
    return sum;
}

static int count_shared(blz_par *par, size_t begin, size_t end, void *arg)
{
    const histogram *h = arg;

    (void)par;
    return h->tally_shared(h->arrays, begin, end, h->counts, h->nr);
}

static int count_apart(blz_par *par, size_t begin, size_t end, void *arg)
{
    const histogram *h = arg;
    size_t count = nr_tables(h), size = count * h->nr * sizeof(size_t);
    size_t *tables = blz__par_alloc(par, size);
    int rc;

    if (!tables)
        return count_shared(par, begin, end, arg);
    memset(tables, 0, size);
    rc = h->tally(h->arrays, begin, end, tables, h->nr, count > 1 ? h->nr : 0);
    for (size_t k = 0; k < h->nr && rc == 0; k++) {
        size_t sum = total(tables, h->nr, count, k);
        if (sum > 0)
            blz__fetch_add(&h->counts[k], sum,
                           RELAXED); /* the loop's join shows it to the caller */
    }
    blz__par_free(par, tables, size);
    return rc;
}

static int clear(blz_par *par, size_t begin, size_t end, void *arg)
{
    const histogram *h = arg;

    (void)par;
    memset(h->counts + begin, 0, (end - begin) * sizeof *h->counts);
    return 0;
}

/* One thread, or a few elements: cancellation is looked at now and then. */
static int count_serially(blz_par *par, histogram *h, const blz_par_options *options)
{
    size_t n = h->arrays->n, part = max_size(options->grain, 1 << 20);
    bool in_turn = h->nr <= MOST_IN_TURN && n >= PART_FACTOR * h->nr;
    int rc = cancelled(options);

    for (size_t begin = 0; rc == 0 && begin < n; begin += part) {
        size_t end = n - begin < part ? n : begin + part;
        rc = in_turn ? count_apart(par, begin, end, h)
                     : h->tally(h->arrays, begin, end, h->counts, h->nr, 0);
        if (rc == 0)
            rc = cancelled(options);
    }
    return rc;
}

int blz_par_histogram_(blz_par *par, struct blz_par_arrays_ *arrays, blz_par_tally_fn_ tally,
                       blz_par_tally_shared_fn_ tally_shared, size_t *counts, size_t nr,
                       const blz_par_options *options)
{
    histogram h = {arrays, tally, tally_shared, counts, nr};
    const blz_par_options *o = options_or_defaults(options);
    size_t part = o->grain ? o->grain : max_size(PART_FACTOR * nr, PART_MIN);
    blz_par_options apart = options_with_grain(o, part), any = options_with_grain(o, 0);
    unsigned threads = nr_threads_of(par);
    int rc = blz_par_for(par, nr, clear, &h, &any);

    if (rc < 0)
        return rc;
    if (threads == 1 || (o->grain == 0 && arrays->n <= PART_MIN))
        return count_serially(par, &h, o);
    if (part <= arrays->n / threads)
        return blz_par_for(par, arrays->n, count_apart, &h, &apart);
    return blz_par_for(par, arrays->n, count_shared, &h, o);
}

/* ---- elements of any size ---- */

typedef struct by_callback {
    struct blz_par_arrays_ arrays; /* first: it is what the loop over a part gets */
    size_t size;
    blz_par_bucket_fn bucket;
} by_callback;

/* The bucket of element i, or an error. */
static int64_t bucket_of(const by_callback *b, size_t i, size_t nr)
{
    int64_t k = b->bucket((const char *)b->arrays.in + i * b->size, b->arrays.arg);

    return k >= 0 && (uint64_t)k >= nr ? -ERANGE : k;
}

static int tally_by_callback(void *arg, size_t begin, size_t end, size_t *counts, size_t nr,
                             size_t stride)
{
    (void)stride;
    for (size_t i = begin; i < end; i++) {
        int64_t k = bucket_of(arg, i, nr);
        if (k < 0)
            return (int)k;
        counts[k]++;
    }
    return 0;
}

static int tally_shared_by_callback(void *arg, size_t begin, size_t end, size_t *counts, size_t nr)
{
    for (size_t i = begin; i < end; i++) {
        int64_t k = bucket_of(arg, i, nr);
        if (k < 0)
            return (int)k;
        blz__fetch_add(&counts[k], (size_t)1, RELAXED); /* as in count_apart */
    }
    return 0;
}

int blz_par_histogram(blz_par *par, const void *in, size_t n, size_t size, size_t *counts,
                      size_t nr, blz_par_bucket_fn bucket, void *arg,
                      const blz_par_options *options)
{
    by_callback b = {{in, NULL, NULL, n, arg}, size, bucket};

    return blz_par_histogram_(par, &b.arrays, tally_by_callback, tally_shared_by_callback, counts,
                              nr, options);
}
