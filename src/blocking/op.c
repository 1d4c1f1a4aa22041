/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, in memory of the caller: blz_blocking and its kin that wait for the result.
 *
 * The pool owns the op from the submit to the change of its state word to DONE, which is the last
 * thing that it does to it. Who waits says so in the word before, so that it is told:
 *
 *   state     event: a task waits   a thread waits   the call has ended
 *   ------------------------------------------------------------------------------
 *   STARTED   WAKER, the waker      SLEEPER, and     DONE
 *             was stored before     sleeps on it
 *   WAKER     -                     -                DONE, then the waker is used
 *   SLEEPER   -                     -                DONE, then the thread is woken
 *   DONE      the result            the result       -
 *
 * A cancelled await asks the pool for the job. If it is still in the queue, it is the task's again
 * and nobody else knows of it; otherwise the await goes on until DONE.
 */
#include "base/panic.h"
#include "system/futex.h"
#include "blocking/blocking.h"
#include "sched/sched.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

_Static_assert(sizeof(blz_blocking_op) == 136, "part of the ABI");

enum { OP_STARTED, OP_WAKER, OP_SLEEPER, OP_DONE };

/* `line` of the future */
enum { AWAIT_BEGINS, AWAIT_WAITS, AWAIT_CANCELLED };

/* ---- on the pool's thread ---- */

static void finish(blz_blocking_op *op, int64_t value)
{
    uint32_t state = blz__load(&op->state, ACQUIRE); /* the waker; pairs with register_waker */
    blz_waker waker;

    blz__plain_write(&op->value);
    op->value = value;
    do {
        waker = (blz_waker){NULL, NULL};
        if (state == OP_WAKER) {
            blz__plain_read(&op->waker);
            waker = op->waker;
        }
        /* release: the value, and that we are through; pairs with is_done. The op is not ours any
         * more as soon as this succeeds. */
    } while (!blz__cas_weak(&op->state, &state, (uint32_t)OP_DONE, ACQ_REL, ACQUIRE));
    if (state == OP_WAKER)
        blz_waker_wake(&waker);
    else if (state == OP_SLEEPER)
        blz__futex_wake(&op->state, 1);
}

static void call_op(blz__job *job, int error)
{
    blz_blocking_op *op = blz_container_of(job, blz_blocking_op, job);

    finish(op, error < 0 ? error : op->fn(op->arg));
}

/* ---- waiting ---- */

static bool is_done(const blz_blocking_op *op)
{
    return blz__load(&op->state, ACQUIRE) == OP_DONE; /* pairs with the release in finish */
}

/* False: it is done. */
static bool register_waker(blz_blocking_op *op, blz_cx *cx)
{
    uint32_t started = OP_STARTED;

    blz__plain_write(&op->waker);
    op->waker = blz_cx_waker(cx);
    /* release: the waker; pairs with the acquire in finish */
    if (blz__cas(&op->state, &started, (uint32_t)OP_WAKER, RELEASE, RELAXED))
        return true;
    blz_waker_drop(&op->waker);
    return false;
}

/* Starts the call with the waker in place. 0 or an error, then it was not started. */
static int submit_awaited(blz_blocking_op *op, blz_cx *cx)
{
    int rc;

    op->rt = blz_cx_rt(cx);
    op->waker = blz_cx_waker(cx);
    blz__store(&op->state, (uint32_t)OP_WAKER, RELAXED);
    rc = blz__blocking_submit(op->rt, op->job.lane, &op->job);
    if (rc < 0)
        blz_waker_drop(&op->waker);
    return rc;
}

static int begin(blz_blocking_op *op, blz_cx *cx)
{
    op->future.line = AWAIT_WAITS;
    if (!op->rt)
        return submit_awaited(op, cx);
    register_waker(op, cx); /* started before; if it is done already, the caller will see */
    return 0;
}

