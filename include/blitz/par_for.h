/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel loops.
 *
 *     static int scale(blz_par *par, size_t begin, size_t end, void *arg)
 *     {
 *         double *v = arg;
 *
 *         for (size_t i = begin; i < end; i++)
 *             v[i] *= 2;
 *         return 0;
 *     }
 *
 *     rc = blz_par_for(par, n, scale, v, NULL);        // in a computation, see par.h
 *
 * The body is called with parts of [0, n), by as many threads as have nothing else to do. How
 * finely the loop is cut is found out while it runs: a loop that is over in two microseconds is one
 * call, or a few; a long one is cut where other threads come for work. The order of the calls is
 * not defined.
 *
 * A body that returns a negative error ends the loop: no further part is begun, those that are
 * under way are waited for, and the loop returns the error that came first.
 */
#ifndef BLITZ_PAR_FOR_H
#define BLITZ_PAR_FOR_H

#include <blitz/par.h>

BLZ_BEGIN_DECLS

/* ---- cancellation ---- */

/* Ends computations that know of it. {0} at first: not cancelled. It may be used for many. */
typedef struct blz_par_cancel {
    int32_t code; /* 0, or why; written once, by any thread */
    uint32_t reserved[3];
} blz_par_cancel;

/* Cancels, with a negative error (-ECANCELED, ...). The first one stays. [any thread] */
BLZ_API void blz_par_cancel_set(blz_par_cancel *cancel, int error);

/* 0: not cancelled; otherwise the error. [any thread] */
BLZ_API int blz_par_cancel_code(const blz_par_cancel *cancel);

/* ---- options ---- */

/* Of a single call of an algorithm. NULL, or all zero: the defaults. */
typedef struct blz_par_options {
    size_t grain;           /* never cut into parts of fewer elements; 0: found out */
    blz_par_cancel *cancel; /* looked at before each part is begun; NULL: none */
    blz_par_wait waiting;   /* for parts that others have taken */
    uint64_t reserved[4];
} blz_par_options;

/* ---- loops ---- */

/* For the indices begin to end - 1. 0, or a negative error, which ends the loop. */
typedef int (*blz_par_range_fn)(blz_par *par, size_t begin, size_t end, void *arg);

/*
 * Calls the body with ranges that make up [0, n), each index once. 0; the first error of a body;
 * the error of the cancellation. When it returns no thread is in the body any more.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_for(blz_par *par, size_t n, blz_par_range_fn body, void *arg,
                                      const blz_par_options *options);

BLZ_END_DECLS
#endif
