/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes: any number of tasks that run in parallel, and a place where all of them are done.
 *
 *     static int visit(blz_par *par, void *arg)
 *     {
 *         struct node *node = arg;
 *
 *         for (struct node *child = node->first; child; child = child->next) {
 *             int rc = blz_par_spawn(par, node->scope, visit, child);   // may run elsewhere
 *             if (rc < 0)
 *                 return rc;
 *         }
 *         return look_at(node);
 *     }
 *
 *     blz_par_scope scope;
 *
 *     blz_par_scope_begin(par, &scope);
 *     rc = blz_par_spawn(par, &scope, visit, root);
 *     ...
 *     rc = blz_par_scope_end(par, &scope);        // all of them, also those spawned by others
 *
 * A fork (par.h) is cheaper, but it belongs to the function that made it. A task is noted in the
 * memory of the library, in blocks of sixty, and may be spawned from anywhere within the scope:
 * also by its tasks, in whatever thread they run. Spawning never runs a task itself.
 *
 * The first task that returns an error ends the scope with it: tasks that have not begun are not
 * begun any more.
 */
#ifndef BLITZ_PAR_SCOPE_H
#define BLITZ_PAR_SCOPE_H

#include <blitz/par.h>

BLZ_BEGIN_DECLS

/* 0, or a negative error, which ends the scope. */
typedef int (*blz_par_task_fn)(blz_par *par, void *arg);

/* Tasks that their thread has for itself; the library's business. */
struct blz_par_tasks_ {
    void *oldest, *newest;           /* blocks of tasks, the last of which begins first */
    void *fifo_oldest, *fifo_newest; /* and the first */
    void *running;
    struct blz_par_tasks_ *outer;
};

/* A scope, in the frame of the function that waits for the tasks. All fields are the library's. */
typedef struct blz_par_scope {
    struct blz_par_tasks_ tasks;
    blz_par *owner;
    uint32_t out; /* blocks of tasks that others may have; and one until the scope is to end */
    uint32_t latch;
    int32_t code;
    uint32_t isolated;
    uint64_t claim; /* one of the threads that have some */
    bool waiting;
    bool is_root;
    uint64_t reserved[4];
} blz_par_scope;

/*
 * Begins a scope. Scopes of a thread end in the reverse order, each in the function call that began
 * it. [in a computation]
 */
BLZ_API void blz_par_scope_begin(blz_par *par, blz_par_scope *scope);

/*
 * Waits until all tasks are done, running those that no other thread has taken; what they wrote is
 * seen by the caller. 0, or the error of the scope, such as -ECANCELED. Each begun scope must be
 * ended. [in a computation: by the function that began the scope]
 */
BLZ_API int blz_par_scope_end(blz_par *par, blz_par_scope *scope);

/*
 * Spawns a task: fn(par, arg) is called once before the scope ends, by any thread of the pool.
 * Tasks that stay with this thread begin in reverse order, the last one first: then memory that was
 * just written is still in the cache. 0; -ENOMEM, or the error of the scope: the task is not taken.
 * [in a computation: by the function that began the scope, or a task of it]
 */
BLZ_API BLZ_NODISCARD int blz_par_spawn(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn,
                                        void *arg);

/*
 * Spawns a task that begins in the order of spawning, after those of blz_par_spawn. Threads that
 * ask for some are offered the oldest; if they come too late, these are the last to begin. 0;
 * -ENOMEM, or the error of the scope: the task is not taken. [in a computation: by the function
 * that began the scope, or a task of it]
 */
BLZ_API BLZ_NODISCARD int blz_par_spawn_fifo(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn,
                                             void *arg);

/* Ends the scope with a negative error, if it has none yet. [any thread, while it is not ended] */
BLZ_API void blz_par_scope_cancel(blz_par_scope *scope, int error);

/*
 * The error of the scope, or 0: for long tasks, to give up early. It cannot fail. [any thread,
 * while it is not ended]
 */
BLZ_API int blz_par_scope_code(const blz_par_scope *scope);

/* ---- other ways to share ---- */

/* A branch of blz_par_join_n. */
typedef struct blz_par_call {
    blz_par_fn fn;
    void *arg;
} blz_par_call;

/*
 * Calls all of them, possibly in several threads at the same time, and returns when all have
 * returned. BLZ_PAR_JOIN(par, {f, a}, {g, b}, {h, c}) makes the array. [in a computation]
 */
BLZ_API void blz_par_join_n(blz_par *par, const blz_par_call *calls, size_t count);

/*
 * Calls all functions that are arguments by blz_par_join_n: BLZ_PAR_JOIN(par, {f, a}, {g, b}). [in
 * a computation]
 */
#define BLZ_PAR_JOIN(par, ...)                                 \
    blz_par_join_n((par), (const blz_par_call[]){__VA_ARGS__}, \
                   sizeof((const blz_par_call[]){__VA_ARGS__}) / sizeof(blz_par_call))

/*
 * Shows other threads the jobs that they might take, and runs one of theirs. For a thread that
 * waits for another thread of the computation in a way that the library does not see. False: there
 * was no job, or it may not be begun here: in an isolated region, or with less than a quarter of
 * the stack left. [in a computation]
 */
BLZ_API bool blz_par_yield(blz_par *par);

/*
 * Calls fn(par, arg) once in each thread of the pool, and returns when all have returned; guests
 * are not among them. A thread that is busy calls it when it has nothing else to do. NULL: the
 * default pool. 0; -EDEADLK, and nothing is called: within a job or a task that was taken from
 * another thread, or in an isolated region, of whatever pool, or in a computation that was begun in
 * another pool from there; -EOWNERDEAD, -EAGAIN: as blz_pool_run. [any thread; in a computation,
 * not in its branches and tasks]
 */
BLZ_API int blz_pool_broadcast(blz_pool *pool, blz_par_fn fn, void *arg);

BLZ_END_DECLS
#endif
