/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of tasks, which is also the registry of tasks.
 *
 * Blocks of one size are cut from chunks of 64 KiB, aligned so that a block finds its chunk. Each
 * worker has a heap; a heap is used by one thread at a time, without atomics, except that other
 * threads give blocks back through a list of their own (blz__heap_free_remote). There is one more
 * heap for all threads that are not workers, under a lock.
 *
 * As every task is in a chunk, and every chunk in a list, no other registry is needed: dumping or
 * cancelling all tasks means walking the chunks. A block always begins with a task header, whose
 * state word is 0 while the block is free.
 */
#ifndef BLZ_TASK_HEAP_H
#define BLZ_TASK_HEAP_H

#include "base/cacheline.h"
#include "base/lock.h"
#include "tuning.h"

#include <blitz/base.h>
#include <blitz/future.h>

/* What blocks are aligned to, and what the smaller ones grow by. */
enum { HEAP_ALIGN = 16 };

/* Sizes go in steps of 16 bytes up to 1 KiB, then by an eighth up to 8 KiB; above: own chunks. */
enum { HEAP_SMALL_CLASSES = 64, HEAP_CLASSES = HEAP_SMALL_CLASSES + 24 };

struct blz__chunk;
struct blz__pool;

/* How far a walk in several steps has come. The heap knows of it: its chunk may go meanwhile. */
typedef struct heap_cursor {
    struct heap_cursor *next;
    struct blz__chunk *chunk; /* NULL: it is at the end */
    uint32_t block;           /* of the chunk: where to go on */
} heap_cursor;

typedef struct blz__heap {
    blz_rt *rt;
    struct blz__pool *pool;
    struct blz__chunk *current[HEAP_CLASSES]; /* never NULL: allocation looks here first */
    struct blz__chunk *partial[HEAP_CLASSES]; /* others with free blocks */
    struct blz__chunk *all;                   /* under walk_lock */
    struct heap_cursor *cursors;              /* the same */
    blz__lock walk_lock;
    blz__cache_aligned blz_task *remote; /* given back by others; a stack, taken whole */
} blz__heap;

/* Where heaps get their chunks. One for each runtime. */
typedef struct blz__pool {
    const blz_allocator *allocator;
    const uint32_t *fork_word; /* reads 0 in a forked child, which takes no lock; or NULL */
    bool from_system;          /* chunks come from the system's pages, in spans */
    blz__lock lock;
    struct blz__span *spans;
    unsigned nr_spans;
} blz__pool;

void blz__pool_init(blz__pool *pool, const blz_allocator *allocator, const uint32_t *fork_word);
void blz__pool_destroy(blz__pool *pool);

void blz__heap_init(blz__heap *heap, blz_rt *rt, blz__pool *pool);
/* Frees every chunk. No block is in use any more. */
void blz__heap_destroy(blz__heap *heap);

/* Blocks in use. Chunks that turn out to be empty are added to *removed. [owner] */
size_t blz__heap_used(blz__heap *heap, struct blz__chunk **removed);

/*
 * A block for a task of `size` bytes, header included, aligned to HEAP_ALIGN. NULL: no memory. If
 * the heap is under a lock, that is let go while the allocator is asked. [owner]
 */
blz_task *blz__heap_alloc(blz__heap *heap, size_t size, blz__lock *lock);

/*
 * Gives a block back. In a forked child nothing becomes empty: locks may be held by threads that
 * the child does not have. Chunks that become empty are added to *removed, for blz__heap_release,
 * which calls the allocator, and so must not be called under a lock. [owner]
 */
void blz__heap_free_local(blz__heap *heap, blz_task *block, struct blz__chunk **removed);
void blz__heap_release(blz__heap *heap, struct blz__chunk *removed);

/* Gives a list of blocks of one heap back, through its stack. [any thread] */
void blz__heap_free_remote(blz_task *first, blz_task *last);

/* The heap that a block belongs to, and its runtime. [any thread] */
blz__heap *blz__heap_of(const blz_task *block);
blz_rt *blz__heap_rt(const blz_task *block);

/*
 * Calls visit(block, arg) for each block that may hold a task. The blocks stay what they are during
 * the call, but the tasks in them come and go. [any thread, one at a time]
 */
void blz__heap_walk(blz__heap *heap, void (*visit)(blz_task *block, void *arg), void *arg);

/*
 * The same in steps, each of which looks at no more than `max` blocks under the lock, so that
 * nobody waits for long. A block is visited at most once; those in chunks that came after the
 * beginning are not. visit gives false to be called again with the same block in the next step.
 * False: that was the end.
 */
void blz__heap_walk_begin(blz__heap *heap, heap_cursor *cursor);
bool blz__heap_walk_step(blz__heap *heap, heap_cursor *cursor, uint32_t max,
                         bool (*visit)(blz_task *block, void *arg), void *arg);
void blz__heap_walk_end(blz__heap *heap, heap_cursor *cursor);

/* Validator (base/assert.h): every chunk, list and free block. Looks at all blocks. [owner] */
const char *blz__heap_check(const blz__heap *heap);

#endif
