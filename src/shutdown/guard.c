/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards, and the future that one is around: two tokens watch over the inner future.
 *
 * The first, that of CANCELLING or STOPPING, is the business of a blz_token_guard, which is a
 * branch of ours: a cancel scope. The second, that of FORCING, is of interest only once the first
 * has been cancelled, so a guard that runs costs one registration. When it comes, our branch is
 * forced: shields in it and below it do not count any more, and who was told before is told again.
 *
 *   line      event                            next      what happens
 *   ------------------------------------------------------------------------------------------
 *   FRESH     the guard counts nobody          -         the inner future is refused
 *   FRESH     cancelled from outside           REFUSED   the inner future will be, unless it is one
 *                                                        that must run in any case
 *   REFUSED   polled                           -         refuses it, and leaves
 *   FRESH     polled                           SOFT      the branch is polled
 *   SOFT      pending, the first is cancelled  WATCHING  waits for the second, too
 *   WATCHING  pending, the second as well      FORCED    forces and cancels the branch, polls it
 *   any       the branch is ready              LEAVING   stops waiting for the second
 *   LEAVING   the second knows us no more      -         leaves; ready
 *
 * The guard is ours from the beginning. So we are not refused in a cancelled scope, but started and
 * told (BLZ_FUTURE_ALWAYS): otherwise it would never leave.
 */
#include "shutdown/shutdown.h"

#include "task/task.h"

#include <blitz/wait_info.h>
#include <blitz/error.h>

_Static_assert(sizeof(blz_guard) == 16 && sizeof(blz_guard_op) == 256, "part of the ABI");

/* ---- counting ---- */

static int counted(blz_guard *guard, blz_shutdown *shutdown, uint64_t one, int rc)
{
    *guard = rc < 0 ? (blz_guard){NULL, 0} : (blz_guard){shutdown, one};
    return rc;
}

int blz_guard_work(blz_guard *guard, blz_shutdown *shutdown)
{
    return counted(guard, shutdown, GATE_WORKER, blz__gate_enter(&shutdown->gate, GATE_WORKER));
}

int blz_guard_accept(blz_guard *guard, blz_shutdown *shutdown)
{
    return counted(guard, shutdown, GATE_ACCEPTOR, blz__gate_enter(&shutdown->gate, GATE_ACCEPTOR));
}

int blz_guard_clone(blz_guard *guard, const blz_guard *other)
{
    blz_shutdown *shutdown = other->shutdown;
    uint64_t one = other->private_;

    return counted(guard, shutdown, one,
                   shutdown ? blz__gate_enter_again(&shutdown->gate, one) : -ESHUTDOWN);
}

void blz_guard_leave(blz_guard *guard)
{
    blz_guard left = *guard;

    *guard = (blz_guard){NULL, 0};
    if (left.shutdown && blz__gate_leave(&left.shutdown->gate, left.private_))
        blz__shutdown_destroy(left.shutdown);
}

/* ---- running ---- */

/* future.line */
enum { FRESH, SOFT, WATCHING, FORCED, LEAVING, REFUSED };

static blz_poll finish(blz_guard_op *op, blz_cx *cx)
{
    blz_future *force = &op->force.future;

    if (op->future.line == WATCHING) /* it is not known to have come */
        force->ops->cancel(force, cx);
    if (op->future.line != LEAVING)
        op->future.result = op->soft.future.result;
    op->future.child = NULL;
    if (op->future.line == WATCHING || op->future.line == LEAVING) {
        op->future.line = LEAVING;
        if (blz_is_pending(force->ops->poll(force, cx)))
            return BLZ_PENDING; /* it is being told: the wake follows */
    }
    blz_guard_leave(&op->guard);
    return blz_future_done(&op->future, op->future.result);
}

/* The inner future is not started. */
static blz_poll refuse(blz_guard_op *op, blz_cx *cx, int64_t error)
{
    blz_await_refuse_(op->soft.future.child, cx, error);
    op->future.child = NULL;
    blz_guard_leave(&op->guard);
    return blz_future_done(&op->future, error);
}

/* The time of shields is over. */
static void force_branch(blz_guard_op *op, blz_cx *cx)
{
    op->future.line = FORCED;
    task_force_scope(&op->soft.future);
    blz_cancel_branch(&op->soft.future, cx);
}

/* The branch is pending. True: it is to be polled again. */
static bool watch(blz_guard_op *op, blz_cx *cx)
{
    blz_future *force = &op->force.future;
    blz_shutdown *s = op->guard.shutdown;

    if (op->future.line == SOFT && blz_token_is_cancelled(op->soft.token)) {
        blz_ignore(blz_token_cancelled(&op->force, s->tokens[BLZ_SHUTDOWN_FORCING]));
        op->future.line = WATCHING;
    }
    if (op->future.line != WATCHING || blz_is_pending(force->ops->poll(force, cx)))
        return false;
    force_branch(op, cx);
    return true;
}

static blz_poll guard_poll(blz_future *self, blz_cx *cx)
{
    blz_guard_op *op = (blz_guard_op *)self;

    if (self->line == LEAVING)
        return finish(op, cx);
    if (self->line == REFUSED)
        return refuse(op, cx, -ECANCELED);
    if (self->line == FRESH && !op->guard.shutdown)
        return refuse(op, cx, -ESHUTDOWN);
    if (self->line == FRESH)
        self->line = SOFT;
    do {
        if (blz_is_ready(blz_poll_branch(self->child, cx)))
            return finish(op, cx);
    } while (watch(op, cx));
    return BLZ_PENDING;
}

static void guard_cancel(blz_future *self, blz_cx *cx)
{
    const blz_future *inner = ((blz_guard_op *)self)->soft.future.child;

    if (self->line == FRESH && !(inner->flags & BLZ_FUTURE_ALWAYS))
        self->line = REFUSED;
    else if (self->line != LEAVING && self->line != REFUSED)
        blz_cancel_branch(self->child, cx);
}

/* It ends what it awaits, if need be. */
static void guard_describe(const blz_future *future, blz_wait_info *info)
{
    (void)future;
    info->any = true;
}

blz_future *blz_guard_run(blz_guard_op *op, blz_guard *guard, blz_future *inner)
{
    static const blz_future_ops ops = {.name = "guard_run",
                                       .poll = guard_poll,
                                       .cancel = guard_cancel,
                                       .describe_wait = guard_describe};
    blz_shutdown *s = guard->shutdown;
    int soft = guard->private_ == GATE_ACCEPTOR ? BLZ_SHUTDOWN_STOPPING : BLZ_SHUTDOWN_CANCELLING;

    blz_op_check(&op->future, &ops);
    op->guard = *guard;
    *guard = (blz_guard){NULL, 0};
    op->future =
        (blz_future){.ops = &ops,
                     .child = blz_token_guard(&op->soft, s ? s->tokens[soft] : NULL, inner),
                     .flags = BLZ_FUTURE_ALWAYS};
    return &op->future;
}
