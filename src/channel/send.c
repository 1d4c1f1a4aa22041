/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending, and permits. The fast path: a claim, the message, a store that publishes it, and a look
 * at the flags. It is taken only while no flag is set; the other one goes under the lock.
 *
 * There, a sender that finds a receiver waiting at an empty channel gives it the message at once,
 * without a slot. A sender that has to wait leaves its message where it is, in the caller's memory:
 * who makes room copies it from there (flow.c).
 */
#include "channel/store.h"

#include "base/assert.h"
#include "base/panic.h"

/* ---- fast ---- */

blz_slot_ blz_channel_claim_(blz_channel *ch)
{
    check_handle(ch, "a channel");
    if (is_unbounded(ch))
        return chain_claim(ch, CLOSED | RECV_WAIT);
    return ring_claim(ch, CLOSED | SEND_WAIT | RECV_WAIT);
}

void blz_channel_publish_(blz_channel *ch, blz_slot_ slot)
{
    store_publish(ch, slot);
    fence_light(ch); /* pairs with fence_heavy in blz__channel_raise_alarm */
    if (blz_unlikely((slot.pos & (RECV_WAIT | GONE)) ||
                     (blz__load(&ch->alarm, RELAXED) & (RECV_WAIT | GONE))))
        blz__channel_look_around(ch);
}

int blz_sender_try_send(const blz_sender *tx, const void *elem)
{
    blz_channel *ch = tx->channel;
    blz_slot_ slot = blz_channel_claim_(ch);

    if (blz_unlikely(!slot.elem))
        return blz_channel_send_slow_(ch, elem);
    put_elem(ch, slot, elem);
    blz_channel_publish_(ch, slot);
    return 0;
}

/* ---- under the lock ---- */

/*
 * To the first receiver that waits, if nothing is in front of the message, and it would have had
 * room: permits that fill the channel keep others out, whether or not somebody waits.
 */
static bool hand_over(blz_channel *ch, const void *elem, outcome *out)
{
    uint32_t head = pos_of(blz__load(&ch->head, RELAXED));
    uint64_t tail = blz__load(&ch->tail, RELAXED);
    blz_waiter *first = ch->receivers.first;

    BLZ_ASSERT(is_locked(ch));
    BLZ_ASSERT(first);
    if (pos_of(tail) != head || (!is_unbounded(ch) && reserved_of(tail) >= ch->capacity))
        return false;
    copy_elem(ch, blz_container_of(first, blz_channel_op, waiter)->elem, elem);
    waiter_claim(first, &ch->receivers, &out->served);
    return true;
}

/* Into the channel: 0; -EPIPE; -EAGAIN: it must wait, or a segment is missing. */
static int put_in(blz_channel *ch, const void *elem, segment **seg, bool will_wait, outcome *out)
{
    blz_slot_ slot;

    BLZ_ASSERT(is_locked(ch));
    if (will_wait && !is_unbounded(ch))
        blz__channel_expect_sender(ch);
    slot = blz__channel_claim_locked(ch, seg);
    if (!slot.elem)
        return blz__load(&ch->tail, RELAXED) & CLOSED ? -EPIPE : -EAGAIN;
    put_elem(ch, slot, elem);
    store_publish(ch, slot);
    blz__channel_settle(ch, out);
    blz__channel_tidy(ch);
    return 0;
}

static int send_locked(blz_channel *ch, const void *elem, segment **seg, bool will_wait,
                       outcome *out)
{
    BLZ_ASSERT(is_locked(ch));
    if (blz__load(&ch->tail, RELAXED) & CLOSED)
        return -EPIPE;
    if (!waiters_empty(&ch->senders))
        return -EAGAIN;
    if (!waiters_empty(&ch->receivers) && hand_over(ch, elem, out))
        return 0;
    return put_in(ch, elem, seg, will_wait, out);
}

/* Half of all positions: more messages than that would be mistaken for fewer. */
static bool is_overfull(const blz_channel *ch)
{
    return blz_channel_len(ch) >= INT32_MAX / 2;
}

