/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around the fork-join pool: empty tasks of a scope (the operation is a task); an empty join from a
 * thread that is a guest, back to back, or after a while of idleness (the median of many); the
 * same, where the other branch must be run by a thread that sleeps; CPU time of an idle pool.
 *
 * The guest is one of the threads, as in programs that compute in their main thread.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SPAWNS = 1000000, HOT = 50000, SHORT_SAMPLES = 400, LONG_SAMPLES = 60, MAX_SAMPLES = 1000 };

static blz_pool *new_pool(unsigned threads)
{
    blz_pool *pool;

    bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = threads}), "pool");
    return pool;
}

/* ---- tasks ---- */

static int empty_task(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    return 0;
}

static void spawn_all(blz_par *par, void *arg)
{
    struct run *run = arg;
    blz_par_scope scope;

    bench_start(run);
    blz_par_scope_begin(par, &scope);
    for (uint64_t i = 0; i < run->n; i++)
        bench_check(blz_par_spawn(par, &scope, empty_task, NULL), "spawn");
    bench_check(blz_par_scope_end(par, &scope), "scope");
    bench_stop(run);
}

static void scope_spawn(struct run *run)
{
    blz_pool *pool = new_pool(run->threads);

    blz_pool_run(pool, spawn_all, run);
    bench_check(blz_pool_free(pool), "free");
}

/* ---- joins from outside ---- */

static void nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

static void empty_join(blz_par *par, void *arg)
{
    blz_par_join(par, nothing, arg, nothing, arg);
}

/* With this thread as one of them; there is always another. */
static blz_par *enter(const struct run *run)
{
    blz_par *par = blz_pool_enter(new_pool(run->threads > 1 ? run->threads - 1 : 1));

    bench_check(par ? 0 : -1, "guest");
    return par;
}

static void leave(blz_par *par)
{
    blz_pool *pool = blz_par_pool(par);

    blz_pool_leave(par);
    bench_check(blz_pool_free(pool), "free");
}

static void install_empty_hot(struct run *run)
{
    blz_par *par = enter(run);
    blz_pool *pool = blz_par_pool(par);

    bench_start(run);
    for (uint64_t i = 0; i < run->n; i++)
        blz_pool_run(pool, empty_join, NULL);
    bench_stop(run);
    leave(par);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The figure is the median. */
static void report(struct run *run, uint64_t *ns)
{
    qsort(ns, run->n, sizeof *ns, compare_u64);
    run->wall_ns = ns[run->n / 2] * run->n;
    snprintf(run->extra, sizeof run->extra, " min_ns=%llu p99_ns=%llu", (unsigned long long)ns[0],
             (unsigned long long)ns[run->n * 99 / 100]);
}

static void wake_after(struct run *run, unsigned idle_us, blz_par_fn fn)
{
    uint64_t ns[MAX_SAMPLES];
    blz_par *par = enter(run);
    blz_pool *pool = blz_par_pool(par);

    if (run->n > MAX_SAMPLES)
        run->n = MAX_SAMPLES;
    bench_start(run);
    for (uint64_t i = 0; i < run->n; i++) {
        uint64_t start;
        usleep(idle_us);
        start = now_ns();
        blz_pool_run(pool, fn, NULL);
        ns[i] = now_ns() - start;
    }
    bench_stop(run);
    report(run, ns);
    leave(par);
}

static void wait_for_the_other(blz_par *par, void *arg)
{
    while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE))
        blz_par_yield(par);
}

static void come(blz_par *par, void *arg)
{
    (void)par;
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

static void rendezvous(blz_par *par, void *arg)
{
    int met = 0;

    (void)arg;
    blz_par_join(par, wait_for_the_other, &met, come, &met);
}

static void wake_empty_1ms(struct run *run)
{
    wake_after(run, 1000, empty_join);
}

static void wake_rdv_1ms(struct run *run)
{
    wake_after(run, 1000, rendezvous);
}

static void wake_rdv_20ms(struct run *run)
{
    wake_after(run, 20000, rendezvous);
}

/* ---- idleness ---- */

static void some_work(blz_par *par, void *arg)
{
    int64_t depth = (int64_t)(intptr_t)arg;

    if (depth > 0)
        blz_par_join(par, some_work, (void *)(intptr_t)(depth - 1), some_work,
                     (void *)(intptr_t)(depth - 1));
}

static void idle_cpu(struct run *run)
{
    blz_pool *pool = new_pool(run->threads);

    blz_pool_run(pool, some_work, (void *)(intptr_t)18);
    usleep(200000);
    bench_start(run);
    sleep(3);
    bench_stop(run);
    snprintf(run->extra, sizeof run->extra, " cpu_percent=%.4f",
             100.0 * (double)run->cpu_ns / (double)run->wall_ns);
    run->wall_ns = 0;
    bench_check(blz_pool_free(pool), "free");
}

const struct bench par_pool_benches[] = {
    {"scope_spawn", SPAWNS, scope_spawn, false},
    {"install_empty_hot", HOT, install_empty_hot, false},
    {"wake_empty_1ms", SHORT_SAMPLES, wake_empty_1ms, false},
    {"wake_rdv_1ms", SHORT_SAMPLES, wake_rdv_1ms, false},
    {"wake_rdv_20ms", LONG_SAMPLES, wake_rdv_20ms, false},
    {"idle_cpu", 1, idle_cpu, false},
    {0},
};
