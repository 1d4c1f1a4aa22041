/* SPDX-License-Identifier: Apache-2.0 */
/* See distribute.h. The counters of a row are on lines of their own. */
#include "par/distribute.h"

#include <blitz/error.h>
#include <string.h>

enum { ROWS_PER_THREAD = 4 };

typedef struct rows {
    const distribution *d;
    size_t nr, stride;
    size_t *counters; /* of row r: from r * stride on; counts, then places */
} rows;

static size_t row_begin(const rows *r, size_t row)
{
    return r->d->n / r->nr * row + min_size(row, r->d->n % r->nr);
}

static int count_rows(blz_par *par, size_t begin, size_t end, void *arg)
{
    const rows *r = arg;
    int rc = 0;

    (void)par;
    for (size_t row = begin; row < end && rc == 0; row++) {
        size_t *counts = r->counters + row * r->stride;
        memset(counts, 0, r->stride * sizeof *counts);
        rc = r->d->count(row_begin(r, row), row_begin(r, row + 1), counts, r->d->arg);
    }
    return rc;
}

static int move_rows(blz_par *par, size_t begin, size_t end, void *arg)
{
    const rows *r = arg;

    (void)par;
    for (size_t row = begin; row < end; row++)
        r->d->move(row_begin(r, row), row_begin(r, row + 1), r->counters + row * r->stride,
                   r->d->arg);
    return 0;
}

static void make_places(const rows *r)
{
    size_t place = 0;

    for (size_t k = 0; k < r->d->nr_buckets; k++) {
        r->d->starts[k] = place;
        for (size_t row = 0; row < r->nr; row++) {
            size_t *counter = &r->counters[row * r->stride + k], count = *counter;
            *counter = place;
            place += count;
        }
    }
    r->d->starts[r->d->nr_buckets] = place;
}

int blz__par_distribute(blz_par *par, const distribution *d, const blz_par_options *options)
{
    blz_par_options each = options_with_grain(options, 1);
    size_t threads = nr_threads_of(par), line = BLZ_CACHE_LINE / sizeof(size_t);
    size_t most = threads > 1 ? ROWS_PER_THREAD * threads : 1;
    rows r = {.d = d, .nr = max_size(min_size(nr_blocks(d->n, d->row), most), 1)};
    size_t size;
    int rc;

    r.stride = nr_blocks(d->nr_buckets, line) * line;
    size = r.nr * r.stride * sizeof *r.counters;
    r.counters = blz__par_alloc(par, size);
    if (!r.counters)
        return -ENOMEM;
    rc = blz_par_for(par, r.nr, count_rows, &r, &each);
    if (rc == 0) {
        make_places(&r);
        rc = blz_par_for(par, r.nr, move_rows, &r, &each);
    }
    blz__par_free(par, r.counters, size);
    return rc;
}
