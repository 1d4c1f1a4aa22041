/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of a size that is known at run time, compared by a function. Common sizes have kernels
 * of their own. Others are sorted as pointers, and moved once at the end; so are elements whose
 * keys are computed once. Where that needs memory that is not there, what need not be stable is
 * sorted in place.
 */
#include "par/sort.h"

#include <blitz/error.h>
#include <string.h>

/* The argument of all comparisons here. */
typedef struct any {
    blz_par_compare_fn compare;
    void *arg;
    size_t size;
} any;

static inline bool less_any(const void *a, const void *b, void *arg)
{
    const any *how = arg;

    return how->compare(a, b, how->arg) < 0;
}

/* ---- sizes with kernels ---- */

#define SIZED_KERNELS(name, nr_bytes)                                        \
    typedef struct name {                                                    \
        char bytes[nr_bytes];                                                \
    } name;                                                                  \
    static inline bool name##_less_(const void *a, const void *b, void *arg) \
    {                                                                        \
        return less_any(a, b, arg);                                          \
    }                                                                        \
    BLZ_SORT_KERNELS_(name, name)

SIZED_KERNELS(sized_4, 4)
SIZED_KERNELS(sized_8, 8)
SIZED_KERNELS(sized_16, 16)
SIZED_KERNELS(sized_24, 24)
SIZED_KERNELS(sized_32, 32)

static const struct blz_sort_kernels_ *const sized[] = {
    &sized_4_kernels_,  &sized_8_kernels_,  &sized_16_kernels_,
    &sized_24_kernels_, &sized_32_kernels_,
};

/*
 * Kernels for the size, with the alignment that the user's type may have: a comparison is given
 * copies, too. False: there are none.
 */
static bool find_kernels(size_t size, struct blz_sort_kernels_ *kernels)
{
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++)
        if (sized[i]->size == size) {
            *kernels = *sized[i];
            return true;
        }
    return false;
}

/* ---- other sizes: only what works in place, or in one pass ---- */

static void merge_any(const char *a, size_t na, const char *b, size_t nb, char *out, void *arg)
{
    blz_sort_merge_slowly_(a, na, b, nb, out, ((const any *)arg)->size, less_any, arg);
}

static size_t partition_any(char *v, size_t n, bool with_equals, void *arg)
{
    return blz_sort_partition_(v, n, with_equals, ((const any *)arg)->size, less_any, arg);
}

static struct blz_sort_kernels_ slow_kernels(size_t size)
{
    return (struct blz_sort_kernels_){
        .size = size,
        .align = 1,
        .less = less_any,
        .merge = merge_any,
        .partition = partition_any,
    };
}

/* ---- keys that are computed once ---- */

typedef struct cached {
    const struct blz_sort_cached_ *how;
    char *v, *pairs, *spare;
    void *arg;
} cached;

static int fill_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const cached *c = arg;

    (void)par;
    c->how->fill(c->v, begin, end, c->pairs, c->arg);
    return 0;
}

static int gather_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const cached *c = arg;
    size_t size = c->how->size, index;

    (void)par;
    for (size_t i = begin; i < end; i++) {
        memcpy(&index, c->pairs + i * c->how->pairs->size + c->how->index_offset, sizeof index);
        memcpy(c->spare + i * size, c->v + index * size, size);
    }
    return 0;
}

static int copy_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const cached *c = arg;
    size_t size = c->how->size;

    (void)par;
    memcpy(c->v + begin * size, c->spare + begin * size, (end - begin) * size);
    return 0;
}

/* A cancellation before the last step leaves the array as it was. */
static int sort_cached(blz_par *par, cached *c, size_t n, const blz_par_options *o)
{
    blz_par_options to_the_end = {.grain = o->grain, .waiting = o->waiting};
    int rc = blz_par_for(par, n, fill_range, c, o);

    if (rc == 0)
        rc = blz_par_sort_(par, c->how->pairs, c->pairs, n, true, c->arg, o);
    if (rc == 0)
        rc = blz_par_for(par, n, gather_range, c, o);
    if (rc == 0)
        rc = blz_par_for(par, n, copy_range, c, &to_the_end);
    return rc;
}

