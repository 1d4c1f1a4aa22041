/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting without memory: quicksort, whose partition does not branch on what it compares. Pivots
 * are medians of three, or of three such; an array that divides badly too often is heap sorted. A
 * pivot that equals the one on its left is the least of its part, so what equals it is moved away
 * with it: equal elements take linear time.
 */
#include "par/sort.h"

#include <string.h>

enum { SMALL = 16, NINTHER = 128, SCRATCH = 2048 };

typedef struct part {
    const sorter *s;
    char *v;
    size_t n;
    const char *before; /* the pivot on its left, or NULL */
    unsigned luck;      /* bad divisions that are left */
} part;

typedef struct forked {
    blz_par_job job;
    part what;
} forked;

static void swap(const sorter *s, char *v, size_t i, size_t j)
{
    blz_sort_swap_(sort_at(s, v, i), sort_at(s, v, j), s->k->size);
}

static bool less_at(const sorter *s, const char *v, size_t i, size_t j)
{
    return sort_less(s, sort_at(s, v, i), sort_at(s, v, j));
}

static unsigned log_of(size_t n)
{
    unsigned log = 0;

    while (n >>= 1)
        log++;
    return log;
}

/* ---- what is small, and what is unlucky ---- */

static BLZ_NOINLINE void sort_small(const sorter *s, char *v, size_t n)
{
    blz__cache_aligned char scratch[SCRATCH];

    if (n * s->k->size <= SCRATCH && s->k->align <= BLZ_CACHE_LINE && s->k->leaf) {
        s->k->leaf(v, scratch, n, false, s->arg);
        return;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && less_at(s, v, j, j - 1); j--)
            swap(s, v, j, j - 1);
}

static void sift_down(const sorter *s, char *v, size_t n, size_t node)
{
    for (size_t child; (child = 2 * node + 1) < n; node = child) {
        if (child + 1 < n && less_at(s, v, child, child + 1))
            child++;
        if (!less_at(s, v, node, child))
            return;
        swap(s, v, node, child);
    }
}

static void heap_sort(const sorter *s, char *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(s, v, n, i);
    for (size_t i = n; i-- > 1;) {
        swap(s, v, 0, i);
        sift_down(s, v, i, 0);
    }
}

/* ---- dividing ---- */

static size_t median(const sorter *s, const char *v, size_t a, size_t b, size_t c)
{
    if (less_at(s, v, b, a)) {
        size_t t = a;
        a = b;
        b = t;
    }
    return less_at(s, v, c, b) ? (less_at(s, v, c, a) ? a : c) : b;
}

/* The pivot becomes the first. */
static void choose_pivot(const sorter *s, char *v, size_t n)
{
    size_t a = n / 4, b = n / 2, c = n / 4 * 3;

    if (n >= NINTHER) {
        a = median(s, v, a - 1, a, a + 1);
        b = median(s, v, b - 1, b, b + 1);
        c = median(s, v, c - 1, c, c + 1);
    }
    swap(s, v, 0, median(s, v, a, b, c));
}

/* An order that whoever made the bad one does not expect. */
static void shuffle_some(const sorter *s, char *v, size_t n)
{
    blz__rng rng;

    blz__rng_init(&rng, n);
    for (size_t i = 0; i < 4; i++)
        swap(s, v, n / 4 * i, (size_t)(blz__rng_next(&rng) % n));
}

/*
 * Divides p into left, a pivot in its place, and right. False: the pivot and all before it are
 * equal, there is nothing to do on the left.
 */
static bool divide(part *p, part *left, part *right)
{
    const sorter *s = p->s;
    bool least;
    size_t at;

    choose_pivot(s, p->v, p->n);
    least = p->before && !sort_less(s, p->before, p->v);
    at = s->k->partition(p->v, p->n, least, s->arg);
    *left = *right = *p;
    left->n = at;
    right->v = sort_at(s, p->v, at + 1);
    right->n = p->n - at - 1;
    right->before = sort_at(s, p->v, at);
    if (max_size(least ? 0 : left->n, right->n) > p->n - p->n / 8) {
        left->luck = right->luck = p->luck - 1;
        if (left->n > SMALL)
            shuffle_some(s, left->v, left->n);
        if (right->n > SMALL)
            shuffle_some(s, right->v, right->n);
    }
    return !least;
}

/* ---- sorting ---- */

static void sort_part(blz_par *par, part *p);

static void run_part(blz_par *par, blz_par_job *job)
{
    sort_part(par, &blz_container_of(job, forked, job)->what);
}

static void sort_both(blz_par *par, part *left, part *right)
{
    forked other = {.what = *left};

    if (min_size(left->n, right->n) < sort_grain(left->s, SORT_FORK)) {
        sort_part(par, left);
        return;
    }
    blz_par_fork(par, &other.job, run_part);
    sort_part(par, right);
    right->n = 0;
    if (sort_unfork(par, left->s, &other.job))
        sort_part(par, &other.what);
}

/* The right side is the next turn of the loop, unless it was done beside the left one. */
static void sort_part(blz_par *par, part *p)
{
    part left, right;

    while (p->n > SMALL) {
        if (sort_is_cancelled(p->s))
            return;
        if (p->luck == 0) {
            heap_sort(p->s, p->v, p->n);
            return;
        }
        if (divide(p, &left, &right))
            sort_both(par, &left, &right);
        *p = right;
    }
    sort_small(p->s, p->v, p->n);
}

void blz__sort_in_place(blz_par *par, const sorter *s, char *v, size_t n)
{
    part all = {.s = s, .v = v, .n = n, .luck = log_of(n)};

    sort_part(par, &all);
}

/* ---- the kth ---- */

void blz__sort_kth_in_place(blz_par *par, const sorter *s, char *v, size_t n, size_t k)
{
    part p = {.s = s, .v = v, .n = n, .luck = log_of(n)}, left, right;

    while (p.n > SMALL && p.luck > 0 && !sort_is_cancelled(s)) {
        char *wanted = sort_at(s, v, k), *pivot;
        bool sides = divide(&p, &left, &right);

        pivot = sort_at(s, right.v, 0) - s->k->size;
        if (wanted == pivot || (wanted < pivot && !sides))
            return;
        p = wanted < pivot ? left : right;
    }
    blz__sort_in_place(par, s, p.v, p.n);
}
