/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: the way from the handle to whoever implements it, and the operations that take several
 * steps, which are a loop around the others and know nothing of the kind either.
 *
 * A loop is cancelled by cancelling the step in flight, and takes no further one; the bytes that
 * the last step has moved all the same are counted.
 */
#include "stream/stream.h"

#include <blitz/error.h>

enum { MAX_PIECES = 1024 }; /* that the system takes in one call */

/* ---- one step ---- */

static blz_future *settled(blz_io *io, int64_t result)
{
    static const blz_future_ops ops = {.name = "stream"};

    io_check(io, &ops);
    io->done = 0;
    return blz_ready(&io->future, result);
}

blz_future *blz_stream_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    if (blz_unlikely(!stream->ops || !stream->ops->read))
        return settled(io, -EBADF);
    if (blz_unlikely(!length_is_valid(len)))
        return settled(io, -EINVAL);
    return stream->ops->read(io, stream, buf, len);
}

blz_future *blz_stream_write(blz_io *io, const blz_stream *stream, const void *buf, size_t len)
{
    if (blz_unlikely(!stream->ops || !stream->ops->write))
        return settled(io, -EBADF);
    if (blz_unlikely(!length_is_valid(len)))
        return settled(io, -EINVAL);
    return stream->ops->write(io, stream, buf, len);
}

blz_future *blz_stream_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                              size_t count)
{
    static const blz_iovec nothing;

    if (blz_unlikely(!blz__pieces_are_valid(iov, count)))
        return settled(io, stream->ops ? -EINVAL : -EBADF);
    if (stream->ops && stream->ops->writev)
        return stream->ops->writev(io, stream, iov, count);
    for (; count > 1 && iov->len == 0; count--)
        iov++;
    if (count == 0)
        iov = &nothing;
    return blz_stream_write(io, stream, iov->base, iov->len);
}

blz_future *blz_stream_flush(blz_io *io, const blz_stream *stream)
{
    if (!stream->ops || !stream->ops->flush)
        return settled(io, stream->ops ? 0 : -EBADF);
    return stream->ops->flush(io, stream);
}

blz_future *blz_stream_shutdown(blz_io *io, const blz_stream *stream)
{
    if (!stream->ops || !stream->ops->shutdown)
        return settled(io, stream->ops ? 0 : -EBADF);
    return stream->ops->shutdown(io, stream);
}

int blz_stream_close(blz_stream *stream)
{
    blz_stream closed = *stream;

    *stream = (blz_stream){NULL, NULL, 0};
    if (!closed.ops)
        return -EBADF;
    return closed.ops->close ? closed.ops->close(&closed) : 0;
}

int blz_stream_fd(const blz_stream *stream)
{
    blz__fd_ref ref = stream_ref(stream);
    int fd;

    if (stream_kind(stream) == STREAM_OTHER)
        return stream->ops ? -ENOTSUP : -EBADF;
    fd = blz__fd_acquire(&ref);
    if (fd >= 0)
        blz__fd_release(&ref);
    return fd;
}

/* ---- a call ---- */

static blz_poll call_poll(blz_future *self, blz_cx *cx)
{
    struct io_stream_call *call = (struct io_stream_call *)self;

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    return blz_future_done(self, call->fn(&call->stream));
}

blz_future *blz_stream_call(blz_io *io, const blz_stream *stream,
                            int64_t (*fn)(const blz_stream *stream))
{
    static const blz_future_ops ops = {.name = "stream_call", .poll = call_poll};
    struct io_stream_call *call = (struct io_stream_call *)io;

    io_check(io, &ops);
    call->future = (blz_future){.ops = &ops};
    call->done = 0;
    call->kind = IO_STREAM_CALL;
    call->stream = *stream;
    call->fn = fn;
    return &call->future;
}

/* ---- several steps ---- */

enum { LOOP_RUNNING = BLZ_LINE_BEGUN, LOOP_CANCELLED }; /* future.line; 0: not polled yet */

/* The next piece that is not empty; false: there is none. */
static bool has_rest(blz_stream_op *op)
{
    while (op->rest.len == 0 && op->count > 0) {
        op->rest = *op->iov++;
        op->count--;
    }
    return op->rest.len > 0;
}

