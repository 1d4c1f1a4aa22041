/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups and reductions of elements of any size, by callbacks: the loops over a block that the
 * macros of par_group.h make for one type. What is done with the blocks is in group.c.
 */
#include "par/blocks.h"

#include <blitz/par_group.h>

#include <string.h>

typedef struct any {
    struct blz_par_fold_ fold; /* first: it is what the functions get */
    blz_par_hash_fn hash;
    blz_par_equal_fn equal;
} any;

static const char *key_at(const any *a, size_t i)
{
    return (const char *)a->fold.arrays.in + i * a->fold.key_size;
}

static bool same(size_t i, size_t j, void *arg)
{
    const any *a = arg;

    return a->equal(key_at(a, i), key_at(a, j), a->fold.arrays.arg);
}

static void number(size_t begin, size_t end, struct blz_par_keys_ *keys, uint32_t *ids, void *arg)
{
    const any *a = arg;

    for (size_t i = begin; i < end; i++) {
        uint64_t hash = blz_par_mix_(a->hash(key_at(a, i), a->fold.arrays.arg));
        size_t slot = hash & keys->mask;
        uint32_t k;

        while ((k = keys->slots[slot]) != 0) {
            if (keys->keys[k - 1].hash == hash && same(keys->keys[k - 1].first, i, arg))
                break;
            slot = (slot + 1) & keys->mask;
        }
        ids[i - begin] = (k != 0 ? k : blz_par_keys_add_(keys, slot, hash, i)) - 1;
    }
}

static void emit_key(size_t group, size_t first, const void *sum, void *arg)
{
    const any *a = arg;
    size_t size = a->fold.key_size;

    (void)sum;
    memcpy((char *)a->fold.arrays.out + group * size, key_at(a, first), size);
}

static void emit_both(size_t group, size_t first, const void *sum, void *arg)
{
    const any *a = arg;
    size_t size = a->fold.value_size;

    emit_key(group, first, NULL, arg);
    memcpy((char *)a->fold.arrays.rest + group * size, sum, size);
}

static void fold(size_t begin, size_t end, const uint32_t *ids, const struct blz_par_key_ *keys,
                 void *sums, void *arg)
{
    const any *a = arg;
    size_t size = a->fold.value_size;

    for (size_t i = begin; i < end; i++) {
        uint32_t k = ids[i - begin];
        char *sum = (char *)sums + k * size;
        const char *value = (const char *)a->fold.values + i * size;

        if (keys[k].first == i)
            memcpy(sum, value, size);
        else
            a->fold.op(sum, value, a->fold.arrays.arg);
    }
}

static void add(void *left, const void *right, void *arg)
{
    const any *a = arg;

    a->fold.op(left, right, a->fold.arrays.arg);
}

int blz_par_group(blz_par *par, uint32_t *ids, size_t *firsts, size_t *nr, const void *in, size_t n,
                  size_t size, blz_par_hash_fn hash, blz_par_equal_fn equal, void *arg,
                  const blz_par_options *options)
{
    any a = {{{in, firsts, NULL, n, arg}, NULL, NULL, size, 0}, hash, equal};
    struct blz_par_grouping_ g = {.arrays = &a.fold.arrays,
                                  .number = number,
                                  .same = same,
                                  .ids = ids};

    g.emit = firsts ? blz_par_emit_first_ : NULL;
    return blz_par_group_(par, &g, nr, options);
}

int blz_par_distinct(blz_par *par, void *out, size_t *nr, const void *in, size_t n, size_t size,
                     blz_par_hash_fn hash, blz_par_equal_fn equal, void *arg,
                     const blz_par_options *options)
{
    any a = {{{in, out, NULL, n, arg}, NULL, NULL, size, 0}, hash, equal};
    struct blz_par_grouping_ g = {.arrays = &a.fold.arrays,
                                  .number = number,
                                  .same = same,
                                  .emit = emit_key};

    return blz_par_group_(par, &g, nr, options);
}

int blz_par_reduce_by_key(blz_par *par, void *out_keys, void *out_values, size_t *nr,
                          const void *keys, const void *values, size_t n, size_t key_size,
                          size_t value_size, blz_par_hash_fn hash, blz_par_equal_fn equal,
                          blz_par_op_fn op, void *arg, const blz_par_options *options)
{
    any a = {{{keys, out_keys, out_values, n, arg}, values, op, key_size, value_size}, hash, equal};
    struct blz_par_grouping_ g = {.arrays = &a.fold.arrays,
                                  .number = number,
                                  .same = same,
                                  .emit = emit_both,
                                  .fold = fold,
                                  .add = add,
                                  .sum_size = value_size};

    return blz_par_group_(par, &g, nr, options);
}
