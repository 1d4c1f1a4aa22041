/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Semaphore: a word that counts, and a queue for whom it does not suffice.
 *
 *   bits 32-63   free permits
 *   bit 1        WAITERS: the queue is not empty; changed under the lock only
 *   bit 0        CLOSED: for good
 *
 *   word              acquire n               release n
 *   -------------------------------------------------------------------------------------------
 *   enough, no bit    takes them, one CAS     adds them, one CAS
 *   too few, no bit   queues, sets WAITERS    adds them, one CAS
 *   WAITERS           queues                  lock: adds them, serves the first waiters
 *   CLOSED            -EPIPE                  adds them, one CAS
 *
 * While WAITERS is set the count grows but no acquire takes from it: the permits are kept for the
 * first in the queue. So a waiter owns nothing before it is served, and cancelling it has nothing
 * to give back; but those behind it may now be served. The first waiter never fits: whoever changes
 * queue or count under the lock serves until that holds.
 *
 * Nobody touches the semaphore after the operation that makes its permits available: either that is
 * the CAS, without the lock; or it happened under the lock on behalf of a waiter that learns of it
 * only after the unlock (claimed, see sync.h). For this a release that finds the queue empty under
 * the lock starts again without it.
 */
#include "sync/sync.h"

#include "base/assert.h"

#include <blitz/wait_info.h>
#include <blitz/semaphore.h>

_Static_assert(sizeof(blz_semaphore) == 32, "part of the ABI");
_Static_assert(sizeof(blz_semaphore_op) == 88, "part of the ABI");

#define CLOSED  0x1u
#define WAITERS 0x2u

/* ---- the word ---- */

static uint64_t permits(uint32_t n)
{
    return (uint64_t)n << 32;
}

static uint32_t permits_in(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

/*
 * The first attempt is made with a word that has not been looked at: to look at one right after a
 * locked operation costs half as much as that, and the compare-and-swap says whether it was right,
 * and what is there if not. `guess` is how many permits are left while the one who asks has his: he
 * who acquires expects that it has been given back since, he who releases that nobody else came.
 * So it stays the same, and is not written, while one takes and gives all the time: a store to the
 * line of the word would cost as much as the look.
 */
#define NO_GUESS UINT32_MAX

/* The word with `guess` + n permits, or with `guess`; only if there can be that many. */
static inline uint64_t guess_word(const blz_semaphore *s, uint32_t n, bool taken)
{
    uint64_t guess = blz__load(&s->guess, RELAXED), most = guess + n;

    return blz_likely(most < NO_GUESS) ? (taken ? guess : most) << 32
                                       : blz__load(&s->word, RELAXED);
}

/* 0; -EPIPE; -EAGAIN: too few, or not our turn. */
static inline int take(blz_semaphore *s, uint32_t n)
{
    const uint64_t guess = guess_word(s, n, false);
    uint64_t word = guess;

    do {
        if (blz_unlikely(word & CLOSED))
            return -EPIPE;
        if ((word & WAITERS && n > 0) || permits_in(word) < n)
            return -EAGAIN;
        /* acquire: what came before the release of these permits; pairs with give and serve */
    } while (!blz__cas_weak(&s->word, &word, word - permits(n), ACQUIRE, RELAXED));
    if (blz_unlikely(word != guess))
        blz__store(&s->guess, permits_in(word) - n, RELAXED);
    return 0;
}

/* Without the lock. -EAGAIN: somebody waits. */
static inline int give(blz_semaphore *s, uint32_t n)
{
    const uint64_t guess = guess_word(s, n, true);
    uint64_t word = guess;

    do {
        if (blz_unlikely(word & WAITERS))
            return -EAGAIN;
        if (blz_unlikely(permits_in(word) > BLZ_SEMAPHORE_MAX - n))
            return -EOVERFLOW;
        if (blz_unlikely(word != guess))
            blz__store(&s->guess, permits_in(word), RELAXED); /* before: it may be gone after */
        /* release: what came before; pairs with take and take_or_announce */
    } while (!blz__cas_weak(&s->word, &word, word + permits(n), RELEASE, RELAXED));
    return 0;
}

/* ---- under the lock ---- */

/* The first waiter for which `free` permits are not enough; *free: what the others leave. */
static blz_waiter *first_unfit(const blz_semaphore *s, uint64_t *free)
{
    blz_waiter *waiter = s->waiters.first;

    for (; waiter && waiter->count <= *free; waiter = waiter->next)
        *free -= waiter->count;
    return waiter;
}

/* Adds n permits and claims whom there are enough for. -EOVERFLOW: nothing has changed. */
static int serve(blz_semaphore *s, uint32_t n, blz_waiters *claimed)
{
    uint64_t word = blz__load(&s->word, RELAXED), left;
    blz_waiter *unfit;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&s->lock)));
    do {
        left = (uint64_t)permits_in(word) + n;
        unfit = first_unfit(s, &left);
        if (left > BLZ_SEMAPHORE_MAX)
            return -EOVERFLOW;
        /* release: what came before, for who takes what is left; pairs with take. Those served here
         * learn of earlier releases from the lock: who set WAITERS had acquired them. */
    } while (!blz__cas_weak(&s->word, &word, (left << 32) | (unfit ? WAITERS : 0) | (word & CLOSED),
                            RELEASE, RELAXED));
    while (s->waiters.first != unfit)
        waiter_claim(s->waiters.first, &s->waiters, claimed);
    return 0;
}

