// SPDX-License-Identifier: Apache-2.0
// Serial C reference for the fork-join benchmarks: the same work with plain calls and loops.
#include "work.h"

__attribute__((noinline)) static uint64_t fib(int n)
{
    return n < 2 ? (uint64_t)n : fib(n - 1) + fib(n - 2);
}

static void run_fib(struct run *r, int k)
{
    volatile int n = k;
    bench_start(r);
    g_sink = fib(n);
    bench_stop(r);
}

static void fib30(struct run *r, size_t n)
{
    (void)n;
    run_fib(r, 30);
}
static void fib35(struct run *r, size_t n)
{
    (void)n;
    run_fib(r, 35);
}
static void fib38(struct run *r, size_t n)
{
    (void)n;
    run_fib(r, 38);
}
static void fib40(struct run *r, size_t n)
{
    (void)n;
    run_fib(r, 40);
}

static uint64_t queens(uint32_t n, uint32_t cols, uint32_t d1, uint32_t d2)
{
    uint32_t full = (1u << n) - 1;
    if (cols == full)
        return 1;
    uint64_t sum = 0;
    for (uint32_t free = full & ~(cols | d1 | d2); free; free &= free - 1) {
        uint32_t b = free & -free;
        sum += queens(n, cols | b, ((d1 | b) << 1) & full, (d2 | b) >> 1);
    }
    return sum;
}

static void nqueens12(struct run *r, size_t n)
{
    (void)n;
    volatile uint32_t order = 12;
    bench_start(r);
    check_queens(queens(order, 0, 0, 0));
    bench_stop(r);
}

static uint64_t tree_sum(const uint64_t *v, size_t n, size_t i)
{
    return i >= n ? 0 : v[i] + tree_sum(v, n, 2 * i + 1) + tree_sum(v, n, 2 * i + 2);
}

static void tree24(struct run *r, size_t n)
{
    uint64_t *v = iota_u64(n);
    bench_start(r);
    g_sink = tree_sum(v, n, 0);
    bench_stop(r);
    free(v);
}

static void sum_u64(struct run *r, size_t n)
{
    uint64_t *a = iota_u64(n), sum = 0;
    bench_start(r);
    for (size_t i = 0; i < n; i++)
        sum += a[i];
    g_sink = sum;
    bench_stop(r);
    free(a);
}

static void sum_f64(struct run *r, size_t n)
{
    double *a = iota_f64(n), sum = 0;
    bench_start(r);
    for (size_t i = 0; i < n; i++)
        sum += a[i];
    g_sink = (uint64_t)sum;
    bench_stop(r);
    free(a);
}

static void mapreduce_splitmix(struct run *r, size_t n)
{
    uint64_t sum = 0;
    bench_start(r);
    for (size_t i = 0; i < n; i++)
        sum += splitmix(i);
    g_sink = sum;
    bench_stop(r);
}

static void sort_u64_qsort(struct run *r, size_t n)
{
    uint64_t *a = (uint64_t *)malloc(n * sizeof *a);
    for (size_t i = 0; i < n; i++)
        a[i] = splitmix(i);
    bench_start(r);
    qsort(a, n, sizeof *a, compare_u64);
    bench_stop(r);
    free(a);
}

static void matmul1024(struct run *r, size_t n)
{
    (void)n;
    struct matrices m = matrices_new();
    bench_start(r);
    for (int i = 0; i < MATRIX; i++)
        matmul_row(&m, i);
    bench_stop(r);
    matrices_free(&m);
}

int main(int argc, char **argv)
{
    static const struct bench table[] = {
        {"fib30", FIB30_JOINS, fib30, 0},
        {"fib35", FIB35_JOINS, fib35, 0},
        {"fib38", FIB38_JOINS, fib38, 0},
        {"fib40", FIB40_JOINS, fib40, 0},
        {"sum_u64", SUM_N, sum_u64, 0},
        {"sum_f64", SUM_N, sum_f64, 0},
        {"mapreduce_splitmix", SUM_N, mapreduce_splitmix, 0},
        {"sort_u64_qsort", SORT_N, sort_u64_qsort, 0},
        {"nqueens12", QUEENS_NODES, nqueens12, 0},
        {"matmul1024", (size_t)MATRIX * MATRIX * MATRIX, matmul1024, 0},
        {"tree24", TREE_N, tree24, 0},
    };
    g_peer = "serial";
    parse_args(argc, argv);
    g_threads = 1;
    return bench_main(table, LENGTH(table));
}
