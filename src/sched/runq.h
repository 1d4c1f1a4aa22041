/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's run queue: a bounded ring, first in, first out. The owner pushes at the tail and pops
 * at the head; other workers steal half of it at the head.
 *
 * `head` packs two positions: {steal, real}. They are equal unless a thief is at work: it claims
 * tasks by moving `real` forward, copies them, and then lets `steal` catch up. Slots from `steal`
 * on must not be overwritten, so the owner measures fullness from `steal`; tasks from `real` on
 * are still there to be taken. Only one thief at a time: others see steal != real and go away.
 *
 *   (steal == real)    pop       real + 1, steal + 1                      owner
 *   (steal != real)    pop       real + 1                                 owner
 *   (steal == real)    claim     real + n                                 thief
 *   (steal != real)    release   steal = real, as it is by now            that thief; cannot fail
 *   (steal == real)    overflow  both to tail, then half is put back      owner
 *
 * Positions are 32 bits wide and wrap; the ring has a power of two of slots.
 */
#ifndef BLZ_SCHED_RUNQ_H
#define BLZ_SCHED_RUNQ_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "task/task.h"
#include "tuning.h"

typedef struct runq {
    blz__cache_aligned uint64_t head;
    blz__cache_aligned uint32_t tail; /* written by the owner only */
    bool unshared;                    /* nobody ever steals: no atomics needed */
    blz__cache_aligned blz_task *slots[RUNQ_CAPACITY];
} runq;

/* Tasks on their way to the inject queue, linked by `next`. */
typedef struct task_list {
    blz_task *first, *last;
    uint32_t count;
} task_list;

static inline void task_list_append(task_list *list, blz_task *task)
{
    BLZ_ASSERT(!list->first == !list->last);
    BLZ_ASSERT(!list->first == (list->count == 0));
    task->next = NULL;
    if (list->last)
        list->last->next = task;
    else
        list->first = task;
    list->last = task;
    list->count++;
}

static inline blz_task *task_list_take(task_list *list)
{
    blz_task *task = list->first;

    BLZ_ASSERT(!list->first == !list->last);
    if (task) {
        list->first = task->next;
        if (!list->first)
            list->last = NULL;
        list->count--;
    }
    return task;
}

static inline void task_list_join(task_list *list, task_list *more)
{
    BLZ_ASSERT(list != more);
    BLZ_ASSERT(!more->first == (more->count == 0));
    if (!more->first)
        return;
    if (list->last)
        list->last->next = more->first;
    else
        list->first = more->first;
    list->last = more->last;
    list->count += more->count;
    *more = (task_list){NULL, NULL, 0};
}

/*
 * Pushes. If the ring is full, half of it (the newer tasks) and the task, or the task alone if a
 * thief is at work, are appended to `spill` instead, for the inject queue. [owner]
 */
void blz__runq_push(runq *q, blz_task *task, task_list *spill);

/* The oldest task, or NULL. [owner] */
blz_task *blz__runq_pop(runq *q);

/*
 * Moves half of the victim's tasks into `dst` and returns one of them; *moved is how many in all.
 * NULL: nothing to steal, another thief is at work, or `dst` has no room. [owner of dst]
 */
blz_task *blz__runq_steal(runq *victim, runq *dst, uint32_t *moved);

/* Tasks that could be popped or stolen now. [any thread: a guess] */
uint32_t blz__runq_len(const runq *q);

/* Whether there is nothing to pop. [owner] */
static inline bool runq_is_empty(const runq *q)
{
    return (uint32_t)blz__load(&q->head, RELAXED) == blz__load(&q->tail, RELAXED);
}

/* Free slots; never less later, except by pushing. [owner] */
uint32_t blz__runq_room(const runq *q);

/*
 * Validators (base/assert.h). A ring may have a thief at work; it is not changed by its owner
 * meanwhile. [owner]
 */
const char *blz__runq_check(const runq *q);
const char *blz__task_list_check(const task_list *list);

#endif
