/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of tasks. See heap.h for the idea.
 *
 * Invariants, for the owner: a chunk with free blocks is the current one of its cls or in the
 * partial list; a chunk that is neither is full. A block is free exactly when its state word is 0.
 * Walkers hold walk_lock; a chunk enters and leaves the list `all` under it, so what they walk
 * cannot go away, whatever happens to the tasks inside.
 */
#include "task/heap.h"

#include "base/sanitize.h"
#include "task/chunk.h"
#include "task/header.h"

#include <string.h>

/* What `current` points to when a class has no chunk: it is always full. */
static struct blz__chunk no_chunk;

/* ---- size classes ---- */

static unsigned class_of(size_t size)
{
    if (size <= HEAP_SMALL_CLASSES * 16)
        return (unsigned)((size + 15) / 16) - 1;
    unsigned log = 63 - (unsigned)__builtin_clzl(size - 1); /* 2^log < size <= 2^(log+1) */
    unsigned eighth = (unsigned)((size - 1) >> (log - 3)) & 7;
    return HEAP_SMALL_CLASSES + (log - 10) * 8 + eighth;
}

static size_t class_size(unsigned cls)
{
    if (cls < HEAP_SMALL_CLASSES)
        return (cls + 1) * (size_t)16;
    unsigned above = cls - HEAP_SMALL_CLASSES;
    return (size_t)(9 + above % 8) << (7 + above / 8);
}

static bool has_class(size_t size)
{
    return HEAP_CHUNK >= 64 * 1024 && size <= 8192;
}

/* ---- chunks ---- */

static struct blz__chunk *chunk_new(blz__heap *heap, size_t size, size_t block_size, unsigned cls)
{
    struct blz__chunk *chunk = blz__chunk_get(heap->pool, size);

    if (!chunk)
        return NULL;
    chunk->heap = heap;
    chunk->rt = heap->rt;
    chunk->free = NULL;
    chunk->used = 0;
    chunk->bump = 0;
    chunk->block_size = (uint32_t)block_size;
    chunk->nr_blocks = (uint32_t)((size - CHUNK_HEADER) / block_size);
    chunk->cls = cls;
    chunk->listed = false;
    chunk->prev_all = NULL;
    blz__lock_acquire(&heap->walk_lock);
    chunk->next_all = heap->all;
    if (heap->all)
        heap->all->prev_all = chunk;
    heap->all = chunk;
    blz__lock_release(&heap->walk_lock);
    return chunk;
}

static void chunk_free(blz__heap *heap, struct blz__chunk *chunk)
{
    blz__lock_acquire(&heap->walk_lock);
    if (chunk->prev_all)
        chunk->prev_all->next_all = chunk->next_all;
    else
        heap->all = chunk->next_all;
    if (chunk->next_all)
        chunk->next_all->prev_all = chunk->prev_all;
    blz__lock_release(&heap->walk_lock);
    blz__asan_unpoison(chunk, chunk->size);
    blz__chunk_put(heap->pool, chunk);
}

static void partial_add(blz__heap *heap, struct blz__chunk *chunk)
{
    struct blz__chunk **list = &heap->partial[chunk->cls];

    chunk->listed = true;
    chunk->prev_partial = NULL;
    chunk->next_partial = *list;
    if (*list)
        (*list)->prev_partial = chunk;
    *list = chunk;
}

static void partial_remove(blz__heap *heap, struct blz__chunk *chunk)
{
    chunk->listed = false;
    if (chunk->prev_partial)
        chunk->prev_partial->next_partial = chunk->next_partial;
    else
        heap->partial[chunk->cls] = chunk->next_partial;
    if (chunk->next_partial)
        chunk->next_partial->prev_partial = chunk->prev_partial;
}

/* ---- allocation ---- */

static inline blz_task *chunk_take(struct blz__chunk *chunk)
{
    blz_task *block = chunk->free;

    if (block) {
        chunk->free = block->next;
    } else if (chunk->bump < chunk->nr_blocks) {
        block = chunk_block(chunk, chunk->bump);
        blz__store(&block->state, (uint64_t)0, RELAXED);
        /* release: pairs with the acquire in blz__heap_walk, which then reads the 0 */
        blz__store(&chunk->bump, chunk->bump + 1, RELEASE);
    } else {
        return NULL;
    }
    chunk->used++;
    return block;
}

