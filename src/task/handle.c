/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Join handles: awaiting, blocking, calling back.
 *
 * A handle holds one reference. The way to learn of the end is the join-waker slot of the task (the
 * JOIN rule of state.h), which the handle's owner fills: with the waker of the task, or of the
 * thread, that awaits it, or with a hook that calls back.
 */
#include "task/task.h"
#include "task/wait.h"
#include "tuning.h"

#include <blitz/wait_info.h>

#include <blitz/error.h>

/* ---- the end of a handle ---- */

static inline void drop_ref(blz_task *task)
{
    if (task_state_is_last(&task->state) || task_unhold(task))
        blz__task_destroy(task);
}

/* The task is complete: take its result, and the handle's reference unless it is kept. */
static inline void collect(blz_handle *handle, bool keep)
{
    blz_task *task = handle->task;

    task_prefetch_neighbour(task); /* joined next, if they were spawned together */
    handle->result = task_result(task);
    if (!keep) {
        handle->task = NULL;
        drop_ref(task);
    }
}

void blz_handle_detach(blz_handle *handle)
{
    blz_task *task = handle->task;

    handle->task = NULL;
    if (task)
        drop_ref(task);
}

bool blz_handle_done(const blz_handle *handle)
{
    return !handle->task || task_state_is_complete(&handle->task->state);
}

void *blz_handle_frame(const blz_handle *handle)
{
    return handle->task && blz_handle_done(handle) ? handle->task->root : NULL;
}

void blz_handle_cancel(blz_handle *handle)
{
    if (handle->task)
        blz_task_cancel(handle->task);
}

/* ---- awaiting ---- */

enum { JOIN_START, JOIN_WAITING, JOIN_CANCELLED };

/* The slot is for one: a handle is used by one task or thread at a time. */
static void check_no_joiner(const blz_task *task)
{
    uint64_t state = blz__load(&task->state, RELAXED);

    if (blz_unlikely((state & (TASK_JOIN | TASK_COMPLETE)) == TASK_JOIN))
        blz__panic("the end of `%s` is awaited twice: only one task or thread may use a handle",
                   task->root->ops->name);
}

/* Leaves our waker in the task's slot. False: the task is complete. */
static bool leave_waker(blz_task *task, blz_waker waker)
{
    check_no_joiner(task);
    blz__plain_write(&task->join);
    task->join = waker;
    if (task_state_set_join(&task->state))
        return true;
    blz_waker_drop(&waker);
    return false;
}

/* Whether the task is complete. If not, our waker is in its slot, unless the budget is used up. */
static inline bool join_start(blz_handle_join_op *join, blz_cx *cx)
{
    blz_task *task = join->handle->task;

    if (!blz_coop_take(cx))
        return false;
    if (task_state_is_complete(&task->state) ||
        (cx->worker && blz__sched_run_joined(cx, task) && task_state_is_complete(&task->state)) ||
        !leave_waker(task, blz_cx_waker(cx)))
        return true;
    join->future.line = JOIN_WAITING;
    blz_coop_give_back(cx);
    return false;
}

static blz_poll join_poll(blz_future *future, blz_cx *cx)
{
    blz_handle_join_op *join = (blz_handle_join_op *)future;

    switch (future->line) {
    case JOIN_START:
        if (!join->handle->task)
            return blz_future_done(future, -EINVAL);
        if (!join_start(join, cx))
            return BLZ_PENDING;
        break;
    case JOIN_CANCELLED:
        return blz_future_done(future, -ECANCELED);
    default: /* our waker is in the slot, and we are always the same task */
        if (!task_state_is_complete(&join->handle->task->state))
            return BLZ_PENDING;
    }
    collect(join->handle, join->keep);
    return blz_future_done(future, 0);
}

