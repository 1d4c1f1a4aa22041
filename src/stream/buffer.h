/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a buffered reader or writer, where it is not the caller's. */
#ifndef BLZ_STREAM_BUFFER_H
#define BLZ_STREAM_BUFFER_H

#include "base/alloc.h"

#include <blitz/error.h>

enum { BUFFER_SIZE = 64 << 10, BUFFER_ALIGN = 64 };

/* *size bytes, 0: BUFFER_SIZE, from a copy of `allocator`, or malloc. Without memory *size is 0. */
static inline int buffer_new(char **buf, size_t *size, blz_allocator *copy,
                             const blz_allocator *allocator)
{
    *copy = allocator ? *allocator : blz__system_allocator;
    *size = *size ? *size : BUFFER_SIZE;
    *buf = blz__alloc(copy, *size, BUFFER_ALIGN);
    if (*buf)
        return 0;
    *size = 0;
    return -ENOMEM;
}

#endif
