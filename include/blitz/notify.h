/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify: wakes tasks that wait for something that you keep yourself: a queue, a flag, a struct.
 *
 *     static blz_notify ready = BLZ_NOTIFY_INIT;
 *
 *     push(&queue, item);                                             // producer, any thread
 *     blz_notify_one(&ready);
 *
 *     while (!pop(&queue, &self->item)) {                             // the one consumer, a task
 *         BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, &ready));
 *         if (self->rc < 0)                                           // cancelled
 *             goto out;
 *     }
 *
 * It holds at most one permit. blz_notify_one gives it to the task that has waited longest, or
 * stores it for the next that comes; a second notification while a permit is stored changes
 * nothing. So one consumer may look first and wait then, as above, and misses nothing. Several
 * consumers must *enable* their wait before they look, because two permits do not add up:
 *
 *     for (;;) {
 *         self->next = blz_notify_await(&self->wait, &ready);
 *         blz_notify_enable(&self->wait);                             // waits from here on
 *         if (pop(&queue, &self->item)) {
 *             blz_notify_disable(&self->wait);                        // no need to
 *             break;
 *         }
 *         BLZ_AWAIT(self->rc, self->next);
 *         if (self->rc < 0)                                           // cancelled
 *             break;
 *     }
 *
 * What was done before a notification is seen by the task that gets it.
 *
 * A notification that goes to a wait which is being cancelled is passed on to the next task, or
 * stored. A notify may be freed when nobody waits and every notification that was made has been
 * received: the calls here do not touch it after the task that they wake can run.
 */
#ifndef BLITZ_NOTIFY_H
#define BLITZ_NOTIFY_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* In memory of the program. All fields are the library's. */
typedef struct blz_notify {
    uint64_t word;
    uint32_t lock;
    uint32_t reserved;
    blz_waiters waiters;
} blz_notify;

/* No permit, nobody waits. For a static one; blz_notify_init does the same. */
#define BLZ_NOTIFY_INIT \
    {                   \
        0, 0, 0,        \
        {               \
            NULL, NULL  \
        }               \
    }

/* The future of blz_notify_await. */
typedef struct blz_notify_op {
    blz_future future;
    blz_waiter waiter;
    blz_notify *notify;
    uint64_t reserved[2];
} blz_notify_op;

/* Prepares a notify that holds no permit. [any thread] */
BLZ_API void blz_notify_init(blz_notify *notify);

/*
 * Wakes the task that has waited longest, or stores a permit if none waits. One atomic operation.
 * [any thread]
 */
BLZ_API void blz_notify_one(blz_notify *notify);

/* Wakes the task that began to wait last, or stores a permit if none waits. [any thread] */
BLZ_API void blz_notify_last(blz_notify *notify);

/*
 * Wakes all tasks that wait at this moment, and none that begins to wait later; a stored permit
 * stays. Waiting begins with the first poll, or with blz_notify_enable. [any thread]
 */
BLZ_API void blz_notify_all(blz_notify *notify);

/* Takes the stored permit: 0, or -EAGAIN if there is none. [any thread] */
BLZ_API int blz_notify_try_await(blz_notify *notify);

/*
 * Awaits a notification: 0. Interruptible: -ECANCELED. A notification that came at the same time
 * goes to another task; if it was one for all, the result is 0. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_notify_await(blz_notify_op *op, blz_notify *notify);

/*
 * Waits from now on, though the future is only awaited later: true if it is ready already. Before
 * the first poll, as often as you like. Afterwards the future must be awaited, or given up with
 * blz_notify_disable. [any thread]
 */
BLZ_API bool blz_notify_enable(blz_notify_op *op);

/*
 * Gives up an enabled wait that is not awaited. A notification that it has received is passed on to
 * another task, or stored. [any thread]
 */
BLZ_API void blz_notify_disable(blz_notify_op *op);

/* Blocks this thread until it is notified: 0. -EDEADLK on a worker. [any thread but a worker] */
static inline int64_t blz_notify_wait(blz_notify *notify)
{
    blz_notify_op op;

    return blz_wait(blz_notify_await(BLZ_FRESH_(&op), notify));
}

BLZ_END_DECLS
#endif
