/* SPDX-License-Identifier: Apache-2.0 */
/* A computation that forks all the time, with jobs in its frames. */
#ifndef PAR_FIB_H
#define PAR_FIB_H

#include "par.h"

struct half {
    blz_par_job job;
    int n;
    uint64_t result;
};

static inline void run_half(blz_par *par, blz_par_job *job);

static inline uint64_t fib(blz_par *par, int n)
{
    struct half right = {.n = n - 2};
    uint64_t left;

    if (n < 2)
        return (uint64_t)n;
    blz_par_fork(par, &right.job, run_half);
    left = fib(par, n - 1);
    if (blz_par_unfork(par, &right.job))
        right.result = fib(par, n - 2);
    return left + right.result;
}

static inline void run_half(blz_par *par, blz_par_job *job)
{
    struct half *half = blz_container_of(job, struct half, job);

    half->result = fib(par, half->n);
}

#endif
