/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: one interface to everything that bytes are read from and written to, so that code need
 * not care what it talks to: TCP and Unix connections, pipes, the pipes of children, files,
 * standard input and output (blitz/stdio.h), pipes in memory, and what you make yourself.
 *
 *     struct greet { BLZ_FRAME; blz_stream to; blz_stream_op op; int64_t rc; };
 *
 *     BLZ_ASYNC(greet)                    // does not know, and does not care
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_stream_write_all(&self->op, &self->to, "hello\n", 6));
 *         blz_stream_close(&self->to);
 *         BLZ_END(self->rc);
 *     }
 *     ...
 *     rc = BLZ_SPAWN(greet, .to = blz_tcp_stream(&conn));
 *
 * A blz_stream is a small handle that may be copied, like those that it is made of: blz_tcp_stream
 * and its kin copy the handle, which may go. It says nothing about which of them closes it.
 *
 * One read and one write may be in flight at a time. What cancellation does is what the kind below
 * says: all but files are interruptible, and nothing is lost by it.
 *
 * Errors that every function may give: -EBADF: the stream is none or closed, or cannot be used in
 * that direction; -EBUSY: another operation in that direction is in flight; -ECANCELED; and the
 * errors of the kind of stream.
 *
 * Buffers, lines and so on are in blitz/bufio.h, copying from one stream to another in
 * blitz/copy.h.
 */
#ifndef BLITZ_STREAM_H
#define BLITZ_STREAM_H

#include <blitz/io.h>

BLZ_BEGIN_DECLS

typedef struct blz_stream_ops blz_stream_ops;

/* All zero: none. Reading and writing it gives -EBADF. */
typedef struct blz_stream {
    const blz_stream_ops *ops;
    void *object;  /* of the kind of stream */
    uint64_t word; /* of the kind of stream */
} blz_stream;

/* ---- Using them [task] ---- */

/*
 * Reads what is there, up to `len` bytes, waiting for the first: the number of bytes; 0 is the end.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_read(blz_io *io, const blz_stream *stream, void *buf,
                                                  size_t len);

/*
 * Writes some of it, at least a byte: the number of bytes. -EPIPE: the other side does not read any
 * more.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_write(blz_io *io, const blz_stream *stream,
                                                   const void *buf, size_t len);

/*
 * Writes some of several pieces of memory, at least a byte: the number of bytes. -EPIPE: the other
 * side does not read any more. The pieces and the array must stay until the future is ready.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_writev(blz_io *io, const blz_stream *stream,
                                                    const blz_iovec *iov, size_t count);

/* Awaits that nothing is kept back any more by what is in between, such as a buffer: 0. */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_flush(blz_io *io, const blz_stream *stream);

/*
 * Ends what is written, after a flush: the other side reads the end. Reading goes on. 0, also if
 * there is nothing to end, as with a file. The end of a pipe is closed.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_shutdown(blz_io *io, const blz_stream *stream);

/*
 * Closes the stream; *stream is none afterwards. Immediate: what a buffer has kept back is lost, so
 * flush it before. 0; -EBADF: it is closed. [any thread]
 */
BLZ_API int blz_stream_close(blz_stream *stream);

/*
 * The descriptor of the stream, for questions to the system; -ENOTSUP: it has none; -EBADF. [any
 * thread]
 */
BLZ_API int blz_stream_fd(const blz_stream *stream);

/*
 * The future of the operations that take several steps. `done` is the number of bytes moved,
 * whatever the result. `io` may be used for the operations above, in between.
 */
typedef struct blz_stream_op {
    blz_future future;
    uint64_t done;
    blz_stream stream;
    blz_iovec rest;
    const blz_iovec *iov;
    size_t count;
    blz_io io;
    uint64_t reserved[2];
} blz_stream_op;

/*
 * Reads all of `len` bytes: `len`. -ENODATA: the end came first; op->done says how many there were.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_read_exact(blz_stream_op *op, const blz_stream *stream,
                                                        void *buf, size_t len);

/*
 * Writes all of it, from one or several pieces of memory: the number of bytes. After an error
 * op->done says how far it came.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_write_all(blz_stream_op *op, const blz_stream *stream,
                                                       const void *buf, size_t len);

/*
 * Writes all of several pieces of memory, which stay valid, as does the array, until the future is
 * ready: the number of bytes. After an error op->done says how far it came.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_writev_all(blz_stream_op *op, const blz_stream *stream,
                                                        const blz_iovec *iov, size_t count);

/* ---- Pipes in memory ---- */

