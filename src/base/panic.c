/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentence is put together in a buffer on the stack and leaves in one write(2): stdio may be
 * what is broken, its lock may be held by this very thread, and lines of two threads that panic at
 * once must not mix. A sentence that is too long loses its end, not its newline.
 */
#include "base/panic.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENTENCE_MAX = 1024 };

static void write_all(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
}

static __attribute__((format(printf, 1, 0))) void write_sentence(const char *fmt, va_list args)
{
    static const char prefix[] = "blitz: ";
    char text[SENTENCE_MAX];
    size_t len = sizeof prefix - 1;

    memcpy(text, prefix, len);
    int n = vsnprintf(text + len, sizeof text - len - 1, fmt, args);
    if (n > 0)
        len = (size_t)n < sizeof text - len - 1 ? len + (size_t)n : sizeof text - 2;
    text[len++] = '\n';
    write_all(text, len);
}

void blz__warn(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_sentence(fmt, args);
    va_end(args);
}

void blz__panic(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_sentence(fmt, args);
    va_end(args);
    abort();
}
