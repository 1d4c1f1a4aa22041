/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of each thread (blitz/par_local.h): an array with a slot for each index that the pool can
 * have, guests included, each on cache lines of its own. The first byte of a slot says whether its
 * item is made, and is written by its thread alone.
 */
#include "par/pool.h"

#include <blitz/par_local.h>

#include <blitz/error.h>
#include <string.h>

/* Two lines: processors fetch them in pairs. */
enum { SLOT_ALIGN = 2 * BLZ_CACHE_LINE };

int blz_par_local_init(blz_par_local *local, blz_pool *pool, size_t size, blz_par_make_fn make,
                       void *arg)
{
    unsigned count = blz_pool_indices(pool);

    if (size == 0 || size > (size_t)PTRDIFF_MAX / count - 2 * SLOT_ALIGN)
        return -EINVAL;
    *local = (blz_par_local){.pool = pool, .count = count, .make = make, .arg = arg};
    local->stride = (size + BLZ_PAR_LOCAL_HEAD_ + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
    local->slots = blz__alloc(&pool->allocator, local->stride * count, SLOT_ALIGN);
    if (!local->slots)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++)
        local->slots[i * local->stride] = 0;
    return 0;
}

void blz_par_local_free(blz_par_local *local)
{
    if (local->slots)
        blz__free(&local->pool->allocator, local->slots, local->stride * local->count, SLOT_ALIGN);
    local->slots = NULL;
}

void *blz_par_local_make_(blz_par_local *local, unsigned index)
{
    char *slot = local->slots + index * local->stride, *item = slot + BLZ_PAR_LOCAL_HEAD_;

    memset(item, 0, local->stride - BLZ_PAR_LOCAL_HEAD_);
    if (local->make)
        local->make(item, local->arg);
    *slot = 1;
    return item;
}

void *blz_par_local_next(const blz_par_local *local, const void *item)
{
    size_t at = item ? (size_t)((const char *)item - local->slots) / local->stride + 1 : 0;

    for (; at < local->count; at++)
        if (local->slots[at * local->stride])
            return local->slots + at * local->stride + BLZ_PAR_LOCAL_HEAD_;
    return NULL;
}
