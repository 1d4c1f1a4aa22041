/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of inject.h. The length is changed under the lock and read without it: a reader that
 * must not miss a computation is ordered with the push by the fences of sleep.h.
 */
#include "par/inject.h"

#include "base/assert.h"

void blz__par_inject_init(inject_queue *q)
{
    *q = (inject_queue){.first = NULL};
}

static void add_len(inject_queue *q, uint32_t change)
{
    BLZ_ASSERT(blz__lock_is_held(&q->lock));
    blz__store(&q->len, blz__load(&q->len, RELAXED) + change, RELAXED);
}

void blz__par_inject_push(inject_queue *q, root *r)
{
    r->queued = true;
    r->next = NULL;
    blz__lock_acquire(&q->lock);
    blz__plain_write(&q->first);
    r->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = r;
    q->last = r;
    add_len(q, 1);
    blz__lock_release(&q->lock);
}

static void unlink_root(inject_queue *q, root *r)
{
    BLZ_ASSERT(blz__lock_is_held(&q->lock));
    BLZ_ASSERT(r->queued);
    BLZ_ASSERT(blz__peek(&q->len) > 0);
    blz__plain_write(&q->first);
    *(r->prev ? &r->prev->next : &q->first) = r->next;
    *(r->next ? &r->next->prev : &q->last) = r->prev;
    r->queued = false;
    add_len(q, -1u);
}

root *blz__par_inject_take(inject_queue *q)
{
    root *r;

    if (blz__load(&q->len, RELAXED) == 0)
        return NULL;
    blz__lock_acquire(&q->lock);
    r = q->first;
    if (r)
        unlink_root(q, r);
    blz__lock_release(&q->lock);
    return r;
}

bool blz__par_inject_withdraw(inject_queue *q, root *r)
{
    bool queued;

    blz__lock_acquire(&q->lock);
    queued = r->queued;
    if (queued)
        unlink_root(q, r);
    blz__lock_release(&q->lock);
    return queued;
}
