/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elements of each group: a stable counting sort of indices by the numbers of their groups.
 *
 * With up to DIRECT groups it is one distribution. With more, elements are first distributed by the
 * upper bits of their group's number; then each bucket, which has a range of groups, is sorted by
 * one thread, with counters for that range.
 */
#include "par/distribute.h"

#include <blitz/par_group.h>

#include <blitz/error.h>
#include <string.h>

enum { DIRECT = 1 << 12, BUCKETS = 1 << 10, ROW = 1 << 15 };

typedef struct member {
    size_t index;
    uint32_t id;
} member;

typedef struct ordering {
    const uint32_t *ids;
    size_t nr, nr_buckets;
    unsigned shift;  /* of an id, to its bucket */
    size_t *offsets; /* of the groups */
    size_t *order;
    size_t *starts;  /* of the buckets */
    member *members; /* by buckets, if those are of several groups */
    const blz_par_options *options;
} ordering;

static int count(size_t begin, size_t end, size_t *counts, void *arg)
{
    const ordering *o = arg;

    for (size_t i = begin; i < end; i++) {
        if (blz_unlikely(o->ids[i] >= o->nr))
            return -ERANGE;
        counts[o->ids[i] >> o->shift]++;
    }
    return 0;
}

static void move_indices(size_t begin, size_t end, size_t *places, void *arg)
{
    const ordering *o = arg;

    for (size_t i = begin; i < end; i++)
        o->order[places[o->ids[i]]++] = i;
}

static void move_members(size_t begin, size_t end, size_t *places, void *arg)
{
    const ordering *o = arg;

    for (size_t i = begin; i < end; i++)
        o->members[places[o->ids[i] >> o->shift]++] = (member){i, o->ids[i]};
}

/* offsets[first + g] is a count at first, then the place behind the last one that came. */
static void sort_bucket(const ordering *o, size_t bucket)
{
    size_t first = bucket << o->shift, width = min_size((size_t)1 << o->shift, o->nr - first);
    const member *m = o->members + o->starts[bucket], *end = o->members + o->starts[bucket + 1];
    size_t *offsets = o->offsets + first, place = o->starts[bucket];

    memset(offsets, 0, width * sizeof *offsets);
    for (const member *x = m; x < end; x++)
        offsets[x->id - first]++;
    for (size_t g = 0; g < width; g++) {
        size_t len = offsets[g];
        offsets[g] = place;
        place += len;
    }
    for (const member *x = m; x < end; x++)
        o->order[offsets[x->id - first]++] = x->index;
    /* Each has become the next one's beginning. */
    memmove(offsets + 1, offsets, (width - 1) * sizeof *offsets);
    offsets[0] = o->starts[bucket];
}

static int sort_buckets(blz_par *par, size_t begin, size_t end, void *arg)
{
    const ordering *o = arg;
    int rc = 0;

    (void)par;
    for (size_t k = begin; k < end && rc == 0; k++) {
        rc = cancelled(o->options);
        if (rc == 0)
            sort_bucket(o, k);
    }
    return rc;
}

static int order_directly(blz_par *par, ordering *o, size_t n)
{
    distribution d = {n, ROW, o->nr, o, count, move_indices, o->offsets};

    return blz__par_distribute(par, &d, o->options);
}

static int order_in_two_steps(blz_par *par, ordering *o, size_t n)
{
    blz_par_options each = options_with_grain(o->options, 1);
    size_t starts[BUCKETS + 1];
    distribution d = {n, ROW, o->nr_buckets, o, count, move_members, starts};
    int rc;

    o->starts = starts;
    o->members = blz__par_alloc(par, n * sizeof *o->members + 1);
    if (!o->members)
        return -ENOMEM;
    rc = blz__par_distribute(par, &d, o->options);
    if (rc == 0)
        rc = blz_par_for(par, o->nr_buckets, sort_buckets, o, &each);
    o->offsets[o->nr] = n;
    blz__par_free(par, o->members, n * sizeof *o->members + 1);
    return rc;
}

int blz_par_group_order(blz_par *par, size_t *offsets, size_t *order, const uint32_t *ids, size_t n,
                        size_t nr, const blz_par_options *options)
{
    ordering o = {.ids = ids, .nr = nr, .offsets = offsets, .order = order};

    o.options = options_or_defaults(options);
    if (nr == 0) {
        offsets[0] = 0;
        return n > 0 ? -ERANGE : cancelled(o.options);
    }
    if (nr <= DIRECT)
        return order_directly(par, &o, n);
    while (((nr - 1) >> o.shift) >= BUCKETS)
        o.shift++;
    o.nr_buckets = ((nr - 1) >> o.shift) + 1;
    return order_in_two_steps(par, &o, n);
}
