/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input, output and errors as streams, whatever they are: a terminal, a pipe, a file, a
 * socket, /dev/null.
 *
 *     struct upper { BLZ_FRAME; blz_stream in, out; blz_stream_op op; char buf[4096]; int64_t n; };
 *
 *     BLZ_ASYNC(upper)
 *     {
 *         BLZ_BEGIN;
 *         self->n = blz_stdin(&self->in) < 0 || blz_stdout(&self->out) < 0 ? -EBADF : 1;
 *         while (self->n > 0) {
 *             BLZ_AWAIT(self->n, blz_stream_read(&self->op.io, &self->in, self->buf, 4096));
 *             for (int64_t i = 0; i < self->n; i++)
 *                 self->buf[i] = (char)toupper((unsigned char)self->buf[i]);
 *             if (self->n > 0)
 *                 BLZ_AWAIT(self->n, blz_stream_write_all(&self->op, &self->out, self->buf,
 *                                                         (size_t)self->n));
 *         }
 *         blz_stream_close(&self->in);
 *         blz_stream_close(&self->out);
 *         BLZ_END(self->n);
 *     }
 *
 * Two things go wrong with these descriptors elsewhere, and not here:
 *
 * - No thread is stuck in a read of standard input: a task that waits for it is cancelled like any
 * other, and the runtime ends although no key has been pressed. (A regular file is read by the
 * ring or by a thread, and a disk answers.)
 * - The mode of other processes is not changed. Whether calls on a terminal or a pipe wait
 *   (O_NONBLOCK) is shared with the shell and with every process that has it; programs that find it
 *   changed fail in odd ways. A terminal is opened anew, so that there is a mode of our own; pipes
 *   and sockets are asked call by call not to wait. Only where a terminal cannot be opened (it is
 *   another user's, after su; there is no /proc) is its mode changed for the moment of a write.
 */
#ifndef BLITZ_STDIO_H
#define BLITZ_STDIO_H

#include <blitz/stream.h>
#include <blitz/system.h>

BLZ_BEGIN_DECLS

/*
 * A stream of a descriptor that others use, too; it stays open, and theirs: closing the stream
 * closes a duplicate. `rt` NULL: the runtime of this thread. 0; -EBADF: is not open; -ENXIO: no
 * runtime; -EMFILE, -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_stdio_open(blz_stream *stream, blz_sysfd fd, blz_rt *rt);

/*
 * Opens standard input (descriptor 0) for the runtime of this thread: 0, or the errors of
 * blz_stdio_open. [worker]
 */
static inline BLZ_NODISCARD int blz_stdin(blz_stream *stream)
{
    return blz_stdio_open(stream, 0, NULL);
}

/*
 * Opens standard output (descriptor 1) for the runtime of this thread: 0, or the errors of
 * blz_stdio_open. [worker]
 */
static inline BLZ_NODISCARD int blz_stdout(blz_stream *stream)
{
    return blz_stdio_open(stream, 1, NULL);
}

/*
 * Opens standard error (descriptor 2) for the runtime of this thread: 0, or the errors of
 * blz_stdio_open. [worker]
 */
static inline BLZ_NODISCARD int blz_stderr(blz_stream *stream)
{
    return blz_stdio_open(stream, 2, NULL);
}

BLZ_END_DECLS
#endif
