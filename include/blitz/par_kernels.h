/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the macros of par_scan.h and par_group.h are made of, and the functions behind them. Nothing
 * here is for programs to use by itself.
 *
 * The library cuts an array into blocks and decides which thread does what with them. It calls
 * functions that the macros make, for a block at a time, with the operation compiled into them.
 */
#ifndef BLITZ_PAR_KERNELS_H
#define BLITZ_PAR_KERNELS_H

#include <blitz/par_for.h>

BLZ_BEGIN_DECLS

struct blz_par_arrays_ {
    const void *in;
    void *out, *rest;
    size_t n;
    void *arg;
};

/* The value of the elements begin to end - 1 alone (there is one at least). */
typedef int (*blz_par_sum_fn_)(size_t begin, size_t end, void *sum, void *arg);

/* Writes their results; *carry is the value of all before them, then of all through them. */
typedef int (*blz_par_write_fn_)(size_t begin, size_t end, void *carry, bool first, void *arg);

struct blz_par_chain_ {
    size_t n, size; /* elements, bytes of one */
    size_t value_size;
    void *arg;
    blz_par_sum_fn_ sum;
    blz_par_write_fn_ write;
    void (*add)(void *left, const void *right, void *arg);
};

BLZ_API int blz_par_chain_run_(blz_par *par, const struct blz_par_chain_ *chain, void *value,
                               bool starts, const blz_par_options *options);
BLZ_API int blz_par_pack_(blz_par *par, size_t size, struct blz_par_arrays_ *arrays,
                          blz_par_sum_fn_ count, blz_par_write_fn_ write, size_t *nr,
                          const blz_par_options *options);
BLZ_API int blz_par_partition_(blz_par *par, size_t size, struct blz_par_arrays_ *arrays,
                               blz_par_sum_fn_ count, blz_par_write_fn_ write, size_t *nr,
                               const blz_par_options *options);

/* Four tables, `stride` apart, take turns: one would have to wait for its own last addition. */
typedef int (*blz_par_tally_fn_)(size_t begin, size_t end, size_t *counts, size_t nr, size_t stride,
                                 void *arg);
typedef int (*blz_par_tally_shared_fn_)(size_t begin, size_t end, size_t *counts, size_t nr,
                                        void *arg);
BLZ_API int blz_par_histogram_(blz_par *par, struct blz_par_arrays_ *arrays,
                               blz_par_tally_fn_ tally, blz_par_tally_shared_fn_ tally_shared,
                               size_t *counts, size_t nr, const blz_par_options *options);

/* The sum of a block goes in four chains of operations, since one would be a wait for each. */
#define BLZ_PAR_SCAN_KERNELS_(name, type)                                                     \
    BLZ_PAR_DEFINED_ int name##_sum_(size_t begin, size_t end, void *sum, void *argument)     \
    {                                                                                         \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;           \
        const type *in = (const type *)s->in + begin;                                         \
        size_t len = end - begin, part = len / 4;                                             \
        void *arg = s->arg;                                                                   \
        type v0 = in[0];                                                                      \
                                                                                              \
        if (part > 0) {                                                                       \
            type v1 = in[part], v2 = in[2 * part], v3 = in[3 * part];                         \
                                                                                              \
            for (size_t i = 1; i < part; i++) {                                               \
                v0 = name##_op_(v0, in[i], arg);                                              \
                v1 = name##_op_(v1, in[part + i], arg);                                       \
                v2 = name##_op_(v2, in[2 * part + i], arg);                                   \
                v3 = name##_op_(v3, in[3 * part + i], arg);                                   \
            }                                                                                 \
            v0 = name##_op_(name##_op_(v0, v1, arg), name##_op_(v2, v3, arg), arg);           \
        }                                                                                     \
        for (size_t i = part > 0 ? 4 * part : 1; i < len; i++)                                \
            v0 = name##_op_(v0, in[i], arg);                                                  \
        *(type *)sum = v0;                                                                    \
        return 0;                                                                             \
    }                                                                                         \
                                                                                              \
    BLZ_PAR_DEFINED_ int name##_inclusive_(size_t begin, size_t end, void *carry, bool first, \
                                           void *argument)                                    \
    {                                                                                         \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;           \
        const type *in = (const type *)s->in;                                                 \
        type *out = (type *)s->out;                                                           \
        void *arg = s->arg;                                                                   \
        size_t i = begin;                                                                     \
        type value = first ? in[i] : *(type *)carry;                                          \
                                                                                              \
        if (first)                                                                            \
            out[i++] = value;                                                                 \
        for (; i < end; i++) {                                                                \
            value = name##_op_(value, in[i], arg);                                            \
            out[i] = value;                                                                   \
        }                                                                                     \
        *(type *)carry = value;                                                               \
        return 0;                                                                             \
    }                                                                                         \
                                                                                              \
    BLZ_PAR_DEFINED_ int name##_exclusive_(size_t begin, size_t end, void *carry, bool first, \
                                           void *argument)                                    \
    {                                                                                         \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;           \
        const type *in = (const type *)s->in;                                                 \
        type *out = (type *)s->out;                                                           \
        void *arg = s->arg;                                                                   \
        type value = *(type *)carry;                                                          \
                                                                                              \
        (void)first;                                                                          \
        for (size_t i = begin; i < end; i++) {                                                \
            type next = name##_op_(value, in[i], arg);                                        \
                                                                                              \
            out[i] = value;                                                                   \
            value = next;                                                                     \
        }                                                                                     \
        *(type *)carry = value;                                                               \
        return 0;                                                                             \
    }                                                                                         \
                                                                                              \
    BLZ_PAR_DEFINED_ void name##_add_(void *left, const void *right, void *argument)          \
    {                                                                                         \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;           \
                                                                                              \
        *(type *)left = name##_op_(*(type *)left, *(const type *)right, s->arg);              \
    }

