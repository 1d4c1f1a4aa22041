/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms.
 *
 * Each thread counts in a table of its own, and the tables are added up at the end. A thread takes
 * one that nobody uses for each part of the array that it counts; so there are as many tables as
 * there were threads at work. A small one is in truth four that take turns: an addition to a place
 * that has just been added to waits for the first one.
 *
 * With so many buckets that the tables would cost more than the counting, or without memory for
 * them, all add to the result itself, by atomic operations: they seldom meet then.
 */
#include "par/blocks.h"

#include <blitz/par_scan.h>

#include <blitz/error.h>
#include <string.h>

enum {
    PART_MIN = 1 << 14,  /* elements for which one thread is enough */
    WORTH = 4,           /* elements for each bucket, from which tables of their own pay */
    IN_TURN = 4,         /* tables that take turns, */
    IN_TURN_MOST = 4096, /* if they have so few buckets */
    MOST_TABLES = 64,
};

typedef struct table {
    size_t *counts; /* NULL: not used yet; else of sub_tables * nr elements */
    uint32_t is_taken;
} table;

typedef struct histogram {
    struct blz_par_arrays_ *arrays;
    blz_par_tally_fn_ tally;
    blz_par_tally_shared_fn_ tally_shared;
    size_t *counts;
    size_t nr, sub_tables;
    unsigned nr_tables;
    table tables[MOST_TABLES];
} histogram;

int blz_par_out_of_range_(void)
{
    return -ERANGE;
}

/* ---- tables ---- */

static size_t table_size(const histogram *h)
{
    return h->sub_tables * h->nr * sizeof(size_t);
}

/* One that is free and has its counters; NULL: there is none. */
static table *take_table(blz_par *par, histogram *h)
{
    for (unsigned k = 0; k < h->nr_tables; k++) {
        table *t = &h->tables[(blz_par_index(par) + k) % h->nr_tables];

        /* acquire: pairs with the release in put_table */
        if (blz__load(&t->is_taken, RELAXED) || blz__swap(&t->is_taken, 1u, ACQUIRE))
            continue;
        if (!t->counts) {
            t->counts = blz__par_alloc(par, table_size(h));
            if (!t->counts)
                return NULL; /* and nobody else tries */
            memset(t->counts, 0, table_size(h));
        }
        return t;
    }
    return NULL;
}

static void put_table(table *t)
{
    blz__store(&t->is_taken, 0u, RELEASE); /* pairs with the acquire in take_table */
}

static void free_tables(blz_par *par, histogram *h)
{
    for (unsigned k = 0; k < h->nr_tables; k++)
        blz__par_free(par, h->tables[k].counts, table_size(h));
}

/* ---- counting ---- */

static int clear(blz_par *par, size_t begin, size_t end, void *arg)
{
    const histogram *h = arg;

    (void)par;
    memset(h->counts + begin, 0, (end - begin) * sizeof *h->counts);
    return 0;
}

static int count_part(blz_par *par, size_t begin, size_t end, void *arg)
{
    histogram *h = arg;
    table *t = take_table(par, h);
    int rc;

    if (!t)
        return h->tally_shared(begin, end, h->counts, h->nr, h->arrays);
    rc = h->tally(begin, end, t->counts, h->nr, h->sub_tables > 1 ? h->nr : 0, h->arrays);
    put_table(t);
    return rc;
}

static int add_up(blz_par *par, size_t begin, size_t end, void *arg)
{
    const histogram *h = arg;

    (void)par;
    for (unsigned k = 0; k < h->nr_tables; k++) {
        const size_t *counts = h->tables[k].counts;

        for (size_t s = 0; counts && s < h->sub_tables; s++, counts += h->nr)
            for (size_t i = begin; i < end; i++)
                h->counts[i] += counts[i];
    }
    return 0;
}

/* Cancellation is looked at now and then. */
static int count_serially(histogram *h, const blz_par_options *options)
{
    size_t n = h->arrays->n, part = 1 << 20;
    int rc = cancelled(options);

    for (size_t begin = 0; rc == 0 && begin < n; begin += part) {
        size_t end = n - begin < part ? n : begin + part;

        rc = h->tally(begin, end, h->counts, h->nr, 0, h->arrays);
        if (rc == 0)
            rc = cancelled(options);
    }
    return rc;
}

static unsigned tables_worth(const histogram *h, unsigned threads)
{
    return h->nr > 0 && h->nr <= h->arrays->n / WORTH ? min_size(threads + 1, MOST_TABLES) : 0;
}

int blz_par_histogram_(blz_par *par, struct blz_par_arrays_ *arrays, blz_par_tally_fn_ tally,
                       blz_par_tally_shared_fn_ tally_shared, size_t *counts, size_t nr,
                       const blz_par_options *options)
{
    histogram h = {.arrays = arrays, .tally = tally, .tally_shared = tally_shared};
    const blz_par_options *o = options_or_defaults(options);
    blz_par_options part = options_with_grain(o, o->grain ? o->grain : PART_MIN);
    blz_par_options any = options_with_grain(o, 0);
    unsigned threads = nr_threads_of(par);
    int rc;

    h.counts = counts;
    h.nr = nr;
    h.sub_tables = nr <= IN_TURN_MOST ? IN_TURN : 1;
    rc = blz_par_for(par, nr, clear, &h, &any);
    if (rc < 0)
        return rc;
    if (arrays->n <= part.grain || (threads == 1 && h.sub_tables == 1))
        return count_serially(&h, o);
    h.nr_tables = tables_worth(&h, threads);
    rc = blz_par_for(par, arrays->n, count_part, &h, &part);
    if (rc == 0)
        rc = blz_par_for(par, nr, add_up, &h, &any);
    free_tables(par, &h);
    return rc;
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

static int tally_by_callback(size_t begin, size_t end, size_t *counts, size_t nr, size_t stride,
                             void *arg)
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

static int tally_shared_by_callback(size_t begin, size_t end, size_t *counts, size_t nr, void *arg)
{
    for (size_t i = begin; i < end; i++) {
        int64_t k = bucket_of(arg, i, nr);
        if (k < 0)
            return (int)k;
        blz__fetch_add(&counts[k], (size_t)1, RELAXED); /* the join shows it to the caller */
    }
    return 0;
}

int blz_par_histogram(blz_par *par, size_t *counts, size_t nr, const void *in, size_t n,
                      size_t size, blz_par_bucket_fn bucket, void *arg,
                      const blz_par_options *options)
{
    by_callback b = {{in, NULL, NULL, n, arg}, size, bucket};

    return blz_par_histogram_(par, &b.arrays, tally_by_callback, tally_shared_by_callback, counts,
                              nr, options);
}
