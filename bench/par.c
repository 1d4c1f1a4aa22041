/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fork-join pool: what a fork and its join cost (fib, every call of which forks; the operation
 * is a fork), and what a small tree costs (a thousand nodes; the operation is a node). The names
 * with _serial are the same functions without forks.
 */
#include "bench.h"

#include <stdlib.h>

enum {
    FIB30_FORKS = 1346268,
    FIB35_FORKS = 14930351,
    FIB38_FORKS = 63245985,
    FIB40_FORKS = 165580140,
    TREE = 1000,
    TREES = 20000,
};

static volatile uint64_t sink;

static blz_pool *pool_of(const struct run *run)
{
    blz_pool *pool;

    bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = run->threads}), "pool");
    return pool;
}

/* ---- fib ---- */

BLZ_PAR_TASK(uint64_t, fib, int)

static BLZ_NOINLINE uint64_t fib(blz_par *par, int n)
{
    uint64_t left, right;

    if (n < 2)
        return (uint64_t)n;
    BLZ_PAR_BOTH(par, fib, (left, n - 1), (right, n - 2));
    return left + right;
}

static BLZ_NOINLINE uint64_t fib_serial(int n)
{
    return n < 2 ? (uint64_t)n : fib_serial(n - 1) + fib_serial(n - 2);
}

static void call_fib(blz_par *par, void *arg)
{
    sink = fib(par, *(volatile int *)arg);
}

static void run_fib(struct run *run, int n)
{
    blz_pool *pool = pool_of(run);
    int warm_up = 25;

    blz_pool_run(pool, call_fib, &warm_up);
    bench_start(run);
    blz_pool_run(pool, call_fib, &n);
    bench_stop(run);
    bench_check(blz_pool_free(pool), "free");
}

static void run_fib_serial(struct run *run, volatile int n)
{
    bench_start(run);
    sink = fib_serial(n);
    bench_stop(run);
}

static void fib30(struct run *run)
{
    run_fib(run, 30);
}

static void fib35(struct run *run)
{
    run_fib(run, 35);
}

static void fib38(struct run *run)
{
    run_fib(run, 38);
}

static void fib40(struct run *run)
{
    run_fib(run, 40);
}

static void fib35_serial(struct run *run)
{
    run_fib_serial(run, 35);
}

/* ---- a small tree ---- */

struct node {
    uint64_t value;
    struct node *left, *right;
};

BLZ_PAR_TASK(uint64_t, sum, const struct node *)

/* Forks where there are two subtrees. */
static BLZ_NOINLINE uint64_t sum(blz_par *par, const struct node *node)
{
    uint64_t value = node->value, left, right;

    if (!node->left || !node->right) {
        const struct node *child = node->left ? node->left : node->right;
        return value + (child ? sum(par, child) : 0);
    }
    BLZ_PAR_BOTH(par, sum, (left, node->left), (right, node->right));
    return left + right + value;
}

static BLZ_NOINLINE uint64_t sum_serial(const struct node *node)
{
    if (!node->left || !node->right) {
        const struct node *child = node->left ? node->left : node->right;
        return node->value + (child ? sum_serial(child) : 0);
    }
    return node->value + sum_serial(node->left) + sum_serial(node->right);
}

/* Nodes from..to of an array as a balanced tree. */
static struct node *plant(struct node *nodes, size_t from, size_t to)
{
    size_t middle = from + (to - from) / 2;

    if (from == to)
        return NULL;
    nodes[middle] = (struct node){middle, plant(nodes, from, middle), plant(nodes, middle + 1, to)};
    return &nodes[middle];
}

struct trees {
    struct run *run;
    blz_pool *pool;
    const struct node *tree;
};

static void sum_one(blz_par *par, void *arg)
{
    struct trees *t = arg;

    sink = sum(par, t->tree);
}

/* From within the pool, one computation after the other. */
static void sum_trees(blz_par *par, void *arg)
{
    struct trees *t = arg;

    (void)par;
    bench_start(t->run);
    for (uint64_t i = 0; i < t->run->n / TREE; i++)
        blz_pool_run(t->pool, sum_one, t);
    bench_stop(t->run);
}

static void tree1000(struct run *run)
{
    static struct node nodes[TREE];
    struct trees t = {run, pool_of(run), plant(nodes, 0, TREE)};

    blz_pool_run(t.pool, sum_trees, &t);
    bench_check(blz_pool_free(t.pool), "free");
}

static void tree1000_serial(struct run *run)
{
    static struct node nodes[TREE];
    const struct node *volatile tree = plant(nodes, 0, TREE);

    bench_start(run);
    for (uint64_t i = 0; i < run->n / TREE; i++)
        sink = sum_serial(tree);
    bench_stop(run);
}

const struct bench par_benches[] = {
    {"fib30", FIB30_FORKS, fib30, false},
    {"fib35", FIB35_FORKS, fib35, false},
    {"fib38", FIB38_FORKS, fib38, false},
    {"fib40", FIB40_FORKS, fib40, false},
    {"fib35_serial", FIB35_FORKS, fib35_serial, false},
    {"tree1000", (uint64_t)TREE *TREES, tree1000, false},
    {"tree1000_serial", (uint64_t)TREE *TREES, tree1000_serial, false},
    {0},
};
