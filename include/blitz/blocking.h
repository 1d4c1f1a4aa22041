/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking work: functions that may block or compute for long, on threads of their own, so that the
 * workers stay free for tasks.
 *
 *     static int64_t hash_file(void *path) { ... }         // reads, blocks, computes
 *
 *     struct check { BLZ_FRAME; const char *path; int64_t rc; blz_blocking_op op; };
 *
 *     BLZ_ASYNC(check)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_blocking(&self->op, hash_file, (void *)self->path));
 *         BLZ_END(self->rc);
 *     }
 *
 * The threads are started on demand, up to options.max_blocking_threads, and end when they have had
 * nothing to do for options.blocking_keep_alive_ns. A job waits in line while there is a good
 * chance that a thread will be free soon; when the threads make no progress, more are started, so
 * jobs may wait for each other as long as there are not more of them than threads. The library's
 * own name lookups and file operations have other queues and other threads: they cannot keep a
 * program's jobs waiting, nor the other way round.
 *
 * What cancellation does: a job that has not begun never will, and its await ends with -ECANCELED
 * at once. A function that runs cannot be stopped; blz_blocking waits for it, because it may be
 * using memory of the task, and gives its real result. blz_blocking_owned does not wait.
 *
 * A shutdown cancels the tasks first. Once they have ended, what is queued is cancelled, and what
 * runs is waited for, within the time given to the shutdown. The functions here that are not
 * futures give -ESHUTDOWN from the beginning of a shutdown on; tasks may use the pool to the last.
 */
#ifndef BLITZ_BLOCKING_H
#define BLITZ_BLOCKING_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* A link in the pool's queue. The fields are the pool's. */
typedef struct blz_blocking_job {
    struct blz_blocking_job *next, *prev;
    void (*call)(struct blz_blocking_job *job, int error);
    uint32_t lane;
    uint32_t queued;
} blz_blocking_job;

/* One call. Lives in the caller's frame, and belongs to the pool until it has ended. */
typedef struct blz_blocking_op {
    blz_future future;
    blz_blocking_job job;
    int64_t (*fn)(void *arg);
    void *arg;
    blz_rt *rt;
    int64_t value;
    blz_waker waker;
    uint32_t state;
    uint32_t spare;
    uint64_t reserved[2];
} blz_blocking_op;

/*
 * Calls fn(arg) on a thread of the pool, and is ready with what it returns. Allocates nothing.
 * -ENOMEM, -EAGAIN or what else the system says, if there is no thread and none can be started.
 * Cancelled: -ECANCELED if fn had not begun, else completes when done. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_blocking(blz_blocking_op *op, int64_t (*fn)(void *arg),
                                               void *arg);

/*
 * Starts a call of fn(arg) on a thread of the pool, to have many under way. `rt` may be NULL on a
 * worker. 0: the call must be awaited by blz_blocking_join, or waited for by blz_blocking_wait,
 * before the op is freed. Otherwise fn is never called: -ESHUTDOWN: the runtime is ending; -ENXIO:
 * no runtime given and none on this thread; -EOWNERDEAD: in a forked child; -ENOMEM, -EAGAIN or
 * another error of the system: no thread can be started. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_blocking_start(blz_blocking_op *op, int64_t (*fn)(void *arg),
                                             void *arg, blz_rt *rt);

/*
 * Awaits a call that blz_blocking_start has started: gives what fn returned. Cancelled: -ECANCELED
 * if fn had not begun, otherwise the result of fn when it has ended. The await is never refused, so
 * the op may be freed afterwards also in a task that has been cancelled. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_blocking_join(blz_blocking_op *op);

/*
 * Blocks this thread until a started call has ended: gives what fn returned; -ECANCELED: the
 * runtime was shut down before fn began; -EDEADLK on a worker, and the call goes on. [any thread
 * but a worker]
 */
BLZ_API int64_t blz_blocking_wait(blz_blocking_op *op);

/*
 * Calls fn(arg) on the pool and blocks this thread until it has ended: gives what fn returned, or
 * the errors of blz_blocking_start and blz_blocking_wait. [any thread but a worker]
 */
BLZ_API int64_t blz_blocking_run(blz_rt *rt, int64_t (*fn)(void *arg), void *arg);

/*
 * Calls fn(arg) on the pool without a way to wait for it. What fn returns is ignored. `destroy`, if
 * there is one, is called once when all is over: after fn, or without it if a shutdown came first.
 * `rt` may be NULL on a worker. 0, or the errors of blz_blocking_start; after an error arg is still
 * the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_blocking_spawn(blz_rt *rt, int64_t (*fn)(void *arg), void *arg,
                                             void (*destroy)(void *arg));

/* The future of blz_blocking_owned. */
typedef struct blz_blocking_owned_op {
    blz_future future;
    int64_t (*fn)(void *arg);
    void *arg;
    void (*destroy)(void *arg);
    struct blz__blocking_node *node;
    uint32_t lane;
    uint32_t spare;
    uint64_t reserved[2];
} blz_blocking_owned_op;

/*
 * Calls fn(arg) like blz_blocking, but does not hold on to the task: if it is cancelled while fn
 * runs, the await ends with -ECANCELED at once and fn runs on by itself. So `arg` must not be in
 * the frame; it belongs to the call as soon as this is awaited, and destroy(arg) (which may be
 * NULL) is called exactly once whatever happens: by the thread that has run fn, before the result
 * is seen; or by the task, if fn never runs because it was cancelled or there was an error. To
 * get more than a number back, count references: `destroy` drops the call's. One small allocation:
 * -ENOMEM. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_blocking_owned(blz_blocking_owned_op *op,
                                                     int64_t (*fn)(void *arg), void *arg,
                                                     void (*destroy)(void *arg));

BLZ_END_DECLS
#endif
