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
 * Threads that are no workers may lock it with blz_mutex_lock_wait. A task that locks it twice
 * deadlocks.
 *
 * Tasks and threads that wait form a queue. An unlock wakes the first in the queue. Until that one
 * runs, others may lock the mutex ahead of it, so that a mutex under contention does not stand
 * still until a task is scheduled. This is bounded: the first in the queue is passed at most
 * BLZ_MUTEX_PASSES times in all, and if it runs and finds the mutex locked, then the next unlock
 * hands the mutex over to it. So a task with k others in front of it waits for at most (k + 1) *
 * (BLZ_MUTEX_PASSES + 1) unlocks.
 *
 * The mutex has no owner: another task or thread than the one that locked it may unlock it. What
 * was done before an unlock is seen by the task or thread that locks it next.
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

/* How often the first in the queue may be passed. */
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
    uint64_t reserved;
} blz_mutex_op;

/* Makes the mutex unlocked. No task or thread may hold it or wait for it. [any thread] */
BLZ_API void blz_mutex_init(blz_mutex *mutex);

/* Locks the mutex if that is possible without waiting: 0, or -EAGAIN. [any thread] */
BLZ_API BLZ_NODISCARD int blz_mutex_try_lock(blz_mutex *mutex);

/*
 * Awaits the mutex: 0. Interruptible: with -ECANCELED it is not locked. If the mutex had been
 * handed over before the cancellation, the result is 0 and it is locked. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_mutex_lock(blz_mutex_op *op, blz_mutex *mutex);

/*
 * Blocks this thread until it has locked the mutex: 0; -EDEADLK on a worker. [any thread but a
 * worker]
 */
static inline int64_t blz_mutex_lock_wait(blz_mutex *mutex)
{
    blz_mutex_op op;

    return blz_wait(blz_mutex_lock(BLZ_FRESH_(&op), mutex));
}

/* Unlocks the mutex, and wakes the first in the queue. Aborts if it was not locked. [any thread] */
BLZ_API void blz_mutex_unlock(blz_mutex *mutex);

/* Whether the mutex is locked at this moment. [any thread] */
BLZ_API bool blz_mutex_is_locked(const blz_mutex *mutex);

BLZ_END_DECLS
#endif
