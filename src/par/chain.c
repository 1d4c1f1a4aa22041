/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of an array of which each needs the value of all before it: scans, and everything that
 * packs (where the value is a number of elements).
 *
 * The textbook reads the array twice: all blocks are summed up, then all are written. Here the
 * blocks are handed out from left to right, and whoever gets one looks whether the value before it
 * is known.
 *
 * - It is: the block is written at once, in one pass. A single thread does only this.
 * - It is not: somebody is still at work to the left. The block is summed up, which lets others go
 *   on, and brings it into this core's cache. It is written when the value before it is known,
 *   which is usually a block or two later; so its second reading costs little.
 *
 * Nobody waits for anybody. A thread that has HELD blocks that it cannot write yet gives the oldest
 * one up, and those are written at the end, when everything is known. The blocks that a thread
 * holds are the accumulator of the loop (range.h): it keeps them from leaf to leaf.
 *
 * What is known so far, and who finds out, is in frontier.h.
 *
 * The blocks are so small that some of them fit into a core's cache, and so large that what happens
 * between them does not count: 64 KiB, or less if the operation is slow. How slow is found by doing
 * the beginning serially, for about ten microseconds; what is over by then never was parallel.
 */
#include "par/blocks.h"
#include "par/frontier.h"

#include <blitz/par_reduce.h>

#include <string.h>

enum { BLOCK_BYTES = 1 << 16, PROBE_FIRST = 32, HELD = 6 };

static const double probe_ns = 10000;

typedef struct chain {
    const struct blz_par_chain_ *ops;
    const blz_par_options *options;
    size_t origin, block, nr; /* where the first block begins; their length, their number */
    char *before, *sums;      /* nr + 1 and nr values */
    size_t *given_up;         /* blocks that are summed, but not written */
    size_t memory_size;
    blz__cache_aligned size_t next; /* block that nobody has had */
    size_t nr_given_up;
    frontier frontier;
} chain;

const blz_par_options blz__par_defaults = {0};

/* ---- blocks ---- */

/* Elements of a block that fits into the cache; those without a byte are counted as if of one. */
static size_t most_in_a_block(const struct blz_par_chain_ *ops)
{
    return max_size(BLOCK_BYTES / max_size(ops->size, 1), 1);
}

static void *value_at(char *values, const chain *c, size_t i)
{
    return values + i * c->ops->value_size;
}

static size_t begin_of(const chain *c, size_t i)
{
    return c->origin + i * c->block;
}

static size_t end_of(const chain *c, size_t i)
{
    return min_size(begin_of(c, i) + c->block, c->ops->n);
}

static int write_block(chain *c, size_t i, void *carry)
{
    return c->ops->write(begin_of(c, i), end_of(c, i), carry, false, c->ops->arg);
}

static void add_sum(size_t i, void *arg)
{
    chain *c = arg;

    memcpy(value_at(c->before, c, i + 1), value_at(c->before, c, i), c->ops->value_size);
    c->ops->add(value_at(c->before, c, i + 1), value_at(c->sums, c, i), c->ops->arg);
}

static void advance(chain *c)
{
    frontier_advance(&c->frontier, add_sum, c);
}

/* ---- blocks in parallel ---- */

/* Blocks that a thread has summed, oldest first. Not more bytes than a loop has room for. */
typedef struct held {
    size_t blocks[HELD];
    int nr;
} held;

_Static_assert(sizeof(held) <= 64, "the loop would need memory for each theft");

static void drop_oldest(held *h)
{
    h->nr--;
    memmove(h->blocks, h->blocks + 1, (size_t)h->nr * sizeof *h->blocks);
}

static void give_up_oldest(chain *c, held *h)
{
    c->given_up[blz__fetch_add(&c->nr_given_up, 1, RELAXED)] = h->blocks[0];
    drop_oldest(h);
}

static int write_held(chain *c, held *h)
{
    while (h->nr > 0 && frontier_has_passed(&c->frontier, h->blocks[0])) {
        size_t i = h->blocks[0];
        int rc = cancelled(c->options);

        if (rc == 0)
            rc = write_block(c, i, value_at(c->before, c, i));
        if (rc < 0)
            return rc;
        drop_oldest(h);
    }
    return 0;
}

/* The value before it is known: nobody else may write before[i + 1]. */
static int write_through(chain *c, size_t i)
{
    void *carry = value_at(c->before, c, i + 1);
    int rc;

    memcpy(carry, value_at(c->before, c, i), c->ops->value_size);
    rc = write_block(c, i, carry);
    if (rc == 0)
        frontier_mark(&c->frontier, i, BLOCK_THROUGH);
    return rc;
}

static int sum_up(chain *c, held *h, size_t i)
{
    int rc = c->ops->sum(begin_of(c, i), end_of(c, i), value_at(c->sums, c, i), c->ops->arg);

    if (rc < 0)
        return rc;
    frontier_mark(&c->frontier, i, BLOCK_SUMMED);
    if (h->nr == HELD)
        give_up_oldest(c, h);
    h->blocks[h->nr++] = i;
    return 0;
}

static int do_next_block(chain *c, held *h)
{
    size_t i = blz__fetch_add(&c->next, 1, RELAXED);
    int rc = cancelled(c->options);

    if (rc < 0)
        return rc;
    rc = frontier_at(&c->frontier) == i ? write_through(c, i) : sum_up(c, h, i);
    if (rc < 0)
        return rc;
    advance(c);
    return write_held(c, h);
}