/* As take; -EAGAIN: a waiter has been announced. */
static int take_or_announce(blz_semaphore *s, uint32_t n)
{
    uint64_t word = blz__load(&s->word, RELAXED);
    bool fits;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&s->lock)));
    do {
        if (word & CLOSED)
            return -EPIPE;
        fits = !(word & WAITERS) && permits_in(word) >= n;
        /* acquire: as in take; also for those that will be served with what is there now */
    } while (!blz__cas_weak(&s->word, &word, fits ? word - permits(n) : word | WAITERS, ACQUIRE,
                            RELAXED));
    return fits ? 0 : -EAGAIN;
}

/* ---- acquiring ---- */

enum { ACQUIRE_FRESH, ACQUIRE_WAITING, ACQUIRE_CANCELLED };

int blz_semaphore_try_acquire(blz_semaphore *semaphore, uint32_t n)
{
    return take(semaphore, n);
}

static BLZ_NOINLINE blz_poll wait_in_line(blz_semaphore_op *op, blz_cx *cx)
{
    blz_semaphore *s = op->semaphore;
    blz__lock *lock = lock_in(&s->lock);
    int rc;

    blz__lock_acquire(lock);
    rc = take_or_announce(s, op->waiter.count);
    if (rc == -EAGAIN) {
        blz__store(&s->guess, NO_GUESS, RELAXED); /* it would be wrong as long as somebody waits */
        waiter_enqueue(&op->waiter, &s->waiters, cx);
    }
    blz__lock_release(lock);
    if (rc != -EAGAIN)
        return blz_future_done(&op->future, rc);
    op->future.line = ACQUIRE_WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static blz_poll poll_in_line(blz_semaphore_op *op)
{
    uint32_t state;

    if (op->future.line == ACQUIRE_CANCELLED)
        return blz_future_done(&op->future, -ECANCELED);
    state = waiter_state(&op->waiter);
    if (state < WAITER_SERVED)
        return BLZ_PENDING;
    return blz_future_done(&op->future, state == WAITER_CLOSED ? -EPIPE : 0);
}

static blz_poll acquire_poll(blz_future *future, blz_cx *cx)
{
    blz_semaphore_op *op = (blz_semaphore_op *)(void *)future;
    int rc;

    if (blz_unlikely(future->line != ACQUIRE_FRESH))
        return poll_in_line(op);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = take(op->semaphore, op->waiter.count);
    if (blz_unlikely(rc == -EAGAIN))
        return wait_in_line(op, cx);
    return blz_future_done(future, rc);
}

/* Also before the first poll. Whoever has been claimed gets its permits all the same. */
static void acquire_cancel(blz_future *future, blz_cx *cx)
{
    blz_semaphore_op *op = (blz_semaphore_op *)(void *)future;
    blz_semaphore *s = op->semaphore;
    blz_waiters claimed = {NULL, NULL};
    bool left = true;

    (void)cx;
    if (future->line == ACQUIRE_WAITING) {
        blz__lock_acquire(lock_in(&s->lock));
        left = waiter_leave(&op->waiter, &s->waiters);
        if (left)
            (void)serve(s, 0, &claimed); /* perhaps those behind it fit, or nobody is left */
        blz__lock_release(lock_in(&s->lock));
        waiters_serve(&claimed, WAITER_SERVED);
        if (left)
            blz_waker_drop(&op->waiter.waker);
    }
    if (left)
        future->line = ACQUIRE_CANCELLED;
}

static void acquire_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_semaphore_op *op = (const blz_semaphore_op *)(const void *)future;

    info->kind = "semaphore";
    info->object = op->semaphore;
}

