/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of equal elements: what group.c and group_keys.c share. */
#ifndef BLZ_PAR_GROUP_H
#define BLZ_PAR_GROUP_H

#include "par/distribute.h"

#include <blitz/par_group.h>

typedef struct block_keys {
    struct blz_par_key_ *keys;
    char *sums;      /* of their values, or NULL */
    size_t nr, room; /* how many, and for how many there is memory */
    size_t base;     /* how many there are in the blocks before */
} block_keys;

/* In a bucket. */
typedef struct entry {
    uint64_t hash;
    size_t first, number; /* index of an element; the entry's place among all */
} entry;

typedef struct groups {
    blz_par *par; /* who began, for its allocator */
    const struct blz_par_grouping_ *g;
    const blz_par_options *options;
    size_t n, block, nr_blocks, nr_entries, nr_buckets;
    unsigned shift; /* of a hash, to its bucket */
    block_keys *blocks;
    entry *entries;  /* by buckets */
    size_t *starts;  /* of the buckets */
    size_t *leaders; /* of each entry */
    size_t *firsts;  /* element of each entry */
    uint32_t *ids;   /* group of each entry */
    char *sums;      /* of each entry */
} groups;

/* Of nr values; never nothing, which an allocator may refuse. */
static inline size_t size_of_sums(const groups *gs, size_t nr)
{
    return nr * gs->g->sum_size + 1;
}

/* Numbers the keys of each block: fills blocks, and g->ids with numbers in blocks. */
int blz__par_number_blocks(blz_par *par, groups *gs);

/* What a block has. */
void blz__par_free_list(blz_par *par, const groups *gs, const block_keys *b);

#endif
