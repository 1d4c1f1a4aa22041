/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel algorithms whose results depend on what is before them: an inclusive scan of 10^7
 * 64-bit numbers, a filter that keeps half of them (which, is random), histograms of 10^8 bytes and
 * of 10^7 numbers in a million buckets. The operation is an element. The names with _serial are
 * plain loops.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

enum { NUMBERS = 10000000, BYTES = 100000000, BUCKETS = 1 << 20 };

struct data {
    struct run *run;
    uint64_t *in, *out;
    size_t *counts;
    size_t n, nr;
    void (*work)(blz_par *par, struct data *d);
};

static uint64_t mixed(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void *filled(size_t words)
{
    uint64_t *v = malloc(words * sizeof *v);

    bench_check(v ? 0 : -ENOMEM, "memory");
    for (size_t i = 0; i < words; i++)
        v[i] = mixed(i);
    return v;
}

/* Twice: the first time brings in the pages of the output. */
static void measure(blz_par *par, void *arg)
{
    struct data *d = arg;

    d->work(par, d);
    bench_start(d->run);
    d->work(par, d);
    bench_stop(d->run);
}

/* par is NULL in the plain loops. */
static void run_work(struct run *run, size_t words, void (*work)(blz_par *par, struct data *d),
                     bool serial)
{
    struct data d = {.run = run, .n = run->n, .work = work};
    blz_pool *pool;

    d.in = filled(words);
    d.out = filled(words);
    d.counts = filled(BUCKETS);
    if (serial) {
        measure(NULL, &d);
    } else {
        bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = run->threads}), "pool");
        blz_pool_run(pool, measure, &d);
        bench_check(blz_pool_free(pool), "free");
    }
    free(d.in);
    free(d.out);
    free(d.counts);
}

/* ---- scan ---- */

BLZ_PAR_DEFINE_SCAN(sum, uint64_t, acc + right)

static void scan_parallel(blz_par *par, struct data *d)
{
    bench_check(sum_inclusive(par, d->out, d->in, d->n, NULL, NULL), "scan");
}

static void scan_plain(blz_par *par, struct data *d)
{
    uint64_t sum = 0;

    (void)par;
    for (size_t i = 0; i < d->n; i++)
        d->out[i] = sum += d->in[i];
}

static void scan(struct run *run)
{
    run_work(run, run->n, scan_parallel, false);
}

static void scan_serial(struct run *run)
{
    run_work(run, run->n, scan_plain, true);
}

/* ---- filter ---- */

BLZ_PAR_DEFINE_FILTER(even, uint64_t, x % 2 == 0)

static void filter_parallel(blz_par *par, struct data *d)
{
    bench_check(even_filter(par, d->out, &d->nr, d->in, d->n, NULL, NULL), "filter");
}

/* Without a branch, which is the fastest for such numbers. */
static void filter_plain(blz_par *par, struct data *d)
{
    size_t nr = 0;

    (void)par;
    for (size_t i = 0; i < d->n; i++) {
        d->out[nr] = d->in[i];
        nr += d->in[i] % 2 == 0;
    }
    d->nr = nr;
}

static void filter(struct run *run)
{
    run_work(run, run->n, filter_parallel, false);
}

static void filter_serial(struct run *run)
{
    run_work(run, run->n, filter_plain, true);
}

/* ---- histogram ---- */

BLZ_PAR_DEFINE_HISTOGRAM(byte, uint8_t, x)
BLZ_PAR_DEFINE_HISTOGRAM(many, uint64_t, x % BUCKETS)

static void histogram_parallel(blz_par *par, struct data *d)
{
    bench_check(byte_histogram(par, d->counts, 256, (uint8_t *)d->in, d->n, NULL, NULL), "bytes");
}

static void histogram_plain(blz_par *par, struct data *d)
{
    const uint8_t *bytes = (const uint8_t *)d->in;
    size_t *counts = d->counts;

    (void)par;
    for (size_t i = 0; i < d->n; i++)
        counts[bytes[i]]++;
}

static void histogram_many_parallel(blz_par *par, struct data *d)
{
    bench_check(many_histogram(par, d->counts, BUCKETS, d->in, d->n, NULL, NULL), "many");
}

static void histogram_many_plain(blz_par *par, struct data *d)
{
    (void)par;
    for (size_t i = 0; i < d->n; i++)
        d->counts[d->in[i] % BUCKETS]++;
}

static void histogram(struct run *run)
{
    run_work(run, run->n / sizeof(uint64_t) + 1, histogram_parallel, false);
}

static void histogram_serial(struct run *run)
{
    run_work(run, run->n / sizeof(uint64_t) + 1, histogram_plain, true);
}

static void histogram_many(struct run *run)
{
    run_work(run, run->n, histogram_many_parallel, false);
}

static void histogram_many_serial(struct run *run)
{
    run_work(run, run->n, histogram_many_plain, true);
}

const struct bench par_scan_benches[] = {
    {"scan", NUMBERS, scan, false},
    {"scan_serial", NUMBERS, scan_serial, false},
    {"filter", NUMBERS, filter, false},
    {"filter_serial", NUMBERS, filter_serial, false},
    {"histogram", BYTES, histogram, false},
    {"histogram_serial", BYTES, histogram_serial, false},
    {"histogram_many", NUMBERS, histogram_many, false},
    {"histogram_many_serial", NUMBERS, histogram_many_serial, false},
    {0},
};
