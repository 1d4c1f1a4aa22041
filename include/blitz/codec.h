/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing: where a message begins and ends in a stream of bytes. Lines, messages with a delimiter
 * of your own, messages with their length in front.
 *
 *     blz_codec codec;
 *     blz_cut cut;
 *     int rc = blz_codec_lines(&codec, &(blz_lines_options){.max = 4000});
 *     ...                                             // buf holds `len` bytes of the stream
 *     while ((rc = blz_codec_decode(&codec, &cut, buf, len)) == 1) {
 *         use_line(buf + cut.at, cut.len);            // in place: nothing is copied
 *         buf += cut.used;
 *         len -= cut.used;
 *     }
 *     // 0: the rest of buf is the beginning of a line; come again with more behind it
 *
 * A codec is a plain value: settings, and how far it has come in one stream. Nothing here reads,
 * waits or allocates; for that see blitz/records.h. It may be fed byte by byte or with everything
 * at once, and finds the same records, looking at each byte once. A record that is too long is
 * refused as soon as that is certain: a length of 2^63 costs its header, and an endless line `max`
 * bytes.
 *
 * After a record that is too long, either nothing more is decoded (the default: what follows can
 * hardly be meant), or, with `skip_too_long`, it is passed over and decoding goes on behind it: an
 * error once for each such record.
 *
 * One codec belongs to one thread or task at a time. [any thread]
 */
#ifndef BLITZ_CODEC_H
#define BLITZ_CODEC_H

#include <blitz/base.h>

BLZ_BEGIN_DECLS

/* The longest record if no `max` is given, and the largest `max`. */
#define BLZ_CODEC_MAX_DEFAULT ((size_t)1 << 20)
#define BLZ_CODEC_MAX_MAX     (SIZE_MAX / 4)

#define BLZ_DELIMITER_MAX 80 /* bytes of a delimiter */
#define BLZ_HEADER_MAX    64 /* bytes of a header: `offset`, and the length behind it */

/* How records are told apart. Made by one of the functions below. */
typedef struct blz_codec {
    size_t max;
    int64_t adjustment_;
    uint64_t skip_; /* bytes to pass over */
    size_t seen_, need_;
    int32_t failed_;
    uint8_t kind_, width_, offset_, header_;
    uint8_t delimiter_len_, matched_;
    bool little_endian_, keep_header_, keep_cr_, skip_too_long_, whole_only_, skipping_;
    uint8_t delimiter_[BLZ_DELIMITER_MAX];
    uint8_t fallback_[BLZ_DELIMITER_MAX];
    uint64_t reserved[5];
} blz_codec;

/* ---- Kinds of framing. `options` may be NULL; all zero means the default [any thread] ---- */

/*
 * Lines: they end with LF; a CR before it is no part of them. A CR anywhere else is. `max` counts
 * the bytes without the end of the line. 0, or -EINVAL: `max` is too large.
 */
typedef struct blz_lines_options {
    size_t max;         /* default: BLZ_CODEC_MAX_DEFAULT */
    bool keep_cr;       /* a CR before the LF is a part of the line */
    bool skip_too_long; /* a line that is too long is an error once; go on with the next one */
    bool whole_only;    /* bytes behind the last LF are an error, not a line */
    uint64_t reserved[2];
} blz_lines_options;
BLZ_API BLZ_NODISCARD int blz_codec_lines(blz_codec *codec, const blz_lines_options *options);

/*
 * Records that end with a byte string, "\r\n" or "--boundary", of 1 to BLZ_DELIMITER_MAX bytes,
 * which is copied. 0 or -EINVAL.
 */
typedef struct blz_delimiter_options {
    size_t max;
    bool skip_too_long;
    bool whole_only; /* bytes behind the last delimiter are an error, not a record */
    uint64_t reserved[2];
} blz_delimiter_options;
BLZ_API BLZ_NODISCARD int blz_codec_delimiter(blz_codec *codec, const void *delimiter, size_t len,
                                              const blz_delimiter_options *options);