static void collect_remote(blz__heap *heap)
{
    if (!blz__load(&heap->remote, RELAXED))
        return;
    /* acquire: pairs with the release in blz__heap_free_remote */
    blz_task *block = blz__swap(&heap->remote, (blz_task *)NULL, ACQUIRE);
    while (block) {
        blz_task *next = block->next;
        blz__heap_free_local(heap, block);
        block = next;
    }
}

static BLZ_COLD blz_task *alloc_slow(blz__heap *heap, unsigned cls)
{
    blz_task *block;

    collect_remote(heap);
    block = chunk_take(heap->current[cls]);
    if (block)
        return block;
    struct blz__chunk *chunk = heap->partial[cls];
    if (chunk)
        partial_remove(heap, chunk);
    else
        chunk = chunk_new(heap, HEAP_CHUNK, class_size(cls), cls);
    if (!chunk)
        return NULL;
    heap->current[cls] = chunk; /* the old one is full: it is in no list until a block returns */
    return chunk_take(chunk);
}

static BLZ_COLD blz_task *alloc_large(blz__heap *heap, size_t size)
{
    size_t block_size = (size + 15) & ~(size_t)15;
    size_t chunk_size = (CHUNK_HEADER + block_size + HEAP_CHUNK - 1) & ~(HEAP_CHUNK - 1);

    collect_remote(heap);
    if (block_size > UINT32_MAX / 2)
        return NULL;
    struct blz__chunk *chunk = chunk_new(heap, chunk_size, block_size, HEAP_CLASSES);
    if (!chunk)
        return NULL;
    chunk->nr_blocks = 1;
    return chunk_take(chunk);
}

blz_task *blz__heap_alloc(blz__heap *heap, size_t size)
{
    blz_task *block;

    if (blz_likely(has_class(size))) {
        unsigned cls = class_of(size);
        block = chunk_take(heap->current[cls]);
        if (blz_unlikely(!block))
            block = alloc_slow(heap, cls);
    } else {
        block = alloc_large(heap, size);
    }
    if (block)
        blz__asan_unpoison(block + 1, size - sizeof *block);
    return block;
}

/* ---- freeing ---- */

void blz__heap_free_local(blz__heap *heap, blz_task *block)
{
    struct blz__chunk *chunk = chunk_of(block);

    blz__asan_poison(block + 1, chunk->block_size - sizeof *block);
    block->next = chunk->free;
    chunk->free = block;
    chunk->used--;
    if (blz_unlikely(chunk->cls == HEAP_CLASSES)) {
        chunk_free(heap, chunk);
        return;
    }
    if (chunk == heap->current[chunk->cls])
        return;
    if (chunk->used == 0) {
        if (chunk->listed)
            partial_remove(heap, chunk);
        chunk_free(heap, chunk);
    } else if (!chunk->listed) {
        partial_add(heap, chunk);
    }
}

void blz__heap_free_remote(blz_task *first, blz_task *last)
{
    blz__heap *heap = blz__heap_of(first);
    blz_task *head = blz__load(&heap->remote, RELAXED);

    do
        last->next = head;
    while (!blz__cas_weak(&heap->remote, &head, first, RELEASE, RELAXED));
}

blz__heap *blz__heap_of(const blz_task *block)
{
    return chunk_of(block)->heap;
}

blz_rt *blz__heap_rt(const blz_task *block)
{
    return chunk_of(block)->rt;
}

/* ---- the whole ---- */

void blz__heap_walk(blz__heap *heap, void (*visit)(void *arg, blz_task *block), void *arg)
{
    blz__lock_acquire(&heap->walk_lock);
    for (struct blz__chunk *chunk = heap->all; chunk; chunk = chunk->next_all) {
        uint32_t bump = blz__load(&chunk->bump, ACQUIRE); /* pairs with chunk_take */
        for (uint32_t i = 0; i < bump; i++)
            visit(arg, chunk_block(chunk, i));
    }
    blz__lock_release(&heap->walk_lock);
}

void blz__heap_init(blz__heap *heap, blz_rt *rt, blz__pool *pool)
{
    memset(heap, 0, sizeof *heap);
    heap->rt = rt;
    heap->pool = pool;
    for (unsigned cls = 0; cls < HEAP_CLASSES; cls++)
        heap->current[cls] = &no_chunk;
}

void blz__heap_destroy(blz__heap *heap)
{
    struct blz__chunk *chunk, *next;

    collect_remote(heap);
    for (chunk = heap->all; chunk; chunk = next) {
        next = chunk->next_all;
        if (chunk->used == 0)
            chunk_free(heap, chunk);
    }
}
