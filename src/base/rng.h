/* SPDX-License-Identifier: Apache-2.0 */
/* xorshift64*: a word of state, a few instructions, good enough to pick a victim. Never zero. */
#ifndef BLZ_BASE_RNG_H
#define BLZ_BASE_RNG_H

#include <stdint.h>

typedef struct blz__rng {
    uint64_t state;
} blz__rng;

static inline void blz__rng_init(blz__rng *rng, uint64_t seed)
{
    rng->state = seed * 0x9E3779B97F4A7C15u;
    if (rng->state == 0)
        rng->state = 0x9E3779B97F4A7C15u;
}

static inline uint64_t blz__rng_next(blz__rng *rng)
{
    uint64_t x = rng->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * 0x2545F4914F6CDD1Du;
}

/* Uniform in 0 .. n - 1, without a division. */
static inline uint32_t blz__rng_below(blz__rng *rng, uint32_t n)
{
    return (uint32_t)(((blz__rng_next(rng) >> 32) * n) >> 32);
}

#endif
