/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify: one permit, or those who wait for one. The word says which:
 *
 *   EMPTY      nobody waits, no permit
 *   PERMIT     nobody waits, one permit
 *   MANY       those who wait are in the queue; only who holds the lock changes word and queue
 *   a pointer  one waits, alone: whoever swaps the pointer away owns that waiter
 *
 *   event        EMPTY      PERMIT     pointer              MANY (under the lock)
 *   -------------------------------------------------------------------------------------------
 *   await        pointer    EMPTY, 0   MANY (1)             joins the queue
 *   enable       MANY (1)   EMPTY, 0   MANY (1)             joins the queue
 *   notify one   PERMIT     PERMIT     EMPTY, serves it     claims the first, serves it (2)
 *   notify all   same       same       EMPTY, serves it     claims all, serves them; EMPTY
 *   cancel       -          -          EMPTY                leaves, unless claimed (2)
 *
 *   (1) under the lock; the one that was alone is put into the queue
 *   (2) EMPTY if nobody is left
 *
 * Two tasks that notify each other in turn have at most one waiter each, and never take the lock.
 * Everything but (1) and MANY is one compare-and-swap, "same" included: who notifies must not miss
 * a wait that was enabled before it, nor who has enabled its wait, and then looks, what was done
 * before the notification. A plain load would allow both at once.
 *
 * A waiter is served outside the lock: its state and its wake are the last things that a notifier
 * does, and they are not done to the notify, which may be gone then. The state of one that waits
 * alone is IDLE, also when it has been swapped away and is about to be served.
 *
 * A permit that comes to a wait which is being cancelled is passed on by its last poll. One that
 * came to all is not: it was meant for this one, and the wait ends with success.
 */
#include <blitz/wait_info.h>
#include <blitz/notify.h>

#include "sync/sync.h"

#include "base/assert.h"
#include "system/thread.h"

_Static_assert(sizeof(blz_notify) == 32, "part of the ABI");
_Static_assert(sizeof(blz_notify_op) == 96, "part of the ABI");

enum { EMPTY, PERMIT, MANY };

/* How a waiter has been served: its state. */
enum { BY_ONE = WAITER_SERVED, BY_LAST = WAITER_OWN, BY_ALL };

/* future.line; ENABLED: in the queue, or served, and nobody has polled yet. */
enum { FRESH, ENABLED, WAITING, PASSING, CANCELLED };

static blz__lock *lock_of(blz_notify *notify)
{
    return (blz__lock *)(void *)&notify->lock;
}

static bool is_waiter(uint64_t word)
{
    return word > MANY;
}

static blz_waiter *waiter_in(uint64_t word)
{
    return (blz_waiter *)(uintptr_t)word;
}

void blz_notify_init(blz_notify *notify)
{
    *notify = (blz_notify)BLZ_NOTIFY_INIT;
}

/* ---- notifying ---- */

/* Takes one out of the queue, or all. Under the lock, and there is one. */
static blz_waiters claim(blz_notify *notify, uint32_t how)
{
    blz_waiters *queue = &notify->waiters, claimed = {NULL, NULL};

    BLZ_ASSERT(blz__lock_is_held(lock_of(notify)));
    BLZ_ASSERT(!waiters_empty(queue));
    if (how == BY_ALL)
        claimed = waiters_claim_all(queue);
    else
        waiter_claim(how == BY_LAST ? queue->last : queue->first, queue, &claimed);
    if (waiters_empty(queue))
        blz__store(&notify->word, EMPTY, RELAXED); /* says nothing but that nobody waits */
    return claimed;
}

/* False: nobody is in the queue any more. */
static BLZ_NOINLINE bool notify_queued(blz_notify *notify, uint32_t how)
{
    blz_waiters claimed = {NULL, NULL};

    blz__lock_acquire(lock_of(notify));
    if (blz__load(&notify->word, RELAXED) == MANY)
        claimed = claim(notify, how);
    blz__lock_release(lock_of(notify));
    waiters_serve(&claimed, how);
    return claimed.first;
}

