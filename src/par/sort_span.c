/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting with room for a second copy: distribution to buckets by a sample of
 * the elements (or by digits of their keys), again within each bucket, until
 * what is left is small; that is merge sorted. All three move elements from one
 * array to another and keep equal ones in order, so the sort is stable, and
 * each level changes the roles of the arrays.
 *
 * A distribution to 256 buckets does what eight merges do, reading and writing
 * the elements once or twice. How balanced the buckets are is luck; if there
 * are too many levels (equal elements have buckets of their own, so it takes
 * ill will) the rest is merge sorted.
 *
 * A span that is cancelled is moved to the array where it belongs. So the
 * elements are all there, in whichever order.
 */
#include "par/sort.h"
#include "system/memory.h"

#include <blitz/error.h>
#include <string.h>

/* ---- forks ---- */

/* The buckets from `begin` to `end` of a span, which are in its spare array
 * now. */
typedef struct buckets {
    const sorter *s;
    const span *parent;
    const struct blz_sort_split_ *by;
    char *const *ends;
    size_t begin, end;
} buckets;

/* A job stays where it is, what it is to do may be copied. */
typedef struct forked {
    blz_par_job job;
    buckets what;
} forked;

static char *start_of(const buckets *b, size_t bucket)
{
    return bucket == 0 ? b->parent->spare : b->ends[bucket - 1];
}

static void settle(const sorter *s, const span *sp)
{
    if (sp->into_spare)
        memcpy(sp->spare, sp->v, sp->n * s->k->size);
}

static void sort_bucket(blz_par *par, const buckets *b, size_t bucket)
{
    char *start = start_of(b, bucket);
    size_t offset = (size_t)(start - b->parent->spare);
    size_t size = b->s->k->size;
    span sp = {
        .v = start,
        .spare = b->parent->v + offset,
        .ids = b->parent->ids + offset / size,
        .n = (size_t)(b->ends[bucket] - start) / size,
        .into_spare = !b->parent->into_spare,
        .levels = b->parent->levels - 1,
        .bits = b->by->shift,
    };

    if (sp.n > b->parent->n / 8)
        sp.bits = 0; /* perhaps more is the same in all of them */
    if (sort_are_equal(b->by, bucket))
        settle(b->s, &sp);
    else if (sp.n > 0)
        blz__sort_span(par, b->s, &sp);
}

static void run_buckets(blz_par *par, blz_par_job *job);

static bool are_worth_a_fork(const buckets *b)
{
    size_t bytes = (size_t)(b->ends[b->end - 1] - start_of(b, b->begin));

    return b->end - b->begin > 1 && bytes / b->s->k->size > sort_grain(b->s, SORT_FORK);
}

/* Most buckets are small, and this is most of the work: they are sorted right here. */
static void sort_one_by_one(blz_par *par, const buckets *b)
{
    const sorter *s = b->s;
    char *start = start_of(b, b->begin);
    bool is_cancelled = sort_is_cancelled(s);

    for (size_t i = b->begin; i < b->end; start = b->ends[i++]) {
        size_t bytes = (size_t)(b->ends[i] - start);
        char *spare = b->parent->v + (start - b->parent->spare);

        if (bytes > SORT_LEAF * s->k->size || is_cancelled || sort_are_equal(b->by, i))
            sort_bucket(par, b, i);
        else if (bytes > 0)
            s->k->leaf(start, spare, bytes / s->k->size, !b->parent->into_spare, s->arg);
    }
}

static void sort_buckets(blz_par *par, const buckets *b)
{
    buckets left = *b;
    forked right = {.what = *b};

    if (!are_worth_a_fork(b)) {
        sort_one_by_one(par, b);
        return;
    }
    left.end = right.what.begin = b->begin + (b->end - b->begin) / 2;
    blz_par_fork(par, &right.job, run_buckets);
    sort_buckets(par, &left);
    if (sort_unfork(par, b->s, &right.job))
        sort_buckets(par, &right.what);
}

static void run_buckets(blz_par *par, blz_par_job *job)
{
    sort_buckets(par, &blz_container_of(job, forked, job)->what);
}

/* ---- merge sort ---- */

typedef struct half {
    blz_par_job job;
    const sorter *s;
    span sp;
} half;

static void sort_by_merging(blz_par *par, const sorter *s, const span *sp);

static void run_half(blz_par *par, blz_par_job *job)
{
    const half *h = blz_container_of(job, half, job);

    sort_by_merging(par, h->s, &h->sp);
}

static void sort_by_merging(blz_par *par, const sorter *s, const span *sp)
{
    size_t middle = sp->n / 2;
    span left = {sp->v, sp->spare, sp->ids, middle, !sp->into_spare, 0, 0};
    half right = {.s = s,
                  .sp = {sort_at(s, sp->v, middle), sort_at(s, sp->spare, middle), sp->ids + middle,
                         sp->n - middle, !sp->into_spare, 0, 0}};
    const char *from = sp->into_spare ? sp->v : sp->spare;

    if (sort_is_cancelled(s)) {
        settle(s, sp);
        return;
    }
    if (sp->n <= sort_grain(s, SORT_SHARED / 8)) {
        s->k->leaf(sp->v, sp->spare, sp->n, sp->into_spare, s->arg);
        return;
    }
    blz_par_fork(par, &right.job, run_half);
    sort_by_merging(par, s, &left);
    if (sort_unfork(par, s, &right.job))
        sort_by_merging(par, s, &right.sp);
    blz__sort_merge(par, s, from, middle, sort_at(s, from, middle), sp->n - middle,
                    sp->into_spare ? sp->spare : sp->v);
}

