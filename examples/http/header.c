/* SPDX-License-Identifier: Apache-2.0 */
/* Single headers: finding them, and what some of them say. */
#include "http.h"

#include <string.h>
#include <strings.h>

/* ---- finding ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct http_span value_of(const char *head, size_t at, size_t end)
{
    while (end > at && (head[end - 1] == '\n' || head[end - 1] == '\r'))
        end--;
    while (at < end && is_blank(head[at]))
        at++;
    while (end > at && is_blank(head[end - 1]))
        end--;
    return (struct http_span){(uint16_t)at, (uint16_t)(end - at)};
}

int http_header(const char *head, size_t len, const char *name, struct http_span *value)
{
    size_t name_len = strlen(name), at = 0;
    int found = 0;

    while (at < len) {
        const char *lf = memchr(head + at, '\n', len - at);
        size_t next = lf ? (size_t)(lf - head) + 1 : len;
        if (at + name_len < next && head[at + name_len] == ':' &&
            strncasecmp(head + at, name, name_len) == 0 && found++ == 0)
            *value = value_of(head, at + name_len + 1, next);
        at = next;
    }
    return found;
}

/* ---- tags ---- */

bool http_tag_in(const char *list, size_t len, const char *tag)
{
    size_t tag_len = strlen(tag), at = 0;

    if (len == 1 && list[0] == '*')
        return true;
    while (at < len) {
        const char *first = memchr(list + at, '"', len - at), *last;
        if (!first || (size_t)(first - list) + 1 >= len)
            return false;
        at = (size_t)(first - list);
        last = memchr(first + 1, '"', len - at - 1);
        if (!last)
            return false;
        if ((size_t)(last - first) + 1 == tag_len && memcmp(first, tag, tag_len) == 0)
            return true;
        at = (size_t)(last - list) + 1;
    }
    return false;
}

/* ---- ranges ---- */

/* The number at *at, and moves that behind it. False: none, or one that is too large. */
static bool take_number(const char *text, size_t len, size_t *at, uint64_t *n)
{
    size_t from = *at;

    for (*n = 0; *at < len && text[*at] >= '0' && text[*at] <= '9'; (*at)++) {
        if (*n > (UINT64_MAX - 9) / 10)
            return false;
        *n = *n * 10 + (uint64_t)(text[*at] - '0');
    }
    return *at > from;
}

/* The last so many. */
static int suffix_range(uint64_t last, uint64_t size, uint64_t *at, uint64_t *count)
{
    *count = last < size ? last : size;
    *at = size - *count;
    return *count > 0 ? 1 : -416;
}

int http_range_parse(const char *text, size_t len, uint64_t size, uint64_t *at, uint64_t *count)
{
    uint64_t first = 0, last = UINT64_MAX;
    size_t i = 6;
    bool has_first, has_last;

    if (len < 6 || strncasecmp(text, "bytes=", 6) != 0)
        return 0;
    has_first = take_number(text, len, &i, &first);
    if (i == len || text[i++] != '-')
        return 0;
    has_last = take_number(text, len, &i, &last);
    if (i != len || (!has_first && !has_last) || (has_first && has_last && last < first))
        return 0;
    if (!has_first)
        return suffix_range(last, size, at, count);
    if (first >= size)
        return -416;
    if (!has_last || last >= size)
        last = size - 1;
    *at = first;
    *count = last - first + 1;
    return 1;
}
