/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a stream, three ways: parts of a reader, frames in a reader's buffer, frames with a
 * buffer of their own that grows. The first bytes of an input are settings, the rest comes in
 * pieces of several sizes. All find the lines that memchr finds, and refuse the same ones.
 */
#include "fuzz.h"

#include <blitz.h>

#include <errno.h>

/* ---- what came out ---- */

struct log {
    char *bytes; /* of all lines, one behind the other */
    size_t len;
    int64_t list[4096]; /* the length of a line, or an error */
    int count;
};

static void note(struct log *log, const char *data, int64_t len_or_error)
{
    require(log->count < (int)(sizeof log->list / sizeof *log->list));
    log->list[log->count++] = len_or_error;
    if (len_or_error <= 0)
        return;
    memcpy(log->bytes + log->len, data, (size_t)len_or_error);
    log->len += (size_t)len_or_error;
}

static void check_same(const struct log *a, const struct log *b)
{
    require(a->count == b->count && a->len == b->len);
    require(memcmp(a->list, b->list, sizeof *a->list * (size_t)a->count) == 0);
    require(memcmp(a->bytes, b->bytes, a->len) == 0);
}

/* ---- a stream in pieces ---- */

struct pieces {
    const uint8_t *data;
    size_t len;
    uint8_t sizes; /* two of them, in turn */
    bool odd;
};

struct piece_op {
    blz_future future;
    uint64_t done;
    uint64_t library[2];
    struct pieces *pieces;
    void *buf;
    size_t len;
};

static blz_poll piece_poll(blz_future *self, blz_cx *cx)
{
    struct piece_op *op = (struct piece_op *)(void *)self;
    struct pieces *p = op->pieces;
    size_t n = 1u + (p->odd ? p->sizes >> 4 : p->sizes & 15);

    (void)cx;
    p->odd = !p->odd;
    n = n < op->len ? n : op->len;
    n = n < p->len ? n : p->len;
    if (n > 0)
        memcpy(op->buf, p->data, n);
    p->data += n;
    p->len -= n;
    op->done = n;
    return blz_future_done(self, (int64_t)n);
}

static blz_future *piece_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    static const blz_future_ops ops = {.name = "piece", .poll = piece_poll};
    struct piece_op *op = (struct piece_op *)(void *)io;

    op->future = (blz_future){.ops = &ops};
    op->pieces = stream->object;
    op->buf = buf;
    op->len = len;
    return &op->future;
}

static blz_stream piece_stream(struct pieces *pieces)
{
    static const blz_stream_ops ops = {.name = "pieces", .read = piece_read};

    return (blz_stream){&ops, pieces, 0};
}

/* ---- three ways ---- */

struct way {
    struct pieces *pieces;
    struct log *log;
    size_t max, size;
    char *memory;
    blz_codec codec;
};

struct by_split {
    BLZ_FRAME;
    struct way *way;
    int64_t rc;
    blz_reader reader;
    blz_split lines;
};

BLZ_ASYNC(by_split)
{
    blz_view line;

    BLZ_BEGIN;
    self->rc = blz_reader_init(&self->reader, piece_stream(self->way->pieces), self->way->memory,
                               self->way->size);
    blz_lines_init(&self->lines, &self->reader, self->way->max);
    while (self->rc >= 0) {
        while (blz_split_next(&self->lines, &line))
            note(self->way->log, line.data, (int64_t)line.len);
        BLZ_AWAIT(self->rc, blz_split_more(&self->lines));
        if (self->rc == -EMSGSIZE) {
            note(self->way->log, NULL, -EMSGSIZE);
            BLZ_AWAIT(self->rc, blz_reader_skip_until(&self->reader, '\n'));
        }
        if (self->rc == 0)
            break;
    }
    BLZ_END(self->rc);
}

struct by_reader {
    BLZ_FRAME;
    struct way *way;
    int64_t rc;
    blz_reader reader;
    blz_view line;
};

