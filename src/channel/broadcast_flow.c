/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast channels: the messages.
 *
 * Senders take turns under the lock: write the slot, move the tail, claim all who wait; the claimed
 * are woken after the lock. A receiver looks at the tail, then at its slot:
 *
 *   tail                          slot              what the receiver does
 *   ------------------------------------------------------------------------------------------
 *   at its position               -                 waits, or learns that the channel is closed
 *   up to a capacity ahead        its message       receives it
 *   up to a capacity ahead        another one       lags: a sender is writing there, and has not
 *                                                   moved the tail yet
 *   further ahead                 -                 lags: the oldest that is left is next
 *
 * So a receiver never waits for a sender that has stopped in the middle, nor the other way round.
 * (But for messages with a `copy`, where the sender waits for the one copy that is being made of
 * the very message that it has to overwrite.)
 *
 * A receiver that has to wait takes the lock and looks at the tail again: a sender that came before
 * has moved it, one that comes later finds the waiter.
 */
#include "channel/broadcast.h"

#include "base/assert.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

/* ---- messages with a copy function ---- */

/* A message that has been taken out, to be destroyed after the lock. */
struct evicted {
    bool full;
    _Alignas(16) char elem[BLZ_BROADCAST_COPY_MAX];
};

static void evict(blz_broadcast *b, uint64_t pos, struct evicted *out)
{
    owned_slot *slot = slot_at(b, pos);

    blz__lock_acquire(&slot->lock);
    blz__plain_write(slot->elem);
    memcpy(out->elem, slot->elem, b->elem_size);
    slot->number = 0;
    blz__lock_release(&slot->lock);
    out->full = true;
}

static void put_owned(blz_broadcast *b, uint64_t pos, const void *elem, struct evicted *out)
{
    owned_slot *slot = slot_at(b, pos);

    BLZ_ASSERT(blz__lock_is_held(&b->lock));
    if (pos >= b->capacity)
        evict(b, pos - b->capacity, out);
    blz__lock_acquire(&slot->lock);
    blz__plain_write(slot->elem);
    memcpy(slot->elem, elem, b->elem_size);
    slot->number = slot_number(pos);
    blz__lock_release(&slot->lock);
}

/* 1: it is not there any more. */
static BLZ_NOINLINE int get_owned(blz_broadcast *b, uint64_t pos, void *elem)
{
    owned_slot *slot = slot_at(b, pos);
    int rc = 1;

    blz__lock_acquire(&slot->lock);
    if (slot->number == slot_number(pos)) {
        blz__plain_read(slot->elem);
        rc = b->copy(elem, slot->elem, b->arg);
        rc = rc < 0 ? rc : 0;
    }
    blz__lock_release(&slot->lock);
    return rc;
}

static void destroy_elem(blz_broadcast *b, void *elem)
{
    if (b->destroy)
        b->destroy(elem, b->arg);
}

static BLZ_COLD void destroy_sent(blz_broadcast *b, const void *elem)
{
    char copy[BLZ_BROADCAST_COPY_MAX] __attribute__((aligned(16)));

    memcpy(copy, elem, b->elem_size);
    destroy_elem(b, copy);
}

void blz__broadcast_clear(blz_broadcast *b)
{
    uint64_t sent = tail_sent(b->tail);

    if (!b->destroy)
        return;
    for (uint64_t pos = sent > b->capacity ? sent - b->capacity : 0; pos < sent; pos++) {
        owned_slot *slot = slot_at(b, pos);
        blz__plain_write(slot->elem);
        destroy_elem(b, slot->elem);
    }
}

/* ---- sending ---- */

/* Moves the tail over a message that has been put; claims those who wait for one. Releases. */
static int64_t finish_sending(blz_broadcast *b)
{
    blz_waiters claimed = {NULL, NULL};
    int64_t receivers = (int64_t)b->nr_receivers;

    BLZ_ASSERT(blz__lock_is_held(&b->lock));
    BLZ_ASSERT(!(b->tail & TAIL_CLOSED));
    /* release: the slot; pairs with receive */
    blz__store(&b->tail, b->tail + TAIL_ONE, RELEASE);
    while (!waiters_empty(&b->waiting))
        waiter_claim(b->waiting.first, &b->waiting, &claimed);
    blz__lock_release(&b->lock);
    waiters_serve(&claimed, WAITER_SERVED);
    return receivers;
}

static BLZ_NOINLINE int64_t send_owned(blz_broadcast *b, const void *elem)
{
    struct evicted old;
    int64_t receivers;

    old.full = false;
    put_owned(b, tail_sent(b->tail), elem, &old);
    receivers = finish_sending(b);
    if (old.full)
        destroy_elem(b, old.elem);
    return receivers;
}

static BLZ_COLD int64_t refuse(blz_broadcast *b, const void *elem)
{
    bool closed = b->tail & TAIL_CLOSED;

    BLZ_ASSERT(blz__lock_is_held(&b->lock));
    blz__lock_release(&b->lock);
    if (closed)
        return -EPIPE;
    if (b->destroy)
        destroy_sent(b, elem);
    return 0;
}

