/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker keeps to itself: the LIFO slot and the tasks that yielded. Its owner uses it at
 * every poll. No other thread does, unless the worker is stuck in a poll: then the watchdog empties
 * it, so that tasks do not wait behind a task that blocks its thread.
 *
 * So it is behind a lock that is biased towards the owner (base/biased_lock.h): entering and
 * leaving are a store each. The watchdog only tries to enter: a worker that is inside is not stuck.
 */
#ifndef BLZ_SCHED_LOCAL_H
#define BLZ_SCHED_LOCAL_H

#include "base/biased_lock.h"
#include "sched/runq.h"

typedef struct local_queue {
    blz__biased_lock lock;
    bool revocable; /* heavy fences work: another thread may try to enter */
    blz_task *lifo;
    task_list yielded; /* since the last look at the driver */
    task_list resumed; /* before that: may run */
} local_queue;

/* Without heavy fences it is the owner's alone. */
static inline void local_init(local_queue *local, bool asymmetric_fences)
{
    *local = (local_queue){.revocable = asymmetric_fences};
    blz__biased_lock_init(&local->lock, true);
}

/* Returns what local_leave needs. [owner] */
static inline bool local_enter(local_queue *local)
{
    bool locked = blz__biased_lock_enter(&local->lock);

    blz__plain_write(&local->lifo); /* and all that is next to it: ours, from here on */
    return locked;
}

/* [owner] */
static inline void local_leave(local_queue *local, bool locked)
{
    blz__biased_lock_leave_unawaited(&local->lock, locked);
}

/*
 * Takes everything out. False: the owner is using it, or it cannot be revoked on this system. [any
 * thread but the owner]
 */
bool blz__local_empty(local_queue *local, task_list *tasks);

#endif
