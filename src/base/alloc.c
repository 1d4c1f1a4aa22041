/* SPDX-License-Identifier: Apache-2.0 */
/* The default allocator: the heap of the system, or in model builds that of the explorer. */
#include "base/alloc.h"

#include "system/memory.h"

#include <string.h>

static void *system_alloc(size_t size, size_t align, void *ctx)
{
    (void)ctx;
    return blz__memory_alloc(size, align);
}

static void system_free(void *ptr, size_t size, size_t align, void *ctx)
{
    (void)ctx;
    (void)size;
    blz__memory_free(ptr, align);
}

const blz_allocator blz__system_allocator = {.alloc = system_alloc,
                                             .free = system_free,
                                             .ctx = NULL};

void *blz__alloc_zeroed(const blz_allocator *a, size_t size, size_t align)
{
    void *memory;

    if (a->alloc == system_alloc)
        return blz__memory_alloc_zeroed(size, align);
    memory = blz__alloc(a, size, align);
    if (memory)
        memset(memory, 0, size);
    return memory;
}
