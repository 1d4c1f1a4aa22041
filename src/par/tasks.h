/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of scopes (blitz/par_scope.h): blocks of them, lists of blocks, and offers.
 *
 * Each thread has a list of blocks for each scope that it began, and one for each computation that
 * it took from another thread, which has what that spawns into scopes of others. Such lists are the
 * thread's own, and nothing there is atomic. When somebody has nothing to do, the thread offers the
 * oldest block of its outermost list, or the older half of its only one:
 *
 *   offer      who                  does
 *   ------------------------------------------------------------------------------
 *   NULL       its thread           puts a block there (release)
 *   a block    anybody, also its    takes it (exchange, acquire); it is his own from then on
 *              thread
 *
 * A scope counts blocks, not tasks: one for each that is not in the list of the scope itself, and
 * one for the thread that began it, until that has nothing left to do but wait. Who has emptied a
 * block, and run its last task, takes one off; who takes the last one off sets the latch.
 *
 * Nothing is left behind: a thread that ends a list, or a computation that it took, runs what is in
 * its list, and takes back what it has offered from there.
 */
#ifndef BLZ_PAR_TASKS_H
#define BLZ_PAR_TASKS_H

#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/lock.h"

#include "par/deque.h"

#include <blitz/par_scope.h>

struct worker;

typedef struct blz_par_tasks_ block_list;

#ifdef BLZ_MODEL
enum { BLOCK_TASKS = 2 };
#else
enum { BLOCK_TASKS = 61 }; /* a block is a kilobyte */
#endif

typedef struct par_task {
    blz_par_task_fn fn;
    void *arg;
} par_task;

typedef struct task_block {
    struct task_block *older, *newer;
    blz_par_scope *scope; /* of all its tasks */
    uint32_t first, end;  /* the tasks that have not begun */
    bool fifo;
    bool counted; /* the scope counts it */
    par_task tasks[BLOCK_TASKS];
} task_block;

/* Of a worker: its own, but for the offer. */
typedef struct task_state {
    block_list *innermost; /* of all its lists; then `outer` */
    block_list *frame;     /* where it spawns into scopes of others */
    block_list base;       /* that, for a computation that nobody has taken from another */
    task_block *spare;
    uint32_t nr_spare;
    block_list *offered_from;
    blz__cache_aligned task_block *offer;
    blz_par_scope *offered_for; /* a hint, for the one who waits for that scope */
} task_state;

/* Of a pool: blocks that some workers have too many of. */
typedef struct task_pile {
    blz__cache_aligned blz__lock lock;
    task_block *first;
    uint32_t len;
} task_pile;

void blz__par_tasks_init(task_state *s);

/* [the pool is being freed] */
void blz__par_tasks_free(struct worker *w);
void blz__par_pile_free(blz_pool *pool);

/* Around a computation that was taken from another thread. The end runs what it left. */
void blz__par_frame_begin(struct worker *w, block_list *frame, block_list **saved);
void blz__par_frame_end(struct worker *w, block_list *frame, block_list *saved);

/* Runs what a computation from outside has spawned into scopes of others. */
void blz__par_run_base(struct worker *w);

/* Runs what the thread that began the scope has of it. */
void blz__par_run_own(struct worker *w, blz_par_scope *scope);

/* Offers a block, if there is one and nothing is offered already. */
void blz__par_offer(struct worker *w);

/* A block that any thread has offered; or of that scope, as far as one can see. NULL: none. */
task_block *blz__par_take_offer(struct worker *w, const blz_par_scope *scope);

/* Runs the tasks of a block, and what they spawn. */
void blz__par_run_block(struct worker *w, task_block *block);

#endif
