/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Radix sorts: the sort of sort_span.c, with buckets numbered by a digit of the key in place of a
 * search in a tree. From the highest digit down, and each time from the highest bit in which the
 * keys of the span differ at all: leading digits that are the same are not looked at, and a few
 * hundred elements are merge sorted by their keys, whatever digits they still have. So numbers that
 * are spread out take two distributions, not eight.
 *
 * Keys are made into unsigned numbers of the same order: the sign bit of an integer is turned
 * round; of a float too, and all other bits if it was set.
 */
#include "par/sort.h"

#include <blitz/error.h>
#include <string.h>

/* ---- keys ---- */

static inline uint64_t load_32(const void *from)
{
    uint32_t bits;

    memcpy(&bits, from, sizeof bits);
    return bits;
}

static inline uint64_t load_64(const void *from)
{
    uint64_t bits;

    memcpy(&bits, from, sizeof bits);
    return bits;
}

static inline uint64_t key_u32(const void *from)
{
    return load_32(from);
}

static inline uint64_t key_u64(const void *from)
{
    return load_64(from);
}

static inline uint64_t key_i32(const void *from)
{
    return load_32(from) ^ 0x80000000u;
}

static inline uint64_t key_i64(const void *from)
{
    return load_64(from) ^ UINT64_C(1) << 63;
}

static inline uint64_t key_f32(const void *from)
{
    uint32_t bits = (uint32_t)load_32(from);

    return bits ^ ((0 - (bits >> 31)) | 0x80000000u);
}

static inline uint64_t key_f64(const void *from)
{
    uint64_t bits = load_64(from);

    return bits ^ ((0 - (bits >> 63)) | UINT64_C(1) << 63);
}

/* ---- kernels ---- */

/* Elements of a size, with the key at their beginning. */
#define RADIX_KERNELS(name, type, key)                                                      \
    BLZ_SORT_DEFINED_ bool name##_less_(const void *a, const void *b, void *arg)            \
    {                                                                                       \
        (void)arg;                                                                          \
        return key(a) < key(b);                                                             \
    }                                                                                       \
    BLZ_SORT_COMMON_KERNELS_(name, type)                                                    \
    static void name##_classify_(const struct blz_sort_split_ *by, const char *v, size_t n, \
                                 uint16_t *ids, size_t *counts, void *arg)                  \
    {                                                                                       \
        uint64_t mask = ((uint64_t)1 << by->log) - 1;                                       \
        unsigned shift = by->shift;                                                         \
                                                                                            \
        (void)arg, (void)ids;                                                               \
        for (size_t i = 0; i < n; i++)                                                      \
            counts[key(v + i * sizeof(type)) >> shift & mask]++;                            \
    }                                                                                       \
    static void name##_scatter_(const struct blz_sort_split_ *by, const char *v,            \
                                const uint16_t *ids, size_t n, char **to)                   \
    {                                                                                       \
        uint64_t mask = ((uint64_t)1 << by->log) - 1;                                       \
        unsigned shift = by->shift;                                                         \
                                                                                            \
        (void)ids;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                    \
            const char *element = v + i * sizeof(type);                                     \
            blz_sort_move_(element, &to[key(element) >> shift & mask], sizeof(type));       \
        }                                                                                   \
    }                                                                                       \
    static uint64_t name##_differing_(const char *v, size_t n)                              \
    {                                                                                       \
        uint64_t first = key(v), differing = 0;                                             \
                                                                                            \
        for (size_t i = 1; i < n; i++)                                                      \
            differing |= key(v + i * sizeof(type)) ^ first;                                 \
        return differing;                                                                   \
    }                                                                                       \
    static const struct blz_sort_kernels_ name = {                                          \
        sizeof(type),      1,                                                               \
        name##_less_,      name##_leaf_,                                                    \
        name##_merge_,     name##_run_,                                                     \
        name##_classify_,  name##_scatter_,                                                 \
        name##_partition_, name##_differing_,                                               \
    };

typedef struct bytes_4 {
    char bytes[4];
} bytes_4;
typedef struct bytes_8 {
    char bytes[8];
} bytes_8;
typedef struct bytes_16 {
    char bytes[16];
} bytes_16;

