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
 *     blz_ignore(blz_semaphore_release(&limit, 1));
 *
 * First come, first served: while somebody waits, nobody else gets a permit, so a request for many
 * is not passed by small ones for ever; the permits that come back meanwhile are kept for it. A
 * waiter that is cancelled leaves all of them to those behind it.
 *
 * Permits belong to nobody: what one task has acquired another may release, on any thread. What
 * came before a release has happened for whoever acquires a permit of it.
 *
 * The struct is the caller's. It may be freed by whoever has acquired a permit, if by that it knows
 * that no other call is under way: a release does not touch the semaphore once its permit can be
 * had. So a semaphore of 0 permits on the stack is a signal that can be waited for.
 */
#ifndef BLITZ_SEMAPHORE_H
#define BLITZ_SEMAPHORE_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A semaphore, in memory of the program. All fields are the library's. */
typedef struct blz_semaphore {
    uint64_t word; /* permits, and whether somebody waits */
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
} blz_semaphore_op;

/* With so many free permits. */
BLZ_API void blz_semaphore_init(blz_semaphore *semaphore, uint32_t permits);

/*
 * Acquires n permits at once: 0, or -EAGAIN if they are not free or others wait for some, or -EPIPE
 * after a close. Never a part of them; none at all is fine. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_semaphore_try_acquire(blz_semaphore *semaphore, uint32_t n);

/*
 * Awaits n permits: 0, or -EPIPE after a close. Interruptible: a cancelled one has none of them,
 * unless it had got them all before: then it ends with 0. Who asks for more than there will ever be
 * waits for ever, and all behind it.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_semaphore_acquire(blz_semaphore_op *op,
                                                        blz_semaphore *semaphore, uint32_t n);

/* The same, for a thread that may sleep. -EDEADLK on a worker. [any thread but a worker] */
static inline int64_t blz_semaphore_acquire_wait(blz_semaphore *semaphore, uint32_t n)
{
    blz_semaphore_op op;

    return blz_wait(blz_semaphore_acquire(&op, semaphore, n));
}

/*
 * Gives n permits back, and wakes whom they are enough for: 0, or -EOVERFLOW if there would be more
 * than BLZ_SEMAPHORE_MAX free ones; then nothing has changed. Also after a close. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_semaphore_release(blz_semaphore *semaphore, uint32_t n);

/* Adds n permits that were not there before: as releasing them. [any thread] */
static inline BLZ_NODISCARD int blz_semaphore_add(blz_semaphore *semaphore, uint32_t n)
{
    return blz_semaphore_release(semaphore, n);
}

/*
 * Takes up to n free permits out of the world, those kept for a waiter included: how many it were.
 * Permits that are in use are forgotten by not being released. [any thread]
 */
BLZ_API uint32_t blz_semaphore_forget(blz_semaphore *semaphore, uint32_t n);

/*
 * Ends waiting: -EPIPE for all who wait, and for every later acquire, though there may be permits.
 * Those that have been acquired stay so. There is no way back. [any thread]
 */
BLZ_API void blz_semaphore_close(blz_semaphore *semaphore);

BLZ_API bool blz_semaphore_is_closed(const blz_semaphore *semaphore); /* [any thread] */

/* How many are free at this moment, those kept for a waiter included. [any thread] */
BLZ_API uint32_t blz_semaphore_available(const blz_semaphore *semaphore);

BLZ_END_DECLS
#endif
