/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others get of the tasks of a thread (tasks.h): which block, or which part of the one that it
 * is at work on; offered by the thread, or taken by force.
 *
 * An offer is made by its thread alone, and there is one at a time. Its word says who has the
 * block: whoever moves it away from the scope, the thread itself or another one, has it from then
 * on.
 */
#include "par/tasks_list.h"

#include <string.h>

/* ---- what a scope counts ---- */

void blz__par_count_block(task_block *block)
{
    block->counted = true;
    /* Relaxed: the scope has not ended, since whoever counts is in it, or has the lock of one who
     * is; what follows, the offer or the end of the lock, is a release. */
    blz__fetch_add(&block->scope->out, 1u, RELAXED);
}

void blz__par_uncount(worker *w, blz_par_scope *scope)
{
    uint32_t owner = worker_of(scope->owner)->index;

    /* release: pairs with the acquire of the last one, here or in blz_par_scope_end, by which what
     * all tasks wrote comes to the owner */
    if (blz__fetch_sub(&scope->out, 1u, ACQ_REL) == 1 && latch_set(&scope->latch))
        blz__par_sleep_wake(&w->pool->sleep, owner);
}

/* ---- what others may have ---- */

/* So many blocks are looked at for those of one scope. */
enum { MAX_BLOCKS = 64 };

/* The oldest that is not being run, or the one that is. NULL: none has tasks, or such of that scope
 * if it is said. */
static task_block *oldest_with_tasks(const block_list *list, task_block *block,
                                     const blz_par_scope *scope)
{
    task_block *running = NULL;

    if (scope && block && block->scope != scope && list == &block->scope->tasks)
        return NULL; /* all of another one */
    for (int i = 0; block && (!scope || i < MAX_BLOCKS); i++, block = block->newer) {
        if (block->first == block->end || (scope && block->scope != scope))
            continue;
        if (block != list->running)
            return block;
        running = block;
    }
    return running;
}

static task_block *block_to_share(const block_list *list, const blz_par_scope *scope)
{
    task_block *block = oldest_with_tasks(list, list->oldest, scope);

    return block ? block : oldest_with_tasks(list, list->fifo_oldest, scope);
}

/* The outermost list that has something, of so many. */
static block_list *list_to_share(const task_state *s, const blz_par_scope *scope, uint32_t most)
{
    block_list *found = NULL, *list = s->innermost;

    blz__plain_read(&s->innermost);
    for (uint32_t depth = 0; list && depth < most; depth++, list = list->outer) {
        blz__plain_read(list);
        if (block_to_share(list, scope))
            found = list;
    }
    return found;
}

/* Moves the older half of the tasks of a block to another one. */
static void split(task_state *s, task_block *from, task_block *half)
{
    uint32_t count = (block_nr_tasks(from) + 1) / 2;

    half->scope = from->scope;
    half->fifo = from->fifo;
    half->first = 0;
    blz__plain_write(&half->end);
    half->end = count;
    blz__plain_write(&from->end);
    memcpy(half->tasks, from->tasks + from->first, count * sizeof *half->tasks);
    from->first += count;
    if (from->first == from->end)
        from->first = from->end = 0;
    keep_tasks(s, 0 - count);
    blz__par_count_block(half);
}

/* A block of the list, which has some. One that its thread is at work on, or adds to, is divided:
 * then it is `fresh` that is given away. */
static task_block *cut(task_state *s, block_list *list, const blz_par_scope *scope,
                       task_block *fresh)
{
    task_block *block = block_to_share(list, scope);

    if (block == list->running || block == *newest_of(list, block->fifo)) {
        split(s, block, fresh);
        return fresh;
    }
    unlink_block(s, list, block);
    if (!block->counted)
        blz__par_count_block(block);
    return block;
}

/* ---- offering ---- */

static void show(worker *w, task_block *block)
{
    w->tasks.is_fifo = block->fifo;
    blz__plain_write(&w->tasks.offered);
    w->tasks.offered = block;
    /* release: pairs with the acquire in take_from */
    blz__store(&w->tasks.offer, (uintptr_t)block->scope, RELEASE);
    par_count(w->stats.published);
    /* Who sleeps is woken for it, if it must be. */
    w->tasks.tells = blz__par_sleep_post(&w->pool->sleep, 1) || w->looks <= 1;
}

