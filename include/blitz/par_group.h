/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel algorithms that bring equal elements together, and one that tears them apart: groups,
 * reduction by key, distinct elements, shuffling.
 *
 *     static uint64_t hash_word(const struct word *w);
 *     static bool same_word(const struct word *v, const struct word *w);
 *
 *     BLZ_PAR_DEFINE_GROUP(words, struct word, hash_word(&x), same_word(a, b))
 *     BLZ_PAR_DEFINE_REDUCE_BY_KEY(totals, uint32_t, double, x, *a == *b, acc + right)
 *
 *     rc = words_group(par, ids, firsts, &nr, text, n, NULL, NULL);     // in a computation
 *     rc = blz_par_group_order(par, offsets, order, ids, n, nr, NULL);
 *     // group g: text[order[k]] for offsets[g] <= k < offsets[g + 1], as they came
 *
 * Groups are in the order in which their first elements come, and elements in their groups in the
 * order in which they come. That, and how values are put together, is the same for any number of
 * threads: also sums of floats have the same bits. (To have groups in the order of their keys, sort
 * the firsts.)
 *
 * Options, cancellation and `arg` are as in par_scan.h. They need memory for a while: for a few
 * bytes with each element, and up to 80 for each one that is distinct.
 *
 * Errors of every function: -ENOMEM, and the error of the cancellation in its options.
 */
#ifndef BLITZ_PAR_GROUP_H
#define BLITZ_PAR_GROUP_H

#include <blitz/par_scan.h>

BLZ_BEGIN_DECLS

/* ---- groups ---- */

/*
 * BLZ_PAR_DEFINE_GROUP(name, type, hash, equal): hash is a number for element x, the same for equal
 * ones (for integers x will do: it is mixed before it is used); equal says whether *a and *b are
 * equal. Defines
 *
 *     int name_group(blz_par *par, uint32_t *ids, size_t *firsts, size_t *nr, const type *in,
 *                    size_t n, void *arg, const blz_par_options *options);
 *
 *     int name_distinct(blz_par *par, type *out, size_t *nr, const type *in, size_t n, void *arg,
 *                       const blz_par_options *options);
 *
 * group: *nr is the number of groups, ids[i] (unless ids is NULL) the number of the group of
 * element i, firsts[g] (unless firsts is NULL) the index of the first element of group g. distinct:
 * the first element of each group. firsts and out must have room for what they get (n is always
 * enough). -E2BIG: more groups than 2^32 - 1. [in a computation]
 */
