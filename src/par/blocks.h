/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms over blocks of an array have in common. */
#ifndef BLZ_PAR_BLOCKS_H
#define BLZ_PAR_BLOCKS_H

#include "par/pool.h"

#include <blitz/par_kernels.h>

#include <string.h>

extern const blz_par_options blz__par_defaults;

static inline const blz_par_options *options_or_defaults(const blz_par_options *options)
{
    return options ? options : &blz__par_defaults;
}

/* The same options for a loop of another kind of element. */
static inline blz_par_options options_with_grain(const blz_par_options *options, size_t grain)
{
    blz_par_options o = *options;

    o.grain = grain;
    return o;
}

static inline int cancelled(const blz_par_options *options)
{
    return options->cancel ? blz_par_cancel_code(options->cancel) : 0;
}

static inline unsigned nr_threads_of(const blz_par *par)
{
    return worker_of(par)->pool->nr_workers;
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* How many blocks of that length there are. */
static inline size_t nr_blocks(size_t n, size_t block)
{
    return n / block + (n % block != 0);
}

static inline __attribute__((always_inline)) void swap_elements(char *a, char *b, size_t size)
{
    char buffer[256];

    for (size_t done = 0; done < size; done += sizeof buffer) {
        size_t len = min_size(size - done, sizeof buffer);
        memcpy(buffer, a + done, len);
        memcpy(a + done, b + done, len);
        memcpy(b + done, buffer, len);
    }
}

#endif
