/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams made of streams. An operation of theirs is one of an inner stream, in an operation of the
 * adapter's own (there is one in each direction at a time), and something that is done with the
 * result. So the outer operation has next to nothing in it: the adapter, and what to do.
 */
#include "stream/outer.h"

#include <blitz/error.h>
#include <string.h>

/* ---- take ---- */

static blz_future *take_begin(const struct io_outer *outer)
{
    blz_take *take = outer->adapter;
    size_t len = outer->len < take->left ? outer->len : (size_t)take->left;

    return blz_stream_read(&take->io_, &take->inner, outer->buf, len);
}

static blz_poll take_poll(blz_future *self, blz_cx *cx)
{
    struct io_outer *outer = (struct io_outer *)self;
    blz_take *take = outer->adapter;
    int64_t n;

    if (!self->child && take->left == 0)
        return outer_done(outer, 0);
    if (blz_is_pending(poll_inner(outer, cx, take_begin, &n)))
        return BLZ_PENDING;
    if (n > 0)
        take->left -= (uint64_t)n < take->left ? (uint64_t)n : take->left;
    return outer_done(outer, n);
}

static blz_future *take_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "take_read",
                                       .poll = take_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, buf, len);
}

static blz_future *take_write(blz_io *io, const blz_stream *stream, const void *buf, size_t len)
{
    return blz_stream_write(io, &((const blz_take *)stream->object)->inner, buf, len);
}

static blz_future *take_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                               size_t count)
{
    return blz_stream_writev(io, &((const blz_take *)stream->object)->inner, iov, count);
}

static blz_future *take_flush(blz_io *io, const blz_stream *stream)
{
    return blz_stream_flush(io, &((const blz_take *)stream->object)->inner);
}

static blz_future *take_shutdown(blz_io *io, const blz_stream *stream)
{
    return blz_stream_shutdown(io, &((const blz_take *)stream->object)->inner);
}

static int take_close(const blz_stream *stream)
{
    return blz_stream_close(&((blz_take *)stream->object)->inner);
}

blz_stream blz_take_stream(blz_take *take, blz_stream inner, uint64_t limit)
{
    static const blz_stream_ops ops = {
        .name = "take",
        .read = take_read,
        .write = take_write,
        .writev = take_writev,
        .flush = take_flush,
        .shutdown = take_shutdown,
        .close = take_close,
    };

    *take = (blz_take){.inner = inner, .left = limit};
    return (blz_stream){&ops, take, 0};
}

/* ---- chain ---- */

static blz_future *chain_begin(const struct io_outer *outer)
{
    blz_chain *chain = outer->adapter;

    return blz_stream_read(&chain->io_, chain->at_second ? &chain->second : &chain->first,
                           outer->buf, outer->len);
}

/* A read of no bytes gives 0, and that is not the end. */
static blz_poll chain_poll(blz_future *self, blz_cx *cx)
{
    struct io_outer *outer = (struct io_outer *)self;
    blz_chain *chain = outer->adapter;
    int64_t n;

    for (;;) {
        if (blz_is_pending(poll_inner(outer, cx, chain_begin, &n)))
            return BLZ_PENDING;
        if (n != 0 || chain->at_second || outer->len == 0)
            return outer_done(outer, n);
        chain->at_second = true;
    }
}

static blz_future *chain_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "chain_read",
                                       .poll = chain_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, buf, len);
}

/* The first error counts. */
static int chain_close(const blz_stream *stream)
{
    blz_chain *chain = stream->object;
    int first = blz_stream_close(&chain->first), second = blz_stream_close(&chain->second);

    return first < 0 ? first : second;
}

blz_stream blz_chain_stream(blz_chain *chain, blz_stream first, blz_stream second)
{
    static const blz_stream_ops ops = {.name = "chain", .read = chain_read, .close = chain_close};

    *chain = (blz_chain){.first = first, .second = second};
    return (blz_stream){&ops, chain, 0};
}

/* ---- both ---- */

static blz_future *both_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    return blz_stream_read(io, &((const blz_both *)stream->object)->in, buf, len);
}

static blz_future *both_write(blz_io *io, const blz_stream *stream, const void *buf, size_t len)
{
    return blz_stream_write(io, &((const blz_both *)stream->object)->out, buf, len);
}

static blz_future *both_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                               size_t count)
{
    return blz_stream_writev(io, &((const blz_both *)stream->object)->out, iov, count);
}

static blz_future *both_flush(blz_io *io, const blz_stream *stream)
{
    return blz_stream_flush(io, &((const blz_both *)stream->object)->out);
}

static blz_future *both_shutdown(blz_io *io, const blz_stream *stream)
{
    return blz_stream_shutdown(io, &((const blz_both *)stream->object)->out);
}