static const blz_future_ops acquire_ops = {.name = "semaphore_acquire",
                                           .poll = acquire_poll,
                                           .cancel = acquire_cancel,
                                           .describe_wait = acquire_describe};

blz_future *blz_semaphore_acquire(blz_semaphore_op *op, blz_semaphore *semaphore, uint32_t n)
{
    blz_op_check(&op->future, &acquire_ops);
    op->future = (blz_future){.ops = &acquire_ops};
    op->semaphore = semaphore;
    op->waiter.count = n; /* the rest when it has to wait */
    return &op->future;
}

/* ---- releasing ---- */

/* -EAGAIN: nobody waits any more. */
static BLZ_NOINLINE int release_to_waiters(blz_semaphore *s, uint32_t n)
{
    blz_waiters claimed = {NULL, NULL};
    blz__lock *lock = lock_in(&s->lock);
    int rc = -EAGAIN;

    blz__lock_acquire(lock);
    if (!waiters_empty(&s->waiters))
        rc = serve(s, n, &claimed);
    blz__lock_release(lock);
    waiters_serve(&claimed, WAITER_SERVED);
    return rc;
}

int blz_semaphore_release(blz_semaphore *semaphore, uint32_t n)
{
    int rc = give(semaphore, n);

    while (blz_unlikely(rc == -EAGAIN)) {
        rc = release_to_waiters(semaphore, n);
        if (rc == -EAGAIN)
            rc = give(semaphore, n);
    }
    return rc;
}

uint32_t blz_semaphore_forget(blz_semaphore *semaphore, uint32_t n)
{
    uint64_t word = blz__load(&semaphore->word, RELAXED);
    uint32_t some;

    do {
        some = permits_in(word) < n ? permits_in(word) : n;
    } while (!blz__cas_weak(&semaphore->word, &word, word - permits(some), RELAXED, RELAXED));
    return some;
}

/* ---- the rest ---- */

void blz_semaphore_close(blz_semaphore *semaphore)
{
    blz__lock *lock = lock_in(&semaphore->lock);
    blz_waiters claimed = {NULL, NULL};

    blz__lock_acquire(lock);
    blz__fetch_or(&semaphore->word, (uint64_t)CLOSED, RELAXED);
    blz__fetch_and(&semaphore->word, ~(uint64_t)WAITERS, RELAXED); /* nobody is in line any more */
    while (!waiters_empty(&semaphore->waiters))
        waiter_claim(semaphore->waiters.first, &semaphore->waiters, &claimed);
    blz__lock_release(lock);
    waiters_serve(&claimed, WAITER_CLOSED);
}

bool blz_semaphore_is_closed(const blz_semaphore *semaphore)
{
    return blz__load(&semaphore->word, RELAXED) & CLOSED;
}

uint32_t blz_semaphore_available(const blz_semaphore *semaphore)
{
    return permits_in(blz__load(&semaphore->word, RELAXED));
}

void blz_semaphore_init(blz_semaphore *semaphore, uint32_t permits)
{
    *semaphore = (blz_semaphore)BLZ_SEMAPHORE_INIT(permits);
}
