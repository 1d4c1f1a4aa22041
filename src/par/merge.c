/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging in parallel: the longer array is cut in the middle, the other one where the element there
 * belongs, and the two pairs of parts are merged independently. To be stable, what equals that
 * element goes behind it if it comes from b, before it if it comes from a.
 *
 * A binary search gives some place whatever the comparisons say, so bad ones lose nothing.
 */
#include "par/sort.h"

#include <string.h>

typedef struct merge {
    const sorter *s;
    const char *a, *b;
    size_t na, nb;
    char *out;
} merge;

typedef struct forked {
    blz_par_job job;
    merge what;
} forked;

/* How many of v come before x: those that are less, or also those that are equal. */
static size_t rank_of(const sorter *s, const char *x, const char *v, size_t n, bool with_equals)
{
    size_t low = 0;

    while (n > 0) {
        size_t half = n / 2;
        const char *middle = sort_at(s, v, low + half);
        bool before = with_equals ? !sort_less(s, x, middle) : sort_less(s, middle, x);

        low = before ? low + half + 1 : low;
        n = before ? n - half - 1 : half;
    }
    return low;
}

static void cut(const merge *m, size_t *at_a, size_t *at_b)
{
    if (m->na >= m->nb) {
        *at_a = m->na / 2;
        *at_b = rank_of(m->s, sort_at(m->s, m->a, *at_a), m->b, m->nb, false);
    } else {
        *at_b = m->nb / 2;
        *at_a = rank_of(m->s, sort_at(m->s, m->b, *at_b), m->a, m->na, true);
    }
}

static void run_merge(blz_par *par, blz_par_job *job);

static void concatenate(const merge *m)
{
    size_t size = m->s->k->size;

    if (m->na > 0)
        memcpy(m->out, m->a, m->na * size);
    if (m->nb > 0)
        memcpy(m->out + m->na * size, m->b, m->nb * size);
}

static void merge_parts(blz_par *par, const merge *m)
{
    merge left = *m;
    forked right = {.what = *m};
    size_t at_a, at_b;

    if (sort_is_cancelled(m->s)) {
        concatenate(m);
        return;
    }
    if (m->na + m->nb <= sort_grain(m->s, 4 * SORT_FORK)) {
        m->s->k->merge(m->a, m->na, m->b, m->nb, m->out, m->s->arg);
        return;
    }
    cut(m, &at_a, &at_b);
    left.na = at_a;
    left.nb = at_b;
    right.what.a = sort_at(m->s, m->a, at_a);
    right.what.b = sort_at(m->s, m->b, at_b);
    right.what.na = m->na - at_a;
    right.what.nb = m->nb - at_b;
    right.what.out = sort_at(m->s, m->out, at_a + at_b);
    blz_par_fork(par, &right.job, run_merge);
    merge_parts(par, &left);
    if (sort_unfork(par, m->s, &right.job))
        merge_parts(par, &right.what);
}

static void run_merge(blz_par *par, blz_par_job *job)
{
    merge_parts(par, &blz_container_of(job, forked, job)->what);
}

void blz__sort_merge(blz_par *par, const sorter *s, const char *a, size_t na, const char *b,
                     size_t nb, char *out)
{
    merge all = {.s = s, .a = a, .na = na, .b = b, .nb = nb, .out = out};

    merge_parts(par, &all);
}

int blz_par_merge_(blz_par *par, const struct blz_sort_kernels_ *kernels, const void *a, size_t na,
                   const void *b, size_t nb, void *out, void *arg, const blz_par_options *options)
{
    sorter s = {kernels, arg, options_or_defaults(options)};

    if (na == 0 || nb == 0) /* which may be NULL then */
        blz__sort_copy(par, &s, out, na == 0 ? b : a, na + nb);
    else
        blz__sort_merge(par, &s, a, na, b, nb, out);
    return cancelled(s.options);
}
