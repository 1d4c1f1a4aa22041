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

#include "base/assert.h"
#include "base/sanitize.h"
#include "task/chunk.h"
#include "task/header.h"

#include <string.h>

/* What `current` points to when a class has no chunk: it is always full, and never written. */
static const struct blz__chunk no_chunk;

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

/* A chunk fresh from the pool becomes the heap's, with blocks of one size. */
static void chunk_add(blz__heap *heap, struct blz__chunk *chunk, size_t block_size, unsigned cls)
{
    chunk->heap = heap;
    chunk->rt = heap->rt;
    chunk->free = NULL;
    chunk->used = 0;
    chunk->bump = 0;
    chunk->block_size = (uint32_t)block_size;
    chunk->nr_blocks = (uint32_t)((chunk->size - CHUNK_HEADER) / block_size);
    chunk->cls = cls;
    chunk->listed = false;
    chunk->prev_all = NULL;
    blz__lock_acquire(&heap->walk_lock);
    chunk->next_all = heap->all;
    if (heap->all)
        heap->all->prev_all = chunk;
    heap->all = chunk;
    blz__lock_release(&heap->walk_lock);
}

/* Walks that have come to this chunk go on with the next. Under walk_lock. */
static void cursors_leave(blz__heap *heap, const struct blz__chunk *chunk)
{
    BLZ_ASSERT(blz__lock_is_held(&heap->walk_lock));
    for (heap_cursor *cursor = heap->cursors; cursor; cursor = cursor->next)
        if (cursor->chunk == chunk) {
            blz__plain_write(&cursor->chunk);
            cursor->chunk = chunk->next_all;
            cursor->block = 0;
        }
}

/* The chunk is nobody's any more; it waits in the list for blz__heap_release. */
static void chunk_remove(blz__heap *heap, struct blz__chunk *chunk, struct blz__chunk **removed)
{
    BLZ_ASSERT(chunk->heap == heap);
    blz__lock_acquire(&heap->walk_lock);
    cursors_leave(heap, chunk);
    if (chunk->prev_all)
        chunk->prev_all->next_all = chunk->next_all;
    else
        heap->all = chunk->next_all;
    if (chunk->next_all)
        chunk->next_all->prev_all = chunk->prev_all;
    blz__lock_release(&heap->walk_lock);
    chunk->next_all = *removed;
    *removed = chunk;
}

void blz__heap_release(blz__heap *heap, struct blz__chunk *removed)
{
    while (removed) {
        struct blz__chunk *next = removed->next_all;
        blz__asan_unpoison(removed, removed->size);
        blz__chunk_put(heap->pool, removed);
        removed = next;
    }
}

static void partial_add(blz__heap *heap, struct blz__chunk *chunk)
{
    struct blz__chunk **list = &heap->partial[chunk->cls];

    BLZ_ASSERT(!chunk->listed);
    BLZ_ASSERT(chunk->cls < HEAP_CLASSES);
    BLZ_ASSERT(chunk != heap->current[chunk->cls]);
    chunk->listed = true;
    chunk->prev_partial = NULL;
    chunk->next_partial = *list;
    if (*list)
        (*list)->prev_partial = chunk;
    *list = chunk;
}

static void partial_remove(blz__heap *heap, struct blz__chunk *chunk)
{
    BLZ_ASSERT(chunk->listed);
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
    BLZ_ASSERT(blz__peek(&block->state) == 0);
    chunk->used++;
    return block;
}

static void collect_remote(blz__heap *heap, struct blz__chunk **removed)
{
    if (!blz__load(&heap->remote, RELAXED))
        return;
    /* acquire: pairs with the release in blz__heap_free_remote */
    blz_task *block = blz__swap(&heap->remote, (blz_task *)NULL, ACQUIRE);
    while (block) {
        blz__plain_read(&block->next);
        blz_task *next = block->next;
        blz__heap_free_local(heap, block, removed);
        block = next;
    }
}

/* From chunks that the heap has. */
static blz_task *take_existing(blz__heap *heap, unsigned cls)
{
    blz_task *block = chunk_take(heap->current[cls]);
    struct blz__chunk *chunk = heap->partial[cls];

    if (block || !chunk)
        return block;
    partial_remove(heap, chunk);
    heap->current[cls] = chunk; /* the old one is full: it is in no list until a block returns */
    return chunk_take(chunk);
}

/* A new chunk, and away with unused ones. The allocator is never called under the lock. */
static struct blz__chunk *exchange_chunks(blz__heap *heap, size_t wanted, blz__lock *lock,
                                          struct blz__chunk *removed)
{
    struct blz__chunk *chunk;

