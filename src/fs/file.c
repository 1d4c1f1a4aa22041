/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of blitz/file.h: each says what it is, and file_io.c does it. */
#include <blitz/file.h>

#include "fs/file.h"
#include "stream/stream.h"

/* Negative ones are refused by the system, but for the one that means the position. */
static uint64_t checked(int64_t offset)
{
    return offset < 0 ? (uint64_t)INT64_MIN : (uint64_t)offset;
}

static void *bytes(const void *buf)
{
    return (void *)(uintptr_t)buf;
}

static blz_future *file_bytes(blz_io *public, const blz_future_ops *ops, enum io_kind kind,
                              const blz_file *file, void *buf, size_t len, uint64_t offset)
{
    struct io *io = blz__file_prepare(public, ops, kind, file);

    io->file.buf = buf;
    io->file.len = len;
    io->file.offset = offset;
    return &io->op.future;
}

static blz_future *file_pieces(blz_io *public, const blz_future_ops *ops, enum io_kind kind,
                               const blz_file *file, const blz_iovec *iov, size_t count,
                               uint64_t offset)
{
    struct io *io = blz__file_prepare(public, ops, kind, file);

    io->file_pieces.iov = iov;
    io->file_pieces.count = count;
    io->file_pieces.offset = offset;
    return &io->op.future;
}

static blz_future *all_of_it(blz_future *io)
{
    ((struct io *)io)->flags |= IO_ALL;
    return io;
}

/* ---- reading ---- */

blz_future *blz_file_read(blz_io *io, const blz_file *file, void *buf, size_t len)
{
    static const blz_future_ops ops = FILE_OP("file_read");
    return file_bytes(io, &ops, IO_FILE_READ, file, buf, len, FILE_POSITION);
}

blz_future *blz_file_read_exact(blz_io *io, const blz_file *file, void *buf, size_t len)
{
    static const blz_future_ops ops = FILE_OP("file_read_exact");
    return all_of_it(file_bytes(io, &ops, IO_FILE_READ, file, buf, len, FILE_POSITION));
}

blz_future *blz_file_readv(blz_io *io, const blz_file *file, const blz_iovec *iov, size_t count)
{
    static const blz_future_ops ops = FILE_OP("file_readv");
    return file_pieces(io, &ops, IO_FILE_READV, file, iov, count, FILE_POSITION);
}

blz_future *blz_file_read_at(blz_io *io, const blz_file *file, void *buf, size_t len,
                             int64_t offset)
{
    static const blz_future_ops ops = FILE_OP("file_read_at");
    return file_bytes(io, &ops, IO_FILE_READ, file, buf, len, checked(offset));
}

blz_future *blz_file_read_exact_at(blz_io *io, const blz_file *file, void *buf, size_t len,
                                   int64_t offset)
{
    static const blz_future_ops ops = FILE_OP("file_read_exact_at");
    return all_of_it(file_bytes(io, &ops, IO_FILE_READ, file, buf, len, checked(offset)));
}

blz_future *blz_file_readv_at(blz_io *io, const blz_file *file, const blz_iovec *iov, size_t count,
                              int64_t offset)
{
    static const blz_future_ops ops = FILE_OP("file_readv_at");
    return file_pieces(io, &ops, IO_FILE_READV, file, iov, count, checked(offset));
}

/* ---- writing ---- */

blz_future *blz_file_write(blz_io *io, const blz_file *file, const void *buf, size_t len)
{
    static const blz_future_ops ops = FILE_OP("file_write");
    return file_bytes(io, &ops, IO_FILE_WRITE, file, bytes(buf), len, FILE_POSITION);
}

blz_future *blz_file_write_all(blz_io *io, const blz_file *file, const void *buf, size_t len)
{
    static const blz_future_ops ops = FILE_OP("file_write_all");
    return all_of_it(file_bytes(io, &ops, IO_FILE_WRITE, file, bytes(buf), len, FILE_POSITION));
}

blz_future *blz_file_writev(blz_io *io, const blz_file *file, const blz_iovec *iov, size_t count)
{
    static const blz_future_ops ops = FILE_OP("file_writev");
    return file_pieces(io, &ops, IO_FILE_WRITEV, file, iov, count, FILE_POSITION);
}

