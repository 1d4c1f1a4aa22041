/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawning tasks, and running them (tasks.h). What others may take is in offers.c.
 *
 * A block in the middle of being run keeps its place in its list, and its count, until the task
 * that was taken from it has returned: that task may spawn into it again. Such a block is not given
 * away; of what is in it a part may be, in a block of its own. So the scope of the block that is
 * being run stays, and of no other one in the list is that known without the lock.
 */
#include "par/tasks_list.h"

#include "base/panic.h"

#include <blitz/error.h>

void blz__par_tasks_init(task_state *s, bool asymmetric_fences)
{
    s->frame = &s->base;
    s->innermost = &s->base.list;
    blz__biased_lock_init(&s->lock, asymmetric_fences);
}

void blz__par_tasks_in_child(worker *w, const block_list *list)
{
    if (list && list == blz__load(&w->tasks.cut, RELAXED))
        blz__panic(PAR_CHILD_WAITS);
    blz__biased_lock_init(&w->tasks.lock, false); /* free; and it comes here each time */
}

void blz__par_list_begin(worker *w, block_list *list)
{
    bool locked = tasks_enter(w, NULL);

    list->outer = w->tasks.innermost;
    blz__plain_write(&w->tasks.innermost);
    w->tasks.innermost = list;
    tasks_leave(w, locked);
}

void blz__par_list_end(worker *w, block_list *list)
{
    bool locked = tasks_enter(w, NULL);

    blz__plain_write(&w->tasks.innermost);
    w->tasks.innermost = list->outer;
    tasks_leave(w, locked);
}

/* ---- spawning ---- */

/* The newest block of the list, if there is room in it for tasks of that scope. */
static inline task_block *block_with_room(block_list *list, const blz_par_scope *scope, bool fifo)
{
    task_block *block = *newest_of(list, fifo);

    return block && block->end < BLOCK_TASKS && block->scope == scope ? block : NULL;
}

static void link_new_block(worker *w, block_list *list, blz_par_scope *scope, task_block *block,
                           bool fifo)
{
    block->scope = scope;
    block->first = block->end = 0;
    block->fifo = fifo;
    block->counted = false;
    if (list != &scope->tasks)
        blz__par_count_block(block);
    link_block(&w->tasks, list, block);
}

/* False: no memory. */
static inline bool add_task(worker *w, block_list *list, blz_par_scope *scope, bool fifo,
                            par_task t)
{
    bool locked = tasks_enter(w, list);
    task_block *block = block_with_room(list, scope, fifo);

    if (blz_unlikely(!block)) {
        tasks_leave(w, locked); /* an allocator is not called under a lock */
        block = blz__par_block_new(w);
        if (!block)
            return false;
        locked = tasks_enter(w, list);
        link_new_block(w, list, scope, block, fifo);
    }
    blz__plain_write(&block->end);
    block->tasks[block->end++] = t;
    keep_tasks(&w->tasks, 1);
    tasks_leave(w, locked);
    return true;
}

