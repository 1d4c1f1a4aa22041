/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Awaiting and cancelling: the part of blitz/future.h and blitz/async.h that is too rare to inline.
 *
 * Cancellation belongs to a scope, a future whose `flags` say how far it has come: the root frame
 * of a task, or a combinator's branch. cx->scope is the innermost one while its futures are polled.
 *
 *     flags of a scope               event                      what happens
 *     ----------------------------   ------------------------   --------------------------------
 *     0                              cancelled                  CANCELLED | DELIVERED, told now
 *     shield > 0                     cancelled                  CANCELLED
 *     CANCELLED, shield > 1          unshield                   shield - 1
 *     CANCELLED, shield = 1          unshield                   CANCELLED, the task is woken
 *     CANCELLED, shield > 0          forced                     CANCELLED | FORCED
 *     CANCELLED | DELIVERED          forced                     CANCELLED | FORCED
 *     CANCELLED [FORCED, shield]     about to be polled         CANCELLED | DELIVERED, told now
 *     CANCELLED | DELIVERED          any other of the above     nobody is told twice
 *
 * Being forced is the one thing that can come after a delivery: what has been awaited under a
 * shield since then knows nothing of it.
 *
 * "Told" is ops->cancel, from the top down, and it only ever happens between two polls of the
 * futures concerned: before the scope is polled, or by a combinator from outside of the branch.
 * The unshield that reaches zero is inside a poll, so it wakes the task instead of telling: a
 * future further up may be in the middle of changing its children. Nothing is lost by that, since
 * awaits are refused from then on.
 *
 * A future that is refused has never been polled. It is not told of anything, and the only thing
 * that it can own is the memory of a box (small_futures.c), which is given back here. One that must
 * run even in a cancelled scope (BLZ_FUTURE_ALWAYS) is told before its first poll instead.
 *
 * All of this runs on the worker that polls the task. Other threads set a bit in the task's state
 * word and never look at a frame.
 */
#include "task/future.h"

#include "base/panic.h"
#include "task/task.h"

#include <string.h>

/* ---- Scopes ---- */

static bool is_shielded(const blz_future *scope)
{
    return scope->flags >= BLZ_FUTURE_SHIELD && !(scope->flags & BLZ_FUTURE_FORCED);
}

/* Tells the futures of the branch if the time has come. cx->scope is the branch. */
static void deliver(blz_future *branch, blz_cx *cx)
{
    uint32_t state = branch->flags & (BLZ_FUTURE_CANCELLED | BLZ_FUTURE_DELIVERED);

    if (state != BLZ_FUTURE_CANCELLED || is_shielded(branch))
        return;
    branch->flags |= BLZ_FUTURE_DELIVERED;
    blz_future_cancel(branch, cx);
}

/* The memory may be rubbish: nothing in it is followed. */
void blz_op_in_flight_(const blz_future *op, const blz_future_ops *next)
{
    (void)op;
    blz__panic("`%s` was begun in an operation that is still in flight, or in memory that was not "
               "zero",
               next->name);
}

/* Nobody else may poll it: the same future is in two places of one task, or of two. */
static BLZ_NORETURN BLZ_COLD void polled_after_ready(const blz_future *future)
{
    blz__panic("`%s` was polled again after it was ready: it is awaited in two places, or was not "
               "made anew",
               future->ops->name);
}

/* Makes the branch the scope; gives the one around it. */
static blz_future *enter(blz_future *branch, blz_cx *cx)
{
    blz_future *outer = cx->scope;

    if (blz_unlikely(outer->flags & BLZ_FUTURE_FORCED))
        task_force_scope(branch);
    cx->scope = branch;
    return outer;
}

blz_poll blz_poll_branch(blz_future *branch, blz_cx *cx)
{
    blz_future *outer = enter(branch, cx);

    if (blz_unlikely(branch->line == BLZ_LINE_DONE))
        polled_after_ready(branch);
    if (blz_unlikely(branch->flags & BLZ_FUTURE_CANCELLED))
        deliver(branch, cx);
    blz_poll poll = branch->ops->poll(branch, cx);
    cx->scope = outer;
    return poll;
}

void blz_cancel_branch(blz_future *branch, blz_cx *cx)
{
    blz_future *outer = enter(branch, cx);

    branch->flags |= BLZ_FUTURE_CANCELLED;
    deliver(branch, cx);
    cx->scope = outer;
}

/* BLZ_DEBUG_FRAMES: the child is ready, and the frame pretends that it is not. */
static bool is_held_back(const blz_future *child, const blz_future *frame)
{
    return child && (child->flags & frame->flags & BLZ_FUTURE_FRESH_);
}

