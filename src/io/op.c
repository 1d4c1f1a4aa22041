/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: see op.h for the states and docs/design/operations.md for the protocol.
 *
 * The waker is taken before the operation is submitted and used once, by the event that brings the
 * count to zero. It is copied out before the count is decremented, because the decrement gives the
 * operation's memory back to the task.
 */
#include "io/op.h"

#include "base/assert.h"
#include "observe/trace.h"

void blz__op_begin(blz__op *op, blz_cx *cx)
{
    if (blz__load(&op->events, RELAXED) & ~OP_CANCEL)
        blz__panic("an operation of `%s` was started while it is still in flight",
                   cx->task->root->ops->name);
    blz__store(&op->home, cx->worker, RELAXED);
    blz__store(&op->events, 1u, RELAXED);
}

void blz__op_await(blz__op *op, blz_cx *cx)
{
    blz__plain_write(&op->waker);
    op->waker = blz_cx_waker(cx);
}

void blz__op_hand_over_for(blz__op *op, blz_waker waker, blz_cx *cx)
{
    blz__driver *driver = worker_driver(cx->worker);

    BLZ_ASSERT(driver);
    BLZ_ASSERT(blz__peek(&op->events) & ~OP_CANCEL);
    blz__plain_write(&op->waker);
    op->waker = waker;
    driver->ops->submit(driver, op);
}

void blz__op_hand_over(blz__op *op, blz_cx *cx)
{
    blz__op_hand_over_for(op, blz_cx_waker(cx), cx);
}

void blz__op_begin_and_submit(blz__op *op, blz_cx *cx)
{
    blz__op_begin(op, cx);
    blz__op_hand_over(op, cx);
}

bool blz__op_end(blz__op *op, blz_cx *cx)
{
    uint32_t events = 1;

    BLZ_ASSERT(blz__peek(&op->events) & ~OP_CANCEL);
    /* Nobody else has done anything with it: nothing to order. */
    if (blz_likely(blz__cas(&op->events, &events, 0u, RELAXED, RELAXED)))
        return true;
    blz__op_await(op, cx);
    blz__op_event_done(op); /* at home: the request is in the mailbox of this worker */
    return false;
}

bool blz__op_is_done(const blz__op *op)
{
    /* acquire: pairs with the release in blz__op_event_done */
    return (blz__load(&op->events, ACQUIRE) & ~OP_CANCEL) == 0;
}

bool blz__op_request_cancel(blz__op *op)
{
    uint32_t events = blz__load(&op->events, RELAXED);

    do {
        if ((events & OP_CANCEL) || events == 0)
            return false; /* asked already, or done */
    } while (!blz__cas_weak(&op->events, &events, (events + 1) | OP_CANCEL, RELAXED, RELAXED));
    return true;
}

/* On the home. The event may give the operation back to its task. */
static void execute_cancel(blz__op *op, struct blz_worker *home)
{
    blz__driver *driver = worker_driver(home);

    BLZ_ASSERT(home == blz__worker_current());
    BLZ_ASSERT(blz__peek(&op->events) & OP_CANCEL);
    if (driver) /* or it has ended because there is none */
        driver->ops->cancel(driver, op);
    blz__op_event_done(op);
}

static void receive_cancel(blz__message *message, struct blz_worker *home)
{
    execute_cancel(blz_container_of(message, blz__op, cancel), home);
}

void blz__op_send_cancel(blz__op *op)
{
    struct blz_worker *home = blz__load(&op->home, RELAXED); /* any that it ever had will do */

    BLZ_ASSERT(home);
    BLZ_ASSERT(blz__peek(&op->events) & OP_CANCEL);
    if (home == blz__worker_current()) {
        execute_cancel(op, home);
        return;
    }
    op->cancel.fn = receive_cancel;
    blz__worker_post(home, &op->cancel);
}

void blz__op_cancel(blz__op *op, blz_cx *cx)
{
    (void)cx;
    if (blz__op_request_cancel(op))
        blz__op_send_cancel(op);
}

void blz__op_event_add(blz__op *op)
{
    BLZ_ASSERT(blz__peek(&op->events) & ~OP_CANCEL);
    blz__fetch_add(&op->events, 1u, RELAXED);
}

/* Whether that was the last event. */
static inline bool count_event(blz__op *op)
{
    BLZ_ASSERT(blz__peek(&op->events) & ~OP_CANCEL);
    /* release: the result; pairs with the acquire in blz__op_is_done. The task owns the memory
     * again as soon as this reaches zero. */
    return (blz__fetch_sub(&op->events, 1u, ACQ_REL) & ~OP_CANCEL) == 1;
}

/* As below, and tells the trace; apart, so that it costs the others no room for its call. */
static BLZ_COLD void event_watched(blz__op *op)
{
    blz__plain_read(&op->waker);
    blz_waker waker = op->waker;
    const char *name = op->future.ops->name;
    int64_t value = op->value;

    if (count_event(op)) {
        blz__trace_io(name, value);
        task_waker_wake(waker);
    }
}

void blz__op_event_done(blz__op *op)
{
    if (trace_watched(TRACE_EVENT)) {
        event_watched(op);
        return;
    }
    blz__plain_read(&op->waker);
    blz_waker waker = op->waker;
    if (count_event(op))
        task_waker_wake(waker);
}