/* At four places at once, too: memory gives more to several streams than to one. */
#define BLZ_PAR_COUNT_KERNEL_(name, type)                                                   \
    BLZ_PAR_DEFINED_ int name##_count_(size_t begin, size_t end, void *sum, void *argument) \
    {                                                                                       \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;         \
        const type *in = (const type *)s->in;                                               \
        void *arg = s->arg;                                                                 \
        size_t part = (end - begin) / 4, nr = 0;                                            \
                                                                                            \
        for (size_t i = begin; i < begin + part; i++) {                                     \
            nr += name##_keep_(in, i, arg);                                                 \
            nr += name##_keep_(in, part + i, arg);                                          \
            nr += name##_keep_(in, 2 * part + i, arg);                                      \
            nr += name##_keep_(in, 3 * part + i, arg);                                      \
        }                                                                                   \
        for (size_t i = begin + 4 * part; i < end; i++)                                     \
            nr += name##_keep_(in, i, arg);                                                 \
        *(size_t *)sum = nr;                                                                \
        return 0;                                                                           \
    }

/*
 * Small elements are written without a branch: always, but counted only if they are kept. What was
 * written in vain is written over by the next one that is kept; so the loop ends at the last one of
 * those, lest it writes to a place that belongs to the next block.
 */
enum { BLZ_PAR_SMALL_ = 16 /* bytes */ };