/* Looks from time to time whether others need work, as a fork does; and when they say so. */
static inline void spend_fuel(worker *w)
{
    int32_t fuel = blz__load(&w->ring.own.fuel, RELAXED);
    bool is_asked = blz__load(&w->tasks.is_asked, RELAXED) && blz__load(&w->tasks.kept, RELAXED);

    if (blz_likely(fuel > 0 && !is_asked))
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

/*
 * Who is about to sleep has said so, by asking or in the latch of the scope; then comes a heavy
 * fence, with which this one pairs, and a last look for tasks. So either it sees this one, or we
 * see that it sleeps.
 */
static inline void fence_after_spawn(const worker *w)
{
    blz__fence_light_or_full(w->pool->sleep.asymmetric_fences);
}

static inline int spawn(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn, void *arg,
                        bool fifo)
{
    worker *w = worker_of(par);
    bool own = scope->owner == par && !scope->waiting;
    block_list *list = own ? &scope->tasks : list_for(w, scope);
    int32_t code = blz__load(&scope->code, RELAXED);

    if (blz_unlikely(code))
        return code;
    if (blz_unlikely(!add_task(w, list, scope, fifo, (par_task){fn, arg})))
        return -ENOMEM;
    fence_after_spawn(w);
    if (!own)
        latch_poke(&scope->latch); /* the scope stays: we are in it */
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

/* Tasks that begin in their order come after the others, also after those that were offered. */
static task_block *next_block(worker *w, block_list *list)
{
    task_block *block;

    if (list->newest || !list->fifo_oldest || w->tasks.offered_from != list || w->tasks.is_fifo)
        return list->newest ? list->newest : list->fifo_oldest;
    block = blz__par_take_back(w, list);
    if (!block)
        return list->fifo_oldest;
    link_block(&w->tasks, list, block);
    return block;
}

/* The next task of the block, which is not empty. */
static par_task take_task(task_state *s, block_list *list, task_block *block)
{
    par_task t;

    blz__plain_write(&block->end);
    t = block->tasks[block->fifo ? block->first++ : --block->end];
    if (block->first == block->end)
        block->first = block->end = 0;
    keep_tasks(s, 0 - 1u);
    list->running = block;
    return t;
}

/* What there is to be done next in a list: run a task of the block; put that block away, which was
 * empty; let go of the scope first; nothing. */
typedef enum next_step { NEXT_TASK, NEXT_EMPTY, NEXT_SCOPE, NEXT_NONE } next_step;

static inline next_step take_next(worker *w, block_list *list, const blz_par_scope *current,
                                  task_block **found, par_task *t)
{
    bool locked = tasks_enter(w, list);
    task_block *block = next_block(w, list);
    next_step step = NEXT_TASK;

    if (!block) {
        list->running = NULL;
        step = NEXT_NONE;
    } else if (block->first == block->end) {
        unlink_block(&w->tasks, list, block);
        step = NEXT_EMPTY;
    } else if (current && block->scope != current) {
        step = NEXT_SCOPE;
    } else {
        *t = take_task(&w->tasks, list, block);
    }
    tasks_leave(w, locked);
    *found = block;
    return step;
}

/* It is in no list any more. */
static void retire(worker *w, struct current *c, task_block *block)
{
    blz_par_scope *scope = block->scope;
    bool counted = block->counted;

    if (scope == c->scope) /* it may be the last one */
        change_scope(w, c, NULL);
    blz__par_block_put(w, block);
    if (counted)
        blz__par_uncount(w, scope);
}

/* Runs all, and what they spawn here. */
static void run_list(worker *w, block_list *list)
{
    uint32_t isolated = w->isolated;
    struct current c = {.claimed = false};
    next_step step;
    task_block *block;
    par_task t;

    while ((step = take_next(w, list, c.scope, &block, &t)) != NEXT_NONE) {
        if (blz_likely(step == NEXT_TASK)) {
            if (block->scope != c.scope)
                change_scope(w, &c, block->scope);
            spend_fuel(w); /* from here on others may be given what is left */
            run_task(w, block->scope, t);
        } else if (step == NEXT_EMPTY) {
            retire(w, &c, block);
        } else {
            change_scope(w, &c, NULL);
        }
    }
    if (isolated != w->isolated)
        blz__par_isolate(isolated);
}

/* Puts a block into the list, where others may take from it by force. Whoever waits for its scope
 * may have seen neither the offer nor this. */
static void add_block(worker *w, block_list *list, task_block *block)
{
    bool locked = tasks_enter(w, list);

    link_block(&w->tasks, list, block);
    blz__par_sleep_post(&w->pool->sleep, 0); /* its fence */
    latch_poke(&block->scope->latch);        /* the scope stays while we have the lock */
    tasks_leave(w, locked);
}

void blz__par_frame_begin(worker *w, task_frame *frame, bool is_root)
{
    *frame = (task_frame){.outer = w->tasks.frame, .isolated = w->isolated, .is_root = is_root};
    blz__par_list_begin(w, &frame->list);
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
        add_block(w, list, block);
    }
}

void blz__par_frame_end(worker *w, task_frame *frame)
{
    run_all(w, &frame->list);
    blz__par_list_end(w, &frame->list);
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
        add_block(w, &scope->tasks, block);
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
    add_block(w, &frame.list, block);
    blz__par_frame_end(w, &frame);
    now = blz__clock_ticks(&pool->clock);
    blz__par_judge(pool, now, now - began >= pool->small_ticks);
}
