/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is biased towards one thread, its owner. While no other thread comes, the owner
 * enters and leaves by plain stores, without a read-modify-write. Another thread that enters makes
 * it an ordinary lock for all of them. It is biased again when the owner has been alone for a
 * while.
 *
 *   inside    the owner is in, and has not taken the ordinary lock
 *   shared    BIASED    the owner enters by a store
 *             SHARED    the owner takes the ordinary lock, as all other threads do
 *             AWAITED   SHARED, and another thread sleeps until the owner has left
 *             It is written only by a thread that holds the ordinary lock.
 *
 *     owner                              another thread
 *     inside = 1                         take the ordinary lock
 *     light fence                        shared = AWAITED, if it is BIASED
 *     shared? then leave, and take       heavy fence
 *         the ordinary lock              inside? then sleep until it is 0
 *     ...                                shared = SHARED
 *     inside = 0                         ...
 *     light fence                        release the ordinary lock
 *     AWAITED? then wake the sleeper
 *
 * The heavy fence interrupts the owner's CPU (some microseconds). After it, either the other thread
 * sees the owner inside, or the owner sees `shared` when it enters. An owner that leaves after it
 * sees that another thread waits.
 *
 * A thread that only tries (blz__biased_lock_try_other) gives up if it finds the owner inside, and
 * makes the lock BIASED again. If no thread ever waits for the owner, the owner need not look for
 * one: blz__biased_lock_leave_unawaited.
 */
#ifndef BLZ_BASE_BIASED_LOCK_H
#define BLZ_BASE_BIASED_LOCK_H

#include "base/fence.h"
#include "base/lock.h"

#include <blitz/base.h>

typedef struct blz__biased_lock {
    uint32_t inside; /* also a futex */
    uint32_t shared; /* BIASED, SHARED or AWAITED */
    blz__lock lock;
    uint32_t nr_alone; /* times that the owner came since another thread did; under the lock */
    bool may_bias;     /* false: it stays SHARED */
} blz__biased_lock;

enum { BIASED_LOCK_BIASED, BIASED_LOCK_SHARED, BIASED_LOCK_AWAITED };

/*
 * With `may_bias` false it is an ordinary lock for ever. True needs heavy fences that work, or that
 * no thread but the owner ever enters. [any thread]
 */
void blz__biased_lock_init(blz__biased_lock *lock, bool may_bias);

/* Waits until neither the owner nor another thread is inside. [any thread but the owner] */
void blz__biased_lock_enter_other(blz__biased_lock *lock);

/* False: the owner or another thread is inside. [any thread but the owner] */
bool blz__biased_lock_try_other(blz__biased_lock *lock);

/* [the thread that entered by enter_other or try_other] */
void blz__biased_lock_leave_other(blz__biased_lock *lock);

/* The rare parts of enter and leave. [owner] */
void blz__biased_lock_enter_slow(blz__biased_lock *lock);
void blz__biased_lock_leave_slow(blz__biased_lock *lock);

/* Whether a thread is inside; for asserts. [any thread] */
static inline bool blz__biased_lock_is_held(const blz__biased_lock *lock)
{
    return blz__peek(&lock->inside) || blz__lock_is_held(&lock->lock);
}

/* Returns what `leave` needs: whether the ordinary lock is held. [owner] */
static inline bool blz__biased_lock_enter(blz__biased_lock *lock)
{
    BLZ_ASSERT(!blz__peek(&lock->inside)); /* it does not nest */
    blz__store(&lock->inside, 1u, RELAXED);
    blz__fence_light(); /* pairs with blz__fence_heavy in share */
    /* relaxed: only the owner makes it BIASED after another thread was inside */
    if (blz_likely(blz__load(&lock->shared, RELAXED) == BIASED_LOCK_BIASED))
        return false;
    blz__biased_lock_enter_slow(lock);
    return true;
}

/* [owner] */
static inline void blz__biased_lock_leave(blz__biased_lock *lock, bool locked)
{
    if (blz_unlikely(locked)) {
        blz__biased_lock_leave_slow(lock);
        return;
    }
    BLZ_ASSERT(blz__peek(&lock->inside));
    blz__store(&lock->inside, 0u, RELEASE); /* pairs with the acquires of other threads */
    blz__fence_light();                     /* pairs with blz__fence_heavy in share */
    if (blz_unlikely(blz__load(&lock->shared, RELAXED) == BIASED_LOCK_AWAITED))
        blz__futex_wake(&lock->inside, 1);
}

/* Leaves a lock that other threads enter by try_other alone: one store. [owner] */
static inline void blz__biased_lock_leave_unawaited(blz__biased_lock *lock, bool locked)
{
    BLZ_ASSERT(blz__peek(&lock->shared) != BIASED_LOCK_AWAITED);
    BLZ_ASSERT(locked || blz__peek(&lock->inside));
    if (blz_unlikely(locked))
        blz__biased_lock_leave_slow(lock);
    else
        blz__store(&lock->inside, 0u, RELEASE); /* pairs with the acquire in try_other */
}

#endif
