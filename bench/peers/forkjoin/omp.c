// SPDX-License-Identifier: Apache-2.0
// OpenMP (libgomp) fork-join benchmarks: tasks for fib30, nqueens12 and scope_spawn, parallel for
// for the loops. A parallel region is itself a meeting of all threads, so it serves as wake_rdv.
#include "work.h"
#include <omp.h>

static uint64_t fib(int n)
{
    if (n < 2)
        return (uint64_t)n;
    uint64_t a, b;
#pragma omp task shared(a) firstprivate(n)
    a = fib(n - 1);
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

static void fib30(struct run *r, size_t n)
{
    (void)n;
    volatile int k = 30;
    uint64_t result = 0;
    bench_start(r);
#pragma omp parallel
#pragma omp single
    result = fib(k);
    g_sink = result;
    bench_stop(r);
}

static uint64_t queens(uint32_t n, uint32_t cols, uint32_t d1, uint32_t d2)
{
    uint32_t full = (1u << n) - 1;
    if (cols == full)
        return 1;
    uint64_t s[16], sum = 0;
    int k = 0;
    for (uint32_t free = full & ~(cols | d1 | d2); free; free &= free - 1) {
        uint32_t b = free & -free;
#pragma omp task shared(s) firstprivate(k, b)
        s[k] = queens(n, cols | b, ((d1 | b) << 1) & full, (d2 | b) >> 1);
        k++;
    }
#pragma omp taskwait
    for (int i = 0; i < k; i++)
        sum += s[i];
    return sum;
}

static void nqueens12(struct run *r, size_t n)
{
    (void)n;
    uint64_t solutions = 0;
    bench_start(r);
#pragma omp parallel
#pragma omp single
    solutions = queens(12, 0, 0, 0);
    check_queens(solutions);
    bench_stop(r);
}

static void sum_u64(struct run *r, size_t n)
{
    uint64_t *a = iota_u64(n), sum = 0;
    bench_start(r);
#pragma omp parallel for reduction(+ : sum)
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
#pragma omp parallel for reduction(+ : sum)
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
#pragma omp parallel for reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += splitmix(i);
    g_sink = sum;
    bench_stop(r);
}

static void matmul1024(struct run *r, size_t n)
{
    (void)n;
    struct matrices m = matrices_new();
    bench_start(r);
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < MATRIX; i++)
        matmul_row(&m, i);
    bench_stop(r);
    matrices_free(&m);
}

static void scope_spawn(struct run *r, size_t n)
{
    bench_start(r);
#pragma omp parallel
#pragma omp single
    for (size_t i = 0; i < n; i++) {
#pragma omp task
        __asm__ volatile("");
    }
    bench_stop(r);
}

static void parfor1000_hot(struct run *r, size_t n)
{
    bench_start(r);
    for (size_t k = 0; k < n; k++) {
#pragma omp parallel for
        for (int i = 0; i < 1000; i++)
            __asm__ volatile("" ::"r"(i));
    }
    bench_stop(r);
}

static void wake_after(struct run *r, size_t n, unsigned idle_us)
{
    uint64_t *ns = (uint64_t *)malloc(n * sizeof *ns);
    for (size_t k = 0; k < n; k++) {
        usleep(idle_us);
        uint64_t t0 = now_ns();
#pragma omp parallel
        __asm__ volatile("");
        ns[k] = now_ns() - t0;
    }
    report_samples(r, ns, n);
    free(ns);
}

static void wake_1ms(struct run *r, size_t n)
{
    wake_after(r, n, 1000);
}
static void wake_20ms(struct run *r, size_t n)
{
    wake_after(r, n, 20000);
}

static void idle_cpu(struct run *r, size_t n)
{
    (void)n;
#pragma omp parallel
    __asm__ volatile("");
    measure_idle_cpu(r);
}

int main(int argc, char **argv)
{
    static const struct bench table[] = {
        {"fib30", FIB30_JOINS, fib30, 0},
        {"sum_u64", SUM_N, sum_u64, 0},
        {"sum_f64", SUM_N, sum_f64, 0},
        {"mapreduce_splitmix", SUM_N, mapreduce_splitmix, 0},
        {"nqueens12", QUEENS_NODES, nqueens12, 0},
        {"matmul1024", (size_t)MATRIX * MATRIX * MATRIX, matmul1024, 0},
        {"scope_spawn", 1000000, scope_spawn, 0},
        {"parfor1000_hot", 20000, parfor1000_hot, 0},
        {"wake_empty_1ms", WAKE_SHORT_SAMPLES, wake_1ms, 0},
        {"wake_rdv_1ms", WAKE_SHORT_SAMPLES, wake_1ms, 2},
        {"wake_rdv_20ms", WAKE_LONG_SAMPLES, wake_20ms, 2},
        {"idle_cpu", 1, idle_cpu, 0},
    };
    g_peer = "openmp";
    parse_args(argc, argv);
    omp_set_num_threads(g_threads);
    return bench_main(table, LENGTH(table));
}
