/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a byte many times. Lines are short: to call memchr for each costs more than to look at
 * their bytes. So the next few dozen places are found in one go, 64 bytes at a time, as the bits of
 * a word; and whoever goes through them takes one after the other. Where there are no instructions
 * for that, memchr it is.
 */
#include "stream/reader.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Of 64 bytes, which are the wanted one; the first is the lowest bit. */
__attribute__((target("avx2"))) static inline uint64_t matches(const char *at, unsigned char byte)
{
    const __m256i wanted = _mm256_set1_epi8((char)byte), *from = (const __m256i *)(const void *)at;
    __m256i low = _mm256_cmpeq_epi8(_mm256_loadu_si256(from), wanted);
    __m256i high = _mm256_cmpeq_epi8(_mm256_loadu_si256(from + 1), wanted);

    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

/* Whole blocks; what is behind the last one is left. */
__attribute__((target("avx2"))) static size_t scan_blocks(const char *buf, size_t from, size_t end,
                                                          unsigned char byte, size_t *found,
                                                          unsigned *count)
{
    unsigned n = 0;

    for (; end - from >= 64; from += 64)
        for (uint64_t bits = matches(buf + from, byte); bits; bits &= bits - 1) {
            if (n == BLZ_READER_FOUND) {
                *count = n;
                return found[n - 1] + 1;
            }
            found[n++] = from + (size_t)__builtin_ctzll(bits);
        }
    *count = n;
    return from;
}

static bool has_blocks(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static size_t scan_blocks(const char *buf, size_t from, size_t end, unsigned char byte,
                          size_t *found, unsigned *count)
{
    (void)buf, (void)end, (void)byte, (void)found, (void)count;
    return from;
}

static bool has_blocks(void)
{
    return false;
}
#endif

size_t blz__scan(const char *buf, size_t from, size_t end, unsigned char byte, size_t *found,
                 unsigned *count)
{
    *count = 0;
    if (has_blocks())
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
