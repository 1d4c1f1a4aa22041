/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes. A scope knows its children through links at the end of their blocks: a list of the live
 * ones, and a queue of those that have ended, in the order in which they did. Children end on any
 * worker, so both are under a small lock. The child's join slot holds a hook that moves it from one
 * to the other and wakes the parent.
 *
 * The scope's reference to a child (its "handle") goes to whoever takes it from the queue, or is
 * dropped by blz_scope_join. With BLZ_SCOPE_DISCARD there is no queue: a child that ends drops the
 * reference itself, and the parent is woken by the last one only.
 *
 * The memory of the scope is the parent's frame, so the last thing that a child does with the
 * scope is to release its lock; the waker is taken out before and woken after. The parent sees
 * live == 0 only under the lock.
 */
#include "task/task.h"

#include "base/assert.h"

#include <blitz/wait_info.h>

#include <string.h>

struct link {
    blz_scope *scope;
    blz_task *task;
    struct link *next, *prev;
    struct link *next_cancel; /* while the scope is being cancelled */
};

struct scope {
    blz__lock lock;
    uint32_t policy;
    struct link *live;
    struct link *ended, **ended_tail;
    size_t nr_live;
    int64_t failure; /* of the first child that failed */
    blz_waker waker; /* of the parent, while it waits */
};

/* cancelled: new children are cancelled too. Kept in the policy word. */
enum { POLICY_MASK = 0xff, CANCELLED = 0x100 };

_Static_assert(sizeof(struct scope) <= sizeof(blz_scope), "blz_scope has room");

static struct scope *scope_of(blz_scope *scope)
{
    return (struct scope *)(void *)scope->private_;
}

void blz_scope_init(blz_scope *scope, int policy)
{
    struct scope *s = scope_of(scope);

    memset(scope, 0, sizeof *scope);
    s->policy = (uint32_t)policy & POLICY_MASK;
    s->ended_tail = &s->ended;
}

size_t blz_scope_live(const blz_scope *scope)
{
    struct scope *s = scope_of((blz_scope *)(uintptr_t)scope);
    size_t live;

    blz__lock_acquire(&s->lock);
    live = s->nr_live;
    blz__lock_release(&s->lock);
    return live;
}

/* ---- children come ---- */

static size_t link_offset(size_t total)
{
    return (total + _Alignof(struct link) - 1) & ~(_Alignof(struct link) - 1);
}

size_t blz__scope_block_size(size_t total)
{
    return link_offset(total) + sizeof(struct link);
}

static void child_ended(void *data, blz_task *task);
static const struct join_hook_ops child_ops = {.complete = child_ended};

void blz__scope_adopt(blz_scope *scope, blz_task *task, size_t total, uint64_t state)
{
    struct scope *s = scope_of(scope);
    struct link *link = (void *)((char *)task + link_offset(total));

    *link = (struct link){.scope = scope, .task = task};
    blz__plain_write(&task->join);
    task->join = (blz_waker){link, &child_ops.waker};
    blz__lock_acquire(&s->lock);
    if (blz_unlikely(!s->ended_tail))
        blz__panic("`%s` was spawned into a scope without blz_scope_init", task->root->ops->name);
    state |= TASK_JOIN | (s->policy & CANCELLED ? TASK_CANCEL : 0);
    /* release: as for any new task. Before it is in the list: a sibling that fails cancels it. */
    blz__store(&task->state, state, RELEASE);
    link->next = s->live;
    if (s->live)
        s->live->prev = link;
    s->live = link;
    s->nr_live++;
    blz__lock_release(&s->lock);
}

static void unlink_live(struct scope *s, struct link *link)
{
    BLZ_ASSERT(s->nr_live > 0);
    BLZ_ASSERT(blz__lock_is_held(&s->lock));
    if (link->prev)
        link->prev->next = link->next;
    else
        s->live = link->next;
    if (link->next)
        link->next->prev = link->prev;
    s->nr_live--;
}

/* Under the lock: the parent's waker, for the caller to wake after it. */
static blz_waker take_waker(struct scope *s)
{
    blz_waker waker = s->waker;

    BLZ_ASSERT(blz__lock_is_held(&s->lock));
    s->waker = (blz_waker){NULL, NULL};
    return waker;
}

/* The parent may have seen this child, and wait for it alone. */
void blz__scope_disown(blz_scope *scope, blz_task *task)
{
    struct scope *s = scope_of(scope);
    blz_waker waker = {NULL, NULL};

    blz__lock_acquire(&s->lock);
    unlink_live(s, task->join.data);
    if (s->nr_live == 0)
        waker = take_waker(s);
    blz__lock_release(&s->lock);
    blz_waker_wake(&waker);
}

/* ---- children go ---- */

/*
 * Marks the scope cancelled and lists its live children, each with a reference, for cancel_listed.
 * Under the lock. Only the first cancellation lists any: later children are born cancelled.
 */
static struct link *list_for_cancel(struct scope *s)
{
    struct link *listed = NULL;

    BLZ_ASSERT(blz__lock_is_held(&s->lock));
    if (s->policy & CANCELLED)
        return NULL;
    s->policy |= CANCELLED;
    for (struct link *link = s->live; link; link = link->next) {
        blz_task_ref(link->task);
        link->next_cancel = listed;
        listed = link;
    }
    return listed;
}

/* Not under the lock: cancelling queues tasks and may wake threads. */
static void cancel_listed(struct link *link)
{
    while (link) {
        struct link *next = link->next_cancel;
        blz_task *task = link->task;
        blz_task_cancel(task);
        blz_task_unref(task);
        link = next;
    }
}