static inline void notify(blz_notify *notify, uint32_t how)
{
    uint64_t word = blz__load(&notify->word, RELAXED);

    for (;;) {
        if (word == MANY) {
            if (notify_queued(notify, how))
                return;
            word = blz__load(&notify->word, RELAXED);
        } else {
            uint64_t next = is_waiter(word) ? EMPTY : how == BY_ALL ? word : PERMIT;
            /* release: what was done before, for who takes the permit, or enables its wait after
             * this; acquire: the waiter */
            if (blz__cas_weak(&notify->word, &word, next, ACQ_REL, RELAXED))
                break;
        }
    }
    if (is_waiter(word))
        waiter_serve_claimed(waiter_in(word), how);
}

void blz_notify_one(blz_notify *self)
{
    notify(self, BY_ONE);
}

void blz_notify_last(blz_notify *self)
{
    notify(self, BY_LAST);
}

void blz_notify_all(blz_notify *self)
{
    notify(self, BY_ALL);
}

/* ---- beginning to wait ---- */

static bool take_permit(blz_notify *notify, uint64_t *word)
{
    /* acquire: pairs with the release in notify */
    return blz__cas_weak(&notify->word, word, EMPTY, ACQUIRE, RELAXED);
}

int blz_notify_try_await(blz_notify *notify)
{
    uint64_t word = blz__load(&notify->word, RELAXED);

    while (word == PERMIT) {
        if (take_permit(notify, &word))
            return 0;
    }
    return -EAGAIN;
}

/* Under the lock. */
static void append(blz_notify *notify, blz_waiter *waiter)
{
    BLZ_ASSERT(blz__lock_is_held(lock_of(notify)));
    blz__store(&waiter->state, WAITER_QUEUED, RELAXED); /* the lock orders it */
    waiters_append(&notify->waiters, waiter);
}

/* Makes the queue the place to wait, under the lock. False: there was a permit, and it is ours. */
static bool open_queue(blz_notify *notify)
{
    uint64_t word = blz__load(&notify->word, RELAXED);

    BLZ_ASSERT(blz__lock_is_held(lock_of(notify)));
    while (word != MANY) {
        if (word == PERMIT) {
            if (take_permit(notify, &word))
                return false;
            /* acquire: the waiter; and what was done before a notification that missed us */
        } else if (blz__cas_weak(&notify->word, &word, MANY, ACQ_REL, RELAXED)) {
            if (is_waiter(word))
                append(notify, waiter_in(word));
            return true;
        }
    }
    return true;
}

static BLZ_NOINLINE bool join_queue(blz_notify_op *op)
{
    blz_notify *notify = op->notify;
    bool open;

    blz__lock_acquire(lock_of(notify));
    open = open_queue(notify);
    if (open)
        append(notify, &op->waiter);
    blz__lock_release(lock_of(notify));
    return open;
}

/* Waits with the waker that it has. False: there was a permit, and it is ours. */
static bool wait_alone_or_queue(blz_notify_op *op, uint64_t word)
{
    blz_waiter *waiter = &op->waiter;

    while (word == EMPTY) {
        /* release: the waiter; pairs with the acquire of who takes it */
        if (blz__cas_weak(&op->notify->word, &word, (uint64_t)(uintptr_t)waiter, RELEASE, RELAXED))
            return true;
    }
    return join_queue(op);
}

