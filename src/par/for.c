/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over ranges: halved down to the grain, the right half forked. */
#include "par/pool.h"

#include <blitz/par_for.h>

typedef struct loop {
    blz_par_range_fn body;
    void *arg;
    size_t grain;
    const blz_par_cancel *cancel;
    blz_par_cancel failure;
} loop;

typedef struct part {
    blz_par_job job;
    loop *loop;
    size_t begin, end;
} part;

static bool is_over(loop *l)
{
    int code = l->cancel ? blz_par_cancel_code(l->cancel) : 0;

    if (code)
        blz_par_cancel_set(&l->failure, code);
    return blz_par_cancel_code(&l->failure) != 0;
}

static void run_part(blz_par *par, blz_par_job *job);

static void run_range(blz_par *par, loop *l, size_t begin, size_t end)
{
    part right = {.loop = l, .begin = begin + (end - begin) / 2, .end = end};

    if (is_over(l))
        return;
    if (end - begin <= l->grain) {
        int rc = l->body(par, begin, end, l->arg);
        if (rc < 0)
            blz_par_cancel_set(&l->failure, rc);
        return;
    }
    blz_par_fork(par, &right.job, run_part);
    run_range(par, l, begin, right.begin);
    if (blz_par_unfork(par, &right.job))
        run_range(par, l, right.begin, end);
}

static void run_part(blz_par *par, blz_par_job *job)
{
    part *p = blz_container_of(job, part, job);

    run_range(par, p->loop, p->begin, p->end);
}

int blz_par_for(blz_par *par, size_t n, blz_par_range_fn body, void *arg,
                const blz_par_options *options)
{
    static const blz_par_options defaults;
    const blz_par_options *o = options ? options : &defaults;
    loop l = {body, arg, o->grain, o->cancel, {0}};

    if (l.grain == 0)
        l.grain = n / (8 * (size_t)worker_of(par)->pool->nr_workers) + 1;
    if (n > 0)
        run_range(par, &l, 0, n);
    else
        is_over(&l);
    return blz_par_cancel_code(&l.failure);
}
