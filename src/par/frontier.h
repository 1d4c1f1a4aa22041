/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the values of a chain of blocks are known (chain.c). before[i], the value of all blocks
 * before block i, is known for i <= frontier.
 *
 * | state of block i | who | does | then |
 * |---|---|---|---|
 * | EMPTY, i == frontier | its owner | writes it, and before[i + 1] | THROUGH |
 * | EMPTY, i > frontier | its owner | sums it up | SUMMED |
 * | SUMMED, i == frontier | who has the lock | before[i + 1] = before[i] + sum | frontier + 1 |
 * | THROUGH, i == frontier | who has the lock | | frontier + 1 |
 *
 * When the frontier is beyond i, before[i] is only block i's. The lock is tried, never waited for:
 * who does not get it leaves its block to the one who has it, or to the next one who comes. So the
 * frontier may stay behind for a while. In the end, when no block is EMPTY, one who is alone moves
 * it.
 */
#ifndef BLZ_PAR_FRONTIER_H
#define BLZ_PAR_FRONTIER_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/cacheline.h"

typedef enum block_state { BLOCK_EMPTY, BLOCK_SUMMED, BLOCK_THROUGH } block_state;

typedef struct frontier {
    uint8_t *states;
    size_t nr; /* blocks */
    blz__cache_aligned size_t at;
    uint32_t is_advancing; /* the lock */
} frontier;

/* Makes before[i + 1] of before[i] and the sum of block i. */
typedef void (*frontier_add_fn)(size_t i, void *arg);

/* What has been written to before[i], for any i up to the result, is seen. */
static inline size_t frontier_at(const frontier *f)
{
    return blz__load(&f->at, ACQUIRE); /* pairs with the release in frontier_move */
}

/* Whether before[i] is known, and nobody has to know it any more but the owner of block i. */
static inline bool frontier_has_passed(const frontier *f, size_t i)
{
    return i < frontier_at(f);
}

/* [owner of the block] */
static inline void frontier_mark(frontier *f, size_t i, block_state state)
{
    BLZ_ASSERT(i < f->nr);
    BLZ_ASSERT(state != BLOCK_EMPTY);
    blz__store(&f->states[i], (uint8_t)state, RELEASE); /* pairs with the acquire below */
}

static inline block_state frontier_state(const frontier *f, size_t i)
{
    /* acquire: pairs with the release in frontier_mark, for the sum or the value */
    return i < f->nr ? (block_state)blz__load(&f->states[i], ACQUIRE) : BLOCK_EMPTY;
}

/* [who has the lock] */
static inline void frontier_move(frontier *f, frontier_add_fn add, void *arg)
{
    size_t i = blz__load(&f->at, RELAXED); /* only moves under the lock */
    block_state state;

    BLZ_ASSERT(blz__peek(&f->is_advancing));
    for (; (state = frontier_state(f, i)) != BLOCK_EMPTY; i++) {
        if (state == BLOCK_SUMMED)
            add(i, arg);
        blz__store(&f->at, i + 1, RELEASE); /* pairs with the acquire in frontier_at */
    }
}

/* Moves it as far as it goes, unless somebody else is about to. */
static inline void frontier_advance(frontier *f, frontier_add_fn add, void *arg)
{
    /* Not worth a lock if there is nothing to pass. An old value costs a try in vain. */
    if (frontier_state(f, blz__load(&f->at, RELAXED)) == BLOCK_EMPTY)
        return;
    /* acquire: pairs with the release below, for the frontier and the values of the last holder */
    if (blz__load(&f->is_advancing, RELAXED) || blz__swap(&f->is_advancing, 1u, ACQUIRE))
        return;
    frontier_move(f, add, arg);
    blz__store(&f->is_advancing, 0u, RELEASE); /* pairs with the acquire above */
}

#endif
