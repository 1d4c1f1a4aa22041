/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the bytes of a file, as they come, to what is printed. What has come is searched up to the
 * end of its last line; the rest stays until there is more.
 */
#define _GNU_SOURCE /* memrchr, memmem */
#include "grep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_SIZE = 64 << 10, MAX_LINE = 64 << 20 };

/* ---- keeping ---- */

/* Room for `len` bytes behind `used`: 0 or -ENOMEM. */
static int make_room(char **buf, size_t *size, size_t used, size_t len)
{
    size_t wanted = *size ? *size : MIN_SIZE;
    char *data;

    while (wanted - used < len)
        wanted *= 2;
    if (wanted == *size)
        return 0;
    data = realloc(*buf, wanted);
    if (!data)
        return -ENOMEM;
    *buf = data;
    *size = wanted;
    return 0;
}

static int keep(struct finder *f, const char *text, size_t len)
{
    if (make_room(&f->out, &f->out_size, f->out_len, len) < 0)
        return -ENOMEM;
    memcpy(f->out + f->out_len, text, len);
    f->out_len += len;
    return 0;
}

static int keep_number(struct finder *f, uint64_t number, char end)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRIu64 "%c", number, end);

    return keep(f, text, (size_t)len);
}

static int keep_name(struct finder *f, const char *end)
{
    int rc = keep(f, f->name, strlen(f->name));

    return rc < 0 ? rc : keep(f, end, 1);
}

static int keep_line(struct finder *f, const char *line, size_t len)
{
    int rc = f->settings->names ? keep_name(f, ":") : 0;

    if (rc == 0 && f->settings->number)
        rc = keep_number(f, f->line, ':');
    if (rc == 0)
        rc = keep(f, line, len);
    if (rc == 0 && line[len - 1] != '\n')
        rc = keep(f, "\n", 1);
    return rc;
}

/* ---- selecting ---- */

static int select_line(struct finder *f, const char *line, size_t len)
{
    const struct settings *s = f->settings;

    f->nr_selected++;
    f->ended = s->list; /* one is enough */
    return s->list || s->count ? 0 : keep_line(f, line, len);
}

/* Lines that are selected, all of them, or none. */
static int pass_lines(struct finder *f, const char *text, size_t len, bool selected)
{
    int rc = 0;

    if (!selected && !f->settings->number)
        return 0;
    while (len > 0 && rc == 0 && !f->ended) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) + 1 : len;
        f->line++;
        if (selected)
            rc = select_line(f, text, line);
        text += line;
        len -= line;
    }
    return rc;
}

static int search_lines(struct finder *f, char *text, size_t len)
{
    bool invert = f->settings->invert;
    int rc = 0;

    while (len > 0 && rc == 0 && !f->ended) {
        size_t at, n;
        if (!match_next(&f->matcher, text, len, &at, &n))
            return pass_lines(f, text, len, invert);
        rc = pass_lines(f, text, at, invert);
        if (rc == 0 && !f->ended)
            rc = pass_lines(f, text + at, n, !invert);
        text += at + n;
        len -= at + n;
    }
    return rc;
}

/* ---- a file ---- */

int find_begin(struct finder *f, const struct settings *settings, const char *name)
{
    char why[64];

    if (!f->has_matcher && matcher_init(&f->matcher, settings, why, sizeof why) != 0)
        return -ENOMEM; /* the pattern is fine: it was looked at before */
    f->has_matcher = true;
    f->settings = settings;
    f->name = name;
    f->binary = f->ended = false;
    f->line = f->nr_selected = 0;
    f->in_len = f->out_len = 0;
    return 0;
}

int64_t find_room(struct finder *f, char **room)
{
    if (f->in_len >= MAX_LINE)
        return -EOVERFLOW;
    if (make_room(&f->in, &f->in_size, f->in_len, 2) < 0)
        return -ENOMEM;
    *room = f->in + f->in_len;
    return (int64_t)(f->in_size - f->in_len - 1); /* see match_next */
}

/* How much of what has come is lines that are complete. */
static size_t complete(const struct finder *f, bool at_end)
{
    const char *end = at_end ? NULL : memrchr(f->in, '\n', f->in_len);

    if (at_end)
        return f->in_len;
    return end ? (size_t)(end - f->in) + 1 : 0;
}

int find_more(struct finder *f, size_t len)
{
    size_t ready;
    int rc;

    if (memchr(f->in + f->in_len, 0, len)) {
        f->binary = f->ended = true;
        f->nr_selected = 0;
        f->out_len = 0; /* what has not been printed never will be */
        return 0;
    }
    f->in_len += len;
    ready = complete(f, len == 0);
    rc = search_lines(f, f->in, ready);
    f->in_len -= ready;
    memmove(f->in, f->in + ready, f->in_len);
    f->ended |= len == 0;
    return rc;
}

int find_end(struct finder *f)
{
    const struct settings *s = f->settings;
    int rc = 0;

    if (s->list)
        return f->nr_selected > 0 ? keep_name(f, "\n") : 0;
    if (!s->count)
        return 0;
    if (s->names)
        rc = keep_name(f, ":");
    return rc < 0 ? rc : keep_number(f, f->nr_selected, '\n');
}

void find_free(struct finder *f)
{
    if (f->has_matcher)
        matcher_free(&f->matcher);
    free(f->in);
    free(f->out);
    *f = (struct finder){.in = NULL};
}
