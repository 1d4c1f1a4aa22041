/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that end with a byte string; lines are those that end with "\n".
 *
 * The search is that of Knuth, Morris and Pratt: `matched_` bytes of the delimiter are the last
 * ones seen, the most there can be, and when the next byte does not go on with them, fallback_ says
 * how many of them can still be the beginning. So no byte is looked at again when more come, and no
 * delimiter makes it slow. While nothing is matched, memchr looks for the first byte.
 *
 * How long a record is at least: what has been seen, less what is matched, since these may become
 * the delimiter (and for lines less a CR at the end). It is too long as soon as that is; the search
 * goes no further than is needed to know.
 */
#include "stream/codec.h"

#include <blitz/error.h>
#include <string.h>

/* ---- settings ---- */

/* fallback[i]: of the first i + 1 bytes, how many at their end are also their beginning. */
static void fill_fallback(blz_codec *codec)
{
    const uint8_t *d = codec->delimiter_;

    codec->fallback_[0] = 0;
    for (size_t i = 1, n = 0; i < codec->delimiter_len_; i++) {
        while (n > 0 && d[i] != d[n])
            n = codec->fallback_[n - 1];
        n += d[i] == d[n];
        codec->fallback_[i] = (uint8_t)n;
    }
}

static void set_delimiter(blz_codec *codec, const void *delimiter, size_t len)
{
    memcpy(codec->delimiter_, delimiter, len);
    codec->delimiter_len_ = (uint8_t)len;
    fill_fallback(codec);
}

int blz_codec_delimiter(blz_codec *codec, const void *delimiter, size_t len,
                        const blz_delimiter_options *options)
{
    blz_delimiter_options o = options ? *options : (blz_delimiter_options){0};
    int rc;

    if (len == 0 || len > BLZ_DELIMITER_MAX)
        return -EINVAL;
    rc = blz__codec_init(codec, CODEC_DELIMITER, o.max, o.skip_too_long);
    if (rc < 0)
        return rc;
    set_delimiter(codec, delimiter, len);
    codec->keep_cr_ = true;
    codec->whole_only_ = o.whole_only;
    return 0;
}

int blz_codec_lines(blz_codec *codec, const blz_lines_options *options)
{
    blz_lines_options o = options ? *options : (blz_lines_options){0};
    int rc = blz__codec_init(codec, CODEC_DELIMITER, o.max, o.skip_too_long);

    if (rc < 0)
        return rc;
    set_delimiter(codec, "\n", 1);
    codec->keep_cr_ = o.keep_cr;
    codec->whole_only_ = o.whole_only;
    return 0;
}

/* ---- searching ---- */

/* Looks on from `seen_` to `end`: where the delimiter ends, or 0, and both are up to date. */
static size_t search(blz_codec *codec, const uint8_t *data, size_t end)
{
    size_t at = codec->seen_, matched = codec->matched_;

    while (at < end) {
        if (matched == 0) {
            const uint8_t *first = memchr(data + at, codec->delimiter_[0], end - at);
            at = first ? (size_t)(first - data) + 1 : end;
            matched = first != NULL;
        } else if (data[at] == codec->delimiter_[matched]) {
            at++;
            matched++;
        } else {
            matched = codec->fallback_[matched - 1];
        }
        if (matched == codec->delimiter_len_) {
            codec->seen_ = codec->matched_ = 0;
            return at;
        }
    }
    codec->seen_ = at;
    codec->matched_ = (uint8_t)matched;
    return 0;
}

/* Whether the last of these bytes is a CR that is no part of the line if its end comes now. */
static bool ends_in_cr(const blz_codec *codec, const uint8_t *data, size_t len)
{
    return !codec->keep_cr_ && len > 0 && data[len - 1] == '\r';
}

/* ---- decoding ---- */

/* Passes over the rest of a record that was too long: all that there is, or to its end. */
static int skip(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut)
{
    size_t end = search(codec, data, len);

    codec->skipping_ = end == 0;
    codec->seen_ = 0;
    cut->used = end ? end : len;
    return end ? STEP_AGAIN : 0;
}

/* `end`: where it ends, delimiter and all, or 0 if that is not known; then `len` are used. */
static int too_long(blz_codec *codec, size_t end, size_t len, blz_cut *cut)
{
    if (!codec->skip_too_long_)
        return -EMSGSIZE;
    codec->skipping_ = end == 0;
    codec->seen_ = 0;
    cut->used = end ? end : len;
    return -EMSGSIZE;
}

int blz__delimiter_decode(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut)
{
    size_t most = codec->max + codec->delimiter_len_ + !codec->keep_cr_;
    size_t limit = len < most ? len : most, end, least;

    if (codec->skipping_)
        return skip(codec, data, len, cut);
    end = search(codec, data, limit);
    least = end ? end - codec->delimiter_len_ : limit - codec->matched_;
    least -= codec->matched_ == 0 && ends_in_cr(codec, data, least);
    if (least > codec->max)
        return too_long(codec, end, limit, cut);
    if (!end)
        return 0;
    *cut = (blz_cut){.len = least, .used = end};
    return 1;
}

/* What is left is a record without a delimiter. A CR at its end is a part of it. */
int blz__delimiter_finish(blz_codec *codec, size_t len, blz_cut *cut)
{
    *cut = (blz_cut){.used = len};
    codec->seen_ = codec->matched_ = 0;
    if (len == 0 || codec->skipping_) {
        codec->skipping_ = false;
        return 0;
    }
    if (codec->whole_only_)
        return -ENODATA;
    if (len > codec->max)
        return -EMSGSIZE;
    cut->len = len;
    return 1;
}

/* ---- encoding ---- */

/* Whether the first delimiter in payload and delimiter is the last of them. */
static bool is_found_at_its_end(const blz_codec *codec, const uint8_t *payload, size_t len)
{
    blz_codec scan = *codec;

    blz_codec_reset(&scan);
    if (len > 0 && search(&scan, payload, len) > 0)
        return false;
    scan.seen_ = 0;
    return search(&scan, codec->delimiter_, codec->delimiter_len_) == codec->delimiter_len_;
}

int blz__delimiter_encode(const blz_codec *codec, const uint8_t *payload, size_t len,
                          blz_envelope *envelope)
{
    if (ends_in_cr(codec, payload, len) || !is_found_at_its_end(codec, payload, len))
        return -EINVAL;
    envelope->tail_len = codec->delimiter_len_;
    return 0;
}
