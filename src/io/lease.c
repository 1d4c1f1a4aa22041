/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on loan. A pool belongs to the driver of a worker, which takes from it; a buffer may be
 * given back on any thread. Most of them come back on the worker that they were taken on, so what
 * is free, and the count, are that worker's alone, without a lock; other threads put theirs in a
 * list of their own, under the lock, which the worker fetches when it has run out.
 *
 * Those that are not in use are kept for the next, the last one given back first, because it is
 * still in the cache; as many as a worker may have in use in one round of its tasks. More than that
 * go back to the allocator.
 *
 * A buffer may be given back when its runtime has gone: the pool goes with the last of them. From
 * the moment that the driver is closed there is no worker, and all is under the lock.
 */
#include "base/alloc.h"
#include "io/io.h"

enum { MAX_KEPT = 256 };

lease_pool *blz__leases_new(const blz_allocator *allocator)
{
    lease_pool *pool = blz__alloc(allocator, sizeof *pool, _Alignof(lease_pool));

    if (pool)
        *pool = (lease_pool){.allocator = *allocator};
    return pool;
}

static void free_lease(const blz_allocator *allocator, struct lease *lease)
{
    blz__free(allocator, lease, sizeof *lease, _Alignof(struct lease));
}

static void free_list(const blz_allocator *allocator, struct lease *lease)
{
    for (struct lease *next; lease; lease = next) {
        next = lease->next;
        free_lease(allocator, lease);
    }
}

static void free_pool(lease_pool *pool)
{
    blz_allocator allocator = pool->allocator;

    blz__free(&allocator, pool, sizeof *pool, _Alignof(lease_pool));
}

/* [its worker] */
static void keep(lease_pool *pool, struct lease *lease)
{
    if (pool->nr_free >= MAX_KEPT) {
        free_lease(&pool->allocator, lease);
    } else {
        lease->next = pool->free;
        pool->free = lease;
        pool->nr_free++;
    }
}

/* Takes over what other threads have given back. [its worker, or who closes the driver] */
static void fetch_returned(lease_pool *pool)
{
    struct lease *lease, *next;

    blz__lock_acquire(&pool->lock);
    lease = pool->returned;
    blz__store(&pool->returned, (struct lease *)NULL, RELAXED);
    pool->nr_lent -= pool->nr_returned;
    pool->nr_returned = 0;
    blz__lock_release(&pool->lock);
    for (; lease; lease = next) {
        next = lease->next;
        keep(pool, lease);
    }
}

void blz__leases_close(lease_pool *pool)
{
    struct lease *late;
    bool last;

    if (!pool)
        return;
    blz_allocator allocator = pool->allocator;
    fetch_returned(pool);
    free_list(&allocator, pool->free);
    blz__lock_acquire(&pool->lock);
    late = pool->returned; /* since the fetch */
    pool->nr_lent -= pool->nr_returned;
    pool->closed = true;
    last = pool->nr_lent == 0;
    blz__lock_release(&pool->lock); /* unless this was the last, the pool is others' now */
    free_list(&allocator, late);
    if (last)
        free_pool(pool);
}

struct lease *blz__lease_take(lease_pool *pool)
{
    struct lease *lease;

    if (blz_unlikely(!pool->free) && blz__load(&pool->returned, RELAXED))
        fetch_returned(pool);
    lease = pool->free;
    if (blz_likely(lease != NULL)) {
        pool->free = lease->next;
        pool->nr_free--;
    } else {
        lease = blz__alloc(&pool->allocator, sizeof *lease, _Alignof(struct lease));
        if (!lease)
            return NULL;
        lease->pool = pool;
    }
    pool->nr_lent++;
    return lease;
}

/*
 * It is counted as returned, and kept for the worker if there are not too many. Behind the lock the
 * pool may be gone at any moment, with the last of its buffers.
 */
static BLZ_NOINLINE void give_from_elsewhere(lease_pool *pool, struct lease *lease)
{
    blz_allocator allocator = pool->allocator;
    bool kept = false, last = false;

    blz__lock_acquire(&pool->lock);
    if (pool->closed) {
        last = --pool->nr_lent == 0;
    } else if (pool->nr_returned++ < MAX_KEPT) {
        kept = true;
        lease->next = pool->returned;
        blz__store(&pool->returned, lease, RELAXED); /* the worker looks without the lock first */
    }
    blz__lock_release(&pool->lock);
    if (!kept)
        free_lease(&allocator, lease);
    if (last)
        free_pool(pool);
}

void blz__lease_give(struct lease *lease)
{
    lease_pool *pool = lease->pool;
    const blz__driver *driver = blz__driver_current();

    if (blz_likely(driver && driver->leases == pool)) {
        pool->nr_lent--;
        keep(pool, lease);
    } else {
        give_from_elsewhere(pool, lease);
    }
}

void blz_buf_release(blz_buf *buf)
{
    struct lease *lease = buf->private_;

    *buf = (blz_buf){NULL, 0, NULL};
    if (lease)
        blz__lease_give(lease);
}
