/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as file names. First the escapes are taken out, then the path is put together part by part:
 * "%2e%2e" is ".." and not something that is found later. That no symbolic link leads elsewhere is
 * for the one to check who opens it.
 */
#include "http.h"

#include <string.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* The length without escapes, or -1. */
static long unescape(char *out, const char *path, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++, n++) {
        out[n] = path[i];
        if (path[i] == '%') {
            int high = i + 2 < len ? digit_of(path[i + 1]) : -1;
            int low = i + 2 < len ? digit_of(path[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            out[n] = (char)(high << 4 | low);
            i += 2;
        }
        if (out[n] == 0)
            return -1;
    }
    return (long)n;
}

/* Where the last part begins of the first `len` bytes. */
static size_t parent_of(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len > 0 ? len - 1 : 0;
}

/* Puts `len` bytes together in place: what is written is never ahead of what is read. */
static bool normalize(char *path, size_t len)
{
    size_t out = 0, at = 0;

    while (at < len) {
        const char *slash = memchr(path + at, '/', len - at);
        size_t part = slash ? (size_t)(slash - path) - at : len - at;
        bool up = part == 2 && path[at] == '.' && path[at + 1] == '.';
        if (up && out == 0)
            return false;
        if (up) {
            out = parent_of(path, out);
        } else if (part > 0 && !(part == 1 && path[at] == '.')) {
            if (out > 0)
                path[out++] = '/';
            memmove(path + out, path + at, part);
            out += part;
        }
        at += part + 1;
    }
    if (out == 0)
        path[out++] = '.';
    path[out] = 0;
    return true;
}

bool http_path_decode(char *out, const char *path, size_t len)
{
    long n = unescape(out, path, len);

    return n >= 0 && normalize(out, (size_t)n);
}
