/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a path that a stranger has sent to an open file. Two things keep it where it belongs: the
 * path is decoded first, and refused if it goes above the root; and the system is told to open it
 * beneath the root only, so that no symbolic link leads out of it either, whatever others do to the
 * tree meanwhile. Everything from then on is done with what was opened, not with its name.
 */
#include "files.h"

#include <stdlib.h>
#include <string.h>

/* What a client is told when the system says this. */
static int64_t status_of(int64_t error)
{
    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
        return -404;
    case -EACCES:
    case -EPERM:
    case -EXDEV: /* out of the root */
    case -ELOOP:
    case -EINVAL: /* a FIFO or a socket */
    case -ENXIO:
        return -403;
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        return -503;
    default:
        return -500;
    }
}

/* Whether any part of it begins with a dot. */
static bool is_hidden(const char *name)
{
    return strcmp(name, ".") != 0 && (name[0] == '.' || strstr(name, "/."));
}

/* Makes the name: 0 or a status. */
static int64_t decode(struct resource_open *self)
{
    self->name = malloc(self->path_len + 2);
    if (!self->name)
        return -503;
    if (!http_path_decode(self->name, self->path, self->path_len))
        return -400;
    return !self->server->hidden && is_hidden(self->name) ? -404 : 0;
}

/* Whether it can be sent, and was asked for as what it is. */
static int64_t judge(const struct resource_open *self)
{
    bool slash = self->path_len > 0 && self->path[self->path_len - 1] == '/';
    blz_file_type type = self->out->meta.type;

    if (type == BLZ_FILE_DIRECTORY)
        return slash ? 0 : -301;
    if (type != BLZ_FILE_REGULAR)
        return -403;
    return slash ? -404 : 0;
}

/* A directory's index.html takes its place; if it is none of ours, or no file, it does not. */
static void take_index(struct resource_open *self)
{
    if (self->index_meta.type != BLZ_FILE_REGULAR) {
        blz_file_close(&self->index);
        return;
    }
    blz_file_close(&self->out->file);
    *self->out = (struct resource){self->index, self->index_meta, type_of_name("index.html")};
}

BLZ_ASYNC_EXTERN(resource_open)
{
    BLZ_BEGIN;
    self->rc = decode(self);
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc,
              blz_file_open(&self->io, &self->out->file, self->name,
                            &(blz_open_options){.at = &self->server->root, .beneath = true}));
    if (self->rc < 0)
        goto out_status;
    BLZ_AWAIT(self->rc, blz_file_metadata(&self->io, &self->out->file, &self->out->meta));
    if (self->rc < 0)
        goto out_status;
    self->out->type = type_of_name(self->name);
    self->rc = judge(self);
    if (self->rc < 0 || self->out->meta.type != BLZ_FILE_DIRECTORY)
        goto out;
    BLZ_AWAIT(self->rc,
              blz_file_open(&self->io, &self->index, "index.html",
                            &(blz_open_options){.at = &self->out->file, .beneath = true}));
    if (self->rc == 0) {
        BLZ_AWAIT(self->rc, blz_file_metadata(&self->io, &self->index, &self->index_meta));
        take_index(self);
    }
    if (self->rc == -ENOENT)
        self->rc = 0;
out_status:
    self->rc = self->rc < 0 ? status_of(self->rc) : 0;
out:
    free(self->name);
    BLZ_END(self->rc);
}
