/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are handed out. They carry their allocator, and may outlive a runtime. */
#include "fs/path.h"

#include "base/alloc.h"

#include <blitz/error.h>
#include <string.h>

void blz_bytes_free(blz_bytes *bytes)
{
    if (bytes->data)
        blz__free(&bytes->allocator_, bytes->data, bytes->capacity_ + 1, 1);
    *bytes = (blz_bytes){.data = NULL};
}

int blz__bytes_reserve(blz_bytes *bytes, const blz_allocator *allocator, size_t capacity)
{
    char *data;

    if (bytes->data && bytes->capacity_ >= capacity)
        return 0;
    data = capacity < SIZE_MAX ? blz__alloc(allocator, capacity + 1, 1) : NULL;
    if (!data)
        return -ENOMEM;
    if (bytes->len > 0)
        memcpy(data, bytes->data, bytes->len);
    if (bytes->data)
        blz__free(allocator, bytes->data, bytes->capacity_ + 1, 1);
    bytes->data = data;
    bytes->capacity_ = capacity;
    bytes->allocator_ = *allocator;
    data[bytes->len] = '\0';
    return 0;
}

int blz__bytes_set(blz_bytes *bytes, const blz_allocator *allocator, const char *text, size_t len)
{
    int rc = blz__bytes_reserve(bytes, allocator, len);

    if (rc < 0)
        return rc;
    memcpy(bytes->data, text, len);
    bytes->len = len;
    bytes->data[len] = '\0';
    return 0;
}

void blz__bytes_undo(blz_fs_op *op, int64_t result)
{
    (void)result;
    blz_bytes_free(op->out);
}
