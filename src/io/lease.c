/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on loan. A pool belongs to the driver of a worker, which takes from it; a buffer may be
 * given back on any thread. A few that are not in use are kept for the next, the last one given back
 * first, because it is still in the cache; more than that go back to the allocator.
 */
#include "base/alloc.h"
#include "io/io.h"

enum { MAX_KEPT = 64 };

void blz__leases_init(lease_pool *pool, const blz_allocator *allocator)
{
    *pool = (lease_pool){.allocator = allocator};
}

static void free_lease(lease_pool *pool, struct lease *lease)
{
    blz__free(pool->allocator, lease, sizeof *lease, _Alignof(struct lease));
}

void blz__leases_destroy(lease_pool *pool)
{
    while (pool->free) {
        struct lease *lease = pool->free;
        pool->free = lease->next;
        free_lease(pool, lease);
    }
}

struct lease *blz__lease_take(lease_pool *pool)
{
    struct lease *lease;

    blz__lock_acquire(&pool->lock);
    lease = pool->free;
    if (lease) {
        pool->free = lease->next;
        pool->nr_free--;
    }
    blz__lock_release(&pool->lock);
    if (lease)
        return lease;
    lease = blz__alloc(pool->allocator, sizeof *lease, _Alignof(struct lease));
    if (lease) {
        lease->pool = pool;
        lease->id = -1;
    }
    return lease;
}

void blz__lease_give(struct lease *lease)
{
    lease_pool *pool = lease->pool;
    bool kept = true;

    blz__lock_acquire(&pool->lock);
    if (lease->id >= 0) {
        pool->give_back(pool, lease);
    } else if (pool->nr_free < MAX_KEPT) {
        lease->next = pool->free;
        pool->free = lease;
        pool->nr_free++;
    } else {
        kept = false;
    }
    blz__lock_release(&pool->lock);
    if (!kept)
        free_lease(pool, lease);
}

void blz_buf_release(blz_buf *buf)
{
    struct lease *lease = buf->private_;

    *buf = (blz_buf){NULL, 0, NULL};
    if (lease)
        blz__lease_give(lease);
}
