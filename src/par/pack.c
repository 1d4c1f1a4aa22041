/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters, partitions, runs of equal elements: chains of blocks (chain.c) whose value is the number
 * of elements kept so far, which is the place of the next one.
 *
 * A stable partition into one array cannot know where the others begin until all are counted. They
 * are written from the end downwards, and turned round at last.
 */
#include "par/blocks.h"

#include <blitz/par_scan.h>

#include <string.h>

/* ---- what the typed functions call, too ---- */

static void add_counts(void *left, const void *right, void *arg)
{
    (void)arg;
    *(size_t *)left += *(const size_t *)right;
}

int blz_par_pack_(blz_par *par, size_t size, struct blz_par_arrays_ *arrays, blz_par_sum_fn_ count,
                  blz_par_write_fn_ write, size_t *nr, const blz_par_options *options)
{
    struct blz_par_chain_ chain = {arrays->n, size, sizeof *nr, arrays, count, write, add_counts};
    size_t kept = 0;
    int rc = blz_par_chain_run_(par, &chain, &kept, true, options);

    *nr = kept;
    return rc;
}

typedef struct reversal {
    char *data;
    size_t n, size;
} reversal;

/* The elements begin to end - 1 of the first half with their counterparts. */
static int reverse_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const reversal *r = arg;
    char *low = r->data + begin * r->size, *high = r->data + (r->n - 1 - begin) * r->size;

    (void)par;
    if (r->size == sizeof(uint64_t)) {
        for (size_t i = begin; i < end; i++, low += sizeof(uint64_t), high -= sizeof(uint64_t))
            swap_elements(low, high, sizeof(uint64_t));
        return 0;
    }
    for (size_t i = begin; i < end; i++, low += r->size, high -= r->size)
        swap_elements(low, high, r->size);
    return 0;
}

int blz_par_partition_(blz_par *par, size_t size, struct blz_par_arrays_ *arrays,
                       blz_par_sum_fn_ count, blz_par_write_fn_ write, size_t *nr,
                       const blz_par_options *options)
{
    int rc = blz_par_pack_(par, size, arrays, count, write, nr, options);
    reversal r = {.size = size};

    if (rc < 0 || arrays->rest || *nr == arrays->n)
        return rc;
    r.data = (char *)arrays->out + *nr * size;
    r.n = arrays->n - *nr;
    return blz_par_for(par, r.n / 2, reverse_range, &r, options);
}

/* ---- elements of any size ---- */

/* What is asked of each element, and where it goes. */
typedef struct pack pack;
struct pack {
    struct blz_par_arrays_ arrays;
    size_t size;
    bool (*asks)(const pack *p, size_t i);
    union {
        blz_par_keep_fn keep;
        blz_par_equal_fn equal;
        const bool *flags;
    } by;
};

static const char *element(const pack *p, size_t i)
{
    return (const char *)p->arrays.in + i * p->size;
}

static bool ask_keep(const pack *p, size_t i)
{
    return p->by.keep(element(p, i), p->arrays.arg);
}

static bool ask_equal(const pack *p, size_t i)
{
    return i == 0 || !p->by.equal(element(p, i - 1), element(p, i), p->arrays.arg);
}

static bool ask_flags(const pack *p, size_t i)
{
    return p->by.flags[i];
}

static int count_block(size_t begin, size_t end, void *sum, void *arg)
{
    const pack *p = arg;
    size_t nr = 0;

    for (size_t i = begin; i < end; i++)
        nr += p->asks(p, i);
    *(size_t *)sum = nr;
    return 0;
}

static int write_elements(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const pack *p = arg;
    size_t *nr = carry;

    (void)first;
    for (size_t i = begin; i < end; i++) {
        if (p->asks(p, i))
            memcpy((char *)p->arrays.out + (*nr)++ * p->size, element(p, i), p->size);
    }
    return 0;
}

static int write_indices(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const pack *p = arg;
    size_t *nr = carry, *out = p->arrays.out;

    (void)first;
    for (size_t i = begin; i < end; i++) {
        if (p->asks(p, i))
            out[(*nr)++] = i;
    }
    return 0;
}

static int write_both(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const pack *p = arg;
    size_t *nr = carry;
    char *out = p->arrays.out, *rest = p->arrays.rest;

    (void)first;
    for (size_t i = begin; i < end; i++) {
        size_t left = i - *nr;
        char *other = rest ? rest + left * p->size : out + (p->arrays.n - 1 - left) * p->size;
        bool keep = p->asks(p, i);

        memcpy(keep ? out + *nr * p->size : other, element(p, i), p->size);
        *nr += keep;
    }
    return 0;
}

int blz_par_filter(blz_par *par, void *out, size_t *nr, const void *in, size_t n, size_t size,
                   blz_par_keep_fn keep, void *arg, const blz_par_options *options)
{
    pack p = {{in, out, NULL, n, arg}, size, ask_keep, {.keep = keep}};

    return blz_par_pack_(par, size, &p.arrays, count_block, write_elements, nr, options);
}

int blz_par_filter_index(blz_par *par, size_t *out, size_t *nr, const void *in, size_t n,
                         size_t size, blz_par_keep_fn keep, void *arg,
                         const blz_par_options *options)
{
    pack p = {{in, out, NULL, n, arg}, size, ask_keep, {.keep = keep}};

    return blz_par_pack_(par, size, &p.arrays, count_block, write_indices, nr, options);
}

int blz_par_partition(blz_par *par, void *out, void *rest, size_t *nr, const void *in, size_t n,
                      size_t size, blz_par_keep_fn keep, void *arg, const blz_par_options *options)
{
    pack p = {{in, out, rest, n, arg}, size, ask_keep, {.keep = keep}};

    return blz_par_partition_(par, size, &p.arrays, count_block, write_both, nr, options);
}

int blz_par_unique(blz_par *par, void *out, size_t *nr, const void *in, size_t n, size_t size,
                   blz_par_equal_fn equal, void *arg, const blz_par_options *options)
{
    pack p = {{in, out, NULL, n, arg}, size, ask_equal, {.equal = equal}};

    return blz_par_pack_(par, size, &p.arrays, count_block, write_elements, nr, options);
}

int blz_par_pack(blz_par *par, void *out, size_t *nr, const void *in, size_t n, size_t size,
                 const bool *flags, const blz_par_options *options)
{
    pack p = {{in, out, NULL, n, NULL}, size, ask_flags, {.flags = flags}};

    return blz_par_pack_(par, size, &p.arrays, count_block, write_elements, nr, options);
}

int blz_par_pack_index(blz_par *par, size_t *out, size_t *nr, const bool *flags, size_t n,
                       const blz_par_options *options)
{
    pack p = {{flags, out, NULL, n, NULL}, sizeof *flags, ask_flags, {.flags = flags}};

    return blz_par_pack_(par, sizeof *flags, &p.arrays, count_block, write_indices, nr, options);
}