/* As many blocks as there are in the range, but always the next ones. */
static int do_blocks(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    int rc = 0;

    (void)par;
    for (size_t i = begin; i < end && rc == 0; i++)
        rc = do_next_block(arg, acc);
    return rc;
}

/* A thread is done with its part: what it holds is left for the end. */
static int let_go(void *acc, void *right, void *arg)
{
    held *h = right;

    (void)acc;
    while (h->nr > 0)
        give_up_oldest(arg, h);
    return 0;
}

static int write_given_up(blz_par *par, size_t begin, size_t end, void *arg)
{
    chain *c = arg;
    int rc = 0;

    (void)par;
    for (size_t k = begin; k < end && rc == 0; k++)
        rc = write_block(c, c->given_up[k], value_at(c->before, c, c->given_up[k]));
    return rc;
}

static size_t rounded_up(size_t size)
{
    return (size + BLZ_CACHE_LINE - 1) / BLZ_CACHE_LINE * BLZ_CACHE_LINE;
}

static bool allocate(blz_par *par, chain *c)
{
    size_t values, places = rounded_up(c->nr * sizeof *c->given_up);

    if (__builtin_mul_overflow(2 * c->nr + 1, c->ops->value_size, &values))
        return false;
    values = rounded_up(values);
    c->memory_size = values + places + c->nr;
    c->before = blz__par_alloc(par, c->memory_size);
    if (!c->before)
        return false;
    c->sums = c->before + (c->nr + 1) * c->ops->value_size;
    c->given_up = (size_t *)(void *)(c->before + values);
    c->frontier.states = (uint8_t *)c->before + values + places;
    c->frontier.nr = c->nr;
    return true;
}

static int do_in_parallel(blz_par *par, chain *c, void *value)
{
    static const held nothing = {.nr = 0};
    blz_par_reducer reducer = {sizeof nothing, &nothing, do_blocks, let_go, {0, 0}};
    blz_par_options o = options_with_grain(c->options, 0);
    held h;
    int rc;

    memcpy(c->before, value, c->ops->value_size);
    memset(c->frontier.states, 0, c->nr);
    rc = blz_par_reduce(par, &h, c->nr, &reducer, c, &o);
    if (rc < 0)
        return rc;
    let_go(NULL, &h, c);
    advance(c);
    rc = blz_par_for(par, c->nr_given_up, write_given_up, c, &o);
    memcpy(value, value_at(c->before, c, c->nr), c->ops->value_size);
    return rc < 0 ? rc : cancelled(c->options);
}

/* ---- serially ---- */

static int do_serially(const struct blz_par_chain_ *ops, size_t begin, size_t end, size_t block,
                       void *value, bool starts, const blz_par_options *options)
{
    int rc = cancelled(options);

    while (rc == 0 && begin < end) {
        size_t stop = end - begin < block ? end : begin + block;

        rc = ops->write(begin, stop, value, begin == 0 && !starts, ops->arg);
        begin = stop;
        if (rc == 0)
            rc = cancelled(options);
    }
    return rc;
}

/*
 * Does the beginning, in steps that grow; gives where it ends, and how long blocks should be from
 * there on.
 */
static int probe(blz_par *par, chain *c, void *value, bool starts)
{
    const struct blz_par_chain_ *ops = c->ops;
    const blz__clock *clock = &worker_of(par)->pool->clock;
    size_t most = most_in_a_block(ops), done = 0;
    size_t step = min_size(PROBE_FIRST, most);
    uint64_t start = blz__clock_ticks(clock);
    double spent = 0;
    int rc = 0;

    while (rc == 0 && done < ops->n && spent < probe_ns) {
        size_t stop = min_size(ops->n, done + step);

        rc = do_serially(ops, done, stop, most, value, starts, c->options);
        done = stop;
        step = min_size(2 * step, most);
        spent = (double)(blz__clock_ticks(clock) - start) * clock->ns_per_tick;
    }
    c->origin = done;
    c->block = min_size((size_t)((double)done * (probe_ns / (spent + 1))) + 1, most);
    return rc;
}

/* ---- all of it ---- */

static int run(blz_par *par, chain *c, void *value, bool starts)
{
    size_t left = c->ops->n - c->origin;
    int rc;

    c->nr = nr_blocks(left, c->block);
    if (c->nr <= 1 || !allocate(par, c))
        return do_serially(c->ops, c->origin, c->ops->n, c->block, value, starts, c->options);
    rc = do_in_parallel(par, c, value);
    blz__par_free(par, c->before, c->memory_size);
    return rc;
}

/*
 * The beginning is always done serially, be it one element: the blocks then have a value before
 * them, also where the first element is the first value.
 */
int blz_par_chain_run_(blz_par *par, const struct blz_par_chain_ *ops, void *value, bool starts,
                       const blz_par_options *options)
{
    chain c = {.ops = ops, .options = options_or_defaults(options)};
    size_t grain = c.options->grain;
    size_t block = grain ? grain : most_in_a_block(ops);
    int rc;

    if (nr_threads_of(par) == 1 || ops->n <= grain)
        return do_serially(ops, 0, ops->n, block, value, starts, c.options);
    if (grain == 0) {
        rc = probe(par, &c, value, starts);
    } else {
        c.block = block;
        c.origin = block;
        rc = do_serially(ops, 0, block, block, value, starts, c.options);
    }
    return rc < 0 || c.origin == ops->n ? rc : run(par, &c, value, starts);
}