/*
 * Two streams that are connected: what is written to one is read from the other, both ways. Up to
 * `capacity` bytes (0: 64 KiB) are on their way in each direction; then writing waits. When an end
 * is closed the other one reads what is left and then the end, and writing gives -EPIPE; what is in
 * flight on the end itself gives -EBADF, and so does every later operation on it and on its copies,
 * for good. The memory is from malloc, or `allocator`, which is copied; it goes
 * when both ends have been closed, but for 32 bytes, which later pairs use again. They belong to no
 * runtime: tasks of different ones may talk, and threads (blz_wait). Interruptible.
 * 0 or -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_stream_pair(blz_stream *a, blz_stream *b, size_t capacity,
                                          const blz_allocator *allocator);

/* ---- Streams made of streams [any thread] ---- */

/*
 * Each of these is a stream that uses another one. The struct must stay where it is until the
 * stream is used no more. Closing them closes the inner ones.
 */

/* The first `left` bytes of what can be read; then it is at its end. Writing goes through. */
typedef struct blz_take {
    blz_stream inner;
    uint64_t left; /* may be changed between two reads */
    blz_io io_;
    uint64_t reserved[2];
} blz_take;
BLZ_API blz_stream blz_take_stream(blz_take *take, blz_stream inner, uint64_t limit);

/* Reads one to its end, then the other. -EBADF: writing. */
typedef struct blz_chain {
    blz_stream first, second;
    bool at_second;
    blz_io io_;
    uint64_t reserved[2];
} blz_chain;
BLZ_API blz_stream blz_chain_stream(blz_chain *chain, blz_stream first, blz_stream second);

/* Reads one and writes the other: the two pipes of a child, say. */
typedef struct blz_both {
    blz_stream in, out;
} blz_both;
BLZ_API blz_stream blz_both_stream(blz_both *both, blz_stream in, blz_stream out);

/* Counts the bytes in both directions. */
typedef struct blz_count {
    blz_stream inner;
    uint64_t nr_read, nr_written;
    blz_io read_, write_;
    uint64_t reserved[2];
} blz_count;
BLZ_API blz_stream blz_count_stream(blz_count *count, blz_stream inner);

/* Reads bytes of memory, which stay there. -EBADF: writing. */
typedef struct blz_memory {
    const char *data;
    size_t len; /* what is left of it */
} blz_memory;
BLZ_API blz_stream blz_memory_stream(blz_memory *memory, const void *data, size_t len);

/* ---- Making your own ---- */

/*
 * What a kind of stream does. The functions get the stream that they were called for. Those that
 * return a future make it in `io`, of which they may use `future`, `done` and private_[2] to
 * private_[13] as they like, or anywhere else; nothing happens before its first poll. It sets
 * `done`.
 */
struct blz_stream_ops {
    const char *name;
    blz_future *(*read)(blz_io *io, const blz_stream *stream, void *buf, size_t len);
    blz_future *(*write)(blz_io *io, const blz_stream *stream, const void *buf, size_t len);
    /* NULL: the first piece is written that is not empty */
    blz_future *(*writev)(blz_io *io, const blz_stream *stream, const blz_iovec *iov, size_t count);
    blz_future *(*flush)(blz_io *io, const blz_stream *stream);    /* NULL: nothing to do */
    blz_future *(*shutdown)(blz_io *io, const blz_stream *stream); /* NULL: nothing to do */
    int (*close)(const blz_stream *stream);                        /* NULL: nothing to do */
    uint32_t kind_; /* 0; others are the library's, for streams that are descriptors */
    uint32_t reserved[3];
};

/*
 * Calls fn(stream) at its first poll, and is ready with what it returns. For implementing a kind of
 * stream. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stream_call(blz_io *io, const blz_stream *stream,
                                                  int64_t (*fn)(const blz_stream *stream));

BLZ_END_DECLS
#endif
