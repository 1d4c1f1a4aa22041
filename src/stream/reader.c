/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers. Everything that a reader does is a loop: a step looks at what is in the buffer, and says
 * what comes of it, or that it needs more (NEED_MORE); then the stream is read, and the step looks
 * again. A step is a function of what is there, so it does not matter in which pieces it came.
 *
 * A read goes to the buffer, behind what is there, or to memory that the step has chosen
 * (`into_`); a step that does so takes note of the bytes when it is called again, in `len_`.
 *
 * A cancelled operation looks at what its last read has brought all the same: either that settles
 * it, or it ends with -ECANCELED, and the bytes are in the buffer for the next one.
 */
#include "stream/reader.h"

#include "stream/buffer.h"
#include "stream/outer.h"

#include <blitz/error.h>

/* ---- life ---- */

int blz_reader_init_with(blz_reader *reader, blz_stream stream, size_t size,
                         const blz_allocator *allocator)
{
    *reader = (blz_reader){.stream = stream, .size = size};
    int rc = buffer_new(&reader->buf, &reader->size, &reader->allocator_, allocator);
    reader->owned_ = rc == 0;
    return rc;
}

int blz_reader_init(blz_reader *reader, blz_stream stream, void *memory, size_t size)
{
    if (!memory)
        return blz_reader_init_with(reader, stream, size, NULL);
    *reader = (blz_reader){.stream = stream, .buf = memory, .size = size};
    return 0;
}

void blz_reader_free(blz_reader *reader)
{
    if (reader->owned_)
        blz__free(&reader->allocator_, reader->buf, reader->size, BUFFER_ALIGN);
    reader->owned_ = false;
    reader->buf = NULL;
    reader->size = reader->pos = reader->end = 0;
}

/* ---- the loop ---- */

/* Makes room behind what is there, unless there is plenty. Places are others from then on. */
static void compact(blz_reader *r)
{
    size_t len = r->end - r->pos;

    if (r->pos == 0 || (len > 0 && r->size - r->end >= r->size / 2))
        return;
    if (len > 0)
        memmove(r->buf, r->buf + r->pos, len);
    r->scanned_ = r->found_at_ == r->nr_found_ && r->scanned_ > r->pos ? r->scanned_ - r->pos : 0;
    r->nr_found_ = r->found_at_ = 0;
    r->found_[0] = SIZE_MAX;
    r->pos = 0;
    r->end = len;
}

static blz_future *begin_read(blz_reader *r)
{
    if (!r->into_) {
        compact(r);
        return blz_stream_read(&r->io_, &r->stream, r->buf + r->end, r->size - r->end);
    }
    return blz_stream_read(&r->io_, &r->stream, r->into_, r->room_);
}

static void note_read(blz_reader *r, int64_t n)
{
    if (n == 0)
        r->ended_ = true;
    else if (r->into_)
        r->got_ = (size_t)n;
    else
        r->end += (size_t)n;
}

/* True: the step has settled it. */
static bool settle(blz_reader *r, blz_cx *cx)
{
    int64_t rc = r->step_(r, cx);

    if (rc == NEED_MORE && !r->into_ && is_full(r))
        rc = -EMSGSIZE;
    if (rc == NEED_MORE && r->cancelled_)
        rc = -ECANCELED;
    if (rc == NEED_MORE)
        return false;
    blz_future_done(&r->future, rc);
    return true;
}

static blz_poll reader_poll(blz_future *self, blz_cx *cx)
{
    blz_reader *r = (blz_reader *)(void *)self;

    for (;;) {
        blz_future *child = self->child;
        if (!child) {
            if (settle(r, cx))
                return BLZ_READY;
            self->child = child = begin_read(r);
            self->line = BLZ_LINE_BEGUN;
        }
        if (blz_is_pending(child->ops->poll(child, cx)))
            return BLZ_PENDING;
        self->child = NULL;
        if (child->result < 0)
            return blz_future_done(self, child->result);
        note_read(r, child->result);
    }
}

static void reader_cancel(blz_future *self, blz_cx *cx)
{
    ((blz_reader *)(void *)self)->cancelled_ = true;
    if (self->child)
        blz_future_cancel(self->child, cx);
}

const blz_future_ops blz__reader_ops = {.name = "reader",
                                        .poll = reader_poll,
                                        .cancel = reader_cancel};

/* Of those that are told how many bytes are wanted. */
static blz_future *begin_length(blz_reader *r, int64_t (*step)(blz_reader *reader, blz_cx *cx),
                                void *out, size_t len)
{
    reader_begin(r, step, out, len);
    return length_is_valid(len) ? &r->future : blz_ready(&r->future, -EINVAL);
}

/* ---- what needs the buffer alone ---- */

static int64_t fill_step(blz_reader *r, blz_cx *cx)
{
    size_t now = r->end - r->pos;

    (void)cx;
    return now > r->len_ || r->ended_ ? (int64_t)(now - r->len_) : NEED_MORE;
}

blz_future *blz_reader_fill(blz_reader *reader)
{
    return reader_begin(reader, fill_step, NULL, reader->end - reader->pos);
}

static int64_t peek_step(blz_reader *r, blz_cx *cx)
{
    size_t there = r->end - r->pos;

    (void)cx;
    if (r->len_ > r->size)
        return -EMSGSIZE;
    if (there >= r->len_ || r->ended_)
        return (int64_t)(there < r->len_ ? there : r->len_);
    return NEED_MORE;
}

blz_future *blz_reader_peek(blz_reader *reader, size_t n)
{
    return begin_length(reader, peek_step, NULL, n);
}

