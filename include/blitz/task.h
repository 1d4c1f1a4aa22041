/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: async functions that run concurrently, on all cores.
 *
 *     struct sum { BLZ_FRAME; int from, to; int64_t total; };
 *
 *     struct both { BLZ_FRAME; blz_handle left, right; blz_handle_join_op join; int64_t rc; };
 *
 *     BLZ_ASYNC(both)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = BLZ_SPAWN_JOIN(&self->left, sum, .from = 0, .to = 500);
 *         if (self->rc < 0)
 *             goto out;
 *         self->rc = BLZ_SPAWN_JOIN(&self->right, sum, .from = 500, .to = 1000);
 *         if (self->rc < 0)
 *             goto out;
 *         BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->left));
 *         if (self->rc < 0)
 *             goto out;                          // this task is cancelled
 *         BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->right));
 *         if (self->rc == 0)
 *             self->rc = self->left.result + self->right.result;
 *     out:
 *         blz_handle_detach(&self->left);        // those that were not joined run on
 *         blz_handle_detach(&self->right);
 *         BLZ_END(self->rc);
 *     }
 *
 * A task is one block of memory: a header of 64 bytes and the frame of its async function. It may
 * move between threads from one await to the next, and is never polled by two at once.
 *
 * Every handle that a spawn has filled in must be joined or detached, also after a cancellation: a
 * handle that is forgotten keeps the memory of its task for ever. Joining, blz_handle_wait,
 * blz_task_on_done and detaching leave it empty; to detach an empty handle does nothing. A handle
 * is used by one thread (or task) at a time. To cancel a task from elsewhere, share a reference:
 * blz_task_ref(handle.task).
 *
 * A poll function and a callback must not throw C++ exceptions through the library: it is C, and
 * has nothing to catch them with.
 */
#ifndef BLITZ_TASK_H
#define BLITZ_TASK_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

typedef struct blz_scope blz_scope;

/* A join handle. All zero: no task. */
typedef struct blz_handle {
    blz_task *task; /* NULL once joined or detached */
    int64_t result; /* of the task, once joined */
} blz_handle;

/* How to spawn. All zero means the default. */
typedef struct blz_spawn_args {
    blz_rt *rt;         /* default: the runtime of this thread */
    blz_handle *handle; /* filled in on success; default: detached */
    blz_scope *scope;   /* a child of this scope; excludes `handle` */
    const char *name;   /* copied; for dumps */
    const char *site;   /* where from, for dumps: "fn at file.c:12"; static storage */
    bool pinned;        /* stays on the worker that spawns it (-EPERM elsewhere) */
    uint64_t reserved[3];
} blz_spawn_args;

/*
 * Spawns a copy of `frame`, an async function's frame with its arguments filled in (the header's
 * `result` says how many bytes to leave behind it). The BLZ_SPAWN macros make the frame. 0;
 * -ENOMEM; -ESHUTDOWN: the runtime is ending; -ENXIO: no runtime given and none on this thread;
 * -EINVAL: a negative tail; -EPERM: a pinned task, and this is no worker of the runtime;
 * -EOWNERDEAD: in a forked child. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_spawn(const void *frame, size_t size, const blz_spawn_args *args);

/* The same on this thread's runtime, with the arguments that are used most. [worker] */
BLZ_API BLZ_NODISCARD int blz_spawn_here_(const void *frame, size_t size, blz_handle *handle,
                                          const char *site);

/*
 * Spawns a task and blocks this thread until it has ended; gives its result. -ENXIO: rt is NULL;
 * -EDEADLK on a worker; or the errors of blz_spawn. They cannot be told from a task that ends with
 * that number. [any thread but a worker]
 */
BLZ_API int64_t blz_block_on(blz_rt *rt, const void *frame, size_t size, const char *site);

/* ---- Handles ---- */

