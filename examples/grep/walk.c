/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All files below a directory. Its names are read and sorted first, and it is closed; a directory
 * in it is a call of the same function, in a box, because a frame cannot contain itself.
 *
 * Symbolic links are not followed, and what is neither a file nor a directory is left out.
 */
#include "grep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "path/name", to be freed. A path of "" is the current directory. */
static char *join(const char *path, const char *name, bool directory)
{
    size_t len = strlen(path), size = len + strlen(name) + 3;
    const char *between = len == 0 || path[len - 1] == '/' ? "" : "/";
    char *joined = malloc(size);

    if (joined)
        snprintf(joined, size, "%s%s%s%s", path, between, name, directory ? "/" : "");
    return joined;
}

static int add_name(struct walk *self, blz_file_type type)
{
    char **names = self->names;

    if (type != BLZ_FILE_REGULAR && type != BLZ_FILE_DIRECTORY)
        return 0;
    if (self->nr_names == self->room) {
        size_t room = self->room ? 2 * self->room : 64;
        names = realloc(self->names, room * sizeof *names);
        if (!names)
            return -ENOMEM;
        self->names = names;
        self->room = room;
    }
    names[self->nr_names] = join("", self->entry.name, type == BLZ_FILE_DIRECTORY);
    return names[self->nr_names] ? (self->nr_names++, 0) : -ENOMEM;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The next one's path, without its slash; `directory`: it had one. NULL: no memory. */
static char *take_child(struct walk *self, bool *directory)
{
    char *name = self->names[self->i++], *child;
    size_t len = strlen(name);

    *directory = name[len - 1] == '/';
    if (*directory)
        name[len - 1] = 0;
    child = join(self->path, name, false);
    free(name);
    return child;
}

static void free_names(struct walk *self)
{
    for (; self->i < self->nr_names; self->i++)
        free(self->names[self->i]);
    free(self->names);
}

BLZ_ASYNC_EXTERN(walk)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_dir_open(&self->op, &self->dir, *self->path ? self->path : "."));
    while (self->rc >= 0) {
        BLZ_AWAIT(self->rc, blz_dir_next(&self->op, &self->dir, &self->entry));
        if (self->rc <= 0)
            break;
        if (self->entry.type == BLZ_FILE_UNKNOWN) {
            self->child = join(self->path, self->entry.name, false);
            if (!self->child) {
                self->rc = -ENOMEM;
                break;
            }
            BLZ_AWAIT(self->rc, blz_fs_link_metadata(&self->op, self->child, &self->meta));
            free(self->child);
            self->entry.type = self->rc < 0 ? BLZ_FILE_UNKNOWN : self->meta.type;
        }
        self->rc = add_name(self, self->entry.type);
    }
    blz_dir_close(&self->dir);
    if (self->rc < 0)
        complain(self->grep, *self->path ? self->path : ".", self->rc);
    if (self->nr_names > 0)
        qsort(self->names, self->nr_names, sizeof *self->names, compare);
    while (self->i < self->nr_names && !atomic_load(&self->grep->stopped)) {
        bool directory;
        self->child = take_child(self, &directory);
        if (!self->child) {
            complain(self->grep, self->path, -ENOMEM);
            continue;
        }
        if (directory)
            BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, walk, .grep = self->grep, .path = self->child));
        else
            BLZ_CALL(self->rc, self->submit, submit, .grep = self->grep, .path = self->child);
        if (self->rc < 0)
            complain(self->grep, self->path, self->rc);
    }
    free_names(self);
    free(self->path);
    BLZ_END(0);
}
