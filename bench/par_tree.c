/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fork-join pool on trees: the sum of a large balanced one (tree24), the search tree of twelve
 * queens (nqueens12), and an unbalanced one whose shape comes from SHA-1 (uts_t1, the tree T1 of
 * the Unbalanced Tree Search benchmark). The operation is a node. The names with _serial are the
 * same functions without forks.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TREE24_NODES = (1 << 24) - 1,
    QUEENS = 12,
    QUEENS_NODES = 856189,
    QUEENS_SOLUTIONS = 14200,
    UTS_NODES = 4130071,
};

static volatile uint64_t sink;

static void run_in_pool(struct run *run, blz_par_fn fn, void *arg)
{
    blz_pool *pool;

    bench_check(blz_pool_new(&pool, &(blz_pool_options){.threads = run->threads}), "pool");
    bench_start(run);
    bench_check(blz_pool_run(pool, fn, arg), "run");
    bench_stop(run);
    bench_check(blz_pool_free(pool), "free");
}

static void expect(uint64_t value, uint64_t expected)
{
    if (value != expected)
        abort();
}

/* ---- a balanced tree in an array ---- */

BLZ_PAR_TASK(uint64_t, tree_sum, const uint64_t *, size_t)

static uint64_t tree_sum(blz_par *par, const uint64_t *v, size_t i)
{
    uint64_t value, left, right;

    if (i >= TREE24_NODES)
        return 0;
    value = v[i];
    BLZ_PAR_BOTH(par, tree_sum, (left, v, 2 * i + 1), (right, v, 2 * i + 2));
    return left + right + value;
}

static uint64_t tree_sum_serial(const uint64_t *v, size_t i)
{
    if (i >= TREE24_NODES)
        return 0;
    return v[i] + tree_sum_serial(v, 2 * i + 1) + tree_sum_serial(v, 2 * i + 2);
}

static uint64_t *plant(void)
{
    uint64_t *v = malloc(sizeof *v * TREE24_NODES);

    if (!v)
        abort();
    for (size_t i = 0; i < TREE24_NODES; i++)
        v[i] = i;
    return v;
}

static void sum_tree(blz_par *par, void *arg)
{
    sink = tree_sum(par, arg, 0);
}

static void tree24(struct run *run)
{
    uint64_t *v = plant();

    run_in_pool(run, sum_tree, v);
    expect(sink, (uint64_t)TREE24_NODES * (TREE24_NODES - 1) / 2);
    free(v);
}

static void tree24_serial(struct run *run)
{
    uint64_t *v = plant();

    bench_start(run);
    sink = tree_sum_serial(v, 0);
    bench_stop(run);
    free(v);
}

/* ---- queens ---- */

#define FULL ((1u << QUEENS) - 1)

static uint32_t free_places(uint32_t columns, uint32_t up, uint32_t down)
{
    return FULL & ~(columns | up | down);
}

BLZ_PAR_TASK(uint64_t, place, uint32_t, uint32_t, uint32_t, uint32_t)

/* Solutions with a queen on one of these places of the next row. */
static uint64_t place(blz_par *par, uint32_t columns, uint32_t up, uint32_t down, uint32_t places)
{
    uint32_t first = places & -places, rest = places ^ first;
    uint32_t next_columns = columns | first, next_up = ((up | first) << 1) & FULL;
    uint32_t next_down = (down | first) >> 1;
    uint32_t next_places = free_places(next_columns, next_up, next_down);
    uint64_t here, others;

    if (!places)
        return columns == FULL;
    if (!rest)
        return place(par, next_columns, next_up, next_down, next_places);
    BLZ_PAR_BOTH(par, place, (here, next_columns, next_up, next_down, next_places),
                 (others, columns, up, down, rest));
    return here + others;
}

static uint64_t place_serial(uint32_t columns, uint32_t up, uint32_t down)
{
    uint64_t sum = 0;

    if (columns == FULL)
        return 1;
    for (uint32_t places = free_places(columns, up, down); places; places &= places - 1) {
        uint32_t first = places & -places;
        sum += place_serial(columns | first, ((up | first) << 1) & FULL, (down | first) >> 1);
    }
    return sum;
}

static void place_all(blz_par *par, void *arg)
{
    *(uint64_t *)arg = place(par, 0, 0, 0, FULL);
}

static void nqueens12(struct run *run)
{
    uint64_t solutions = 0;

    run_in_pool(run, place_all, &solutions);
    expect(solutions, QUEENS_SOLUTIONS);
}

