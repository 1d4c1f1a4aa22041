/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows. When there is no more memory it stays as it is and says so at the end
 * (`failed`), so that those who write it need not look after each word. Used by one task at a time.
 */
#ifndef BLZ_CONSOLE_TEXT_H
#define BLZ_CONSOLE_TEXT_H

#include <blitz/base.h>
#include <stdarg.h>

struct text {
    const blz_allocator *allocator;
    char *data;
    size_t len, size;
    bool failed;
};

void blz__text_free(struct text *text);

/* Forgets what is in it, and keeps the memory. */
static inline void text_clear(struct text *text)
{
    text->len = 0;
    text->failed = false;
}

void blz__text_add(struct text *text, const void *data, size_t len);
void blz__text_print(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A number, in decimal. */
void blz__text_number(struct text *text, uint64_t number);

/* A string of JSON, with its quotes. What is not UTF-8 becomes U+FFFD. */
void blz__text_json(struct text *text, const char *string, size_t len);

/* The value of a label of a metric, without its quotes. */
void blz__text_label(struct text *text, const char *string);

#endif
