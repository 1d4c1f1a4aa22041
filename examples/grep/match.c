/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that match. Text without anything special in it is looked for in all lines at once, and
 * then the line around it; a regular expression gets one line at a time.
 */
#define _GNU_SOURCE /* memrchr, memmem */
#include "grep.h"

#include <stdlib.h>
#include <string.h>

/* Text as a regular expression that means nothing but it. */
static char *escape(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *to = out;

    for (; out && *text; text++) {
        if (strchr("\\^.[$()|*+?{", *text))
            *to++ = '\\';
        *to++ = *text;
    }
    if (out)
        *to = 0;
    return out;
}

static int compile(struct matcher *m, const char *pattern, const struct settings *s, char *why,
                   size_t size)
{
    int rc =
        regcomp(&m->regex, pattern, REG_EXTENDED | REG_NOSUB | (s->ignore_case ? REG_ICASE : 0));

    if (rc != 0)
        regerror(rc, &m->regex, why, size);
    return rc;
}

int matcher_init(struct matcher *m, const struct settings *s, char *why, size_t size)
{
    bool plain = s->fixed || !strpbrk(s->pattern, "\\^.[$()|*+?{");
    char *escaped = NULL;
    int rc;

    *m = (struct matcher){.text = NULL};
    if (plain && !s->ignore_case) {
        m->text = s->pattern;
        m->len = strlen(s->pattern);
        return 0;
    }
    if (s->fixed)
        escaped = escape(s->pattern);
    if (s->fixed && !escaped)
        rc = REG_ESPACE;
    else
        rc = compile(m, s->fixed ? escaped : s->pattern, s, why, size);
    free(escaped);
    return rc;
}

void matcher_free(struct matcher *m)
{
    if (!m->text)
        regfree(&m->regex);
}

/* The length of the line at `text`, with its end. */
static size_t line_at(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);

    return end ? (size_t)(end - text) + 1 : len;
}

static bool next_text(const struct matcher *m, const char *text, size_t len, size_t *at, size_t *n)
{
    const char *found = memmem(text, len, m->text, m->len), *before;

    if (!found || len == 0)
        return false;
    before = memrchr(text, '\n', (size_t)(found - text));
    *at = before ? (size_t)(before - text) + 1 : 0;
    *n = line_at(text + *at, len - *at);
    return true;
}

/* The system wants text that ends with a zero: each line does, while it is looked at. */
static bool next_regex(const struct matcher *m, char *text, size_t len, size_t *at, size_t *n)
{
    for (*at = 0; *at < len; *at += *n) {
        char *line = text + *at, *end, last;
        bool found;
        *n = line_at(line, len - *at);
        end = line + *n - (line[*n - 1] == '\n');
        last = *end;
        *end = 0;
        found = regexec(&m->regex, line, 0, NULL, 0) == 0;
        *end = last;
        if (found)
            return true;
    }
    return false;
}

bool match_next(const struct matcher *m, char *text, size_t len, size_t *at, size_t *n)
{
    return m->text ? next_text(m, text, len, at, n) : next_regex(m, text, len, at, n);
}
