/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request to stop, which SIGINT and SIGTERM make: a subscription to both that is never used up.
 * What there is to know is in the notice (notice.h); these are the futures that wait for it.
 */
#include "signal/table.h"

_Static_assert(sizeof(blz_stop) == 16 && sizeof(blz_stop_op) == 104, "part of the ABI");

/* private_[0] is the number of the process; 0: closed. */
int blz_stop_open(blz_stop *stop)
{
    uint64_t number = 0, count;
    int rc = blz__signals_enter(0, SLOT_STOP, &number, &count);

    *stop = (blz_stop){{rc < 0 ? 0 : number}};
    return rc;
}

void blz_stop_close(blz_stop *stop)
{
    if (blz__signals_check(stop->private_[0]) == 0)
        blz__signals_leave(0, SLOT_STOP);
    *stop = (blz_stop){{0}};
}

int blz_stop_received(const blz_stop *stop)
{
    int rc = blz__signals_check(stop->private_[0]);
    return rc < 0 ? rc : blz__notice_look(blz__signals());
}

/* ---- waiting ---- */

static blz_stop *stop_of(blz_stop_op *op)
{
    return op->stop ? op->stop : &op->own;
}

static bool wait_has_come(notice_wait *wait)
{
    (void)wait;
    return blz__notice_stop_has_come(blz__signals());
}

static int64_t wait_take(notice_wait *wait)
{
    return blz_stop_received(stop_of((blz_stop_op *)wait));
}

/* The first poll of blz_stop_signal opens one, unless it has been cancelled before. */
static int open_own(blz_stop_op *op)
{
    bool needed = !op->stop && op->own.private_[0] == 0 && op->future.line == 0;
    return needed ? blz_stop_open(&op->own) : 0;
}

static blz_poll wait_poll(blz_future *self, blz_cx *cx)
{
    static const notice_wait_ops ops = {wait_has_come, wait_take};
    blz_stop_op *op = (blz_stop_op *)self;
    int64_t result = open_own(op);

    if (result == 0 &&
        !blz__notice_poll((notice_wait *)self, &blz__signals()->stop, &ops, cx, &result))
        return BLZ_PENDING;
    blz_stop_close(&op->own);
    return blz_future_done(self, result);
}

static void wait_cancel(blz_future *self, blz_cx *cx)
{
    (void)cx;
    blz__notice_cancel((notice_wait *)self, &blz__signals()->stop);
}

blz_future *blz_stop_await(blz_stop_op *op, blz_stop *stop)
{
    static const blz_future_ops ops = {.name = "stop_await",
                                       .poll = wait_poll,
                                       .cancel = wait_cancel};

    blz_op_check(&op->future, &ops);
    *op = (blz_stop_op){.future = {.ops = &ops}, .stop = stop};
    return &op->future;
}

blz_future *blz_stop_signal(blz_stop_op *op)
{
    return blz_stop_await(op, NULL);
}
