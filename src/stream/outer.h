/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of streams that use another stream: an operation of that one, which is somewhere else,
 * and something that is done with the result.
 */
#ifndef BLZ_STREAM_OUTER_H
#define BLZ_STREAM_OUTER_H

#include "stream/stream.h"

#include <blitz/error.h>

static inline blz_future *outer_init(blz_io *io, const blz_stream *stream,
                                     const blz_future_ops *ops, const void *buf, size_t len)
{
    struct io_outer *outer = (struct io_outer *)io;

    io_check(io, ops);
    outer->future = (blz_future){.ops = ops};
    outer->done = 0;
    outer->kind = IO_OUTER;
    outer->adapter = stream->object;
    outer->buf = (void *)(uintptr_t)buf;
    outer->len = len;
    outer->cancelled = false;
    return &outer->future;
}

static inline void outer_cancel(blz_future *self, blz_cx *cx)
{
    ((struct io_outer *)self)->cancelled = true;
    if (self->child)
        blz_future_cancel(self->child, cx);
}

static inline blz_poll outer_done(struct io_outer *outer, int64_t result)
{
    outer->done = result > 0 ? (uint64_t)result : 0;
    return blz_future_done(&outer->future, result);
}

/* Polls the inner operation, which `begin` makes. Pending, or ready with its result in *result. */
static inline blz_poll poll_inner(struct io_outer *outer, blz_cx *cx,
                                  blz_future *(*begin)(const struct io_outer *outer),
                                  int64_t *result)
{
    blz_future *inner = outer->future.child;

    *result = -ECANCELED;
    if (!inner) {
        if (outer->cancelled)
            return BLZ_READY;
        outer->future.line = BLZ_LINE_BEGUN;
        outer->future.child = inner = begin(outer);
    }
    if (blz_is_pending(inner->ops->poll(inner, cx)))
        return BLZ_PENDING;
    outer->future.child = NULL;
    *result = inner->result;
    return BLZ_READY;
}

#endif
