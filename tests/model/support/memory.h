/* SPDX-License-Identifier: Apache-2.0 */
/* The explorer's memory, which sees every use after a free, as an allocator. */
#ifndef MODEL_SUPPORT_MEMORY_H
#define MODEL_SUPPORT_MEMORY_H

#include <blitz/base.h>

static inline void *model_memory_alloc(size_t size, size_t align, void *ctx)
{
    (void)ctx;
    return model_alloc(size, align);
}

static inline void model_memory_free(void *ptr, size_t size, size_t align, void *ctx)
{
    (void)ctx, (void)size, (void)align;
    model_free(ptr);
}

static const blz_allocator model_memory = {.alloc = model_memory_alloc,
                                           .free = model_memory_free,
                                           .ctx = NULL};

#endif
