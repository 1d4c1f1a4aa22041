/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default allocator: malloc, and aligned_alloc where malloc does not align enough. Model builds
 * use the explorer's heap, which notices every access to freed memory.
 */
#include "base/alloc.h"

#include "base/atomic.h"

#include <stdlib.h>
#include <string.h>

static void *system_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
#ifdef BLZ_MODEL
    return model_alloc(size, align);
#else
    if (align <= _Alignof(max_align_t))
        return malloc(size);
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
#endif
}

static void system_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
#ifdef BLZ_MODEL
    model_free(ptr);
#else
    free(ptr);
#endif
}

const blz_allocator blz__system_allocator = {system_alloc, system_free, NULL};

void *blz__alloc_zeroed(const blz_allocator *a, size_t size, size_t align)
{
    void *memory;

#ifndef BLZ_MODEL
    if (a->alloc == system_alloc && align <= _Alignof(max_align_t))
        return calloc(1, size);
#endif
    memory = blz__alloc(a, size, align);
    if (memory)
        memset(memory, 0, size);
    return memory;
}
