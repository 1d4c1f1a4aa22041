/* SPDX-License-Identifier: Apache-2.0 */
/* See bytes.h. */
#include "bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_SIZE = 512 };

/* Room for `len` more; false: no memory. */
static bool make_room(struct bytes *b, size_t len)
{
    size_t size = b->size ? b->size : MIN_SIZE;
    char *data;

    if (b->failed || len <= b->size - b->len)
        return !b->failed;
    while (size - b->len < len)
        size *= 2;
    data = realloc(b->data, size);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->size = size;
    return true;
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
    if (len == 0 || !make_room(b, len))
        return;
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

char *bytes_room(struct bytes *b, size_t len)
{
    return make_room(b, len) ? b->data + b->len : NULL;
}

void bytes_print(struct bytes *b, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0 || !make_room(b, (size_t)len + 1))
        return;
    va_start(args, format);
    vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
    va_end(args);
    b->len += (size_t)len;
}

void bytes_quote(struct bytes *b, const char *text)
{
    bytes_add(b, "\"", 1);
    for (; *text; text++) {
        if ((unsigned char)*text < ' ')
            bytes_print(b, "\\u%04x", *text);
        else
            bytes_print(b, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    }
    bytes_add(b, "\"", 1);
}

void bytes_drop(struct bytes *b, size_t len)
{
    b->len -= len;
    if (b->len == 0)
        bytes_free(b);
    else
        memmove(b->data, b->data + len, b->len);
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}
