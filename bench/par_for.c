/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel loops: a loop of a thousand empty iterations, one after the other (the operation is a
 * loop); sums of a hundred million numbers, in memory and computed (an element); a product of
 * matrices, a row at a time, in i-k-j order (a multiplication).
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { SUM_N = 100000000, HOT_N = 20000, HOT_LEN = 1000, MATRIX = 1024 };

static volatile uint64_t sink;

/* Runs a benchmark in a pool; fn measures. */
static void in_pool(struct run *run, blz_par_fn fn, void *arg)
{
    blz_pool *pool;

    bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = run->threads}), "pool");
    blz_pool_run(pool, fn, arg);
    bench_check(blz_pool_free(pool), "free");
}

static void *allocate(size_t size)
{
    void *p = malloc(size);

    bench_check(p ? 0 : -1, "malloc");
    return p;
}

/* ---- empty loops ---- */

BLZ_PAR_DEFINE_FOR(nothing, struct run, unused, i, __asm__ volatile("" ::"r"(i));)

static void loop_often(blz_par *par, void *arg)
{
    struct run *run = arg;

    bench_start(run);
    for (uint64_t k = 0; k < run->n; k++)
        bench_check(nothing(par, HOT_LEN, run, NULL), "for");
    bench_stop(run);
}

static void parfor1000_hot(struct run *run)
{
    in_pool(run, loop_often, run);
}

/* ---- sums ---- */

struct numbers {
    struct run *run;
    uint64_t *u64;
    double *f64;
};

BLZ_PAR_DEFINE_SUM(add_u64, uint64_t, const uint64_t, v, i, v[i])
BLZ_PAR_DEFINE_SUM(add_f64, double, const double, v, i, v[i])

static void measure_u64(blz_par *par, void *arg)
{
    struct numbers *s = arg;
    uint64_t sum;

    bench_start(s->run);
    bench_check(add_u64(par, &sum, s->run->n, s->u64, NULL), "sum");
    bench_stop(s->run);
    sink = sum;
}

static void measure_f64(blz_par *par, void *arg)
{
    struct numbers *s = arg;
    double sum;

    bench_start(s->run);
    bench_check(add_f64(par, &sum, s->run->n, s->f64, NULL), "sum");
    bench_stop(s->run);
    sink = (uint64_t)sum;
}

static void measure_f64_deterministic(blz_par *par, void *arg)
{
    struct numbers *s = arg;
    double sum;

    bench_start(s->run);
    bench_check(add_f64_deterministic(par, &sum, s->run->n, s->f64, NULL), "sum");
    bench_stop(s->run);
    sink = (uint64_t)sum;
}

static void sum_u64(struct run *run)
{
    struct numbers s = {.run = run, .u64 = allocate(run->n * sizeof *s.u64)};

    for (uint64_t i = 0; i < run->n; i++)
        s.u64[i] = i;
    in_pool(run, measure_u64, &s);
    free(s.u64);
}

static void run_f64(struct run *run, blz_par_fn measure)
{
    struct numbers s = {.run = run, .f64 = allocate(run->n * sizeof *s.f64)};

    for (uint64_t i = 0; i < run->n; i++)
        s.f64[i] = (double)i;
    in_pool(run, measure, &s);
    free(s.f64);
}

static void sum_f64(struct run *run)
{
    run_f64(run, measure_f64);
}

static void sum_f64_deterministic(struct run *run)
{
    run_f64(run, measure_f64_deterministic);
}

/* ---- computed ---- */

static inline uint64_t splitmix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

BLZ_PAR_DEFINE_SUM(add_hashes, uint64_t, struct run, unused, i, splitmix(i))

static void measure_hashes(blz_par *par, void *arg)
{
    struct run *run = arg;
    uint64_t sum;

    bench_start(run);
    bench_check(add_hashes(par, &sum, run->n, run, NULL), "sum");
    bench_stop(run);
    sink = sum;
}

static void mapreduce_splitmix(struct run *run)
{
    in_pool(run, measure_hashes, run);
}

/* ---- matrices ---- */

struct matrices {
    struct run *run;
    double *x, *y, *z; /* z = x * y, row major */
};

/* row += the rows k to k + 3 of y, times x[k] and so on: a fourth of the loads and stores. */
static void add_four_rows(double *restrict row, const double *restrict x, const double *restrict y)
{
    const double *y1 = y + MATRIX, *y2 = y1 + MATRIX, *y3 = y2 + MATRIX;
    double a = x[0], b = x[1], c = x[2], d = x[3];

    for (size_t j = 0; j < MATRIX; j++)
        row[j] = (((row[j] + a * y[j]) + b * y1[j]) + c * y2[j]) + d * y3[j];
}

static int multiply_rows(blz_par *par, size_t begin, size_t end, void *arg)
{
    const struct matrices *m = arg;

    (void)par;
    for (size_t i = begin; i < end; i++) {
        double *row = m->z + i * MATRIX;
        memset(row, 0, MATRIX * sizeof *row);
        for (size_t k = 0; k < MATRIX; k += 4)
            add_four_rows(row, m->x + i * MATRIX + k, m->y + k * MATRIX);
    }
    return 0;
}

static void measure_product(blz_par *par, void *arg)
{
    struct matrices *m = arg;

    bench_start(m->run);
    bench_check(blz_par_for(par, MATRIX, multiply_rows, m, NULL), "for");
    bench_stop(m->run);
    sink = (uint64_t)m->z[77];
}

static void matmul1024(struct run *run)
{
    size_t n = (size_t)MATRIX * MATRIX;
    struct matrices m = {run, allocate(n * 8), allocate(n * 8), allocate(n * 8)};

    for (size_t i = 0; i < n; i++) {
        m.x[i] = (double)(i % 97);
        m.y[i] = (double)(i % 89);
        m.z[i] = 0;
    }
    in_pool(run, measure_product, &m);
    free(m.x);
    free(m.y);
    free(m.z);
}

const struct bench par_for_benches[] = {
    {"parfor1000_hot", HOT_N, parfor1000_hot, false},
    {"sum_u64", SUM_N, sum_u64, false},
    {"sum_f64", SUM_N, sum_f64, false},
    {"sum_f64_deterministic", SUM_N, sum_f64_deterministic, false},
    {"mapreduce_splitmix", SUM_N, mapreduce_splitmix, false},
    {"matmul1024", (uint64_t)MATRIX *MATRIX *MATRIX, matmul1024, false},
    {0},
};
