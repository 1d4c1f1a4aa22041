/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving the elements of a span to their buckets, in two passes over them: the
 * first one writes down the bucket of each and counts, the second one moves.
 * What was written down is what counts: a comparison that says something else
 * the second time does no harm, it is not asked.
 *
 * Many elements are divided into blocks, for which both passes go in parallel;
 * a block has room in each bucket behind that of the blocks before it, so the
 * order is kept. Without memory for the tables of the blocks one thread does
 * it.
 */
#include "par/sort.h"

#include <string.h>

enum { BLOCKS_PER_THREAD = 4 };

typedef struct distribution {
    const sorter *s;
    const span *sp;
    const struct blz_sort_split_ *by;
    size_t nr_buckets, block; /* elements of a block */
    size_t *tables;           /* of each block: counts, then places in each bucket */
} distribution;

static void classify(const sorter *s, const span *sp, const struct blz_sort_split_ *by,
                     size_t begin, size_t end, size_t *counts)
{
    memset(counts, 0, sort_nr_buckets(by) * sizeof *counts);
    s->k->classify(by, sort_at(s, sp->v, begin), end - begin, sp->ids + begin, counts, s->arg);
}

/* ---- by one thread ---- */

static BLZ_NOINLINE void distribute_alone(const sorter *s, const span *sp,
                                          const struct blz_sort_split_ *by, char **ends)
{
    size_t counts[BLZ_SORT_MAX_BUCKETS_];
    char *place = sp->spare;

    classify(s, sp, by, 0, sp->n, counts);
    for (size_t i = 0; i < sort_nr_buckets(by); i++) {
        ends[i] = place;
        place = sort_at(s, place, counts[i]);
    }
    s->k->scatter(by, sp->v, sp->ids, sp->n, ends); /* each goes on to its end */
}

/* ---- by several ---- */

static int classify_blocks(blz_par *par, size_t begin, size_t end, void *arg)
{
    const distribution *d = arg;

    (void)par;
    for (size_t i = begin; i < end; i++)
        classify(d->s, d->sp, d->by, i * d->block, min_size((i + 1) * d->block, d->sp->n),
                 d->tables + i * d->nr_buckets);
    return 0;
}

/* The counts become numbers of elements before those of the block in the
 * bucket. */
static void add_up(const distribution *d, size_t nr_blocks, char **ends)
{
    size_t before = 0;

    for (size_t bucket = 0; bucket < d->nr_buckets; bucket++) {
        for (size_t i = 0; i < nr_blocks; i++) {
            size_t count = d->tables[i * d->nr_buckets + bucket];
            d->tables[i * d->nr_buckets + bucket] = before;
            before += count;
        }
        ends[bucket] = sort_at(d->s, d->sp->spare, before);
    }
}

static BLZ_NOINLINE void scatter_block(const distribution *d, size_t i)
{
    size_t begin = i * d->block, end = min_size(begin + d->block, d->sp->n);
    char *places[BLZ_SORT_MAX_BUCKETS_];

    for (size_t bucket = 0; bucket < d->nr_buckets; bucket++)
        places[bucket] = sort_at(d->s, d->sp->spare, d->tables[i * d->nr_buckets + bucket]);
    d->s->k->scatter(d->by, sort_at(d->s, d->sp->v, begin), d->sp->ids + begin, end - begin,
                     places);
}

static int scatter_blocks(blz_par *par, size_t begin, size_t end, void *arg)
{
    (void)par;
    for (size_t i = begin; i < end; i++)
        scatter_block(arg, i);
    return 0;
}

static void each_block(blz_par *par, size_t n, blz_par_range_fn body, distribution *d)
{
    blz_par_options one_by_one = sort_loop_options(d->s, 1);
    int rc = blz_par_for(par, n, body, d, &one_by_one);

    (void)rc; /* bodies that do not fail */
}

static bool distribute_together(blz_par *par, distribution *d, char **ends)
{
    size_t nr = nr_blocks(d->sp->n, d->block);
    size_t size = nr * d->nr_buckets * sizeof *d->tables;

    d->tables = blz__par_alloc(par, size);
    if (!d->tables)
        return false;
    each_block(par, nr, classify_blocks, d);
    add_up(d, nr, ends);
    each_block(par, nr, scatter_blocks, d);
    blz__par_free(par, d->tables, size);
    return true;
}

void blz__sort_distribute(blz_par *par, const sorter *s, const span *sp,
                          const struct blz_sort_split_ *by, char **ends)
{
    size_t nr = (size_t)nr_threads_of(par) * BLOCKS_PER_THREAD;
    size_t block = max_size(sp->n / nr + 1, s->options->grain);
    distribution d = {s, sp, by, sort_nr_buckets(by), block, NULL};

    if (nr_threads_of(par) == 1 || sp->n <= sort_grain(s, SORT_SHARED) ||
        !distribute_together(par, &d, ends))
        distribute_alone(s, sp, by, ends);
}

/* ---- bits of keys ---- */

typedef struct comparison {
    const sorter *s;
    const char *v;
    uint64_t differing;
} comparison;

/* Also with the element before: a bit that is the same within all ranges is the
 * same in all. */
static int compare_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    comparison *c = arg;
    size_t from = begin > 0 ? begin - 1 : 0;
    uint64_t differing = c->s->k->differing(sort_at(c->s, c->v, from), end - from);

    (void)par;
    blz__fetch_or(&c->differing, differing, RELAXED); /* read after the loop */
    return 0;
}

uint64_t blz__sort_differing(blz_par *par, const sorter *s, const span *sp)
{
    comparison c = {s, sp->v, 0};
    blz_par_options o = sort_loop_options(s, sort_grain(s, SORT_SHARED / 4));
    int rc = blz_par_for(par, sp->n, compare_range, &c, &o);

    (void)rc;
    return c.differing;
}

/* ---- copying ---- */

typedef struct copy {
    char *to;
    const char *from;
    size_t size;
} copy;

static int copy_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const copy *c = arg;

    (void)par;
    memcpy(c->to + begin * c->size, c->from + begin * c->size, (end - begin) * c->size);
    return 0;
}

void blz__sort_copy(blz_par *par, const sorter *s, char *to, const char *from, size_t n)
{
    copy c = {to, from, s->k->size};
    blz_par_options o = sort_loop_options(s, sort_grain(s, SORT_SHARED / 4));
    int rc = blz_par_for(par, n, copy_range, &c, &o);

    (void)rc;
}
