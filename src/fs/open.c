/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files, and taking over descriptors. First by a call that fails if the path is not all in
 * the system's memory, then by one that waits, on a thread.
 *
 * A descriptor that comes when its taker has been cancelled is closed.
 */
#include <blitz/file.h>

#include "fs/file.h"

#include <blitz/error.h>

enum { MODE_SHIFT = 32 };

/* ---- what is asked for ---- */

static unsigned access_of(const blz_open_options *o)
{
    if (o->append || o->write)
        return OPEN_WRITE | (o->read ? OPEN_READ : 0) | (o->append ? OPEN_APPEND : 0);
    return OPEN_READ;
}

uint64_t blz__open_how(const blz_open_options *o)
{
    bool writes = o->write || o->append;
    uint32_t flags = access_of(o) | o->flags;
    unsigned mode = o->mode ? o->mode : 0666;

    if (!writes && (o->truncate || o->create || o->create_new))
        return OPEN_NONSENSE;
    if ((o->append && o->truncate) || (mode & ~07777u) || (o->flags & ~(uint32_t)BLZ_OPEN_ALL))
        return OPEN_NONSENSE;
    flags |= o->truncate ? OPEN_TRUNCATE : 0;
    flags |= o->create ? OPEN_CREATE : 0;
    flags |= o->create_new ? OPEN_CREATE_NEW : 0;
    flags |= o->directory ? OPEN_DIRECTORY : 0;
    flags |= o->no_follow ? OPEN_NO_FOLLOW : 0;
    flags |= o->beneath ? OPEN_BENEATH : 0;
    return (uint64_t)mode << MODE_SHIFT | flags;
}

int64_t blz__open_run(blz_sysfd at, const char *path, uint64_t how)
{
    if (how == OPEN_NONSENSE)
        return -EINVAL;
    return blz__file_open(at, path, (uint32_t)how, (unsigned)(how >> MODE_SHIFT));
}

int64_t blz__open_try(blz_sysfd at, const char *path, uint64_t how)
{
    if (how == OPEN_NONSENSE)
        return -EINVAL;
    return blz__file_open_now(at, path, (uint32_t)how, (unsigned)(how >> MODE_SHIFT));
}

/* ---- the future ---- */

static int64_t hand_out(struct io *io, blz_cx *cx, blz_sysfd fd)
{
    blz__fd_ref *ref = io->open.file;
    int rc = io->flags & IO_CANCELLED ? -ECANCELED : blz__fd_adopt(ref, blz_cx_rt(cx), fd, 0);

    if (rc < 0)
        (void)blz__file_close(fd);
    return rc;
}

static blz_poll open_poll(blz_future *self, blz_cx *cx)
{
    if (blz_is_pending(blz__file_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result >= 0)
        self->result = hand_out((struct io *)self, cx, (blz_sysfd)self->result);
    return BLZ_READY;
}

blz_future *blz_file_open(blz_io *public, blz_file *file, const char *path,
                          const blz_open_options *options)
{
    static const blz_future_ops ops = {.name = "file_open",
                                       .poll = open_poll,
                                       .cancel = blz__file_cancel,
                                       .describe_wait = blz__file_describe};
    static const blz_open_options none;
    const blz_open_options *o = options ? options : &none;
    struct io *io = blz__file_prepare(public, &ops, IO_FILE_OPEN, o->at);

    io->open.path = path;
    io->open.how = blz__open_how(o);
    io->open.file = file_mutable_ref(file);
    if (o->at && !io->fd)
        io->generation = 1; /* a handle that is none is not the current directory */
    *file = (blz_file){NULL, 0};
    return &io->op.future;
}

blz_future *blz_file_create(blz_io *io, blz_file *file, const char *path)
{
    static const blz_open_options options = {.write = true, .create = true, .truncate = true};

    return blz_file_open(io, file, path, &options);
}

int blz_file_close(blz_file *file)
{
    int rc = blz__fd_close(file_mutable_ref(file));

    *file = (blz_file){NULL, 0};
    return rc;
}

/* ---- from elsewhere ---- */

int blz_file_from_fd(blz_file *file, blz_sysfd fd, blz_rt *rt)
{
    blz_metadata about;
    int rc = blz__file_metadata(fd, &about);

    *file = (blz_file){NULL, 0};
    if (rc < 0)
        return rc;
    if (about.type == BLZ_FILE_FIFO || about.type == BLZ_FILE_SOCKET)
        return -EINVAL;
    return blz__fd_adopt(file_mutable_ref(file), rt ? rt : blz_rt_current(), fd, 0);
}

int64_t blz_file_into_fd(blz_file *file)
{
    int64_t fd = blz__fd_take(file_mutable_ref(file));

    if (fd >= 0)
        *file = (blz_file){NULL, 0};
    return fd;
}
