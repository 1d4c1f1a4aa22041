/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writers. What fits goes into the buffer. What does not is written together with what is in there
 * (writev), from where it is: nothing large is copied. So the buffer is either empty afterwards, or
 * the stream took only a part, and the rest is tried again in the same way.
 *
 * Bytes leave the buffer, or the caller's memory, exactly when the stream says that it has taken
 * them: an operation that fails or is cancelled loses and repeats none.
 */
#include "stream/buffer.h"
#include "stream/outer.h"

#include <blitz/bufio.h>

#include <blitz/error.h>

/* How far an operation has come. A write ends before the others. */
enum { PHASE_WRITE, PHASE_DRAIN, PHASE_FLUSH, PHASE_SHUTDOWN, PHASE_DONE };

/* ---- life ---- */

int blz_writer_init_with(blz_writer *writer, blz_stream stream, size_t size,
                         const blz_allocator *allocator)
{
    *writer = (blz_writer){.stream = stream, .size = size};
    int rc = buffer_new(&writer->buf, &writer->size, &writer->allocator_, allocator);
    writer->owned_ = rc == 0;
    return rc;
}

int blz_writer_init(blz_writer *writer, blz_stream stream, void *memory, size_t size)
{
    if (!memory)
        return blz_writer_init_with(writer, stream, size, NULL);
    *writer = (blz_writer){.stream = stream, .buf = memory, .size = size};
    return 0;
}

void blz_writer_free(blz_writer *writer)
{
    if (writer->owned_)
        blz__free(&writer->allocator_, writer->buf, writer->size, BUFFER_ALIGN);
    writer->owned_ = false;
    writer->buf = NULL;
    writer->size = writer->pos = writer->end = 0;
}

/* ---- taking bytes ---- */

/* Puts what fits into the buffer. True: that was all. */
static bool absorb(blz_writer *w)
{
    for (;;) {
        if (w->rest_.len > 0 && !blz_writer_put(w, w->rest_.base, w->rest_.len))
            return false;
        w->done += w->rest_.len;
        w->rest_.len = 0;
        if (w->count_ == 0)
            return true;
        w->rest_ = *w->iov_++;
        w->count_--;
    }
}

/* The stream has taken `n` bytes, of the buffer first. */
static void note_written(blz_writer *w, size_t n)
{
    size_t kept = w->end - w->pos, first = n < kept ? n : kept;

    w->pos += first;
    if (w->pos == w->end)
        w->pos = w->end = 0;
    n -= first;
    if (n == 0)
        return; /* there may be no rest at all */
    w->rest_.base = (char *)w->rest_.base + n;
    w->rest_.len -= n;
    w->done += n;
}

static blz_future *write_both(blz_writer *w)
{
    if (w->pos == w->end)
        return blz_stream_write(&w->io_, &w->stream, w->rest_.base, w->rest_.len);
    w->both_[0] = (blz_iovec){w->buf + w->pos, w->end - w->pos};
    w->both_[1] = w->rest_;
    return blz_stream_writev(&w->io_, &w->stream, w->both_, 2);
}

/* ---- the loop ---- */

/* What is to be awaited next, or NULL: nothing. */
static blz_future *next(blz_writer *w)
{
    if (w->phase_ == PHASE_WRITE)
        return absorb(w) ? NULL : write_both(w);
    if (w->phase_ == PHASE_DRAIN && w->pos < w->end)
        return blz_stream_write(&w->io_, &w->stream, w->buf + w->pos, w->end - w->pos);
    if (w->phase_ == PHASE_DRAIN)
        w->phase_ = PHASE_FLUSH;
    if (w->phase_ == PHASE_FLUSH)
        return blz_stream_flush(&w->io_, &w->stream);
    return w->phase_ == PHASE_SHUTDOWN ? blz_stream_shutdown(&w->io_, &w->stream) : NULL;
}

/* What a step means for the next one: 0, or an error. */
static int64_t note_step(blz_writer *w, int64_t n)
{
    if (n < 0)
        return n;
    if (w->phase_ <= PHASE_DRAIN) {
        note_written(w, (size_t)n);
        return n == 0 ? -EIO : 0;
    }
    w->phase_ = w->phase_ == PHASE_FLUSH && w->count_ > 0 ? PHASE_SHUTDOWN : PHASE_DONE;
    return 0;
}

static blz_poll writer_poll(blz_future *self, blz_cx *cx)
{
    blz_writer *w = (blz_writer *)(void *)self;
    int64_t rc;

    for (;;) {
        blz_future *child = self->child;
        if (!child) {
            child = next(w);
            if (!child)
                return blz_future_done(self, (int64_t)w->done);
            if (w->cancelled_)
                return blz_future_done(self, -ECANCELED);
            self->child = child;
            self->line = BLZ_LINE_BEGUN;
        }
        if (blz_is_pending(child->ops->poll(child, cx)))
            return BLZ_PENDING;
        self->child = NULL;
        rc = note_step(w, child->result);
        if (rc < 0)
            return blz_future_done(self, rc);
    }
}

static void writer_cancel(blz_future *self, blz_cx *cx)
{
    ((blz_writer *)(void *)self)->cancelled_ = true;
    if (self->child)
        blz_future_cancel(self->child, cx);
}