    BLZ_ASSERT(!lock || blz__lock_is_held(lock));
    if (lock)
        blz__lock_release(lock);
    blz__heap_release(heap, removed);
    chunk = wanted ? blz__chunk_get(heap->pool, wanted) : NULL;
    if (lock)
        blz__lock_acquire(lock);
    return chunk;
}

static BLZ_COLD blz_task *alloc_slow(blz__heap *heap, unsigned cls, blz__lock *lock)
{
    struct blz__chunk *removed = NULL, *chunk;
    blz_task *block;

    collect_remote(heap, &removed);
    block = take_existing(heap, cls);
    if (block && !removed)
        return block;
    chunk = exchange_chunks(heap, block ? 0 : HEAP_CHUNK, lock, removed);
    if (block)
        return block;
    if (chunk) {
        chunk_add(heap, chunk, class_size(cls), cls);
        partial_add(heap, chunk);
    }
    return take_existing(heap, cls); /* without a chunk, perhaps something came back meanwhile */
}

static BLZ_COLD blz_task *alloc_large(blz__heap *heap, size_t size, blz__lock *lock)
{
    size_t block_size = (size + 15) & ~(size_t)15;
    size_t chunk_size = (CHUNK_HEADER + block_size + HEAP_CHUNK - 1) & ~(HEAP_CHUNK - 1);
    struct blz__chunk *removed = NULL, *chunk;

    if (size > UINT32_MAX / 2)
        return NULL;
    collect_remote(heap, &removed);
    chunk = exchange_chunks(heap, chunk_size, lock, removed);
    if (!chunk)
        return NULL;
    chunk_add(heap, chunk, block_size, HEAP_CLASSES);
    chunk->nr_blocks = 1;
    return chunk_take(chunk);
}

blz_task *blz__heap_alloc(blz__heap *heap, size_t size, blz__lock *lock)
{
    blz_task *block;

    BLZ_ASSERT(size >= sizeof *block);
    BLZ_ASSERT(!lock || blz__lock_is_held(lock));
    if (blz_likely(has_class(size))) {
        unsigned cls = class_of(size);
        block = chunk_take(heap->current[cls]);
        if (blz_unlikely(!block))
            block = alloc_slow(heap, cls, lock);
    } else {
        block = alloc_large(heap, size, lock);
    }
    if (block)
        blz__asan_unpoison(block + 1, size - sizeof *block);
    return block;
}

/* ---- freeing ---- */

/* The word is constant in a process, so this is a plain read. */
static bool is_forked(const blz__heap *heap)
{
    return heap->pool->fork_word && *heap->pool->fork_word == 0;
}

void blz__heap_free_local(blz__heap *heap, blz_task *block, struct blz__chunk **removed)
{
    struct blz__chunk *chunk = chunk_of(block);

    BLZ_ASSERT(chunk->heap == heap);
    BLZ_ASSERT(chunk->used > 0);
    BLZ_ASSERT(blz__peek(&block->state) == 0);
    blz__asan_poison(block + 1, chunk->block_size - sizeof *block);
    block->next = chunk->free;
    chunk->free = block;
    chunk->used--;
    if (blz_likely(chunk->cls < HEAP_CLASSES && chunk == heap->current[chunk->cls]))
        return;
    if (chunk->used == 0 && !is_forked(heap)) {
        if (chunk->listed)
            partial_remove(heap, chunk);
        chunk_remove(heap, chunk, removed);
    } else if (!chunk->listed && chunk->cls < HEAP_CLASSES) { /* a forked child keeps large ones */
        partial_add(heap, chunk);
    }
}