#define BLZ_PAR_WRITE_KERNEL_(function, name, type, out_type, element)               \
    BLZ_PAR_DEFINED_ int function(size_t begin, size_t end, void *carry, bool first, \
                                  void *argument)                                    \
    {                                                                                \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;  \
        const type *in = (const type *)s->in;                                        \
        out_type *out = (out_type *)s->out;                                          \
        size_t nr = *(size_t *)carry;                                                \
        void *arg = s->arg;                                                          \
                                                                                     \
        (void)first;                                                                 \
        while (end > begin && !name##_keep_(in, end - 1, arg))                       \
            end--;                                                                   \
        for (size_t i = begin; i < end; i++) {                                       \
            bool keep = name##_keep_(in, i, arg);                                    \
                                                                                     \
            if (sizeof(out_type) <= BLZ_PAR_SMALL_ || keep)                          \
                out[nr] = element;                                                   \
            nr += keep;                                                              \
        }                                                                            \
        *(size_t *)carry = nr;                                                       \
        return 0;                                                                    \
    }

/*
 * To two places: s->rest grows upwards, or (if it is NULL) downwards from the end of s->out. Which
 * of the two is not left to a branch either.
 */
#define BLZ_PAR_SPLIT_KERNEL_(function, name, type)                                         \
    BLZ_PAR_DEFINED_ int function(size_t begin, size_t end, void *carry, bool first,        \
                                  void *argument)                                           \
    {                                                                                       \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;         \
        const type *in = (const type *)s->in;                                               \
        size_t *nr = (size_t *)carry, left = begin - *nr;                                   \
        type *out = (type *)s->out + *nr;                                                   \
        type *rest = s->rest ? (type *)s->rest + left : (type *)s->out + (s->n - 1 - left); \
        uintptr_t kept = (uintptr_t)out, other = (uintptr_t)rest;                           \
        uintptr_t step = s->rest ? sizeof(type) : -(uintptr_t)sizeof(type);                 \
        void *arg = s->arg;                                                                 \
                                                                                            \
        (void)first;                                                                        \
        for (size_t i = begin; i < end; i++) {                                              \
            uintptr_t keep = name##_keep_(in, i, arg) ? UINTPTR_MAX : 0;                    \
                                                                                            \
            *(type *)(other ^ ((kept ^ other) & keep)) = in[i];                             \
            kept += sizeof(type) & keep;                                                    \
            other += step & ~keep;                                                          \
        }                                                                                   \
        *nr += (kept - (uintptr_t)out) / sizeof(type);                                      \
        return 0;                                                                           \
    }

#define BLZ_PAR_PACK_FUNCTION_(function, name, type, out_type)                                     \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int function(blz_par *par, out_type *out, size_t *nr,           \
                                                const type *in, size_t n, void *arg,               \
                                                const blz_par_options *options)                    \
    {                                                                                              \
        struct blz_par_arrays_ arrays = {in, out, NULL, n, arg};                                   \
                                                                                                   \
        return blz_par_pack_(par, sizeof(type), &arrays, name##_count_, function##_, nr, options); \
    }

#define BLZ_PAR_HISTOGRAM_KERNELS_(name, type)                                                     \
    BLZ_PAR_DEFINED_ int name##_tally_(size_t begin, size_t end, size_t *counts, size_t nr,        \
                                       size_t stride, void *argument)                              \
    {                                                                                              \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;                \
        const type *in = (const type *)s->in;                                                      \
        void *arg = s->arg;                                                                        \
        size_t *counts1 = counts + stride, *counts2 = counts1 + stride;                            \
        size_t *counts3 = counts2 + stride, i = begin;                                             \
                                                                                                   \
        for (; end - i >= 4; i += 4) {                                                             \
            size_t k0 = name##_bucket_(in, i, arg), k1 = name##_bucket_(in, i + 1, arg);           \
            size_t k2 = name##_bucket_(in, i + 2, arg), k3 = name##_bucket_(in, i + 3, arg);       \
                                                                                                   \
            if (blz_unlikely((k0 | k1 | k2 | k3) >= nr) &&                                         \
                ((k0 >= nr) | (k1 >= nr) | (k2 >= nr) | (k3 >= nr)))                               \
                return blz_par_out_of_range_();                                                    \
            counts[k0]++;                                                                          \
            counts1[k1]++;                                                                         \
            counts2[k2]++;                                                                         \
            counts3[k3]++;                                                                         \
        }                                                                                          \
        for (; i < end; i++) {                                                                     \
            size_t k = name##_bucket_(in, i, arg);                                                 \
                                                                                                   \
            if (blz_unlikely(k >= nr))                                                             \
                return blz_par_out_of_range_();                                                    \
            counts[k]++;                                                                           \
        }                                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    BLZ_PAR_DEFINED_ int name##_tally_shared_(size_t begin, size_t end, size_t *counts, size_t nr, \
                                              void *argument)                                      \
    {                                                                                              \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;                \
        const type *in = (const type *)s->in;                                                      \
                                                                                                   \
        for (size_t i = begin; i < end; i++) {                                                     \
            size_t k = name##_bucket_(in, i, s->arg);                                              \
                                                                                                   \
            if (blz_unlikely(k >= nr))                                                             \
                return blz_par_out_of_range_();                                                    \
            __atomic_fetch_add(&counts[k], 1, __ATOMIC_RELAXED);                                   \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* -ERANGE. */
BLZ_API BLZ_COLD int blz_par_out_of_range_(void);

BLZ_END_DECLS
#endif
