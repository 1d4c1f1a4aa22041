/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the small lock (lock.h): spin, then sleep. */
#include "base/lock.h"

#include "system/futex.h"
#include "tuning.h"

void blz__lock_slow(blz__lock *lock)
{
    for (int i = 0; i < LOCK_SPINS; i++) {
        uint32_t free = 0;
        if (blz__load(&lock->word, RELAXED) == 0 &&
            blz__cas(&lock->word, &free, 1u, ACQUIRE, RELAXED))
            return;
        blz__spin_hint();
    }
    while (blz__swap(&lock->word, 2u, ACQUIRE) != 0)
        blz__futex_wait(&lock->word, 2);
}
