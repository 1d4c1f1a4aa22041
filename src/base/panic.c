/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentence is put together in a buffer on the stack and leaves in one write: stdio may be
 * what is broken, its lock may be held by this very thread, and lines of two threads that panic at
 * once must not mix. A sentence that is too long loses its end, not its newline.
 */
#include "base/panic.h"

#include "base/assert.h"

#include "system/panic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE_MAX = 1024 };

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
    blz__panic_write(text, len);
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

void blz__assert_failed(const char *condition, const char *file, int line, const char *function)
{
    blz__panic("assertion %s failed at %s:%d in %s", condition, file, line, function);
}
