/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of scopes (blitz/par_scope.h): blocks of them, lists of blocks, and offers.
 *
 * Each thread has a list of blocks for each scope that it began, and one for each computation that
 * it took from another thread, which has what that spawns into scopes of others. They are under a
 * lock that is biased towards the thread (base/biased_lock.h): nothing there is atomic while no
 * other thread comes. When somebody has nothing to do, the thread offers the oldest block of its
 * outermost list, or the older half of its only one. The word of the offer is the scope that its
 * tasks are of. A thread that waits for a scope takes only blocks of that scope:
 *
 *   offer      who                  does
 *   ------------------------------------------------------------------------------
 *   0          its thread           puts a block there, then the scope (release)
 *   a scope    its thread           takes the block back: 0
 *   a scope    anybody else         BUSY (compare and swap, acquire)
 *   BUSY       the same one         takes the block, which is his own from then on; 0 (release)
 *
 * A thread that is at something long offers nothing. What it has is taken by those who are about to
 * sleep, as private jobs are (force.c): with the lock, the same part that it would have offered.
 *
 * A scope counts blocks, not tasks: one for each that is not in the list of the scope itself, and
 * one for the thread that began it, until that has nothing left to do but wait. Who has emptied a
 * block, and run its last task, takes one off; who takes the last one off sets the latch.
 *
 * Nothing is left behind: a thread that ends a list, or a computation that it took, runs what is in
 * its list, and takes back what it has offered from there. So each computation has a frame with
 * such a list, also one from outside: beneath it there may be another one, in the middle of a wait.
 *
 * What lies beneath may be in an isolated region. A scope that was begun outside of it is foreign
 * to it, and its tasks are not run there, though one of the region may have spawned them: they go
 * to the frame in which the thread came into the region. The scope cannot end before that does,
 * since the region is in it.
 */
#ifndef BLZ_PAR_TASKS_H
#define BLZ_PAR_TASKS_H

#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/biased_lock.h"
#include "base/lock.h"

#include "par/deque.h"
#include "tuning.h"

#include <blitz/par_scope.h>

struct worker;

typedef struct blz_par_tasks_ block_list;

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

/* Where a computation spawns into scopes of others. */
typedef struct task_frame {
    block_list list;
    struct task_frame *outer;
    uint32_t isolated; /* in how many regions is what lies beneath */
    bool is_root;      /* a computation from outside of the pool, which nobody in one waits for */
} task_frame;

/* Of a worker. */
typedef struct task_state {
    block_list *innermost; /* of all its lists; then `outer` */
    blz__biased_lock lock; /* of the lists; the worker is its owner */
    uint32_t kept;         /* tasks in the lists; others read it */
    uint32_t is_asked;     /* somebody wants tasks; others set it */
    block_list *cut;       /* which list another one, who has the lock, changes; or NULL */
    task_frame *frame;
    task_frame base; /* of a guest, and of who does nothing */
    task_block *spare;
    uint32_t nr_spare;
    block_list *offered_from;
    bool is_fifo;                       /* what is offered */
    bool tells;                         /* if it is taken back that was in vain (join.c) */
    blz__cache_aligned uintptr_t offer; /* 0, BUSY, or a scope */
    task_block *offered;
} task_state;

enum { OFFER_BUSY = 1 };

/* Of a pool: blocks that some workers have too many of. */
typedef struct task_pile {
    blz__cache_aligned blz__lock lock;
    task_block *first;
    uint32_t len;
} task_pile;

/* ---- spare.c: memory for blocks ---- */

/* NULL: there is none. */
task_block *blz__par_block_new(struct worker *w);

/* One that is empty, of any worker. */
void blz__par_block_put(struct worker *w, task_block *block);

/* [the pool is being freed] */
void blz__par_tasks_free(struct worker *w);
void blz__par_pile_free(blz_pool *pool);

/* ---- offers.c ---- */

/* The scope waits for that block, too. */
void blz__par_count_block(task_block *block);

/* One less for the scope, which may be gone afterwards. */
void blz__par_uncount(struct worker *w, blz_par_scope *scope);

/* Offers a block, if there is one and nothing is offered already. */
void blz__par_offer(struct worker *w);

/* The block that was offered from this list; NULL: none, or somebody has taken it. */
task_block *blz__par_take_back(struct worker *w, const block_list *list);

/* A block that any thread has offered; or one of that scope. NULL: none. */
task_block *blz__par_take_offer(struct worker *w, const blz_par_scope *scope);

/* Tasks that another one has not offered, or such of that scope. NULL: there are none, or no
 * memory. [about to sleep] */
task_block *blz__par_force_block(struct worker *w, struct worker *victim,
                                 const blz_par_scope *scope);

/* ---- tasks.c ---- */

void blz__par_tasks_init(task_state *s, bool asymmetric_fences);

/* In a forked child, where a thread of the parent may have the lock for ever: panics if that was
 * changing the list. NULL: what is to be done changes none. */
void blz__par_tasks_in_child(struct worker *w, const block_list *list);

/* A list that the thread adds to its own, and takes away again when it is empty. */
void blz__par_list_begin(struct worker *w, block_list *list);
void blz__par_list_end(struct worker *w, block_list *list);

/* Around a computation that its thread has not begun by itself. The end runs what it left. */
void blz__par_frame_begin(struct worker *w, task_frame *frame, bool is_root);
void blz__par_frame_end(struct worker *w, task_frame *frame);

/* Runs what a guest has spawned into scopes of others. */
void blz__par_run_base(struct worker *w);

/* Runs what the thread that began the scope has of it. */
void blz__par_run_own(struct worker *w, blz_par_scope *scope);

/* Runs the tasks of a block, and what they spawn. */
void blz__par_run_block(struct worker *w, task_block *block);

#endif
