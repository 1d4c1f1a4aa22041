/* SPDX-License-Identifier: Apache-2.0 */
/* See reply.h. */
#include "reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_SIZE = 1 << 10, KEPT_SIZE = 16 << 10 };

/* ---- bytes ---- */

/* Memory of another size for what is there. False: it is as it was. */
static bool resize(struct bytes *b, size_t size)
{
    char *data;

    if (b->budget && !budget_take(b->budget, size - b->size))
        return false;
    data = realloc(b->data, size);
    if (!data && b->budget)
        budget_give(b->budget, size - b->size);
    if (!data)
        return false;
    b->data = data;
    b->size = size;
    return true;
}

static bool grow(struct bytes *b, size_t len)
{
    size_t size = b->size ? b->size : MIN_SIZE;

    if (!b->failed && len <= BYTES_MAX - b->len) {
        while (size - b->len < len)
            size *= 2;
        if (resize(b, size))
            return true;
    }
    b->failed = true;
    return false;
}

bool bytes_reserve(struct bytes *b, size_t len)
{
    return (len <= b->size - b->len && !b->failed) || grow(b, len);
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
    if (len == 0 || !bytes_reserve(b, len))
        return;
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

__attribute__((format(printf, 2, 0))) static void print(struct bytes *b, const char *format,
                                                        va_list args)
{
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (len < 0 || !bytes_reserve(b, (size_t)len + 1))
        return;
    vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
    b->len += (size_t)len;
}

void bytes_print(struct bytes *b, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(b, format, args);
    va_end(args);
}

void bytes_clear(struct bytes *b)
{
    b->len = 0;
    if (b->size > KEPT_SIZE)
        bytes_free(b);
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    if (b->budget)
        budget_give(b->budget, b->size);
    *b = (struct bytes){.budget = b->budget};
}

/* ---- replies ---- */

size_t format_int(char digits[24], int64_t n)
{
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    char reverse[24];
    size_t nr = 0, len = 0;

    do {
        reverse[nr++] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (n < 0)
        digits[len++] = '-';
    while (nr > 0)
        digits[len++] = reverse[--nr];
    return len;
}

/* A line that is a kind and a number: ":7", "$3", "*2". */
static void put_number(struct bytes *out, char kind, int64_t n)
{
    char line[32];
    size_t len;

    line[0] = kind;
    len = 1 + format_int(line + 1, n);
    line[len++] = '\r';
    line[len++] = '\n';
    bytes_add(out, line, len);
}

void reply_ok(struct bytes *out)
{
    bytes_text(out, "+OK\r\n");
}

void reply_simple(struct bytes *out, const char *text)
{
    bytes_print(out, "+%s\r\n", text);
}

void reply_error(struct bytes *out, const char *format, ...)
{
    size_t from;
    va_list args;

    bytes_text(out, "-");
    from = out->len;
    va_start(args, format);
    print(out, format, args);
    va_end(args);
    for (size_t i = from; i < out->len; i++)
        if ((unsigned char)out->data[i] < ' ')
            out->data[i] = ' ';
    bytes_text(out, "\r\n");
}

void reply_int(struct bytes *out, int64_t n)
{
    put_number(out, ':', n);
}

void reply_bulk(struct bytes *out, const void *data, size_t len)
{
    put_number(out, '$', (int64_t)len);
    if (!bytes_reserve(out, len + 2))
        return;
    if (len > 0)
        memcpy(out->data + out->len, data, len);
    memcpy(out->data + out->len + len, "\r\n", 2);
    out->len += len + 2;
}

void reply_text(struct bytes *out, const char *text)
{
    reply_bulk(out, text, strlen(text));
}

void reply_null(struct bytes *out, int proto)
{
    if (proto == 3)
        bytes_text(out, "_\r\n");
    else
        bytes_text(out, "$-1\r\n");
}

void reply_array(struct bytes *out, size_t nr)
{
    put_number(out, '*', (int64_t)nr);
}

void reply_map(struct bytes *out, int proto, size_t nr_pairs)
{
    put_number(out, proto == 3 ? '%' : '*', (int64_t)(proto == 3 ? nr_pairs : 2 * nr_pairs));
}

void reply_push(struct bytes *out, int proto, size_t nr)
{
    put_number(out, proto == 3 ? '>' : '*', (int64_t)nr);
}
