/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that grow. When there is no memory they are `failed` and take no more, so that a long text
 * can be put together first and be asked about once.
 */
#ifndef HTTP_BYTES_H
#define HTTP_BYTES_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *data; /* NULL: none, and no memory held */
    size_t len, size;
    bool failed;
};

void bytes_add(struct bytes *bytes, const void *data, size_t len);

/* Room for `len` more bytes; who fills it adds them to `len` of the struct. NULL: no memory. */
char *bytes_room(struct bytes *bytes, size_t len);

void bytes_print(struct bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "text", as JSON writes it. */
void bytes_quote(struct bytes *bytes, const char *text);

/* Forgets the first `len`; gives the memory back if these were all. */
void bytes_drop(struct bytes *bytes, size_t len);

void bytes_free(struct bytes *bytes);

#endif
