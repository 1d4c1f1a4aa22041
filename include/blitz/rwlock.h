/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rwlock: many readers, or one writer. Held by tasks, also over an await, and by threads.
 *
 *     static blz_rwlock table_lock = BLZ_RWLOCK_INIT;
 *     ...
 *     BLZ_AWAIT(self->rc, blz_rwlock_read(&self->op, &table_lock));
 *     if (self->rc < 0)
 *         goto out;                                        // cancelled: it is not locked
 *     entry = table_find(self->key);
 *     blz_rwlock_read_unlock(&table_lock);
 *
 * There are three ways to hold it:
 *
 *   read         together with other readers and one upgradable
 *   upgradable   together with readers; one at a time. May become the writer without letting go
 *   write        alone
 *
 * First come, first served, in one queue. Readers that come after a waiting writer are behind it,
 * so that an endless stream of readers does not keep writers out. Readers next to each other in the
 * queue go in together. No waiter is passed by one that came later, with one exception: an upgrade
 * goes in front of the whole queue, because all others wait for its holder anyway.
 *
 * Two readers that both wait to become the writer would deadlock. That is why only the holder of
 * the upgradable lock may wait for it; a plain reader can only try. A task that holds the lock must
 * not wait for it again, not even to read: a writer between the two would block both.
 *
 * What was done before an unlock is seen by the task or thread that locks next. A lock has no
 * owner: another task or thread may release it. The struct is the caller's. It may be freed when it
 * is neither held nor waited for, also while the unlock before has not returned yet.
 */
#ifndef BLITZ_RWLOCK_H
#define BLITZ_RWLOCK_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A lock, in memory of the program. All fields are the library's. */
typedef struct blz_rwlock {
    uint64_t word;
    uint32_t lock;   /* of the queue */
    uint32_t writer; /* the lower half of the number of the task that writes; for consoles */
    blz_waiters waiters;
} blz_rwlock;

/* clang-format off */
/* Unlocked. For a static one; blz_rwlock_init does the same. */
#define BLZ_RWLOCK_INIT {0, 0, 0, {NULL, NULL}}
/* clang-format on */

/* The future of everything that waits here. */
typedef struct blz_rwlock_op {
    blz_future future;
    blz_rwlock *rwlock;
    blz_waiter waiter;
    uint64_t reserved;
} blz_rwlock_op;

/* Makes the lock unlocked. No task or thread may hold it or wait for it. [any thread] */
BLZ_API void blz_rwlock_init(blz_rwlock *rwlock);

/* ---- Locking ---- */

/*
 * Locks, in one of the three ways, if that is possible without waiting: 0, or -EAGAIN, also if
 * others wait. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_rwlock_try_read(blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD int blz_rwlock_try_upgradable(blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD int blz_rwlock_try_write(blz_rwlock *rwlock);

/*
 * Awaits the lock, in one of the three ways: 0. Interruptible: with -ECANCELED it is not locked. If
 * the lock had been given to it before the cancellation, the result is 0 and it is locked. When a
 * waiting writer is cancelled, the readers behind it go in if they can. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_read(blz_rwlock_op *op, blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_upgradable(blz_rwlock_op *op, blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_write(blz_rwlock_op *op, blz_rwlock *rwlock);

/*
 * Unlocks what has been locked that way, and lets the next in the queue in. Aborts if the lock is
 * not held that way. [any thread]
 */
BLZ_API void blz_rwlock_read_unlock(blz_rwlock *rwlock);
BLZ_API void blz_rwlock_upgradable_unlock(blz_rwlock *rwlock);
BLZ_API void blz_rwlock_write_unlock(blz_rwlock *rwlock);

/* ---- From one to the other ---- */

/*
 * Turns the upgradable lock, which the caller holds, into the write lock: 0, when all readers have
 * left; no reader is let in meanwhile. -EDEADLK: the upgrade is being awaited already; -EPERM: the
 * upgradable lock is not held. Interruptible: with -ECANCELED the caller still holds the upgradable
 * lock. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_upgrade(blz_rwlock_op *op, blz_rwlock *rwlock);

/*
 * Turns the upgradable lock, which the caller holds, into the write lock without waiting: 0;
 * -EAGAIN: there are readers; -EPERM: the upgradable lock is not held. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_rwlock_try_upgrade(blz_rwlock *rwlock);

/*
 * Turns a plain reader into the writer, if no other reader holds the lock: 0; -EAGAIN: there are
 * others, and it still is a reader; -EPERM: the lock is not held for reading. It goes ahead of
 * those that wait. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_rwlock_try_upgrade_read(blz_rwlock *rwlock);

/*
 * Turns the writer into a reader, without another writer in between. Readers that are first in the
 * queue are let in. Aborts if the write lock is not held. [any thread]
 */
BLZ_API void blz_rwlock_downgrade(blz_rwlock *rwlock);

/* ---- For threads that may sleep: -EDEADLK on a worker [any thread but a worker] ---- */

/* Blocks this thread until it has locked for reading: 0; -EDEADLK on a worker. */
static inline int64_t blz_rwlock_read_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_read(BLZ_FRESH_(&op), rwlock));
}

/* Blocks this thread until it has the upgradable lock: 0; -EDEADLK on a worker. */
static inline int64_t blz_rwlock_upgradable_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_upgradable(BLZ_FRESH_(&op), rwlock));
}

/* Blocks this thread until it has locked for writing: 0; -EDEADLK on a worker. */
static inline int64_t blz_rwlock_write_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_write(BLZ_FRESH_(&op), rwlock));
}

/*
 * Blocks this thread until the upgradable lock, which it holds, has become the write lock: 0;
 * -EDEADLK on a worker, or if the upgrade is being awaited already; -EPERM: the upgradable lock is
 * not held.
 */
static inline int64_t blz_rwlock_upgrade_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_upgrade(BLZ_FRESH_(&op), rwlock));
}

BLZ_END_DECLS
#endif
