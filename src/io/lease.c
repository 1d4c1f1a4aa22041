/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on loan. A pool belongs to the driver of a worker, which takes from it; a buffer may be
 * given back on any thread. A few that are not in use are kept for the next, the last one given
 * back first, because it is still in the cache; more than that go back to the allocator.
 *
 * A buffer may be given back when its runtime has gone: the pool goes with the last of them.
 */
#include "base/alloc.h"
#include "io/io.h"

enum { MAX_KEPT = 64 };

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

void blz__leases_close(lease_pool *pool)
{
    struct lease *free, *next;
    bool last;

    if (!pool)
        return;
    blz__lock_acquire(&pool->lock);
    pool->closed = true;
    pool->give_back = NULL;
    free = pool->free;
    pool->free = NULL;
    last = pool->nr_lent == 0;
    blz__lock_release(&pool->lock);
    for (; free; free = next) {
        next = free->next;
        blz__lease_free(pool, free);
    }
    if (last)
        free_pool(pool);
}

static struct lease *new_lease(lease_pool *pool)
{
    struct lease *lease = blz__alloc(&pool->allocator, sizeof *lease, _Alignof(struct lease));

    if (lease) {
        lease->pool = pool;
        lease->id = -1;
        lease->lent = true;
        return lease;
    }
    blz__lock_acquire(&pool->lock);
    pool->nr_lent--;
    blz__lock_release(&pool->lock);
    return NULL;
}

struct lease *blz__lease_take(lease_pool *pool)
{
    struct lease *lease;

    blz__lock_acquire(&pool->lock);
    pool->nr_lent++;
    lease = pool->free;
    if (lease) {
        pool->free = lease->next;
        pool->nr_free--;
    }
    blz__lock_release(&pool->lock);
    return lease ? lease : new_lease(pool);
}

/* Under the lock. False: there is no place for it. */
static bool keep(lease_pool *pool, struct lease *lease)
{
    if (pool->closed)
        return false;
    if (lease->id >= 0) {
        pool->give_back(pool, lease);
        return true;
    }
    if (pool->nr_free >= MAX_KEPT)
        return false;
    lease->next = pool->free;
    pool->free = lease;
    pool->nr_free++;
    return true;
}

void blz__lease_give(struct lease *lease)
{
    lease_pool *pool = lease->pool;
    bool kept, last;

    blz__lock_acquire(&pool->lock);
    kept = keep(pool, lease);
    last = --pool->nr_lent == 0 && pool->closed;
    blz__lock_release(&pool->lock);
    if (!kept)
        blz__lease_free(pool, lease);
    if (last)
        free_pool(pool);
}

void blz_buf_release(blz_buf *buf)
{
    struct lease *lease = buf->private_;

    *buf = (blz_buf){NULL, 0, NULL};
    if (lease)
        blz__lease_give(lease);
}
