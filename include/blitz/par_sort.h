/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel sorts, merges, and the kth of an array.
 *
 *     BLZ_PAR_DEFINE_SORT(by_age, struct person, a->age < b->age)
 *
 *     rc = by_age_sort(par, people, n, NULL, NULL);           // in a computation, see par.h
 *     rc = by_age_stable_sort(par, people, n, NULL, NULL);    // equal ages stay in order
 *     rc = by_age_kth(par, people, n, n / 2, NULL, NULL);     // the median to its place
 *     rc = blz_par_radix_sort_u64(par, numbers, m, NULL);     // no comparison at all
 *     rc = blz_par_sort(par, v, n, sizeof *v, compare, NULL, NULL);     // as qsort
 *
 * The macros compile the comparison into the sort; the functions call it, which takes two to five
 * times as long.
 *
 * Whatever the input is (sorted, reversed, sorted parts, few different values, chosen by an
 * attacker) it takes time of the order of n log n, and of n for the simple cases. A sort needs
 * memory for another n elements and 2 n bytes; an array of at most a few kilobytes, or one that is
 * sorted already, needs none. A sort that need not be stable, and a radix sort of numbers alone,
 * need a few megabytes for each thread at most, if the elements have 4 to 64 bytes; when there is
 * no memory at all they work in place, more slowly.
 *
 * A comparison says whether *a must come before *b. If it contradicts itself the order is
 * unspecified, but each element is there once. It must not change anything, and is called by
 * several threads at once, also for copies of elements elsewhere in memory.
 *
 * Errors of every function: -ENOMEM, with the array as it was; -EINVAL: elements of no bytes; the
 * error of the cancellation, with the elements in some order (the output of a merge also has all of
 * them). When they return no thread works on the array any more.
 *
 * A cancellation is looked at before each part: it ends a sort within the time that a thread needs
 * for one pass over what it has.
 */
#ifndef BLITZ_PAR_SORT_H
#define BLITZ_PAR_SORT_H

#include <blitz/par_sort_kernels.h>

BLZ_BEGIN_DECLS

/* ---- by comparison ---- */

/*
 * Defines, for elements of a type and an expression of `const type *a, *b` (and `void *arg`) that
 * is true if *a must come before *b, these functions [in a computation]:
 *
 *     int name_sort(blz_par *par, type *v, size_t n, void *arg, const blz_par_options *options);
 *
 *     // Equal elements stay in their order.
 *     int name_stable_sort(blz_par *par, type *v, size_t n, void *arg,
 *                          const blz_par_options *options);
 *
 *     // Merges sorted arrays into out, which overlaps neither; of equal elements those of a come
 *     // first.
 *     int name_merge(blz_par *par, type *out, const type *a, size_t na, const type *b, size_t nb,
 *                    void *arg, const blz_par_options *options);
 *
 *     // Moves elements so that v[k] is the one that a sort would put there, with none greater
 *     // before it and none less behind it. -EINVAL: k is not less than n.
 *     int name_kth(blz_par *par, type *v, size_t n, size_t k, void *arg,
 *                  const blz_par_options *options);
 */
