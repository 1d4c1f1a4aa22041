/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of inject.h. The length is changed under the lock and read without it: a reader that
 * must not miss a computation is ordered with the push by the fences of sleep.h.
 */
#include "par/inject.h"

void blz__par_inject_init(inject_queue *q)
{
    *q = (inject_queue){.end = &q->first};
}

void blz__par_inject_push(inject_queue *q, root *r)
{
    r->next = NULL;
    blz__lock_acquire(&q->lock);
    *q->end = r;
    q->end = &r->next;
    blz__store(&q->len, blz__load(&q->len, RELAXED) + 1, RELAXED);
    blz__lock_release(&q->lock);
}

root *blz__par_inject_take(inject_queue *q)
{
    root *r;

    if (blz__load(&q->len, RELAXED) == 0)
        return NULL;
    blz__lock_acquire(&q->lock);
    r = q->first;
    if (r) {
        q->first = r->next;
        if (!q->first)
            q->end = &q->first;
        blz__store(&q->len, blz__load(&q->len, RELAXED) - 1, RELAXED);
    }
    blz__lock_release(&q->lock);
    return r;
}
