/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for a channel, and who serves them. Everything here is under the lock of the channel,
 * unless it says otherwise.
 *
 * A message is handed over: whoever publishes one while receivers wait takes the first message and
 * the first receiver, and copies the one to the other. Whoever frees a slot while senders wait
 * takes the message of the first of them and sends it. So nobody is woken in vain, and who is
 * cancelled afterwards has been served nevertheless.
 *
 * Somebody is left waiting only
 * - if there is nothing for him: then whoever brings it has claimed after the bit was set, and
 *   comes by; or
 * - if it is busy, claimed by somebody who is not through yet; and then there has been an alarm
 *   since the bit was set (channel.h). One is enough while the bit stays set: whoever has claimed
 *   since then has seen it.
 */
#include "channel/store.h"

#include "base/assert.h"

/* ---- the bits ---- */

/* Relaxed: what counts is the order of changes of one word (channel.h). */
void blz__channel_expect_sender(blz_channel *ch)
{
    BLZ_ASSERT(is_locked(ch));
    if (blz__load(&ch->tail, RELAXED) & SEND_WAIT)
        return;
    ch->send_fenced = false;
    blz__fetch_or(&ch->tail, SEND_WAIT, RELAXED);
    blz__fetch_or(&ch->head, SEND_WAIT, RELAXED);
}

void blz__channel_expect_receiver(blz_channel *ch)
{
    BLZ_ASSERT(is_locked(ch));
    if (blz__load(&ch->tail, RELAXED) & RECV_WAIT)
        return;
    ch->recv_fenced = false;
    blz__fetch_or(&ch->tail, RECV_WAIT, RELAXED);
}

void blz__channel_raise_alarm(blz_channel *ch, uint64_t bit)
{
    blz__fetch_or(&ch->alarm, (uint32_t)bit, RELAXED);
    fence_heavy(ch); /* pairs with the light one between publishing or freeing, and the look */
}

static void call_off(blz_channel *ch, uint64_t bit)
{
    if (blz__load(&ch->alarm, RELAXED) & bit)
        blz__fetch_and(&ch->alarm, ~(uint32_t)bit, RELAXED);
}

void blz__channel_tidy(blz_channel *ch)
{
    uint64_t tail = blz__load(&ch->tail, RELAXED);

    BLZ_ASSERT(is_locked(ch));
    if ((tail & RECV_WAIT) && waiters_empty(&ch->receivers)) {
        call_off(ch, RECV_WAIT);
        blz__fetch_and(&ch->tail, ~RECV_WAIT, RELAXED);
    }
    if ((tail & SEND_WAIT) && waiters_empty(&ch->senders)) {
        call_off(ch, SEND_WAIT);
        blz__fetch_and(&ch->head, ~SEND_WAIT, RELAXED);
        blz__fetch_and(&ch->tail, ~SEND_WAIT, RELAXED);
    }
}

/* ---- looking twice ---- */

/* Messages have been taken, and there is room, but slots are not free yet. */
static bool is_being_freed(const blz_channel *ch, uint32_t count)
{
    uint64_t tail = blz__load(&ch->tail, RELAXED);
    uint32_t pos = pos_of(blz__load(&ch->head, RELAXED));

    return pos_of(tail) + reserved_of(tail) + count - pos <= ch->capacity;
}

/* There is no room. True: there may be, after the fence. */
static bool look_again_for_room(blz_channel *ch, uint32_t count)
{
    if (ch->send_fenced || !(blz__load(&ch->tail, RELAXED) & SEND_WAIT) ||
        !is_being_freed(ch, count))
        return false;
    for (int i = 0; i < CHANNEL_ROOM_LOOKS; i++) {
        blz__spin_hint();
        if (ring_has_room(ch, blz__load(&ch->tail, RELAXED), count))
            return true;
    }
    ch->send_fenced = true;
    blz__channel_raise_alarm(ch, SEND_WAIT);
    return true;
}

blz_slot_ blz__channel_claim_locked(blz_channel *ch, segment **seg)
{
    blz_slot_ slot;

    BLZ_ASSERT(is_locked(ch));
    if (is_unbounded(ch))
        return blz__chain_claim_locked(ch, seg);
    slot = ring_claim(ch, CLOSED);
    if (!slot.elem && look_again_for_room(ch, 1))
        slot = ring_claim(ch, CLOSED);
    return slot;
}

bool blz__channel_admit_locked(blz_channel *ch, uint32_t count)
{
    uint64_t tail, add = count * RESERVED_ONE;

    BLZ_ASSERT(is_locked(ch));
    if (ring_admit(ch, &tail, add, count, CLOSED))
        return true;
    return look_again_for_room(ch, count) && ring_admit(ch, &tail, add, count, CLOSED);
}

/* A message has been claimed, but is not there yet. */
static bool is_being_written(const blz_channel *ch)
{
    uint32_t head = pos_of(blz__load(&ch->head, RELAXED));

    return pos_of(blz__load(&ch->tail, RELAXED)) != head;
}

/* For who has announced a receiver. */
blz_slot_ blz__channel_take_locked(blz_channel *ch)
{
    blz_slot_ slot = store_take(ch);

    BLZ_ASSERT(is_locked(ch));
    if (slot.elem || ch->recv_fenced || !is_being_written(ch))
        return slot;
    for (int i = 0; i < CHANNEL_ROOM_LOOKS; i++) {
        blz__spin_hint();
        slot = store_take(ch);
        if (slot.elem)
            return slot;
    }
    ch->recv_fenced = true;
    blz__channel_raise_alarm(ch, RECV_WAIT);
    return store_take(ch);
}

