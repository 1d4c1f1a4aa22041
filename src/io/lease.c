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

void blz__lease_free(lease_pool *pool, struct lease *lease)
{
    blz__free(&pool->allocator, lease, sizeof *lease, _Alignof(struct lease));
}

static void free_pool(lease_pool *pool)
{
    blz_allocator allocator = pool->allocator;

    blz__free(&allocator, pool, sizeof *pool, _Alignof(lease_pool));
}

/* [its worker] */
static void keep(lease_pool *pool, struct lease *lease)
{
    if (lease->id >= 0) {
        pool->give_back(pool, lease);
    } else if (pool->nr_free >= MAX_KEPT) {
        blz__lease_free(pool, lease);
    } else {
        lease->next = pool->free;
        pool->free = lease;
        pool->nr_free++;
    }
}

void blz__leases_fetch(lease_pool *pool)
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
    struct lease *free, *next;
    bool last;

    if (!pool)
        return;
    blz__leases_fetch(pool);
    free = pool->free;
    blz__lock_acquire(&pool->lock);
    pool->nr_lent -= pool->nr_returned; /* since the fetch */
    pool->closed = true;
    struct lease *late = pool->returned;
    last = pool->nr_lent == 0;
    blz__lock_release(&pool->lock);
    for (; free; free = next) {
        next = free->next;
        blz__lease_free(pool, free);
    }
    for (; late; late = next) {
        next = late->next;
        blz__lease_free(pool, late);
    }
    if (last)
        free_pool(pool);
}

struct lease *blz__lease_take(lease_pool *pool)
{
    struct lease *lease;

    if (blz_unlikely(!pool->free) && leases_were_returned(pool))
        blz__leases_fetch(pool);
    lease = pool->free;
    if (blz_likely(lease != NULL)) {
        pool->free = lease->next;
        pool->nr_free--;
    } else {
        lease = blz__alloc(&pool->allocator, sizeof *lease, _Alignof(struct lease));
        if (!lease)
            return NULL;
        lease->pool = pool;
        lease->id = -1;
        lease->lent = true;
    }
    pool->nr_lent++;
    return lease;
}

/* The driver is closed: it is nobody's but the allocator's. Releases the lock. */
static void drop_locked(lease_pool *pool, struct lease *lease)
{
    bool last = --pool->nr_lent == 0;

    blz__lock_release(&pool->lock);
    blz__lease_free(pool, lease);
    if (last)
        free_pool(pool);
}

static BLZ_NOINLINE void give_from_elsewhere(lease_pool *pool, struct lease *lease)
{
    bool kept;

    blz__lock_acquire(&pool->lock);
    if (pool->closed) {
        drop_locked(pool, lease);
        return;
    }
    /* One that the kernel hands out must go back there. */
    kept = lease->id >= 0 || pool->nr_returned < MAX_KEPT;
    pool->nr_returned++;
    if (kept) {
        lease->next = pool->returned;
        blz__store(&pool->returned, lease, RELAXED);
    }
    blz__lock_release(&pool->lock);
    if (!kept)
        blz__lease_free(pool, lease);
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
