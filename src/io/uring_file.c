/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of files. They neither wait for readiness nor are they attempted by the worker: the
 * kernel carries them out, with its own threads if a file system cannot do it otherwise, and its
 * answer is the result. See src/fs/file_io.c, which makes them.
 */
#include "io/uring.h"

static void prep_pieces(struct io_uring_sqe *sqe, const struct io *io)
{
    const struct iovec *iov = io_iovec(io->file_pieces.iov);
    unsigned count = (unsigned)io_clamp(io->file_pieces.count);

    if (io->op.kind == IO_FILE_READV)
        io_uring_prep_readv(sqe, io->fd->fd, iov, count, io->file_pieces.offset);
    else
        io_uring_prep_writev(sqe, io->fd->fd, iov, count, io->file_pieces.offset);
}

void blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io)
{
    int fd = io->fd->fd;

    switch (io->op.kind) {
    case IO_FILE_READ:
        io_uring_prep_read(sqe, fd, io->file.buf, (unsigned)io_clamp(io->file.len),
                           io->file.offset);
        break;
    case IO_FILE_WRITE:
        io_uring_prep_write(sqe, fd, io->file.buf, (unsigned)io_clamp(io->file.len),
                            io->file.offset);
        break;
    case IO_FILE_READV:
    case IO_FILE_WRITEV:
        prep_pieces(sqe, io);
        break;
    default:
        io_uring_prep_fsync(sqe, fd, io->sync.data_only ? IORING_FSYNC_DATASYNC : 0);
        break;
    }
}