static void nqueens12_serial(struct run *run)
{
    volatile uint32_t none = 0;
    uint64_t solutions;

    bench_start(run);
    solutions = place_serial(none, 0, 0);
    bench_stop(run);
    expect(solutions, QUEENS_SOLUTIONS);
}

/* ---- SHA-1 of messages of up to 55 bytes ---- */

static uint32_t rotate(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t load_be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void fill_schedule(uint32_t w[80], const uint8_t *message, uint32_t len)
{
    uint8_t block[64] = {0};

    memcpy(block, message, len);
    block[len] = 0x80;
    store_be(block + 60, 8 * len);
    for (int i = 0; i < 16; i++)
        w[i] = load_be(block + 4 * (size_t)i);
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

static uint32_t mixed(int round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (round < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void sha1(uint8_t digest[20], const uint8_t *message, uint32_t len)
{
    static const uint32_t start[] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint32_t w[80], a = start[0], b = start[1], c = start[2], d = start[3], e = start[4];

    fill_schedule(w, message, len);
    for (int i = 0; i < 80; i++) {
        uint32_t next = rotate(a, 5) + mixed(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    store_be(digest, start[0] + a);
    store_be(digest + 4, start[1] + b);
    store_be(digest + 8, start[2] + c);
    store_be(digest + 12, start[3] + d);
    store_be(digest + 16, start[4] + e);
}

/* ---- an unbalanced tree: geometric, of fixed depth ---- */

enum { UTS_SEED = 19, UTS_DEPTH = 10, UTS_BRANCHES = 4, UTS_MOST_CHILDREN = 100 };

struct uts_node {
    uint8_t state[20];
    int depth;
};

static struct uts_node uts_root(void)
{
    struct uts_node node = {.depth = 0};
    uint8_t message[20] = {0};

    store_be(message + 16, UTS_SEED);
    sha1(node.state, message, sizeof message);
    return node;
}

static struct uts_node uts_child(const struct uts_node *parent, int number)
{
    struct uts_node node = {.depth = parent->depth + 1};
    uint8_t message[24];

    memcpy(message, parent->state, 20);
    store_be(message + 20, (uint32_t)number);
    sha1(node.state, message, sizeof message);
    return node;
}

static int uts_nr_children(const struct uts_node *node)
{
    double uniform = (load_be(node->state + 16) & 0x7fffffff) / 2147483648.0;
    int count;

    if (node->depth >= UTS_DEPTH)
        return 0;
    count = (int)floor(log(1 - uniform) / log(1 - 1.0 / (1 + UTS_BRANCHES)));
    return count < UTS_MOST_CHILDREN ? count : UTS_MOST_CHILDREN;
}

BLZ_PAR_TASK(uint64_t, uts_count, const struct uts_node *, int, int)

/* Nodes below these children of it, and these children. */
static uint64_t uts_count(blz_par *par, const struct uts_node *parent, int from, int to)
{
    int middle = from + (to - from) / 2;
    uint64_t left, right;

    if (from == to)
        return 0;
    if (to - from == 1) {
        struct uts_node node = uts_child(parent, from);
        return 1 + uts_count(par, &node, 0, uts_nr_children(&node));
    }
    BLZ_PAR_BOTH(par, uts_count, (left, parent, from, middle), (right, parent, middle, to));
    return left + right;
}

static uint64_t uts_count_serial(const struct uts_node *node)
{
    uint64_t count = 1;

    for (int i = 0; i < uts_nr_children(node); i++) {
        struct uts_node child = uts_child(node, i);
        count += uts_count_serial(&child);
    }
    return count;
}

static void uts_count_all(blz_par *par, void *arg)
{
    struct uts_node root = uts_root();

    *(uint64_t *)arg = 1 + uts_count(par, &root, 0, uts_nr_children(&root));
}

static void uts_t1(struct run *run)
{
    uint64_t count = 0;

    run_in_pool(run, uts_count_all, &count);
    expect(count, UTS_NODES);
}

static void uts_t1_serial(struct run *run)
{
    struct uts_node root = uts_root();
    uint64_t count;

    bench_start(run);
    count = uts_count_serial(&root);
    bench_stop(run);
    expect(count, UTS_NODES);
}

const struct bench par_tree_benches[] = {
    {"tree24", TREE24_NODES, tree24, false},
    {"tree24_serial", TREE24_NODES, tree24_serial, false},
    {"nqueens12", QUEENS_NODES, nqueens12, false},
    {"nqueens12_serial", QUEENS_NODES, nqueens12_serial, false},
    {"uts_t1", UTS_NODES, uts_t1, false},
    {"uts_t1_serial", UTS_NODES, uts_t1_serial, false},
    {0},
};
