/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for the groups of equal elements, in the order of their first ones.
 *
 * 1. The array is cut into blocks, whose length depends on nothing but n. Each block numbers its
 *    own keys (group_keys.c), in a table that fits into a core's cache. A frequent key is a few of
 *    the block's keys from here on, so no bucket gets too full later.
 * 2. The keys of all blocks, one behind the other, are the entries. They are distributed by the top
 *    bits of their hashes; equal ones come into the same bucket, in the order of the blocks.
 * 3. Each bucket finds for each of its entries the first one with the same key, its leader, and
 *    adds the entry's sum to the leader's, in order.
 * 4. Leaders are numbered in the order of the entries, which is the order of their first elements.
 *    The others get the number of their leader.
 * 5. The elements' numbers in their blocks become numbers of groups.
 */
#include "par/group.h"

#include <blitz/error.h>
#include <string.h>

enum {
    BLOCK = 1 << 14, /* elements, at least; */
    MOST_BLOCKS = 128,
    BUCKET = 1 << 12, /* entries, about */
    MOST_BUCKETS = 1 << 10,
};

/* ---- 2. entries, by their hashes ---- */

static size_t bucket_of(const groups *gs, uint64_t hash)
{
    return gs->nr_buckets > 1 ? (size_t)(hash >> gs->shift) : 0;
}

static int count_entries(size_t begin, size_t end, size_t *counts, void *arg)
{
    const groups *gs = arg;

    for (const block_keys *b = gs->blocks + begin; b < gs->blocks + end; b++)
        for (size_t k = 0; k < b->nr; k++)
            counts[bucket_of(gs, b->keys[k].hash)]++;
    return 0;
}

static void move_entries(size_t begin, size_t end, size_t *places, void *arg)
{
    groups *gs = arg;

    for (size_t block = begin; block < end; block++) {
        const block_keys *b = &gs->blocks[block];

        for (size_t k = 0; k < b->nr; k++) {
            struct blz_par_key_ key = b->keys[k];
            entry e = {key.hash, key.first, b->base + k};
            gs->entries[places[bucket_of(gs, key.hash)]++] = e;
            gs->firsts[e.number] = key.first;
        }
        if (gs->sums && gs->g->sum_size > 0)
            memcpy(gs->sums + b->base * gs->g->sum_size, b->sums, b->nr * gs->g->sum_size);
    }
}

static int distribute(blz_par *par, groups *gs)
{
    distribution d = {gs->nr_blocks, 1,         gs->nr_buckets, gs, count_entries,
                      move_entries,  gs->starts};

    return blz__par_distribute(par, &d, gs->options);
}

/* ---- 3. leaders ---- */

static size_t slots_of_bucket(size_t len)
{
    size_t slots = 16;

    while (slots < 2 * len)
        slots *= 2;
    return slots;
}

/* The place, in the bucket, of the first entry with the same key; or of e itself. */
static size_t find_leader(const groups *gs, const entry *bucket, size_t e, uint32_t *slots,
                          size_t mask)
{
    size_t slot = bucket[e].hash & mask;
    uint32_t k;

    for (; (k = slots[slot]) != 0; slot = (slot + 1) & mask) {
        const entry *other = &bucket[k - 1];

        if (other->hash == bucket[e].hash &&
            gs->g->same(other->first, bucket[e].first, gs->g->arrays))
            return k - 1;
    }
    slots[slot] = (uint32_t)e + 1;
    return e;
}

static int lead_bucket(blz_par *par, groups *gs, size_t k)
{
    const entry *bucket = gs->entries + gs->starts[k];
    size_t len = gs->starts[k + 1] - gs->starts[k], nr_slots = slots_of_bucket(len);
    uint32_t *slots = blz__par_alloc(par, nr_slots * sizeof *slots);

    if (!slots)
        return -ENOMEM;
    memset(slots, 0, nr_slots * sizeof *slots);
    for (size_t e = 0; e < len; e++) {
        size_t leader = find_leader(gs, bucket, e, slots, nr_slots - 1);
        size_t own = bucket[e].number, first = bucket[leader].number;

        gs->leaders[own] = first;
        if (gs->sums && own != first)
            gs->g->add(gs->sums + first * gs->g->sum_size, gs->sums + own * gs->g->sum_size,
                       gs->g->arrays);
    }
    blz__par_free(par, slots, nr_slots * sizeof *slots);
    return 0;
}

static int lead_buckets(blz_par *par, size_t begin, size_t end, void *arg)
{
    groups *gs = arg;
    int rc = 0;

    for (size_t k = begin; k < end && rc == 0; k++) {
        rc = cancelled(gs->options);
        if (rc == 0)
            rc = lead_bucket(par, gs, k);
    }
    return rc;
}

/* ---- 4. numbers of groups ---- */

static int count_leaders(size_t begin, size_t end, void *sum, void *arg)
{
    const groups *gs = ((struct blz_par_arrays_ *)arg)->arg;
    size_t nr = 0;

    for (size_t e = begin; e < end; e++)
        nr += gs->leaders[e] == e;
    *(size_t *)sum = nr;
    return 0;
}

static int number_leaders(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const groups *gs = ((struct blz_par_arrays_ *)arg)->arg;
    size_t *nr = carry;

    (void)first;
    for (size_t e = begin; e < end; e++) {
        if (gs->leaders[e] != e)
            continue;
        if (gs->g->emit)
            gs->g->emit(*nr, gs->firsts[e], gs->sums ? gs->sums + e * gs->g->sum_size : NULL,
                        gs->g->arrays);
        gs->ids[e] = (uint32_t)(*nr)++;
    }
    return 0;
}

