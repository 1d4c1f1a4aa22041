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
 * First come, first served, in one line: readers that come after a writer who waits are behind it,
 * so writers are not kept out by an endless stream of readers; readers next to each other in the
 * line go in together. Nobody waits for those who came later, with one exception: an upgrade is in
 * front of the whole line, because everybody waits for its holder anyway.
 *
 * Two readers that both wait to become the writer would wait for each other for ever. That is why
 * only the upgradable one may wait, of which there is one; a plain reader can but try. A task that
 * holds the lock must not wait for it again, not even to read: a writer in between blocks both.
 *
 * What came before an unlock has happened for who locks next. Locks belong to nobody in particular:
 * they may be released by another task or thread. The struct is the caller's. It may be freed when
 * it is neither held nor waited for, also while the unlock before has not returned yet.
 */
#ifndef BLITZ_RWLOCK_H
#define BLITZ_RWLOCK_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A lock, in memory of the program. All fields are the library's. */
typedef struct blz_rwlock {
    uint64_t word;
    uint32_t lock;   /* of the line */
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
} blz_rwlock_op;

/* Makes it unlocked. [any thread] */
BLZ_API void blz_rwlock_init(blz_rwlock *rwlock);

/* ---- Locking ---- */

/* Locks if it can be had at once: 0, or -EAGAIN, also if others wait. [any thread] */
BLZ_API BLZ_NODISCARD int blz_rwlock_try_read(blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD int blz_rwlock_try_upgradable(blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD int blz_rwlock_try_write(blz_rwlock *rwlock);

/*
 * Awaits the lock: 0. Interruptible: a cancelled one does not have it, unless it had been given to
 * it before: then it ends with 0. Those behind a writer that is cancelled go in if they can.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_read(blz_rwlock_op *op, blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_upgradable(blz_rwlock_op *op, blz_rwlock *rwlock);
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_write(blz_rwlock_op *op, blz_rwlock *rwlock);

/*
 * Unlocks what has been locked that way, and lets in who is next. Aborts if nobody holds it that
 * way. [any thread]
 */
BLZ_API void blz_rwlock_read_unlock(blz_rwlock *rwlock);
BLZ_API void blz_rwlock_upgradable_unlock(blz_rwlock *rwlock);
BLZ_API void blz_rwlock_write_unlock(blz_rwlock *rwlock);

/* ---- From one to the other ---- */

/*
 * The holder of the upgradable lock awaits the write lock: 0, when all readers have left; none are
 * let in meanwhile. -EDEADLK: the upgrade is being awaited already; -EPERM: nobody holds the
 * upgradable lock. Interruptible: a cancelled one still has the upgradable lock.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_rwlock_upgrade(blz_rwlock_op *op, blz_rwlock *rwlock);

/* The same without waiting: 0; -EAGAIN: there are readers; -EPERM as above. [any thread] */
BLZ_API BLZ_NODISCARD int blz_rwlock_try_upgrade(blz_rwlock *rwlock);

/*
 * A plain reader becomes the writer, if it is the only one who holds the lock: 0; or -EAGAIN, and
 * it still is a reader; -EPERM: nobody reads. It goes ahead of those who wait. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_rwlock_try_upgrade_read(blz_rwlock *rwlock);

/*
 * The writer becomes a reader, without another writer in between. Readers that are first in line
 * are let in. Aborts if nobody holds the write lock. [any thread]
 */
BLZ_API void blz_rwlock_downgrade(blz_rwlock *rwlock);

/* ---- For threads that may sleep: -EDEADLK on a worker [any thread but a worker] ---- */

/* As blz_rwlock_read. */
static inline int64_t blz_rwlock_read_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_read(&op, rwlock));
}

/* As blz_rwlock_upgradable. */
static inline int64_t blz_rwlock_upgradable_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_upgradable(&op, rwlock));
}

/* As blz_rwlock_write. */
static inline int64_t blz_rwlock_write_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_write(&op, rwlock));
}

/* As blz_rwlock_upgrade. */
static inline int64_t blz_rwlock_upgrade_wait(blz_rwlock *rwlock)
{
    blz_rwlock_op op;

    return blz_wait(blz_rwlock_upgrade(&op, rwlock));
}

BLZ_END_DECLS
#endif
