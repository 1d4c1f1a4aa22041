/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts of ten million pseudo-random numbers; the operation is an element. Each repetition sorts
 * a fresh array.
 */
#include "bench.h"

#include <stdlib.h>

enum { N = 10000000 };

BLZ_PAR_DEFINE_SORT(u64, uint64_t, *a < *b)
BLZ_PAR_DEFINE_SORT(u32, uint32_t, *a < *b)

typedef int (*sort_fn)(blz_par *par, void *v, size_t n);

struct work {
    sort_fn sort;
    void *v;
    size_t n;
    struct run *run;
};

static uint64_t splitmix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void run_sort(blz_par *par, void *arg)
{
    struct work *w = arg;

    bench_check(w->sort(par, w->v, w->n), "sort");
}

static void time_sort(struct run *run, sort_fn sort, void *v)
{
    struct work w = {sort, v, run->n, run};
    blz_pool *pool;

    bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = run->threads}), "pool");
    bench_start(run);
    blz_pool_run(pool, run_sort, &w);
    bench_stop(run);
    bench_check(blz_pool_free(pool), "free");
}

static void time_sort_u64(struct run *run, sort_fn sort)
{
    uint64_t *v = malloc(run->n * sizeof *v);

    bench_check(v ? 0 : -1, "memory");
    for (uint64_t i = 0; i < run->n; i++)
        v[i] = splitmix(i);
    time_sort(run, sort, v);
    for (uint64_t i = 1; i < run->n; i++)
        bench_check(v[i - 1] <= v[i] ? 0 : -1, "order");
    free(v);
}

static void time_sort_u32(struct run *run, sort_fn sort)
{
    uint32_t *v = malloc(run->n * sizeof *v);

    bench_check(v ? 0 : -1, "memory");
    for (uint64_t i = 0; i < run->n; i++)
        v[i] = (uint32_t)splitmix(i);
    time_sort(run, sort, v);
    for (uint64_t i = 1; i < run->n; i++)
        bench_check(v[i - 1] <= v[i] ? 0 : -1, "order");
    free(v);
}

static int unstable_u64(blz_par *par, void *v, size_t n)
{
    return u64_sort(par, v, n, NULL, NULL);
}

static int unstable_u32(blz_par *par, void *v, size_t n)
{
    return u32_sort(par, v, n, NULL, NULL);
}

static int stable_u64(blz_par *par, void *v, size_t n)
{
    return u64_stable_sort(par, v, n, NULL, NULL);
}

static int stable_u32(blz_par *par, void *v, size_t n)
{
    return u32_stable_sort(par, v, n, NULL, NULL);
}

static int radix(blz_par *par, void *v, size_t n)
{
    return blz_par_radix_sort_u64(par, v, n, NULL);
}

static void sort_unstable_u64(struct run *run)
{
    time_sort_u64(run, unstable_u64);
}

static void sort_unstable_u32(struct run *run)
{
    time_sort_u32(run, unstable_u32);
}

static void sort_stable_u64(struct run *run)
{
    time_sort_u64(run, stable_u64);
}

static void sort_stable_u32(struct run *run)
{
    time_sort_u32(run, stable_u32);
}

static void radix_u64(struct run *run)
{
    time_sort_u64(run, radix);
}

const struct bench par_sort_benches[] = {
    {"sort_unstable_u64", N, sort_unstable_u64, false},
    {"sort_unstable_u32", N, sort_unstable_u32, false},
    {"sort_stable_u64", N, sort_stable_u64, false},
    {"sort_stable_u32", N, sort_stable_u32, false},
    {"radix_u64", N, radix_u64, false},
    {0},
};
