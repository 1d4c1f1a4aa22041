/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of task memory: the header, then blocks of one size. For heap.c and pool.c only. */
#ifndef BLZ_TASK_CHUNK_H
#define BLZ_TASK_CHUNK_H

#include "task/heap.h"

struct blz__chunk {
    /* what every free and every wake reads */
    blz__heap *heap;
    blz_rt *rt;
    /* the owner's */
    blz_task *free; /* blocks given back */
    uint32_t used;  /* blocks in use */
    uint32_t bump;  /* blocks handed out at least once; walkers read it */
    uint32_t nr_blocks;
    uint32_t block_size;
    uint32_t cls;
    bool listed; /* in heap->partial */
    /* rarely */
    struct blz__chunk *next_partial, *prev_partial;
    struct blz__chunk *next_all, *prev_all;
    struct blz__span *span;
    size_t size;
};

#define CHUNK_HEADER ((sizeof(struct blz__chunk) + 63) & ~(size_t)63)

struct blz__chunk *blz__chunk_get(blz__pool *pool, size_t size);
void blz__chunk_put(blz__pool *pool, struct blz__chunk *chunk);

static inline struct blz__chunk *chunk_of(const blz_task *block)
{
    return (void *)((uintptr_t)block & ~(uintptr_t)(HEAP_CHUNK - 1));
}

static inline blz_task *chunk_block(struct blz__chunk *chunk, uint32_t i)
{
    return (void *)((char *)chunk + CHUNK_HEADER + (size_t)i * chunk->block_size);
}

#endif