/* Takes the waker back; if the task was faster, the real result stands. */
static void join_cancel(blz_future *future, blz_cx *cx)
{
    blz_handle_join_op *join = (blz_handle_join_op *)future;
    blz_task *task = join->handle->task;

    (void)cx;
    if (future->line == JOIN_START)
        future->line = JOIN_CANCELLED;
    else if (future->line == JOIN_WAITING && task_state_clear_join(&task->state)) {
        blz__plain_write(&task->join);
        blz_waker_drop(&task->join);
        future->line = JOIN_CANCELLED;
    }
}

static void join_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_handle_join_op *op = (const blz_handle_join_op *)(const void *)future;

    info->kind = "task";
    info->object = op->handle->task;
    info->holder = op->handle->task ? blz_task_id(op->handle->task) : 0;
}

static blz_future *join_init(blz_handle_join_op *op, blz_handle *handle, bool keep)
{
    static const blz_future_ops ops = {.name = "join",
                                       .poll = join_poll,
                                       .cancel = join_cancel,
                                       .describe_wait = join_describe};

    blz_op_check(&op->future, &ops);
    *op = (blz_handle_join_op){.future = {.ops = &ops}, .handle = handle, .keep = keep};
    return &op->future;
}

blz_future *blz_handle_join(blz_handle_join_op *op, blz_handle *handle)
{
    return join_init(op, handle, false);
}

blz_future *blz_handle_join_keep(blz_handle_join_op *op, blz_handle *handle)
{
    return join_init(op, handle, true);
}

/* ---- blocking ---- */

/*
 * A task often ends sooner than a thread can be put to sleep and woken, which takes tens of
 * microseconds: look for a few of them first.
 */
static bool ends_soon(const blz_task *task)
{
    for (int i = 0; i < JOIN_LOOKS; i++) {
        if (task_state_is_complete(&task->state))
            return true;
        blz__spin_hint();
    }
    return task_state_is_complete(&task->state);
}

int blz_handle_wait(blz_handle *handle)
{
    blz_handle_join_op join = {0};

    if (!handle->task)
        return -EINVAL;
    if (blz__rt_is_forked(blz__heap_rt(handle->task)))
        return -EOWNERDEAD;
    if (!task_state_is_complete(&handle->task->state)) {
        if (!blz__sched_may_block(blz__heap_rt(handle->task)))
            return -EDEADLK;
        if (!ends_soon(handle->task))
            return (int)blz__thread_wait(blz_handle_join(&join, handle), INT64_MAX);
    }
    collect(handle, false);
    return 0;
}

/* ---- calling back ---- */

struct on_done {
    void (*fn)(int64_t result, void *arg);
    void *arg;
};

static struct on_done take_hook(void *data, blz_task *task)
{
    struct on_done hook = *(struct on_done *)data;

    blz__rt_free(blz__heap_rt(task), data, sizeof hook, _Alignof(struct on_done));
    return hook;
}

static void on_done_complete(void *data, blz_task *task)
{
    struct on_done hook = take_hook(data, task);

    hook.fn(task_result(task), hook.arg);
    blz__rt_callback_done(blz__heap_rt(task)); /* our worker keeps the runtime */
}

static const struct join_hook_ops on_done_ops = {.complete = on_done_complete};

int blz_task_on_done(blz_handle *handle, void (*fn)(int64_t result, void *arg), void *arg)
{
    blz_task *task = handle->task;
    struct on_done *hook;

    if (!task)
        return -EINVAL;
    if (blz__rt_is_forked(blz__heap_rt(task)))
        return -EOWNERDEAD;
    hook = blz__rt_alloc(blz__heap_rt(task), sizeof *hook, _Alignof(struct on_done));
    if (!hook)
        return -ENOMEM;
    *hook = (struct on_done){fn, arg};
    check_no_joiner(task);
    blz__plain_write(&task->join);
    task->join = (blz_waker){hook, &on_done_ops.waker};
    blz__rt_expect_callback(blz__heap_rt(task));
    if (!task_state_set_join(&task->state)) {
        blz__rt_callback_done(blz__heap_rt(task));
        struct on_done now = take_hook(hook, task);
        now.fn(task_result(task), now.arg);
    }
    blz_handle_detach(handle);
    return 0;
}