void blz_future_cancel(blz_future *future, blz_cx *cx)
{
    for (; future && !(future->flags & BLZ_FUTURE_REFUSED); future = future->child) {
        if (future->ops->cancel) {
            future->ops->cancel(future, cx);
            return;
        }
        if (is_held_back(future->child, future))
            return;
    }
}

/* ---- Shields ---- */

int blz_shield(blz_cx *cx)
{
    if (cx->scope->flags > UINT32_MAX - BLZ_FUTURE_SHIELD)
        return -EOVERFLOW;
    cx->scope->flags += BLZ_FUTURE_SHIELD;
    return 0;
}

void blz_unshield(blz_cx *cx)
{
    blz_future *scope = cx->scope;

    if (scope->flags < BLZ_FUTURE_SHIELD)
        blz__panic("blz_unshield in `%s`, which has no shield", scope->ops->name);
    scope->flags -= BLZ_FUTURE_SHIELD;

    uint32_t state = scope->flags & (BLZ_FUTURE_CANCELLED | BLZ_FUTURE_DELIVERED);
    if (blz_unlikely(state == BLZ_FUTURE_CANCELLED && scope->flags < BLZ_FUTURE_SHIELD)) {
        blz_waker waker = blz_cx_waker(cx);
        blz_waker_wake(&waker);
    }
}

/* ---- Refused awaits ---- */

void blz__future_discard(blz_future *future, blz_cx *cx)
{
    while (future && future->ops != &blz__box_ops)
        future = future->child;
    if (future) /* what is in the box has not begun and awaits nothing */
        blz__box_discard((blz_box *)future, cx);
}

void blz_await_refuse_(blz_future *child, blz_cx *cx, int64_t error)
{
    if (child->flags & BLZ_FUTURE_ALWAYS) {
        blz_future_cancel(child, cx); /* it starts all the same, and knows how to end early */
        return;
    }
    blz__future_discard(child, cx);
    child->child = NULL;
    child->flags |= BLZ_FUTURE_REFUSED;
    child->result = error;
}

blz_poll blz_await_refused_(blz_future *child, blz_cx *cx)
{
    /* Code that ignores the result must still let others run, and be seen by the watchdog. */
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (cx->worker)
        blz__task_refused(cx);
    return blz_future_done(child, child->result);
}

/* ---- Mistakes in the async form that no compiler finds ---- */

/* The innermost async function of the chain: its line is where it waits. */
static const blz_future *innermost_frame(const blz_future *root, const blz_future **leaf)
{
    const blz_future *frame = root;

    for (const blz_future *f = root; f; f = f->child) {
        *leaf = f;
        if (f->ops->file)
            frame = f;
    }
    return frame;
}

void blz__task_waits_for_nothing(const blz_future *root)
{
    const blz_future *leaf = root, *frame = innermost_frame(root, &leaf);

    if (!frame->ops->file)
        blz__panic("`%s` returned BLZ_PENDING and waits for nothing: it holds no waker of its task",
                   leaf->ops->name);
    blz__panic("`%s` (%s:%u) waits for nothing: `%s` returned BLZ_PENDING and holds no waker",
               frame->ops->name, frame->ops->file, frame->line, leaf->ops->name);
}

void blz_bad_resume_(const blz_future *self)
{
    const blz_future_ops *ops = self->ops;

    if (self->line == BLZ_LINE_DONE)
        blz__panic("`%s` was polled again after it was ready (%s)", ops->name, ops->file);
    blz__panic("`%s` cannot resume at %s:%u: an await must not be inside a `switch` of your own",
               ops->name, ops->file, self->line);
}

void blz_stray_break_(const blz_future *self)
{
    const blz_future_ops *ops = self->ops;

    if (self->line == 0)
        blz__panic("a `break` left the body of `%s` (%s, before its first await): "
                   "it was not in a loop or a `switch` of its own",
                   ops->name, ops->file);
    blz__panic("a `break` left the body of `%s` (after %s:%u): "
               "it was not in a loop or a `switch` of its own",
               ops->name, ops->file, self->line);
}

enum { SCRIBBLE_SIZE = 8192, RUBBISH = 0xa5 };

/*
 * Fills the stack under the caller, where the async function's locals are about to be. As a pointer
 * the rubbish faults, as an int it is negative.
 */
__attribute__((noinline)) void blz_debug_scribble_(void)
{
    unsigned char stack[SCRIBBLE_SIZE];

    memset(stack, RUBBISH, sizeof stack);
    __asm__ __volatile__("" : : "r"(stack) : "memory"); /* the stores are not dead */
}
