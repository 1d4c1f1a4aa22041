/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of tasks, and who has them (tasks.h).
 *
 * A block in the middle of being run keeps its place in its list, and its count, until the task
 * that was taken from it has returned: that task may spawn into it again. Such a block is not given
 * away; of what is in it a part may be, in a block of its own.
 */
#include "par/pool.h"

#include "par/tasks_list.h"

#include <errno.h>
#include <string.h>

void blz__par_tasks_init(task_state *s)
{
    s->frame = &s->base;
    s->innermost = &s->base.list;
}

/* ---- what a scope counts ---- */

static void count_block(task_block *block)
{
    block->counted = true;
    /* Relaxed: the scope has not ended, since whoever counts is in it; what follows, the offer,
     * is a release. */
    blz__fetch_add(&block->scope->out, 1u, RELAXED);
}

/* One less for the scope, which may be gone afterwards. */
static void uncount(worker *w, blz_par_scope *scope)
{
    uint32_t owner = worker_of(scope->owner)->index;

    /* release: pairs with the acquire of the last one, here or in blz_par_scope_end, by which what
     * all tasks wrote comes to the owner */
    if (blz__fetch_sub(&scope->out, 1u, ACQ_REL) == 1 && latch_set(&scope->latch))
        blz__par_sleep_wake(&w->pool->sleep, owner);
}

static void retire(worker *w, block_list *list, task_block *block)
{
    blz_par_scope *scope = block->scope;
    bool counted = block->counted;

    unlink_block(list, block);
    blz__par_block_put(w, block);
    if (counted)
        uncount(w, scope);
}

/* ---- spawning ---- */

static task_block *block_for(worker *w, block_list *list, blz_par_scope *scope, bool fifo)
{
    task_block *block = blz__par_block_new(w);

    if (!block)
        return NULL;
    block->scope = scope;
    block->first = block->end = 0;
    block->fifo = fifo;
    block->counted = false;
    if (list != &scope->tasks)
        count_block(block);
    link_block(list, block);
    return block;
}

/* As a fork does: from time to time it looks whether others need work. */
static inline void spend_fuel(worker *w)
{
    int32_t fuel = blz__load(&w->ring.own.fuel, RELAXED);

    if (blz_likely(fuel > 0))
        blz__store(&w->ring.own.fuel, fuel - 1, RELAXED);
    else
        blz__par_look(w);
}

/* The list of the innermost frame where a task of that scope may run: see tasks.h. */
static block_list *list_for(const worker *w, const blz_par_scope *scope)
{
    task_frame *frame = w->tasks.frame;

    while (blz_unlikely(frame->isolated > scope->isolated))
        frame = frame->outer;
    return &frame->list;
}

static inline int spawn(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn, void *arg,
                        bool fifo)
{
    worker *w = worker_of(par);
    bool own = scope->owner == par && !scope->waiting;
    block_list *list = own ? &scope->tasks : list_for(w, scope);
    task_block *block = *newest_of(list, fifo);
    int32_t code = blz__load(&scope->code, RELAXED);

    if (blz_unlikely(code))
        return code;
    if (blz_unlikely(!block || block->end == BLOCK_TASKS || block->scope != scope)) {
        block = block_for(w, list, scope, fifo);
        if (!block)
            return -ENOMEM;
    }
    blz__plain_write(&block->end);
    block->tasks[block->end++] = (par_task){fn, arg};
    spend_fuel(w);
    return 0;
}

int blz_par_spawn(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn, void *arg)
{
    return spawn(par, scope, fn, arg, false);
}

int blz_par_spawn_fifo(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn, void *arg)
{
    return spawn(par, scope, fn, arg, true);
}

/* ---- running ---- */

static void offer(worker *w, bool quietly);

static void run_task(worker *w, blz_par_scope *scope, par_task t)
{
    int rc;

    if (blz_unlikely(blz__load(&scope->code, RELAXED)))
        return;
    rc = t.fn(&w->ring.own, t.arg);
    if (blz_unlikely(rc < 0))
        blz_par_scope_cancel(scope, rc);
}

/* The scope whose tasks are being run; and the claim, if somebody else waits for it. */
struct current {
    blz_par_scope *scope;
    bool claimed;
    par_taken claim;
};

/* NULL: none. */
static void change_scope(worker *w, struct current *c, blz_par_scope *scope)
{
    if (c->claimed)
        blz__par_unclaim(w, &c->claim);
    c->scope = scope;
    c->claimed = scope && scope->owner != &w->ring.own;
    if (c->claimed)
        blz__par_claim(w, &c->claim, &scope->claim, &scope->latch);
    if (scope && scope->isolated != w->isolated)
        blz__par_isolate(scope->isolated);
}

/* The next task of the block, which is not empty. */
static par_task take_task(block_list *list, task_block *block)
{
    par_task t;

    blz__plain_write(&block->end);
    t = block->tasks[block->fifo ? block->first++ : --block->end];
    if (block->first == block->end)
        block->first = block->end = 0;
    list->running = block;
    return t;
}

/* The block that was offered from this list, if nobody has taken it. */
static task_block *take_back(worker *w, const block_list *list)
{
    uintptr_t offer = blz__load(&w->tasks.offer, RELAXED);

    if (w->tasks.offered_from != list)
        return NULL;
    w->tasks.offered_from = NULL;
    if (!offer || offer == OFFER_BUSY)
        return NULL;
    /* Relaxed: what is there is our own. */
    return blz__cas(&w->tasks.offer, &offer, 0, RELAXED, RELAXED) ? w->tasks.offered : NULL;
}

