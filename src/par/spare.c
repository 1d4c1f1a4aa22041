/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for blocks of tasks.
 *
 * Blocks that are empty go to the spare ones of the worker that emptied them. Where one worker
 * spawns and others run, they gather with the others, so they are passed on in bulk, by a pile. A
 * forked child leaves that alone: a thread of the parent may have had its lock.
 */
#include "par/pool.h"

enum { MAX_SPARE = 64, MAX_PILE = 1024 };

/* Takes up to a bulk of blocks from the pile. */
static void take_from_pile(worker *w)
{
    task_pile *pile = &w->pool->pile;

    if (blz__load(&pile->len, RELAXED) == 0 || pool_is_forked(w->pool))
        return;
    blz__lock_acquire(&pile->lock);
    while (pile->first && w->tasks.nr_spare < MAX_SPARE / 2) {
        task_block *block = pile->first;
        pile->first = block->older;
        block->older = w->tasks.spare;
        w->tasks.spare = block;
        w->tasks.nr_spare++;
        blz__store(&pile->len, blz__load(&pile->len, RELAXED) - 1, RELAXED);
    }
    blz__lock_release(&pile->lock);
}

/* A block from the spare ones. */
static task_block *pop_spare(task_state *s)
{
    task_block *block = s->spare;

    blz__plain_write(&s->spare);
    if (block) {
        s->spare = block->older;
        s->nr_spare--;
    }
    return block;
}

task_block *blz__par_block_new(worker *w)
{
    task_block *block;

    if (!w->tasks.spare)
        take_from_pile(w);
    block = pop_spare(&w->tasks);
    return block ? block : blz__alloc(&w->pool->allocator, sizeof *block, BLZ_CACHE_LINE);
}

static void free_block(blz_pool *pool, task_block *block)
{
    blz__free(&pool->allocator, block, sizeof *block, BLZ_CACHE_LINE);
}

/* Half of the spare blocks go to the others, or are freed. */
static void give_to_pile(worker *w)
{
    task_pile *pile = &w->pool->pile;
    bool full = blz__load(&pile->len, RELAXED) >= MAX_PILE || pool_is_forked(w->pool);
    task_block *block;

    if (!full)
        blz__lock_acquire(&pile->lock);
    while (w->tasks.nr_spare > MAX_SPARE / 2) {
        block = pop_spare(&w->tasks);
        if (full) {
            free_block(w->pool, block);
        } else {
            block->older = pile->first;
            pile->first = block;
            blz__store(&pile->len, blz__load(&pile->len, RELAXED) + 1, RELAXED);
        }
    }
    if (!full)
        blz__lock_release(&pile->lock);
}

void blz__par_block_put(worker *w, task_block *block)
{
    blz__plain_write(&w->tasks.spare);
    block->older = w->tasks.spare;
    w->tasks.spare = block;
    if (++w->tasks.nr_spare > MAX_SPARE)
        give_to_pile(w);
}

void blz__par_tasks_free(worker *w)
{
    task_block *block;

    while ((block = pop_spare(&w->tasks)))
        free_block(w->pool, block);
}

void blz__par_pile_free(blz_pool *pool)
{
    while (pool->pile.first) {
        task_block *block = pool->pile.first;
        pool->pile.first = block->older;
        free_block(pool, block);
    }
}
