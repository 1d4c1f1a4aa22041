/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of blocks of tasks: two in one, for tasks of which the last begins first, and of which the
 * first does. A list is its thread's own.
 */
#ifndef BLZ_PAR_TASKS_LIST_H
#define BLZ_PAR_TASKS_LIST_H

#include "par/tasks.h"

static inline void **oldest_of(block_list *list, bool fifo)
{
    return fifo ? &list->fifo_oldest : &list->oldest;
}

static inline void **newest_of(block_list *list, bool fifo)
{
    return fifo ? &list->fifo_newest : &list->newest;
}

/* As the newest. */
static inline void link_block(block_list *list, task_block *block)
{
    task_block *before = *newest_of(list, block->fifo);

    block->older = before;
    block->newer = NULL;
    if (before)
        before->newer = block;
    else
        *oldest_of(list, block->fifo) = block;
    *newest_of(list, block->fifo) = block;
}

static inline void unlink_block(block_list *list, task_block *block)
{
    if (block->older)
        block->older->newer = block->newer;
    else
        *oldest_of(list, block->fifo) = block->newer;
    if (block->newer)
        block->newer->older = block->older;
    else
        *newest_of(list, block->fifo) = block->older;
}

#endif