/* Tasks that begin in their order come after the others, also after those that were offered. */
static task_block *next_block(worker *w, block_list *list)
{
    task_block *block;

    if (list->newest || !list->fifo_oldest || w->tasks.offered_from != list || w->tasks.is_fifo)
        return list->newest ? list->newest : list->fifo_oldest;
    block = take_back(w, list);
    if (!block)
        return list->fifo_oldest;
    link_block(list, block);
    return block;
}

/* Whether another thread has taken what was offered from the list the last time. */
static inline bool offer_was_taken(const worker *w, const block_list *list)
{
    return w->tasks.offered_from == list && !blz__load(&w->tasks.offer, RELAXED);
}

/*
 * Runs all, and what they spawn here. The first may take long, and so may any that is run while
 * others do the rest: before it an offer is made that wakes nobody, for who is awake, or wakes up
 * to look after what is not shown (force.c).
 */
static void run_list(worker *w, block_list *list)
{
    uint32_t isolated = w->isolated;
    struct current c = {.claimed = false};
    bool is_first = true;
    task_block *block;
    par_task t;

    while ((block = next_block(w, list))) {
        if (block->first == block->end) {
            if (block->scope == c.scope) /* it may be the last one */
                change_scope(w, &c, NULL);
            retire(w, list, block);
            continue;
        }
        if (block->scope != c.scope)
            change_scope(w, &c, block->scope);
        t = take_task(list, block);
        spend_fuel(w); /* from here on others may be given what is left */
        if ((is_first || offer_was_taken(w, list)) && pool_nr_in_use(w->pool) > 1)
            offer(w, true);
        is_first = false;
        run_task(w, block->scope, t);
    }
    list->running = NULL;
    if (isolated != w->isolated)
        blz__par_isolate(isolated);
}

void blz__par_frame_begin(worker *w, task_frame *frame, bool is_root)
{
    *frame = (task_frame){.list.outer = w->tasks.innermost,
                          .outer = w->tasks.frame,
                          .isolated = w->isolated,
                          .is_root = is_root};
    w->tasks.innermost = &frame->list;
    w->tasks.frame = frame;
}

static void run_all(worker *w, block_list *list)
{
    task_block *block;

    for (;;) {
        run_list(w, list);
        block = take_back(w, list);
        if (!block)
            break;
        link_block(list, block);
    }
}

void blz__par_frame_end(worker *w, task_frame *frame)
{
    run_all(w, &frame->list);
    w->tasks.innermost = frame->list.outer;
    w->tasks.frame = frame->outer;
}

void blz__par_run_base(worker *w)
{
    task_frame *base = &w->tasks.base;

    if (w->tasks.frame == base && !base->list.running)
        run_all(w, &base->list);
}

void blz__par_run_own(worker *w, blz_par_scope *scope)
{
    task_block *block;

    for (;;) {
        run_list(w, &scope->tasks);
        block = take_back(w, &scope->tasks);
        if (!block)
            break;
        block->counted = false;
        blz__fetch_sub(&scope->out, 1u, RELAXED); /* not the last: there is our own */
        link_block(&scope->tasks, block);
    }
}

void blz__par_run_block(worker *w, task_block *block)
{
    task_frame frame;

    blz__par_fresh_fuel(w, false);
    blz__par_frame_begin(w, &frame, false);
    link_block(&frame.list, block);
    blz__par_frame_end(w, &frame);
}

/* ---- offers ---- */

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
    count_block(block);
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
        count_block(block);
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

static void show(worker *w, block_list *list, task_block *block, bool quietly)
{
    w->tasks.offered_from = list;
    w->tasks.is_quiet = quietly;
    w->tasks.is_fifo = block->fifo;
    blz__plain_write(&w->tasks.offered);
    w->tasks.offered = block;
    /* release: pairs with the acquire in take_from */
    blz__store(&w->tasks.offer, (uintptr_t)block->scope, RELEASE);
    par_count(w->stats.published);
    if (!quietly)
        blz__par_sleep_post(&w->pool->sleep, 1);
}

/* Who waits for the scope is asleep, perhaps, and would like to have the block. */
static void show_and_tell(worker *w, block_list *list, task_block *block)
{
    blz_par_scope *scope = block->scope;

    blz__fetch_add(&scope->out, 1u, RELAXED); /* it stays until it is told */
    show(w, list, block, false);
    latch_poke(&scope->latch); /* after the fence of the post: see help.h */
    uncount(w, scope);
}

static void offer(worker *w, bool quietly)
{
    block_list *list;
    task_block *block;

    if (blz__load(&w->tasks.offer, ACQUIRE)) { /* pairs with the release in take_from */
        if (w->tasks.is_quiet && !quietly) {
            w->tasks.is_quiet = false;
            blz__par_sleep_post(&w->pool->sleep, 1);
        }
        return;
    }
    list = list_to_share(w);
    block = list ? cut(w, list, quietly) : NULL;
    if (!block)
        return;
    if (block->scope->owner == &w->ring.own)
        show(w, list, block, quietly);
    else
        show_and_tell(w, list, block);
}

void blz__par_offer(worker *w)
{
    offer(w, false);
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