/*
 * Records with their length in front:
 *
 *     | offset bytes | length field | payload: length + adjustment bytes |
 *
 * The length is a number of `width` bytes, or with BLZ_VARINT one of 7 bits a byte, the lowest
 * first, as protobuf has them. A length that counts its own four bytes is an adjustment of -4; one
 * that leaves out six bytes of header behind it, of +6. `max` is that of the payload, after the
 * adjustment. 0, or -EINVAL: a width or an offset that cannot be.
 */
enum { BLZ_VARINT = 16 };
typedef struct blz_length_options {
    size_t max;
    unsigned width;     /* 1, 2, 3, 4, 8 or BLZ_VARINT; default: 4 */
    unsigned offset;    /* up to BLZ_HEADER_MAX less the length field */
    int64_t adjustment; /* what the payload has more than the length says */
    bool little_endian; /* default: the first byte is the highest, as in network protocols */
    bool keep_header;   /* a decoded record begins with its header */
    bool skip_too_long;
    uint64_t reserved[2];
} blz_length_options;
BLZ_API BLZ_NODISCARD int blz_codec_length(blz_codec *codec, const blz_length_options *options);

/* ---- Decoding [any thread; one at a time] ---- */

/* What was found in the bytes that were given. */
typedef struct blz_cut {
    size_t at, len; /* the record: bytes [at, at + len) */
    size_t used;    /* so many bytes are done with, record and all; they are not given again */
    uint64_t reserved;
} blz_cut;

/*
 * Looks at the bytes of the stream that have come and are not used: those of the last time without
 * the `used` ones, and what has come since behind them. 1: a record, as *cut says. 0: there is no
 * whole record yet. Errors:
 *
 *     -EMSGSIZE   a record that is too long; with skip_too_long it is over with this once
 *     -EBADMSG    a length that cannot be: a varint of more than 64 bits, less than the adjustment
 *
 * Mind `used` whatever the result. After an error, other than one that is skipped, every further
 * call gives that error again.
 */
BLZ_API int blz_codec_decode(blz_codec *codec, blz_cut *cut, const void *data, size_t len);

/*
 * Looks at the bytes that decode has left at the end of the stream. 1: a last record, a line
 * without its end say; 0: there is none; -ENODATA: the end came within a record; and the errors of
 * blz_codec_decode.
 */
BLZ_API int blz_codec_finish(blz_codec *codec, blz_cut *cut, const void *data, size_t len);

/*
 * How many bytes there must be, those included that have been given and not used, before decode can
 * tell more: for reading a long record at once, into memory that is large enough. Never more than
 * blz_codec_room.
 */
BLZ_API size_t blz_codec_wants(const blz_codec *codec);

/* The size of a buffer that has room for every record that is not too long, with all around it. */
BLZ_API size_t blz_codec_room(const blz_codec *codec);

/* Begins a new stream with the settings of the codec. */
BLZ_API void blz_codec_reset(blz_codec *codec);

/* ---- Encoding [any thread] ---- */

/* What goes around a payload. `tail` is in the codec. */
typedef struct blz_envelope {
    uint8_t head[BLZ_HEADER_MAX];
    size_t head_len;
    const uint8_t *tail;
    size_t tail_len;
} blz_envelope;

/*
 * Says what must be sent before and behind a payload so that it is decoded as one record. `prefix`
 * are the `offset` bytes in front of the length; NULL is zeros. 0, or
 *
 *     -EMSGSIZE   longer than `max`, or than the length field can say
 *     -EINVAL     no such record can be: it has the delimiter within or across its end; a line ends
 *                 in a CR; it is shorter than the adjustment
 */
BLZ_API BLZ_NODISCARD int blz_codec_encode(const blz_codec *codec, blz_envelope *envelope,
                                           const void *prefix, const void *payload, size_t len);

BLZ_END_DECLS
#endif
