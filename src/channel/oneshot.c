/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oneshot: a value, a slot for the waker of either side, and a state word that says who may touch
 * them.
 *
 *   VALUE      the value is there; the sender is through
 *   DROPPED    there will be none; the sender is through
 *   WAITING    the receiver's slot is filled
 *   WATCHING   the sender's slot is filled
 *   CLOSED     the receiver wants nothing any more
 *   GONE       the receiver's handle is gone: the sender frees the channel
 *   the rest   counts how often WAITING and WATCHING were set
 *
 *   event      state                    next                  who acts
 *   ---------------------------------------------------------------------------------------------
 *   recv       neither VALUE, DROPPED   + WAITING, count + 1  receiver filled its slot before
 *   its cancel neither VALUE, DROPPED   - WAITING             receiver drops its waker
 *   send       not CLOSED               + VALUE - WAITING     sender wakes, if WAITING
 *   send       CLOSED                   + DROPPED - WAITING   the same, and gets -EPIPE
 *   drop       any                      + DROPPED - WAITING   sender wakes, if WAITING
 *   closed     not CLOSED               + WATCHING, count + 1 sender filled its slot before
 *   its cancel not CLOSED               - WATCHING            sender drops its waker
 *   close      neither VALUE, DROPPED   + CLOSED - WATCHING   receiver wakes, if WATCHING
 *   drop of    neither VALUE, DROPPED   + CLOSED + GONE       the same; the sender frees, when it
 *   a handle                              - WATCHING          sends or drops
 *   drop of    VALUE or DROPPED         -                     receiver frees
 *   a handle
 *
 * Two of these operations end with the channel perhaps freed by the other side: after VALUE or
 * DROPPED is set the receiver may free it, after GONE the sender. So the waker of the other side
 * is copied before, and the count makes sure that the copy is of the waker whose bit is then
 * found: were the slot emptied and filled again in between, the compare-and-swap would fail. The
 * slots are read and written by relaxed atomics, since such a lost copy may be half old, half new.
 */
#include <blitz/wait_info.h>
#include <blitz/oneshot.h>

#include "base/assert.h"
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/panic.h"

#include <blitz/error.h>

_Static_assert(sizeof(blz_oneshot) == 56, "part of the ABI");
_Static_assert(sizeof(blz_oneshot_op) == 56, "part of the ABI");

#define VALUE    ((uint64_t)0x1)
#define DROPPED  ((uint64_t)0x2)
#define WAITING  ((uint64_t)0x4)
#define WATCHING ((uint64_t)0x8)
#define CLOSED   ((uint64_t)0x10)
#define GONE     ((uint64_t)0x20)
#define COUNT    ((uint64_t)0x40)

#define THROUGH (VALUE | DROPPED)

void blz_oneshot_init(blz_oneshot *channel)
{
    *channel = (blz_oneshot)BLZ_ONESHOT_INIT;
}

/* ---- the slots of wakers, by either side ---- */

static blz_waker slot_peek(const blz_waker *slot)
{
    return (blz_waker){blz__load(&slot->data, RELAXED), blz__load(&slot->ops, RELAXED)};
}

/* Fills the slot, unless one of the bits in `end` says that there is nothing to wait for. */
static bool slot_fill(blz_oneshot *channel, blz_waker *slot, uint64_t bit, uint64_t end,
                      blz_waker waker)
{
    uint64_t state = blz__load(&channel->state, RELAXED);

    BLZ_ASSERT(!(blz__peek(&channel->state) & bit));
    blz__store(&slot->data, waker.data, RELAXED);
    blz__store(&slot->ops, waker.ops, RELAXED);
    do {
        if (state & end) {
            blz_waker_drop(&waker);
            return false;
        }
        /* release: the slot; pairs with the acquires in finish_sending and end_receiving */
    } while (!blz__cas_weak(&channel->state, &state, (state | bit) + COUNT, RELEASE, RELAXED));
    return true;
}

