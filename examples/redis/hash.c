/* SPDX-License-Identifier: Apache-2.0 */
/* See hash.h, and "SipHash: a fast short-input PRF" by Aumasson and Bernstein. */
#include "hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

struct sip {
    uint64_t a, b, c, d;
};

int hash_secret_init(struct hash_secret *secret)
{
    ssize_t n;

    do
        n = getrandom(secret, sizeof *secret, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *secret ? 0 : n < 0 ? -errno : -EIO;
}

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void mix(struct sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static inline void take(struct sip *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

/* The bytes that do not fill a word, and the length. */
static inline uint64_t last_word(const char *data, size_t len)
{
    uint64_t word = (uint64_t)len << 56;

    for (size_t i = 0; i < (len & 7); i++)
        word |= (uint64_t)(unsigned char)data[(len & ~(size_t)7) + i] << (8 * i);
    return word;
}

uint64_t hash_bytes(const struct hash_secret *secret, const void *data, size_t len)
{
    struct sip s = {
        secret->word[0] ^ 0x736f6d6570736575u,
        secret->word[1] ^ 0x646f72616e646f6du,
        secret->word[0] ^ 0x6c7967656e657261u,
        secret->word[1] ^ 0x7465646279746573u,
    };
    const char *bytes = data;
    uint64_t word;

    for (size_t i = 0; i + 8 <= len; i += 8) {
        memcpy(&word, bytes + i, 8);
        take(&s, word);
    }
    take(&s, last_word(bytes, len));
    s.c ^= 0xff;
    mix(&s);
    mix(&s);
    mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
