/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records over a stream: a reader whose buffer grows, and a codec that looks at it.
 *
 * The buffer is full only when all of it is the beginning of one record that the codec has not
 * refused, so it grows only then, by half again as much as has really come: at most three halves of
 * what the other side has paid for in bytes. At blz_codec_room the codec always has an answer,
 * which is why it cannot be full there. Once it is empty it may be small again; that is done when
 * more is asked for, since until then the caller may still look at the last record.
 */
#include <blitz/records.h>

#include "stream/reader.h"

#include "base/alloc.h"

#include <blitz/error.h>

enum { FIRST_SIZE = 4 << 10, SMALL_SIZE = 64 << 10, ALIGN = 64 };

int blz_records_init(blz_records *records, blz_stream stream, const blz_codec *codec,
                     const blz_allocator *allocator)
{
    size_t room = blz_codec_room(codec);

    *records = (blz_records){.codec = *codec};
    blz_codec_reset(&records->codec);
    return blz_reader_init_with(&records->reader, stream, room < FIRST_SIZE ? room : FIRST_SIZE,
                                allocator);
}

void blz_records_free(blz_records *records)
{
    blz_reader_free(&records->reader);
}

/* ---- the buffer ---- */

/* Another buffer with the same bytes. False: there is no memory. */
static bool resize(blz_reader *r, size_t size)
{
    size_t len = r->end - r->pos;
    char *buf = blz__alloc(&r->allocator_, size, ALIGN);

    if (!buf)
        return false;
    if (len > 0)
        memcpy(buf, r->buf + r->pos, len);
    blz__free(&r->allocator_, r->buf, r->size, ALIGN);
    r->buf = buf;
    r->size = size;
    r->pos = 0;
    r->end = len;
    return true;
}

/* Room for a byte more, at least. 0 or -ENOMEM. */
static int make_room(blz_records *f)
{
    blz_reader *r = &f->reader;
    size_t room = blz_codec_room(&f->codec), len = r->end - r->pos;
    size_t more = r->size + r->size / 2 + 1;

    if (len == 0 && r->size > SMALL_SIZE)
        (void)resize(r, FIRST_SIZE); /* the large one will do, too */
    if (len < r->size)
        return 0;
    return resize(r, more < room ? more : room) ? 0 : -ENOMEM;
}

/* ---- reading ---- */

int blz_records_take(blz_records *f, blz_view *record)
{
    blz_reader *r = &f->reader;
    const char *start = r->buf + r->pos;
    size_t len = r->end - r->pos;
    blz_cut cut;
    int rc = f->ended_ ? blz_codec_finish(&f->codec, &cut, start, len)
                       : blz_codec_decode(&f->codec, &cut, start, len);

    blz_reader_consume(r, cut.used);
    if (rc == 1)
        *record = (blz_view){start + cut.at, cut.len};
    return rc;
}

blz_view blz_records_rest(const blz_records *records)
{
    return blz_reader_buffered(&records->reader);
}

enum { MORE_WAITS = BLZ_LINE_BEGUN, MORE_CANCELLED }; /* line; 0: not polled yet */

static blz_poll more_done(blz_records *f, int64_t result)
{
    f->future.child = NULL;
    return blz_future_done(&f->future, result);
}

/* At the end there is one more look for `take` to do, unless it has had it. */
static blz_poll more_poll(blz_future *self, blz_cx *cx)
{
    blz_records *f = (blz_records *)(void *)self;
    int64_t n;

    if (!self->child) {
        if (self->line == MORE_CANCELLED)
            return more_done(f, -ECANCELED);
        if (f->ended_)
            return more_done(f, 0);
        n = make_room(f);
        if (n < 0)
            return more_done(f, n);
        self->child = blz_reader_fill(&f->reader);
        self->line = MORE_WAITS;
    }
    if (blz_is_pending(self->child->ops->poll(self->child, cx)))
        return BLZ_PENDING;
    n = self->child->result;
    if (n == 0)
        f->ended_ = true;
    return more_done(f, n < 0 ? n : 1);
}

static void more_cancel(blz_future *self, blz_cx *cx)
{
    self->line = MORE_CANCELLED;
    if (self->child)
        blz_future_cancel(self->child, cx);
}

blz_future *blz_records_more(blz_records *records)
{
    static const blz_future_ops ops = {.name = "records_more",
                                       .poll = more_poll,
                                       .cancel = more_cancel};

    blz_op_check(&records->future, &ops);
    records->future = (blz_future){.ops = &ops};
    return &records->future;
}

/* ---- writing ---- */

static blz_poll refused_poll(blz_future *self, blz_cx *cx)
{
    (void)cx;
    return blz_future_done(self, self->result);
}

blz_future *blz_writer_record(blz_record_op *op, blz_writer *writer, const blz_codec *codec,
                              const void *prefix, const void *payload, size_t len)
{
    static const blz_future_ops ops = {.name = "writer_record", .poll = refused_poll};
    blz_envelope *e = &op->envelope;
    int rc = blz_codec_encode(codec, e, prefix, payload, len);

    op->future = (blz_future){.ops = &ops, .result = rc};
    op->iov[0] = (blz_iovec){e->head, e->head_len};
    op->iov[1] = (blz_iovec){(void *)(uintptr_t)payload, len};
    op->iov[2] = (blz_iovec){(void *)(uintptr_t)e->tail, e->tail_len};
    return rc < 0 ? &op->future : blz_writer_writev_all(writer, op->iov, 3);
}