/* Empties it again. False: the other side was faster, or has ended what is waited for. */
static bool slot_empty(blz_oneshot *channel, const blz_waker *slot, uint64_t bit, uint64_t end)
{
    uint64_t state = blz__load(&channel->state, RELAXED);
    blz_waker waker;

    do {
        if (state & end)
            return false;
        if (!(state & bit))
            return true;
        /* nothing is handed over: the waker is our own */
    } while (!blz__cas_weak(&channel->state, &state, state & ~bit, RELAXED, RELAXED));
    waker = slot_peek(slot);
    blz_waker_drop(&waker);
    return true;
}

/* ---- with handles: the channel on the heap ---- */

struct pair {
    blz_oneshot channel; /* first */
    const blz_allocator *allocator;
};

int blz_oneshot_new(blz_oneshot_sender *sender, blz_oneshot_receiver *receiver,
                    const blz_allocator *allocator)
{
    struct pair *pair;

    if (!allocator)
        allocator = &blz__system_allocator;
    pair = blz__alloc(allocator, sizeof *pair, _Alignof(struct pair));
    if (!pair)
        return -ENOMEM;
    *pair = (struct pair){BLZ_ONESHOT_INIT, allocator};
    sender->channel = receiver->channel = &pair->channel;
    return 0;
}

static void free_pair(blz_oneshot *channel)
{
    struct pair *pair = (struct pair *)channel;

    blz__plain_write(&channel->value);
    blz__free(pair->allocator, pair, sizeof *pair, _Alignof(struct pair));
}

/* ---- sender ---- */

static BLZ_COLD void sent_by_mistake(uint64_t state)
{
    if (state & THROUGH)
        blz__panic("a oneshot has been sent or dropped twice");
    blz__panic("a oneshot is sent or dropped while blz_oneshot_closed is being awaited");
}

static int finish_sending(blz_oneshot *channel, uint64_t outcome)
{
    /* acquire: the waker; pairs with the release in slot_fill */
    uint64_t state = blz__load(&channel->state, ACQUIRE), next;
    blz_waker waker;

    do {
        if (blz_unlikely(state & (THROUGH | WATCHING)))
            sent_by_mistake(state);
        waker = slot_peek(&channel->receiver);
        next = (state & ~WAITING) | (state & CLOSED ? DROPPED : outcome);
        /* release: the value, and that we are through; acquire: the waker, and with GONE that the
         * receiver is. Pairs with the receiver's acquires, slot_fill and end_receiving. */
    } while (!blz__cas_weak(&channel->state, &state, next, ACQ_REL, ACQUIRE));
    if (state & WAITING)
        blz_waker_wake(&waker);
    if (blz_unlikely(state & GONE))
        free_pair(channel);
    return state & CLOSED ? -EPIPE : 0;
}

int blz_oneshot_send(blz_oneshot *channel, int64_t value)
{
    blz__plain_write(&channel->value);
    channel->value = value;
    return finish_sending(channel, VALUE);
}

void blz_oneshot_drop(blz_oneshot *channel)
{
    finish_sending(channel, DROPPED);
}

bool blz_oneshot_is_closed(const blz_oneshot *channel)
{
    return blz__load(&channel->state, ACQUIRE) & CLOSED; /* pairs with end_receiving */
}

enum { WAIT_START, WAIT_FILLED, WAIT_CANCELLED };

