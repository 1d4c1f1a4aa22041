/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place where the pool meets tasks: a computation as a future.
 *
 * It waits in the pool's queue like one of a thread that blocks, but has its own end: that wakes a
 * task. The pool owns the op from the push to the change of its state to DONE.
 *
 *   state     event: awaited         has ended
 *   ------------------------------------------------------
 *   WAITING   its waker is in place  DONE, then it is woken
 *   DONE      the result             -
 *
 * A cancelled await takes the computation out of the queue if it is still there; otherwise it sets
 * the cancellation that the computation looks at, and waits on.
 */
#include "par/pool.h"

#include "sched/sched.h"

#include <blitz/wait_info.h>
#include <blitz/par_run.h>

#include <blitz/error.h>

enum { RUN_WAITING, RUN_DONE };

/* `line` of the future */
enum { AWAIT_BEGINS, AWAIT_WAITS, AWAIT_CANCELLED };

_Static_assert(sizeof(root) <= sizeof(((blz_par_run_op *)NULL)->root), "a root fits");

static root *root_of(blz_par_run_op *op)
{
    return (root *)(void *)op->root;
}

/* ---- in the pool ---- */

static void call(blz_par *par, void *arg)
{
    blz_par_run_op *op = arg;

    blz__plain_write(&op->value);
    op->value = op->fn(par, &op->cancel, op->arg);
}

/* The op is not ours any more as soon as it says DONE. */
static void finish(root *r)
{
    blz_par_run_op *op = r->arg;
    blz_waker waker;

    blz__plain_read(&op->waker);
    waker = op->waker;
    blz__store(&op->state, (uint32_t)RUN_DONE, RELEASE); /* pairs with the acquire in run_poll */
    blz_waker_wake(&waker);
}

/* ---- in the task ---- */

static int begin(blz_par_run_op *op, blz_cx *cx)
{
    root *r = root_of(op);

    if (!op->pool)
        op->pool = blz_pool_default();
    if (!op->pool)
        return -EAGAIN;
    if (pool_is_forked(op->pool))
        return -EOWNERDEAD;
    op->future.line = AWAIT_WAITS;
    op->waker = blz_cx_waker(cx);
    *r = (root){.fn = call, .arg = op, .finish = finish};
    blz__par_start(op->pool, r);
    return 0;
}

static blz_poll run_poll(blz_future *future, blz_cx *cx)
{
    blz_par_run_op *op = (blz_par_run_op *)future;

    if (future->line == AWAIT_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (future->line == AWAIT_BEGINS) {
        int rc = begin(op, cx);
        if (rc < 0)
            return blz_future_done(future, rc);
    }
    if (blz__load(&op->state, ACQUIRE) != RUN_DONE) { /* pairs with the release in finish */
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
    blz__plain_read(&op->value);
    return blz_future_done(future, op->value);
}

static void run_cancel(blz_future *future, blz_cx *cx)
{
    blz_par_run_op *op = (blz_par_run_op *)future;

    (void)cx;
    if (future->line == AWAIT_CANCELLED)
        return;
    if (future->line == AWAIT_WAITS) {
        blz_par_cancel_set(&op->cancel, -ECANCELED);
        if (!blz__par_inject_withdraw(&op->pool->injected, root_of(op)))
            return; /* it runs, and has the op until it is done */
        blz_waker_drop(&op->waker);
    }
    future->line = AWAIT_CANCELLED;
}

static void run_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_par_run_op *op = (const blz_par_run_op *)(const void *)future;

    info->kind = "computation";
    info->object = op->pool;
}

blz_future *blz_par_run(blz_par_run_op *op, blz_pool *pool, blz_par_run_fn fn, void *arg)
{
    static const blz_future_ops ops = {.name = "par_run",
                                       .poll = run_poll,
                                       .cancel = run_cancel,
                                       .describe_wait = run_describe};

    blz_op_check(&op->future, &ops);
    *op = (blz_par_run_op){.future = {.ops = &ops}, .pool = pool, .fn = fn, .arg = arg};
    return &op->future;
}
