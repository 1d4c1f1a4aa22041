/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the sorts know of each other. See docs/design/par_sort.md.
 */
#ifndef BLZ_PAR_SORT_H
#define BLZ_PAR_SORT_H

#include "par/blocks.h"

#include <blitz/par_sort.h>

enum {
    SORT_LEAF = 512,       /* at most so many elements are sorted by the leaf kernel alone */
    SORT_FORK = 2048,      /* fewer are not worth a fork */
    SORT_LEVELS = 6,       /* of distributions; then it is a merge sort */
    SORT_STACK = 4096,     /* bytes of an array that is sorted without memory from the heap */
    SORT_SHARED = 65536,   /* more elements are distributed by several threads */
    SORT_BLOCKS = 1 << 18, /* so many are distributed in place, if they need not stay in order... */
    SORT_BLOCKS_SIZE = 64, /* ...and are not larger */
    SORT_SAMPLE_ROOM = 2 << 13, /* elements, for the largest sample and for its splitters */
};

/* One call of a sort. */
typedef struct sorter {
    const struct blz_sort_kernels_ *k;
    void *arg; /* of the comparison */
    const blz_par_options *options;
} sorter;

/* Elements to be sorted, with as much room at `spare`, which is where the
 * result may have to go. */
typedef struct span {
    char *v, *spare;
    uint16_t *ids;
    size_t n;
    bool into_spare;
    unsigned levels; /* of distributions that are left */
    unsigned bits;   /* radix: bits of the keys that may differ; 0: not known */
} span;

static inline char *sort_at(const sorter *s, const char *v, size_t i)
{
    return (char *)(uintptr_t)v + i * s->k->size;
}

static inline bool sort_less(const sorter *s, const char *a, const char *b)
{
    return s->k->less(a, b, s->arg);
}

static inline bool sort_is_cancelled(const sorter *s)
{
    return cancelled(s->options) != 0;
}

/* Elements that are worth a fork, `least` unless the options say more. */
static inline size_t sort_grain(const sorter *s, size_t least)
{
    return max_size(least, s->options->grain);
}

static inline bool sort_unfork(blz_par *par, const sorter *s, blz_par_job *job)
{
    return blz_par_unfork_with(par, job, s->options->waiting);
}

/* For a loop that must not be cancelled: what is half done is no permutation. */
static inline blz_par_options sort_loop_options(const sorter *s, size_t grain)
{
    return (blz_par_options){.grain = grain, .waiting = s->options->waiting};
}

/* ---- sort_span.c ---- */

/* Sorts stably. If it is cancelled the elements are in the right array all the
 * same. */
void blz__sort_span(blz_par *par, const sorter *s, const span *sp);

/* Memory for a span over v; NULL: there is none. */
void *blz__sort_get_room(blz_par *par, const sorter *s, char *v, size_t n, span *sp);
void blz__sort_free_room(blz_par *par, const sorter *s, void *room, size_t n);

/* ---- sort_sample.c ---- */

/*
 * Chooses how to distribute the elements of a span, which are more than
 * SORT_LEAF. False: there is no need, all are equal. What it chose may be in
 * the spare array.
 */
bool blz__sort_choose(blz_par *par, const sorter *s, const span *sp, struct blz_sort_split_ *by);

/* A sorted sample at sp->spare; its size must leave room for as much again
 * there. */
void blz__sort_sample(const sorter *s, const span *sp, size_t size);

/* Makes the tree of 2^log - 1 splitters, which are in order at by->sorted,
 * behind them. */
void blz__sort_make_tree(const sorter *s, struct blz_sort_split_ *by);

/* How many buckets there are, and whether all elements of one are equal. */
static inline size_t sort_nr_buckets(const struct blz_sort_split_ *by)
{
    return (size_t)1 << (by->log + by->equal);
}

static inline bool sort_are_equal(const struct blz_sort_split_ *by, size_t bucket)
{
    if (!by->tree)
        return by->shift == 0;
    return by->equal && bucket % 2 == 0 && bucket > 0;
}

/* ---- sort_distribute.c ---- */

/* Moves the elements of v to their buckets in spare; ends: of the buckets,
 * afterwards. */
void blz__sort_distribute(blz_par *par, const sorter *s, const span *sp,
                          const struct blz_sort_split_ *by, char **ends);

/* Radix: the bits in which the keys of a span differ. */
uint64_t blz__sort_differing(blz_par *par, const sorter *s, const span *sp);

/* Copies n elements, by several threads if there are many. */
void blz__sort_copy(blz_par *par, const sorter *s, char *to, const char *from, size_t n);

/* ---- sort_runs.c ---- */

enum { SORT_MAX_RUNS = 68 };

/* The ends of the sorted runs that v consists of, if they are few. 0: they are
 * not. */
size_t blz__sort_find_runs(const sorter *s, char *v, size_t n, size_t *ends);

/* Merges the runs, to the right place. */
void blz__sort_merge_runs(blz_par *par, const sorter *s, const span *sp, const size_t *ends,
                          size_t nr);

/* ---- merge.c ---- */

/* Merges, stably; or, cancelled, puts one behind the other. */
void blz__sort_merge(blz_par *par, const sorter *s, const char *a, size_t na, const char *b,
                     size_t nb, char *out);

/* ---- sort_blocks.c ---- */

/* Sorts, not stably, with little memory, or none. */
void blz__sort_without_room(blz_par *par, const sorter *s, char *v, size_t n, unsigned levels);

/* ---- sort_place.c ---- */

/* Sorts, not stably, without memory. */
void blz__sort_in_place(blz_par *par, const sorter *s, char *v, size_t n);

/* Moves the kth to its place without memory. */
void blz__sort_kth_in_place(blz_par *par, const sorter *s, char *v, size_t n, size_t k);

#endif
