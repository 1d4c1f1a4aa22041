// SPDX-License-Identifier: Apache-2.0
// oneTBB fork-join benchmarks: parallel_invoke, task_group, parallel_reduce, parallel_for and
// parallel_sort. The calling thread takes part in the work, as oneTBB always does.
#include "work.h"
#include <algorithm>
#include <atomic>
#include <thread>
#include <functional>
#include <tbb/global_control.h>
#include <tbb/tbb.h>
#include <vector>

using range = tbb::blocked_range<size_t>;

static uint64_t fib_invoke(int n)
{
    if (n < 2) return (uint64_t)n;
    uint64_t a, b;
    tbb::parallel_invoke([&] { a = fib_invoke(n - 1); }, [&] { b = fib_invoke(n - 2); });
    return a + b;
}

static uint64_t fib_group(int n)
{
    if (n < 2) return (uint64_t)n;
    uint64_t a, b;
    tbb::task_group group;
    group.run([&] { b = fib_group(n - 2); });
    a = fib_group(n - 1);
    group.wait();
    return a + b;
}

template <class Fib> static void run_fib(struct run *r, int k, Fib fib)
{
    volatile int n = k;
    bench_start(r);
    g_sink = fib(n);
    bench_stop(r);
}

static void fib30(struct run *r, size_t) { run_fib(r, 30, fib_invoke); }
static void fib35(struct run *r, size_t) { run_fib(r, 35, fib_invoke); }
static void fib35_task_group(struct run *r, size_t) { run_fib(r, 35, fib_group); }

static uint64_t queens(uint32_t n, uint32_t cols, uint32_t d1, uint32_t d2)
{
    uint32_t full = (1u << n) - 1, candidate[16];
    if (cols == full) return 1;
    int k = 0;
    for (uint32_t free = full & ~(cols | d1 | d2); free; free &= free - 1)
        candidate[k++] = free & -free;
    if (k == 0) return 0;
    return tbb::parallel_reduce(
        tbb::blocked_range<int>(0, k, 1), (uint64_t)0,
        [&](const tbb::blocked_range<int> &span, uint64_t sum) {
            for (int i = span.begin(); i < span.end(); i++) {
                uint32_t b = candidate[i];
                sum += queens(n, cols | b, ((d1 | b) << 1) & full, (d2 | b) >> 1);
            }
            return sum;
        },
        std::plus<uint64_t>());
}

static void nqueens12(struct run *r, size_t)
{
    bench_start(r);
    check_queens(queens(12, 0, 0, 0));
    bench_stop(r);
}

static uint64_t tree_sum(const uint64_t *v, size_t n, size_t i)
{
    if (i >= n) return 0;
    uint64_t a, b;
    tbb::parallel_invoke([&] { a = tree_sum(v, n, 2 * i + 1); },
                         [&] { b = tree_sum(v, n, 2 * i + 2); });
    return v[i] + a + b;
}

static void tree24(struct run *r, size_t n)
{
    uint64_t *v = iota_u64(n);
    bench_start(r);
    g_sink = tree_sum(v, n, 0);
    bench_stop(r);
    free(v);
}

// Sum of term(i) over [0, n), each span summed serially.
template <class T, class Term> static T reduce_sum(size_t n, Term term)
{
    return tbb::parallel_reduce(
        range(0, n), T(0),
        [&](const range &span, T sum) {
            for (size_t i = span.begin(), end = span.end(); i < end; i++) sum += term(i);
            return sum;
        },
        std::plus<T>());
}

static void sum_u64(struct run *r, size_t n)
{
    uint64_t *a = iota_u64(n);
    bench_start(r);
    g_sink = reduce_sum<uint64_t>(n, [=](size_t i) { return a[i]; });
    bench_stop(r);
    free(a);
}

static void sum_f64(struct run *r, size_t n)
{
    double *a = iota_f64(n);
    bench_start(r);
    g_sink = (uint64_t)reduce_sum<double>(n, [=](size_t i) { return a[i]; });
    bench_stop(r);
    free(a);
}

static void mapreduce_splitmix(struct run *r, size_t n)
{
    bench_start(r);
    g_sink = reduce_sum<uint64_t>(n, [](size_t i) { return splitmix(i); });
    bench_stop(r);
}

template <class T, class Sort> static void run_sort(struct run *r, size_t n, Sort sort)
{
    std::vector<T> v(n);
    for (size_t i = 0; i < n; i++) v[i] = (T)splitmix(i);
    bench_start(r);
    sort(v);
    bench_stop(r);
}