/* ---- what takes bytes ---- */

/* Hands out up to `len` bytes of the buffer. */
static size_t take(blz_reader *r, size_t len)
{
    size_t there = r->end - r->pos, n = len < there ? len : there;

    if (n > 0)
        memcpy((char *)r->out_ + r->done, r->buf + r->pos, n);
    blz_reader_consume(r, n);
    r->done += n;
    return n;
}

/* A read of much goes straight to where it is wanted. */
static void take_direct(blz_reader *r)
{
    r->done += r->got_;
    r->got_ = 0;
    r->into_ = NULL;
    if (r->pos == r->end && r->len_ - r->done >= r->size) {
        r->into_ = (char *)r->out_ + r->done;
        r->room_ = r->len_ - r->done;
    }
}

static int64_t read_step(blz_reader *r, blz_cx *cx)
{
    (void)cx;
    take(r, r->len_ - r->done);
    take_direct(r);
    return r->done > 0 || r->ended_ || r->len_ == 0 ? (int64_t)r->done : NEED_MORE;
}

blz_future *blz_reader_read(blz_reader *reader, void *buf, size_t len)
{
    return begin_length(reader, read_step, buf, len);
}

static int64_t read_exact_step(blz_reader *r, blz_cx *cx)
{
    (void)cx;
    take_direct(r);
    take(r, r->len_ - r->done);
    take_direct(r);
    if (r->done == r->len_)
        return (int64_t)r->len_;
    return r->ended_ ? -ENODATA : NEED_MORE;
}

blz_future *blz_reader_read_exact(blz_reader *reader, void *buf, size_t len)
{
    return begin_length(reader, read_exact_step, buf, len);
}

static int64_t skip_step(blz_reader *r, blz_cx *cx)
{
    size_t there = r->end - r->pos, n = there < r->len_ - r->done ? there : r->len_ - r->done;

    (void)cx;
    blz_reader_consume(r, n);
    r->done += n;
    return r->done == r->len_ || r->ended_ ? (int64_t)r->done : NEED_MORE;
}

blz_future *blz_reader_skip(blz_reader *reader, uint64_t n)
{
    return reader_begin(reader, skip_step, NULL, n > SIZE_MAX ? SIZE_MAX : (size_t)n);
}

static int64_t skip_until_step(blz_reader *r, blz_cx *cx)
{
    size_t there = r->end - r->pos;
    const char *start = r->buf + r->pos, *at = there ? memchr(start, r->delimiter_, there) : NULL;
    size_t n = at ? (size_t)(at - start) + 1 : there;

    (void)cx;
    blz_reader_consume(r, n);
    r->done += n;
    return at || r->ended_ ? at != NULL : NEED_MORE;
}

blz_future *blz_reader_skip_until(blz_reader *reader, char delimiter)
{
    reader->delimiter_ = (unsigned char)delimiter;
    return reader_begin(reader, skip_until_step, NULL, 0);
}

/* ---- records ---- */

static int64_t record_step(blz_reader *r, blz_cx *cx)
{
    blz_view *record = r->out_;
    blz_cut cut = {0};
    const char *start = r->buf + r->pos;
    int rc =
        (r->ended_ ? blz_codec_finish : blz_codec_decode)(r->more_, &cut, start, r->end - r->pos);

    (void)cx;
    blz_reader_consume(r, cut.used);
    if (rc == 1)
        *record = (blz_view){start + cut.at, cut.len};
    if (rc != 0 || r->ended_)
        return rc;
    return is_full(r) ? -ENOBUFS : NEED_MORE;
}

blz_future *blz_reader_record(blz_reader *reader, blz_view *record, blz_codec *codec)
{
    reader_begin(reader, record_step, record, 0);
    reader->more_ = codec;
    return &reader->future;
}

/* ---- as a stream ---- */

static blz_future *begin_outer_read(const struct io_outer *outer)
{
    return blz_reader_read(outer->adapter, outer->buf, outer->len);
}

static blz_poll outer_read_poll(blz_future *self, blz_cx *cx)
{
    int64_t n;

    if (blz_is_pending(poll_inner((struct io_outer *)self, cx, begin_outer_read, &n)))
        return BLZ_PENDING;
    return outer_done((struct io_outer *)self, n);
}

static blz_future *stream_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "reader_read",
                                       .poll = outer_read_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, buf, len);
}

static const blz_stream *inner_of(const blz_stream *stream)
{
    return &((const blz_reader *)stream->object)->stream;
}

static blz_future *stream_write(blz_io *io, const blz_stream *stream, const void *buf, size_t len)
{
    return blz_stream_write(io, inner_of(stream), buf, len);
}

static blz_future *stream_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                                 size_t count)
{
    return blz_stream_writev(io, inner_of(stream), iov, count);
}

static blz_future *stream_flush(blz_io *io, const blz_stream *stream)
{
    return blz_stream_flush(io, inner_of(stream));
}

static blz_future *stream_shutdown(blz_io *io, const blz_stream *stream)
{
    return blz_stream_shutdown(io, inner_of(stream));
}

static int stream_close(const blz_stream *stream)
{
    return blz_stream_close(&((blz_reader *)stream->object)->stream);
}

blz_stream blz_reader_stream(blz_reader *reader)
{
    static const blz_stream_ops ops = {
        .name = "reader",
        .read = stream_read,
        .write = stream_write,
        .writev = stream_writev,
        .flush = stream_flush,
        .shutdown = stream_shutdown,
        .close = stream_close,
    };

    return (blz_stream){&ops, reader, 0};
}
