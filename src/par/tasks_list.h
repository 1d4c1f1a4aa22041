/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of blocks of tasks: two in one, for tasks of which the last begins first, and of which the
 * first does. All of this is under the lock of the thread that has the list.
 */
#ifndef BLZ_PAR_TASKS_LIST_H
#define BLZ_PAR_TASKS_LIST_H

#include "base/assert.h"
#include "par/pool.h"

/* ---- the lock ---- */

/* For what is to be done with the list, or with none. Gives what tasks_leave wants back. [its
 * thread] */
static inline bool tasks_enter(worker *w, const block_list *list)
{
    if (blz_unlikely(blz__load(&w->tasks.lock.shared, RELAXED)) && pool_is_forked(w->pool))
        blz__par_tasks_in_child(w, list);
    return blz__biased_lock_enter(&w->tasks.lock);
}

static inline void tasks_leave(worker *w, bool locked)
{
    blz__biased_lock_leave(&w->tasks.lock, locked);
}

/* ---- lists ---- */

static inline uint32_t block_nr_tasks(const task_block *block)
{
    return block->end - block->first;
}

/* Others look at it without the lock: they see no more than that there is something. */
static inline void keep_tasks(task_state *s, uint32_t more)
{
    BLZ_ASSERT(blz__biased_lock_is_held(&s->lock));
    blz__store(&s->kept, blz__load(&s->kept, RELAXED) + more, RELAXED);
}

static inline void **oldest_of(block_list *list, bool fifo)
{
    return fifo ? &list->fifo_oldest : &list->oldest;
}

static inline void **newest_of(block_list *list, bool fifo)
{
    return fifo ? &list->fifo_newest : &list->newest;
}

/* As the newest. */
static inline void link_block(task_state *s, block_list *list, task_block *block)
{
    task_block *before = *newest_of(list, block->fifo);

    BLZ_ASSERT(blz__biased_lock_is_held(&s->lock));
    BLZ_ASSERT(block->first <= block->end);
    blz__plain_write(list);
    block->older = before;
    block->newer = NULL;
    if (before)
        before->newer = block;
    else
        *oldest_of(list, block->fifo) = block;
    *newest_of(list, block->fifo) = block;
    keep_tasks(s, block_nr_tasks(block));
}

static inline void unlink_block(task_state *s, block_list *list, task_block *block)
{
    BLZ_ASSERT(blz__biased_lock_is_held(&s->lock));
    BLZ_ASSERT(block->older ? block->older->newer == block
                            : *oldest_of(list, block->fifo) == block);
    BLZ_ASSERT(block->newer ? block->newer->older == block
                            : *newest_of(list, block->fifo) == block);
    blz__plain_write(list);
    if (block->older)
        block->older->newer = block->newer;
    else
        *oldest_of(list, block->fifo) = block->newer;
    if (block->newer)
        block->newer->older = block->older;
    else
        *newest_of(list, block->fifo) = block->older;
    keep_tasks(s, 0 - block_nr_tasks(block));
}

#endif
