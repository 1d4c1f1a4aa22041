/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes: between parts of a program, to and from other processes, and FIFOs in the file system.
 *
 *     blz_pipe in, out;
 *     int rc = blz_pipe_new(&in, &out, NULL);
 *     ...
 *     BLZ_AWAIT(self->n, blz_pipe_write_all(&self->io, &self->out, "hello", 5));
 *
 * One type for both ends: reading the writing end, or the reverse, gives -EBADF. Handles,
 * operations, errors and cancellation are as in blitz/tcp.h. Reading gives 0 when the last writer
 * has closed; writing gives -EPIPE when the last reader has, and never a SIGPIPE.
 *
 * Also for other things that are read or written like pipes, such as terminals. Whether calls on
 * them wait (O_NONBLOCK) is a property that all processes share which have the descriptor; Blitz
 * leaves it as it is for descriptors from elsewhere, and asks the system not to wait call by call.
 * Where the system cannot do that, as with a terminal, it is changed for the moment of a write.
 */
#ifndef BLITZ_PIPE_H
#define BLITZ_PIPE_H

#include <blitz/socket.h>
#include <blitz/stream.h>

BLZ_BEGIN_DECLS

/* One end. All zero: none. */
typedef struct blz_pipe {
    void *entry_;
    uint64_t generation_;
} blz_pipe;

/* ---- Making them [any thread]; `rt` NULL: the runtime of this thread ---- */

/* A pipe: what is written to `out` is read from `in`. Both are close-on-exec. */
BLZ_API BLZ_NODISCARD int blz_pipe_new(blz_pipe *in, blz_pipe *out, blz_rt *rt);

/* How to open a FIFO. */
enum { BLZ_PIPE_READ = 1, BLZ_PIPE_WRITE = 2, BLZ_PIPE_BOTH = 3 };

/*
 * Opens a FIFO. For reading it does not wait for a writer, and reads 0 while there is none. For
 * writing: -ENXIO if nobody reads; try again later. For both: neither end ever comes, so a server
 * can wait for its next client. -EINVAL: not a FIFO. Windows has no FIFOs: -ENOTSUP, but for named
 * pipes (\\.\pipe\NAME).
 */
BLZ_API BLZ_NODISCARD int blz_pipe_open(blz_pipe *pipe, const char *path, int how, blz_rt *rt);

/*
 * Takes over a descriptor, of a pipe or of something like it, which is closed by the runtime from
 * now on; gives one back (-EBUSY: an operation is in flight). -EINVAL: a regular file or a
 * directory, with which there is nothing to wait for. On failure it is still the caller's.
 */
BLZ_API BLZ_NODISCARD int blz_pipe_from_fd(blz_pipe *pipe, blz_rt *rt, blz_sysfd fd);
BLZ_API BLZ_NODISCARD int64_t blz_pipe_into_fd(blz_pipe *pipe);

/* Closes this end; *pipe is none afterwards. -EBADF: is closed. [any thread] */
BLZ_API int blz_pipe_close(blz_pipe *pipe);

/* ---- Reading and writing: see blitz/tcp.h [task] ---- */

/* As blz_tcp_read and its kin. */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_read(blz_io *io, const blz_pipe *pipe, void *buf,
                                                size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_read_exact(blz_io *io, const blz_pipe *pipe, void *buf,
                                                      size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_readv(blz_io *io, const blz_pipe *pipe,
                                                 const blz_iovec *iov, size_t count);
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_read_lease(blz_io *io, const blz_pipe *pipe,
                                                      blz_buf *buf);
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_write(blz_io *io, const blz_pipe *pipe, const void *buf,
                                                 size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_write_all(blz_io *io, const blz_pipe *pipe,
                                                     const void *buf, size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_writev(blz_io *io, const blz_pipe *pipe,
                                                  const blz_iovec *iov, size_t count);

/* Waits until it can be read (BLZ_READABLE) or written (BLZ_WRITABLE): those that are true. */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_ready(blz_io *io, const blz_pipe *pipe, int events);

/*
 * The bytes that fit into it. Setting it: -EPERM, -EBUSY; the system rounds up. -ENOTSUP: on macOS,
 * the BSDs and Windows. [any thread]
 */
BLZ_API int64_t blz_pipe_capacity(const blz_pipe *pipe);
BLZ_API int64_t blz_pipe_set_capacity(const blz_pipe *pipe, size_t bytes);

/* It as a stream: see blitz/stream.h. [any thread] */
BLZ_API blz_stream blz_pipe_stream(const blz_pipe *pipe);

BLZ_END_DECLS
#endif
