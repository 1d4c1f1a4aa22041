/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: see driver.h for the states and docs/design/operations.md for the protocol.
 *
 * The waker is taken before the operation is submitted and used once, by the event that brings the
 * count to zero. It is copied out before the count is decremented, because the decrement gives the
 * operation's memory back to the task.
 */
#include "sched/driver.h"
#include "sched/worker.h"

void blz__op_submit(blz__op *op, blz_cx *cx)
{
    if (blz__load(&op->events, RELAXED) & ~OP_CANCEL)
        blz__panic("an operation of `%s` was started while it is still in flight",
                   cx->task->root->ops->name);
    op->home = cx->worker;
    blz__plain_write(&op->waker);
    op->waker = blz_cx_waker(cx);
    blz__store(&op->events, 1u, RELAXED);
    cx->worker->driver->ops->submit(cx->worker->driver, op);
}

bool blz__op_is_done(const blz__op *op)
{
    /* acquire: pairs with the release in blz__op_event */
    return (blz__load(&op->events, ACQUIRE) & ~OP_CANCEL) == 0;
}

void blz__op_cancel(blz__op *op, blz_cx *cx)
{
    uint32_t events = blz__load(&op->events, RELAXED);

    do {
        if (events == 0 || (events & OP_CANCEL) || (events & ~OP_CANCEL) == 0)
            return; /* done, or asked already */
    } while (!blz__cas_weak(&op->events, &events, (events + 1) | OP_CANCEL, RELAXED, RELAXED));

    if (op->home == cx->worker) {
        op->home->driver->ops->cancel(op->home->driver, op);
        blz__op_event(op);
    } else {
        blz__worker_command(op->home, op);
    }
}

void blz__op_expect(blz__op *op)
{
    blz__fetch_add(&op->events, 1u, RELAXED);
}

void blz__op_event(blz__op *op)
{
    blz__plain_read(&op->waker);
    blz_waker waker = op->waker;
    /* release: the result; pairs with the acquire in blz__op_is_done. The task owns the memory
     * again as soon as this reaches zero. */
    uint32_t events = blz__fetch_sub(&op->events, 1u, ACQ_REL);

    if ((events & ~OP_CANCEL) == 1)
        blz_waker_wake(&waker);
}
