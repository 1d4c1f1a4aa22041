/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups and shuffling of 10^7 64-bit numbers: sums by key with 2^12 and with 2^22 keys, the number
 * of each element's group and the elements of each group, a random order. The operation is an
 * element. The names with _serial are plain loops: a hash table with open addressing and room for
 * twice the keys, a counting sort, the usual shuffle.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 10000000, FEW = 1 << 12, MANY = 1 << 22 };

struct data {
    struct run *run;
    uint64_t *keys, *values, *out_keys, *out_values;
    uint32_t *ids;
    size_t *firsts, *offsets, *order;
    size_t n, nr_keys, nr;
    void (*work)(blz_par *par, struct data *d);
};

static uint64_t mixed(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Its pages are there when it is measured. */
static void *room(size_t nr, size_t size)
{
    void *p = malloc(nr * size);

    bench_check(p ? 0 : -ENOMEM, "memory");
    memset(p, 1, nr * size);
    return p;
}

static void data_init(struct data *d)
{
    d->keys = room(d->n, 8);
    d->values = room(d->n, 8);
    d->out_keys = room(d->n, 8);
    d->out_values = room(d->n, 8);
    d->ids = room(d->n, 4);
    d->firsts = room(d->n, sizeof *d->firsts);
    d->offsets = room(d->n + 1, sizeof *d->offsets);
    d->order = room(d->n, sizeof *d->order);
    for (size_t i = 0; i < d->n; i++)
        d->keys[i] = mixed(i) % d->nr_keys;
}

static void data_free(struct data *d)
{
    free(d->keys);
    free(d->values);
    free(d->out_keys);
    free(d->out_values);
    free(d->ids);
    free(d->firsts);
    free(d->offsets);
    free(d->order);
}

static void measure(blz_par *par, void *arg)
{
    struct data *d = arg;

    bench_start(d->run);
    d->work(par, d);
    bench_stop(d->run);
}

/* par is NULL in the plain loops. */
static void run_work(struct run *run, size_t nr_keys, void (*work)(blz_par *par, struct data *d),
                     bool serial)
{
    struct data d = {.run = run, .n = run->n, .nr_keys = nr_keys, .work = work};
    blz_pool *pool;

    data_init(&d);
    if (serial) {
        measure(NULL, &d);
    } else {
        bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = run->threads}), "pool");
        blz_pool_run(pool, measure, &d);
        bench_check(blz_pool_free(pool), "free");
    }
    data_free(&d);
}

/* ---- a plain hash table ---- */

struct table {
    uint32_t *slots; /* number of a group, plus one */
    size_t mask;
};

static void table_init(struct table *t, size_t nr_keys)
{
    size_t size = 16;

    while (size < 2 * nr_keys)
        size *= 2;
    t->slots = calloc(size, sizeof *t->slots);
    bench_check(t->slots ? 0 : -ENOMEM, "memory");
    t->mask = size - 1;
}

/* The group of element i: d->out_keys has the keys of those that there are. */
static size_t group_of(const struct table *t, struct data *d, size_t i)
{
    uint64_t key = d->keys[i];
    size_t slot = mixed(key) & t->mask;
    uint32_t k;

    for (; (k = t->slots[slot]) != 0; slot = (slot + 1) & t->mask)
        if (d->out_keys[k - 1] == key)
            return k - 1;
    t->slots[slot] = (uint32_t)d->nr + 1;
    d->out_keys[d->nr] = key;
    d->out_values[d->nr] = 0;
    d->firsts[d->nr] = i;
    return d->nr++;
}

/* ---- sums by key ---- */

BLZ_PAR_DEFINE_REDUCE_BY_KEY(total, uint64_t, uint64_t, x, *a == *b, acc + right)

static void total_parallel(blz_par *par, struct data *d)
{
    bench_check(total_reduce_by_key(par, d->out_keys, d->out_values, &d->nr, d->keys, d->values,
                                    d->n, NULL, NULL),
                "reduce");
}

static void total_plain(blz_par *par, struct data *d)
{
    struct table t;

    (void)par;
    table_init(&t, d->nr_keys);
    for (size_t i = 0; i < d->n; i++)
        d->out_values[group_of(&t, d, i)] += d->values[i];
    free(t.slots);
}

static void reduce_by_key(struct run *run)
{
    run_work(run, FEW, total_parallel, false);
}

static void reduce_by_key_serial(struct run *run)
{
    run_work(run, FEW, total_plain, true);
}

static void reduce_by_key_many(struct run *run)
{
    run_work(run, MANY, total_parallel, false);
}

static void reduce_by_key_many_serial(struct run *run)
{
    run_work(run, MANY, total_plain, true);
}

/* ---- groups, with their elements ---- */

BLZ_PAR_DEFINE_GROUP(number, uint64_t, x, *a == *b)

static void group_parallel(blz_par *par, struct data *d)
{
    bench_check(number_group(par, d->ids, d->firsts, &d->nr, d->keys, d->n, NULL, NULL), "group");
    bench_check(blz_par_group_order(par, d->offsets, d->order, d->ids, d->n, d->nr, NULL), "order");
}

static void group_plain(blz_par *par, struct data *d)
{
    struct table t;
    size_t place = 0;

    (void)par;
    table_init(&t, d->nr_keys);
    for (size_t i = 0; i < d->n; i++)
        d->ids[i] = (uint32_t)group_of(&t, d, i);
    memset(d->offsets, 0, d->nr * sizeof *d->offsets);
    for (size_t i = 0; i < d->n; i++)
        d->offsets[d->ids[i]]++;
    for (size_t g = 0; g < d->nr; g++) {
        size_t len = d->offsets[g];
        d->offsets[g] = place;
        place += len;
    }
    for (size_t i = 0; i < d->n; i++)
        d->order[d->offsets[d->ids[i]]++] = i;
    free(t.slots);
}

static void group_by(struct run *run)
{
    run_work(run, FEW, group_parallel, false);
}

static void group_by_serial(struct run *run)
{
    run_work(run, FEW, group_plain, true);
}

/* ---- a random order ---- */

static void shuffle_parallel(blz_par *par, struct data *d)
{
    bench_check(blz_par_shuffle(par, d->keys, d->n, sizeof *d->keys, 7, NULL), "shuffle");
}

static void shuffle_plain(blz_par *par, struct data *d)
{
    (void)par;
    for (size_t i = d->n; i > 1; i--) {
        size_t j = (size_t)(((mixed(i) >> 32) * i) >> 32);
        uint64_t x = d->keys[j];

        d->keys[j] = d->keys[i - 1];
        d->keys[i - 1] = x;
    }
}

static void shuffle(struct run *run)
{
    run_work(run, MANY, shuffle_parallel, false);
}

static void shuffle_serial(struct run *run)
{
    run_work(run, MANY, shuffle_plain, true);
}

const struct bench par_group_benches[] = {
    {"reduce_by_key", NUMBERS, reduce_by_key, false},
    {"reduce_by_key_serial", NUMBERS, reduce_by_key_serial, false},
    {"reduce_by_key_many", NUMBERS, reduce_by_key_many, false},
    {"reduce_by_key_many_serial", NUMBERS, reduce_by_key_many_serial, false},
    {"group_by", NUMBERS, group_by, false},
    {"group_by_serial", NUMBERS, group_by_serial, false},
    {"shuffle", NUMBERS, shuffle, false},
    {"shuffle_serial", NUMBERS, shuffle_serial, false},
    {0},
};
