/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of parallel algorithms: inputs of all the shapes that have ever broken one, and pools
 * of all the sizes that matter.
 *
 *     static void check_sum(blz_par *par, void *arg)          // in each pool; uses check()
 *     {
 *         uint64_t v[100];
 *
 *         for (int p = 0; p < NR_PATTERNS; p++) {
 *             fill_pattern(v, 100, p);
 *             check(sum(par, v, 100) == serial_sum(v, 100));
 *         }
 *     }
 *
 *     static void a_sum_is_that_of_a_loop(void **state)
 *     {
 *         in_pools(check_sum, NULL);
 *     }
 */
#ifndef BLZ_TESTS_PAR_H
#define BLZ_TESTS_PAR_H

#include "harness.h"

enum pattern {
    PATTERN_RANDOM,
    PATTERN_SORTED,
    PATTERN_REVERSED,
    PATTERN_EQUAL,
    PATTERN_ORGAN_PIPE,    /* up, then down */
    PATTERN_FEW_DISTINCT,  /* seven values */
    PATTERN_RUNS,          /* sorted runs, one after the other */
    PATTERN_NEARLY_SORTED, /* but for one in a hundred */
    PATTERN_SAWTOOTH,      /* 0 1 2 ... 16 0 1 2 ... */
    PATTERN_ZEROS_AND_MAX, /* the two ends of the type */
    NR_PATTERNS,
};

const char *pattern_name(int pattern);

/* The same values for the same n and pattern in every run; cast down they keep their shape, but
 * for PATTERN_RANDOM's below 2^63. */
void fill_pattern(uint64_t *v, size_t n, int pattern);

/* The number after z in a good pseudo-random order. */
uint64_t mix(uint64_t z);

/* Every size up to 40, then fewer and fewer: for (n = 0; n <= most; n = next_size(n)) */
size_t next_size(size_t n);

/* Pools of test_memory(). */
blz_pool *new_pool_with(const blz_pool_options *options);
blz_pool *new_pool_of(unsigned threads);
void free_pool(blz_pool *pool);

/* Calls body in pools of 1, 2, 3 and 8 threads. */
void in_pools(blz_par_fn body, void *arg);

/* Calls it in a pool of as many threads. */
void in_pool_of(unsigned threads, blz_par_fn body, void *arg);

#endif
