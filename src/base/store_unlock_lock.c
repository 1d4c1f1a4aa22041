/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of the lock that is released by a store (store_unlock_lock.h). One fence is enough
 * for a whole wait: from then on every release sees that there is a sleeper, until it has gone.
 */
#include "base/store_unlock_lock.h"

#include "system/futex.h"
#include "tuning.h"

void blz__store_unlock_lock_slow(blz__store_unlock_lock *lock, bool asymmetric_fences)
{
    uint32_t free = 0;

    for (int i = 0; i < STORE_UNLOCK_SPINS; i++, free = 0) {
        if (blz__load(&lock->word, RELAXED) == 0 &&
            blz__cas(&lock->word, &free, 1u, ACQUIRE, RELAXED))
            return;
        blz__spin_hint();
    }
    blz__fetch_add(&lock->sleepers, 1u, RELAXED);
    blz__fence_heavy_or_full(
        asymmetric_fences); /* pairs with that in blz__store_unlock_lock_release */
    for (; !blz__cas(&lock->word, &free, 1u, ACQUIRE, RELAXED); free = 0)
        blz__futex_wait(&lock->word, 1);
    blz__fetch_sub(&lock->sleepers, 1u, RELAXED);
}
