/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans of elements of any size, by a callback. How the blocks of a scan come together is in
 * chain.c; these are the loops over one block.
 *
 * The value that goes from block to block has room for two elements. The second one keeps an
 * element while its place is being written: an exclusive scan may write over what it reads.
 */
#include "par/blocks.h"

#include <blitz/par_scan.h>

#include <blitz/error.h>
#include <string.h>

typedef struct scan {
    const char *in;
    char *out;
    size_t size;
    blz_par_op_fn op;
    void *arg;
} scan;

static int sum_block(size_t begin, size_t end, void *sum, void *arg)
{
    const scan *s = arg;

    memcpy(sum, s->in + begin * s->size, s->size);
    for (size_t i = begin + 1; i < end; i++)
        s->op(sum, s->in + i * s->size, s->arg);
    return 0;
}

static int write_inclusive(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const scan *s = arg;
    size_t i = begin;

    if (first) {
        memcpy(carry, s->in + i * s->size, s->size);
        memmove(s->out + i * s->size, carry, s->size);
        i++;
    }
    for (; i < end; i++) {
        s->op(carry, s->in + i * s->size, s->arg);
        memcpy(s->out + i * s->size, carry, s->size);
    }
    return 0;
}

static int write_exclusive(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const scan *s = arg;
    void *x = (char *)carry + s->size;

    (void)first;
    for (size_t i = begin; i < end; i++) {
        memcpy(x, s->in + i * s->size, s->size);
        memcpy(s->out + i * s->size, carry, s->size);
        s->op(carry, x, s->arg);
    }
    return 0;
}

static void add(void *left, const void *right, void *arg)
{
    const scan *s = arg;

    s->op(left, right, s->arg);
}

/* `first` and `total` may be NULL. */
static int run(blz_par *par, scan *s, size_t n, blz_par_write_fn_ write, const void *first,
               void *total, const blz_par_options *options)
{
    struct blz_par_chain_ chain = {n, s->size, 2 * s->size, s, sum_block, write, add};
    max_align_t small[4];
    bool is_small = chain.value_size <= sizeof small;
    void *value = is_small ? small : blz__par_alloc(par, chain.value_size);
    int rc;

    if (!value)
        return -ENOMEM;
    memset(value, 0, chain.value_size);
    if (first)
        memcpy(value, first, s->size);
    rc = blz_par_chain_run_(par, &chain, value, first != NULL, options);
    if (total)
        memcpy(total, value, s->size);
    if (!is_small)
        blz__par_free(par, value, chain.value_size);
    return rc;
}

int blz_par_scan_inclusive(blz_par *par, void *out, const void *in, size_t n, size_t size,
                           blz_par_op_fn op, void *arg, const blz_par_options *options)
{
    scan s = {in, out, size, op, arg};

    return run(par, &s, n, write_inclusive, NULL, NULL, options);
}

int blz_par_scan_exclusive(blz_par *par, void *out, void *total, const void *in, size_t n,
                           size_t size, const void *first, blz_par_op_fn op, void *arg,
                           const blz_par_options *options)
{
    scan s = {in, out, size, op, arg};

    return run(par, &s, n, write_exclusive, first, total, options);
}
