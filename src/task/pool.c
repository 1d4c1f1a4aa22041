/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks for the heaps. With the default allocator they are cut from spans of 2 MiB of the
 * system's pages. Once a runtime has grown beyond the first span, the pages of a new chunk are
 * asked for all at once: faults one by one cost a million new tasks a third of their time. (Huge
 * pages would cost less still, if the system has them at hand; if not, they cost several times as
 * much.) An allocator of the user's is asked for each chunk.
 */
#include "task/chunk.h"

#include "base/alloc.h"
#include "system/memory.h"
#include "tuning.h"

enum {
    SPAN_SIZE = 2 * 1024 * 1024,
    SPAN_CHUNKS = 32,
    SPANS_KEPT = 2,    /* when they are empty */
    SPANS_FAULTED = 1, /* whose pages come one by one, as they are used */
};

struct blz__span {
    struct blz__span *next;
    char *base;
    uint32_t free;    /* a bit for each chunk */
    uint32_t touched; /* and for each that has been used before */
};

void blz__pool_init(blz__pool *pool, const blz_allocator *allocator, const uint32_t *fork_word)
{
    *pool = (blz__pool){.allocator = allocator, .fork_word = fork_word};
    pool->from_system = PAGES_FROM_SYSTEM && allocator->alloc == blz__system_allocator.alloc;
}

static struct blz__span *span_new(blz__pool *pool)
{
    struct blz__span *span = blz__alloc(pool->allocator, sizeof *span, _Alignof(struct blz__span));

    if (!span)
        return NULL;
    span->base = blz__pages_map(SPAN_SIZE);
    if (!span->base) {
        blz__free(pool->allocator, span, sizeof *span, _Alignof(struct blz__span));
        return NULL;
    }
    span->free = UINT32_MAX;
    span->touched = 0;
    return span;
}

static void span_free(blz__pool *pool, struct blz__span *span)
{
    blz__pages_unmap(span->base, SPAN_SIZE);
    blz__free(pool->allocator, span, sizeof *span, _Alignof(struct blz__span));
}

/* *fresh: nobody has touched its pages yet. */
static struct blz__chunk *take_from_span(struct blz__span *span, bool *fresh)
{
    int i = __builtin_ctz(span->free);

    span->free &= span->free - 1;
    *fresh = !(span->touched >> i & 1);
    span->touched |= 1u << i;
    return (void *)(span->base + (size_t)i * HEAP_CHUNK);
}

static struct blz__chunk *take_from_system(blz__pool *pool)
{
    struct blz__span *span;
    struct blz__chunk *chunk = NULL;
    bool fresh = false, grown;

    blz__lock_acquire(&pool->lock);
    for (span = pool->spans; span && !span->free; span = span->next)
        ;
    if (span)
        chunk = take_from_span(span, &fresh);
    grown = pool->nr_spans > SPANS_FAULTED;
    blz__lock_release(&pool->lock);
    if (!chunk) {
        span = span_new(pool);
        if (!span)
            return NULL;
        chunk = take_from_span(span, &fresh);
        blz__lock_acquire(&pool->lock);
        span->next = pool->spans;
        pool->spans = span;
        pool->nr_spans++;
        blz__lock_release(&pool->lock);
    }
    if (fresh && grown)
        blz__pages_prefault(chunk, HEAP_CHUNK);
    chunk->span = span;
    return chunk;
}

/* Gives the chunk back to its span, and the span to the system if it is all free. */
static void give_to_system(blz__pool *pool, struct blz__chunk *chunk)
{
    struct blz__span *span = chunk->span;
    size_t i = (size_t)((char *)chunk - span->base) / HEAP_CHUNK;
    bool unused = false;

    blz__lock_acquire(&pool->lock);
    span->free |= 1u << i;
    if (span->free == UINT32_MAX && pool->nr_spans > SPANS_KEPT) {
        struct blz__span **link = &pool->spans;
        while (*link != span)
            link = &(*link)->next;
        *link = span->next;
        pool->nr_spans--;
        unused = true;
    }
    blz__lock_release(&pool->lock);
    if (unused)
        span_free(pool, span);
}

struct blz__chunk *blz__chunk_get(blz__pool *pool, size_t size)
{
    struct blz__chunk *chunk;

    if (pool->from_system && size == HEAP_CHUNK)
        chunk = take_from_system(pool);
    else
        chunk = blz__alloc(pool->allocator, size, HEAP_CHUNK);
    if (chunk)
        chunk->size = size;
    return chunk;
}

void blz__chunk_put(blz__pool *pool, struct blz__chunk *chunk)
{
    if (pool->from_system && chunk->size == HEAP_CHUNK)
        give_to_system(pool, chunk);
    else
        blz__free(pool->allocator, chunk, chunk->size, HEAP_CHUNK);
}

void blz__pool_destroy(blz__pool *pool)
{
    struct blz__span *span = pool->spans;

    while (span) {
        struct blz__span *next = span->next;
        if (span->free == UINT32_MAX)
            span_free(pool, span); /* others hold leaked tasks */
        span = next;
    }
    pool->spans = NULL;
}
