/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of each thread (blitz/par_per_thread.h): an array with a slot for each index that the pool
 * can have, guests included, each on cache lines of its own. The first byte of a slot says whether
 * its item is made, and is written by its thread alone.
 */
#include "par/pool.h"

#include <blitz/par_per_thread.h>

#include <blitz/error.h>
#include <string.h>

/* Two lines: processors fetch them in pairs. */
enum { SLOT_ALIGN = 2 * BLZ_CACHE_LINE };

int blz_par_per_thread_init(blz_par_per_thread *items, blz_pool *pool, size_t size,
                            blz_par_make_fn make, void *arg)
{
    unsigned count = blz_pool_indices(pool);

    if (size == 0 || size > (size_t)PTRDIFF_MAX / count - 2 * SLOT_ALIGN)
        return -EINVAL;
    *items = (blz_par_per_thread){.pool = pool, .count = count, .make = make, .arg = arg};
    items->stride = (size + BLZ_PAR_PER_THREAD_HEAD_ + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
    items->slots = blz__alloc(&pool->allocator, items->stride * count, SLOT_ALIGN);
    if (!items->slots)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++)
        items->slots[i * items->stride] = 0;
    return 0;
}

void blz_par_per_thread_free(blz_par_per_thread *items)
{
    if (items->slots)
        blz__free(&items->pool->allocator, items->slots, items->stride * items->count, SLOT_ALIGN);
    items->slots = NULL;
}

void *blz_par_per_thread_make_(blz_par_per_thread *items, unsigned index)
{
    char *slot = items->slots + index * items->stride, *item = slot + BLZ_PAR_PER_THREAD_HEAD_;

    memset(item, 0, items->stride - BLZ_PAR_PER_THREAD_HEAD_);
    if (items->make)
        items->make(item, items->arg);
    *slot = 1;
    return item;
}

void *blz_par_per_thread_next(const blz_par_per_thread *items, const void *item)
{
    size_t at = item ? (size_t)((const char *)item - items->slots) / items->stride + 1 : 0;

    for (; at < items->count; at++)
        if (items->slots[at * items->stride])
            return items->slots + at * items->stride + BLZ_PAR_PER_THREAD_HEAD_;
    return NULL;
}
