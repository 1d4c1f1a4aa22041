/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inject queue: tasks that no worker has taken yet. Filled by threads that are not workers and
 * by full rings, emptied in batches by workers. A list under a small lock, and its length for
 * those who only want to know whether to look.
 *
 * Closed for new tasks at shutdown; tasks that exist may still be queued.
 */
#ifndef BLZ_SCHED_INJECT_H
#define BLZ_SCHED_INJECT_H

#include "base/cacheline.h"
#include "base/lock.h"
#include "sched/runq.h"

typedef struct inject {
    blz__cache_aligned blz__lock lock;
    bool closed;
    task_list list;
    uint64_t spawned; /* new tasks that came this way */
    blz__cache_aligned uint64_t len;
} inject;

/* Queues tasks that exist already. Then look at the idle set. [any thread] */
void blz__inject_push(inject *q, task_list *tasks);

/* Queues a new task. False: closed. [any thread] */
bool blz__inject_spawn(inject *q, blz_task *task);

/* The same by a caller that holds the lock and has seen that it is not closed. */
void blz__inject_spawn_locked(inject *q, blz_task *task);

/* Refuses new tasks from now on. [any thread] */
void blz__inject_close(inject *q);

/* Takes up to `max` tasks, oldest first. [any thread] */
task_list blz__inject_take(inject *q, uint32_t max);

static inline uint64_t inject_len(const inject *q)
{
    return blz__load(&q->len, RELAXED);
}

/* The look of a worker that has been counted as parked: pairs with the swap in the pushes. */
static inline bool inject_has_work(const inject *q)
{
    return blz__load(&q->len, SEQ_CST) != 0;
}

#endif