int blz_par_sort_cached_(blz_par *par, const struct blz_sort_cached_ *how, void *v, size_t n,
                         void *arg, const blz_par_options *options)
{
    const blz_par_options *o = options_or_defaults(options);
    cached c = {.how = how, .v = v, .arg = arg};
    int rc = -ENOMEM;

    if (n < 2)
        return cancelled(o);
    if (n > SIZE_MAX / how->pairs->size || n > SIZE_MAX / how->size)
        return -ENOMEM;
    c.pairs = blz__par_alloc(par, n * how->pairs->size);
    c.spare = blz__par_alloc(par, n * how->size);
    if (c.pairs && c.spare)
        rc = sort_cached(par, &c, n, o);
    blz__par_free(par, c.spare, n * how->size);
    blz__par_free(par, c.pairs, n * how->pairs->size);
    return rc;
}

/* ---- pointers ---- */

typedef struct pointer {
    const void *to;
    size_t index;
} pointer;

static inline bool pointers_less_(const void *a, const void *b, void *arg)
{
    return less_any(((const pointer *)a)->to, ((const pointer *)b)->to, arg);
}

BLZ_SORT_KERNELS_(pointers, pointer)

static void fill_pointers(const void *v, size_t begin, size_t end, void *pairs, void *arg)
{
    const any *how = arg;

    for (size_t i = begin; i < end; i++)
        ((pointer *)pairs)[i] = (pointer){(const char *)v + i * how->size, i};
}

static int sort_pointers(blz_par *par, void *v, size_t n, any *how, const blz_par_options *options)
{
    struct blz_sort_cached_ c = {&pointers_kernels_, how->size, offsetof(pointer, index),
                                 fill_pointers};

    return blz_par_sort_cached_(par, &c, v, n, how, options);
}

/* ---- the public functions ---- */

int blz_par_stable_sort(blz_par *par, void *v, size_t n, size_t size, blz_par_compare_fn compare,
                        void *arg, const blz_par_options *options)
{
    any how = {compare, arg, size};
    struct blz_sort_kernels_ kernels;

    if (size == 0)
        return -EINVAL;
    if (find_kernels(size, &kernels))
        return blz_par_sort_(par, &kernels, v, n, true, &how, options);
    return sort_pointers(par, v, n, &how, options);
}

int blz_par_sort(blz_par *par, void *v, size_t n, size_t size, blz_par_compare_fn compare,
                 void *arg, const blz_par_options *options)
{
    any how = {compare, arg, size};
    struct blz_sort_kernels_ kernels;
    int rc;

    if (size == 0)
        return -EINVAL;
    if (find_kernels(size, &kernels))
        return blz_par_sort_(par, &kernels, v, n, false, &how, options);
    rc = sort_pointers(par, v, n, &how, options);
    if (rc == -ENOMEM) {
        sorter s = {&kernels, &how, options_or_defaults(options)};
        kernels = slow_kernels(size);
        blz__sort_in_place(par, &s, v, n);
        rc = cancelled(s.options);
    }
    return rc;
}

int blz_par_merge(blz_par *par, void *out, const void *a, size_t na, const void *b, size_t nb,
                  size_t size, blz_par_compare_fn compare, void *arg,
                  const blz_par_options *options)
{
    any how = {compare, arg, size};
    struct blz_sort_kernels_ kernels;

    if (size == 0)
        return -EINVAL;
    if (!find_kernels(size, &kernels))
        kernels = slow_kernels(size);
    return blz_par_merge_(par, &kernels, a, na, b, nb, out, &how, options);
}

int blz_par_kth(blz_par *par, void *v, size_t n, size_t size, size_t k, blz_par_compare_fn compare,
                void *arg, const blz_par_options *options)
{
    any how = {compare, arg, size};
    struct blz_sort_kernels_ kernels;
    sorter s = {&kernels, &how, options_or_defaults(options)};

    if (size == 0 || k >= n)
        return -EINVAL;
    if (find_kernels(size, &kernels))
        return blz_par_kth_(par, &kernels, v, n, k, &how, options);
    kernels = slow_kernels(size);
    blz__sort_kth_in_place(par, &s, v, n, k);
    return cancelled(s.options);
}