/* ---- serving ---- */

static blz_channel_op *op_of(blz_waiter *waiter)
{
    return blz_container_of(waiter, blz_channel_op, waiter);
}

/* Sends the message of a sender that waits, or gives it its permits. */
static bool serve_sender(blz_channel *ch, blz_channel_op *op)
{
    segment *none = NULL;
    blz_slot_ slot;

    BLZ_ASSERT(blz__peek(&op->waiter.state) == WAITER_QUEUED);
    if (op->waiter.count > 0)
        return blz__channel_admit_locked(ch, op->waiter.count);
    slot = blz__channel_claim_locked(ch, &none);
    if (!slot.elem)
        return false;
    put_elem(ch, slot, op->elem);
    store_publish(ch, slot);
    return true;
}

static bool serve_senders(blz_channel *ch, outcome *out)
{
    bool any = false;

    BLZ_ASSERT(is_locked(ch));
    while (ch->senders.first && serve_sender(ch, op_of(ch->senders.first))) {
        waiter_claim(ch->senders.first, &ch->senders, &out->served);
        any = true;
    }
    return any;
}

static bool serve_receivers(blz_channel *ch, outcome *out)
{
    bool any = false;
    blz_slot_ slot;

    BLZ_ASSERT(is_locked(ch));
    while (ch->receivers.first && (slot = blz__channel_take_locked(ch)).elem) {
        get_elem(ch, slot, op_of(ch->receivers.first)->elem);
        store_release(ch, slot);
        waiter_claim(ch->receivers.first, &ch->receivers, &out->served);
        any = true;
    }
    return any;
}

static void turn_away(blz_waiters *queue, blz_waiters *claimed)
{
    while (queue->first)
        waiter_claim(queue->first, queue, claimed);
}

bool blz__channel_is_drained(const blz_channel *ch)
{
    uint64_t tail = blz__load(&ch->tail, RELAXED);

    return (tail & CLOSED) && reserved_of(tail) == 0 &&
           pos_of(tail) == pos_of(blz__load(&ch->head, RELAXED));
}

/* A slot that a receiver has freed may be what a sender waits for, whose message a receiver... */
void blz__channel_settle(blz_channel *ch, outcome *out)
{
    BLZ_ASSERT(is_locked(ch));
    serve_senders(ch, out);
    while (serve_receivers(ch, out) && serve_senders(ch, out))
        ;
    if (!(blz__load(&ch->tail, RELAXED) & CLOSED))
        return;
    turn_away(&ch->senders, &out->closed);
    turn_away(&ch->watchers, &out->served);
    if (ch->receivers.first && blz__channel_is_drained(ch))
        turn_away(&ch->receivers, &out->closed);
}

void blz__channel_unlock(blz_channel *ch, const outcome *out)
{
    unlock(ch);
    waiters_serve(&out->served, WAITER_SERVED);
    waiters_serve(&out->closed, WAITER_CLOSED);
    if (is_unbounded(ch))
        blz__chain_clean_up(ch);
}

void blz__channel_look_around(blz_channel *ch)
{
    outcome out = OUTCOME_NONE;

    lock(ch);
    blz__channel_settle(ch, &out);
    blz__channel_tidy(ch);
    blz__channel_unlock(ch, &out);
    if (blz__load(&ch->tail, ACQUIRE) & GONE) /* pairs with the release of the last receiver */
        blz__channel_drain(ch);
}

/* ---- without the lock ---- */

static void destroy_elem(blz_channel *ch, blz_slot_ slot)
{
    blz__plain_read((char *)slot.elem);
    if (ch->destroy)
        ch->destroy(slot.elem, ch->destroy_arg);
}

static void destroy_all(blz_channel *ch)
{
    blz_slot_ slot;

    while ((slot = is_unbounded(ch) ? blz__chain_front(ch) : ring_take(ch)).elem) {
        destroy_elem(ch, slot);
        store_release(ch, slot);
    }
    if (is_unbounded(ch))
        blz__chain_clean_up(ch);
}

/*
 * One thread at a time, so that it is alone at the head, and no lock is held while the user's
 * function runs. Who comes meanwhile asks it to look once more.
 */
void blz__channel_drain(blz_channel *ch)
{
    uint64_t asked = 1, now;

    if (blz__fetch_add(&ch->drains, 1, ACQ_REL) != 0) /* pairs with that of who drains */
        return;
    for (;;) {
        destroy_all(ch);
        now = blz__fetch_sub(&ch->drains, asked, ACQ_REL); /* pairs with that of who asks */
        if (now == asked)
            return;
        asked = now - asked;
    }
}

/* ---- futures ---- */

blz_poll blz__channel_op_waited(blz_channel_op *op)
{
    switch (waiter_state(&op->waiter)) {
    case WAITER_SERVED:
        return blz_future_done(&op->future, 0);
    case WAITER_CLOSED:
        return blz_future_done(&op->future, -EPIPE);
    default:
        return BLZ_PENDING;
    }
}

bool blz__channel_op_leave(blz_channel_op *op, blz_waiters *queue)
{
    blz_channel *ch = op->channel;
    outcome out = OUTCOME_NONE;
    bool left;

    lock(ch);
    left = waiter_leave(&op->waiter, queue);
    if (left && queue == &ch->senders) /* who stood behind it may need less */
        blz__channel_settle(ch, &out);
    blz__channel_unlock(ch, &out);
    if (left)
        blz_waker_drop(&op->waiter.waker);
    return left;
}