static blz_poll op_poll(blz_future *future, blz_cx *cx)
{
    blz_blocking_op *op = (blz_blocking_op *)future;

    if (future->line == AWAIT_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (future->line == AWAIT_BEGINS) {
        int rc = begin(op, cx);
        if (rc < 0)
            return blz_future_done(future, rc);
    }
    if (!is_done(op)) {
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
    blz__plain_read(&op->value);
    return blz_future_done(future, op->value);
}

static void op_cancel(blz_future *future, blz_cx *cx)
{
    blz_blocking_op *op = (blz_blocking_op *)future;

    (void)cx;
    if (future->line == AWAIT_CANCELLED)
        return;
    if (op->rt && !blz__blocking_withdraw(op->rt, &op->job))
        return; /* it runs, and has the op until it is done */
    if (future->line == AWAIT_WAITS)
        blz_waker_drop(&op->waker);
    future->line = AWAIT_CANCELLED;
}

static void op_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_blocking_op *op = (const blz_blocking_op *)(const void *)future;

    info->kind = "blocking job";
    info->object = op;
}

static void init(blz_blocking_op *op, uint32_t lane, int64_t (*fn)(void *arg), void *arg)
{
    static const blz_future_ops ops = {.name = "blocking",
                                       .poll = op_poll,
                                       .cancel = op_cancel,
                                       .describe_wait = op_describe};

    blz_op_check(&op->future, &ops);
    if (blz_unlikely(op->rt && op->future.line == AWAIT_BEGINS && !is_done(op)))
        blz_op_in_flight_(&op->future, &ops); /* started, and neither awaited nor over */
    *op = (blz_blocking_op){.future = {.ops = &ops},
                            .job = {.call = call_op, .lane = lane},
                            .fn = fn,
                            .arg = arg};
}

blz_future *blz__blocking_in(blz_blocking_op *op, uint32_t lane, int64_t (*fn)(void *arg),
                             void *arg)
{
    init(op, lane, fn, arg);
    return &op->future;
}

blz_future *blz_blocking(blz_blocking_op *op, int64_t (*fn)(void *arg), void *arg)
{
    return blz__blocking_in(op, BLZ__LANE_USER, fn, arg);
}

/* ---- in two steps, and for threads ---- */

int blz_blocking_start(blz_blocking_op *op, int64_t (*fn)(void *arg), void *arg, blz_rt *rt)
{
    int rc = blz__blocking_door(&rt);

    if (rc < 0)
        return rc;
    init(op, BLZ__LANE_USER, fn, arg);
    op->rt = rt;
    rc = blz__blocking_submit(rt, BLZ__LANE_USER, &op->job);
    if (rc < 0)
        op->rt = NULL;
    return rc;
}

blz_future *blz_blocking_join(blz_blocking_op *op)
{
    if (!op->rt || op->future.line != AWAIT_BEGINS)
        blz__panic("blz_blocking_join of a call that was not started, or is awaited already");
    op->future.flags |= BLZ_FUTURE_ALWAYS; /* it has begun: refusing would not end it */
    return &op->future;
}

int64_t blz_blocking_wait(blz_blocking_op *op)
{
    uint32_t started = OP_STARTED;

    if (!blz__sched_may_block(op->rt))
        return -EDEADLK;
    if (blz__cas(&op->state, &started, (uint32_t)OP_SLEEPER, RELAXED, RELAXED))
        while (!is_done(op))
            blz__futex_wait(&op->state, OP_SLEEPER);
    (void)blz__load(&op->state, ACQUIRE); /* pairs with the release in finish */
    blz__plain_read(&op->value);
    return op->value;
}

int64_t blz_blocking_run(blz_rt *rt, int64_t (*fn)(void *arg), void *arg)
{
    blz_blocking_op op = {0};
    int rc;

    if (rt ? !blz__sched_may_block(rt) : blz__sched_on_worker())
        return -EDEADLK;
    rc = blz_blocking_start(&op, fn, arg, rt);
    return rc < 0 ? rc : blz_blocking_wait(&op);
}
