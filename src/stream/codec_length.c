/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records with their length in front.
 *
 * The length comes from a stranger. It is a uint64_t, and is compared before it is added to
 * anything: sums that would not fit stay at the largest number, which is too long in any case. Once
 * a length has been accepted, header and payload together are `need_`, at most max and a header,
 * which always fits; the header is not looked at again.
 */
#include "stream/codec.h"

#include <blitz/error.h>
#include <string.h>

enum { MAX_VARINT = 10, VARINT_BITS = 7, MORE = 0x80 };

int blz_codec_length(blz_codec *codec, const blz_length_options *options)
{
    blz_length_options o = options ? *options : (blz_length_options){0};
    unsigned width = o.width ? o.width : 4;
    unsigned room = BLZ_HEADER_MAX - (width == BLZ_VARINT ? MAX_VARINT : width);
    int rc;

    if ((width > 4 && width != 8 && width != BLZ_VARINT) || o.offset > room)
        return -EINVAL;
    if (o.adjustment == INT64_MIN)
        return -EINVAL;
    rc = blz__codec_init(codec, CODEC_LENGTH, o.max, o.skip_too_long);
    if (rc < 0)
        return rc;
    codec->width_ = (uint8_t)width;
    codec->offset_ = (uint8_t)o.offset;
    codec->adjustment_ = o.adjustment;
    codec->little_endian_ = o.little_endian;
    codec->keep_header_ = o.keep_header;
    return 0;
}

size_t blz__length_header(const blz_codec *codec)
{
    return codec->offset_ + (codec->width_ == BLZ_VARINT ? 1u : codec->width_);
}

/* ---- decoding ---- */

static uint64_t number_of(const uint8_t *field, unsigned width, bool little_endian)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < width; i++)
        number = number << 8 | field[little_endian ? width - 1 - i : i];
    return number;
}

/* How many bytes it has; 0: there are more; -EBADMSG: it does not fit. */
static int varint_of(const uint8_t *field, size_t len, uint64_t *number)
{
    *number = 0;
    for (unsigned i = 0; i < MAX_VARINT; i++) {
        if (i == len)
            return 0;
        if (i == MAX_VARINT - 1 && field[i] > 1)
            return -EBADMSG;
        *number |= (uint64_t)(field[i] & (MORE - 1)) << (i * VARINT_BITS);
        if (!(field[i] & MORE))
            return (int)i + 1;
    }
    return -EBADMSG;
}

/* The length of the header and what it says; 0: it is not there yet; or an error. */
static int read_header(const blz_codec *codec, const uint8_t *data, size_t len, uint64_t *number)
{
    int width = codec->width_;

    if (len < blz__length_header(codec))
        return 0;
    if (width == BLZ_VARINT)
        width = varint_of(data + codec->offset_, len - codec->offset_, number);
    else
        *number = number_of(data + codec->offset_, codec->width_, codec->little_endian_);
    return width > 0 ? codec->offset_ + width : width;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* False: it would be less than nothing. */
static bool adjust(uint64_t *length, int64_t adjustment)
{
    if (adjustment >= 0)
        *length = add(*length, (uint64_t)adjustment);
    else if (*length >= (uint64_t)-adjustment)
        *length -= (uint64_t)-adjustment;
    else
        return false;
    return true;
}

/* Passes over what is there of a record that was too long. */
static size_t skip(blz_codec *codec, size_t len)
{
    size_t used = len < codec->skip_ ? len : (size_t)codec->skip_;

    codec->skip_ -= used;
    codec->seen_ = 0;
    return used;
}

/* Reads a new header: 1 when `need_` is known; 0: not yet; or an error. */
static int begin(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut)
{
    uint64_t length;
    int header = read_header(codec, data, len, &length);

    codec->seen_ = len < BLZ_HEADER_MAX ? len : BLZ_HEADER_MAX;
    if (header <= 0)
        return header;
    if (!adjust(&length, codec->adjustment_))
        return -EBADMSG;
    if (length <= codec->max) {
        codec->need_ = (size_t)header + (size_t)length;
        codec->header_ = (uint8_t)header;
        return 1;
    }
    if (codec->skip_too_long_) {
        codec->skip_ = add((uint64_t)header, length);
        cut->used = skip(codec, len);
    }
    return -EMSGSIZE;
}

int blz__length_decode(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut)
{
    size_t from;

    if (codec->skip_ > 0) {
        cut->used = skip(codec, len);
        return STEP_AGAIN;
    }
    if (codec->need_ == 0) {
        int rc = begin(codec, data, len, cut);
        if (rc <= 0)
            return rc;
    }
    if (len < codec->need_)
        return 0;
    from = codec->keep_header_ ? 0 : codec->header_;
    *cut = (blz_cut){.at = from, .len = codec->need_ - from, .used = codec->need_};
    codec->need_ = codec->seen_ = 0;
    return 1;
}

/* ---- encoding ---- */

/* The largest number that the field can hold. */
static uint64_t most(unsigned width)
{
    return width >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1;
}

static size_t put_varint(uint8_t *field, uint64_t number)
{
    size_t len = 0;

    while (number >= MORE) {
        field[len++] = (uint8_t)(number | MORE);
        number >>= VARINT_BITS;
    }
    field[len++] = (uint8_t)number;
    return len;
}

static size_t put_number(uint8_t *field, uint64_t number, unsigned width, bool little_endian)
{
    for (unsigned i = 0; i < width; i++, number >>= 8)
        field[little_endian ? i : width - 1 - i] = (uint8_t)number;
    return width;
}

int blz__length_encode(const blz_codec *codec, const uint8_t *prefix, size_t len,
                       blz_envelope *envelope)
{
    uint8_t *field = envelope->head + codec->offset_;
    uint64_t length = len;

    if (!adjust(&length, -codec->adjustment_))
        return -EINVAL;
    if (length > most(codec->width_))
        return -EMSGSIZE;
    if (prefix && codec->offset_ > 0)
        memcpy(envelope->head, prefix, codec->offset_);
    else
        memset(envelope->head, 0, codec->offset_);
    envelope->head_len = codec->offset_;
    envelope->head_len += codec->width_ == BLZ_VARINT
                              ? put_varint(field, length)
                              : put_number(field, length, codec->width_, codec->little_endian_);
    return 0;
}
