/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a block of an array, numbered in the order of their coming: an open-addressing table
 * that starts small and grows within memory that is enough for some thousand keys. Is it full, what
 * it has goes to the block's list, and it begins anew: a key may then be in the list twice. So the
 * table stays in a core's cache, and a block with few keys may be long. What remains of a block is
 * its list, and a sum of values for each key in it.
 */
#include "par/group.h"

#include <blitz/par_reduce.h>

#include <blitz/error.h>
#include <string.h>

enum {
    FIRST_SLOTS = 1 << 8,
    MOST_KEYS = 1 << 13, /* of a table, more or less */
    LEAST_KEYS = 1 << 6, /* if their sums are large */
    MOST_SUMS = 1 << 20, /* bytes */
};

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

void blz_par_emit_first_(size_t group, size_t first, const void *sum, void *arg)
{
    const struct blz_par_arrays_ *arrays = arg;

    (void)sum;
    ((size_t *)arrays->out)[group] = first;
}

/* What a thread needs for the blocks that it numbers. */
typedef struct scratch {
    struct blz_par_keys_ keys;
    uint32_t *ids; /* of a step, if nobody else wants them */
    char *sums;    /* of the keys */
    size_t step;   /* elements between two looks whether the table is full */
    char *memory;
    size_t size;
} scratch;

static size_t slots_for(size_t keys)
{
    size_t slots = FIRST_SLOTS;

    while (slots <= 2 * keys)
        slots *= 2;
    return slots;
}

/* In a step all elements may be new. */
static size_t step_for(const groups *gs)
{
    size_t most = MOST_KEYS;

    if (gs->g->fold && gs->g->sum_size > 0)
        most = max_size(min_size(MOST_SUMS / gs->g->sum_size, most), LEAST_KEYS);
    return min_size(most / 2, gs->block);
}

static bool scratch_init(blz_par *par, scratch *s, const groups *gs)
{
    size_t step = step_for(gs), room = min_size(3 * step, gs->block);
    size_t keys = room * sizeof *s->keys.keys, slots = slots_for(room) * sizeof *s->keys.slots;
    size_t sums = gs->g->fold ? room * gs->g->sum_size : 0;

    s->step = step;
    s->size = keys + sums + slots + step * sizeof *s->ids;
    s->memory = blz__par_alloc(par, s->size);
    if (!s->memory)
        return false;
    s->keys.keys = (void *)s->memory;
    s->keys.slots = (void *)(s->memory + keys);
    s->ids = (void *)(s->memory + keys + slots);
    s->sums = s->memory + keys + slots + step * sizeof *s->ids;
    return true;
}

static void clear_table(scratch *s)
{
    s->keys.nr = 0;
    s->keys.mask = FIRST_SLOTS - 1;
    memset(s->keys.slots, 0, FIRST_SLOTS * sizeof *s->keys.slots);
}

/* ---- what remains ---- */

/* Room for more in the list of a block. */
static int grow_list(blz_par *par, const groups *gs, block_keys *b, size_t room)
{
    struct blz_par_key_ *keys = blz__par_alloc(par, room * sizeof *keys);
    char *sums = gs->g->fold ? blz__par_alloc(par, size_of_sums(gs, room)) : NULL;

    if (!keys || (gs->g->fold && !sums)) {
        blz__par_free(par, keys, room * sizeof *keys);
        blz__par_free(par, sums, size_of_sums(gs, room));
        return -ENOMEM;
    }
    if (b->nr > 0)
        memcpy(keys, b->keys, b->nr * sizeof *keys);
    if (b->nr > 0 && sums)
        memcpy(sums, b->sums, b->nr * gs->g->sum_size);
    blz__par_free_list(par, gs, b);
    b->keys = keys;
    b->sums = sums;
    b->room = room;
    return 0;
}

void blz__par_free_list(blz_par *par, const groups *gs, const block_keys *b)
{
    blz__par_free(par, b->keys, b->room * sizeof *b->keys);
    blz__par_free(par, b->sums, size_of_sums(gs, b->room));
}

/* The keys of the table, and their sums. */
static int keep_keys(blz_par *par, const groups *gs, block_keys *b, const scratch *s)
{
    size_t nr = b->nr + s->keys.nr;
    int rc = nr > b->room ? grow_list(par, gs, b, max_size(nr, 2 * b->room)) : 0;

    if (rc < 0)
        return rc;
    memcpy(b->keys + b->nr, s->keys.keys, s->keys.nr * sizeof *b->keys);
    if (b->sums && gs->g->sum_size > 0)
        memcpy(b->sums + b->nr * gs->g->sum_size, s->sums, s->keys.nr * gs->g->sum_size);
    b->nr = nr;
    return 0;
}

/* ---- numbering ---- */

/* `before` keys are in the list already: the numbers of those in the table come after them. */
static void number_step(const groups *gs, size_t begin, size_t end, size_t before, scratch *s)
{
    uint32_t *ids = gs->g->ids ? gs->g->ids + begin : s->ids;

    gs->g->number(begin, end, &s->keys, ids, gs->g->arrays);
    if (gs->g->fold)
        gs->g->fold(begin, end, ids, s->keys.keys, s->sums, gs->g->arrays);
    for (size_t k = 0; before > 0 && gs->g->ids && k < end - begin; k++)
        ids[k] += (uint32_t)before;
}

static int number_block(blz_par *par, const groups *gs, size_t block, scratch *s)
{
    size_t begin = block * gs->block, end = min_size(begin + gs->block, gs->n);
    block_keys *b = &gs->blocks[block];
    int rc = cancelled(gs->options);

    clear_table(s);
    while (rc == 0 && begin < end) {
        size_t stop = min_size(begin + s->step, end);

        number_step(gs, begin, stop, b->nr, s);
        if (s->keys.nr > 2 * s->step || stop == end) {
            rc = keep_keys(par, gs, b, s);
            clear_table(s);
        }
        begin = stop;
    }
    return rc;
}

/* The scratch memory goes with a thread from block to block. */
static int number_range(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    groups *gs = arg;
    scratch *s = acc;
    int rc = 0;

    if (!s->memory && !scratch_init(par, s, gs))
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
    blz_par_reducer reducer = {sizeof none, &none, number_range, end_scratch, {0, 0}};
    blz_par_options any = options_with_grain(gs->options, 0);
    scratch s = none;
    int rc = blz_par_reduce(par, &s, gs->nr_blocks, &reducer, gs, &any);

    end_scratch(NULL, &s, gs);
    return rc;
}