#define BLZ_PAR_DEFINE_SORT(name, type, less)                                              \
    BLZ_SORT_DEFINED_ bool name##_less_(const void *left, const void *right, void *arg)    \
    {                                                                                      \
        const type *a = (const type *)left, *b = (const type *)right;                      \
                                                                                           \
        (void)a, (void)b, (void)arg;                                                       \
        return (less);                                                                     \
    }                                                                                      \
    BLZ_SORT_KERNELS_(name, type)                                                          \
    BLZ_SORT_DEFINED_ int name##_sort(blz_par *par, type *v, size_t n, void *arg,          \
                                      const blz_par_options *options)                      \
    {                                                                                      \
        return blz_par_sort_(par, &name##_kernels_, v, n, false, arg, options);            \
    }                                                                                      \
    BLZ_SORT_DEFINED_ int name##_stable_sort(blz_par *par, type *v, size_t n, void *arg,   \
                                             const blz_par_options *options)               \
    {                                                                                      \
        return blz_par_sort_(par, &name##_kernels_, v, n, true, arg, options);             \
    }                                                                                      \
    BLZ_SORT_DEFINED_ int name##_merge(blz_par *par, type *out, const type *a, size_t na,  \
                                       const type *b, size_t nb, void *arg,                \
                                       const blz_par_options *options)                     \
    {                                                                                      \
        return blz_par_merge_(par, &name##_kernels_, a, na, b, nb, out, arg, options);     \
    }                                                                                      \
    BLZ_SORT_DEFINED_ int name##_kth(blz_par *par, type *v, size_t n, size_t k, void *arg, \
                                     const blz_par_options *options)                       \
    {                                                                                      \
        return blz_par_kth_(par, &name##_kernels_, v, n, k, arg, options);                 \
    }

/*
 * Defines the functions of BLZ_PAR_DEFINE_SORT for keys that `<` compares: an expression of `const
 * type *it` (and `void *arg`), which is evaluated at each comparison.
 */
#define BLZ_PAR_DEFINE_SORT_BY_KEY(name, type, key_type, key)         \
    BLZ_SORT_DEFINED_ key_type name##_key_(const type *it, void *arg) \
    {                                                                 \
        (void)it, (void)arg;                                          \
        return (key);                                                 \
    }                                                                 \
    BLZ_PAR_DEFINE_SORT(name, type, name##_key_(a, arg) < name##_key_(b, arg))

/*
 * For keys that cost more to compute than to keep: each is computed once. `less` is an expression
 * of `const key_type *a, *b`. Defines a stable sort [in a computation]:
 *
 *     int name_sort(blz_par *par, type *v, size_t n, void *arg, const blz_par_options *options);
 *
 * It needs memory for 2 n keys and numbers, and n elements.
 */
#define BLZ_PAR_DEFINE_SORT_BY_CACHED_KEY(name, type, key_type, key, less)                    \
    struct name##_pair_ {                                                                     \
        key_type key_;                                                                        \
        size_t index;                                                                         \
    };                                                                                        \
    BLZ_SORT_DEFINED_ key_type name##_key_(const type *it, void *arg)                         \
    {                                                                                         \
        (void)it, (void)arg;                                                                  \
        return (key);                                                                         \
    }                                                                                         \
    BLZ_SORT_DEFINED_ bool name##_less_(const void *left, const void *right, void *arg)       \
    {                                                                                         \
        const key_type *a = &((const struct name##_pair_ *)left)->key_;                       \
        const key_type *b = &((const struct name##_pair_ *)right)->key_;                      \
                                                                                              \
        (void)a, (void)b, (void)arg;                                                          \
        return (less);                                                                        \
    }                                                                                         \
    BLZ_SORT_KERNELS_(name, struct name##_pair_)                                              \
    BLZ_SORT_DEFINED_ void name##_fill_(const void *v, size_t begin, size_t end, void *pairs, \
                                        void *arg)                                            \
    {                                                                                         \
        for (size_t i = begin; i < end; i++) {                                                \
            struct name##_pair_ *pair = (struct name##_pair_ *)pairs + i;                     \
            pair->key_ = name##_key_((const type *)v + i, arg);                               \
            pair->index = i;                                                                  \
        }                                                                                     \
    }                                                                                         \
    BLZ_SORT_DEFINED_ int name##_sort(blz_par *par, type *v, size_t n, void *arg,             \
                                      const blz_par_options *options)                         \
    {                                                                                         \
        static const struct blz_sort_cached_ cached = {                                       \
            &name##_kernels_,                                                                 \
            sizeof(type),                                                                     \
            offsetof(struct name##_pair_, index),                                             \
            name##_fill_,                                                                     \
        };                                                                                    \
        return blz_par_sort_cached_(par, &cached, v, n, arg, options);                        \
    }

/* ---- for elements of any size, by a function that compares ---- */

/* The key of an element. */
typedef uint64_t (*blz_par_key_fn)(const void *element, void *arg);

/* Sorts n elements of `size` bytes, not stably. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_sort(blz_par *par, void *v, size_t n, size_t size,
                                       blz_par_compare_fn compare, void *arg,
                                       const blz_par_options *options);

/* Sorts n elements of `size` bytes; equal ones stay in their order. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_stable_sort(blz_par *par, void *v, size_t n, size_t size,
                                              blz_par_compare_fn compare, void *arg,
                                              const blz_par_options *options);

/* Sorts stably by a number that is computed once for each element. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_sort_by_key(blz_par *par, void *v, size_t n, size_t size,
                                              blz_par_key_fn key, void *arg,
                                              const blz_par_options *options);

/* Merges sorted arrays into out, which overlaps neither; of equal elements those of a come first.
 * [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_merge(blz_par *par, void *out, const void *a, size_t na,
                                        const void *b, size_t nb, size_t size,
                                        blz_par_compare_fn compare, void *arg,
                                        const blz_par_options *options);

/*
 * Moves the element that a sort would put at k to that place, with none greater before it and none
 * less behind it. -EINVAL: k is not less than n. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_kth(blz_par *par, void *v, size_t n, size_t size, size_t k,
                                      blz_par_compare_fn compare, void *arg,
                                      const blz_par_options *options);

/* ---- numbers, by their bits ---- */

/* What the key of a radix sort is. Floats are ordered as IEEE 754's totalOrder: -NaN, numbers with
 * -0 before 0, NaN. */
typedef enum blz_par_key_type {
    BLZ_PAR_KEY_U32,
    BLZ_PAR_KEY_U64,
    BLZ_PAR_KEY_I32,
    BLZ_PAR_KEY_I64,
    BLZ_PAR_KEY_F32,
    BLZ_PAR_KEY_F64,
} blz_par_key_type;

/*
 * Sorts n elements of `size` bytes stably by the number at an offset in each. Sizes of the key
 * itself and of twice as much are the fastest. Also -EINVAL: the key is not within the element.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_radix_sort(blz_par *par, void *v, size_t n, size_t size,
                                             size_t key_offset, blz_par_key_type key,
                                             const blz_par_options *options);

#define BLZ_PAR_RADIX_SORT_(suffix, type, key)                                     \
    /* Sorts numbers of one type stably, by their bits. [in a computation] */      \
    static inline int blz_par_radix_sort_##suffix(blz_par *par, type *v, size_t n, \
                                                  const blz_par_options *options)  \
    {                                                                              \
        return blz_par_radix_sort(par, v, n, sizeof(type), 0, key, options);       \
    }

BLZ_PAR_RADIX_SORT_(u32, uint32_t, BLZ_PAR_KEY_U32)
BLZ_PAR_RADIX_SORT_(u64, uint64_t, BLZ_PAR_KEY_U64)
BLZ_PAR_RADIX_SORT_(i32, int32_t, BLZ_PAR_KEY_I32)
BLZ_PAR_RADIX_SORT_(i64, int64_t, BLZ_PAR_KEY_I64)
BLZ_PAR_RADIX_SORT_(f32, float, BLZ_PAR_KEY_F32)
BLZ_PAR_RADIX_SORT_(f64, double, BLZ_PAR_KEY_F64)

BLZ_END_DECLS
#endif