/* An unbounded channel: allocates before it takes the lock. */
static int send_to_chain(blz_channel *ch, const void *elem)
{
    segment *seg = NULL;
    int rc;

    do {
        outcome out = OUTCOME_NONE;
        if (!seg && blz__chain_at_end(ch) &&
            (is_overfull(ch) || !(seg = blz__chain_new_segment(ch))))
            return blz_channel_is_closed(ch) ? -EPIPE : -ENOMEM;
        lock(ch);
        rc = send_locked(ch, elem, &seg, false, &out);
        blz__channel_unlock(ch, &out);
    } while (rc == -EAGAIN); /* others have filled the segment meanwhile */
    if (seg)
        blz__chain_keep_segment(ch, seg);
    return rc;
}

/* Sends, or joins the queue with -EAGAIN if there is an operation to wait with. */
static int send_slowly(blz_channel *ch, const void *elem, blz_channel_op *op, blz_cx *cx)
{
    outcome out = OUTCOME_NONE;
    segment *none = NULL;
    int rc;

    if (is_unbounded(ch))
        return send_to_chain(ch, elem);
    lock(ch);
    rc = send_locked(ch, elem, &none, op != NULL, &out);
    if (rc == -EAGAIN && op)
        waiter_enqueue(&op->waiter, &ch->senders, cx);
    blz__channel_unlock(ch, &out);
    return rc;
}

/* After a claim that failed. Without any flag it is full, and there is nobody to look after. */
int blz_channel_send_slow_(blz_channel *ch, const void *elem)
{
    uint64_t tail = blz__load(&ch->tail, RELAXED);

    if (!is_unbounded(ch) && !(tail & (CLOSED | SEND_WAIT | RECV_WAIT)) &&
        !ring_has_room(ch, tail, 1))
        return -EAGAIN;
    return send_slowly(ch, elem, NULL, NULL);
}

/* ---- permits ---- */

static int check_count(const blz_channel *ch, uint32_t count)
{
    if (is_unbounded(ch))
        return -ENOTSUP;
    return count == 0 || count > ch->capacity ? -EINVAL : 0;
}

static int reserve_fast(blz_channel *ch, uint32_t count)
{
    uint64_t tail;

    return ring_admit(ch, &tail, count * RESERVED_ONE, count, CLOSED | SEND_WAIT) ? 0 : -EAGAIN;
}

static int reserve_locked(blz_channel *ch, uint32_t count, bool will_wait)
{
    if (blz__load(&ch->tail, RELAXED) & CLOSED)
        return -EPIPE;
    if (!waiters_empty(&ch->senders))
        return -EAGAIN;
    if (will_wait)
        blz__channel_expect_sender(ch);
    if (!blz__channel_admit_locked(ch, count))
        return blz__load(&ch->tail, RELAXED) & CLOSED ? -EPIPE : -EAGAIN;
    blz__channel_tidy(ch);
    return 0;
}

static int reserve_slowly(blz_channel *ch, uint32_t count, blz_channel_op *op, blz_cx *cx)
{
    int rc;

    lock(ch);
    rc = reserve_locked(ch, count, op != NULL);
    if (rc == -EAGAIN && op)
        waiter_enqueue(&op->waiter, &ch->senders, cx);
    unlock(ch);
    return rc;
}

int blz_sender_try_reserve(const blz_sender *tx, blz_permit *permit, uint32_t count)
{
    int rc = check_count(tx->channel, count);

    if (rc == 0)
        rc = reserve_fast(tx->channel, count);
    if (rc == -EAGAIN)
        rc = reserve_slowly(tx->channel, count, NULL, NULL);
    *permit = (blz_permit){tx->channel, rc == 0 ? count : 0, 0};
    return rc;
}

blz_slot_ blz_permit_claim_(blz_permit *permit)
{
    if (blz_unlikely(permit->count == 0))
        blz__panic("a message is sent with a permit that is used up");
    permit->count--;
    return ring_claim_permitted(permit->channel);
}

void blz_permit_send(blz_permit *permit, const void *elem)
{
    blz_slot_ slot = blz_permit_claim_(permit);

    put_elem(permit->channel, slot, elem);
    blz_channel_publish_(permit->channel, slot);
}

/* Those who wait for room, and receivers who wait for the end: there may be no message any more. */
void blz_permit_release(blz_permit *permit)
{
    blz_channel *ch = permit->channel;
    uint64_t tail;

    if (permit->count == 0)
        return;
    tail = blz__fetch_sub(&ch->tail, permit->count * RESERVED_ONE, RELAXED);
    permit->count = 0;
    if ((tail & SEND_WAIT) || (tail & (CLOSED | RECV_WAIT)) == (CLOSED | RECV_WAIT))
        blz__channel_look_around(ch);
}

