/* SPDX-License-Identifier: Apache-2.0 */
/* Folds of any type (range.h), and the smallest and the greatest element. */
#include "par/range.h"

#include <string.h>

int blz_par_reduce(blz_par *par, void *result, size_t n, const blz_par_reducer *reducer, void *arg,
                   const blz_par_options *options)
{
    if (reducer->size)
        memcpy(result, reducer->identity, reducer->size);
    return blz__par_range(par, n, reducer, arg, result, options);
}

/* ---- smallest and greatest ---- */

typedef struct extreme {
    const char *base;
    size_t size;
    blz_par_compare_fn compare;
    void *arg;
    int sign; /* of the comparison of a better one with a worse one */
} extreme;

static const size_t nobody = SIZE_MAX;

/* Whether a beats b, which comes before it. */
static bool beats(const extreme *e, size_t a, size_t b)
{
    int order = e->compare(e->base + a * e->size, e->base + b * e->size, e->arg);

    return e->sign < 0 ? order < 0 : order > 0;
}

static int best_of_range(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    size_t best = *(size_t *)acc == nobody ? begin : *(size_t *)acc;

    (void)par;
    for (size_t i = begin; i < end; i++)
        if (i != best && beats(arg, i, best))
            best = i;
    *(size_t *)acc = best;
    return 0;
}

static int better_one(void *acc, void *right, void *arg)
{
    size_t *best = acc, other = *(size_t *)right;

    if (other != nobody && (*best == nobody || beats(arg, other, *best)))
        *best = other;
    return 0;
}

static int find_extreme(blz_par *par, size_t n, extreme *e, size_t *index,
                        const blz_par_options *options)
{
    static const blz_par_reducer reducer = {
        sizeof nobody, &nobody, best_of_range, better_one, {0, 0}};
    int rc = blz_par_reduce(par, index, n, &reducer, e, options);

    if (*index == nobody)
        *index = n;
    return rc;
}

int blz_par_min(blz_par *par, size_t *index, const void *base, size_t n, size_t size,
                blz_par_compare_fn compare, void *arg, const blz_par_options *options)
{
    return find_extreme(par, n, &(extreme){base, size, compare, arg, -1}, index, options);
}

int blz_par_max(blz_par *par, size_t *index, const void *base, size_t n, size_t size,
                blz_par_compare_fn compare, void *arg, const blz_par_options *options)
{
    return find_extreme(par, n, &(extreme){base, size, compare, arg, 1}, index, options);
}
