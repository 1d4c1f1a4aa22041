/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/sync: queues of waiters, for primitives and channels.
 *
 * A primitive is a word that says almost everything, a lock, and a queue that is changed under the
 * lock. Who has to wait links the waiter inside its future into the queue; who has something to
 * give takes the first waiter out, under the lock, and *serves* it:
 *
 *     wake_list list = {0};
 *     blz__lock_acquire(&s->lock);
 *     waiter = waiters_take_first(&s->waiters);
 *     if (waiter)
 *         waiter_serve(waiter, WAITER_SERVED, &list);   // the waiter is not ours any more
 *     blz__lock_release(&s->lock);
 *     wake_list_wake(&list);
 *
 *   state      who owns the waiter      what happens
 *   ------------------------------------------------------------------------------------------
 *   IDLE       its future               not in the queue; nothing to give back
 *   QUEUED     the queue's lock         a cancel takes it out under the lock
 *   SERVED, or its future again         what it waited for is its own; a cancel comes too late,
 *   any other                           and the future ends with success
 *
 * Serving is the last thing that anyone does to a waiter: its waker has been moved into the list
 * before, so the future may see its new state, end, and be gone before the wake is made. Wakes are
 * made after the lock is released, because a waker may run code that wants the same lock.
 *
 * Served under the lock, a future may be ready, and its owner free the primitive, before the lock
 * is released. Where that is allowed, the waiter is *claimed* under the lock, and served after it:
 *
 *     blz_waiters claimed = {0};
 *     blz__lock_acquire(&s->lock);
 *     waiter_claim(s->waiters.first, &s->waiters, &claimed);
 *     blz__lock_release(&s->lock);                      // the last that touches the primitive
 *     waiters_serve(&claimed, WAITER_SERVED);
 *
 *   CLAIMED    who claimed it           as served for a cancel, but not ready yet: the wake follows
 *
 * There is no limit to how many can be claimed at once: they are linked through themselves.
 */
#ifndef BLZ_SYNC_SYNC_H
#define BLZ_SYNC_SYNC_H

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
    return blz__load(&waiter->state, ACQUIRE); /* pairs with the release in waiter_serve */
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

/* ---- wakes to be made when the lock is released ---- */

enum { WAKE_LIST_MAX = 32 };

typedef struct wake_list {
    uint32_t count;
    blz_waker wakers[WAKE_LIST_MAX];
} wake_list;

/* There may be more to wake: release the lock, wake, and come back. */
static inline bool wake_list_full(const wake_list *list)
{
    return list->count == WAKE_LIST_MAX;
}

/* The waiter is out of the queue: gives it its new state, and with that back to its future. */
static inline void waiter_serve(blz_waiter *waiter, uint32_t state, wake_list *list)
{
    blz__plain_read(&waiter->waker);
    list->wakers[list->count++] = waiter->waker;
    /* release: what it has been given, and that we are through; pairs with waiter_state */
    blz__store(&waiter->state, state, RELEASE);
}

static inline void wake_list_wake(wake_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        blz_waker_wake(&list->wakers[i]);
    list->count = 0;
}

/* ---- serving after the lock ---- */

/* Takes it out of the queue, under the lock, and puts it behind those claimed before. */
static inline void waiter_claim(blz_waiter *waiter, blz_waiters *queue, blz_waiters *claimed)
{
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