static blz_poll closed_poll(blz_future *future, blz_cx *cx)
{
    blz_oneshot *channel = ((blz_oneshot_op *)future)->channel;

    if (blz_unlikely(!channel))
        return blz_future_done(future, -EBADF);
    if (future->line == WAIT_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (!blz_oneshot_is_closed(channel)) {
        bool start = future->line == WAIT_START;
        future->line = WAIT_FILLED;
        if (!start || slot_fill(channel, &channel->sender, WATCHING, CLOSED, blz_cx_waker(cx))) {
            blz_coop_give_back(cx);
            return BLZ_PENDING;
        }
        (void)blz_oneshot_is_closed(channel); /* what the receiver did before it closed */
    }
    return blz_future_done(future, 0);
}

static void closed_cancel(blz_future *future, blz_cx *cx)
{
    blz_oneshot *channel = ((blz_oneshot_op *)future)->channel;

    (void)cx;
    if (channel && slot_empty(channel, &channel->sender, WATCHING, CLOSED))
        future->line = WAIT_CANCELLED;
}

void blz_oneshot_describe_(const blz_future *future, blz_wait_info *info)
{
    info->kind = "oneshot";
    info->object = ((const blz_oneshot_op *)(const void *)future)->channel;
}

blz_future *blz_oneshot_closed(blz_oneshot_op *op, blz_oneshot *channel)
{
    static const blz_future_ops ops = {.name = "oneshot_closed",
                                       .poll = closed_poll,
                                       .cancel = closed_cancel,
                                       .describe_wait = blz_oneshot_describe_};

    blz_op_check(&op->future, &ops);
    *op = (blz_oneshot_op){.future = {.ops = &ops}, .channel = channel};
    return &op->future;
}

/* ---- receiver ---- */

int blz_oneshot_try_recv(blz_oneshot *channel, int64_t *value)
{
    uint64_t state = blz__load(&channel->state, ACQUIRE); /* pairs with the release of the sender */

    if (state & VALUE) {
        blz__plain_read(&channel->value);
        if (value)
            *value = channel->value;
        return 0;
    }
    return state & DROPPED ? -EPIPE : -EAGAIN;
}

blz_poll blz_oneshot_recv_poll_(blz_future *future, blz_cx *cx)
{
    blz_oneshot_op *op = (blz_oneshot_op *)future;
    blz_oneshot *channel = op->channel;
    int rc;

    if (blz_unlikely(!channel))
        return blz_future_done(future, -EBADF);
    if (future->line == WAIT_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = blz_oneshot_try_recv(channel, op->value);
    if (rc == -EAGAIN && future->line == WAIT_START) {
        future->line = WAIT_FILLED;
        if (!slot_fill(channel, &channel->receiver, WAITING, THROUGH, blz_cx_waker(cx)))
            rc = blz_oneshot_try_recv(channel, op->value);
    }
    if (rc == -EAGAIN) {
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
    return blz_future_done(future, rc);
}

/* Also before the first poll that got anywhere. If the sender was faster, its value stands. */
void blz_oneshot_recv_cancel_(blz_future *future, blz_cx *cx)
{
    blz_oneshot *channel = ((blz_oneshot_op *)future)->channel;

    (void)cx;
    if (channel && slot_empty(channel, &channel->receiver, WAITING, THROUGH))
        future->line = WAIT_CANCELLED;
}

blz_future *blz_oneshot_recv(blz_oneshot_op *op, blz_oneshot *channel, int64_t *value)
{
    static const blz_future_ops ops = {.name = "oneshot_recv",
                                       .poll = blz_oneshot_recv_poll_,
                                       .cancel = blz_oneshot_recv_cancel_,
                                       .describe_wait = blz_oneshot_describe_};

    blz_op_check(&op->future, &ops);
    *op = (blz_oneshot_op){.future = {.ops = &ops}, .channel = channel, .value = value};
    return &op->future;
}

/* Gives the state before; if the sender is through, nothing has been changed. */
static uint64_t end_receiving(blz_oneshot *channel, uint64_t bits)
{
    /* acquire: that the sender is through, or its waker; pairs with finish_sending, slot_fill */
    uint64_t state = blz__load(&channel->state, ACQUIRE);
    blz_waker waker;

    do {
        if (state & THROUGH)
            return state;
        waker = slot_peek(&channel->sender);
        /* release: that we are gone; pairs with finish_sending and blz_oneshot_is_closed */
    } while (!blz__cas_weak(&channel->state, &state, (state & ~WATCHING) | bits, ACQ_REL, ACQUIRE));
    if (state & WATCHING)
        blz_waker_wake(&waker);
    return state;
}

bool blz_oneshot_close(blz_oneshot *channel)
{
    return end_receiving(channel, CLOSED) & THROUGH;
}

void blz_oneshot_receiver_drop(blz_oneshot_receiver *receiver)
{
    blz_oneshot *channel = receiver->channel;

    receiver->channel = NULL;
    if (!channel)
        return;
    if (blz__load(&channel->state, RELAXED) & WAITING)
        blz__panic("a receiver of a oneshot is dropped while its receive is pending");
    if (end_receiving(channel, CLOSED | GONE) & THROUGH)
        free_pair(channel);
}
