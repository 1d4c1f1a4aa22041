/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel computations from tasks: a task hands one to a fork-join pool and awaits it, as it would
 * await anything else; its worker is free meanwhile.
 *
 *     static int64_t sort_rows(blz_par *par, blz_par_cancel *cancel, void *arg)
 *     {
 *         struct table *t = arg;
 *         return sort_row(par, t->rows, t->nr_rows, &(blz_par_options){.cancel = cancel});
 *     }
 *
 *     struct report { BLZ_FRAME; struct table *table; int64_t rc; blz_par_run_op op; };
 *
 *     BLZ_ASYNC(report)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_par_run(&self->op, NULL, sort_rows, self->table));
 *         BLZ_END(self->rc);
 *     }
 *
 * What cancellation does: a computation that has not begun never will, and the await ends with
 * -ECANCELED at once. One that has begun is told by its blz_par_cancel: the algorithms that were
 * given it in their options end at their next split, and the function sees it by
 * blz_par_cancel_code. The await goes on until the function has returned, because it may be using
 * memory of the task, and gives its real result.
 */
#ifndef BLITZ_PAR_RUN_H
#define BLITZ_PAR_RUN_H

#include <blitz/future.h>
#include <blitz/par_for.h>

BLZ_BEGIN_DECLS

/* A computation as a future. The result is the future's. */
typedef int64_t (*blz_par_run_fn)(blz_par *par, blz_par_cancel *cancel, void *arg);

/* Lives in the caller's frame, and belongs to the pool until the await has ended. */
typedef struct blz_par_run_op {
    blz_future future;
    blz_par_cancel cancel;
    blz_pool *pool;
    blz_par_run_fn fn;
    void *arg;
    int64_t value;
    blz_waker waker;
    uint64_t root[8];
    uint32_t state;
    uint32_t spare;
    uint64_t reserved[2];
} blz_par_run_op;

/*
 * Calls fn(par, cancel, arg) in a thread of the pool (NULL: the default pool), and is ready with
 * what it returns. Allocates nothing. Or fn is never called: -EOWNERDEAD, it is the pool of the
 * parent process; -EAGAIN, there is no default pool, and it cannot be made. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_par_run(blz_par_run_op *op, blz_pool *pool, blz_par_run_fn fn,
                                              void *arg);

BLZ_END_DECLS
#endif
