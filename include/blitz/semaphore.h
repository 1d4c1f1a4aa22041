/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Semaphore: a number of permits, to be had one or several at a time.
 *
 *     blz_semaphore_init(&limit, 100);                        // so many connections at once
 *     ...
 *     BLZ_AWAIT(self->rc, blz_semaphore_acquire(&self->op, &limit, 1));
 *     if (self->rc < 0)
 *         goto out;                                           // cancelled, or closed
 *     ...
 *     blz_ignore(blz_semaphore_release(&limit, 1));           // cannot overflow: it was acquired
 *
 * First come, first served: while a task waits, no task that comes later gets a permit, so small
 * requests do not starve a large one. The permits that are released meanwhile are kept for the
 * first in the queue. A waiter that is cancelled leaves them to those behind it.
 *
 * A permit has no owner: what one task has acquired another may release, on any thread. What was
 * done before a release is seen by the task that acquires a permit of it.
 *
 * The struct is the caller's. A task that has acquired a permit may free it, if it knows that no
 * other call is under way: a release does not touch the semaphore once its permit can be acquired.
 * So a semaphore of 0 permits on the stack is a signal that can be waited for.
 */
#ifndef BLITZ_SEMAPHORE_H
#define BLITZ_SEMAPHORE_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A semaphore, in memory of the program. All fields are the library's. */
typedef struct blz_semaphore {
    uint64_t word; /* permits, and whether a task waits */
    uint32_t lock;
    uint32_t guess; /* how many permits are left, most likely */
    blz_waiters waiters;
} blz_semaphore;

/* There can be no more permits than this. */
#define BLZ_SEMAPHORE_MAX UINT32_MAX

/* clang-format off */
/* With so many permits. For a static one; blz_semaphore_init does the same. */
#define BLZ_SEMAPHORE_INIT(permits) \
    {(uint64_t)(uint32_t)(permits) << 32, 0, (uint32_t)(permits), {NULL, NULL}}
/* clang-format on */

/* The future of blz_semaphore_acquire. */
typedef struct blz_semaphore_op {
    blz_future future;
    blz_semaphore *semaphore;
    blz_waiter waiter;
    uint64_t reserved;
} blz_semaphore_op;

/* Prepares a semaphore with so many free permits. [any thread] */
BLZ_API void blz_semaphore_init(blz_semaphore *semaphore, uint32_t permits);

/*
 * Acquires n permits if that is possible without waiting: 0; -EAGAIN: they are not free, or others
 * wait; -EPIPE: the semaphore is closed. Never acquires a part of them. With n = 0 it gives 0. [any
 * thread]
 */
BLZ_API BLZ_NODISCARD int blz_semaphore_try_acquire(blz_semaphore *semaphore, uint32_t n);

/*
 * Awaits n permits: 0; -EPIPE: the semaphore is closed. Interruptible: with -ECANCELED it has
 * acquired none. If it had been given all of them before the cancellation, the result is 0. A
 * request for more permits than there will ever be waits for ever, and blocks all behind it. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_semaphore_acquire(blz_semaphore_op *op,
                                                        blz_semaphore *semaphore, uint32_t n);

/*
 * Blocks this thread until it has acquired n permits: 0; -EPIPE: the semaphore is closed; -EDEADLK
 * on a worker. [any thread but a worker]
 */
static inline int64_t blz_semaphore_acquire_wait(blz_semaphore *semaphore, uint32_t n)
{
    blz_semaphore_op op;

    return blz_wait(blz_semaphore_acquire(BLZ_FRESH_(&op), semaphore, n));
}

/*
 * Gives n permits back, and wakes the waiters that can now be served: 0; -EOVERFLOW: there would be
 * more than BLZ_SEMAPHORE_MAX free permits, and nothing has changed. It may be called after a
 * close. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_semaphore_release(blz_semaphore *semaphore, uint32_t n);

/*
 * Adds n permits that were not there before: 0; -EOVERFLOW: there would be more than
 * BLZ_SEMAPHORE_MAX free permits, and nothing has changed. [any thread]
 */
static inline BLZ_NODISCARD int blz_semaphore_add(blz_semaphore *semaphore, uint32_t n)
{
    return blz_semaphore_release(semaphore, n);
}

/*
 * Permanently removes up to n free permits, those kept for a waiter included; returns how many.
 * Permits that are in use are removed by not being released. [any thread]
 */
BLZ_API uint32_t blz_semaphore_forget(blz_semaphore *semaphore, uint32_t n);

/*
 * Closes the semaphore: every wait, and every later acquire, ends with -EPIPE, although there may
 * be free permits. Permits that have been acquired stay so. It cannot be opened again. [any thread]
 */
BLZ_API void blz_semaphore_close(blz_semaphore *semaphore);

/* Whether the semaphore has been closed. [any thread] */
BLZ_API bool blz_semaphore_is_closed(const blz_semaphore *semaphore);

/* How many permits are free at this moment, those kept for a waiter included. [any thread] */
BLZ_API uint32_t blz_semaphore_available(const blz_semaphore *semaphore);

BLZ_END_DECLS
#endif