static blz_poll begin(blz_notify_op *op, blz_cx *cx)
{
    uint64_t word = blz__load(&op->notify->word, RELAXED);

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    while (word == PERMIT) {
        if (take_permit(op->notify, &word))
            return blz_future_done(&op->future, 0);
    }
    blz__plain_write(&op->waiter.waker);
    op->waiter.waker = blz_cx_waker(cx);
    if (!wait_alone_or_queue(op, word)) {
        blz_waker_drop(&op->waiter.waker);
        return blz_future_done(&op->future, 0);
    }
    op->future.line = WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

/* ---- waiting ---- */

/* Stops waiting. False: it has been taken, and is served, or about to be. */
static bool leave(blz_notify_op *op)
{
    blz_notify *notify = op->notify;
    uint64_t word = (uint64_t)(uintptr_t)&op->waiter;
    bool queued;

    if (blz__load(&op->waiter.state, RELAXED) == WAITER_IDLE &&
        blz__cas(&notify->word, &word, EMPTY, RELAXED, RELAXED)) /* nobody else has seen it */
        return true;
    blz__lock_acquire(lock_of(notify));
    queued = waiter_leave(&op->waiter, &notify->waiters);
    if (queued && waiters_empty(&notify->waiters))
        blz__store(&notify->word, EMPTY, RELAXED); /* as in claim */
    blz__lock_release(lock_of(notify));
    return queued;
}

/* The first poll of a wait that was enabled: from now on there is somebody to wake. */
static BLZ_NOINLINE blz_poll begin_enabled(blz_notify_op *op, blz_cx *cx)
{
    blz_waker waker;
    bool queued;

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (waiter_is_served(&op->waiter))
        return blz_future_done(&op->future, 0);
    blz_coop_give_back(cx);
    waker = blz_cx_waker(cx);
    blz__lock_acquire(lock_of(op->notify));
    queued = blz__load(&op->waiter.state, RELAXED) == WAITER_QUEUED; /* ordered by the lock */
    if (queued) {
        blz__plain_write(&op->waiter.waker);
        op->waiter.waker = waker;
    }
    blz__lock_release(lock_of(op->notify));
    if (!queued) { /* who has taken it found no waker, and serves it in a moment */
        blz_waker_drop(&waker);
        return blz_cx_yield(cx);
    }
    op->future.line = WAITING;
    return BLZ_PENDING;
}

/* Was cancelled when it had been taken; without a waker if it had not been polled. */
static BLZ_NOINLINE blz_poll pass_on(blz_notify_op *op, blz_cx *cx)
{
    uint32_t how = waiter_state(&op->waiter);

    if (how < WAITER_SERVED)
        return op->waiter.waker.ops ? BLZ_PENDING : blz_cx_yield(cx);
    if (how == BY_ALL)
        return blz_future_done(&op->future, 0);
    notify(op->notify, how);
    return blz_future_done(&op->future, -ECANCELED);
}

static blz_poll await_poll(blz_future *future, blz_cx *cx)
{
    blz_notify_op *op = (blz_notify_op *)future;

    switch (future->line) {
    case FRESH:
        return begin(op, cx);
    case WAITING:
        return waiter_is_served(&op->waiter) ? blz_future_done(future, 0) : BLZ_PENDING;
    case ENABLED:
        return begin_enabled(op, cx);
    case PASSING:
        return pass_on(op, cx);
    default:
        return blz_future_done(future, -ECANCELED);
    }
}

static void await_cancel(blz_future *future, blz_cx *cx)
{
    blz_notify_op *op = (blz_notify_op *)future;

    (void)cx;
    if (future->line == PASSING || future->line == CANCELLED)
        return;
    if (future->line == FRESH) {
        future->line = CANCELLED;
    } else if (!waiter_is_served(&op->waiter) && leave(op)) {
        future->line = CANCELLED;
        blz_waker_drop(&op->waiter.waker);
    } else {
        future->line = PASSING;
    }
}

static void await_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_notify_op *op = (const blz_notify_op *)(const void *)future;

    info->kind = "notify";
    info->object = op->notify;
}

static const blz_future_ops await_ops = {.name = "notify_await",
                                         .poll = await_poll,
                                         .cancel = await_cancel,
                                         .describe_wait = await_describe};

blz_future *blz_notify_await(blz_notify_op *op, blz_notify *notify)
{
    if (op->future.line != CANCELLED) /* blz_notify_disable ends it without a poll */
        blz_op_check(&op->future, &await_ops);
    op->future = (blz_future){.ops = &await_ops};
    op->waiter.waker = (blz_waker){NULL, NULL};
    op->waiter.state = WAITER_IDLE;
    op->notify = notify;
    return &op->future;
}

/* ---- waiting before the first poll ---- */

bool blz_notify_enable(blz_notify_op *op)
{
    if (op->future.line == FRESH) {
        op->future.line = ENABLED;
        /* In a cancelled scope it must be told, for it is in the queue. */
        op->future.flags |= BLZ_FUTURE_ALWAYS;
        if (!join_queue(op))
            blz__store(&op->waiter.state, BY_ONE, RELAXED); /* nobody else knows the waiter */
    }
    return waiter_is_served(&op->waiter);
}

void blz_notify_disable(blz_notify_op *op)
{
    uint32_t how;

    if (op->future.line != ENABLED)
        return;
    op->future.line = CANCELLED;
    if (!waiter_is_served(&op->waiter) && leave(op))
        return;
    while ((how = waiter_state(&op->waiter)) <
           WAITER_SERVED) /* a few instructions of who has taken it */
        blz__thread_yield();
    if (how != BY_ALL)
        notify(op->notify, how);
}
