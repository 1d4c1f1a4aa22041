/* SPDX-License-Identifier: Apache-2.0 */
#include "par.h"

/* ---- patterns ---- */

static const char *const names[NR_PATTERNS] = {
    "random",       "sorted", "reversed",      "equal",    "organ pipe",
    "few distinct", "runs",   "nearly sorted", "sawtooth", "zeros and max",
};

const char *pattern_name(int pattern)
{
    return names[pattern];
}

uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t value_at(size_t i, size_t n, int pattern)
{
    uint64_t random = mix(i + n);
    size_t run = n / 5 + 1;

    switch ((enum pattern)pattern) {
    case PATTERN_SORTED:
        return i;
    case PATTERN_REVERSED:
        return n - i;
    case PATTERN_EQUAL:
        return 42;
    case PATTERN_ORGAN_PIPE:
        return i < n / 2 ? i : n - i;
    case PATTERN_FEW_DISTINCT:
        return random % 7;
    case PATTERN_RUNS:
        return i % run * 5 + i / run;
    case PATTERN_NEARLY_SORTED:
        return random % 100 == 0 ? random % n : i;
    case PATTERN_SAWTOOTH:
        return i % 17;
    case PATTERN_ZEROS_AND_MAX:
        return random & 1 ? UINT64_MAX : 0;
    case PATTERN_RANDOM:
    case NR_PATTERNS:
        break;
    }
    return random >> 1;
}

void fill_pattern(uint64_t *v, size_t n, int pattern)
{
    for (size_t i = 0; i < n; i++)
        v[i] = value_at(i, n, pattern);
}

size_t next_size(size_t n)
{
    return n < 40 ? n + 1 : n + n / 7 + 1;
}

/* ---- pools ---- */

blz_pool *new_pool_with(const blz_pool_options *options)
{
    blz_pool_options o = *options;
    blz_pool *pool;

    o.allocator = test_memory();
    check(blz_pool_new(&pool, &o) == 0);
    return pool;
}

blz_pool *new_pool_of(unsigned threads)
{
    return new_pool_with(&(blz_pool_options){.threads = threads});
}

void free_pool(blz_pool *pool)
{
    check(blz_pool_free(pool) == 0);
}

void in_pool_of(unsigned threads, blz_par_fn body, void *arg)
{
    blz_pool *pool = new_pool_of(threads);

    blz_pool_run(pool, body, arg);
    free_pool(pool);
}

void in_pools(blz_par_fn body, void *arg)
{
    static const unsigned sizes[] = {1, 2, 3, 8};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        in_pool_of(sizes[i], body, arg);
}
