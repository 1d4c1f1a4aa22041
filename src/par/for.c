/* SPDX-License-Identifier: Apache-2.0 */
/* Loops without a result: a fold into nothing (range.h). */
#include "par/range.h"

#include <string.h>

/* ---- ranges ---- */

typedef struct range_body {
    blz_par_range_fn fn;
    void *arg;
} range_body;

static int call_body(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    const range_body *body = arg;

    (void)acc;
    return body->fn(par, begin, end, body->arg);
}

int blz_par_for(blz_par *par, size_t n, blz_par_range_fn body, void *arg,
                const blz_par_options *options)
{
    static const blz_par_reducer nothing = {.fold = call_body};
    range_body b = {body, arg};

    return blz__par_range(par, n, &nothing, &b, NULL, options);
}

/* ---- map and fill ---- */

typedef struct mapping {
    char *out;
    const char *in;
    size_t out_size, in_size;
    blz_par_map_fn fn;
    void *arg;
} mapping;

static int map_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const mapping *m = arg;
    int rc = 0;

    (void)par;
    for (size_t i = begin; i < end && rc >= 0; i++)
        rc = m->fn(m->out + i * m->out_size, m->in + i * m->in_size, m->arg);
    return rc < 0 ? rc : 0;
}

int blz_par_map(blz_par *par, void *out, const void *in, size_t n, size_t out_size, size_t in_size,
                blz_par_map_fn fn, void *arg, const blz_par_options *options)
{
    mapping m = {out, in, out_size, in_size, fn, arg};

    return blz_par_for(par, n, map_range, &m, options);
}

typedef struct filling {
    char *out;
    const void *value;
    size_t size;
} filling;

static bool is_one_byte(const filling *f)
{
    const unsigned char *value = f->value;

    for (size_t i = 1; i < f->size; i++)
        if (value[i] != value[0])
            return false;
    return true;
}

/* What is filled already is copied, twice as much each time, as long as it stays in the cache. */
static void fill_pattern(const filling *f, size_t begin, size_t end)
{
    enum { MOST = 4096 };
    char *start = f->out + begin * f->size;
    size_t total = (end - begin) * f->size, done = f->size;

    memcpy(start, f->value, f->size);
    while (done < total) {
        size_t len = done < MOST ? done : MOST / f->size * f->size;
        if (len < f->size)
            len = f->size;
        if (len > total - done)
            len = total - done;
        memcpy(start + done, start, len);
        done += len;
    }
}

static int fill_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    const filling *f = arg;

    (void)par;
    if (is_one_byte(f))
        memset(f->out + begin * f->size, *(const unsigned char *)f->value, (end - begin) * f->size);
    else
        fill_pattern(f, begin, end);
    return 0;
}

int blz_par_fill(blz_par *par, void *out, size_t n, size_t size, const void *value,
                 const blz_par_options *options)
{
    filling f = {out, value, size};

    return blz_par_for(par, size ? n : 0, fill_range, &f, options);
}
