/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of files. They neither wait for readiness nor are they attempted by the worker: the
 * kernel carries them out, with its own threads if a file system cannot do it otherwise, and its
 * answer is the result. See src/fs/file_io.c, which makes them.
 */
#include "io/uring.h"

void blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io)
{
    uint64_t offset = io->offset;
    unsigned len = (unsigned)io_clamp(io->len);
    int fd = io->fd->fd;

    switch (io->op.kind) {
    case IO_FILE_READ:
        io_uring_prep_read(sqe, fd, io->buf, len, offset);
        break;
    case IO_FILE_WRITE:
        io_uring_prep_write(sqe, fd, io->buf, len, offset);
        break;
    case IO_FILE_READV:
        io_uring_prep_readv(sqe, fd, io->buf, len, offset);
        break;
    case IO_FILE_WRITEV:
        io_uring_prep_writev(sqe, fd, io->buf, len, offset);
        break;
    default:
        io_uring_prep_fsync(sqe, fd, io->len ? IORING_FSYNC_DATASYNC : 0);
        break;
    }
}
