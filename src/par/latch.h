/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A latch: something that happens once, and one thread that waits for it. A word, in the frame of
 * the one who waits.
 *
 *   state      event: set               wait in the pool     wait on the word     woken otherwise
 *   ------------------------------------------------------------------------------------------
 *   UNSET      SET                      SLEEPING             BLOCKED              -
 *   SLEEPING   SET, wakes the worker    -                    -                    UNSET
 *   BLOCKED    SET, wakes the word      -                    -                    UNSET (poked, or
 *                                                                                 found something)
 *   SET        -                        does not wait        does not wait        -
 *
 * SLEEPING: a worker that also wants to be woken for new jobs; it sleeps as sleep.h says, and has
 * said PREP before. BLOCKED: it wants nothing else. After the swap to SET the latch may be gone,
 * with the frame that it lives in: who sets it knows beforehand whom to wake. (A futex may be
 * woken by an address that is no longer in use.)
 */
#ifndef BLZ_PAR_LATCH_H
#define BLZ_PAR_LATCH_H

#include "base/assert.h"
#include "base/atomic.h"
#include "system/futex.h"

enum { LATCH_UNSET, LATCH_SLEEPING, LATCH_BLOCKED, LATCH_SET };

/* Whether it has happened; then what was done before it is seen. */
static inline bool latch_is_set(const uint32_t *latch)
{
    return blz__load(latch, ACQUIRE) == LATCH_SET; /* pairs with the release in latch_set */
}

/* True: the worker that waits must be woken (sleep.h). [any thread, once] */
static inline bool latch_set(uint32_t *latch)
{
    /* release: pairs with the acquires of those that find it set. acquire: with latch_sleep, the
     * waiter has said PREP */
    uint32_t before = blz__swap(latch, (uint32_t)LATCH_SET, ACQ_REL);

    BLZ_ASSERT(before != LATCH_SET);
    if (before == LATCH_BLOCKED)
        blz__futex_wake(latch, 1);
    return before == LATCH_SLEEPING;
}

/* The worker is about to sleep: from here on it is woken. False: it has happened. [waiter] */
static inline bool latch_sleep(uint32_t *latch)
{
    uint32_t state = LATCH_UNSET;

    /* release: pairs with the acquire in latch_set */
    return blz__cas(latch, &state, (uint32_t)LATCH_SLEEPING, RELEASE, RELAXED);
}

/* The worker was woken, or has not slept. [waiter] */
static inline void latch_awake(uint32_t *latch)
{
    uint32_t state = LATCH_SLEEPING;

    BLZ_ASSERT(blz__peek(latch) != LATCH_BLOCKED);
    blz__cas(latch, &state, (uint32_t)LATCH_UNSET, RELAXED, RELAXED);
}

/* The waiter is about to wait on the word: from here on it is woken. False: it has happened. */
static inline bool latch_block(uint32_t *latch)
{
    uint32_t state = LATCH_UNSET;

    return blz__cas(latch, &state, (uint32_t)LATCH_BLOCKED, RELAXED, RELAXED);
}

/* Waits until it is set or poked, and looks again then (latch_is_set). [waiter, after that] */
static inline void latch_wait(uint32_t *latch)
{
    while (blz__load(latch, RELAXED) == LATCH_BLOCKED)
        blz__futex_wait(latch, LATCH_BLOCKED);
}

/* It does not wait after all. [waiter] */
static inline void latch_unblock(uint32_t *latch)
{
    uint32_t state = LATCH_BLOCKED;

    blz__cas(latch, &state, (uint32_t)LATCH_UNSET, RELAXED, RELAXED);
}

/*
 * Who is blocked on it gets to look around: false if nobody is. The latch must not go meanwhile.
 * [any thread]
 */
static inline bool latch_poke(uint32_t *latch)
{
    uint32_t state = LATCH_BLOCKED;

    if (blz__load(latch, RELAXED) != LATCH_BLOCKED ||
        !blz__cas(latch, &state, (uint32_t)LATCH_UNSET, RELAXED, RELAXED))
        return false;
    blz__futex_wake(latch, 1);
    return true;
}

#endif
