/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/sync: queues of waiters, for primitives and channels.
 *
 * A primitive is a word that says almost everything, a lock, and a queue that is changed under the
 * lock. Who has to wait links the waiter inside its future into the queue; who has something to
 * give *claims* the first waiter under the lock, and *serves* it when the lock is released:
 *
 *     blz_waiters claimed = {0};
 *     blz__lock_acquire(&s->lock);
 *     waiter_claim(s->waiters.first, &s->waiters, &claimed);
 *     blz__lock_release(&s->lock);                      // the last that touches the primitive
 *     waiters_serve(&claimed, WAITER_SERVED);
 *
 *   state      who owns the waiter      what happens
 *   ------------------------------------------------------------------------------------------
 *   IDLE       its future               not in the queue; nothing to give back
 *   QUEUED     the queue's lock         a cancel takes it out under the lock
 *   CLAIMED    who claimed it           as served for a cancel, but not ready yet: the wake follows
 *   SERVED, or its future again         what it waited for is its own; a cancel comes too late,
 *   any other                           and the future ends with success
 *
 * Served under the lock, a future might be ready, and its owner free the primitive, before the lock
 * is released; and a waker may run code that wants the same lock. Serving is the last thing that
 * anyone does to a waiter: its waker has been copied before, so the future may see its new state,
 * end, and be gone before the wake is made. There is no limit to how many can be claimed at once:
 * they are linked through themselves.
 */
#ifndef BLZ_SYNC_SYNC_H
#define BLZ_SYNC_SYNC_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/lock.h"

#include <blitz/future.h>
#include <blitz/waiter.h>

/* From WAITER_SERVED on it is ready; a primitive may have states of its own behind these. */
enum { WAITER_IDLE, WAITER_QUEUED, WAITER_CLAIMED, WAITER_SERVED, WAITER_CLOSED, WAITER_OWN };

/* The lock of a public struct, which has plain integers only. */
static inline blz__lock *lock_in(uint32_t *word)
{
    return (blz__lock *)(void *)word;
}

/* ---- the queue; under the lock ---- */

static inline bool waiters_empty(const blz_waiters *queue)
{
    return !queue->first;
}

static inline void waiters_append(blz_waiters *queue, blz_waiter *waiter)
{
    BLZ_ASSERT(!queue->first == !queue->last);
    waiter->next = NULL;
    waiter->prev = queue->last;
    if (queue->last)
        queue->last->next = waiter;
    else
        queue->first = waiter;
    queue->last = waiter;
}

static inline void waiters_prepend(blz_waiters *queue, blz_waiter *waiter)
{
    BLZ_ASSERT(!queue->first == !queue->last);
    waiter->prev = NULL;
    waiter->next = queue->first;
    if (queue->first)
        queue->first->prev = waiter;
    else
        queue->last = waiter;
    queue->first = waiter;
}

static inline void waiters_remove(blz_waiters *queue, blz_waiter *waiter)
{
    BLZ_ASSERT(waiter->prev ? waiter->prev->next == waiter : queue->first == waiter);
    BLZ_ASSERT(waiter->next ? waiter->next->prev == waiter : queue->last == waiter);
    if (waiter->prev)
        waiter->prev->next = waiter->next;
    else
        queue->first = waiter->next;
    if (waiter->next)
        waiter->next->prev = waiter->prev;
    else
        queue->last = waiter->prev;
}

static inline blz_waiter *waiters_take_first(blz_waiters *queue)
{
    blz_waiter *first = queue->first;

    if (first)
        waiters_remove(queue, first);
    return first;
}

/* ---- a waiter, by its future ---- */

static inline uint32_t waiter_state(const blz_waiter *waiter)
{
    return blz__load(&waiter->state, ACQUIRE); /* pairs with waiter_serve_claimed */
}

/* Whether it has been served, one way or another. A claimed one has not. */
static inline bool waiter_is_served(const blz_waiter *waiter)
{
    return waiter_state(waiter) >= WAITER_SERVED;
}

/* Joins the queue, under its lock, with a waker of the task being polled. */
static inline void waiter_enqueue(blz_waiter *waiter, blz_waiters *queue, blz_cx *cx)
{
    blz__plain_write(&waiter->waker);
    waiter->waker = blz_cx_waker(cx);
    blz__store(&waiter->state, WAITER_QUEUED, RELAXED); /* the queue's lock orders it */
    waiters_append(queue, waiter);
}

/* The same, in front of all others. */
static inline void waiter_enqueue_first(blz_waiter *waiter, blz_waiters *queue, blz_cx *cx)
{
    waiter->waker = blz_cx_waker(cx);
    blz__store(&waiter->state, WAITER_QUEUED, RELAXED);
    waiters_prepend(queue, waiter);
}

/*
 * Leaves the queue, under its lock. False: it has been served. The waker is the caller's to drop,
 * after the lock is released.
 */
static inline bool waiter_leave(blz_waiter *waiter, blz_waiters *queue)
{
    if (blz__load(&waiter->state, RELAXED) != WAITER_QUEUED)
        return false;
    waiters_remove(queue, waiter);
    blz__store(&waiter->state, WAITER_IDLE, RELAXED);
    return true;
}

/* ---- serving after the lock ---- */

/* Takes it out of the queue, under the lock, and puts it behind those claimed before. */
static inline void waiter_claim(blz_waiter *waiter, blz_waiters *queue, blz_waiters *claimed)
{
    BLZ_ASSERT(blz__peek(&waiter->state) == WAITER_QUEUED);
    waiters_remove(queue, waiter);
    blz__store(&waiter->state, WAITER_CLAIMED, RELAXED); /* the queue's lock orders it */
    waiters_append(claimed, waiter);
}

/* Takes all of them out of the queue, under the lock. */
static inline blz_waiters waiters_claim_all(blz_waiters *queue)
{
    blz_waiters claimed = *queue;

    *queue = (blz_waiters){NULL, NULL};
    for (blz_waiter *waiter = claimed.first; waiter; waiter = waiter->next)
        blz__store(&waiter->state, WAITER_CLAIMED, RELAXED); /* the queue's lock orders it */
    return claimed;
}

/* After the lock: one is its future's again, and is woken. */
static inline void waiter_serve_claimed(blz_waiter *waiter, uint32_t state)
{
    BLZ_ASSERT(state >= WAITER_SERVED);
    blz__plain_read(&waiter->waker);
    blz_waker waker = waiter->waker;

    /* release: what it has been given, and that we are through; pairs with waiter_state */
    blz__store(&waiter->state, state, RELEASE);
    blz_waker_wake(&waker);
}

/* After the lock: the same with all of them. */
static inline void waiters_serve(const blz_waiters *claimed, uint32_t state)
{
    for (blz_waiter *waiter = claimed->first, *next; waiter; waiter = next) {
        next = waiter->next;
        waiter_serve_claimed(waiter, state);
    }
}

#endif
