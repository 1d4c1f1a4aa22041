/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing: the first bytes of an input are settings, the rest is a stream. Fed at once, byte by
 * byte and in two parts, each kind of codec gives the same records and errors, and those are what a
 * decoder gives that is written the simple way, with all of the stream before it. What is encoded
 * is decoded to the same.
 */
#include "fuzz.h"

#include <blitz/codec.h>

#include <errno.h>

/* ---- what happened ---- */

enum { MAX_EVENTS = 4096 };

struct event {
    int rc;
    size_t at, len; /* the record within the stream */
};

struct events {
    struct event list[MAX_EVENTS];
    int count;
    bool ended; /* nothing comes after this one */
};

static void add(struct events *events, int rc, size_t at, size_t len)
{
    if (events->count < MAX_EVENTS)
        events->list[events->count++] = (struct event){rc, rc == 1 ? at : 0, rc == 1 ? len : 0};
}

static void check_same(const struct events *a, const struct events *b)
{
    require(a->count == b->count);
    for (int i = 0; i < a->count; i++)
        require(a->list[i].rc == b->list[i].rc && a->list[i].at == b->list[i].at &&
                a->list[i].len == b->list[i].len);
}

/* ---- settings ---- */

struct settings {
    bool is_length;
    blz_length_options length;
    blz_delimiter_options delimiter;
    blz_lines_options lines;
    uint8_t mark[BLZ_DELIMITER_MAX];
    size_t mark_len; /* 0: lines */
    size_t max;
    bool skips;
};

static void take_length(struct settings *s, struct input *in)
{
    static const unsigned widths[] = {1, 2, 3, 4, 8, BLZ_VARINT, 0, 4};
    uint8_t flags = take_byte(in);

    s->length = (blz_length_options){.max = s->max,
                                     .width = widths[flags & 7],
                                     .offset = take_byte(in) % 16,
                                     .adjustment = (int8_t)take_byte(in),
                                     .little_endian = flags & 8,
                                     .keep_header = flags & 16,
                                     .skip_too_long = s->skips};
    if (flags & 32)
        s->length.adjustment = (int64_t)take_number(in, 8);
}

static void take_mark(struct settings *s, struct input *in)
{
    uint8_t flags = take_byte(in);

    s->mark_len = flags & 7;
    for (size_t i = 0; i < s->mark_len; i++)
        s->mark[i] = flags & 8 ? (uint8_t)('a' + take_byte(in) % 2) : take_byte(in);
    s->lines = (blz_lines_options){.max = s->max,
                                   .keep_cr = flags & 16,
                                   .skip_too_long = s->skips,
                                   .whole_only = flags & 32};
    s->delimiter =
        (blz_delimiter_options){.max = s->max, .skip_too_long = s->skips, .whole_only = flags & 32};
}

static struct settings take_settings(struct input *in)
{
    uint8_t flags = take_byte(in);
    struct settings s = {.is_length = flags & 1, .skips = flags & 2};

    s.max = (size_t)(flags >> 2) + 1;
    if (s.is_length)
        take_length(&s, in);
    else
        take_mark(&s, in);
    return s;
}

static int make(blz_codec *codec, const struct settings *s)
{
    if (s->is_length)
        return blz_codec_length(codec, &s->length);
    if (s->mark_len > 0)
        return blz_codec_delimiter(codec, s->mark, s->mark_len, &s->delimiter);
    return blz_codec_lines(codec, &s->lines);
}

/* ---- the codec ---- */

struct feed {
    blz_codec codec;
    const uint8_t *data;
    size_t used, given;
    struct events *events;
};

/* Everything that it finds in what has come. */
static void drain(struct feed *f, bool at_end)
{
    int rc = 1;

    while (rc != 0 && f->events->count < MAX_EVENTS) {
        size_t len = f->given - f->used;
        char *exact = exact_copy(f->data + f->used, len, 0);
        blz_cut cut;
        rc = at_end ? blz_codec_finish(&f->codec, &cut, exact, len)
                    : blz_codec_decode(&f->codec, &cut, exact, len);
        free(exact);
        require(cut.used <= len && cut.at + cut.len <= cut.used);
        if (rc != 0)
            add(f->events, rc, f->used + cut.at, cut.len);
        f->used += cut.used;
        if (rc == 0 && !at_end && f->given > f->used) {
            require(blz_codec_wants(&f->codec) > f->given - f->used);
            require(blz_codec_wants(&f->codec) <= blz_codec_room(&f->codec));
        }
        if (f->codec.failed_) {
            require(rc < 0);
            f->events->ended = true;
            return;
        }
    }
}

static void run(const struct settings *s, const uint8_t *data, size_t size, size_t first,
                size_t piece, struct events *events)
{
    struct feed f = {.data = data, .events = events};

    events->count = 0;
    events->ended = false;
    require(make(&f.codec, s) == 0);
    for (size_t n = first; f.given < size && !events->ended; n = piece) {
        f.given += n < size - f.given ? n : size - f.given;
        drain(&f, false);
    }
    if (!events->ended)
        drain(&f, true);
}

/* ---- the simple way ---- */

/* Large enough for every sum that can be. */
__extension__ typedef __int128 wide;

/* What a length field says, as far as it matters: -1: it is cut off; -2: it cannot be. */
static int simple_length(const struct settings *s, const uint8_t *data, size_t size, wide *length)
{
    unsigned width = s->length.width ? s->length.width : 4;

    *length = 0;
    if (width == BLZ_VARINT) {
        for (unsigned i = 0; i < 10; i++) {
            if (i >= size)
                return -1;
            *length |= (wide)(data[i] & 127) << (7 * i);
            if (*length > UINT64_MAX)
                return -2;
            if (data[i] < 128)
                return (int)i + 1;
        }
        return -2;
    }
    if (size < width)
        return -1;
    for (unsigned i = 0; i < width; i++)
        *length |= (wide)data[i] << 8 * (s->length.little_endian ? i : width - 1 - i);
    return (int)width;
}