/* ---- futures ---- */

/* The first poll comes here after a claim that failed, or without a budget. */
blz_poll blz_channel_send_poll_(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;
    int rc;

    if (future->line == OP_WAITING)
        return blz__channel_op_waited(op);
    if (future->line == OP_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    op->waiter.count = 0;
    rc = send_slowly(op->channel, op->elem, op, cx);
    if (rc != -EAGAIN)
        return blz_future_done(future, rc);
    future->line = OP_WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static blz_poll send_poll(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;
    blz_slot_ slot;

    if (future->line == OP_START && cx->budget > 0 &&
        (slot = blz_channel_claim_(op->channel)).elem) {
        cx->budget--;
        put_elem(op->channel, slot, op->elem);
        blz_channel_publish_(op->channel, slot);
        return blz_future_done(future, 0);
    }
    return blz_channel_send_poll_(future, cx);
}

static blz_poll reserve_poll(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;
    blz_permit *permit = op->elem;
    blz_poll poll;
    int rc;

    if (future->line == OP_WAITING) {
        poll = blz__channel_op_waited(op);
        if (blz_is_ready(poll) && future->result == 0)
            permit->count = op->count;
        return poll;
    }
    if (future->line == OP_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = check_count(op->channel, op->count);
    if (rc == 0)
        rc = reserve_fast(op->channel, op->count);
    if (rc == -EAGAIN) {
        op->waiter.count = op->count;
        rc = reserve_slowly(op->channel, op->count, op, cx);
    }
    if (rc != -EAGAIN) {
        permit->count = rc == 0 ? op->count : 0;
        return blz_future_done(future, rc);
    }
    future->line = OP_WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

void blz_channel_send_cancel_(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;

    (void)cx;
    if (future->line == OP_START ||
        (future->line == OP_WAITING && blz__channel_op_leave(op, &op->channel->senders)))
        future->line = OP_CANCELLED;
}

blz_future *blz_sender_send(blz_channel_op *op, const blz_sender *tx, const void *elem)
{
    static const blz_future_ops ops = {.name = "channel_send",
                                       .poll = send_poll,
                                       .cancel = blz_channel_send_cancel_,
                                       .describe_wait = blz_channel_describe_};

    return blz_channel_op_init_(op, &ops, tx->channel, (void *)(uintptr_t)elem);
}

blz_future *blz_sender_reserve(blz_channel_op *op, const blz_sender *tx, blz_permit *permit,
                               uint32_t count)
{
    static const blz_future_ops ops = {.name = "channel_reserve",
                                       .poll = reserve_poll,
                                       .cancel = blz_channel_send_cancel_,
                                       .describe_wait = blz_channel_describe_};

    *permit = (blz_permit){tx->channel, 0, 0};
    op->count = count;
    return blz_channel_op_init_(op, &ops, tx->channel, permit);
}

/* ---- the end, as senders see it ---- */

static blz_poll closed_poll(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;
    blz_channel *ch = op->channel;
    bool closed;

    if (future->line == OP_WAITING)
        return blz__channel_op_waited(op);
    if (future->line == OP_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    lock(ch);
    closed = blz_channel_is_closed(ch); /* if not, who closes it takes the lock after us */
    if (!closed)
        waiter_enqueue(&op->waiter, &ch->watchers, cx);
    unlock(ch);
    if (closed)
        return blz_future_done(future, 0);
    future->line = OP_WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static void closed_cancel(blz_future *future, blz_cx *cx)
{
    blz_channel_op *op = (blz_channel_op *)future;

    (void)cx;
    if (future->line == OP_START ||
        (future->line == OP_WAITING && blz__channel_op_leave(op, &op->channel->watchers)))
        future->line = OP_CANCELLED;
}

blz_future *blz_sender_closed(blz_channel_op *op, const blz_sender *tx)
{
    static const blz_future_ops ops = {.name = "channel_closed",
                                       .poll = closed_poll,
                                       .cancel = closed_cancel,
                                       .describe_wait = blz_channel_describe_};

    return blz_channel_op_init_(op, &ops, tx->channel, NULL);
}