/* Under the lock. */
static void queue_ended(struct scope *s, struct link *link)
{
    BLZ_ASSERT(blz__lock_is_held(&s->lock));
    link->next = NULL;
    *s->ended_tail = link;
    s->ended_tail = &link->next;
}

/* The completer's hook, with a reference to the task in hand. */
static void child_ended(void *data, blz_task *task)
{
    struct link *link = data, *to_cancel = NULL;
    struct scope *s = scope_of(link->scope);
    int64_t result = task_result(task);
    blz_waker waker = {NULL, NULL};
    bool discard;

    blz__lock_acquire(&s->lock);
    unlink_live(s, link);
    discard = s->policy & BLZ_SCOPE_DISCARD;
    if (!discard)
        queue_ended(s, link);
    if (result < 0 && s->failure == 0) {
        s->failure = result;
        if (s->policy & BLZ_SCOPE_FAIL_FAST)
            to_cancel = list_for_cancel(s);
    }
    if (!discard || s->nr_live == 0)
        waker = take_waker(s);
    blz__lock_release(&s->lock);
    cancel_listed(to_cancel);
    if (discard)
        blz_task_unref(task);
    blz_waker_wake(&waker);
}

void blz_scope_cancel(blz_scope *scope)
{
    struct scope *s = scope_of(scope);
    struct link *to_cancel;

    blz__lock_acquire(&s->lock);
    to_cancel = list_for_cancel(s);
    blz__lock_release(&s->lock);
    cancel_listed(to_cancel);
}

/* ---- waiting ---- */

/* Under the lock. */
static struct link *take_ended(struct scope *s)
{
    struct link *link = s->ended;

    BLZ_ASSERT(blz__lock_is_held(&s->lock));
    if (link) {
        s->ended = link->next;
        if (!s->ended)
            s->ended_tail = &s->ended;
    }
    return link;
}

/* future.line; only blz_scope_next can be STOPPED */
enum { NEXT_FRESH, NEXT_WAITING, NEXT_STOPPED };

/* What became of an attempt to take a child that has ended. */
enum take { TAKE_CHILD, TAKE_NONE_LEFT, TAKE_STOPPED, TAKE_WAITS };

static enum take take_next(blz_scope_op *op, blz_handle *out, blz_cx *cx)
{
    struct scope *s = scope_of(op->scope);
    blz_waker unused = {NULL, NULL};
    struct link *link;
    bool more, wait;

    if (!blz_coop_take(cx))
        return TAKE_WAITS;
    blz__lock_acquire(&s->lock);
    link = take_ended(s);
    more = !link && s->nr_live > 0;
    wait = more && op->future.line != NEXT_STOPPED;
    if (!wait) {
        unused = take_waker(s);
    } else if (!s->waker.ops) {
        s->waker = blz_cx_waker(cx);
    }
    blz__lock_release(&s->lock);
    blz_waker_drop(&unused);
    if (wait) {
        op->future.line = NEXT_WAITING;
        blz_coop_give_back(cx);
        return TAKE_WAITS;
    }
    if (!link)
        return more ? TAKE_STOPPED : TAKE_NONE_LEFT;
    *out = (blz_handle){link->task, task_result(link->task)};
    return TAKE_CHILD;
}

static blz_poll next_poll(blz_future *future, blz_cx *cx)
{
    blz_scope_op *op = (blz_scope_op *)future;
    enum take took = take_next(op, op->out, cx);

    if (took == TAKE_WAITS)
        return BLZ_PENDING;
    return blz_future_done(future, took == TAKE_CHILD ? 1 : took == TAKE_STOPPED ? -ECANCELED : 0);
}

/* Drops the children that have ended; ready when none is left. */
static blz_poll join_poll(blz_future *future, blz_cx *cx)
{
    blz_scope_op *op = (blz_scope_op *)future;
    blz_handle child = {NULL, 0};
    enum take took;

    while ((took = take_next(op, &child, cx)) == TAKE_CHILD)
        blz_handle_detach(&child);
    return took == TAKE_WAITS ? BLZ_PENDING : blz_future_done(future, scope_of(op->scope)->failure);
}

static void next_cancel(blz_future *future, blz_cx *cx)
{
    (void)cx;
    future->line = NEXT_STOPPED;
}

/* The children are told, and still awaited. */
static void join_cancel(blz_future *future, blz_cx *cx)
{
    (void)cx;
    blz_scope_cancel(((blz_scope_op *)future)->scope);
}

static void scope_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_scope_op *op = (const blz_scope_op *)(const void *)future;

    info->kind = "scope";
    info->object = op->scope;
}

blz_future *blz_scope_join(blz_scope_op *op, blz_scope *scope)
{
    static const blz_future_ops ops = {.name = "scope_join",
                                       .poll = join_poll,
                                       .cancel = join_cancel,
                                       .describe_wait = scope_describe};

    blz_op_check(&op->future, &ops);
    *op = (blz_scope_op){.future = {.ops = &ops, .flags = BLZ_FUTURE_ALWAYS}, .scope = scope};
    return &op->future;
}

blz_future *blz_scope_next(blz_scope_op *op, blz_scope *scope, blz_handle *out)
{
    static const blz_future_ops ops = {.name = "scope_next",
                                       .poll = next_poll,
                                       .cancel = next_cancel,
                                       .describe_wait = scope_describe};

    blz_op_check(&op->future, &ops);
    *op = (blz_scope_op){.future = {.ops = &ops}, .scope = scope, .out = out};
    return &op->future;
}
