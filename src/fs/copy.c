/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying a file: shares the blocks if the file system can, or lets the system copy, or reads and
 * writes. The second is not to be had between some file systems, and gives nothing for files that
 * have no length, such as those of /proc.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"
#include "system/transfer.h"

#include <blitz/error.h>

enum { SYSTEM_PIECE = 64 << 20, BUFFER = 128 << 10 };

/* Of the first piece: an error that reading and writing would meet again. */
static bool is_final(int64_t error)
{
    return error == -EIO || error == -ENOSPC || error == -EDQUOT;
}

/* The number of bytes; -ENOTSUP: nothing has been copied, and the system does not want to. */
static int64_t copy_by_system(const blz_fs_op *op, blz_sysfd from, blz_sysfd to)
{
    int64_t all = 0;

    for (;;) {
        int64_t n;
        if (fs_is_cancelled(op))
            return -ECANCELED;
        n = blz__transfer_copy(from, to, SYSTEM_PIECE);
        if (n == 0)
            return all > 0 ? all : -ENOTSUP;
        if (n < 0)
            return all > 0 || is_final(n) ? n : -ENOTSUP;
        all += n;
    }
}

static int64_t copy_with(const blz_fs_op *op, blz_sysfd from, blz_sysfd to, char *buf)
{
    int64_t all = 0, rc;

    for (;;) {
        int64_t n = blz__read_some(from, buf, BUFFER);
        if (n <= 0)
            return n < 0 ? n : all;
        rc = blz__write_fully(op, to, buf, (size_t)n);
        if (rc < 0)
            return rc;
        all += n;
    }
}

static int64_t copy_by_hand(const blz_fs_op *op, blz_sysfd from, blz_sysfd to)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    char *buf = blz__alloc(allocator, BUFFER, 64);
    int64_t rc;

    if (!buf)
        return -ENOMEM;
    rc = copy_with(op, from, to, buf);
    blz__free(allocator, buf, BUFFER, 64);
    return rc;
}

static int64_t copy_bytes(const blz_fs_op *op, blz_sysfd from, blz_sysfd to, int64_t size)
{
    int64_t n;

    if (size > 0 && blz__transfer_clone(from, to) == 0)
        return size;
    n = copy_by_system(op, from, to);
    return n == -ENOTSUP ? copy_by_hand(op, from, to) : n;
}

/* Empties the file that is copied to, once it is known to be another one. */
static int64_t copy_between(const blz_fs_op *op, blz_sysfd from, blz_sysfd to,
                            const blz_metadata *source)
{
    blz_metadata target;
    unsigned mode;
    int64_t n = blz__file_metadata(to, &target);

    if (n < 0)
        return n;
    if (source->device == target.device && source->inode == target.inode)
        return -EINVAL;
    if (target.type != BLZ_FILE_REGULAR)
        return copy_bytes(op, from, to, source->size);
    n = blz__file_set_len(to, 0);
    if (n == 0)
        n = blz__file_set_mode(to, source->mode & 0777);
    if (n == 0)
        n = copy_bytes(op, from, to, source->size);
    mode = blz__mode_for(source, &target);
    /* last: writing takes the upper bits away, and a part of a program must not have them */
    if (n >= 0 && mode > 0777) {
        int rc = blz__file_set_mode(to, mode);
        return rc < 0 ? rc : n;
    }
    return n;
}

static int64_t copy_from(const blz_fs_op *op, blz_sysfd from)
{
    blz_open_options how = {.write = true, .create = true, .mode = 0600};
    blz_metadata source;
    int64_t rc = blz__file_metadata(from, &source), to;
    int closed;

    if (rc < 0)
        return rc;
    if (source.type != BLZ_FILE_REGULAR)
        return -EINVAL;
    /* until it has the permissions of the other one, nobody else may open it */
    to = blz__open_path(op->other, &how);
    if (to < 0)
        return to;
    rc = copy_between(op, from, (blz_sysfd)to, &source);
    closed = blz__file_close((blz_sysfd)to);
    return rc >= 0 && closed < 0 ? closed : rc;
}

static int64_t copy_run(blz_fs_op *op)
{
    int64_t from = blz__open_path(op->path, &(blz_open_options){.read = true}), rc;

    if (from < 0)
        return from;
    rc = copy_from(op, (blz_sysfd)from);
    (void)blz__file_close((blz_sysfd)from);
    return rc;
}

blz_future *blz_fs_copy(blz_fs_op *op, const char *from, const char *to)
{
    static const struct fs_ops ops = {FS_OP("fs_copy"), copy_run, NULL, NULL};

    blz__fs_init(op, &ops, from);
    op->other = to;
    return &op->future;
}
