/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements to other places: flatten, gather, scatter.
 *
 * Flatten splits the result, not the list of arrays: a part of the result is begun in the array
 * that a binary search finds, so one long array among short ones is copied by all threads.
 *
 * Gather and scatter have a loop for each of the common sizes, in which a copy is a load and a
 * store.
 */
#include "par/blocks.h"

#include <blitz/par_scan.h>

#include <blitz/error.h>
#include <string.h>

/* ---- flatten ---- */

typedef struct flat {
    const blz_par_slice *slices;
    const size_t *offsets;
    char *out;
    size_t nr, size;
} flat;

static int sum_lengths(size_t begin, size_t end, void *sum, void *arg)
{
    const struct blz_par_arrays_ *a = arg;
    const blz_par_slice *slices = a->in;
    size_t len = 0;

    for (size_t i = begin; i < end; i++)
        len += slices[i].len;
    *(size_t *)sum = len;
    return 0;
}

static int write_offsets(size_t begin, size_t end, void *carry, bool first, void *arg)
{
    const struct blz_par_arrays_ *a = arg;
    const blz_par_slice *slices = a->in;
    size_t *offsets = a->out, at = *(size_t *)carry;

    (void)first;
    for (size_t i = begin; i < end; i++) {
        offsets[i] = at;
        at += slices[i].len;
    }
    *(size_t *)carry = at;
    return 0;
}

int blz_par_offsets(blz_par *par, size_t *offsets, const blz_par_slice *slices, size_t nr,
                    const blz_par_options *options)
{
    struct blz_par_arrays_ arrays = {slices, offsets, NULL, nr, NULL};

    /* A filter that keeps as many as each one is long. */
    return blz_par_pack_(par, sizeof *slices, &arrays, sum_lengths, write_offsets, offsets + nr,
                         options);
}

/* The array in which place `at` of the result is: the last one that begins there or before. */
static size_t slice_at(const flat *f, size_t at)
{
    size_t low = 0, high = f->nr;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (f->offsets[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int copy_part(blz_par *par, size_t begin, size_t end, void *arg)
{
    const flat *f = arg;

    (void)par;
    for (size_t i = slice_at(f, begin); begin < end; i++) {
        size_t stop = min_size(f->offsets[i + 1], end), skip = begin - f->offsets[i];
        if (stop > begin)
            memcpy(f->out + begin * f->size, (const char *)f->slices[i].data + skip * f->size,
                   (stop - begin) * f->size);
        begin = stop;
    }
    return 0;
}

int blz_par_flatten(blz_par *par, void *out, const blz_par_slice *slices, size_t nr, size_t size,
                    const size_t *offsets, const blz_par_options *options)
{
    flat f = {slices, offsets, out, nr, size};

    return blz_par_for(par, offsets[nr], copy_part, &f, options);
}

/* ---- gather and scatter ---- */

typedef struct move {
    const char *in;
    char *out;
    const size_t *index;
    size_t size, len;
} move;

/* out[i] = in[index[i]] */
static inline __attribute__((always_inline)) int gather_range(const move *m, size_t begin,
                                                              size_t end, size_t size)
{
    for (size_t i = begin; i < end; i++) {
        if (blz_unlikely(m->index[i] >= m->len))
            return -ERANGE;
        memcpy(m->out + i * size, m->in + m->index[i] * size, size);
    }
    return 0;
}

/* out[index[i]] = in[i] */
static inline __attribute__((always_inline)) int scatter_range(const move *m, size_t begin,
                                                               size_t end, size_t size)
{
    for (size_t i = begin; i < end; i++) {
        if (blz_unlikely(m->index[i] >= m->len))
            return -ERANGE;
        memcpy(m->out + m->index[i] * size, m->in + i * size, size);
    }
    return 0;
}

/* clang-format off */
#define BY_SIZE(range, m, begin, end)                                                            \
    ((m)->size == 8    ? range((m), (begin), (end), 8)                                           \
     : (m)->size == 4  ? range((m), (begin), (end), 4)                                           \
     : (m)->size == 1  ? range((m), (begin), (end), 1)                                           \
     : (m)->size == 16 ? range((m), (begin), (end), 16)                                          \
                       : range((m), (begin), (end), (m)->size))
/* clang-format on */

static int gather(blz_par *par, size_t begin, size_t end, void *arg)
{
    const move *m = arg;

    (void)par;
    return BY_SIZE(gather_range, m, begin, end);
}

static int scatter(blz_par *par, size_t begin, size_t end, void *arg)
{
    const move *m = arg;

    (void)par;
    return BY_SIZE(scatter_range, m, begin, end);
}

int blz_par_gather(blz_par *par, void *out, const void *in, size_t len, size_t size,
                   const size_t *index, size_t n, const blz_par_options *options)
{
    move m = {in, out, index, size, len};

    return blz_par_for(par, n, gather, &m, options);
}

int blz_par_scatter(blz_par *par, void *out, size_t len, const void *in, size_t n, size_t size,
                    const size_t *index, const blz_par_options *options)
{
    move m = {in, out, index, size, len};

    return blz_par_for(par, n, scatter, &m, options);
}
