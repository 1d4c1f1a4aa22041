/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait group: waits until a number of things have been done.
 *
 *     blz_wait_group_init(&self->group);
 *     for (i = 0; i < n; i++) {
 *         blz_ignore(blz_wait_group_add(&self->group, 1));            // before it starts
 *         start(&jobs[i], &self->group);                              // ends with ..._done(group)
 *     }
 *     BLZ_AWAIT_SHIELDED(self->rc, blz_wait_group_await(&self->wait, &self->group));
 *
 * The await is shielded because the group is in the frame: the jobs use it until they are done.
 *
 * Any number of tasks and threads may wait. When the count reaches zero all that wait then are
 * woken, whatever is added afterwards, and the group may be used again. A scope (blz_scope) does
 * the same for tasks, and cancels them, too.
 *
 * What was done before blz_wait_group_done is seen by those that wait for it.
 *
 * Memory: the group may be freed as soon as a wait has returned 0, though the call of
 * blz_wait_group_done that made it return may not have returned itself; only other waits must have
 * ended as well. So a group may live in the frame of the function that waits.
 */
#ifndef BLITZ_WAIT_GROUP_H
#define BLITZ_WAIT_GROUP_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* In memory of the program. All fields are the library's. */
typedef struct blz_wait_group {
    uint32_t word;
    uint32_t lock;
    blz_waiters waiters;
    uint64_t reserved;
} blz_wait_group;

/* clang-format off */
/* Nothing to wait for. For a static one; blz_wait_group_init does the same. */
#define BLZ_WAIT_GROUP_INIT {0, 0, {NULL, NULL}, 0}
/* clang-format on */

/* How many things there can be to do at a time. */
#define BLZ_WAIT_GROUP_MAX 0x7fffffffu

/* The future of blz_wait_group_await. */
typedef struct blz_wait_group_op {
    blz_future future;
    blz_waiter waiter;
    blz_wait_group *group;
    uint64_t reserved[2];
} blz_wait_group_op;

/* Prepares a group with nothing to wait for. [any thread] */
BLZ_API void blz_wait_group_init(blz_wait_group *group);

/*
 * Adds n things that are to be done: 0; -EOVERFLOW: there would be more than BLZ_WAIT_GROUP_MAX,
 * and nothing has been added. One atomic operation. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_wait_group_add(blz_wait_group *group, uint32_t n);

/*
 * Says that one thing is done. One atomic operation, unless it is the last and a task or thread
 * waits. Aborts if nothing was left to be done. [any thread]
 */
BLZ_API void blz_wait_group_done(blz_wait_group *group);

/* How many things are still to be done; may be outdated when it returns. [any thread] */
BLZ_API uint32_t blz_wait_group_count(const blz_wait_group *group);

/* 0 if there is nothing to be done, otherwise -EAGAIN. One load. [any thread] */
BLZ_API int blz_wait_group_try_await(blz_wait_group *group);

/* Awaits that the count is zero: 0. Interruptible: -ECANCELED; the count stays as it is. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_wait_group_await(blz_wait_group_op *op,
                                                       blz_wait_group *group);

/* Blocks this thread until the count is zero: 0. -EDEADLK on a worker. [any thread but a worker] */
static inline int64_t blz_wait_group_wait(blz_wait_group *group)
{
    blz_wait_group_op op;

    return blz_wait(blz_wait_group_await(BLZ_FRESH_(&op), group));
}

BLZ_END_DECLS
#endif