/* Who waits for the scope is asleep, perhaps, and would like to have the block. */
static void show_and_tell(worker *w, task_block *block)
{
    blz_par_scope *scope = block->scope;

    blz__fetch_add(&scope->out, 1u, RELAXED); /* it stays until it is told */
    show(w, block);
    latch_poke(&scope->latch); /* after the fence of the post: see help.h */
    blz__par_uncount(w, scope);
}

/* What the thread gives away of its own, and remembers where it is from. */
static task_block *cut_own(worker *w, task_block *fresh)
{
    enum { MAX_DEPTH = 256 }; /* often: what lies deeper is taken by force */
    bool locked = tasks_enter(w, NULL);
    block_list *list = list_to_share(&w->tasks, NULL, MAX_DEPTH);
    task_block *block = list ? cut(&w->tasks, list, NULL, fresh) : NULL;

    if (block)
        w->tasks.offered_from = list;
    tasks_leave(w, locked);
    return block;
}

void blz__par_offer(worker *w)
{
    task_block *fresh, *block;

    if (!blz__load(&w->tasks.kept, RELAXED))
        return;
    if (blz__load(&w->tasks.is_asked, RELAXED)) /* who asks from now on wants the next ones */
        blz__store(&w->tasks.is_asked, 0u, RELAXED);
    /* acquire: pairs with the release in take_from */
    if (blz__load(&w->tasks.offer, ACQUIRE))
        return;
    fresh = blz__par_block_new(w);
    block = fresh ? cut_own(w, fresh) : NULL;
    if (fresh && block != fresh)
        blz__par_block_put(w, fresh);
    if (!block) {
        blz__par_ask_for_tasks(w); /* all was taken meanwhile: it is the next ones that they want */
        return;
    }
    if (block->scope->owner == &w->ring.own)
        show(w, block);
    else
        show_and_tell(w, block);
}

/* ---- taking ---- */

task_block *blz__par_take_back(worker *w, const block_list *list)
{
    uintptr_t offer = blz__load(&w->tasks.offer, RELAXED);

    if (w->tasks.offered_from != list)
        return NULL;
    w->tasks.offered_from = NULL;
    if (!offer || offer == OFFER_BUSY)
        return NULL;
    /* Relaxed: what is there is our own. */
    if (!blz__cas(&w->tasks.offer, &offer, 0, RELAXED, RELAXED))
        return NULL;
    if (w->tasks.tells) /* nobody has come in time */
        blz__par_judge(w->pool, blz__clock_ticks(&w->pool->clock), false);
    return w->tasks.offered;
}

/* What is offered there, if it is of that scope, or whatever it is. NULL: nothing. */
static task_block *take_from(task_state *s, const blz_par_scope *scope)
{
    uintptr_t offer = blz__load(&s->offer, RELAXED);
    task_block *block;

    if (!offer || offer == OFFER_BUSY || (scope && offer != (uintptr_t)scope))
        return NULL;
    /* acquire: pairs with the release in show */
    if (!blz__cas(&s->offer, &offer, (uintptr_t)OFFER_BUSY, ACQUIRE, RELAXED))
        return NULL;
    blz__plain_read(&s->offered);
    block = s->offered;
    blz__store(&s->offer, (uintptr_t)0, RELEASE); /* pairs with the acquire in blz__par_offer */
    return block;
}

task_block *blz__par_take_offer(worker *w, const blz_par_scope *scope)
{
    blz_pool *pool = w->pool;
    uint32_t count = pool_nr_in_use(pool), start = w->index;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = start + i;
        task_block *block = take_from(&pool->workers[at < count ? at : at - count].tasks, scope);

        if (block)
            return block;
    }
    return NULL;
}

/* ---- taking by force ---- */

task_block *blz__par_force_block(worker *w, worker *victim, const blz_par_scope *scope)
{
    task_state *s = &victim->tasks;
    task_block *fresh, *block;
    block_list *list;

    if (!blz__load(&s->kept, RELAXED))
        return NULL;
    fresh = blz__par_block_new(w);
    if (!fresh) {
        w->is_unheard = true; /* it looks again */
        return NULL;
    }
    blz__biased_lock_enter_other(&s->lock);
    list = list_to_share(s, scope, UINT32_MAX);
    blz__store(&s->cut, list, RELAXED); /* a child of the process reads it */
    blz__fence_light();
    block = list ? cut(s, list, scope, fresh) : NULL;
    blz__fence_light();
    blz__store(&s->cut, NULL, RELAXED);
    blz__biased_lock_leave_other(&s->lock);
    if (block != fresh)
        blz__par_block_put(w, fresh);
    if (block)
        par_count(w->stats.published);
    return block;
}