int64_t blz_broadcast_send(const blz_broadcast_sender *tx, const void *elem)
{
    blz_broadcast *b = tx->channel;
    uint64_t pos;

    check_handle(b, "a broadcast channel");
    blz__lock_acquire(&b->lock);
    if (blz_unlikely((b->tail & TAIL_CLOSED) || b->nr_receivers == 0))
        return refuse(b, elem);
    if (b->copy)
        return send_owned(b, elem);
    pos = tail_sent(b->tail);
    cell_write(slot_at(b, pos), slot_number(pos), elem, b->elem_size);
    return finish_sending(b);
}

/* ---- receiving ---- */

/* `sent` messages have been sent, so the receiver's is gone. */
static BLZ_COLD int lag(blz_broadcast_receiver *rx, uint64_t sent)
{
    uint64_t oldest = sent - rx->channel->capacity;

    rx->missed = oldest - rx->next;
    rx->next = oldest;
    return -EOVERFLOW;
}

/* It was overwritten while we looked, by the message a capacity ahead if the tail has not moved. */
static BLZ_COLD int lag_at_slot(blz_broadcast_receiver *rx)
{
    blz_broadcast *b = rx->channel;
    uint64_t sent = tail_sent(blz__load(&b->tail, RELAXED));
    uint64_t at_least = rx->next + b->capacity + 1;

    return lag(rx, sent > at_least ? sent : at_least);
}

enum { NOTHING = 1 }; /* to be received: not an error that a copy function could have made */

static int receive(blz_broadcast_receiver *rx, void *elem)
{
    blz_broadcast *b = rx->channel;

    check_handle(b, "a broadcast channel");
    /* acquire: the slot, what was before the close; pairs with finish_sending, close_locked */
    uint64_t tail = blz__load(&b->tail, ACQUIRE), pos = rx->next;
    int rc;

    if (pos == tail_sent(tail))
        return tail & TAIL_CLOSED ? -EPIPE : NOTHING;
    if (blz_unlikely(tail_sent(tail) - pos > b->capacity))
        return lag(rx, tail_sent(tail));
    if (b->copy)
        rc = get_owned(b, pos, elem);
    else
        rc = !cell_read(slot_at(b, pos), slot_number(pos), elem, b->elem_size);
    if (blz_unlikely(rc > 0))
        return lag_at_slot(rx);
    if (rc == 0)
        rx->next = pos + 1;
    return rc;
}

int blz_broadcast_try_recv(blz_broadcast_receiver *rx, void *elem)
{
    int rc = receive(rx, elem);

    return rc == NOTHING ? -EAGAIN : rc;
}

/* ---- waiting ---- */

enum { RECV_START, RECV_WAITING, RECV_CANCELLED };

/* False: there is something to be received now, or the channel is closed. */
static BLZ_NOINLINE bool wait_for_message(blz_broadcast_op *op, blz_cx *cx)
{
    blz_broadcast *b = op->receiver->channel;
    bool nothing;

    blz__lock_acquire(&b->lock);
    nothing = b->tail == op->receiver->next * TAIL_ONE;
    if (nothing)
        waiter_enqueue(&op->waiter, &b->waiting, cx);
    blz__lock_release(&b->lock);
    return nothing;
}

static blz_poll recv_poll(blz_future *future, blz_cx *cx)
{
    blz_broadcast_op *op = (blz_broadcast_op *)future;
    int rc;

    if (future->line == RECV_WAITING && !waiter_is_served(&op->waiter))
        return BLZ_PENDING;
    if (future->line == RECV_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    while ((rc = receive(op->receiver, op->elem)) == NOTHING) {
        if (wait_for_message(op, cx)) {
            future->line = RECV_WAITING;
            blz_coop_give_back(cx);
            return BLZ_PENDING;
        }
    }
    return blz_future_done(future, rc);
}

/* What has been sent meanwhile is received; or it is there for the next receive. */
static void recv_cancel(blz_future *future, blz_cx *cx)
{
    blz_broadcast_op *op = (blz_broadcast_op *)future;
    blz_broadcast *b = op->receiver->channel;
    bool left;

    (void)cx;
    if (future->line == RECV_START) {
        future->line = RECV_CANCELLED;
        return;
    }
    blz__lock_acquire(&b->lock);
    left = waiter_leave(&op->waiter, &b->waiting);
    blz__lock_release(&b->lock);
    if (left) {
        blz_waker_drop(&op->waiter.waker);
        future->line = RECV_CANCELLED;
    }
}

static void recv_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_broadcast_op *op = (const blz_broadcast_op *)(const void *)future;

    info->kind = "broadcast";
    info->object = op->receiver->channel;
}

blz_future *blz_broadcast_recv(blz_broadcast_op *op, blz_broadcast_receiver *rx, void *elem)
{
    static const blz_future_ops ops = {.name = "broadcast_recv",
                                       .poll = recv_poll,
                                       .cancel = recv_cancel,
                                       .describe_wait = recv_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->receiver = rx;
    op->elem = elem;
    return &op->future;
}
