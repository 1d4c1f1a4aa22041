/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutex: one task at a time, for sections that themselves may wait.
 *
 *     static blz_mutex mutex = BLZ_MUTEX_INIT;
 *     ...
 *     BLZ_AWAIT(self->rc, blz_mutex_lock(&self->op, &mutex));
 *     if (self->rc < 0)
 *         goto out;                                        // cancelled: it is not locked
 *     BLZ_AWAIT(self->rc, send_all(&self->io, shared));    // other tasks run meanwhile
 *     blz_mutex_unlock(&mutex);
 *
 * Threads that are no workers may lock it, too. A task that locks it twice waits for itself.
 *
 * Who waits does so in a line. The first in it is woken when the mutex is unlocked, and until it
 * has come, others may go ahead: a mutex that is taken and released all the time need not stand
 * still until a task is scheduled. This is bounded: the first in line is passed at most
 * BLZ_MUTEX_PASSES times in all, and if it comes and finds the mutex taken, then the next unlock
 * hands the mutex over to it. So who has k others in front of it waits for at most
 * (k + 1) * (BLZ_MUTEX_PASSES + 1) unlocks.
 *
 * The mutex belongs to nobody in particular: it may be unlocked by another task or thread than the
 * one that locked it. What came before an unlock has happened for who locks next.
 *
 * The struct is the caller's. It may be freed when it is neither held nor waited for, also by a
 * task that has just locked it, though the unlock before has not returned yet: an unlock does not
 * touch a mutex that it has let go of.
 */
#ifndef BLITZ_MUTEX_H
#define BLITZ_MUTEX_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A mutex, in memory of the program. All fields are the library's. */
typedef struct blz_mutex {
    uint32_t word;
    uint32_t lock; /* of the line */
    blz_waiters waiters;
    uint32_t idle_spins;
    uint32_t holder; /* the lower half of the number of the task that locked it; for consoles */
} blz_mutex;

/* How often the first in line may be passed. */
#define BLZ_MUTEX_PASSES 64

/* clang-format off */
/* Unlocked. For a static one; blz_mutex_init does the same. */
#define BLZ_MUTEX_INIT {0, 0, {NULL, NULL}, 0, 0}
/* clang-format on */

/* The future of blz_mutex_lock. */
typedef struct blz_mutex_op {
    blz_future future;
    blz_mutex *mutex;
    blz_waiter waiter;
} blz_mutex_op;

/* Makes it unlocked. [any thread] */
BLZ_API void blz_mutex_init(blz_mutex *mutex);

/* Locks if it can be had at once: 0, or -EAGAIN. [any thread] */
BLZ_API BLZ_NODISCARD int blz_mutex_try_lock(blz_mutex *mutex);

/*
 * Awaits the mutex: 0. Interruptible: a cancelled one does not have it, unless it had been handed
 * over before: then it ends with 0.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_mutex_lock(blz_mutex_op *op, blz_mutex *mutex);

/* The same, for a thread that may sleep. -EDEADLK on a worker. [any thread but a worker] */
static inline int64_t blz_mutex_lock_wait(blz_mutex *mutex)
{
    blz_mutex_op op;

    return blz_wait(blz_mutex_lock(&op, mutex));
}

/* Unlocks, and wakes who is first in line. Aborts if it was not locked. [any thread] */
BLZ_API void blz_mutex_unlock(blz_mutex *mutex);

/* Whether somebody holds it at this moment. [any thread] */
BLZ_API bool blz_mutex_is_locked(const blz_mutex *mutex);

BLZ_END_DECLS
#endif
