/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakers as values. The wakers of a task, and of its branches, are by far the most common: they are
 * recognised here and woken without an indirect call.
 */
#include <blitz/waker.h>

#include "task/task.h"

void blz_waker_wake(blz_waker *waker)
{
    blz_waker taken = *waker;
    blz_task *task;
    uint64_t group;

    *waker = (blz_waker){NULL, NULL};
    if (blz_likely(taken.ops == &blz__task_waker_ops)) {
        task = taken.data;
        task_act(task, task_state_wake(&task->state, true));
    } else if ((task = task_of_branch_waker(&taken, &group))) {
        task_act(task, task_state_wake_group(&task->state, group, true));
    } else if (taken.ops) {
        taken.ops->wake(taken.data);
    }
}

void blz_waker_wake_by_ref(const blz_waker *waker)
{
    if (waker->ops)
        waker->ops->wake_by_ref(waker->data);
}

blz_waker blz_waker_clone(const blz_waker *waker)
{
    if (waker->ops)
        waker->ops->clone(waker->data);
    return *waker;
}

void blz_waker_drop(blz_waker *waker)
{
    blz_waker taken = *waker;

    *waker = (blz_waker){NULL, NULL};
    if (taken.ops)
        taken.ops->drop(taken.data);
}

static void nothing(void *data)
{
    (void)data;
}

blz_waker blz_waker_noop(void)
{
    static const blz_waker_ops ops = {nothing, nothing, nothing, nothing, {NULL, NULL}};
    return (blz_waker){NULL, &ops};
}

static void call_back(void *data)
{
    blz_wake_callback *callback = data;
    callback->fn(callback->arg);
}

blz_waker blz_waker_callback(blz_wake_callback *callback)
{
    static const blz_waker_ops ops = {call_back, call_back, nothing, nothing, {NULL, NULL}};
    return (blz_waker){callback, &ops};
}
