/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a span is distributed: by splitters out of a sorted sample, or, if the
 * elements have keys, by the highest digit in which these differ.
 *
 * Splitters that are equal show that one value is frequent. Then each is kept
 * once, and what equals a splitter gets a bucket of its own, that need not be
 * sorted.
 */
#include "par/sort.h"

#include <string.h>

enum {
    WANTED = 64,         /* elements of a bucket */
    MAX_LOG = 8,         /* of buckets */
    MAX_LOG_OF_MANY = 9, /* if there are many elements: saves a level of the rest */
    MANY = 1 << 20,      /* those are many */
    SAMPLE_OF_MANY = 16, /* elements of the sample for a bucket */
    SAMPLE_OF_SOME = 2,
    WANTED_DIGIT = 16, /* the same where buckets are cheaper */
    MAX_LOG_DIGIT = 11,
    MAX_LOG_DIGIT_OF_MANY = 9, /* in place: their buffers should stay in the cache */
};

_Static_assert(2 << MAX_LOG_OF_MANY << 4 <= SORT_SAMPLE_ROOM && SAMPLE_OF_MANY <= 1 << 4,
               "room for two samples");

static unsigned log_of_buckets(size_t n, size_t wanted, unsigned most)
{
    unsigned log = 1;

    while (log < most && n >> log > wanted)
        log++;
    return log;
}

/* ---- by digits ---- */

static unsigned differing_bits(blz_par *par, const sorter *s, const span *sp)
{
    uint64_t differing = blz__sort_differing(par, s, sp);

    return differing ? 64 - (unsigned)__builtin_clzll(differing) : 0;
}

static bool choose_digit(blz_par *par, const sorter *s, const span *sp, struct blz_sort_split_ *by)
{
    unsigned bits = sp->bits ? sp->bits : differing_bits(par, s, sp);
    unsigned most = sp->n >= SORT_BLOCKS ? MAX_LOG_DIGIT_OF_MANY : MAX_LOG_DIGIT;
    unsigned log = log_of_buckets(sp->n, WANTED_DIGIT, most);

    if (bits == 0)
        return false;
    log = bits < log ? bits : log;
    *by = (struct blz_sort_split_){.log = log, .shift = bits - log};
    return true;
}

/* ---- by splitters ---- */

void blz__sort_sample(const sorter *s, const span *sp, size_t size)
{
    blz__rng rng;

    blz__rng_init(&rng, sp->n);
    for (size_t i = 0; i < size; i++) {
        size_t from = (size_t)(blz__rng_next(&rng) % sp->n);
        memcpy(sort_at(s, sp->spare, i), sort_at(s, sp->v, from), s->k->size);
    }
    s->k->leaf(sp->spare, sort_at(s, sp->spare, size), size, false, s->arg);
}

/* Keeps one of each; tells how many these are. */
static size_t drop_equal(const sorter *s, char *sorted, size_t n)
{
    size_t kept = 1;

    for (size_t i = 1; i < n; i++)
        if (sort_less(s, sort_at(s, sorted, kept - 1), sort_at(s, sorted, i))) {
            if (i != kept)
                memcpy(sort_at(s, sorted, kept), sort_at(s, sorted, i), s->k->size);
            kept++;
        }
    return kept;
}

void blz__sort_make_tree(const sorter *s, struct blz_sort_split_ *by)
{
    size_t nr = (size_t)1 << by->log;
    char *tree = sort_at(s, by->sorted, nr);

    for (size_t level = 1, step = nr / 2; level < nr; level *= 2, step /= 2)
        for (size_t i = 0; i < level; i++)
            memcpy(sort_at(s, tree, level + i), sort_at(s, by->sorted, step - 1 + 2 * i * step),
                   s->k->size);
    by->tree = tree;
}

/* Of `kept` splitters as many as fill a tree: the last one again and again. */
static void fill_up(const sorter *s, char *sorted, size_t kept, struct blz_sort_split_ *by)
{
    by->log = 1;
    while (((size_t)1 << by->log) - 1 < kept)
        by->log++;
    for (size_t i = kept; i < ((size_t)1 << by->log) - 1; i++)
        memcpy(sort_at(s, sorted, i), sort_at(s, sorted, kept - 1), s->k->size);
}

static void choose_splitters(const sorter *s, const span *sp, struct blz_sort_split_ *by)
{
    size_t each = sp->n >= MANY ? SAMPLE_OF_MANY : SAMPLE_OF_SOME;
    unsigned most = sp->n >= MANY ? MAX_LOG_OF_MANY : MAX_LOG;
    size_t nr = ((size_t)1 << log_of_buckets(sp->n, WANTED, most)) - 1;
    char *sorted = sp->spare; /* on top of the sample, which is used up from below */
    size_t kept;

    blz__sort_sample(s, sp, (nr + 1) * each - 1);
    for (size_t i = 0; i < nr; i++)
        memcpy(sort_at(s, sorted, i), sort_at(s, sp->spare, (i + 1) * each - 1), s->k->size);
    kept = drop_equal(s, sorted, nr);
    *by = (struct blz_sort_split_){.sorted = sorted, .equal = kept < nr};
    fill_up(s, sorted, kept, by);
    blz__sort_make_tree(s, by);
}

bool blz__sort_choose(blz_par *par, const sorter *s, const span *sp, struct blz_sort_split_ *by)
{
    if (s->k->differing)
        return choose_digit(par, s, sp, by);
    choose_splitters(s, sp, by);
    return true;
}