#define BLZ_PAR_DEFINE_GROUP(name, type, hash, equal)                                            \
    BLZ_PAR_GROUP_KERNELS_(name, type, hash, equal)                                              \
                                                                                                 \
    BLZ_PAR_DEFINED_ void name##_emit_(size_t group, size_t first, const void *sum,              \
                                       void *argument)                                           \
    {                                                                                            \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;              \
                                                                                                 \
        (void)sum;                                                                               \
        ((type *)s->out)[group] = ((const type *)s->in)[first];                                  \
    }                                                                                            \
                                                                                                 \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_group(blz_par *par, uint32_t *ids, size_t *firsts, \
                                                    size_t *nr, const type *in, size_t n,        \
                                                    void *arg, const blz_par_options *options)   \
    {                                                                                            \
        struct blz_par_arrays_ arrays = {in, firsts, NULL, n, arg};                              \
        struct blz_par_grouping_ grouping = {&arrays,                                            \
                                             name##_number_,                                     \
                                             name##_same_,                                       \
                                             firsts ? blz_par_emit_first_ : NULL,                \
                                             NULL,                                               \
                                             NULL,                                               \
                                             0,                                                  \
                                             ids};                                               \
                                                                                                 \
        return blz_par_group_(par, &grouping, nr, options);                                      \
    }                                                                                            \
                                                                                                 \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_distinct(blz_par *par, type *out, size_t *nr,      \
                                                       const type *in, size_t n, void *arg,      \
                                                       const blz_par_options *options)           \
    {                                                                                            \
        struct blz_par_arrays_ arrays = {in, out, NULL, n, arg};                                 \
        struct blz_par_grouping_ grouping = {                                                    \
            &arrays, name##_number_, name##_same_, name##_emit_, NULL, NULL, 0, NULL};           \
                                                                                                 \
        return blz_par_group_(par, &grouping, nr, options);                                      \
    }

/* A number that is the same for equal elements. */
typedef uint64_t (*blz_par_hash_fn)(const void *x, void *arg);

/*
 * Numbers the groups of equal elements, of `size` bytes each: ids[i] is the group of in[i],
 * firsts[g] the index of the first element of group g, *nr the number of groups. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_group(blz_par *par, uint32_t *ids, size_t *firsts, size_t *nr,
                                        const void *in, size_t n, size_t size, blz_par_hash_fn hash,
                                        blz_par_equal_fn equal, void *arg,
                                        const blz_par_options *options);

/*
 * Copies the first of each group of equal elements, of `size` bytes each, to out, in the order in
 * which they come; *nr is their number. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_distinct(blz_par *par, void *out, size_t *nr, const void *in,
                                           size_t n, size_t size, blz_par_hash_fn hash,
                                           blz_par_equal_fn equal, void *arg,
                                           const blz_par_options *options);

/*
 * Where the elements of each group are: those of group g are order[offsets[g]] and so on up to
 * before order[offsets[g + 1]], in the order of their indices. offsets has room for nr + 1 numbers,
 * order for n. -ERANGE: an id is not below nr; so without groups (nr = 0) there may be no elements.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_group_order(blz_par *par, size_t *offsets, size_t *order,
                                              const uint32_t *ids, size_t n, size_t nr,
                                              const blz_par_options *options);

/* ---- reduction by key ---- */

/*
 * BLZ_PAR_DEFINE_REDUCE_BY_KEY(name, key_type, value_type, hash, equal, operation): hash and equal
 * are of keys, as in BLZ_PAR_DEFINE_GROUP; the operation puts the values acc and right together,
 * and is associative. Defines
 *
 *     int name_reduce_by_key(blz_par *par, key_type *out_keys, value_type *out_values,
 *                            size_t *nr, const key_type *keys, const value_type *values, size_t n,
 *                            void *arg, const blz_par_options *options);
 *
 * For each distinct key, in the order of their coming: the key, and all its values put together in
 * the order of their coming. The outputs must have room for *nr elements (n is always enough).
 * [in a computation]
 */
#define BLZ_PAR_DEFINE_REDUCE_BY_KEY(name, key_type, value_type, hash, equal, operation)        \
    BLZ_PAR_GROUP_KERNELS_(name, key_type, hash, equal)                                         \
    BLZ_PAR_FOLD_KERNELS_(name, key_type, value_type, operation)                                \
                                                                                                \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_reduce_by_key(blz_par *par, key_type *out_keys,   \
                                                            value_type *out_values, size_t *nr, \
                                                            const key_type *keys,               \
                                                            const value_type *values, size_t n, \
                                                            void *arg,                          \
                                                            const blz_par_options *options)     \
    {                                                                                           \
        struct blz_par_fold_ fold = {{keys, out_keys, out_values, n, arg}, values, NULL, 0, 0}; \
        struct blz_par_grouping_ grouping = {&fold.arrays,       name##_number_,                \
                                             name##_same_,       name##_emit_,                  \
                                             name##_fold_,       name##_add_,                   \
                                             sizeof(value_type), NULL};                         \
                                                                                                \
        return blz_par_group_(par, &grouping, nr, options);                                     \
    }

/*
 * Puts all values of equal keys together, for keys and values of any size: for each distinct key,
 * in the order of their coming, the key, and its values put together by op in the order of their
 * coming; *nr is the number of keys. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_reduce_by_key(blz_par *par, void *out_keys, void *out_values,
                                                size_t *nr, const void *keys, const void *values,
                                                size_t n, size_t key_size, size_t value_size,
                                                blz_par_hash_fn hash, blz_par_equal_fn equal,
                                                blz_par_op_fn op, void *arg,
                                                const blz_par_options *options);

/* ---- shuffling ---- */

/*
 * Puts the elements into a random order: all orders are equally likely. A seed gives one order for
 * each n, whatever the number of threads. After an error the elements are all there, in some order.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_shuffle(blz_par *par, void *data, size_t n, size_t size,
                                          uint64_t seed, const blz_par_options *options);

/* ---- what the macros are made of: the library's business ---- */

/* A key that a block of the array has. */
struct blz_par_key_ {
    uint64_t hash;
    size_t first; /* the index of its first element in the block */
};

/* The keys of a block: open addressing; a slot has the number of a key, plus one. */
struct blz_par_keys_ {
    struct blz_par_key_ *keys;
    uint32_t *slots;
    size_t mask, nr;
};

/* Numbers the keys of a block: ids[k] is that of element begin + k. */
typedef void (*blz_par_number_fn_)(size_t begin, size_t end, struct blz_par_keys_ *keys,
                                   uint32_t *ids, void *arg);

struct blz_par_grouping_ {
    struct blz_par_arrays_ *arrays; /* the last argument of these functions */
    blz_par_number_fn_ number;
    bool (*same)(size_t i, size_t j, void *arg);
    void (*emit)(size_t group, size_t first, const void *sum, void *arg); /* or NULL */
    /* Of values, or NULL: sums[ids[k]] of the values of a block; one sum to another. */
    void (*fold)(size_t begin, size_t end, const uint32_t *ids, const struct blz_par_key_ *keys,
                 void *sums, void *arg);
    void (*add)(void *left, const void *right, void *arg);
    size_t sum_size;
    uint32_t *ids; /* or NULL */
};

struct blz_par_fold_ {
    struct blz_par_arrays_ arrays;
    const void *values;
    blz_par_op_fn op; /* of the form with callbacks */
    size_t key_size, value_size;
};

BLZ_API int blz_par_group_(blz_par *par, const struct blz_par_grouping_ *grouping, size_t *nr,
                           const blz_par_options *options);
BLZ_API void blz_par_emit_first_(size_t group, size_t first, const void *sum, void *arg);

/* Makes room for twice as many keys. */
BLZ_API BLZ_COLD void blz_par_keys_grow_(struct blz_par_keys_ *keys);

/* All bits of the result depend on all bits of the hash. */
BLZ_PAR_DEFINED_ uint64_t blz_par_mix_(uint64_t z)
{
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
    return z ^ (z >> 32);
}

#define BLZ_PAR_GROUP_KERNELS_(name, type, hash_of, equal)                                     \
    BLZ_PAR_DEFINED_ uint64_t name##_hash_(const type x, void *arg)                            \
    {                                                                                          \
        (void)x;                                                                               \
        (void)arg;                                                                             \
        return blz_par_mix_((uint64_t)(hash_of));                                              \
    }                                                                                          \
                                                                                               \
    BLZ_PAR_DEFINED_ bool name##_equal_(const type *a, const type *b, void *arg)               \
    {                                                                                          \
        (void)arg;                                                                             \
        return (equal);                                                                        \
    }                                                                                          \
                                                                                               \
    BLZ_PAR_DEFINED_ bool name##_same_(size_t i, size_t j, void *argument)                     \
    {                                                                                          \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;            \
        const type *in = (const type *)s->in;                                                  \
                                                                                               \
        return name##_equal_(&in[i], &in[j], s->arg);                                          \
    }                                                                                          \
                                                                                               \
    BLZ_PAR_DEFINED_ void name##_number_(size_t begin, size_t end, struct blz_par_keys_ *keys, \
                                         uint32_t *ids, void *argument)                        \
    {                                                                                          \
        const struct blz_par_arrays_ *s = (const struct blz_par_arrays_ *)argument;            \
        const type *in = (const type *)s->in;                                                  \
                                                                                               \
        for (size_t i = begin; i < end; i++) {                                                 \
            uint64_t hash = name##_hash_(in[i], s->arg);                                       \
            size_t slot = hash & keys->mask;                                                   \
            uint32_t k;                                                                        \
                                                                                               \
            while ((k = keys->slots[slot]) != 0) {                                             \
                const struct blz_par_key_ *key = &keys->keys[k - 1];                           \
                                                                                               \
                if (key->hash == hash && name##_equal_(&in[key->first], &in[i], s->arg))       \
                    break;                                                                     \
                slot = (slot + 1) & keys->mask;                                                \
            }                                                                                  \
            if (k == 0)                                                                        \
                k = blz_par_keys_add_(keys, slot, hash, i);                                    \
            ids[i - begin] = k - 1;                                                            \
        }                                                                                      \
    }

/* A new key, at the free slot that was found for it. Gives its number, plus one. */
BLZ_PAR_DEFINED_ uint32_t blz_par_keys_add_(struct blz_par_keys_ *keys, size_t slot, uint64_t hash,
                                            size_t first)
{
    uint32_t k = (uint32_t)keys->nr + 1;

    keys->keys[keys->nr].hash = hash;
    keys->keys[keys->nr].first = first;
    keys->nr++;
    keys->slots[slot] = k;
    if (blz_unlikely(2 * keys->nr > keys->mask))
        blz_par_keys_grow_(keys);
    return k;
}

#define BLZ_PAR_FOLD_KERNELS_(name, key_type, value_type, operation)                           \
    BLZ_PAR_DEFINED_ value_type name##_op_(value_type acc, value_type right, void *arg)        \
    {                                                                                          \
        (void)arg;                                                                             \
        return (operation);                                                                    \
    }                                                                                          \
                                                                                               \
    BLZ_PAR_DEFINED_ void name##_fold_(size_t begin, size_t end, const uint32_t *ids,          \
                                       const struct blz_par_key_ *keys, void *sums,            \
                                       void *argument)                                         \
    {                                                                                          \
        const struct blz_par_fold_ *f = (const struct blz_par_fold_ *)argument;                \
        const value_type *values = (const value_type *)f->values;                              \
        value_type *sum = (value_type *)sums;                                                  \
                                                                                               \
        for (size_t i = begin; i < end; i++) {                                                 \
            uint32_t k = ids[i - begin];                                                       \
                                                                                               \
            sum[k] =                                                                           \
                keys[k].first == i ? values[i] : name##_op_(sum[k], values[i], f->arrays.arg); \
        }                                                                                      \
    }                                                                                          \
                                                                                               \
    BLZ_PAR_DEFINED_ void name##_add_(void *left, const void *right, void *argument)           \
    {                                                                                          \
        const struct blz_par_fold_ *f = (const struct blz_par_fold_ *)argument;                \
                                                                                               \
        *(value_type *)left =                                                                  \
            name##_op_(*(value_type *)left, *(const value_type *)right, f->arrays.arg);        \
    }                                                                                          \
                                                                                               \
    BLZ_PAR_DEFINED_ void name##_emit_(size_t group, size_t first, const void *sum,            \
                                       void *argument)                                         \
    {                                                                                          \
        const struct blz_par_fold_ *f = (const struct blz_par_fold_ *)argument;                \
                                                                                               \
        ((key_type *)f->arrays.out)[group] = ((const key_type *)f->arrays.in)[first];          \
        ((value_type *)f->arrays.rest)[group] = *(const value_type *)sum;                      \
    }

BLZ_END_DECLS
#endif
