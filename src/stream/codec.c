/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What codecs have in common.
 *
 * The invariant: `seen_` bytes from the first unused one have been looked at and will not be again,
 * so what is fed byte by byte costs as much as what comes at once. Between two calls nothing points
 * into the caller's memory, which may move. A codec that has failed stays so; one that skips counts
 * what is left of a record in `skip_`, or looks for a delimiter, using all that it is given.
 */
#include "stream/codec.h"

#include "stream/stream.h"

#include <blitz/error.h>
#include <string.h>

_Static_assert(sizeof(blz_codec) == 256, "part of the ABI");

int blz__codec_init(blz_codec *codec, int kind, size_t max, bool skip_too_long)
{
    if (max > BLZ_CODEC_MAX_MAX)
        return -EINVAL;
    *codec = (blz_codec){.max = max ? max : BLZ_CODEC_MAX_DEFAULT,
                         .kind_ = (uint8_t)kind,
                         .skip_too_long_ = skip_too_long};
    return 0;
}

void blz_codec_reset(blz_codec *codec)
{
    codec->skip_ = 0;
    codec->seen_ = codec->need_ = 0;
    codec->failed_ = 0;
    codec->matched_ = 0;
    codec->skipping_ = false;
}

/* ---- decoding ---- */

static int step(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut)
{
    *cut = (blz_cut){0};
    return codec->kind_ == CODEC_LENGTH ? blz__length_decode(codec, data, len, cut)
                                        : blz__delimiter_decode(codec, data, len, cut);
}

/* An error is for good, unless it is a record that is skipped. */
static int settle(blz_codec *codec, int rc)
{
    if (rc < 0 && !(rc == -EMSGSIZE && codec->skip_too_long_))
        codec->failed_ = rc;
    return rc;
}

int blz_codec_decode(blz_codec *codec, blz_cut *cut, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    size_t skipped = 0;
    int rc;

    *cut = (blz_cut){0};
    if (codec->failed_)
        return codec->failed_;
    if (len < codec->seen_)
        return -EINVAL; /* some were given before that are not there any more */
    if (len == 0)
        return 0;
    while ((rc = step(codec, bytes + skipped, len - skipped, cut)) == STEP_AGAIN) {
        skipped += cut->used;
        if (skipped == len) {
            *cut = (blz_cut){.used = len};
            return 0;
        }
    }
    cut->at += skipped;
    cut->used += skipped;
    return settle(codec, rc);
}

int blz_codec_finish(blz_codec *codec, blz_cut *cut, const void *data, size_t len)
{
    int rc = blz_codec_decode(codec, cut, data, len);

    if (rc != 0)
        return rc;
    len -= cut->used;
    if (codec->kind_ == CODEC_DELIMITER) {
        size_t skipped = cut->used;
        rc = blz__delimiter_finish(codec, len, cut);
        cut->at += rc == 1 ? skipped : 0;
        cut->used += skipped;
        return settle(codec, rc);
    }
    return settle(codec, len > 0 || codec->skip_ > 0 ? -ENODATA : 0);
}

/* ---- sizes ---- */

size_t blz_codec_wants(const blz_codec *codec)
{
    if (codec->kind_ == CODEC_LENGTH && codec->need_ > 0)
        return codec->need_;
    if (codec->kind_ == CODEC_LENGTH && codec->skip_ == 0 &&
        codec->seen_ < blz__length_header(codec))
        return blz__length_header(codec);
    return codec->seen_ + 1;
}

size_t blz_codec_room(const blz_codec *codec)
{
    if (codec->kind_ == CODEC_LENGTH)
        return codec->max + BLZ_HEADER_MAX;
    return codec->max + codec->delimiter_len_ + 1; /* and a CR */
}

/* ---- encoding ---- */

int blz_codec_encode(const blz_codec *codec, blz_envelope *envelope, const void *prefix,
                     const void *payload, size_t len)
{
    envelope->head_len = envelope->tail_len = 0;
    envelope->tail = codec->delimiter_;
    if (!length_is_valid(len))
        return -EINVAL;
    if (len > codec->max)
        return -EMSGSIZE;
    return codec->kind_ == CODEC_LENGTH ? blz__length_encode(codec, prefix, len, envelope)
                                        : blz__delimiter_encode(codec, payload, len, envelope);
}