blz_future *blz_file_write_at(blz_io *io, const blz_file *file, const void *buf, size_t len,
                              int64_t offset)
{
    static const blz_future_ops ops = FILE_OP("file_write_at");
    return file_bytes(io, &ops, IO_FILE_WRITE, file, bytes(buf), len, checked(offset));
}

blz_future *blz_file_write_all_at(blz_io *io, const blz_file *file, const void *buf, size_t len,
                                  int64_t offset)
{
    static const blz_future_ops ops = FILE_OP("file_write_all_at");
    return all_of_it(file_bytes(io, &ops, IO_FILE_WRITE, file, bytes(buf), len, checked(offset)));
}

blz_future *blz_file_writev_at(blz_io *io, const blz_file *file, const blz_iovec *iov, size_t count,
                               int64_t offset)
{
    static const blz_future_ops ops = FILE_OP("file_writev_at");
    return file_pieces(io, &ops, IO_FILE_WRITEV, file, iov, count, checked(offset));
}

/* ---- as a stream ---- */

static int64_t end_writing(const blz_stream *stream)
{
    (void)stream;
    return 0; /* what has been written is there */
}

STREAM_OF_HANDLE(file, blz_file, STREAM_FILE, end_writing);

/* ---- the position ---- */

int64_t blz_file_seek(const blz_file *file, int64_t offset, int whence)
{
    int fd = blz__fd_acquire(file_ref(file));
    int64_t at;

    if (fd < 0)
        return fd;
    at = blz__file_seek(fd, offset, whence);
    blz__fd_release(file_ref(file));
    return at;
}

/* ---- size and safety ---- */

blz_future *blz_file_set_len(blz_io *io, const blz_file *file, int64_t len)
{
    static const blz_future_ops ops = FILE_OP("file_set_len");

    blz__file_prepare(io, &ops, IO_FILE_SET_LEN, file)->set_len.len = len;
    return &io->future;
}

blz_future *blz_file_allocate(blz_io *io, const blz_file *file, int64_t offset, int64_t len,
                              bool keep_len)
{
    static const blz_future_ops ops = FILE_OP("file_allocate");
    struct io *op = blz__file_prepare(io, &ops, IO_FILE_ALLOCATE, file);

    op->allocate.offset = offset;
    op->allocate.len = len;
    op->allocate.keep_len = keep_len;
    return &io->future;
}

blz_future *blz_file_sync(blz_io *io, const blz_file *file)
{
    static const blz_future_ops ops = FILE_OP("file_sync");

    blz__file_prepare(io, &ops, IO_FILE_SYNC, file)->sync.data_only = false;
    return &io->future;
}

blz_future *blz_file_sync_data(blz_io *io, const blz_file *file)
{
    static const blz_future_ops ops = FILE_OP("file_sync_data");

    blz__file_prepare(io, &ops, IO_FILE_SYNC, file)->sync.data_only = true;
    return &io->future;
}

/* ---- what is known of it ---- */

blz_future *blz_file_metadata(blz_io *io, const blz_file *file, blz_metadata *out)
{
    static const blz_future_ops ops = FILE_OP("file_metadata");

    blz__file_prepare(io, &ops, IO_FILE_METADATA, file)->metadata.out = out;
    return &io->future;
}

blz_future *blz_file_set_mode(blz_io *io, const blz_file *file, unsigned mode)
{
    static const blz_future_ops ops = FILE_OP("file_set_mode");

    blz__file_prepare(io, &ops, IO_FILE_SET_MODE, file)->set_mode.mode = mode;
    return &io->future;
}

blz_future *blz_file_set_times(blz_io *io, const blz_file *file, int64_t accessed_ns,
                               int64_t modified_ns)
{
    static const blz_future_ops ops = FILE_OP("file_set_times");
    struct io *op = blz__file_prepare(io, &ops, IO_FILE_SET_TIMES, file);

    op->set_times.accessed_ns = accessed_ns;
    op->set_times.modified_ns = modified_ns;
    return &io->future;
}
