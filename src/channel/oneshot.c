/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oneshot: a value, a waker slot, and a state word that says who may touch them.
 *
 *   VALUE      the value is there; the sender is through
 *   DROPPED    there will be none; the sender is through
 *   WAITING    the waker slot is filled
 *   CLOSED     the receiver is gone
 *   the rest   counts how often WAITING was set
 *
 *   event      state                         next                 who acts
 *   -----------------------------------------------------------------------------------------
 *   recv       none of VALUE, DROPPED        + WAITING, count + 1 receiver filled the slot before
 *   send       not CLOSED                    + VALUE - WAITING    sender wakes, if WAITING
 *   send       CLOSED                        + DROPPED            sender gets -EPIPE
 *   drop       any                           + DROPPED - WAITING  sender wakes, if WAITING
 *   close      neither VALUE nor DROPPED     + CLOSED - WAITING   receiver drops its waker
 *
 * After VALUE or DROPPED is set the receiver may free the channel, so the sender copies the waker
 * before, and the count makes sure that the copy is of the waker that it finds WAITING for: were
 * the slot emptied and filled again in between, the compare-and-swap would fail. The slot is
 * read and written by relaxed atomics, since such a lost copy may be half old and half new.
 */
#include <blitz/oneshot.h>

#include "base/atomic.h"

#include <errno.h>

#define VALUE   0x1u
#define DROPPED 0x2u
#define WAITING 0x4u
#define CLOSED  0x8u
#define COUNT   ((uint64_t)0x10)

#define THROUGH (VALUE | DROPPED)

void blz_oneshot_init(blz_oneshot *channel)
{
    *channel = (blz_oneshot){0, 0, {NULL, NULL}};
}

/* ---- sender ---- */

static int finish_sending(blz_oneshot *channel, uint64_t outcome)
{
    uint64_t state = blz__load(&channel->state, ACQUIRE), next; /* pairs with the release in wait */
    blz_waker waker;

    do {
        waker.data = blz__load(&channel->waker.data, RELAXED);
        waker.ops = blz__load(&channel->waker.ops, RELAXED);
        next = (state & ~(uint64_t)WAITING) | (state & CLOSED ? DROPPED : outcome);
        /* release: the value, and that we are through; acquire: the waker */
    } while (!blz__cas_weak(&channel->state, &state, next, ACQ_REL, ACQUIRE));
    if (state & WAITING)
        blz_waker_wake(&waker);
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

/* ---- receiver ---- */

int blz_oneshot_try_recv(blz_oneshot *channel, int64_t *value)
{
    uint64_t state = blz__load(&channel->state, ACQUIRE); /* pairs with the release of the sender */

    if (state & VALUE) {
        blz__plain_read(&channel->value);
        *value = channel->value;
        return 1;
    }
    return state & DROPPED ? -EPIPE : 0;
}

/* Fills the slot. False: the sender was faster. */
static bool wait_for_sender(blz_oneshot *channel, blz_waker waker)
{
    uint64_t state = blz__load(&channel->state, RELAXED);

    blz__store(&channel->waker.data, waker.data, RELAXED);
    blz__store(&channel->waker.ops, waker.ops, RELAXED);
    do {
        if (state & THROUGH) {
            blz_waker_drop(&waker);
            return false;
        }
        /* release: the slot; pairs with the acquire in finish_sending */
    } while (!blz__cas_weak(&channel->state, &state, (state | WAITING) + COUNT, RELEASE, RELAXED));
    return true;
}

enum { RECV_START, RECV_WAITING, RECV_CANCELLED };

static blz_poll recv_poll(blz_future *future, blz_cx *cx)
{
    blz_oneshot *channel = ((blz_oneshot_wait *)future)->channel;
    int64_t value;
    int rc;

    if (future->line == RECV_CANCELLED)
        return blz_future_done(future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = blz_oneshot_try_recv(channel, &value);
    if (rc == 0 && future->line == RECV_START) {
        future->line = RECV_WAITING;
        if (!wait_for_sender(channel, blz_cx_waker(cx)))
            rc = blz_oneshot_try_recv(channel, &value);
    }
    if (rc == 0) {
        blz_coop_give_back(cx);
        return BLZ_PENDING;
    }
    return blz_future_done(future, rc < 0 ? rc : value);
}

bool blz_oneshot_close(blz_oneshot *channel)
{
    uint64_t state = blz__load(&channel->state, RELAXED);

    do {
        if (state & THROUGH) {
            (void)blz__load(&channel->state, ACQUIRE); /* the sender is done with the channel */
            return true;
        }
    } while (!blz__cas_weak(&channel->state, &state, (state & ~(uint64_t)WAITING) | CLOSED, ACQ_REL,
                            RELAXED));
    if (state & WAITING) {
        blz_waker waker = channel->waker; /* the slot itself: the sender may be reading it */
        blz_waker_drop(&waker);
    }
    return false;
}

/* Also before the first poll that got anywhere. If the sender was faster, its value stands. */
static void recv_cancel(blz_future *future, blz_cx *cx)
{
    (void)cx;
    if (!blz_oneshot_close(((blz_oneshot_wait *)future)->channel))
        future->line = RECV_CANCELLED;
}

blz_future *blz_oneshot_recv(blz_oneshot_wait *op, blz_oneshot *channel)
{
    static const blz_future_ops ops = {.name = "oneshot_recv",
                                       .poll = recv_poll,
                                       .cancel = recv_cancel};

    *op = (blz_oneshot_wait){.future = {.ops = &ops}, .channel = channel};
    return &op->future;
}
