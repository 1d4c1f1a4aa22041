/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is released by a store: for short critical sections that are entered all the time
 * and hardly ever by two threads at once. It costs one read-modify-write where the small lock
 * (lock.h) costs two; a thread that has to sleep pays for it, with a heavy fence.
 *
 *     release                       who sleeps
 *     word = 0                      sleepers + 1
 *     light fence                   heavy fence
 *     sleepers? then wake           word 1? then sleep while it is
 *
 * After the heavy fence, either the release is seen, or it sees the sleeper. Where there are no
 * asymmetric fences the light one is a real one.
 *
 * Unlike the small lock, it is looked at after it has been released: whoever releases it must keep
 * its memory.
 */
#ifndef BLZ_BASE_STORE_UNLOCK_LOCK_H
#define BLZ_BASE_STORE_UNLOCK_LOCK_H

#include "base/assert.h"
#include "base/fence.h"
#include "system/futex.h"

#include <blitz/base.h>

typedef struct blz__store_unlock_lock {
    uint32_t word; /* 1: held; also a futex */
    uint32_t sleepers;
} blz__store_unlock_lock;

void blz__store_unlock_lock_slow(blz__store_unlock_lock *lock, bool asymmetric_fences);

static inline void blz__store_unlock_lock_acquire(blz__store_unlock_lock *lock,
                                                  bool asymmetric_fences)
{
    uint32_t free = 0;

    /* acquire: pairs with the release in blz__store_unlock_lock_release */
    if (blz_unlikely(!blz__cas(&lock->word, &free, 1u, ACQUIRE, RELAXED)))
        blz__store_unlock_lock_slow(lock, asymmetric_fences);
}

/* Whether a thread holds it; for asserts. [any thread] */
static inline bool blz__store_unlock_lock_is_held(const blz__store_unlock_lock *lock)
{
    return blz__peek(&lock->word) != 0;
}

static inline void blz__store_unlock_lock_release(blz__store_unlock_lock *lock,
                                                  bool asymmetric_fences)
{
    BLZ_ASSERT(blz__store_unlock_lock_is_held(lock));
    blz__store(&lock->word, 0u, RELEASE); /* pairs with the acquire of the next */
    blz__fence_light_or_full(
        asymmetric_fences); /* pairs with that in blz__store_unlock_lock_slow */
    if (blz_unlikely(blz__load(&lock->sleepers, RELAXED)))
        blz__futex_wake(&lock->word, 1);
}

#endif
