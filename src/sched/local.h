/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker keeps to itself: the LIFO slot and the tasks that yielded. Its owner uses it at
 * every poll, nobody else does, unless the worker is stuck in a poll: then the watchdog empties it,
 * so that tasks do not wait behind a task that blocks its thread.
 *
 * So it is behind a lock that leans to the owner: entering and leaving are a store each, without
 * any read-modify-write, and all the cost is with the watchdog. It first sets `revoked`, and then
 * makes sure (blz__fence_heavy, which interrupts the owner's CPU) that it either sees `inside`, and
 * then gives up, or that the owner will see `revoked`, and then takes the real lock.
 *
 *     owner                         watchdog
 *     inside = 1                    lock; revoked = 1
 *     light fence                   heavy fence
 *     revoked? then lock            inside? then give up, else empty it
 *     ...                           revoked = 0; unlock
 *     inside = 0
 */
#ifndef BLZ_SCHED_LOCAL_H
#define BLZ_SCHED_LOCAL_H

#include "base/fence.h"
#include "base/lock.h"
#include "sched/runq.h"

typedef struct local_queue {
    uint32_t inside;
    uint32_t revoked;
    blz_task *lifo;
    task_list yielded; /* since the last look at the driver */
    task_list resumed; /* before that: may run */
    blz__lock lock;
    bool revocable; /* asymmetric fences work here */
} local_queue;

void blz__local_enter_slow(local_queue *local);
void blz__local_leave_slow(local_queue *local);

/* [owner] Returns what local_leave wants back: whether the real lock is held. */
static inline bool local_enter(local_queue *local)
{
    blz__store(&local->inside, 1u, RELAXED);
    blz__fence_light(); /* pairs with blz__fence_heavy in blz__local_empty */
    /* acquire: pairs with the release when the watchdog is through */
    bool locked = blz_unlikely(blz__load(&local->revoked, ACQUIRE));
    if (locked)
        blz__local_enter_slow(local);
    blz__plain_write(&local->lifo); /* and all that is next to it: ours, from here on */
    return locked;
}

static inline void local_leave(local_queue *local, bool locked)
{
    if (blz_unlikely(locked))
        blz__local_leave_slow(local);
    else
        blz__store(&local->inside, 0u, RELEASE); /* pairs with the acquire in blz__local_empty */
}

/*
 * Takes everything out. False: the owner is using it, or it cannot be revoked on this system. [any
 * thread but the owner]
 */
bool blz__local_empty(local_queue *local, task_list *tasks);

#endif