/* ---- a span ---- */

static BLZ_NOINLINE void sort_by_buckets(blz_par *par, const sorter *s, const span *sp)
{
    char *ends[BLZ_SORT_MAX_BUCKETS_];
    struct blz_sort_split_ by;
    buckets all = {.s = s, .parent = sp, .by = &by, .ends = ends};

    if (!blz__sort_choose(par, s, sp, &by)) {
        settle(s, sp);
        return;
    }
    blz__sort_distribute(par, s, sp, &by, ends);
    all.end = sort_nr_buckets(&by);
    sort_buckets(par, &all);
}

void blz__sort_span(blz_par *par, const sorter *s, const span *sp)
{
    if (sort_is_cancelled(s))
        settle(s, sp);
    else if (sp->n <= SORT_LEAF)
        s->k->leaf(sp->v, sp->spare, sp->n, sp->into_spare, s->arg);
    else if (sp->levels == 0)
        sort_by_merging(par, s, sp);
    else
        sort_by_buckets(par, s, sp);
}

/* ---- memory ---- */

enum { HUGE = 1 << 23 }; /* bytes; it takes a few huge pages to make up for asking */

/* Elements, then (but for radix sorts) their buckets. */
static size_t ids_offset(const sorter *s, size_t n)
{
    return (n * s->k->size + BLZ_CACHE_LINE - 1) & ~(size_t)(BLZ_CACHE_LINE - 1);
}

static size_t room_size(const sorter *s, size_t n)
{
    return ids_offset(s, n) + (s->k->differing ? 0 : n * sizeof(uint16_t));
}

void *blz__sort_get_room(blz_par *par, const sorter *s, char *v, size_t n, span *sp)
{
    char *room = NULL;

    if (s->k->align <= BLZ_CACHE_LINE && n <= (SIZE_MAX - BLZ_CACHE_LINE) / (s->k->size + 2))
        room = blz__par_alloc(par, room_size(s, n));
    if (room && room_size(s, n) >= HUGE)
        blz__pages_want_huge(room, room_size(s, n));
    if (room)
        *sp = (span){v,           room, (uint16_t *)(void *)(room + ids_offset(s, n)), n, false,
                     SORT_LEVELS, 0};
    return room;
}

void blz__sort_free_room(blz_par *par, const sorter *s, void *room, size_t n)
{
    blz__par_free(par, room, room_size(s, n));
}

/* ---- the whole ---- */

static bool fits_on_the_stack(const sorter *s, size_t n)
{
    return n <= SORT_LEAF && n * s->k->size <= SORT_STACK && s->k->align <= BLZ_CACHE_LINE;
}

static BLZ_NOINLINE void sort_on_the_stack(const sorter *s, char *v, size_t n)
{
    blz__cache_aligned char spare[SORT_STACK];

    s->k->leaf(v, spare, n, false, s->arg);
}

/* Moving elements twice costs less than a second array, whose pages the system has to clear. */
static bool are_for_blocks(const sorter *s, size_t n)
{
    return n >= SORT_BLOCKS && s->k->size >= sizeof(uint32_t) && s->k->size <= SORT_BLOCKS_SIZE;
}

/* Of more than one run. */
static int sort_runs(blz_par *par, const sorter *s, char *v, size_t n, bool stable,
                     const size_t *ends, size_t nr)
{
    span sp;
    void *room;

    if (!stable && nr == 0 && are_for_blocks(s, n)) {
        blz__sort_without_room(par, s, v, n, SORT_LEVELS);
        return cancelled(s->options);
    }
    room = blz__sort_get_room(par, s, v, n, &sp);
    if (room) {
        if (nr > 0)
            blz__sort_merge_runs(par, s, &sp, ends, nr);
        else
            blz__sort_span(par, s, &sp);
        blz__sort_free_room(par, s, room, n);
    } else if (!stable) {
        blz__sort_in_place(par, s, v, n);
    } else {
        return -ENOMEM;
    }
    return cancelled(s->options);
}

int blz_par_sort_(blz_par *par, const struct blz_sort_kernels_ *kernels, void *v, size_t n,
                  bool stable, void *arg, const blz_par_options *options)
{
    sorter s = {kernels, arg, options_or_defaults(options)};
    size_t ends[SORT_MAX_RUNS], nr;

    if (n < 2 || sort_is_cancelled(&s))
        return cancelled(s.options);
    if (fits_on_the_stack(&s, n)) {
        sort_on_the_stack(&s, v, n);
        return 0;
    }
    nr = blz__sort_find_runs(&s, v, n, ends);
    return nr == 1 ? 0 : sort_runs(par, &s, v, n, stable, ends, nr);
}