static blz_future *begin(blz_writer *w, uint8_t phase, const blz_iovec *iov, size_t count)
{
    static const blz_future_ops ops = {.name = "writer",
                                       .poll = writer_poll,
                                       .cancel = writer_cancel};

    blz_op_check(&w->future, &ops);
    w->future = (blz_future){.ops = &ops};
    w->done = 0;
    w->phase_ = phase;
    w->rest_ = (blz_iovec){NULL, 0};
    w->iov_ = iov;
    w->count_ = count;
    w->cancelled_ = false;
    return &w->future;
}

blz_future *blz_writer_write_all(blz_writer *writer, const void *data, size_t len)
{
    begin(writer, PHASE_WRITE, NULL, 0);
    writer->rest_ = (blz_iovec){(void *)(uintptr_t)data, len};
    return length_is_valid(len) ? &writer->future : blz_ready(&writer->future, -EINVAL);
}

blz_future *blz_writer_writev_all(blz_writer *writer, const blz_iovec *iov, size_t count)
{
    begin(writer, PHASE_WRITE, iov, count);
    return blz__pieces_are_valid(iov, count) ? &writer->future
                                             : blz_ready(&writer->future, -EINVAL);
}

blz_future *blz_writer_flush(blz_writer *writer)
{
    return begin(writer, PHASE_DRAIN, NULL, 0);
}

/* A count that is not zero stands for the shutdown behind the flush. */
blz_future *blz_writer_shutdown(blz_writer *writer)
{
    return begin(writer, PHASE_DRAIN, NULL, 1);
}

/* ---- as a stream ---- */

static blz_poll poll_outer(blz_future *self, blz_cx *cx,
                           blz_future *(*begin_inner)(const struct io_outer *outer))
{
    int64_t n;

    if (blz_is_pending(poll_inner((struct io_outer *)self, cx, begin_inner, &n)))
        return BLZ_PENDING;
    return outer_done((struct io_outer *)self, n);
}

/* What has been taken has been written, whatever came then: that will be said next time. */
static blz_poll poll_outer_write(blz_future *self, blz_cx *cx,
                                 blz_future *(*begin_inner)(const struct io_outer *outer))
{
    struct io_outer *outer = (struct io_outer *)self;
    const blz_writer *writer = outer->adapter;
    int64_t n;

    if (blz_is_pending(poll_inner(outer, cx, begin_inner, &n)))
        return BLZ_PENDING;
    return outer_done(outer, n < 0 && writer->done > 0 ? (int64_t)writer->done : n);
}

static blz_future *begin_outer_write(const struct io_outer *outer)
{
    return blz_writer_write_all(outer->adapter, outer->buf, outer->len);
}

static blz_poll outer_write_poll(blz_future *self, blz_cx *cx)
{
    return poll_outer_write(self, cx, begin_outer_write);
}

static blz_future *stream_write(blz_io *io, const blz_stream *stream, const void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "writer_write_all",
                                       .poll = outer_write_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, buf, len);
}

static blz_future *begin_outer_writev(const struct io_outer *outer)
{
    return blz_writer_writev_all(outer->adapter, outer->buf, outer->len);
}

static blz_poll outer_writev_poll(blz_future *self, blz_cx *cx)
{
    return poll_outer_write(self, cx, begin_outer_writev);
}

static blz_future *stream_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                                 size_t count)
{
    static const blz_future_ops ops = {.name = "writer_writev_all",
                                       .poll = outer_writev_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, iov, count);
}

static blz_future *begin_outer_flush(const struct io_outer *outer)
{
    return blz_writer_flush(outer->adapter);
}

static blz_poll outer_flush_poll(blz_future *self, blz_cx *cx)
{
    return poll_outer(self, cx, begin_outer_flush);
}

static blz_future *stream_flush(blz_io *io, const blz_stream *stream)
{
    static const blz_future_ops ops = {.name = "writer_flush",
                                       .poll = outer_flush_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, NULL, 0);
}

static blz_future *begin_outer_shutdown(const struct io_outer *outer)
{
    return blz_writer_shutdown(outer->adapter);
}

static blz_poll outer_shutdown_poll(blz_future *self, blz_cx *cx)
{
    return poll_outer(self, cx, begin_outer_shutdown);
}

static blz_future *stream_shutdown(blz_io *io, const blz_stream *stream)
{
    static const blz_future_ops ops = {.name = "writer_shutdown",
                                       .poll = outer_shutdown_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, NULL, 0);
}

static blz_future *stream_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    return blz_stream_read(io, &((const blz_writer *)stream->object)->stream, buf, len);
}

static int stream_close(const blz_stream *stream)
{
    return blz_stream_close(&((blz_writer *)stream->object)->stream);
}

blz_stream blz_writer_stream(blz_writer *writer)
{
    static const blz_stream_ops ops = {
        .name = "writer",
        .read = stream_read,
        .write = stream_write,
        .writev = stream_writev,
        .flush = stream_flush,
        .shutdown = stream_shutdown,
        .close = stream_close,
    };

    return (blz_stream){&ops, writer, 0};
}
