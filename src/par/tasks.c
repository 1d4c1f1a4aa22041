/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawning tasks, and running them (tasks.h). What others may take is in offers.c.
 *
 * A block in the middle of being run keeps its place in its list, and its count, until the task
 * that was taken from it has returned: that task may spawn into it again. Such a block is not given
 * away; of what is in it a part may be, in a block of its own.
 */
#include "par/pool.h"

#include "par/tasks_list.h"

#include <errno.h>

void blz__par_tasks_init(task_state *s)
{
    s->frame = &s->base;
    s->innermost = &s->base.list;
}

static void retire(worker *w, block_list *list, task_block *block)
{
    blz_par_scope *scope = block->scope;
    bool counted = block->counted;

    unlink_block(list, block);
    blz__par_block_put(w, block);
    if (counted)
        blz__par_uncount(w, scope);
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
        blz__par_count_block(block);
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

/* Who spawns may be at something long from now on. Of many tasks it is enough to add to the offer
 * now and then; whoever asks is about to take it. */
static inline void spend_fuel_on_task(worker *w, bool fifo)
{
    int32_t fuel = blz__load(&w->ring.own.fuel, RELAXED);

    spend_fuel(w);
    if (blz_likely(fuel > 0 && !w->is_solo) || fifo)
        return;
    if (fuel != PAR_FUEL_ASKED || w->looks < PAR_FIRST_LOOKS)
        blz__par_offer_spawned(w);
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
    spend_fuel_on_task(w, fifo);
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

/* Tasks that begin in their order come after the others, also after those that were offered. */
static task_block *next_block(worker *w, block_list *list)
{
    task_block *block;

    if (list->newest || !list->fifo_oldest || w->tasks.offered_from != list || w->tasks.is_fifo)
        return list->newest ? list->newest : list->fifo_oldest;
    block = blz__par_take_back(w, list);
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
            blz__par_offer_quietly(w);
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
        block = blz__par_take_back(w, list);
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
        block = blz__par_take_back(w, &scope->tasks);
        if (!block)
            break;
        block->counted = false;
        blz__fetch_sub(&scope->out, 1u, RELAXED); /* not the last: there is our own */
        link_block(&scope->tasks, block);
    }
}

void blz__par_run_block(worker *w, task_block *block)
{
    blz_pool *pool = w->pool;
    task_frame frame;
    uint64_t began, now;

    blz__par_fresh_fuel(w, false);
    began = w->looked_at;
    blz__par_frame_begin(w, &frame, false);
    link_block(&frame.list, block);
    blz__par_frame_end(w, &frame);
    now = blz__clock_ticks(&pool->clock);
    blz__par_judge(pool, now, now - began >= pool->small_ticks);
}