template <class T> static void parallel_sort(struct run *r, size_t n)
{
    run_sort<T>(r, n, [](std::vector<T> &v) { tbb::parallel_sort(v.begin(), v.end()); });
}

template <class T> static void std_sort(struct run *r, size_t n)
{
    run_sort<T>(r, n, [](std::vector<T> &v) { std::sort(v.begin(), v.end()); });
}

static void matmul1024(struct run *r, size_t)
{
    struct matrices m = matrices_new();
    bench_start(r);
    tbb::parallel_for(0, (int)MATRIX, [&](int i) { matmul_row(&m, i); });
    bench_stop(r);
    matrices_free(&m);
}

static void scope_spawn(struct run *r, size_t n)
{
    bench_start(r);
    tbb::task_group group;
    for (size_t i = 0; i < n; i++) group.run([] {});
    group.wait();
    bench_stop(r);
}

static void parfor1000_hot(struct run *r, size_t n)
{
    bench_start(r);
    for (size_t k = 0; k < n; k++)
        tbb::parallel_for(0, 1000, [](int i) { asm volatile("" ::"r"(i)); });
    bench_stop(r);
}

static void install_empty_hot(struct run *r, size_t n)
{
    bench_start(r);
    for (size_t k = 0; k < n; k++) tbb::parallel_invoke([] {}, [] {});
    bench_stop(r);
}

template <class Body> static void wake_after(struct run *r, size_t n, unsigned idle_us, Body body)
{
    std::vector<uint64_t> ns(n);
    for (size_t k = 0; k < n; k++) {
        usleep(idle_us);
        uint64_t t0 = now_ns();
        body();
        ns[k] = now_ns() - t0;
    }
    report_samples(r, ns.data(), n);
}

// Gives way to other threads now and then: the one it waits for may have been woken on its processor.
static void rendezvous()
{
    std::atomic<int> met{0};
    tbb::task_group group;
    group.run([&] { met = 1; });
    for (unsigned round = 1; !met; round++)
        if (round % 16 == 0)
            std::this_thread::yield();
        else
            __builtin_ia32_pause();
    group.wait();
}

static void wake_empty_1ms(struct run *r, size_t n)
{
    wake_after(r, n, 1000, [] { tbb::parallel_invoke([] {}, [] {}); });
}

static void wake_rdv_1ms(struct run *r, size_t n) { wake_after(r, n, 1000, rendezvous); }
static void wake_rdv_20ms(struct run *r, size_t n) { wake_after(r, n, 20000, rendezvous); }

static void idle_cpu(struct run *r, size_t)
{
    g_sink = fib_invoke(25);
    measure_idle_cpu(r);
}

int main(int argc, char **argv)
{
    static const struct bench table[] = {
        {"fib30", FIB30_JOINS, fib30, 0},
        {"fib35", FIB35_JOINS, fib35, 0},
        {"fib35_task_group", FIB35_JOINS, fib35_task_group, 0},
        {"sum_u64", SUM_N, sum_u64, 0},
        {"sum_f64", SUM_N, sum_f64, 0},
        {"mapreduce_splitmix", SUM_N, mapreduce_splitmix, 0},
        {"sort_unstable_u64", SORT_N, parallel_sort<uint64_t>, 0},
        {"sort_unstable_u32", SORT_N, parallel_sort<uint32_t>, 0},
        {"sort_unstable_u64_stdsort", SORT_N, std_sort<uint64_t>, 0},
        {"sort_unstable_u32_stdsort", SORT_N, std_sort<uint32_t>, 0},
        {"nqueens12", QUEENS_NODES, nqueens12, 0},
        {"matmul1024", (size_t)MATRIX * MATRIX * MATRIX, matmul1024, 0},
        {"tree24", TREE_N, tree24, 0},
        {"scope_spawn", 1000000, scope_spawn, 0},
        {"parfor1000_hot", 20000, parfor1000_hot, 0},
        {"install_empty_hot", 50000, install_empty_hot, 0},
        {"wake_empty_1ms", WAKE_SHORT_SAMPLES, wake_empty_1ms, 0},
        {"wake_rdv_1ms", WAKE_SHORT_SAMPLES, wake_rdv_1ms, 2},
        {"wake_rdv_20ms", WAKE_LONG_SAMPLES, wake_rdv_20ms, 2},
        {"idle_cpu", 1, idle_cpu, 0},
    };
    g_peer = "tbb";
    parse_args(argc, argv);
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, g_threads);
    return bench_main(table, LENGTH(table));
}
