/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/task: what the scheduler and the modules above use of tasks. At the end, what
 * this folder needs from the scheduler, which implements it.
 */
#ifndef BLZ_TASK_TASK_H
#define BLZ_TASK_TASK_H

#include "task/header.h"
#include "task/heap.h"
#include "task/state.h"
#include "task/waits.h"

/* ---- ext: what only some tasks have (name, task-locals) ---- */

struct task_local {
    const blz_local *key;
    void *value;
};

/* Names that were replaced stay until the task goes: others may be reading them. */
struct task_name {
    struct task_name *older;
    size_t size; /* of the whole */
    char text[];
};

struct task_ext {
    const char *origin;
    struct task_name *name; /* the newest, or NULL */
    struct task_local *locals;
    uint32_t nr_locals, max_locals;
    uint32_t pinned_to;
};

static inline bool task_has_ext(const blz_task *task)
{
    return blz__load(&task->id, ACQUIRE) & 1; /* pairs with the release in make_ext */
}

static inline struct task_ext *task_ext(const blz_task *task)
{
    return task_has_ext(task) ? (struct task_ext *)blz__load(&task->origin, RELAXED) : NULL;
}

/* The name that was given to it, or NULL. */
static inline const char *task_given_name(const blz_task *task)
{
    const struct task_ext *ext = task_ext(task);
    const struct task_name *name = ext ? blz__load(&ext->name, ACQUIRE) : NULL; /* see rename */

    return name ? name->text : NULL;
}

/* Gives the task an ext. Before it is published, or by the task itself. -ENOMEM */
int blz__task_make_ext(blz_task *task);
void blz__task_drop_ext(blz_task *task);
int blz__task_rename(blz_task *task, const char *name);

/* "fn at file.c:12" */
const char *blz__task_origin(const blz_task *task);

/*
 * Tasks that were spawned one after the other lie one after the other: who works through them in
 * that order can have the next ones fetched. A guess, which costs nothing if it is wrong.
 */
static inline void task_prefetch_neighbour(const blz_task *task)
{
    enum { AHEAD = 768 };
    __builtin_prefetch((const char *)task + AHEAD);
}

/* ---- life ---- */

/*
 * Initialises the block for a copy of the frame. The state is still 0: the spawning function stores
 * the first one (sched/spawn.c).
 */
void blz__task_init(blz_task *task, const void *frame, size_t size, const char *origin,
                    uint64_t id);

/*
 * Completes a task whose poll returned ready: publishes the result, wakes the joiner, drops the
 * task's own reference. `unused` is what is left of the bias. The task may be gone afterwards.
 */
void blz__task_complete(blz_task *task, uint32_t unused);

/* The result moves next to the state word, for the joiner; before COMPLETE is set. */
static inline void task_set_result(blz_task *task)
{
    blz__store(&task->stamp, (uint64_t)task->root->result, RELAXED);
}

static inline int64_t task_result(const blz_task *task)
{
    return (int64_t)blz__load(&task->stamp, RELAXED);
}

/*
 * Shields no longer count in this scope, the root of a task or a branch. What has been awaited
 * under one since the cancellation was delivered is still to be told.
 */
static inline void task_force_scope(blz_future *scope)
{
    if (!(scope->flags & BLZ_FUTURE_FORCED))
        scope->flags = (scope->flags | BLZ_FUTURE_FORCED) & ~BLZ_FUTURE_DELIVERED;
}

/* The last reference is gone: destroys the ext and gives the block back. */
void blz__task_destroy(blz_task *task);

/* Applies a transition's verdict. */
static inline void task_act(blz_task *task, enum task_action action);

/* ---- wakers ---- */

extern const blz_waker_ops blz__task_waker_ops;

/*
 * The wakers of branches wake a group of the task (state.h). The number of the group is in the bits
 * of `data` that the alignment of tasks leaves, and in which of these `ops` is.
 */
#define BRANCH_WAKER_TAGS ((uintptr_t)HEAP_ALIGN)
extern const blz_waker_ops blz__branch_waker_ops[TASK_GROUP_COUNT / HEAP_ALIGN];

static inline blz_waker branch_waker(blz_task *task, uint32_t group)
{
    return (blz_waker){(char *)task + group % BRANCH_WAKER_TAGS,
                       &blz__branch_waker_ops[group / BRANCH_WAKER_TAGS]};
}

static inline blz_task *branch_waker_task(void *data)
{
    return (void *)((uintptr_t)data & ~(BRANCH_WAKER_TAGS - 1));
}

/* The task of a branch's waker, and the bit of its group; NULL: it is another kind of waker. */
static inline blz_task *task_of_branch_waker(const blz_waker *waker, uint64_t *group)
{
    uintptr_t offset = (uintptr_t)waker->ops - (uintptr_t)blz__branch_waker_ops;

    if (offset >= sizeof blz__branch_waker_ops)
        return NULL;
    *group = TASK_GROUP(offset / sizeof(blz_waker_ops) * BRANCH_WAKER_TAGS +
                        (uintptr_t)waker->data % BRANCH_WAKER_TAGS);
    return branch_waker_task(waker->data);
}