/* The future of blz_handle_join. */
typedef struct blz_handle_join_op {
    blz_future future;
    blz_handle *handle;
    bool keep;
    uint32_t reserved;
} blz_handle_join_op;

/*
 * Awaits the end of the task: 0, and handle->result is the task's result; the handle is then empty.
 * -EINVAL: the handle is empty. Interruptible: if the awaiting task is cancelled, -ECANCELED; the
 * joined task runs on, and the handle stays valid. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_handle_join(blz_handle_join_op *op, blz_handle *handle);

/*
 * Awaits the end of the task and keeps the handle valid, so that the finished frame can be read
 * (blz_handle_frame): 0, and handle->result is the task's result. Detach the handle afterwards.
 * -EINVAL: the handle is empty. Interruptible: -ECANCELED; the joined task runs on. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_handle_join_keep(blz_handle_join_op *op, blz_handle *handle);

/*
 * Blocks this thread until the task has ended: 0, and handle->result is the task's result; the
 * handle is then empty. -EINVAL: the handle is empty; -EDEADLK on a worker, unless the task has
 * ended; -EOWNERDEAD: in a forked child. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_handle_wait(blz_handle *handle);

/* Whether the task has ended. [any thread] */
BLZ_API bool blz_handle_done(const blz_handle *handle);

/*
 * The frame of a task that has ended (struct fn *), valid until the handle is detached; NULL before
 * the end. [any thread]
 */
BLZ_API void *blz_handle_frame(const blz_handle *handle);

/* Asks the task to end (blz_task_cancel). An empty handle is allowed. [any thread] */
BLZ_API void blz_handle_cancel(blz_handle *handle);

/*
 * Drops the handle, which is empty afterwards; the task runs on. An empty handle is allowed. [any
 * thread]
 */
BLZ_API void blz_handle_detach(blz_handle *handle);

/*
 * Calls fn(result, arg) when the task has ended, on the thread on which it ends, or at once if it
 * has ended; the handle is empty afterwards. 0; -EINVAL: the handle is empty; -ENOMEM; -EOWNERDEAD:
 * in a forked child. After an error the handle is as it was. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_task_on_done(blz_handle *handle,
                                           void (*fn)(int64_t result, void *arg), void *arg);

/* ---- Tasks ---- */

/* The task being polled on this thread, or NULL. [any thread] */
BLZ_API blz_task *blz_task_current(void);

/*
 * The number of a task: unique in the process's runtime, never reused. [any thread that has a
 * reference]
 */
BLZ_API uint64_t blz_task_id(const blz_task *task);

/*
 * The name of a task, or the name of its function. Valid while the task is. [any thread with a
 * reference]
 */
BLZ_API const char *blz_task_name(const blz_task *task);

/*
 * Names the current task; the name is copied. 0; -ENOMEM; -ENXIO: not in a task; -EOWNERDEAD: in a
 * forked child. [task]
 */
BLZ_API int blz_task_set_name(const char *name);

/*
 * Adds or drops a reference to a task, whose memory stays while there is one. [any thread that has
 * one]
 */
BLZ_API blz_task *blz_task_ref(blz_task *task);
BLZ_API void blz_task_unref(blz_task *task);

/*
 * Asks the task to end: its pending await returns -ECANCELED as soon as that is safe, and so does
 * every later one outside a shield. Does not wait; join for that. One atomic operation. [any
 * thread that has a reference]
 */
BLZ_API void blz_task_cancel(blz_task *task);

/* ---- Task-locals: values that travel with the current task [task] ---- */

/*
 * The key of a task-local value: the address of a static variable of this type. Each task begins
 * without values: a spawned task inherits none from the task that spawns it. `destroy` (which may
 * be NULL) is called in blz_local_set for a value that is replaced, otherwise when the memory of
 * the task is freed: on the thread that drops the last reference to the task, not in a task.
 */
typedef struct blz_local {
    void (*destroy)(void *value);
    void *reserved[3]; /* NULL */
} blz_local;

