/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of the test's own: it gives the bytes of a text in pieces of a size, and takes bytes in
 * pieces of a size, with a pause before each piece if it is slow; and it fails where it is told to.
 */
#ifndef BLZ_TESTS_SCRIPT_H
#define BLZ_TESTS_SCRIPT_H

#include "harness.h"

#include <errno.h>
#include <string.h>

struct script {
    const char *text;
    size_t len, at;    /* what can be read, and has been */
    size_t piece;      /* most bytes of one operation */
    bool slow;         /* pauses before each */
    int64_t fail_read; /* instead of the end */
    int64_t fail_write;
    size_t fail_at; /* once so many bytes were written; with fail_write */
    char out[4096];
    size_t out_len;
    int nr_writes, nr_flushes, nr_shutdowns, nr_closes;
};

struct script_op {
    blz_future future;
    uint64_t done;
    uint64_t library[2];
    struct script *script;
    void *buf;
    size_t len;
    bool writes, paused, cancelled;
};

static inline int64_t script_step(struct script_op *op)
{
    struct script *s = op->script;
    size_t n = op->len < s->piece ? op->len : s->piece;

    if (op->cancelled)
        return -ECANCELED;
    if (op->writes) {
        s->nr_writes++;
        if (s->fail_write && s->out_len >= s->fail_at)
            return s->fail_write;
        check(s->out_len + n <= sizeof s->out);
        memcpy(s->out + s->out_len, op->buf, n);
        s->out_len += n;
        return (int64_t)n;
    }
    if (n > s->len - s->at)
        n = s->len - s->at;
    if (n == 0 && op->len > 0)
        return s->fail_read;
    if (n > 0)
        memcpy(op->buf, s->text + s->at, n);
    s->at += n;
    return (int64_t)n;
}

static inline blz_poll script_poll(blz_future *self, blz_cx *cx)
{
    struct script_op *op = (struct script_op *)(void *)self;
    int64_t n;

    if (op->script->slow && !op->paused) {
        op->paused = true;
        return blz_cx_yield(cx);
    }
    n = script_step(op);
    op->done = n > 0 ? (uint64_t)n : 0;
    return blz_future_done(self, n);
}

static inline void script_cancel(blz_future *self, blz_cx *cx)
{
    (void)cx;
    ((struct script_op *)(void *)self)->cancelled = true;
}

static inline blz_future *script_begin(blz_io *io, const blz_stream *stream, const void *buf,
                                       size_t len, bool writes)
{
    static const blz_future_ops ops = {.name = "script",
                                       .poll = script_poll,
                                       .cancel = script_cancel};
    struct script_op *op = (struct script_op *)(void *)io;

    _Static_assert(sizeof *op <= sizeof *io, "it does not fit");
    op->future = (blz_future){.ops = &ops};
    op->done = 0;
    op->script = stream->object;
    op->buf = (void *)(uintptr_t)buf;
    op->len = len;
    op->writes = writes;
    op->paused = op->cancelled = false;
    return &op->future;
}

static inline blz_future *script_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    return script_begin(io, stream, buf, len, false);
}

static inline blz_future *script_write(blz_io *io, const blz_stream *stream, const void *buf,
                                       size_t len)
{
    return script_begin(io, stream, buf, len, true);
}

static inline int64_t script_count_flush(const blz_stream *stream)
{
    ((struct script *)stream->object)->nr_flushes++;
    return 0;
}

static inline blz_future *script_flush(blz_io *io, const blz_stream *stream)
{
    return blz_stream_call(io, stream, script_count_flush);
}

static inline int64_t script_count_shutdown(const blz_stream *stream)
{
    ((struct script *)stream->object)->nr_shutdowns++;
    return 0;
}

static inline blz_future *script_shutdown(blz_io *io, const blz_stream *stream)
{
    return blz_stream_call(io, stream, script_count_shutdown);
}

static inline int script_close(const blz_stream *stream)
{
    ((struct script *)stream->object)->nr_closes++;
    return 0;
}

static inline blz_stream script_stream(struct script *script)
{
    static const blz_stream_ops ops = {
        .name = "script",
        .read = script_read,
        .write = script_write,
        .flush = script_flush,
        .shutdown = script_shutdown,
        .close = script_close,
    };

    return (blz_stream){&ops, script, 0};
}

static inline struct script script_of(const char *text, size_t piece)
{
    return (struct script){.text = text, .len = strlen(text), .piece = piece, .slow = true};
}

#endif
