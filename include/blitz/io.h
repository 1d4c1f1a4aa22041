/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every I/O operation has in common: the operation itself, leased buffers, scattered memory.
 *
 * An operation lives in the frame of the function that awaits it, and may be used again and again,
 * one at a time:
 *
 *     struct copy { BLZ_FRAME; blz_tcp conn; blz_io io; char buf[4096]; int64_t n; };
 *     ...
 *     BLZ_AWAIT(self->n, blz_tcp_read(&self->io, &self->conn, self->buf, sizeof self->buf));
 *     if (self->n > 0)
 *         BLZ_AWAIT(self->n, blz_tcp_write_all(&self->io, &self->conn, self->buf,
 *                                              (size_t)self->n));
 *
 * Its memory, and the buffer, belong to the kernel from the first poll until it is ready: there is
 * no way to get it back earlier. A cancelled operation becomes ready as soon as the kernel has let
 * go, with -ECANCELED, or with its real result if that came first. `done` is the number of bytes
 * that were moved, whatever the result says: a write_all that was cancelled half way reports
 * -ECANCELED, and `done` says how far it came.
 *
 * A length above INT64_MAX gives -EINVAL, and nothing is read or written: it is a negative result
 * that was used without a look at it. So do pieces that are longer than that together. This goes
 * for everything that reads and writes: sockets, pipes, files, streams, readers and writers.
 *
 * One rule holds for every operation struct of the library (blz_io, blz_msg, blz_timeout, blz_dns,
 * and all whose name ends in _op): all of its memory must be zero before its first use, as the
 * frame of a spawned task is. Between two operations it need not be cleared. Memory that held
 * something else, as another member of a union, is zeroed before it becomes an operation. Starting
 * an operation that is still in flight aborts with a sentence.
 */
#ifndef BLITZ_IO_H
#define BLITZ_IO_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* Larger than anything of today's needs, so that it can stay this size. */
typedef struct blz_io {
    blz_future future;
    uint64_t done; /* bytes moved, valid after every completion */
    uint64_t private_[14 + BLZ_IO_SYSTEM_BYTES / 8];
} blz_io;

/* A piece of memory among several, laid out like the system's struct iovec. */
typedef struct blz_iovec {
    void *base;
    size_t len;
} blz_iovec;

/*
 * A buffer on loan: it is handed out only once there is data in it, so that a connection that waits
 * holds none. Give it back soon, with blz_buf_release, from any thread: the pool is small. It may
 * outlive its runtime. All zero: no buffer.
 */
typedef struct blz_buf {
    char *data;
    size_t len;
    void *private_;
} blz_buf;

/* Gives the buffer back; *buf is no buffer afterwards. No buffer is fine. [any thread] */
BLZ_API void blz_buf_release(blz_buf *buf);

BLZ_END_DECLS
#endif
