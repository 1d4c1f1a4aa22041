/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare half of the biased lock (biased_lock.h). Only the owner makes it BIASED after another
 * thread was inside, and only while it holds the ordinary lock. So no other thread is inside at
 * that moment, and the next one finds it BIASED and goes through the fence.
 */
#include "base/biased_lock.h"

#include "system/futex.h"
#include "tuning.h"

void blz__biased_lock_init(blz__biased_lock *lock, bool may_bias)
{
    *lock = (blz__biased_lock){.shared = may_bias ? BIASED_LOCK_BIASED : BIASED_LOCK_SHARED,
                               .may_bias = may_bias};
}

/* ---- the owner ---- */

/* The owner has entered, and finds that another thread is inside, or waits for the owner to go. */
void blz__biased_lock_enter_slow(blz__biased_lock *lock)
{
    BLZ_ASSERT(lock->may_bias || blz__peek(&lock->shared) == BIASED_LOCK_SHARED);
    blz__biased_lock_leave(lock, false);
    blz__lock_acquire(&lock->lock);
    if (!lock->may_bias)
        return;
    blz__plain_write(&lock->nr_alone);
    if (++lock->nr_alone < BIAS_AFTER)
        return;
    lock->nr_alone = 0;
    blz__store(&lock->shared, BIASED_LOCK_BIASED, RELAXED);
}

void blz__biased_lock_leave_slow(blz__biased_lock *lock)
{
    blz__lock_release(&lock->lock);
}

/* ---- other threads ---- */

/* Ends the bias, if there is one. True: the owner may be inside. [holds the ordinary lock] */
static bool share(blz__biased_lock *lock, uint32_t shared)
{
    BLZ_ASSERT(blz__lock_is_held(&lock->lock));
    blz__plain_write(&lock->nr_alone);
    lock->nr_alone = 0;
    if (blz__load(&lock->shared, RELAXED) != BIASED_LOCK_BIASED)
        return false;
    blz__store(&lock->shared, shared, RELAXED);
    blz__fence_heavy(); /* pairs with the light fences of the owner */
    return true;
}

void blz__biased_lock_enter_other(blz__biased_lock *lock)
{
    blz__lock_acquire(&lock->lock);
    if (!share(lock, BIASED_LOCK_AWAITED))
        return;
    while (blz__load(&lock->inside, ACQUIRE)) /* pairs with the release in leave */
        blz__futex_wait(&lock->inside, 1);
    blz__store(&lock->shared, BIASED_LOCK_SHARED, RELAXED);
}

bool blz__biased_lock_try_other(blz__biased_lock *lock)
{
    if (!blz__lock_try(&lock->lock))
        return false;
    /* acquire: pairs with the release when the owner leaves */
    if (!share(lock, BIASED_LOCK_SHARED) || !blz__load(&lock->inside, ACQUIRE))
        return true;
    blz__store(&lock->shared, BIASED_LOCK_BIASED, RELAXED);
    blz__lock_release(&lock->lock);
    return false;
}

void blz__biased_lock_leave_other(blz__biased_lock *lock)
{
    BLZ_ASSERT(blz__peek(&lock->shared) == BIASED_LOCK_SHARED);
    blz__lock_release(&lock->lock);
}
