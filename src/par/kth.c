/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kth element: a sample tells between which two values it almost surely is. The elements are
 * distributed to those below, those between and those above, and it goes on with the few between;
 * so it reads the array about twice. Without memory: quickselect, by one thread.
 */
#include "par/sort.h"

#include <blitz/error.h>
#include <string.h>

enum { SAMPLE = 1023, LOG_BUCKETS = 2 };

/*
 * Three splitters: where the kth should be in the sample, and two standard deviations (at most 32
 * for the middle of 1023) to both sides.
 */
static void choose_around(const sorter *s, const span *sp, size_t k, struct blz_sort_split_ *by)
{
    size_t at = (size_t)((double)k / (double)sp->n * SAMPLE), off = 32;
    size_t low = at > off ? at - off : 0, high = min_size(at + off, SAMPLE - 1);
    size_t ranks[3] = {low, at, high};
    char *sorted = sort_at(s, sp->spare, SAMPLE);

    blz__sort_sample(s, sp, SAMPLE);
    for (size_t i = 0; i < 3; i++)
        memcpy(sort_at(s, sorted, i), sort_at(s, sp->spare, ranks[i]), s->k->size);
    *by = (struct blz_sort_split_){.sorted = sorted, .log = LOG_BUCKETS};
    by->equal = !sort_less(s, sorted, sort_at(s, sorted, 1)) ||
                !sort_less(s, sort_at(s, sorted, 1), sort_at(s, sorted, 2));
    blz__sort_make_tree(s, by);
}

/* Distributes, and makes *sp the bucket with the kth. True: all its elements are equal. */
static bool narrow(blz_par *par, const sorter *s, span *sp, size_t *k)
{
    char *ends[BLZ_SORT_MAX_BUCKETS_], *start = sp->spare, *kth = sort_at(s, sp->spare, *k);
    struct blz_sort_split_ by;
    size_t bucket = 0, offset;

    choose_around(s, sp, *k, &by);
    blz__sort_distribute(par, s, sp, &by, ends);
    blz__sort_copy(par, s, sp->v, sp->spare, sp->n);
    for (; ends[bucket] <= kth; bucket++)
        start = ends[bucket];
    offset = (size_t)(start - sp->spare);
    sp->v += offset;
    sp->spare += offset;
    sp->ids += offset / s->k->size;
    sp->n = (size_t)(ends[bucket] - start) / s->k->size;
    sp->levels--;
    *k -= offset / s->k->size;
    return sort_are_equal(&by, bucket);
}

static void find_kth(blz_par *par, const sorter *s, span *sp, size_t k)
{
    bool found = false;

    while (!found && sp->n > 8 * SORT_LEAF && sp->levels > 0) {
        if (sort_is_cancelled(s))
            return;
        found = narrow(par, s, sp, &k);
    }
    sp->levels = SORT_LEVELS;
    if (!found)
        blz__sort_span(par, s, sp);
}

int blz_par_kth_(blz_par *par, const struct blz_sort_kernels_ *kernels, void *v, size_t n, size_t k,
                 void *arg, const blz_par_options *options)
{
    sorter s = {kernels, arg, options_or_defaults(options)};
    span sp;
    void *room;

    if (k >= n)
        return -EINVAL;
    room = blz__sort_get_room(par, &s, v, n, &sp);
    if (room) {
        find_kth(par, &s, &sp, k);
        blz__sort_free_room(par, &s, room, n);
    } else {
        blz__sort_kth_in_place(par, &s, v, n, k);
    }
    return cancelled(s.options);
}
