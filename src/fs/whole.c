/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole files: plain calls in a row, on one thread, so that a file takes one trip to the pool. Each
 * piece is at most PIECE bytes; between two of them a cancellation is looked for. Files are opened
 * as blz_file_open does it, so that a FIFO or a socket is refused and makes no thread wait.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 4 << 20, SMALLEST = 4096 };

int blz__open_at(int dir, const char *path, int flags, unsigned mode)
{
    int fd;

    do
        fd = openat(dir, path, flags | O_CLOEXEC | O_NOCTTY, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int blz__open_path(const char *path, const blz_open_options *options)
{
    return blz__open_run(AT_FDCWD, path, blz__open_how(options), false);
}

static int64_t read_once(int fd, char *buf, size_t len)
{
    ssize_t n;

    do
        n = read(fd, buf, len < PIECE ? len : PIECE);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

int64_t blz__write_fully(const blz_fs_op *op, int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n;
        if (fs_is_cancelled(op))
            return -ECANCELED;
        n = write(fd, data, len < PIECE ? len : PIECE);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* ---- reading ---- */

/* One more byte than it seems to have, so that the end is seen without growing. */
static size_t first_capacity(int fd, size_t limit)
{
    struct stat st;
    size_t size = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size + 1 : SMALLEST;

    return size <= limit ? size : limit + 1;
}

/* One byte over the limit is room enough to see that it is too long. */
static int grow(blz_bytes *bytes, const blz_allocator *allocator, size_t limit)
{
    size_t capacity = bytes->capacity_ < limit / 2 ? 2 * bytes->capacity_ : limit + 1;

    return blz__bytes_reserve(bytes, allocator, capacity);
}

static int64_t read_all(const blz_fs_op *op, int fd, blz_bytes *out, size_t limit)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    int64_t n = blz__bytes_reserve(out, allocator, first_capacity(fd, limit));

    while (n >= 0) {
        if (out->len > limit)
            return -EFBIG;
        if (fs_is_cancelled(op))
            return -ECANCELED;
        if (out->len == out->capacity_) {
            n = grow(out, allocator, limit);
            continue;
        }
        n = read_once(fd, out->data + out->len, out->capacity_ - out->len);
        if (n == 0)
            break;
        out->len += n > 0 ? (size_t)n : 0;
    }
    return n;
}

static int64_t read_run(blz_fs_op *op)
{
    int fd = blz__open_path(op->path, &(blz_open_options){.read = true});
    blz_bytes *out = op->out;
    int64_t rc;

    if (fd < 0)
        return fd;
    rc = read_all(op, fd, out, op->len);
    close(fd);
    if (rc < 0) {
        blz_bytes_free(out);
        return rc;
    }
    out->data[out->len] = '\0';
    return (int64_t)out->len;
}

blz_future *blz_fs_read(blz_fs_op *op, const char *path, blz_bytes *out, size_t limit)
{
    static const struct fs_ops ops = {FS_OP("fs_read"), read_run, NULL, blz__bytes_undo};

    blz__fs_init(op, &ops, path);
    *out = (blz_bytes){.data = NULL};
    op->out = out;
    op->len = limit < INT64_MAX ? limit : INT64_MAX - 1;
    return &op->future;
}

/* ---- writing ---- */

static int64_t write_run(blz_fs_op *op)
{
    bool append = op->number[0];
    int fd = blz__open_path(op->path, &(blz_open_options){.write = true,
                                                          .create = true,
                                                          .append = append,
                                                          .truncate = !append});
    int64_t rc;

    if (fd < 0)
        return fd;
    rc = blz__write_fully(op, fd, op->data, op->len);
    if (close(fd) < 0 && rc == 0 && errno != EINTR)
        rc = -errno; /* a file system over a network may tell here what went wrong */
    return rc;
}

static blz_future *write_init(blz_fs_op *op, const struct fs_ops *ops, const char *path,
                              const void *data, size_t len)
{
    blz__fs_init(op, ops, path);
    op->data = data;
    op->len = len;
    return length_is_valid(len) ? &op->future : blz_ready(&op->future, -EINVAL);
}

blz_future *blz_fs_write(blz_fs_op *op, const char *path, const void *data, size_t len)
{
    static const struct fs_ops ops = {FS_OP("fs_write"), write_run, NULL, NULL};

    return write_init(op, &ops, path, data, len);
}

blz_future *blz_fs_append(blz_fs_op *op, const char *path, const void *data, size_t len)
{
    static const struct fs_ops ops = {FS_OP("fs_append"), write_run, NULL, NULL};

    write_init(op, &ops, path, data, len);
    op->number[0] = true;
    return &op->future;
}
