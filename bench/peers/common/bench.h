// SPDX-License-Identifier: Apache-2.0
// Harness shared by the C and C++ benchmark programs: arguments, clocks, the repetition loop, the
// output line. A program declares a table of `struct bench` and calls bench_main().
//
// A benchmark does its set-up, then calls bench_start() and bench_stop() around the measured part.
// Usage of every program:   PROG BENCH|all|list [--threads T] [--reps R] [--peer NAME]
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct run {
    uint64_t wall_ns; // of the measured part
    uint64_t cpu_ns;  // of all threads of this process, same span
    double figure_ns; // set (>= 0) by benchmarks whose figure is not wall_ns / n
    char extra[128];  // more key=value pairs for the line
    uint64_t wall0, cpu0;
};

struct bench {
    const char *name;
    size_t n; // operations in one repetition
    void (*fn)(struct run *r, size_t n);
    int min_threads; // skipped below this
};

static int g_threads = 2, g_reps = 5;
static const char *g_peer = "?", *g_which = "all";
static volatile uint64_t g_sink; // results go here, so that they are computed

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

// Busy and stolen time of the whole machine: user nice system irq softirq steal, in 10 ms ticks.
static inline uint64_t machine_busy_ns(void)
{
    unsigned long v[8];
    FILE *f = fopen("/proc/stat", "r");
    if (!f || fscanf(f, "cpu %lu %lu %lu %lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4, v + 5,
                     v + 6, v + 7) != 8)
        abort();
    fclose(f);
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) * 10000000ull;
}

static inline void bench_start(struct run *r)
{
    r->cpu0 = cpu_ns();
    r->wall0 = now_ns();
}

static inline void bench_stop(struct run *r)
{
    r->wall_ns = now_ns() - r->wall0;
    r->cpu_ns = cpu_ns() - r->cpu0;
}

static inline uint64_t splitmix(uint64_t z)
{
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

#define XORSHIFT_SEED 88172645463325252ull
static uint64_t g_xorshift = XORSHIFT_SEED;

static inline uint64_t xorshift(void)
{
    g_xorshift ^= g_xorshift << 13;
    g_xorshift ^= g_xorshift >> 7;
    g_xorshift ^= g_xorshift << 17;
    return g_xorshift;
}

static inline int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Figure of a wake-up benchmark: the median of n samples. Sorts them.
static inline void report_samples(struct run *r, uint64_t *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, compare_u64);
    r->figure_ns = (double)ns[n / 2];
    snprintf(r->extra, sizeof r->extra, " min_ns=%lu p99_ns=%lu", (unsigned long)ns[0],
             (unsigned long)ns[n * 99 / 100]);
}

// CPU burnt by an idle pool: 200 ms to settle, then 3 s of sleep.
static inline void measure_idle_cpu(struct run *r)
{
    usleep(200000);
    bench_start(r);
    sleep(3);
    bench_stop(r);
    r->figure_ns = 0;
    snprintf(r->extra, sizeof r->extra, " cpu_percent=%.4f",
             100.0 * (double)r->cpu_ns / (double)r->wall_ns);
}

static inline void parse_args(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int more = i + 1 < argc;
        if (more && !strcmp(argv[i], "--threads"))
            g_threads = atoi(argv[++i]);
        else if (more && !strcmp(argv[i], "--reps"))
            g_reps = atoi(argv[++i]);
        else if (more && !strcmp(argv[i], "--peer"))
            g_peer = argv[++i];
        else
            g_which = argv[i];
    }
}

static inline void run_bench(const struct bench *b)
{
    for (int rep = 0; rep < g_reps; rep++) {
        struct run r;
        memset(&r, 0, sizeof r);
        r.figure_ns = -1;
        uint64_t busy0 = machine_busy_ns(), cpu0 = cpu_ns(), wall0 = now_ns();
        b->fn(&r, b->n);
        double others = (double)(machine_busy_ns() - busy0) - (double)(cpu_ns() - cpu0);
        double other = others < 0 ? 0 : others / (double)(now_ns() - wall0);
        double figure = r.figure_ns >= 0 ? r.figure_ns : (double)r.wall_ns / (double)b->n;
        printf("bench=%s peer=%s threads=%d n=%zu rep=%d ns_per_op=%.3f", b->name, g_peer,
               g_threads, b->n, rep, figure);
        if (r.figure_ns < 0)
            printf(" cpu_ns=%.3f", (double)r.cpu_ns / (double)b->n);
        printf(" other=%.2f%s\n", other, r.extra);
        fflush(stdout);
    }
}

static inline int bench_main(const struct bench *table, size_t count)
{
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(g_which, "list")) {
            puts(table[i].name);
            found = 1;
        } else if (!strcmp(g_which, "all") || !strcmp(g_which, table[i].name)) {
            found = 1;
            if (g_threads >= table[i].min_threads)
                run_bench(&table[i]);
        }
    }
    if (!found)
        fprintf(stderr, "no benchmark named %s; try: list\n", g_which);
    return found ? 0 : 2;
}
