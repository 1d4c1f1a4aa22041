/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole files: calls that may wait in a row, on one thread, so that a file takes one trip to the
 * pool. Each piece is at most PIECE bytes; between two of them a cancellation is looked for. Files
 * are opened as blz_file_open does it, so that a FIFO or a socket is refused and makes no thread
 * wait.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <blitz/error.h>

enum { PIECE = 4 << 20, SMALLEST = 4096 };

int64_t blz__open_path(const char *path, const blz_open_options *options)
{
    return blz__open_run(FILE_CURRENT_DIR, path, blz__open_how(options));
}

int64_t blz__open_dir(const char *path)
{
    return blz__file_open(FILE_CURRENT_DIR, path, OPEN_READ | OPEN_DIRECTORY, 0);
}

int64_t blz__read_some(blz_sysfd fd, char *buf, size_t len)
{
    blz_iovec piece = {buf, len < PIECE ? len : PIECE};

    return blz__file_read(fd, &piece, 1, FILE_AT_POSITION);
}

int64_t blz__write_fully(const blz_fs_op *op, blz_sysfd fd, const char *data, size_t len)
{
    while (len > 0) {
        blz_iovec piece = {(void *)(uintptr_t)data, len < PIECE ? len : PIECE};
        int64_t n =
            fs_is_cancelled(op) ? -ECANCELED : blz__file_write(fd, &piece, 1, FILE_AT_POSITION);
        if (n < 0)
            return n;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* ---- reading ---- */

/* One more byte than it seems to have, so that the end is seen without growing. */
static size_t first_capacity(blz_sysfd fd, size_t limit)
{
    blz_metadata about;
    bool has_size = blz__file_metadata(fd, &about) == 0 && about.size > 0;
    size_t size = has_size ? (size_t)about.size + 1 : SMALLEST;

    return size <= limit ? size : limit + 1;
}

/* One byte over the limit is room enough to see that it is too long. */
static int grow(blz_bytes *bytes, const blz_allocator *allocator, size_t limit)
{
    size_t capacity = bytes->capacity_ < limit / 2 ? 2 * bytes->capacity_ : limit + 1;

    return blz__bytes_reserve(bytes, allocator, capacity);
}

static int64_t read_all(const blz_fs_op *op, blz_sysfd fd, blz_bytes *out, size_t limit)
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
        n = blz__read_some(fd, out->data + out->len, out->capacity_ - out->len);
        if (n == 0)
            break;
        out->len += n > 0 ? (size_t)n : 0;
    }
    return n;
}

static int64_t read_run(blz_fs_op *op)
{
    int64_t fd = blz__open_path(op->path, &(blz_open_options){.read = true}), rc;
    blz_bytes *out = op->out;

    if (fd < 0)
        return fd;
    rc = read_all(op, (blz_sysfd)fd, out, op->len);
    (void)blz__file_close((blz_sysfd)fd);
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
    blz_open_options how = {.write = true, .create = true, .append = append, .truncate = !append};
    int64_t fd = blz__open_path(op->path, &how), rc;
    int closed;

    if (fd < 0)
        return fd;
    rc = blz__write_fully(op, (blz_sysfd)fd, op->data, op->len);
    closed = blz__file_close((blz_sysfd)fd);
    return rc == 0 ? closed : rc; /* a file system over a network may tell there what went wrong */
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
