/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once: a value that is made when it is first needed, by the task that needs it first.
 *
 *     static blz_once config = BLZ_ONCE_INIT;
 *
 *     BLZ_AWAIT(self->rc, blz_once_get(&self->get, &config, BLZ_FUTURE(self->load, load_config)));
 *     if (self->rc < 0)
 *         goto out;                                      // our attempt to load it failed
 *     use((const struct config *)(intptr_t)self->rc);
 *
 * Each task that asks for the value brings a future that could make it. One of these futures runs;
 * the other tasks wait. Its result, if it is not negative, is the value from then on, for all. If
 * it fails, or is cancelled, its task gets the error, and the next task that waits runs its own
 * future. Futures that are not needed are never started.
 *
 * The value is an int64_t that is not negative: a number, or a pointer. What was done before the
 * value was set is seen by every task that gets it: it can stand for a struct next to it.
 *
 * The memory may go when all calls and waits have ended.
 */
#ifndef BLITZ_ONCE_H
#define BLITZ_ONCE_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* In memory of the program. All fields are the library's. */
typedef struct blz_once {
    uint32_t state;
    uint32_t lock;
    int64_t value;
    blz_waiters makers;  /* tasks that have a future of their own, and wait for another's */
    blz_waiters waiters; /* tasks that only wait */
    uint64_t reserved;
} blz_once;

/* clang-format off */
/* No value yet. For a static one; blz_once_init does the same. */
#define BLZ_ONCE_INIT {0, 0, 0, {NULL, NULL}, {NULL, NULL}, 0}
/* clang-format on */

/* The future of blz_once_get. */
typedef struct blz_once_op {
    blz_future future;
    blz_waiter waiter;
    blz_once *once;
    blz_future *make;
    uint64_t reserved;
} blz_once_op;

/* Makes it empty: there is no value. [any thread] */
BLZ_API void blz_once_init(blz_once *once);

/* Gives the value, or -EAGAIN: there is none yet. One load. [any thread] */
BLZ_API int64_t blz_once_try_get(const blz_once *once);

/*
 * Sets the value: 0; -EEXIST: there is one; -EBUSY: one is being made; -EINVAL: it is negative.
 * [any thread]
 */
BLZ_API int blz_once_set(blz_once *once, int64_t value);

/*
 * Awaits the value. If no other task is making it, it awaits `make`, whose result becomes the
 * value. With `make` NULL it only waits for others. Gives the value, or the error of its own
 * `make`.
 *
 * Interruptible while it waits: -ECANCELED. While it makes the value a cancellation goes to `make`.
 * [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_once_get(blz_once_op *op, blz_once *once, blz_future *make);

/*
 * Blocks this thread until there is a value, and gives it. If no task or thread is making the
 * value, `make` is polled on this thread (blz_wait), and its result becomes the value. Gives the
 * value, or the error of its own `make`; -EDEADLK on a worker. [any thread but a worker]
 */
static inline int64_t blz_once_get_wait(blz_once *once, blz_future *make)
{
    blz_once_op op;

    return blz_wait(blz_once_get(BLZ_FRESH_(&op), once, make));
}

BLZ_END_DECLS
#endif
