/* SPDX-License-Identifier: Apache-2.0 */
/* A join of many branches: halves of halves, so that a thief takes half of what is left. */
#include "par/pool.h"

struct calls {
    blz_par_job job;
    const blz_par_call *calls;
    size_t count;
};

static void run_calls(blz_par *par, blz_par_job *job)
{
    struct calls *right = blz_container_of(job, struct calls, job);

    blz_par_join_n(par, right->calls, right->count);
}

void blz_par_join_n(blz_par *par, const blz_par_call *calls, size_t count)
{
    struct calls right;
    size_t left = count - count / 2;

    if (count <= 1) {
        if (count == 1)
            calls->fn(par, calls->arg);
        return;
    }
    right.calls = calls + left;
    right.count = count - left;
    blz_par_fork(par, &right.job, run_calls);
    blz_par_join_n(par, calls, left);
    if (blz_par_unfork(par, &right.job))
        blz_par_join_n(par, right.calls, right.count);
}
