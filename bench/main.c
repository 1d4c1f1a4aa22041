/* SPDX-License-Identifier: Apache-2.0 */
/* blitz-bench: command line, clocks, the repetition loop. See bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
static const struct bench *const tables[] = {
    spawn_benches,
    yield_benches,
    memory_benches,
    blocking_benches,
    time_benches,
    oneshot_benches,
    broadcast_benches,
    notify_benches,
    sync_benches,
    channel_benches,
    process_benches,
    file_benches,
    lines_benches,
    wait_benches,
    par_benches,
    par_pool_benches,
    par_tree_benches,
    par_scan_benches, par_group_benches,
    par_for_benches,
    par_sort_benches,
#ifndef BLITZ_BENCH_SHARED
    wake_benches,
#endif
};
/* clang-format on */

static const char usage[] =
    "usage: blitz-bench NAME [--threads T] [--n N] [--reps R] [--backend B]\n"
    "       blitz-bench --list\n"
    "  --threads T   worker threads (default 2)\n"
    "  --backend B   io_uring, epoll or poll (default: the best that works)\n"
    "  --n N         operations in a repetition (default: the benchmark's own)\n"
    "  --reps R      repetitions (default 5)\n";

/* ---- clocks ---- */

static uint64_t clock_now(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_start(struct run *run)
{
    run->cpu_start = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    run->wall_start = clock_now(CLOCK_MONOTONIC);
}

void bench_stop(struct run *run)
{
    run->wall_ns = clock_now(CLOCK_MONOTONIC) - run->wall_start;
    run->cpu_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID) - run->cpu_start;
}

/* Time that all CPUs were busy or taken away from us, in ns; 0 if the system does not tell. */
static uint64_t machine_busy(void)
{
    unsigned long v[8] = {0};
    FILE *file = fopen("/proc/stat", "r");

    if (!file)
        return 0;
    if (fscanf(file, "cpu %lu %lu %lu %lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4, v + 5,
               v + 6, v + 7) != 8)
        memset(v, 0, sizeof v);
    fclose(file);
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) *
           (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

uint64_t bench_rss(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%*u %lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void bench_check(int64_t rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "blitz-bench: %s: %s\n", what, blz_strerror(rc));
    exit(1);
}

/* ---- running ---- */

static void repeat(const struct bench *bench, blz_rt *rt, unsigned threads, uint64_t n, int rep)
{
    struct run run = {.rt = rt, .threads = threads, .n = n ? n : bench->n};
    uint64_t busy = machine_busy(), cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t wall = clock_now(CLOCK_MONOTONIC);

    bench->fn(&run);
    double others =
        (double)(machine_busy() - busy) - (double)(clock_now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    double other = others > 0 ? others / (double)(clock_now(CLOCK_MONOTONIC) - wall) : 0;
    printf("bench=%s peer=blitz threads=%u n=%llu rep=%d ns_per_op=%.3f cpu_ns=%.3f other=%.2f%s\n",
           bench->name, threads, (unsigned long long)run.n, rep,
           (double)run.wall_ns / (double)run.n, (double)run.cpu_ns / (double)run.n, other,
           run.extra);
    fflush(stdout);
}

static int run_bench(const struct bench *bench, const char *backend, unsigned threads, uint64_t n,
                     int reps)
{
    blz_options options = {.workers = threads, .backend = backend};
    blz_rt *rt;

    bench_check(blz_rt_new(&rt, &options), "cannot create a runtime");
    if (bench->once)
        reps = 1;
    for (int rep = 0; rep < reps; rep++)
        repeat(bench, rt, threads, n, rep);
    bench_check(blz_rt_free(rt), "cannot shut down");
    return 0;
}

static int list(void)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct bench *bench = tables[t]; bench->name; bench++)
            puts(bench->name);
    return 0;
}

static const struct bench *find(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct bench *bench = tables[t]; bench->name; bench++)
            if (strcmp(bench->name, name) == 0)
                return bench;
    return NULL;
}

int main(int argc, char **argv)
{
    const char *name = NULL;
    unsigned threads = 2;
    const char *backend = NULL;
    uint64_t n = 0;
    int reps = 5;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--list") == 0)
            return list();
        if (argv[i][0] != '-')
            name = argv[i];
        else if (value && strcmp(argv[i], "--backend") == 0)
            backend = argv[++i];
        else if (value && strcmp(argv[i], "--threads") == 0)
            threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--n") == 0)
            n = strtoull(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--reps") == 0)
            reps = (int)strtol(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "blitz-bench: %s is not an option, or lacks its value\n%s", argv[i],
                    usage);
            return 2;
        }
    }
    if (!name) {
        fputs(usage, stderr);
        return 2;
    }
    const struct bench *bench = find(name);
    if (!bench) {
        fprintf(stderr, "blitz-bench: no benchmark is called %s; see --list\n", name);
        return 2;
    }
    return run_bench(bench, backend, threads, n, reps);
}
