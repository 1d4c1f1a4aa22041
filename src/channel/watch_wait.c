/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: waiting. A receiver waits for another version than the one that it knows, a sender for the
 * last receiver to go.
 *
 * Who is about to wait takes the lock and looks again: a sender that came before has moved the
 * version on, one that comes later finds the waiter in the queue. Being served says only that it is
 * worth while to look again; so nothing is lost when a served wait is cancelled.
 */
#include "channel/watch.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

/* ---- what has been seen ---- */

int blz_watch_has_changed(const blz_watch_receiver *rx)
{
    uint64_t version = watch_version(rx->watch);

    if (version_number(version) != rx->seen)
        return 1;
    return version & VERSION_CLOSED ? -EPIPE : 0;
}

void blz_watch_mark_changed(blz_watch_receiver *rx)
{
    rx->seen = 0; /* no value has this number */
}

void blz_watch_mark_unchanged(blz_watch_receiver *rx)
{
    rx->seen = version_number(watch_version(rx->watch));
}

int blz_watch_try_changed(blz_watch_receiver *rx)
{
    uint64_t version = watch_version(rx->watch);

    if (version_number(version) == rx->seen)
        return version & VERSION_CLOSED ? -EPIPE : -EAGAIN;
    rx->seen = version_number(version);
    return 0;
}

/* ---- futures ---- */

/* STOPPED: cancelled when it had been served; it does not wait again. */
enum { WAIT_START, WAIT_QUEUED, WAIT_STOPPED, WAIT_CANCELLED };

/* A receiver waits for another version than this. False: there is one. */
static BLZ_NOINLINE bool wait_for_version(blz_watch_op *op, uint64_t version, blz_cx *cx)
{
    blz_watch *w = op->watch;
    bool same;

    blz__lock_acquire(&w->lock);
    same = w->version == version;
    if (same)
        waiter_enqueue(&op->waiter, &w->receivers, cx);
    blz__lock_release(&w->lock);
    return same;
}

/* True: the poll ends here, with *poll. */
static bool is_over(blz_watch_op *op, blz_cx *cx, blz_poll *poll)
{
    *poll = BLZ_PENDING;
    if (op->future.line == WAIT_CANCELLED)
        *poll = blz_future_done(&op->future, -ECANCELED);
    else if (op->future.line == WAIT_START || waiter_is_served(&op->waiter))
        return !blz_coop_take(cx);
    return true;
}

static blz_poll wait_on(blz_watch_op *op, blz_cx *cx)
{
    op->future.line = WAIT_QUEUED;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static blz_poll changed_poll(blz_future *future, blz_cx *cx)
{
    blz_watch_op *op = (blz_watch_op *)future;
    blz_watch_receiver *rx = op->receiver;
    blz_poll poll;
    int rc;

    if (is_over(op, cx, &poll))
        return poll;
    while ((rc = blz_watch_try_changed(rx)) == -EAGAIN) {
        if (future->line == WAIT_STOPPED)
            return blz_future_done(future, -ECANCELED);
        if (wait_for_version(op, rx->seen * VERSION_ONE, cx))
            return wait_on(op, cx);
    }
    return blz_future_done(future, rc);
}

static blz_poll wait_for_poll(blz_future *future, blz_cx *cx)
{
    blz_watch_op *op = (blz_watch_op *)future;
    uint64_t version;
    blz_poll poll;

    if (is_over(op, cx, &poll))
        return poll;
    do {
        version = blz__watch_read(op->watch, op->value);
        op->receiver->seen = version_number(version);
        if (op->predicate(op->value, op->arg))
            return blz_future_done(future, 0);
        if (version & VERSION_CLOSED)
            return blz_future_done(future, -EPIPE);
        if (future->line == WAIT_STOPPED)
            return blz_future_done(future, -ECANCELED);
    } while (!wait_for_version(op, version, cx));
    return wait_on(op, cx);
}

/* Served: there was a moment without receivers. */
static blz_poll closed_poll(blz_future *future, blz_cx *cx)
{
    blz_watch_op *op = (blz_watch_op *)future;
    blz_watch *w = op->watch;
    blz_poll poll;
    bool none;

    if (is_over(op, cx, &poll))
        return poll;
    if (future->line != WAIT_START)
        return blz_future_done(future, 0);
    blz__lock_acquire(&w->lock);
    none = w->nr_receivers == 0;
    if (!none)
        waiter_enqueue(&op->waiter, &w->senders, cx);
    blz__lock_release(&w->lock);
    return none ? blz_future_done(future, 0) : wait_on(op, cx);
}

static void leave(blz_watch_op *op, blz_waiters *queue)
{
    bool left;

    if (op->future.line == WAIT_START) {
        op->future.line = WAIT_CANCELLED;
        return;
    }
    blz__lock_acquire(&op->watch->lock);
    left = waiter_leave(&op->waiter, queue);
    blz__lock_release(&op->watch->lock);
    if (left) {
        blz_waker_drop(&op->waiter.waker);
        op->future.line = WAIT_CANCELLED;
    } else if (op->future.line == WAIT_QUEUED) {
        op->future.line = WAIT_STOPPED;
    }
}

static void receiver_cancel(blz_future *future, blz_cx *cx)
{
    blz_watch_op *op = (blz_watch_op *)future;

    (void)cx;
    leave(op, &op->watch->receivers);
}

static void sender_cancel(blz_future *future, blz_cx *cx)
{
    blz_watch_op *op = (blz_watch_op *)future;

    (void)cx;
    leave(op, &op->watch->senders);
}

static void watch_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_watch_op *op = (const blz_watch_op *)(const void *)future;

    info->kind = "watch";
    info->object = op->watch;
}

blz_future *blz_watch_changed(blz_watch_op *op, blz_watch_receiver *rx)
{
    static const blz_future_ops ops = {.name = "watch_changed",
                                       .poll = changed_poll,
                                       .cancel = receiver_cancel,
                                       .describe_wait = watch_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->watch = rx->watch;
    op->receiver = rx;
    return &op->future;
}

blz_future *blz_watch_until(blz_watch_op *op, blz_watch_receiver *rx, void *value,
                            blz_watch_predicate predicate, void *arg)
{
    static const blz_future_ops ops = {.name = "watch_until",
                                       .poll = wait_for_poll,
                                       .cancel = receiver_cancel,
                                       .describe_wait = watch_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->watch = rx->watch;
    op->receiver = rx;
    op->value = value;
    op->predicate = predicate;
    op->arg = arg;
    return &op->future;
}

blz_future *blz_watch_closed(blz_watch_op *op, const blz_watch_sender *tx)
{
    static const blz_future_ops ops = {.name = "watch_closed",
                                       .poll = closed_poll,
                                       .cancel = sender_cancel,
                                       .describe_wait = watch_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->watch = tx->watch;
    return &op->future;
}
