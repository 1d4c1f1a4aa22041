/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that own their memory: a node on the heap, which the awaiting task lets go of when it is
 * cancelled, and which blz_blocking_spawn never holds on to.
 *
 *   state      event: the task is cancelled      the call has ended
 *   ----------------------------------------------------------------------------------
 *   AWAITED    DETACHED, await ends at once       DONE, then the waker is used
 *   DETACHED   -                                  the node is freed
 *   DONE       the result stands, the task        -
 *              frees the node with it
 *
 * Both sides copy the waker before they change the state: it may be the other one's to free the
 * node from then on. The argument is destroyed by whoever ends the call, before the state says so:
 * the pool's thread after fn, or whoever took the job back, or whom it was refused to.
 */
#include "blocking/blocking.h"
#include "sched/sched.h"

#include <blitz/error.h>

_Static_assert(sizeof(blz_blocking_owned_op) == 88, "part of the ABI");

enum { NODE_AWAITED, NODE_DETACHED, NODE_DONE };

/* `line` of the future */
enum { AWAIT_BEGINS, AWAIT_WAITS, AWAIT_CANCELLED };

typedef struct blz__blocking_node {
    blz__job job;
    blz_rt *rt;
    int64_t (*fn)(void *arg);
    void *arg;
    void (*destroy)(void *arg);
    blz_waker waker;
    int64_t value;
    uint32_t state;
} node;

static void free_node(node *n)
{
    blz__plain_write(&n->waker);
    blz__rt_free(n->rt, n, sizeof *n, _Alignof(node));
}

static void destroy_arg(void (*destroy)(void *arg), void *arg)
{
    if (destroy)
        destroy(arg);
}

/* ---- on the pool's thread ---- */

static void call_node(blz__job *job, int error)
{
    node *n = blz_container_of(job, node, job);
    blz_waker waker;

    blz__plain_write(&n->value);
    n->value = error < 0 ? error : n->fn(n->arg);
    destroy_arg(n->destroy, n->arg);
    blz__plain_read(&n->waker);
    waker = n->waker;
    /* release: the value; pairs with the acquire in owned_poll. acquire: that the task is through
     * with the node; pairs with the release in detach. */
    if (blz__swap(&n->state, (uint32_t)NODE_DONE, ACQ_REL) == NODE_DETACHED)
        free_node(n);
    else
        blz_waker_wake(&waker);
}

static node *new_node(blz_rt *rt, int64_t (*fn)(void *arg), void *arg, void (*destroy)(void *arg))
{
    node *n = blz__rt_alloc(rt, sizeof *n, _Alignof(node));

    if (n)
        *n = (node){.job = {.call = call_node}, .rt = rt, .fn = fn, .arg = arg, .destroy = destroy};
    return n;
}

/* ---- the future ---- */

/* 0, or an error and the argument is still ours. */
static int start(blz_blocking_owned_op *op, blz_cx *cx)
{
    blz_rt *rt = blz_cx_rt(cx);
    node *n = new_node(rt, op->fn, op->arg, op->destroy);
    int rc;

    if (!n)
        return -ENOMEM;
    n->waker = blz_cx_waker(cx);
    op->node = n;
    op->future.line = AWAIT_WAITS;
    rc = blz__blocking_submit(rt, op->lane, &n->job);
    if (rc < 0) {
        blz_waker_drop(&n->waker);
        free_node(n);
        op->node = NULL;
    }
    return rc;
}

static blz_poll owned_poll(blz_future *future, blz_cx *cx)
{
    blz_blocking_owned_op *op = (blz_blocking_owned_op *)future;

    if (future->line == AWAIT_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (future->line == AWAIT_BEGINS) {
        int rc = start(op, cx);
        if (rc < 0) {
            destroy_arg(op->destroy, op->arg);
            return blz_future_done(future, rc);
        }
    }
    if (blz__load(&op->node->state, ACQUIRE) != NODE_DONE) { /* pairs with call_node */
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
    blz__plain_read(&op->node->value);
    int64_t value = op->node->value;

    free_node(op->node);
    return blz_future_done(future, value);
}

/* False: the call has ended, and its result stands. */
static bool detach(blz_blocking_owned_op *op)
{
    node *n = op->node;
    uint32_t awaited = NODE_AWAITED;

    blz__plain_read(&n->waker);
    blz_waker waker = n->waker;

    if (blz__blocking_withdraw(n->rt, &n->job)) {
        destroy_arg(n->destroy, n->arg);
        free_node(n);
        /* release: we are through with the node; pairs with call_node */
    } else if (!blz__cas(&n->state, &awaited, (uint32_t)NODE_DETACHED, RELEASE, RELAXED)) {
        return false;
    }
    blz_waker_drop(&waker);
    return true;
}

static void owned_cancel(blz_future *future, blz_cx *cx)
{
    blz_blocking_owned_op *op = (blz_blocking_owned_op *)future;

    (void)cx;
    if (future->line == AWAIT_CANCELLED)
        return;
    if (future->line == AWAIT_BEGINS)
        destroy_arg(op->destroy, op->arg);
    else if (!detach(op))
        return;
    future->line = AWAIT_CANCELLED;
}

/* Never refused, but started and told: it has an argument to destroy. */
blz_future *blz__blocking_owned_in(blz_blocking_owned_op *op, uint32_t lane,
                                   int64_t (*fn)(void *arg), void *arg, void (*destroy)(void *arg))
{
    static const blz_future_ops ops = {.name = "blocking_owned",
                                       .poll = owned_poll,
                                       .cancel = owned_cancel};

    blz_op_check(&op->future, &ops);
    *op = (blz_blocking_owned_op){.future = {.ops = &ops, .flags = BLZ_FUTURE_ALWAYS},
                                  .fn = fn,
                                  .arg = arg,
                                  .destroy = destroy,
                                  .lane = lane};
    return &op->future;
}

blz_future *blz_blocking_owned(blz_blocking_owned_op *op, int64_t (*fn)(void *arg), void *arg,
                               void (*destroy)(void *arg))
{
    return blz__blocking_owned_in(op, BLZ__LANE_USER, fn, arg, destroy);
}

/* ---- nobody waits ---- */

int blz_blocking_spawn(blz_rt *rt, int64_t (*fn)(void *arg), void *arg, void (*destroy)(void *arg))
{
    int rc = blz__blocking_door(&rt);
    node *n;

    if (rc < 0)
        return rc;
    n = new_node(rt, fn, arg, destroy);
    if (!n)
        return -ENOMEM;
    n->state = NODE_DETACHED;
    rc = blz__blocking_submit(rt, BLZ__LANE_USER, &n->job);
    if (rc < 0)
        free_node(n);
    return rc;
}
