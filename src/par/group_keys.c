/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a block of an array, numbered in the order of their coming: an open-addressing table
 * that starts small and grows within memory that is enough for all elements to differ. What remains
 * of a block is its keys, and a sum of values for each.
 */
#include "par/group.h"

#include <blitz/par_reduce.h>

#include <errno.h>
#include <string.h>

enum { FIRST_SLOTS = 1 << 8 };

static void put_slot(struct blz_par_keys_ *k, size_t number)
{
    size_t slot = k->keys[number].hash & k->mask;

    while (k->slots[slot] != 0)
        slot = (slot + 1) & k->mask;
    k->slots[slot] = (uint32_t)number + 1;
}

/* The slots have room for twice the keys of a full block from the beginning. */
void blz_par_keys_grow_(struct blz_par_keys_ *k)
{
    k->mask = 2 * k->mask + 1;
    memset(k->slots, 0, (k->mask + 1) * sizeof *k->slots);
    for (size_t i = 0; i < k->nr; i++)
        put_slot(k, i);
}

void blz_par_emit_first_(void *arg, size_t group, size_t first, const void *sum)
{
    const struct blz_par_arrays_ *arrays = arg;

    (void)sum;
    ((size_t *)arrays->out)[group] = first;
}

/* What a thread needs for the blocks that it numbers. */
typedef struct scratch {
    struct blz_par_keys_ keys;
    uint32_t *ids;
    char *memory;
    size_t size;
} scratch;

static size_t slots_for(size_t block)
{
    size_t slots = FIRST_SLOTS;

    while (slots <= 2 * block)
        slots *= 2;
    return slots;
}

static bool scratch_init(blz_par *par, scratch *s, size_t block)
{
    size_t keys = block * sizeof *s->keys.keys, ids = block * sizeof *s->ids;

    s->size = keys + ids + slots_for(block) * sizeof *s->keys.slots;
    s->memory = blz__par_alloc(par, s->size);
    if (!s->memory)
        return false;
    s->keys.keys = (void *)s->memory;
    s->ids = (void *)(s->memory + keys);
    s->keys.slots = (void *)(s->memory + keys + ids);
    return true;
}

/* Keeps what is needed of the keys, and of their values. */
static int keep_keys(blz_par *par, groups *gs, size_t block, const scratch *s)
{
    block_keys *b = &gs->blocks[block];
    size_t size = s->keys.nr * sizeof *b->keys;

    b->keys = blz__par_alloc(par, size);
    if (!b->keys)
        return -ENOMEM;
    b->nr = s->keys.nr;
    memcpy(b->keys, s->keys.keys, size);
    return 0;
}

static int fold_values(blz_par *par, groups *gs, size_t block, size_t begin, size_t end,
                       const scratch *s)
{
    char *sums;

    if (!gs->g->fold)
        return 0;
    sums = gs->block_sums[block] = blz__par_alloc(par, size_of_sums(gs, s->keys.nr));
    if (!sums)
        return -ENOMEM;
    gs->g->fold(gs->g->arrays, begin, end, s->ids, s->keys.keys, sums);
    return 0;
}

static int number_block(blz_par *par, groups *gs, size_t block, scratch *s)
{
    size_t begin = block * gs->block, end = min_size(begin + gs->block, gs->n);
    int rc = cancelled(gs->options);

    if (rc < 0)
        return rc;
    s->keys.nr = 0;
    s->keys.mask = FIRST_SLOTS - 1;
    memset(s->keys.slots, 0, FIRST_SLOTS * sizeof *s->keys.slots);
    gs->g->number(gs->g->arrays, begin, end, &s->keys, s->ids);
    if (gs->g->ids)
        memcpy(gs->g->ids + begin, s->ids, (end - begin) * sizeof *s->ids);
    rc = keep_keys(par, gs, block, s);
    return rc < 0 ? rc : fold_values(par, gs, block, begin, end, s);
}

/* The scratch memory goes with a thread from block to block. */
static int number_range(blz_par *par, size_t begin, size_t end, void *acc, void *arg)
{
    groups *gs = arg;
    scratch *s = acc;
    int rc = 0;

    if (!s->memory && !scratch_init(par, s, gs->block))
        return -ENOMEM;
    for (size_t block = begin; block < end && rc == 0; block++)
        rc = number_block(par, gs, block, s);
    return rc;
}

static int end_scratch(void *acc, void *right, void *arg)
{
    groups *gs = arg;
    scratch *s = right;

    (void)acc;
    blz__par_free(gs->par, s->memory, s->size);
    return 0;
}

int blz__par_number_blocks(blz_par *par, groups *gs)
{
    static const scratch none = {.memory = NULL};
    blz_par_reducer reducer = {sizeof none, &none, number_range, end_scratch};
    blz_par_options any = options_with_grain(gs->options, 0);
    scratch s = none;
    int rc = blz_par_reduce(par, gs->nr_blocks, &reducer, gs, &s, &any);

    end_scratch(NULL, &s, gs);
    return rc;
}
