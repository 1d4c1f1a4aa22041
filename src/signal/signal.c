/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscriptions to signals: see notice.h for what a subscription is, and table.c for the handlers.
 */
#include "signal/table.h"

#include <blitz/wait_info.h>
#include <blitz/error.h>

_Static_assert(sizeof(blz_signal) == 24 && sizeof(blz_signal_op) == 96, "part of the ABI");

/* The public struct holds plain integers only. */
struct sub {
    uint64_t number; /* of the process; 0: closed */
    uint64_t signal;
    uint64_t seen; /* atomic: the count up to which it has received */
};

_Static_assert(sizeof(struct sub) == sizeof(blz_signal), "the same");

static struct sub *sub_of(blz_signal *signal)
{
    return (struct sub *)(void *)signal;
}

static signal_slot *slot_of(const struct sub *sub)
{
    return &blz__shared()->signals.slots[sub->signal];
}

int blz_signal_open(blz_signal *sub, int number)
{
    struct sub fresh = {.signal = (uint64_t)number};
    int rc = blz__signals_enter(number, SLOT_PLAIN, &fresh.number, &fresh.seen);

    *sub_of(sub) = rc == 0 ? fresh : (struct sub){0};
    return rc;
}

void blz_signal_close(blz_signal *sub)
{
    if (blz__signals_check(sub_of(sub)->number) == 0)
        blz__signals_leave((int)sub_of(sub)->signal, SLOT_PLAIN);
    *sub_of(sub) = (struct sub){0};
}

/* ---- receiving ---- */

/* Takes what has come: how many, which may be 0. */
static int64_t take_signals(blz_signal *sub, blz_signal_info *info)
{
    struct sub *s = sub_of(sub);
    int rc = blz__signals_check(s->number);
    uint64_t count, sender;

    if (rc < 0)
        return rc;
    count = blz__slot_take(slot_of(s), &s->seen);
    if (count == 0 || !info)
        return (int64_t)count;
    sender = blz__load(&slot_of(s)->sender, RELAXED); /* of the last one or a later: slot_count */
    *info = (blz_signal_info){.signal = (int)s->signal,
                              .pid = (int64_t)(sender >> 32),
                              .uid = (uint32_t)sender,
                              .count = count};
    return (int64_t)count;
}

int64_t blz_signal_try_recv(blz_signal *sub, blz_signal_info *info)
{
    int64_t count = take_signals(sub, info);

    return count == 0 ? -EAGAIN : count;
}

static bool recv_has_come(notice_wait *wait)
{
    struct sub *sub = sub_of(((blz_signal_op *)wait)->signal);
    return slot_has_come(slot_of(sub), &sub->seen);
}

static int64_t recv_take(notice_wait *wait)
{
    blz_signal_op *op = (blz_signal_op *)wait;
    return take_signals(op->signal, op->info);
}

static signal_list *list_of(const blz_signal_op *op)
{
    return &slot_of(sub_of(op->signal))->list;
}

static blz_poll recv_poll(blz_future *self, blz_cx *cx)
{
    static const notice_wait_ops ops = {recv_has_come, recv_take};
    blz_signal_op *op = (blz_signal_op *)self;
    int64_t result;

    if (!blz__notice_poll((notice_wait *)self, list_of(op), &ops, cx, &result))
        return BLZ_PENDING;
    return blz_future_done(self, result);
}

static void recv_cancel(blz_future *self, blz_cx *cx)
{
    (void)cx;
    blz__notice_cancel((notice_wait *)self, list_of((blz_signal_op *)self));
}

static void recv_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_signal_op *op = (const blz_signal_op *)(const void *)future;

    info->kind = "signal";
    info->object = op->signal;
}

blz_future *blz_signal_recv(blz_signal_op *op, blz_signal *sub, blz_signal_info *info)
{
    static const blz_future_ops ops = {.name = "signal_recv",
                                       .poll = recv_poll,
                                       .cancel = recv_cancel,
                                       .describe_wait = recv_describe};

    blz_op_check(&op->future, &ops);
    *op = (blz_signal_op){.future = {.ops = &ops}, .signal = sub, .info = info};
    return &op->future;
}