/* A piece that has been begun is written by itself; whole ones together with those behind them. */
static blz_future *write_rest(blz_stream_op *op)
{
    if (op->count > 0 && op->rest.base == op->iov[-1].base)
        return blz_stream_writev(&op->io, &op->stream, op->iov - 1,
                                 op->count < MAX_PIECES ? op->count + 1 : MAX_PIECES);
    return blz_stream_write(&op->io, &op->stream, op->rest.base, op->rest.len);
}

static void advance(blz_stream_op *op, size_t n)
{
    op->done += n;
    while (n > 0) {
        size_t part = n < op->rest.len ? n : op->rest.len;
        op->rest.base = (char *)op->rest.base + part;
        op->rest.len -= part;
        n -= part;
        if (n > 0 && !has_rest(op))
            return;
    }
}

static blz_poll loop_poll(blz_stream_op *op, blz_cx *cx, blz_future *(*step)(blz_stream_op *op),
                          int64_t at_zero)
{
    blz_future *child = op->future.child;

    for (;;) {
        if (!child) {
            if (!has_rest(op))
                return blz_future_done(&op->future, (int64_t)op->done);
            if (op->future.line == LOOP_CANCELLED)
                return blz_future_done(&op->future, -ECANCELED);
            op->future.line = LOOP_RUNNING;
            op->future.child = child = step(op);
        }
        if (blz_is_pending(child->ops->poll(child, cx)))
            return BLZ_PENDING;
        op->future.child = NULL;
        if (child->result <= 0)
            return blz_future_done(&op->future, child->result < 0 ? child->result : at_zero);
        advance(op, (size_t)child->result);
        child = NULL;
    }
}

static void loop_cancel(blz_future *self, blz_cx *cx)
{
    self->line = LOOP_CANCELLED;
    if (self->child)
        blz_future_cancel(self->child, cx);
}

static blz_poll write_all_poll(blz_future *self, blz_cx *cx)
{
    return loop_poll((blz_stream_op *)(void *)self, cx, write_rest, -EIO);
}

static blz_future *read_rest(blz_stream_op *op)
{
    return blz_stream_read(&op->io, &op->stream, op->rest.base, op->rest.len);
}

static blz_poll read_exact_poll(blz_future *self, blz_cx *cx)
{
    return loop_poll((blz_stream_op *)(void *)self, cx, read_rest, -ENODATA);
}

static blz_future *loop_init(blz_stream_op *op, const blz_future_ops *ops, const blz_stream *stream)
{
    blz_op_check(&op->future, ops);
    op->future = (blz_future){.ops = ops};
    op->done = 0;
    op->stream = *stream;
    op->rest = (blz_iovec){NULL, 0};
    op->iov = NULL;
    op->count = 0;
    return &op->future;
}

static blz_future *loop_over(blz_stream_op *op, void *buf, size_t len)
{
    op->rest = (blz_iovec){buf, len};
    return length_is_valid(len) ? &op->future : blz_ready(&op->future, -EINVAL);
}

blz_future *blz_stream_read_exact(blz_stream_op *op, const blz_stream *stream, void *buf,
                                  size_t len)
{
    static const blz_future_ops ops = {.name = "stream_read_exact",
                                       .poll = read_exact_poll,
                                       .cancel = loop_cancel};

    loop_init(op, &ops, stream);
    return loop_over(op, buf, len);
}

static const blz_future_ops write_all_ops = {.name = "stream_write_all",
                                             .poll = write_all_poll,
                                             .cancel = loop_cancel};

blz_future *blz_stream_write_all(blz_stream_op *op, const blz_stream *stream, const void *buf,
                                 size_t len)
{
    loop_init(op, &write_all_ops, stream);
    return loop_over(op, (void *)(uintptr_t)buf, len);
}

blz_future *blz_stream_writev_all(blz_stream_op *op, const blz_stream *stream, const blz_iovec *iov,
                                  size_t count)
{
    loop_init(op, &write_all_ops, stream);
    op->iov = iov;
    op->count = count;
    return blz__pieces_are_valid(iov, count) ? &op->future : blz_ready(&op->future, -EINVAL);
}