/*
 * Sets the current task's value for a key, and destroys an older one; NULL removes it. 0; -ENOMEM;
 * -ENXIO: not in a task; -EOWNERDEAD: in a forked child, if the task had neither locals nor a name.
 */
BLZ_API int blz_local_set(const blz_local *key, void *value);

/* The current task's value for a key; NULL: it has none, or this is no task. */
BLZ_API void *blz_local_get(const blz_local *key);

/* ---- Scopes: children that never outlive their parent's function ---- */

/* What a scope does when a child ends. FAIL_FAST and DISCARD may be combined by |. */
enum {
    BLZ_SCOPE_COLLECT = 0,   /* keeps the child, with its result and frame, until it is joined */
    BLZ_SCOPE_FAIL_FAST = 1, /* the first child that ends with a negative result cancels the rest */
    BLZ_SCOPE_DISCARD = 2,   /* frees the child at once; only the first failure is remembered */
};

/*
 * A scope lives in the frame of the function that spawns into it:
 *
 *     blz_scope_init(&self->scope, BLZ_SCOPE_FAIL_FAST);
 *     for (i = 0; i < 10 && self->rc == 0; i++)
 *         self->rc = BLZ_SCOPE_SPAWN(&self->scope, fetch, .url = urls[i]);
 *     if (self->rc < 0)
 *         blz_scope_cancel(&self->scope);
 *     BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
 *
 * blz_scope_join must have returned before the frame ends: it is what makes the scope a scope. If
 * the parent is cancelled meanwhile, the children are cancelled and joined all the same.
 *
 * The task that owns the scope may spawn into it until blz_scope_join is ready. So may a child of
 * the scope while it runs, and any other thread that knows that a child still runs or that the join
 * has not begun; these spawn by BLZ_SCOPE_SPAWN on a worker, elsewhere by BLZ_SPAWN_WITH and
 * `.scope`. A child that is spawned into a cancelled scope starts cancelled.
 *
 * A child that has ended keeps its memory until blz_scope_next hands it over, or blz_scope_join
 * drops it. A scope that lives long and does not want the results, such as one with the sessions of
 * a server, is made with BLZ_SCOPE_DISCARD: then only children that have not ended take memory.
 */
struct blz_scope {
    uint64_t private_[8];
};

/* The future of blz_scope_join and blz_scope_next. */
typedef struct blz_scope_op {
    blz_future future;
    blz_scope *scope;
    blz_handle *out;
    uint64_t reserved;
} blz_scope_op;

/* Makes an empty scope; `policy` is BLZ_SCOPE_COLLECT, or FAIL_FAST, DISCARD or both. [task] */
BLZ_API void blz_scope_init(blz_scope *scope, int policy);

/* Cancels all children, and those that are spawned later. [task that owns the scope] */
BLZ_API void blz_scope_cancel(blz_scope *scope);

/*
 * Awaits all children: 0, or the result of the first child that failed. A cancellation is passed on
 * to the children, which are still awaited; so the result is -ECANCELED only if a child ended with
 * that. [task that owns the scope]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_scope_join(blz_scope_op *op, blz_scope *scope);

/*
 * Awaits the next child to end, in the order in which they do: 1 and *out (its result and frame;
 * detach it), or 0 when there are no more. A child that is taken this way is no longer the scope's.
 * With BLZ_SCOPE_DISCARD there is no child to take: it gives 0 when all have ended.
 *
 * Interruptible: -ECANCELED, no child has been taken, and they run on. So it may be a branch of a
 * blz_select. A parent that is cancelled goes on to blz_scope_join, as it must in any case. [task
 * that owns the scope]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_scope_next(blz_scope_op *op, blz_scope *scope,
                                                 blz_handle *out);

/* How many children have not ended yet. [any thread, while the scope exists] */
BLZ_API size_t blz_scope_live(const blz_scope *scope);

BLZ_END_DECLS
#endif
