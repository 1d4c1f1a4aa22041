/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations on files ask of the system: in forms that may wait, for threads of the pool, and
 * in forms that do not, for workers.
 *
 * Whether a file can be read or written without waiting is a property of its file system. What was
 * found out is kept in `ready` of the descriptor's entry, which is a hint here as it is with
 * sockets:
 *
 *   FD_READY               the form that does not wait has worked, or has not been tried
 *   FD_READY | FD_ENDED    all of the file system is memory: no form waits
 *   0                      neither: reads or writes are left to others
 */
#include "fs/file.h"

#include <blitz/error.h>

static int direction_of(const struct io *io)
{
    return io->op.kind == IO_FILE_WRITE || io->op.kind == IO_FILE_WRITEV ? FD_OUT : FD_IN;
}

/* The memory of a read or write: `one` is for those that have one piece. */
static const blz_iovec *pieces_of(const struct io *io, blz_iovec *one, size_t *count)
{
    if (io->op.kind == IO_FILE_READV || io->op.kind == IO_FILE_WRITEV) {
        *count = io->file_pieces.count;
        return io->file_pieces.iov;
    }
    *one = (blz_iovec){io->file.buf, io_clamp(io->file.len)};
    *count = 1;
    return one;
}

static int64_t offset_of(const struct io *io)
{
    if (io->op.kind == IO_FILE_READV || io->op.kind == IO_FILE_WRITEV)
        return (int64_t)io->file_pieces.offset;
    return (int64_t)io->file.offset;
}

/* ---- with patience ---- */

static int64_t transfer(const struct io *io, blz_sysfd fd)
{
    blz_iovec one;
    size_t count;
    const blz_iovec *iov = pieces_of(io, &one, &count);
    int64_t offset = offset_of(io);

    return direction_of(io) == FD_OUT ? blz__file_write(fd, iov, count, offset)
                                      : blz__file_read(fd, iov, count, offset);
}

int64_t blz__file_call(const struct io *io, blz_sysfd fd)
{
    if (io->op.kind < IO_FILE_SYNC)
        return transfer(io, fd);
    switch (io->op.kind) {
    case IO_FILE_SYNC:
        return blz__file_sync(fd, io->sync.data_only);
    case IO_FILE_OPEN:
        return blz__open_run(fd, io->open.path, io->open.how);
    case IO_FILE_METADATA:
        return blz__file_metadata(fd, io->metadata.out);
    case IO_FILE_SET_LEN:
        return blz__file_set_len(fd, io->set_len.len);
    case IO_FILE_ALLOCATE:
        return blz__file_allocate(fd, io->allocate.offset, io->allocate.len, io->allocate.keep_len);
    case IO_FILE_SET_MODE:
        return blz__file_set_mode(fd, io->set_mode.mode);
    case IO_FILE_SET_TIMES:
        return blz__file_set_times(fd, io->set_times.accessed_ns, io->set_times.modified_ns);
    default:
        return blz__file_lock(fd, io->lock.how);
    }
}

/* ---- without waiting ---- */

static int64_t transfer_now(const struct io *io, blz_sysfd fd)
{
    blz_iovec one;
    size_t count;
    const blz_iovec *iov = pieces_of(io, &one, &count);
    int64_t offset = offset_of(io);

    return direction_of(io) == FD_OUT ? blz__file_write_now(fd, iov, count, offset)
                                      : blz__file_read_now(fd, iov, count, offset);
}

static int64_t try_transfer(const struct io *io, blz_sysfd fd)
{
    uint32_t *hint = &io->fd->ready[direction_of(io)], seen = blz__load(hint, RELAXED);
    int64_t n;

    if (!(seen & FD_READY))
        return -EAGAIN;
    if (seen & FD_ENDED)
        return transfer(io, fd);
    n = transfer_now(io, fd);
    if (blz_likely(n != -ENOTSUP))
        return n;
    seen = blz__file_is_memory(fd) ? FD_READY | FD_ENDED : 0;
    blz__store(hint, seen, RELAXED);
    return seen ? transfer(io, fd) : -EAGAIN;
}

int64_t blz__file_try(const struct io *io, blz_sysfd fd)
{
    if (io->op.kind < IO_FILE_SYNC)
        return try_transfer(io, fd);
    if (io->op.kind == IO_FILE_OPEN)
        return blz__open_try(fd, io->open.path, io->open.how);
    if (io->op.kind == IO_FILE_METADATA)
        return blz__file_metadata_now(fd, io->metadata.out);
    return -EAGAIN;
}