/* The same for any waker of a task; the bit is 0 if it is not a branch's. */
static inline blz_task *task_of_waker(const blz_waker *waker, uint64_t *group)
{
    *group = 0;
    if (blz_likely(waker->ops == &blz__task_waker_ops))
        return waker->data;
    return task_of_branch_waker(waker, group);
}

/* The groups that this poll answers, as a mask; those in `mine`, which is not 0, by us. [task] */
static inline uint32_t task_woken_groups(blz_cx *cx, uint32_t mine)
{
    if (!cx->answered)
        cx->woken = task_state_take_groups(&cx->task->state);
    cx->answered |= mine;
    return cx->woken;
}

/*
 * At the end of a poll: what was woken for a combinator inside of another, and that one did not get
 * to see, stays for the next poll. [task]
 */
static inline void task_keep_woken(const blz_cx *cx)
{
    if (blz_likely(!cx->woken))
        return;
    uint32_t rest = cx->woken & cx->groups & ~cx->answered;
    if (rest)
        task_state_keep_groups(&cx->task->state, rest);
}

/*
 * The waker in a task's join slot may be one of these instead: the completer calls
 * fn(data, task) after COMPLETE, while it still holds a reference.
 */
struct join_hook_ops {
    blz_waker_ops waker; /* all NULL marks a hook */
    void (*complete)(void *data, blz_task *task);
};

/* The same as below for any waker: of a branch of the task, or of anyone else. */
void blz__task_waker_drop(blz_cx *cx, blz_waker *waker);

/*
 * Drops a waker that the task being polled made of itself: its reference goes back to those that
 * the poll has left, without an atomic operation.
 */
static inline void task_waker_give_back(blz_cx *cx, blz_waker *waker)
{
    if (blz_likely(waker->ops == &blz__task_waker_ops && waker->data == cx->task))
        cx->refs_left++;
    else
        blz__task_waker_drop(cx, waker);
    *waker = (blz_waker){NULL, NULL};
}

static inline void task_wake(blz_task *task)
{
    task_act(task, task_state_wake(&task->state, false));
}

/* ---- scopes, as spawning sees them ---- */

/* The size of a block that also has room for the scope's link, at its end. */
size_t blz__scope_block_size(size_t total);

/* Makes a task a child and publishes it: `state` is its first one but for what the scope adds. */
void blz__scope_adopt(blz_scope *scope, blz_task *task, size_t total, uint64_t state);

/* Undoes it: the task could not be spawned. */
void blz__scope_disown(blz_scope *scope, blz_task *task);

/* ---- what the scheduler provides ---- */

/* Queues a task that has just become scheduled. [any thread] */
void blz__sched_queue(blz_task *task);

/*
 * The same for a task that waits for others to end, which may well be waiting for many: behind what
 * is queued here already, so that it finds as many ended as possible.
 */
void blz__sched_queue_joiner(blz_task *task);

/* Gives the block of a destroyed task back to its heap. [any thread] */
void blz__sched_free_block(blz_task *task);

/*
 * Runs a task in place, on top of the current one, if it is next in line on this worker anyway and
 * never ran before. `cx` is the joiner's. False: nothing happened. [task]
 */
bool blz__sched_run_joined(blz_cx *cx, blz_task *task);

/* A callback of the program will run when a task ends, and has run: the shutdown waits for it. */
void blz__rt_expect_callback(blz_rt *rt);
void blz__rt_callback_done(blz_rt *rt);

/* Counts a refused await, and reports a task that ignores them. [task] */
void blz__task_refused(blz_cx *cx);

/* Whether this process is a forked child of the runtime's. [any thread] */
bool blz__rt_is_forked(const blz_rt *rt);

/* Whether this thread may wait for a task: it is no worker, and does not make the turns. */
bool blz__sched_may_block(const blz_rt *rt);

/* Memory of the runtime's allocator; NULL: a thread without one, and malloc's. [any thread] */
void *blz__rt_alloc(blz_rt *rt, size_t size, size_t align);
void blz__rt_free(blz_rt *rt, void *ptr, size_t size, size_t align);
const blz_allocator *blz__rt_allocator(const blz_rt *rt);

/* The cx of the task polled on this thread, or NULL. */
blz_cx *blz__sched_current_cx(void);

/* Whether this thread is a worker of any runtime. */
bool blz__sched_on_worker(void);

static inline void task_act(blz_task *task, enum task_action action)
{
    if (action == TASK_QUEUE)
        blz__sched_queue(task);
    else if (action == TASK_DESTROY)
        blz__task_destroy(task);
}

/* blz_waker_wake, for callers whose waker is a task's own nearly always. [any thread] */
static inline void task_waker_wake(blz_waker waker)
{
    blz_task *task = waker.data;

    if (blz_likely(waker.ops == &blz__task_waker_ops))
        task_act(task, task_state_wake(&task->state, true));
    else
        blz_waker_wake(&waker);
}

#endif