static int number_others(blz_par *par, size_t begin, size_t end, void *arg)
{
    groups *gs = arg;

    (void)par;
    for (size_t e = begin; e < end; e++)
        if (gs->leaders[e] != e)
            gs->ids[e] = gs->ids[gs->leaders[e]]; /* which is a leader's: not written here */
    return 0;
}

/* ---- 5. numbers of elements ---- */

static int translate_blocks(blz_par *par, size_t begin, size_t end, void *arg)
{
    groups *gs = arg;

    (void)par;
    for (size_t block = begin; block < end; block++) {
        size_t from = block * gs->block, to = min_size(from + gs->block, gs->n);
        const uint32_t *ids = gs->ids + gs->blocks[block].base;

        for (size_t i = from; i < to; i++)
            gs->g->ids[i] = ids[gs->g->ids[i]];
    }
    return 0;
}

/* ---- all of it ---- */

static void plan_buckets(groups *gs)
{
    size_t base = 0;

    for (size_t block = 0; block < gs->nr_blocks; block++) {
        gs->blocks[block].base = base;
        base += gs->blocks[block].nr;
    }
    gs->nr_entries = base;
    gs->nr_buckets = 1;
    gs->shift = 64;
    while (gs->nr_buckets < MOST_BUCKETS && gs->nr_buckets * BUCKET < gs->nr_entries) {
        gs->nr_buckets *= 2;
        gs->shift--;
    }
}

static bool allocate_entries(blz_par *par, groups *gs)
{
    size_t n = gs->nr_entries;

    gs->entries = blz__par_alloc(par, n * sizeof *gs->entries);
    gs->starts = blz__par_alloc(par, (gs->nr_buckets + 1) * sizeof *gs->starts);
    gs->leaders = blz__par_alloc(par, n * sizeof *gs->leaders);
    gs->firsts = blz__par_alloc(par, n * sizeof *gs->firsts);
    gs->ids = blz__par_alloc(par, n * sizeof *gs->ids);
    gs->sums = gs->g->fold ? blz__par_alloc(par, size_of_sums(gs, n)) : NULL;
    return gs->entries && gs->starts && gs->leaders && gs->firsts && gs->ids &&
           (gs->sums || !gs->g->fold);
}

static void free_entries(blz_par *par, groups *gs)
{
    size_t n = gs->nr_entries;

    blz__par_free(par, gs->entries, n * sizeof *gs->entries);
    blz__par_free(par, gs->starts, (gs->nr_buckets + 1) * sizeof *gs->starts);
    blz__par_free(par, gs->leaders, n * sizeof *gs->leaders);
    blz__par_free(par, gs->firsts, n * sizeof *gs->firsts);
    blz__par_free(par, gs->ids, n * sizeof *gs->ids);
    blz__par_free(par, gs->sums, size_of_sums(gs, n));
}

static int number_entries(blz_par *par, groups *gs, size_t *nr)
{
    struct blz_par_arrays_ arrays = {.n = gs->nr_entries, .arg = gs};
    blz_par_options any = options_with_grain(gs->options, 0);
    blz_par_options each = options_with_grain(gs->options, 1);
    int rc = distribute(par, gs);

    if (rc == 0)
        rc = blz_par_for(par, gs->nr_buckets, lead_buckets, gs, &each);
    if (rc == 0)
        rc = blz_par_pack_(par, sizeof *gs->leaders, &arrays, count_leaders, number_leaders, nr,
                           &any);
    if (rc == 0 && *nr > UINT32_MAX)
        rc = -E2BIG;
    if (rc == 0 && gs->g->ids)
        rc = blz_par_for(par, gs->nr_entries, number_others, gs, &any);
    if (rc == 0 && gs->g->ids)
        rc = blz_par_for(par, gs->nr_blocks, translate_blocks, gs, &any);
    return rc;
}

static int run(blz_par *par, groups *gs, size_t *nr)
{
    int rc = blz__par_number_blocks(par, gs);

    if (rc < 0)
        return rc;
    plan_buckets(gs);
    rc = allocate_entries(par, gs) ? number_entries(par, gs, nr) : -ENOMEM;
    free_entries(par, gs);
    return rc;
}

static void free_blocks(blz_par *par, groups *gs)
{
    for (size_t k = 0; k < gs->nr_blocks; k++)
        blz__par_free_list(par, gs, &gs->blocks[k]);
    blz__par_free(par, gs->blocks, gs->nr_blocks * sizeof *gs->blocks);
}

int blz_par_group_(blz_par *par, const struct blz_par_grouping_ *grouping, size_t *nr,
                   const blz_par_options *options)
{
    groups gs = {.par = par,
                 .g = grouping,
                 .options = options_or_defaults(options),
                 .n = grouping->arrays->n};
    int rc;

    *nr = 0;
    if (gs.n == 0)
        return cancelled(gs.options);
    gs.block = gs.options->grain ? gs.options->grain : max_size(gs.n / MOST_BLOCKS, BLOCK);
    gs.block = min_size(gs.block, gs.n);
    gs.nr_blocks = nr_blocks(gs.n, gs.block);
    gs.blocks = blz__par_alloc(par, gs.nr_blocks * sizeof *gs.blocks);
    if (!gs.blocks)
        return -ENOMEM;
    memset(gs.blocks, 0, gs.nr_blocks * sizeof *gs.blocks);
    rc = run(par, &gs, nr);
    free_blocks(par, &gs);
    return rc;
}