RADIX_KERNELS(alone_u32, bytes_4, key_u32)
RADIX_KERNELS(alone_u64, bytes_8, key_u64)
RADIX_KERNELS(alone_i32, bytes_4, key_i32)
RADIX_KERNELS(alone_i64, bytes_8, key_i64)
RADIX_KERNELS(alone_f32, bytes_4, key_f32)
RADIX_KERNELS(alone_f64, bytes_8, key_f64)
RADIX_KERNELS(pair_u32, bytes_8, key_u32)
RADIX_KERNELS(pair_u64, bytes_16, key_u64)
RADIX_KERNELS(pair_i32, bytes_8, key_i32)
RADIX_KERNELS(pair_i64, bytes_16, key_i64)
RADIX_KERNELS(pair_f32, bytes_8, key_f32)
RADIX_KERNELS(pair_f64, bytes_16, key_f64)

static const struct {
    size_t size;
    uint64_t (*key)(const void *from);
    const struct blz_sort_kernels_ *alone, *pair;
} keys[] = {
    [BLZ_PAR_KEY_U32] = {4, key_u32, &alone_u32, &pair_u32},
    [BLZ_PAR_KEY_U64] = {8, key_u64, &alone_u64, &pair_u64},
    [BLZ_PAR_KEY_I32] = {4, key_i32, &alone_i32, &pair_i32},
    [BLZ_PAR_KEY_I64] = {8, key_i64, &alone_i64, &pair_i64},
    [BLZ_PAR_KEY_F32] = {4, key_f32, &alone_f32, &pair_f32},
    [BLZ_PAR_KEY_F64] = {8, key_f64, &alone_f64, &pair_f64},
};

/* ---- elements of any size: pairs of the key and the number ---- */

typedef struct pair {
    uint64_t key;
    size_t index;
} pair;

_Static_assert(sizeof(pair) == sizeof(bytes_16), "a pair is sorted by pair_u64");

typedef struct source {
    size_t size, offset;
    uint64_t (*key)(const void *from);
    blz_par_key_fn user_key;
    void *arg;
} source;

static void fill_from_bits(const void *v, size_t begin, size_t end, void *pairs, void *arg)
{
    const source *s = arg;

    for (size_t i = begin; i < end; i++) {
        const char *from = (const char *)v + i * s->size + s->offset;
        ((pair *)pairs)[i] = (pair){s->key(from), i};
    }
}

static void fill_from_user(const void *v, size_t begin, size_t end, void *pairs, void *arg)
{
    const source *s = arg;

    for (size_t i = begin; i < end; i++)
        ((pair *)pairs)[i] = (pair){s->user_key((const char *)v + i * s->size, s->arg), i};
}

int blz_par_sort_by_key(blz_par *par, void *v, size_t n, size_t size, blz_par_key_fn key, void *arg,
                        const blz_par_options *options)
{
    struct blz_sort_cached_ cached = {&pair_u64, size, offsetof(pair, index), fill_from_user};
    source s = {.size = size, .user_key = key, .arg = arg};

    if (size == 0)
        return -EINVAL;
    return blz_par_sort_cached_(par, &cached, v, n, &s, options);
}

int blz_par_radix_sort(blz_par *par, void *v, size_t n, size_t size, size_t key_offset,
                       blz_par_key_type key, const blz_par_options *options)
{
    struct blz_sort_cached_ cached = {&pair_u64, size, offsetof(pair, index), fill_from_bits};
    source s = {.size = size, .offset = key_offset};

    if ((unsigned)key > BLZ_PAR_KEY_F64 || keys[key].size > size ||
        key_offset > size - keys[key].size)
        return -EINVAL;
    if (size == keys[key].size)
        return blz_par_sort_(par, keys[key].alone, v, n, false, NULL, options);
    if (size == 2 * keys[key].size && key_offset == 0)
        return blz_par_sort_(par, keys[key].pair, v, n, true, NULL, options);
    s.key = keys[key].key;
    return blz_par_sort_cached_(par, &cached, v, n, &s, options);
}
