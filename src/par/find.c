/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search: a loop whose leaves look whether what is known already makes them needless.
 *
 * `best` is the lowest match so far, and n while there is none; a leaf behind it is not looked
 * through. Such leaves take no time, so the pace of the loop (range.h) doubles until they are few.
 * The last match is the first one of the mirror image. When any will do the loop is ended like
 * after an error, by a number that is none.
 */
#include "par/range.h"

#include <blitz/par_find.h>
#include <limits.h>

enum { FOUND = INT_MIN };

typedef struct search {
    blz_par_search_fn search_block;
    void *arg;
    size_t n;
    blz_par_which which;
    blz__cache_aligned size_t best;
} search;

static void note(search *s, size_t at)
{
    size_t best = blz__load(&s->best, RELAXED);

    /* relaxed: the caller reads it after it has joined all parts */
    while (at < best && !blz__cas_weak(&s->best, &best, at, RELAXED, RELAXED)) {
    }
}

static int search_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    search *s = arg;
    bool mirrored = s->which == BLZ_PAR_LAST;
    size_t from = mirrored ? s->n - end : begin, to = mirrored ? s->n - begin : end, at;

    (void)par;
    if (blz__load(&s->best, RELAXED) < begin)
        return 0;
    at = s->search_block(from, to, mirrored, s->arg);
    if (at == to)
        return 0;
    note(s, mirrored ? s->n - 1 - at : at);
    return s->which == BLZ_PAR_ANY ? FOUND : 0;
}

int blz_par_find_by(blz_par *par, size_t *index, size_t n, blz_par_which which,
                    blz_par_search_fn search_block, void *arg, const blz_par_options *options)
{
    search s = {.search_block = search_block, .arg = arg, .n = n, .which = which, .best = n};
    int rc = blz_par_for(par, n, search_range, &s, options);

    *index = n;
    if (rc < 0 && rc != FOUND)
        return rc;
    if (s.best < n)
        *index = which == BLZ_PAR_LAST ? n - 1 - s.best : s.best;
    return 0;
}

/* ---- with a function for each element ---- */

typedef struct predicate {
    blz_par_predicate_fn fn;
    void *arg;
    bool wanted;
} predicate;

static size_t search_elements(size_t begin, size_t end, bool from_the_back, void *arg)
{
    const predicate *p = arg;

    for (size_t i = begin; i < end; i++) {
        size_t at = from_the_back ? end - 1 - (i - begin) : i;
        if (p->fn(at, p->arg) == p->wanted)
            return at;
    }
    return end;
}

int blz_par_find(blz_par *par, size_t *index, size_t n, blz_par_which which,
                 blz_par_predicate_fn fn, void *arg, const blz_par_options *options)
{
    predicate p = {fn, arg, true};

    return blz_par_find_by(par, index, n, which, search_elements, &p, options);
}

int blz_par_any(blz_par *par, bool *result, size_t n, blz_par_predicate_fn fn, void *arg,
                const blz_par_options *options)
{
    size_t index;
    int rc = blz_par_find(par, &index, n, BLZ_PAR_ANY, fn, arg, options);

    *result = index < n;
    return rc;
}

int blz_par_all(blz_par *par, bool *result, size_t n, blz_par_predicate_fn fn, void *arg,
                const blz_par_options *options)
{
    predicate p = {fn, arg, false};
    size_t index;
    int rc = blz_par_find_by(par, &index, n, BLZ_PAR_ANY, search_elements, &p, options);

    *result = index == n;
    return rc;
}

static int count_range(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    const predicate *p = arg;
    size_t count = 0;

    (void)par;
    for (size_t i = begin; i < end; i++)
        count += p->fn(i, p->arg);
    *(size_t *)acc += count;
    return 0;
}

static int add_counts(void *acc, void *right, void *arg)
{
    (void)arg;
    *(size_t *)acc += *(size_t *)right;
    return 0;
}

int blz_par_count(blz_par *par, size_t *result, size_t n, blz_par_predicate_fn fn, void *arg,
                  const blz_par_options *options)
{
    static const size_t zero;
    static const blz_par_reducer counter = {sizeof zero, &zero, count_range, add_counts, {0, 0}};
    predicate p = {fn, arg, true};

    return blz_par_reduce(par, result, n, &counter, &p, options);
}
