/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory as a page of links, in alphabetical order. Names are what somebody has called a file:
 * they are written as text and as links so that nothing in them is taken for anything else.
 */
#include "files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAMES = 256 << 10 }; /* bytes of them */

/* ---- writing ---- */

static void put_text(struct bytes *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char *as = text[i] == '&'   ? "&amp;"
                         : text[i] == '<' ? "&lt;"
                         : text[i] == '>' ? "&gt;"
                         : text[i] == '"' ? "&quot;"
                                          : NULL;
        bytes_add(out, as ? as : text + i, as ? strlen(as) : 1);
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("-._~/", c));
}

static void put_link(struct bytes *out, const char *name)
{
    for (; *name; name++)
        if (is_plain(*name))
            bytes_add(out, name, 1);
        else
            bytes_print(out, "%%%02X", (unsigned char)*name);
}

static void put_entry(struct bytes *out, const char *name)
{
    bytes_print(out, "<li><a href=\"./"); /* so that "a:b" is no scheme */
    put_link(out, name);
    bytes_print(out, "\">");
    put_text(out, name, strlen(name));
    bytes_print(out, "</a>\n");
}

static void put_page(struct list_directory *self, char *const *names)
{
    struct bytes *out = self->out;

    bytes_print(out, "<!DOCTYPE html><meta charset=utf-8><title>");
    put_text(out, self->path, self->path_len);
    bytes_print(out, "</title>\n<h1>");
    put_text(out, self->path, self->path_len);
    bytes_print(out, "</h1>\n<ul>\n");
    if (self->path_len > 1)
        bytes_print(out, "<li><a href=\"../\">../</a>\n");
    for (size_t i = 0; i < self->nr_names; i++)
        put_entry(out, names[i]);
    bytes_print(out, "</ul>\n%s", self->more ? "<p>And more.\n" : "");
}

/* ---- reading ---- */

static void take_name(struct list_directory *self)
{
    const char *name = self->entry.name;

    if (name[0] == '.' && !self->server->hidden)
        return;
    self->more = self->names.len + strlen(name) + 2 > MAX_NAMES;
    if (self->more)
        return;
    bytes_add(&self->names, name, strlen(name));
    bytes_add(&self->names, "/", self->entry.type == BLZ_FILE_DIRECTORY ? 1 : 0);
    bytes_add(&self->names, "", 1);
    self->nr_names++;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* 0 or -ENOMEM. */
static int64_t write_page(struct list_directory *self)
{
    char **names = calloc(self->nr_names + 1, sizeof *names), *name = self->names.data;

    if (!names || self->names.failed) {
        free(names);
        return -ENOMEM;
    }
    for (size_t i = 0; i < self->nr_names; i++, name += strlen(name) + 1)
        names[i] = name;
    qsort(names, self->nr_names, sizeof *names, compare);
    put_page(self, names);
    free(names);
    return self->out->failed ? -ENOMEM : 0;
}

/* Lists by the very descriptor that was opened. */
static int64_t begin(struct list_directory *self)
{
    int64_t fd = blz_file_into_fd(self->directory);
    int rc;

    if (fd < 0)
        return fd;
    rc = blz_dir_from_fd(&self->dir, (blz_sysfd)fd, NULL);
    if (rc < 0)
        close((int)fd);
    return rc;
}

BLZ_ASYNC_EXTERN(list_directory)
{
    BLZ_BEGIN;
    self->rc = begin(self);
    while (self->rc >= 0 && !self->more) {
        BLZ_AWAIT(self->rc, blz_dir_next(&self->op, &self->dir, &self->entry));
        if (self->rc <= 0)
            break;
        take_name(self);
    }
    if (self->rc >= 0)
        self->rc = write_page(self);
    bytes_free(&self->names);
    blz_dir_close(&self->dir);
    BLZ_END(self->rc);
}