static void simple_lengths(const struct settings *s, const uint8_t *data, size_t size,
                           struct events *events)
{
    size_t at = 0, offset = s->length.offset;

    while (at < size) {
        wide number;
        size_t left = size - at;
        int width =
            left < offset ? -1 : simple_length(s, data + at + offset, left - offset, &number);
        if (width == -1) {
            add(events, -ENODATA, 0, 0);
            return;
        }
        wide length = (wide)number + s->length.adjustment;
        if (width == -2 || length < 0) {
            add(events, -EBADMSG, 0, 0);
            return;
        }
        size_t header = offset + (size_t)width;
        if (length > (wide)s->max)
            add(events, -EMSGSIZE, 0, 0);
        if (length > (wide)s->max && !s->skips)
            return;
        if (length > (wide)(left - header)) {
            add(events, -ENODATA, 0, 0);
            return;
        }
        if (length <= (wide)s->max)
            add(events, 1, s->length.keep_header ? at : at + header,
                (size_t)length + (s->length.keep_header ? header : 0));
        at += header + (size_t)length;
    }
}

/* How many of the last bytes could be the beginning of the mark. */
static size_t simple_overlap(const uint8_t *data, size_t len, const uint8_t *mark, size_t mark_len)
{
    size_t n = mark_len - 1 < len ? mark_len - 1 : len;

    while (n > 0 && memcmp(data + len - n, mark, n) != 0)
        n--;
    return n;
}

static void simple_marks(const struct settings *s, const uint8_t *data, size_t size,
                         struct events *events)
{
    const uint8_t *mark = s->mark_len ? s->mark : (const uint8_t *)"\n";
    size_t mark_len = s->mark_len ? s->mark_len : 1, at = 0;
    bool cr = s->mark_len == 0 && !s->lines.keep_cr;
    bool whole_only = s->mark_len ? s->delimiter.whole_only : s->lines.whole_only;

    while (at < size) {
        const uint8_t *found = memmem(data + at, size - at, mark, mark_len);
        size_t len = found ? (size_t)(found - data) - at : size - at, end = at + len;
        if (found && cr && len > 0 && data[end - 1] == '\r')
            len--;
        if (!found && whole_only) {
            size_t open = simple_overlap(data + at, len, mark, mark_len);
            open += cr && data[size - 1] == '\r';
            add(events, len - open > s->max ? -EMSGSIZE : -ENODATA, 0, 0);
            return;
        }
        add(events, len > s->max ? -EMSGSIZE : 1, at, len);
        if (len > s->max && !s->skips)
            return;
        at = found ? end + mark_len : size;
    }
}

/* ---- there and back ---- */

static void check_encode(const struct settings *s, const uint8_t *data, size_t size)
{
    blz_codec codec;
    blz_envelope e;
    blz_cut cut;
    uint8_t prefix[16] = "0123456789abcde";
    size_t header;
    char *all;
    int rc;

    require(make(&codec, s) == 0);
    rc = blz_codec_encode(&codec, &e, prefix, data, size);
    require(rc == 0 || rc == -EMSGSIZE || rc == -EINVAL);
    require(size <= s->max || rc == -EMSGSIZE);
    if (rc < 0)
        return;
    require(e.head_len <= sizeof e.head);
    all = malloc(e.head_len + size + e.tail_len + 1);
    require(all);
    memcpy(all, e.head, e.head_len);
    memcpy(all + e.head_len, data, size);
    memcpy(all + e.head_len + size, e.tail, e.tail_len);
    header = s->is_length && s->length.keep_header ? e.head_len : 0;
    require(blz_codec_decode(&codec, &cut, all, e.head_len + size + e.tail_len) == 1);
    require(cut.used == e.head_len + size + e.tail_len && cut.len == size + header);
    require(cut.at == e.head_len - header && memcmp(all + e.head_len, data, size) == 0);
    if (s->is_length)
        require(memcmp(all, prefix, s->length.offset) == 0);
    free(all);
}

/* Whether it cannot be encoded for a reason: the simple decoder would see something else. */
static void check_refused(const struct settings *s, const uint8_t *data, size_t size)
{
    static struct events events;
    blz_codec codec;
    blz_envelope e;
    uint8_t all[2048];

    if (s->is_length || size > s->max || size > 1024)
        return;
    require(make(&codec, s) == 0);
    if (blz_codec_encode(&codec, &e, NULL, data, size) != -EINVAL)
        return;
    memcpy(all, data, size);
    memcpy(all + size, codec.delimiter_, codec.delimiter_len_);
    events.count = 0;
    simple_marks(s, all, size + codec.delimiter_len_, &events);
    require(events.count != 1 || events.list[0].rc != 1 || events.list[0].len != size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct events whole, other;
    struct input in = {data, size};
    struct settings s = take_settings(&in);
    blz_codec codec;

    if (make(&codec, &s) < 0)
        return 0;
    whole.count = 0;
    if (s.is_length)
        simple_lengths(&s, in.data, in.size, &whole);
    else
        simple_marks(&s, in.data, in.size, &whole);
    run(&s, in.data, in.size, in.size, 1, &other);
    check_same(&whole, &other);
    run(&s, in.data, in.size, 1, 1, &other);
    check_same(&whole, &other);
    for (size_t cut = 1; cut < in.size; cut += 1 + in.size / 16) {
        run(&s, in.data, in.size, cut, in.size, &other);
        check_same(&whole, &other);
    }
    check_encode(&s, in.data, in.size);
    check_refused(&s, in.data, in.size);
    return 0;
}
