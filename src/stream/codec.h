/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of codecs, between codec.c and codec_*.c. */
#ifndef BLZ_STREAM_CODEC_H
#define BLZ_STREAM_CODEC_H

#include <blitz/codec.h>

enum { CODEC_DELIMITER = 1, CODEC_LENGTH };

/* Sets what all have in common. -EINVAL: `max` is too large. */
int blz__codec_init(blz_codec *codec, int kind, size_t max, bool skip_too_long);

/*
 * One step from the first byte that is not used, *cut being all zero: as blz_codec_decode, but a
 * failure is only told, and the step that ends a skip returns STEP_AGAIN with what it has used.
 */
enum { STEP_AGAIN = 2 };
int blz__delimiter_decode(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut);
int blz__length_decode(blz_codec *codec, const uint8_t *data, size_t len, blz_cut *cut);

int blz__delimiter_finish(blz_codec *codec, size_t len, blz_cut *cut);
int blz__delimiter_encode(const blz_codec *codec, const uint8_t *payload, size_t len,
                          blz_envelope *envelope);
int blz__length_encode(const blz_codec *codec, const uint8_t *prefix, size_t len,
                       blz_envelope *envelope);
size_t blz__length_header(
    const blz_codec *codec); /* the longest there is; a varint: the shortest */

#endif
