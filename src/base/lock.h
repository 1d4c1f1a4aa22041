/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small lock: one word, one atomic operation each way while nobody else wants it. For short
 * critical sections: it spins a little before it sleeps.
 *
 *   0 free    1 held    2 held, and somebody may be asleep
 *
 * The thread that waits puts 2, so the one that unlocks knows when to wake. After waking it takes
 * the lock as 2 as well, because others may still sleep.
 */
#ifndef BLZ_BASE_LOCK_H
#define BLZ_BASE_LOCK_H

#include "base/assert.h"
#include "system/futex.h"

typedef struct blz__lock {
    uint32_t word;
} blz__lock;

void blz__lock_slow(blz__lock *lock);

static inline void blz__lock_acquire(blz__lock *lock)
{
    uint32_t free = 0;
    /* acquire: pairs with the release in blz__lock_release */
    if (!blz__cas(&lock->word, &free, 1u, ACQUIRE, RELAXED))
        blz__lock_slow(lock);
}

static inline bool blz__lock_try(blz__lock *lock)
{
    uint32_t free = 0;
    return blz__cas(&lock->word, &free, 1u, ACQUIRE, RELAXED);
}

/* Whether a thread holds it; for asserts. [any thread] */
static inline bool blz__lock_is_held(const blz__lock *lock)
{
    return blz__peek(&lock->word) != 0;
}

static inline void blz__lock_release(blz__lock *lock)
{
    BLZ_ASSERT(blz__lock_is_held(lock));
    if (blz__swap(&lock->word, 0u, RELEASE) == 2)
        blz__futex_wake(&lock->word, 1);
}

#endif
