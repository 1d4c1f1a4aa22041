/* SPDX-License-Identifier: Apache-2.0 */
/* Memory from an allocator that is the user's or the system's. */
#ifndef BLZ_BASE_ALLOC_H
#define BLZ_BASE_ALLOC_H

#include <blitz/base.h>

/* malloc and friends. */
extern const blz_allocator blz__system_allocator;

static inline void *blz__alloc(const blz_allocator *a, size_t size, size_t align)
{
    return a->alloc(size, align, a->ctx);
}

/*
 * Memory that is all zero. The system's allocator does not write to it if it is large, so that a
 * page of it takes no memory before it is used. An allocator of the user's gives it whole.
 */
void *blz__alloc_zeroed(const blz_allocator *a, size_t size, size_t align);

static inline void blz__free(const blz_allocator *a, void *ptr, size_t size, size_t align)
{
    a->free(ptr, size, align, a->ctx);
}

#endif
