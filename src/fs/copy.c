/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying a file: shares the blocks if the file system can (FICLONE), or lets the kernel copy
 * (copy_file_range), or reads and writes. The second is not to be had between some file systems,
 * and gives nothing for files that have no length, such as those of /proc.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KERNEL_PIECE = 64 << 20, BUFFER = 128 << 10 };

/* The number of bytes; -EOPNOTSUPP: nothing has been copied, and the kernel does not want to. */
static int64_t copy_in_kernel(const blz_fs_op *op, int from, int to)
{
    int64_t all = 0;

    for (;;) {
        ssize_t n;
        if (fs_is_cancelled(op))
            return -ECANCELED;
        n = copy_file_range(from, NULL, to, NULL, KERNEL_PIECE, 0);
        if (n == 0)
            return all > 0 ? all : -EOPNOTSUPP;
        if (n < 0 && errno != EINTR)
            return all > 0 || errno == EIO || errno == ENOSPC || errno == EDQUOT ? -errno
                                                                                 : -EOPNOTSUPP;
        all += n > 0 ? n : 0;
    }
}

static int64_t copy_with(const blz_fs_op *op, int from, int to, char *buf)
{
    int64_t all = 0, rc;

    for (;;) {
        ssize_t n = read(from, buf, BUFFER);
        if (n == 0)
            return all;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n < 0)
            continue;
        rc = blz__write_fully(op, to, buf, (size_t)n);
        if (rc < 0)
            return rc;
        all += n;
    }
}

static int64_t copy_by_hand(const blz_fs_op *op, int from, int to)
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

static int64_t copy_bytes(const blz_fs_op *op, int from, int to, int64_t size)
{
    int64_t n;

    if (size > 0 && ioctl(to, FICLONE, from) == 0)
        return size;
    n = copy_in_kernel(op, from, to);
    return n == -EOPNOTSUPP ? copy_by_hand(op, from, to) : n;
}

/* Empties the file that is copied to, once it is known to be another one. */
static int64_t copy_between(const blz_fs_op *op, int from, int to, const struct stat *source)
{
    struct stat target;
    mode_t mode;
    int64_t n;

    if (fstat(to, &target) < 0)
        return -errno;
    if (source->st_dev == target.st_dev && source->st_ino == target.st_ino)
        return -EINVAL;
    if (!S_ISREG(target.st_mode))
        return copy_bytes(op, from, to, source->st_size);
    if (ftruncate(to, 0) < 0 || fchmod(to, source->st_mode & 0777) < 0)
        return -errno;
    n = copy_bytes(op, from, to, source->st_size);
    mode = blz__mode_for(source, &target);
    /* last: writing takes the upper bits away, and a part of a program must not have them */
    if (n >= 0 && mode > 0777 && fchmod(to, mode) < 0)
        return -errno;
    return n;
}

static int64_t copy_from(const blz_fs_op *op, int from)
{
    struct stat source;
    int64_t rc;
    int to;

    if (fstat(from, &source) < 0)
        return -errno;
    if (!S_ISREG(source.st_mode))
        return -EINVAL;
    /* until it has the permissions of the other one, nobody else may open it */
    to =
        blz__open_path(op->other, &(blz_open_options){.write = true, .create = true, .mode = 0600});
    if (to < 0)
        return to;
    rc = copy_between(op, from, to, &source);
    if (close(to) < 0 && rc >= 0 && errno != EINTR)
        rc = -errno;
    return rc;
}

static int64_t copy_run(blz_fs_op *op)
{
    int from = blz__open_path(op->path, &(blz_open_options){.read = true});
    int64_t rc;

    if (from < 0)
        return from;
    rc = copy_from(op, from);
    close(from);
    return rc;
}

blz_future *blz_fs_copy(blz_fs_op *op, const char *from, const char *to)
{
    static const struct fs_ops ops = {FS_OP("fs_copy"), copy_run, NULL, NULL};

    blz__fs_init(op, &ops, from);
    op->other = to;
    return &op->future;
}
