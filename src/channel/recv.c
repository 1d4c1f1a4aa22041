/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving. The fast path: take the first message, copy it, free the slot, and look whether
 * senders wait. A receiver that finds nothing says that it waits, looks once more, and joins the
 * queue; then a sender copies the message to where the receiver wants it (flow.c).
 *
 * Data before the end: a channel that has been closed gives -EPIPE only when it is drained: nothing
 * in it, nobody in the middle of sending, no permits.
 */
#include "channel/store.h"

#include <blitz/wait_info.h>

/* ---- fast ---- */

blz_slot_ blz_channel_take_(blz_channel *ch)
{
    check_handle(ch, "a channel");
    return store_take(ch);
}

void blz_channel_release_(blz_channel *ch, blz_slot_ slot)
{
    store_release(ch, slot);
    if (is_unbounded(ch)) {
        if (chain_slot_of(pos_of(slot.pos)) == 0) /* a segment has been left */
            blz__chain_clean_up(ch);
        return;
    }
    fence_light(ch); /* pairs with fence_heavy in blz__channel_raise_alarm */
    if (blz_unlikely((slot.pos & SEND_WAIT) || (blz__load(&ch->alarm, RELAXED) & SEND_WAIT)))
        blz__channel_look_around(ch);
}

static bool recv_fast(blz_channel *ch, void *elem)
{
    blz_slot_ slot = blz_channel_take_(ch);

    if (!slot.elem)
        return false;
    get_elem(ch, slot, elem);
    blz_channel_release_(ch, slot);
    return true;
}

/* A message that is being written is there in a moment, unless its sender has been interrupted. */
static bool recv_in_a_moment(blz_channel *ch, void *elem)
{
    for (int i = 0; i < CHANNEL_RECV_LOOKS; i++) {
        if (blz_channel_is_empty(ch))
            return false;
        blz__spin_hint();
        if (recv_fast(ch, elem))
            return true;
    }
    (void)ch, (void)elem;
    return false;
}

/* After a look that found nothing. What was sent before the close is seen with it. */
int blz_channel_recv_slow_(blz_channel *ch, void *elem)
{
    if (recv_in_a_moment(ch, elem))
        return 0;
    if (!blz_channel_is_closed(ch))
        return -EAGAIN;
    if (recv_fast(ch, elem))
        return 0;
    return blz__channel_is_drained(ch) ? -EPIPE : -EAGAIN;
}

int blz_receiver_try_recv(const blz_receiver *rx, void *elem)
{
    return recv_fast(rx->channel, elem) ? 0 : blz_channel_recv_slow_(rx->channel, elem);
}

/* More of them, behind the first `have`: how many there are then. */
static uint32_t recv_more(blz_channel *ch, char *elems, uint32_t have, uint32_t count)
{
    while (have < count && recv_fast(ch, elems + (size_t)have * ch->elem_size))
        have++;
    return have;
}

int64_t blz_receiver_try_recv_many(const blz_receiver *rx, void *elems, uint32_t count)
{
    int rc = count > 0 ? blz_receiver_try_recv(rx, elems) : 0;

    if (rc < 0 || count == 0)
        return rc;
    return recv_more(rx->channel, elems, 1, count);
}

/* ---- futures ---- */

/* After a look that found nothing. A message: 0; -EPIPE; or joins the queue: -EAGAIN. */
static int recv_or_wait(blz_channel_op *op, blz_cx *cx)
{
    blz_channel *ch = op->channel;
    blz_slot_ slot;
    int rc = 0;

    lock(ch);
    blz__channel_expect_receiver(ch);
    slot = blz__channel_take_locked(ch);
    if (!slot.elem)
        rc = blz__channel_is_drained(ch) ? -EPIPE : -EAGAIN;
    if (rc == -EAGAIN)
        waiter_enqueue(&op->waiter, &ch->receivers, cx);
    unlock(ch);
    if (slot.elem) {
        get_elem(ch, slot, op->elem);
        blz_channel_release_(ch, slot);
    }
    return rc;
}

static blz_poll recv_start(blz_channel_op *op, blz_cx *cx)
{
    int rc;

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = recv_or_wait(op, cx);
    if (rc != -EAGAIN)
        return blz_future_done(&op->future, rc);
    op->future.line = OP_WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

/* The first poll comes here after a look that found nothing, or without a budget. */
blz_poll blz_channel_recv_poll_(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;

    if (future->line == OP_START)
        return recv_start(op, cx);
    if (future->line == OP_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    return blz__channel_op_waited(op);
}

static blz_poll recv_poll(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;

    if (future->line == OP_START && cx->budget > 0 && recv_fast(op->channel, op->elem)) {
        cx->budget--;
        return blz_future_done(future, 0);
    }
    return blz_channel_recv_poll_(future, cx);
}

static blz_poll recv_many_poll(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;

    if (op->count == 0)
        return blz_future_done(future, 0);
    if (blz_is_pending(recv_poll(future, cx)))
        return BLZ_PENDING;
    if (future->result == 0)
        future->result = recv_more(op->channel, op->elem, 1, op->count);
    return BLZ_READY;
}

void blz_channel_recv_cancel_(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;

    (void)cx;
    if (future->line == OP_START ||
        (future->line == OP_WAITING && blz__channel_op_leave(op, &op->channel->receivers)))
        future->line = OP_CANCELLED;
}

void blz_channel_describe_(const blz_future *future, blz_wait_info *info)
{
    info->kind = "channel";
    info->object = ((const blz_channel_op *)(const void *)future)->channel;
}

blz_future *blz_receiver_recv(blz_channel_op *op, const blz_receiver *rx, void *elem)
{
    static const blz_future_ops ops = {.name = "channel_recv",
                                       .poll = recv_poll,
                                       .cancel = blz_channel_recv_cancel_,
                                       .describe_wait = blz_channel_describe_};

    return blz_channel_op_init_(op, &ops, rx->channel, elem);
}

blz_future *blz_receiver_recv_many(blz_channel_op *op, const blz_receiver *rx, void *elems,
                                   uint32_t count)
{
    static const blz_future_ops ops = {.name = "channel_recv_many",
                                       .poll = recv_many_poll,
                                       .cancel = blz_channel_recv_cancel_,
                                       .describe_wait = blz_channel_describe_};

    op->count = count;
    return blz_channel_op_init_(op, &ops, rx->channel, elems);
}
