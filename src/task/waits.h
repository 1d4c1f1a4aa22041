/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds with checks (BLZ_CHECKS: the presets debug, asan and tsan) panic when a poll returns
 * pending and nothing can ever wake the task: a poll function forgot its waker, or dropped it.
 *
 * Each waker has one reference to its task. So has each holder: a handle, a scope, a caller of
 * blz_task_ref. `holders` counts the holders; the rest of the references, less the task's own, are
 * wakers. A task with no waker that has not been woken can only be cancelled.
 *
 *   bits 16-31   version: one more with each change
 *   bits 0-15    how many holders there are
 *
 * The count never exceeds the holders that the state word knows: a holder's reference is counted
 * there first and removed there last. The version tells the reader that the count changed while it
 * read the state word; then it says nothing. So a task that has a waker is never taken for one
 * that has none.
 */
#ifndef BLZ_TASK_WAITS_H
#define BLZ_TASK_WAITS_H

#include "task/header.h"
#include "task/state.h"

#ifdef TASK_CHECKS_WAITS

enum { HOLDERS_VERSION = 0x10000, HOLDERS_MASK = 0xffff };

/* A new task, before its state word is stored. */
static inline void task_holders_init(blz_task *task, bool held)
{
    blz__store(&task->holders, held ? 1u : 0u, RELAXED);
}

/* Adds a reference that is no waker. [any thread that has one] */
static inline void task_hold(blz_task *task)
{
    task_state_ref(&task->state, 1);
    /* release: the reference; pairs with the acquire in task_can_wake */
    blz__fetch_add(&task->holders, HOLDERS_VERSION + 1u, RELEASE);
}

/* Drops it. True: that was the last, destroy the task. [any thread] */
static inline bool task_unhold(blz_task *task)
{
    blz__fetch_add(&task->holders, HOLDERS_VERSION - 1u, RELAXED);
    return task_state_unref(&task->state, 1); /* a release */
}

/*
 * Whether the task being polled has been woken, or something may wake it. `unused` is what is left
 * of the bias. [task]
 */
static inline bool task_can_wake(const blz_task *task, uint32_t unused)
{
    uint32_t holders = blz__load(&task->holders, ACQUIRE); /* pairs with task_hold */
    uint64_t state = blz__load(&task->state, ACQUIRE);     /* pairs with references dropped */

    return (state & TASK_NOTIFIED) ||
           task_state_refs(state) - unused > 1 + (holders & HOLDERS_MASK) ||
           blz__load(&task->holders, RELAXED) != holders;
}

#else

static inline void task_holders_init(blz_task *task, bool held)
{
    (void)task, (void)held;
}

static inline void task_hold(blz_task *task)
{
    task_state_ref(&task->state, 1);
}

static inline bool task_unhold(blz_task *task)
{
    return task_state_unref(&task->state, 1);
}

#endif

/* Ends the program: names the function that returned pending and waits for nothing. */
BLZ_NORETURN BLZ_COLD void blz__task_waits_for_nothing(const blz_future *root);

#endif
