/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of the C library's heap. */
#include "system/memory.h"

#include <stdlib.h>
#include <string.h>

static size_t rounded_up(size_t size, size_t align)
{
    return (size + align - 1) & ~(align - 1);
}

void *blz__memory_alloc(size_t size, size_t align)
{
    if (align <= _Alignof(max_align_t))
        return malloc(size);
    return aligned_alloc(align, rounded_up(size, align));
}

void *blz__memory_alloc_zeroed(size_t size, size_t align)
{
    void *block;

    if (align <= _Alignof(max_align_t))
        return calloc(1, size);
    block = aligned_alloc(align, rounded_up(size, align));
    if (block)
        memset(block, 0, size);
    return block;
}

void blz__memory_free(void *block, size_t align)
{
    (void)align;
    free(block);
}
