/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that consist of a few sorted parts: they are merged, or, if it is one, left alone.
 * Looking for them costs nothing where there are none, since it ends after a few short ones.
 */
#include "par/sort.h"

#include <string.h>

enum { LONG_RUNS = 64, MAX_SHORT_RUNS = 4 };

_Static_assert(LONG_RUNS + MAX_SHORT_RUNS <= SORT_MAX_RUNS, "room for all ends");

/* ---- finding ---- */

static void reverse(const sorter *s, char *v, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        blz_sort_swap_(sort_at(s, v, i), sort_at(s, v, n - 1 - i), s->k->size);
}

/* A comparison that contradicts itself may make any run of this; that is no worse. */
size_t blz__sort_find_runs(const sorter *s, char *v, size_t n, size_t *ends)
{
    size_t begin = 0, nr = 0, nr_short = 0;

    while (begin < n) {
        bool down;
        size_t len = s->k->run(sort_at(s, v, begin), n - begin, &down, s->arg);

        if (len <= n / LONG_RUNS && ++nr_short > MAX_SHORT_RUNS) /* LONG_RUNS cannot be longer */
            return 0;
        if (down)
            reverse(s, sort_at(s, v, begin), len);
        begin += len;
        ends[nr++] = begin;
    }
    return nr;
}

/* ---- merging ---- */

typedef struct group {
    const sorter *s;
    const span *sp;
    const size_t *ends; /* of all runs */
    size_t first, last; /* runs of this group */
    bool into_spare;
} group;

typedef struct forked {
    blz_par_job job;
    group what;
} forked;

static size_t start_of(const group *g, size_t run)
{
    return run == 0 ? 0 : g->ends[run - 1];
}

/* The run, after the first one, whose beginning is nearest to the middle. */
static size_t middle_run(const group *g)
{
    size_t begin = start_of(g, g->first), end = g->ends[g->last];
    size_t middle = begin + (end - begin) / 2, run = g->first + 1;

    while (run < g->last && start_of(g, run + 1) <= middle)
        run++;
    return run;
}

static void merge_group(blz_par *par, const group *g);

static void run_group(blz_par *par, blz_par_job *job)
{
    merge_group(par, &blz_container_of(job, forked, job)->what);
}

static void merge_halves(blz_par *par, const group *g, size_t middle)
{
    const char *from = g->into_spare ? g->sp->v : g->sp->spare;
    char *to = g->into_spare ? g->sp->spare : g->sp->v;
    size_t begin = start_of(g, g->first), split = start_of(g, middle), end = g->ends[g->last];

    blz__sort_merge(par, g->s, sort_at(g->s, from, begin), split - begin,
                    sort_at(g->s, from, split), end - split, sort_at(g->s, to, begin));
}

/* Where it belongs, as it is. */
static void settle(const group *g)
{
    size_t begin = start_of(g, g->first), n = g->ends[g->last] - begin;

    if (g->into_spare)
        memcpy(sort_at(g->s, g->sp->spare, begin), sort_at(g->s, g->sp->v, begin),
               n * g->s->k->size);
}

static void merge_both(blz_par *par, const group *left, forked *right)
{
    const group *r = &right->what;
    size_t len = min_size(start_of(left, r->first) - start_of(left, left->first),
                          r->ends[r->last] - start_of(r, r->first));
    bool worth_it = len >= sort_grain(r->s, SORT_FORK);

    if (worth_it)
        blz_par_fork(par, &right->job, run_group);
    merge_group(par, left);
    if (!worth_it || sort_unfork(par, r->s, &right->job))
        merge_group(par, r);
}

static void merge_group(blz_par *par, const group *g)
{
    group left = *g;
    forked right = {.what = *g};

    if (g->first == g->last || sort_is_cancelled(g->s)) {
        settle(g);
        return;
    }
    right.what.first = middle_run(g);
    left.last = right.what.first - 1;
    left.into_spare = right.what.into_spare = !g->into_spare;
    merge_both(par, &left, &right);
    merge_halves(par, g, right.what.first);
}

void blz__sort_merge_runs(blz_par *par, const sorter *s, const span *sp, const size_t *ends,
                          size_t nr)
{
    group all = {.s = s, .sp = sp, .ends = ends, .last = nr - 1, .into_spare = sp->into_spare};

    merge_group(par, &all);
}
