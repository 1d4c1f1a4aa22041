/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a byte many times. Lines are short: to call memchr for each costs more than to look at
 * their bytes. So the next few dozen places are found in one go, 64 bytes at a time, as the bits of
 * a word; and whoever goes through them takes one after the other.
 */
#include "stream/reader.h"

#ifdef __SSE2__
#include <emmintrin.h>

static uint64_t matches(const char *at, __m128i wanted)
{
    uint64_t bits = 0;

    for (int i = 3; i >= 0; i--) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        bits = bits << 16 | (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted));
    }
    return bits;
}

/* Whole blocks of 64. What is behind the last one is left. */
static size_t scan_blocks(const char *buf, size_t from, size_t end, unsigned char byte,
                          size_t *found, unsigned *count)
{
    const __m128i wanted = _mm_set1_epi8((char)byte);

    while (end - from >= 64) {
        uint64_t bits = matches(buf + from, wanted);
        for (; bits; bits &= bits - 1) {
            size_t at = from + (size_t)__builtin_ctzll(bits);
            if (*count == BLZ_READER_FOUND)
                return found[*count - 1] + 1;
            found[(*count)++] = at;
        }
        from += 64;
    }
    return from;
}
#else
static size_t scan_blocks(const char *buf, size_t from, size_t end, unsigned char byte,
                          size_t *found, unsigned *count)
{
    (void)buf, (void)end, (void)byte, (void)found, (void)count;
    return from;
}
#endif

size_t blz__scan(const char *buf, size_t from, size_t end, unsigned char byte, size_t *found,
                 unsigned *count)
{
    from = scan_blocks(buf, from, end, byte, found, count);
    while (from < end && *count < BLZ_READER_FOUND) {
        const char *at = memchr(buf + from, byte, end - from);
        if (!at)
            return end;
        found[(*count)++] = (size_t)(at - buf);
        from = (size_t)(at - buf) + 1;
    }
    return from;
}