BLZ_ASYNC(by_reader)
{
    BLZ_BEGIN;
    self->rc = blz_reader_init(&self->reader, piece_stream(self->way->pieces), self->way->memory,
                               self->way->size);
    while (self->rc == 0 || self->rc == -EMSGSIZE) {
        BLZ_AWAIT(self->rc, blz_reader_record(&self->reader, &self->line, &self->way->codec));
        if (self->rc == 0)
            break;
        note(self->way->log, self->line.data, self->rc == 1 ? (int64_t)self->line.len : self->rc);
        if (self->rc == 1)
            self->rc = 0;
    }
    BLZ_END(self->rc);
}

struct by_frames {
    BLZ_FRAME;
    struct way *way;
    int64_t rc;
    blz_records frames;
};

BLZ_ASYNC(by_frames)
{
    blz_view line;

    BLZ_BEGIN;
    self->rc =
        blz_records_init(&self->frames, piece_stream(self->way->pieces), &self->way->codec, NULL);
    while (self->rc >= 0) {
        while ((self->rc = blz_records_take(&self->frames, &line)) != 0)
            note(self->way->log, line.data, self->rc == 1 ? (int64_t)line.len : self->rc);
        BLZ_AWAIT(self->rc, blz_records_more(&self->frames));
        if (self->rc == 0)
            break;
    }
    blz_records_free(&self->frames);
    BLZ_END(self->rc);
}

/* ---- the simple way ---- */

static void by_memchr(const uint8_t *data, size_t size, size_t max, struct log *log)
{
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t len = end ? (size_t)(end - data) : size, used = end ? len + 1 : len;
        len -= end && len > 0 && data[len - 1] == '\r';
        note(log, (const char *)data, len > max ? -EMSGSIZE : (int64_t)len);
        data += used;
        size -= used;
    }
}

/* ---- all of them ---- */

static blz_rt *the_rt(void)
{
    static blz_rt *rt; /* for all inputs: it keeps nothing of them */

    if (!rt)
        require(blz_rt_new(&rt, &(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER}) == 0);
    return rt;
}

static void finish(blz_handle *handle)
{
    while (!blz_handle_done(handle))
        require(blz_rt_turn(the_rt()) >= 0);
    require(blz_handle_wait(handle) == 0 && handle->result == 0);
}

/* Everything anew: a stream, a log, a buffer in which there is room for one line and its end. */
static void reset(struct way *way, struct pieces *pieces, const struct input *in, uint8_t sizes)
{
    *pieces = (struct pieces){.data = in->data, .len = in->size, .sizes = sizes};
    way->log->count = 0;
    way->log->len = 0;
    require(blz_codec_lines(&way->codec,
                            &(blz_lines_options){.max = way->max, .skip_too_long = true}) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct log simple, log;
    struct input in = {data, size};
    uint8_t flags = take_byte(&in), sizes = take_byte(&in);
    struct pieces pieces;
    struct way way = {.pieces = &pieces, .log = &log, .max = 1u + (flags & 31)};
    blz_handle handle;

    if (in.size > 4000)
        return 0;
    way.size = blz_codec_room(&(blz_codec){.max = way.max, .delimiter_len_ = 1}) + (flags >> 5);
    way.memory = malloc(way.size);
    simple.bytes = malloc(in.size + 1);
    log.bytes = malloc(in.size + 1);
    require(way.memory && simple.bytes && log.bytes);
    simple.count = 0;
    simple.len = 0;
    by_memchr(in.data, in.size, way.max, &simple);
    reset(&way, &pieces, &in, sizes);
    require(BLZ_SPAWN_ON(the_rt(), &handle, by_split, .way = &way) == 0);
    finish(&handle);
    check_same(&simple, &log);
    reset(&way, &pieces, &in, sizes);
    require(BLZ_SPAWN_ON(the_rt(), &handle, by_reader, .way = &way) == 0);
    finish(&handle);
    check_same(&simple, &log);
    reset(&way, &pieces, &in, sizes);
    require(BLZ_SPAWN_ON(the_rt(), &handle, by_frames, .way = &way) == 0);
    finish(&handle);
    check_same(&simple, &log);
    free(way.memory);
    free(simple.bytes);
    free(log.bytes);
    return 0;
}