static int both_close(const blz_stream *stream)
{
    blz_both *both = stream->object;
    int in = blz_stream_close(&both->in), out = blz_stream_close(&both->out);

    return in < 0 ? in : out;
}

blz_stream blz_both_stream(blz_both *both, blz_stream in, blz_stream out)
{
    static const blz_stream_ops ops = {
        .name = "both",
        .read = both_read,
        .write = both_write,
        .writev = both_writev,
        .flush = both_flush,
        .shutdown = both_shutdown,
        .close = both_close,
    };

    *both = (blz_both){in, out};
    return (blz_stream){&ops, both, 0};
}

/* ---- count ---- */

static blz_future *count_begin_read(const struct io_outer *outer)
{
    blz_count *count = outer->adapter;

    return blz_stream_read(&count->read_, &count->inner, outer->buf, outer->len);
}

static blz_poll count_read_poll(blz_future *self, blz_cx *cx)
{
    struct io_outer *outer = (struct io_outer *)self;
    int64_t n;

    if (blz_is_pending(poll_inner(outer, cx, count_begin_read, &n)))
        return BLZ_PENDING;
    if (n > 0)
        ((blz_count *)outer->adapter)->nr_read += (uint64_t)n;
    return outer_done(outer, n);
}

static blz_future *count_begin_write(const struct io_outer *outer)
{
    blz_count *count = outer->adapter;

    return blz_stream_write(&count->write_, &count->inner, outer->buf, outer->len);
}

static blz_future *count_begin_writev(const struct io_outer *outer)
{
    blz_count *count = outer->adapter;

    return blz_stream_writev(&count->write_, &count->inner, outer->buf, outer->len);
}

static blz_poll count_write(struct io_outer *outer, blz_cx *cx,
                            blz_future *(*begin)(const struct io_outer *outer))
{
    int64_t n;

    if (blz_is_pending(poll_inner(outer, cx, begin, &n)))
        return BLZ_PENDING;
    if (n > 0)
        ((blz_count *)outer->adapter)->nr_written += (uint64_t)n;
    return outer_done(outer, n);
}

static blz_poll count_write_poll(blz_future *self, blz_cx *cx)
{
    return count_write((struct io_outer *)self, cx, count_begin_write);
}

static blz_poll count_writev_poll(blz_future *self, blz_cx *cx)
{
    return count_write((struct io_outer *)self, cx, count_begin_writev);
}

static blz_future *count_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "count_read",
                                       .poll = count_read_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, buf, len);
}

static blz_future *count_write_one(blz_io *io, const blz_stream *stream, const void *buf,
                                   size_t len)
{
    static const blz_future_ops ops = {.name = "count_write",
                                       .poll = count_write_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, buf, len);
}

static blz_future *count_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                                size_t nr_pieces)
{
    static const blz_future_ops ops = {.name = "count_writev",
                                       .poll = count_writev_poll,
                                       .cancel = outer_cancel};
    return outer_init(io, stream, &ops, iov, nr_pieces);
}

static blz_future *count_flush(blz_io *io, const blz_stream *stream)
{
    return blz_stream_flush(io, &((const blz_count *)stream->object)->inner);
}

static blz_future *count_shutdown(blz_io *io, const blz_stream *stream)
{
    return blz_stream_shutdown(io, &((const blz_count *)stream->object)->inner);
}

static int count_close(const blz_stream *stream)
{
    return blz_stream_close(&((blz_count *)stream->object)->inner);
}

blz_stream blz_count_stream(blz_count *count, blz_stream inner)
{
    static const blz_stream_ops ops = {
        .name = "count",
        .read = count_read,
        .write = count_write_one,
        .writev = count_writev,
        .flush = count_flush,
        .shutdown = count_shutdown,
        .close = count_close,
    };

    *count = (blz_count){.inner = inner};
    return (blz_stream){&ops, count, 0};
}

/* ---- memory ---- */

static blz_poll memory_poll(blz_future *self, blz_cx *cx)
{
    struct io_outer *outer = (struct io_outer *)self;
    blz_memory *memory = outer->adapter;
    size_t n = outer->len < memory->len ? outer->len : memory->len;

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (!length_is_valid(memory->len))
        return outer_done(outer, -EINVAL);
    if (n > 0)
        memcpy(outer->buf, memory->data, n);
    memory->data += n;
    memory->len -= n;
    return outer_done(outer, (int64_t)n);
}

static blz_future *memory_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "memory_read", .poll = memory_poll};
    return outer_init(io, stream, &ops, buf, len);
}

blz_stream blz_memory_stream(blz_memory *memory, const void *data, size_t len)
{
    static const blz_stream_ops ops = {.name = "memory", .read = memory_read};

    *memory = (blz_memory){data, len};
    return (blz_stream){&ops, memory, 0};
}
