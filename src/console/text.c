/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, and the two ways of quoting that are needed; see text.h. */
#include "console/text.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

void blz__text_free(struct text *text)
{
    if (text->data)
        blz__free(text->allocator, text->data, text->size, 1);
    *text = (struct text){.allocator = text->allocator};
}

/* Room for as many bytes more. */
static bool make_room(struct text *text, size_t more)
{
    size_t size = text->size ? text->size : 1024;
    char *data;

    if (text->failed)
        return false;
    if (more <= text->size - text->len)
        return true;
    while (size - text->len < more)
        size += size / 2;
    data = blz__alloc(text->allocator, size, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    if (text->data) {
        memcpy(data, text->data, text->len);
        blz__free(text->allocator, text->data, text->size, 1);
    }
    text->data = data;
    text->size = size;
    return true;
}

void blz__text_add(struct text *text, const void *data, size_t len)
{
    if (len == 0 || !make_room(text, len))
        return;
    memcpy(text->data + text->len, data, len);
    text->len += len;
}

void blz__text_print(struct text *text, const char *format, ...)
{
    char small[256];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (len < 0)
        return;
    if ((size_t)len < sizeof small) {
        blz__text_add(text, small, (size_t)len);
        return;
    }
    if (!make_room(text, (size_t)len + 1))
        return;
    va_start(args, format);
    vsnprintf(text->data + text->len, (size_t)len + 1, format, args);
    va_end(args);
    text->len += (size_t)len;
}

void blz__text_number(struct text *text, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    blz__text_add(text, digits + at, sizeof digits - at);
}

/* ---- quoting ---- */

/* The length of the character of UTF-8 at the beginning; 0: it is none. */
static size_t utf8_len(const unsigned char *s, size_t len)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    uint32_t code = s[0] & (n == 1 ? 0x7f : 0xff >> (n + 1));
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};

    if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    return code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* Those that stand for themselves, at the beginning. */
static size_t plain_len(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

void blz__text_json(struct text *text, const char *s, size_t len)
{
    size_t n;

    blz__text_add(text, "\"", 1);
    while (len > 0) {
        n = plain_len(s, len);
        blz__text_add(text, s, n);
        s += n;
        len -= n;
        if (len == 0)
            break;
        n = utf8_len((const unsigned char *)s, len);
        if (n == 0)
            blz__text_add(text, "\xef\xbf\xbd", 3);
        else if (n > 1)
            blz__text_add(text, s, n);
        else if (*s == '"' || *s == '\\')
            blz__text_print(text, "\\%c", *s);
        else
            blz__text_print(text, "\\u%04x", (unsigned)(unsigned char)*s);
        n = n ? n : 1;
        s += n;
        len -= n;
    }
    blz__text_add(text, "\"", 1);
}

void blz__text_label(struct text *text, const char *s)
{
    for (; *s; s++) {
        if (*s == '\n')
            blz__text_add(text, "\\n", 2);
        else if (*s == '"' || *s == '\\')
            blz__text_print(text, "\\%c", *s);
        else
            blz__text_add(text, s, 1);
    }
}
