/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of the check for tasks that wait for nothing (src/task/waits.h): while other threads hold
 * and let go of a task, the worker that polls it never takes it for one that has no waker.
 */
#define TASK_CHECKS_WAITS
#include "support/table.h"
#include "task/waits.h"

static blz_task *task;

/* Running, with the references of the task itself, a handle, and a waker; no bias. */
static void set_up(void)
{
    task = model_alloc(sizeof *task + sizeof(blz_future), 16);
    task_holders_init(task, true);
    blz__store(&task->state, TASK_RUNNING | 3 * TASK_REF, RELAXED);
}

static void hold_and_let_go(void *unused)
{
    (void)unused;
    task_hold(task);
    model_assert(!task_unhold(task));
}

static void detach(void *unused)
{
    (void)unused;
    model_assert(!task_unhold(task));
}

static void wake(void *unused)
{
    (void)unused;
    (void)task_state_wake(&task->state, true);
}

static void drop_waker(void *unused)
{
    (void)unused;
    model_assert(!task_state_unref(&task->state, 1));
}

static void a_task_with_a_waker_can_wake_whoever_else_holds_it(void)
{
    set_up();
    model_thread one = model_start(hold_and_let_go, NULL), two = model_start(detach, NULL);
    model_assert(task_can_wake(task, 0));
    model_join(one);
    model_join(two);
    model_assert(task_can_wake(task, 0));
    model_free(task);
}

static void a_task_whose_waker_is_being_used_can_wake(void)
{
    set_up();
    model_thread one = model_start(hold_and_let_go, NULL), two = model_start(wake, NULL);
    model_assert(task_can_wake(task, 0));
    model_join(one);
    model_join(two);
    model_assert(task_can_wake(task, 0));
    model_free(task);
}

static void a_task_whose_waker_was_dropped_cannot_wake(void)
{
    set_up();
    model_thread one = model_start(hold_and_let_go, NULL), two = model_start(drop_waker, NULL);
    model_join(one);
    model_join(two);
    model_assert(!task_can_wake(task, 0));
    model_free(task);
}

#define ALL .preemptions = MODEL_UNLIMITED, .stale_reads = MODEL_UNLIMITED

static const struct model models[] = {
    MODEL(a_task_with_a_waker_can_wake_whoever_else_holds_it, .preemptions = 4),
    MODEL(a_task_whose_waker_is_being_used_can_wake, .preemptions = 4),
    MODEL(a_task_whose_waker_was_dropped_cannot_wake, ALL),
};

MODEL_MAIN(models)