void blz__heap_free_remote(blz_task *first, blz_task *last)
{
    blz__heap *heap = blz__heap_of(first);
    blz_task *head = blz__load(&heap->remote, RELAXED);

    BLZ_ASSERT(blz__heap_of(last) == heap);
    blz__plain_write(&last->next);
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

void blz__heap_walk(blz__heap *heap, void (*visit)(blz_task *block, void *arg), void *arg)
{
    blz__lock_acquire(&heap->walk_lock);
    for (struct blz__chunk *chunk = heap->all; chunk; chunk = chunk->next_all) {
        uint32_t bump = blz__load(&chunk->bump, ACQUIRE); /* pairs with chunk_take */
        for (uint32_t i = 0; i < bump; i++)
            visit(chunk_block(chunk, i), arg);
    }
    blz__lock_release(&heap->walk_lock);
}

void blz__heap_walk_begin(blz__heap *heap, heap_cursor *cursor)
{
    blz__lock_acquire(&heap->walk_lock);
    *cursor = (heap_cursor){.next = heap->cursors, .chunk = heap->all};
    heap->cursors = cursor;
    blz__lock_release(&heap->walk_lock);
}

bool blz__heap_walk_step(blz__heap *heap, heap_cursor *cursor, uint32_t max,
                         bool (*visit)(blz_task *block, void *arg), void *arg)
{
    bool go_on = true, more;

    blz__lock_acquire(&heap->walk_lock);
    while (cursor->chunk && go_on && max > 0) {
        uint32_t bump = blz__load(&cursor->chunk->bump, ACQUIRE); /* pairs with chunk_take */

        for (; cursor->block < bump && max > 0; cursor->block++, max--) {
            go_on = visit(chunk_block(cursor->chunk, cursor->block), arg);
            if (!go_on)
                break;
        }
        if (cursor->block >= bump) {
            cursor->chunk = cursor->chunk->next_all;
            cursor->block = 0;
        }
    }
    blz__plain_read(&cursor->chunk);
    more = cursor->chunk != NULL; /* it may be moved on as soon as the lock is released */
    blz__lock_release(&heap->walk_lock);
    return more;
}

void blz__heap_walk_end(blz__heap *heap, heap_cursor *cursor)
{
    heap_cursor **link = &heap->cursors;

    blz__lock_acquire(&heap->walk_lock);
    while (*link != cursor)
        link = &(*link)->next;
    *link = cursor->next;
    blz__lock_release(&heap->walk_lock);
}

void blz__heap_init(blz__heap *heap, blz_rt *rt, blz__pool *pool)
{
    memset(heap, 0, sizeof *heap);
    heap->rt = rt;
    heap->pool = pool;
    for (unsigned cls = 0; cls < HEAP_CLASSES; cls++)
        heap->current[cls] = (struct blz__chunk *)(uintptr_t)&no_chunk;
}

size_t blz__heap_used(blz__heap *heap, struct blz__chunk **removed)
{
    size_t used = 0;

    collect_remote(heap, removed);
    for (struct blz__chunk *chunk = heap->all; chunk; chunk = chunk->next_all)
        used += chunk->used;
    return used;
}

void blz__heap_destroy(blz__heap *heap)
{
    struct blz__chunk *removed = NULL, *chunk, *next;

    BLZ_ASSERT_VALID(blz__heap_check(heap));
    collect_remote(heap, &removed);
    for (chunk = heap->all; chunk; chunk = next) {
        next = chunk->next_all;
        chunk_remove(heap, chunk, &removed);
    }
    blz__heap_release(heap, removed);
}

/* ---- validator ---- */

/* Whether the block is one of this chunk, from which blocks have been handed out. */
static bool is_block_of(const struct blz__chunk *chunk, const blz_task *block)
{
    size_t offset = (size_t)((const char *)block - (const char *)chunk) - CHUNK_HEADER;

    return chunk_of(block) == chunk && offset % chunk->block_size == 0 &&
           offset / chunk->block_size < chunk->bump;
}

static const char *free_blocks_check(const struct blz__chunk *chunk)
{
    uint32_t nr_free = 0;

    for (const blz_task *block = chunk->free; block; block = block->next) {
        BLZ_REQUIRE(is_block_of(chunk, block));
        BLZ_REQUIRE(blz__peek(&block->state) == 0); /* a free block has no task */
        BLZ_REQUIRE(nr_free++ < chunk->bump);       /* no circle */
    }
    BLZ_REQUIRE(chunk->used + nr_free == chunk->bump);
    return NULL;
}

static bool is_listed(const blz__heap *heap, const struct blz__chunk *chunk)
{
    for (const struct blz__chunk *c = heap->partial[chunk->cls]; c; c = c->next_partial)
        if (c == chunk)
            return true;
    return false;
}

static const char *chunk_check(const blz__heap *heap, const struct blz__chunk *chunk)
{
    bool has_class = chunk->cls < HEAP_CLASSES;
    bool current = has_class && heap->current[chunk->cls] == chunk;

    BLZ_REQUIRE(chunk->heap == heap);
    BLZ_REQUIRE(chunk->used <= chunk->bump && chunk->bump <= chunk->nr_blocks);
    BLZ_REQUIRE(chunk->listed == (has_class && is_listed(heap, chunk)));
    BLZ_REQUIRE(!(current && chunk->listed));
    BLZ_REQUIRE(!has_class || current || chunk->listed || chunk->used == chunk->nr_blocks);
    return free_blocks_check(chunk);
}

const char *blz__heap_check(const blz__heap *heap)
{
    const struct blz__chunk *before = NULL;
    const char *broken = NULL;

    for (const struct blz__chunk *chunk = heap->all; chunk && !broken; chunk = chunk->next_all) {
        BLZ_REQUIRE(chunk->prev_all == before);
        broken = chunk_check(heap, chunk);
        before = chunk;
    }
    return broken;
}
