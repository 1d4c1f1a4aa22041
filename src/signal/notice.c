/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling those who wait: see notice.h.
 *
 * The list is under a lock, and wakers are called outside of it. A waiter that the herald has taken
 * from the list is not touched any more: its task may be running, and gone, before it is woken.
 */
#include "signal/notice.h"

enum { BATCH = 16 };

/* With the lock held. */
static void unlink_waiter(blz_stop_op *op)
{
    blz__plain_write(op->link);
    blz__plain_write(&op->link);
    *op->link = op->next;
    if (op->next)
        op->next->link = op->link;
    op->link = NULL;
}

static blz_waker take_waker(blz_stop_op *op)
{
    blz__plain_write(&op->waker);
    blz_waker waker = op->waker;

    op->waker = (blz_waker){NULL, NULL};
    return waker;
}

static int take_batch(stop_notice *notice, blz_waker wakers[BATCH])
{
    int count = 0;

    blz__lock_acquire(&notice->lock);
    blz__plain_read(&notice->waiters);
    while (notice->waiters && count < BATCH) {
        blz_stop_op *op = notice->waiters;
        unlink_waiter(op);
        wakers[count++] = take_waker(op);
    }
    blz__lock_release(&notice->lock);
    return count;
}

static void tell_all(stop_notice *notice)
{
    blz_waker wakers[BATCH];
    int count;

    do {
        count = take_batch(notice, wakers);
        for (int i = 0; i < count; i++)
            blz_waker_wake(&wakers[i]);
    } while (count == BATCH);
}

void blz__notice_herald(stop_notice *notice)
{
    for (;;) {
        uint32_t word = blz__load(&notice->word, RELAXED);
        if (!(word & NOTICE_OPEN))
            return;
        if (!(word & NOTICE_SIGNAL) || (word & NOTICE_TOLD))
            blz__futex_wait(&notice->word, word);
        else if (blz__cas_weak(&notice->word, &word, word | NOTICE_TOLD, RELAXED, RELAXED))
            tell_all(notice);
    }
}

int blz__notice_wait(stop_notice *notice, blz_stop_op *op, blz_waker waker)
{
    int signal;

    blz__plain_write(&op->waker);
    op->waker = waker;
    blz__lock_acquire(&notice->lock);
    blz__plain_write(&notice->waiters);
    blz__plain_write(&op->link);
    op->next = notice->waiters;
    op->link = &notice->waiters;
    if (op->next)
        op->next->link = &op->next;
    notice->waiters = op;
    blz__lock_release(&notice->lock);
    signal = notice_look(notice);
    if (signal)
        blz__notice_leave(notice, op);
    return signal;
}

void blz__notice_leave(stop_notice *notice, blz_stop_op *op)
{
    blz_waker waker = {NULL, NULL};

    blz__lock_acquire(&notice->lock);
    blz__plain_read(&op->link);
    if (op->link) {
        unlink_waiter(op);
        waker = take_waker(op);
    }
    blz__lock_release(&notice->lock);
    blz_waker_drop(&waker);
}
