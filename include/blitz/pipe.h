/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes: between parts of a program, to and from other processes, and FIFOs in the file system.
 *
 *     blz_pipe in, out;
 *     int rc = blz_pipe_new(&in, &out, NULL);
 *     ...
 *     BLZ_AWAIT(self->n, blz_pipe_write_all(&self->io, &self->out, "hello", 5));
 *     if (self->n < 0)
 *         goto out;                                   // cancelled, or the reader is gone
 *
 * One type for both ends: reading the writing end, or the reverse, gives -EBADF. Handles,
 * operations and cancellation are as in blitz/tcp.h. Reading gives 0 when the last writer has
 * closed; writing gives -EPIPE when the last reader has, and never a SIGPIPE.
 *
 * Errors that every function may give: -EBADF: the handle is empty, or its pipe is closed; and
 * errors of the system. Functions that await also give -ECANCELED, -EBUSY: another operation in
 * this direction is in flight, and -ENXIO outside of a task (blz_wait) if they would have to wait.
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

/* One end of a pipe: a handle, which may be copied. All zero: none. */
typedef struct blz_pipe {
    void *entry_;
    uint64_t generation_;
} blz_pipe;

/* ---- Making them [any thread]; `rt` NULL: the runtime of this thread ---- */

/*
 * Makes a pipe: what is written to `out` is read from `in`. Both are close-on-exec. 0; -ENXIO: no
 * runtime; -EMFILE, -ENOMEM.
 */
BLZ_API BLZ_NODISCARD int blz_pipe_new(blz_pipe *in, blz_pipe *out, blz_rt *rt);

/* How to open a FIFO. */
enum { BLZ_PIPE_READ = 1, BLZ_PIPE_WRITE = 2, BLZ_PIPE_BOTH = 3 };

/*
 * Opens a FIFO: 0 and *pipe. For reading it does not wait for a writer, and reads 0 while there is
 * none. For writing: -ENXIO if no process reads it; try again later. For both: neither end ever
 * comes, so a server can wait for its next client. -EINVAL: not a FIFO. Windows has no FIFOs:
 * -ENOTSUP, but for named pipes (\\.\pipe\NAME).
 */
BLZ_API BLZ_NODISCARD int blz_pipe_open(blz_pipe *pipe, const char *path, int how, blz_rt *rt);

/*
 * Takes over a descriptor, of a pipe or of something like it, for the runtime `rt` (NULL: this
 * thread's), which closes it from now on: 0. -EINVAL: a regular file or a directory, for which
 * there is nothing to wait. On failure it is still the caller's.
 */
BLZ_API BLZ_NODISCARD int blz_pipe_from_fd(blz_pipe *pipe, blz_sysfd fd, blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *pipe is none afterwards. -EBUSY: an operation is
 * in flight.
 */
BLZ_API BLZ_NODISCARD int64_t blz_pipe_into_fd(blz_pipe *pipe);

/* Closes this end; *pipe is none afterwards. 0; -EBADF: it is closed. [any thread] */
BLZ_API int blz_pipe_close(blz_pipe *pipe);

/* ---- Reading and writing [task] ---- */

/*
 * Reads what is there, up to `len` bytes, waiting for the first: the number of bytes; 0: the last
 * writer has closed.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_read(blz_io *io, const blz_pipe *pipe, void *buf,
                                                size_t len);

/*
 * Reads all of `len` bytes: `len`. -ENODATA: the end came first; io->done says how many there were.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_read_exact(blz_io *io, const blz_pipe *pipe, void *buf,
                                                      size_t len);

/*
 * Reads what is there into several pieces of memory, waiting for the first byte: the number of
 * bytes; 0: the last writer has closed. The pieces and the array must stay until the future is
 * ready.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_readv(blz_io *io, const blz_pipe *pipe,
                                                 const blz_iovec *iov, size_t count);

/*
 * Waits without a buffer, and gets one with data in it: its length; 0: the last writer has closed,
 * and there is no buffer. Give it back by blz_buf_release.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_read_lease(blz_io *io, const blz_pipe *pipe,
                                                      blz_buf *buf);

/* Writes some of it, at least a byte: the number of bytes. -EPIPE: the last reader has closed. */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_write(blz_io *io, const blz_pipe *pipe, const void *buf,
                                                 size_t len);

/*
 * Writes all of it: `len`. After an error io->done says how far it came. -EPIPE: the last reader
 * has closed.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_write_all(blz_io *io, const blz_pipe *pipe,
                                                     const void *buf, size_t len);

/*
 * Writes some of several pieces of memory, at least a byte: the number of bytes. -EPIPE: the last
 * reader has closed.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_writev(blz_io *io, const blz_pipe *pipe,
                                                  const blz_iovec *iov, size_t count);

/*
 * Writes all of several pieces of memory, which stay valid, as does the array, until the future is
 * ready: the number of bytes. After an error op->done says how far it came. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_writev_all(blz_stream_op *op, const blz_pipe *pipe,
                                                      const blz_iovec *iov, size_t count);

/*
 * Awaits that it can be read (BLZ_READABLE) or written (BLZ_WRITABLE): gives those that are true.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pipe_ready(blz_io *io, const blz_pipe *pipe, int events);

/*
 * Gets or sets the number of bytes that fit into the pipe: gives that number. To set it: -EPERM:
 * more than the system allows; -EBUSY: more bytes are in it; the system rounds up. -ENOTSUP: on
 * macOS, the BSDs and Windows. [any thread]
 */
BLZ_API int64_t blz_pipe_capacity(const blz_pipe *pipe);
BLZ_API int64_t blz_pipe_set_capacity(const blz_pipe *pipe, size_t bytes);

/* The pipe as a stream (blitz/stream.h). [any thread] */
BLZ_API blz_stream blz_pipe_stream(const blz_pipe *pipe);

BLZ_END_DECLS
#endif
