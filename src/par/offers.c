/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread offers others of its tasks (tasks.h): which block, or which part of the one that it
 * is at work on; what is added to it later; and who gets it.
 *
 * An offer is made by its thread alone, and there is one at a time. Its word says who has the
 * block: whoever moves it away from the scope, the thread itself or another one, has it from then
 * on.
 */
#include "par/pool.h"

#include "par/tasks_list.h"

#include <string.h>

/* ---- what a scope counts ---- */

void blz__par_count_block(task_block *block)
{
    block->counted = true;
    /* Relaxed: the scope has not ended, since whoever counts is in it; what follows, the offer,
     * is a release. */
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

/* ---- what to offer ---- */

/* The oldest that is not being run; or a part of the one that is. */
static task_block *oldest_with_tasks(const block_list *list, task_block *block)
{
    task_block *running = NULL;

    for (; block; block = block->newer) {
        if (block->first == block->end)
            continue;
        if (block != list->running)
            return block;
        running = block;
    }
    return running;
}

static task_block *block_to_share(const block_list *list)
{
    task_block *block = oldest_with_tasks(list, list->oldest);

    return block ? block : oldest_with_tasks(list, list->fifo_oldest);
}

/* The older or the newer half of the tasks of a block. NULL: no memory. */
static task_block *split(worker *w, task_block *from, bool newer)
{
    uint32_t count = (from->end - from->first + 1) / 2;
    task_block *block = blz__par_block_new(w);
    const par_task *half = from->tasks + (newer ? from->end - count : from->first);

    if (!block)
        return NULL;
    block->scope = from->scope;
    block->fifo = from->fifo;
    block->first = 0;
    blz__plain_write(&block->end);
    block->end = count;
    memcpy(block->tasks, half, count * sizeof *half);
    if (newer)
        from->end -= count;
    else
        from->first += count;
    blz__par_count_block(block);
    return block;
}

/*
 * A block that others may have; one that this thread is at work on is divided. What is offered
 * quietly is likely to be taken back, when there is nothing else left: of tasks that begin in their
 * order that must be the last ones.
 */
static task_block *cut(worker *w, block_list *list, bool quietly)
{
    task_block *block = block_to_share(list), *newest;

    if (!block)
        return NULL;
    newest = *newest_of(list, block->fifo);
    if (block->fifo && quietly && newest->first != newest->end)
        return split(w, newest, true);
    if (block == list->running || block == newest)
        return split(w, block, false);
    unlink_block(list, block);
    if (!block->counted)
        blz__par_count_block(block);
    return block;
}

/* The outermost list that has something. */
static block_list *list_to_share(const worker *w)
{
    enum { MAX_DEPTH = 256 };
    block_list *found = NULL, *list = w->tasks.innermost;

    for (int depth = 0; list && depth < MAX_DEPTH; depth++, list = list->outer)
        if (block_to_share(list))
            found = list;
    return found;
}

/* ---- offering ---- */

/* Who sleeps is woken for what is offered, if it must be. */
static void tell(worker *w)
{
    w->tasks.is_quiet = false;
    w->tasks.tells |= blz__par_sleep_post(&w->pool->sleep, 1) || w->looks <= 1;
}

static void show(worker *w, block_list *list, task_block *block, bool quietly)
{
    w->tasks.offered_from = list;
    w->tasks.is_quiet = true;
    w->tasks.tells = false;
    w->tasks.is_fifo = block->fifo;
    blz__plain_write(&w->tasks.offered);
    w->tasks.offered = block;
    /* release: pairs with the acquire in take_from */
    blz__store(&w->tasks.offer, (uintptr_t)block->scope, RELEASE);
    par_count(w->stats.published);
    if (!quietly)
        tell(w);
}

/* Who waits for the scope is asleep, perhaps, and would like to have the block. */
static void show_and_tell(worker *w, block_list *list, task_block *block)
{
    blz_par_scope *scope = block->scope;

    blz__fetch_add(&scope->out, 1u, RELAXED); /* it stays until it is told */
    show(w, list, block, false);
    latch_poke(&scope->latch); /* after the fence of the post: see help.h */
    blz__par_uncount(w, scope);
}

/* False: there is nothing to offer. */
static bool offer(worker *w, bool quietly)
{
    block_list *list;
    task_block *block;

    if (blz__load(&w->tasks.offer, ACQUIRE)) { /* pairs with the release in take_from */
        if (w->tasks.is_quiet && !quietly)
            tell(w);
        return true;
    }
    list = list_to_share(w);
    block = list ? cut(w, list, quietly) : NULL;
    if (!block)
        return false;
    if (block->scope->owner == &w->ring.own)
        show(w, list, block, quietly);
    else
        show_and_tell(w, list, block);
    return true;
}

void blz__par_offer(worker *w)
{
    offer(w, false);
}

void blz__par_offer_quietly(worker *w)
{
    offer(w, true);
}

/* ---- adding to an offer ---- */

/* The newest tasks of the list that was offered from, if they are of the scope of the offer. */
static task_block *block_to_add(const worker *w, uintptr_t offer)
{
    task_block *block = w->tasks.offered_from ? w->tasks.offered_from->newest : NULL;

    if (!block || w->tasks.is_fifo || block->first == block->end)
        return NULL;
    return (uintptr_t)block->scope == offer ? block : NULL;
}

static void move_tasks(task_block *to, task_block *from)
{
    uint32_t count = from->end - from->first, room = BLOCK_TASKS - to->end;

    count = count < room ? count : room;
    blz__plain_write(&to->end);
    memcpy(to->tasks + to->end, from->tasks + from->first, count * sizeof *to->tasks);
    to->end += count;
    blz__plain_write(&from->end);
    from->first += count;
    if (from->first == from->end)
        from->first = from->end = 0;
}

/* Others see no offer for a moment, and may go to sleep then. So who must look again is told.
 * False: somebody has taken it. */
static bool add_to_offer(worker *w, uintptr_t offer, task_block *more)
{
    blz_par_scope *scope = more->scope; /* which stays: `more` is in our list, and counted */

    /* Relaxed: what is there is our own. */
    if (!blz__cas(&w->tasks.offer, &offer, (uintptr_t)OFFER_BUSY, RELAXED, RELAXED))
        return false;
    move_tasks(w->tasks.offered, more);
    blz__store(&w->tasks.offer, (uintptr_t)scope, RELEASE); /* pairs with that of take_from */
    if (!w->tasks.is_quiet)
        tell(w);
    if (scope->owner != &w->ring.own)
        latch_poke(&scope->latch); /* after the fence of the post: see help.h */
    return true;
}

/* What is offered, when nobody is about to take it. */
static uintptr_t settled_offer(const worker *w)
{
    uintptr_t there;

    while ((there = blz__load(&w->tasks.offer, ACQUIRE)) == OFFER_BUSY) /* that of take_from */
        blz__spin_hint();
    return there;
}

static bool has_only_fifo(const worker *w)
{
    const block_list *list = list_to_share(w);

    return list && block_to_share(list)->fifo;
}

void blz__par_offer_spawned(worker *w)
{
    uintptr_t there;
    task_block *more;

    if (pool_nr_in_use(w->pool) == 1 || pool_is_forked(w->pool))
        return;
    for (;;) {
        there = settled_offer(w);
        more = there ? block_to_add(w, there) : NULL;
        if (more && add_to_offer(w, there, more))
            return;
        if (there && !more)
            return;
        if (!there && (has_only_fifo(w) || !offer(w, w->is_solo)))
            return;
    }
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
