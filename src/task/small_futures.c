/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small futures: a value, never, a yield, a call, a mapped result, a sequel, a box.
 *
 * They keep their state in the header: `line` counts stages, `child` is what they await, so that
 * dumps and cancellation pass through them without a function of their own. Each may be used again
 * once it is ready, by making it anew.
 */
#include "task/future.h"

#include "base/panic.h"
#include "task/task.h"

#include <blitz/runtime.h>
#include <string.h>

static blz_poll poll_child(blz_future *self, blz_cx *cx)
{
    return self->child->ops->poll(self->child, cx);
}

/* ---- Ready ---- */

static blz_poll ready_poll(blz_future *self, blz_cx *cx)
{
    (void)cx;
    return blz_future_done(self, self->result);
}

static const blz_future_ops ready_ops = {.name = "ready", .poll = ready_poll};

blz_future *blz_ready(blz_future *op, int64_t value)
{
    *op = (blz_future){.ops = &ready_ops, .result = value};
    return op;
}

/* ---- Pending ---- */

/* It holds a waker that is never used, in `result`: a task that waits for a cancellation only means
 * to (see task/waits.h). Without a task there is none. */
enum { PENDING_FRESH, PENDING_WAITING, PENDING_CANCELLED };

static void pending_wait(blz_future *self, blz_cx *cx)
{
    self->line = PENDING_WAITING;
    if (cx->task)
        self->result = (intptr_t)blz_cx_waker(cx).data;
}

static void pending_drop_waker(blz_future *self, blz_cx *cx)
{
    blz_waker waker = {cx->task, &blz__task_waker_ops};

    if (self->result)
        task_waker_give_back(cx, &waker);
}

static blz_poll pending_poll(blz_future *self, blz_cx *cx)
{
    if (self->line == PENDING_CANCELLED) {
        pending_drop_waker(self, cx);
        return blz_future_done(self, -ECANCELED);
    }
    if (self->line == PENDING_FRESH)
        pending_wait(self, cx);
    return BLZ_PENDING;
}

static void pending_cancel(blz_future *self, blz_cx *cx)
{
    (void)cx;
    self->line = PENDING_CANCELLED;
}

static const blz_future_ops pending_ops = {.name = "pending",
                                           .poll = pending_poll,
                                           .cancel = pending_cancel};

blz_future *blz_pending(blz_future *op)
{
    *op = (blz_future){.ops = &pending_ops};
    return op;
}

/* ---- Yield ---- */

enum { YIELDED = 1 };

static blz_poll yield_poll(blz_future *self, blz_cx *cx)
{
    if (self->line == YIELDED)
        return blz_future_done(self, 0);
    self->line = YIELDED;
    return blz_cx_yield(cx);
}

/* No `cancel`: it is ready at the next poll whatever happens. */
static const blz_future_ops yield_ops = {.name = "yield", .poll = yield_poll};

blz_future *blz_yield(blz_future *op)
{
    *op = (blz_future){.ops = &yield_ops};
    return op;
}

/* ---- Lazy ---- */

static blz_poll lazy_poll(blz_future *self, blz_cx *cx)
{
    blz_lazy *lazy = (blz_lazy *)self;

    (void)cx;
    return blz_future_done(self, lazy->fn(lazy->arg));
}

static const blz_future_ops lazy_ops = {.name = "lazy", .poll = lazy_poll};

blz_future *blz_lazy_init(blz_lazy *op, int64_t (*fn)(void *arg), void *arg)
{
    *op = (blz_lazy){.future = {.ops = &lazy_ops}, .fn = fn, .arg = arg};
    return &op->future;
}

/* ---- Map ---- */

static blz_poll map_poll(blz_future *self, blz_cx *cx)
{
    blz_map *map = (blz_map *)self;

    if (blz_is_pending(poll_child(self, cx)))
        return BLZ_PENDING;
    int64_t result = self->child->result;
    self->child = NULL;
    return blz_future_done(self, map->fn(result, map->arg));
}

/* A future around another one, which is refused only if the inner one may be. */
static blz_future wrapper_of(const blz_future_ops *ops, blz_future *inner)
{
    if (blz_unlikely(!inner))
        blz__panic("the future inside of `%s` is NULL", ops->name);
    return (blz_future){.ops = ops, .child = inner, .flags = inner->flags & BLZ_FUTURE_ALWAYS};
}

static const blz_future_ops map_ops = {.name = "map", .poll = map_poll};

blz_future *blz_map_init(blz_map *op, blz_future *inner, int64_t (*fn)(int64_t result, void *arg),
                         void *arg)
{
    *op = (blz_map){.future = wrapper_of(&map_ops, inner), .fn = fn, .arg = arg};
    return &op->future;
}

/* ---- Then ---- */

enum { THEN_SECOND = 1 };

/* The second future is an await like any other: in a cancelled scope it does not start. */
static void then_start_second(blz_future *self, blz_future *second, blz_cx *cx)
{
    self->line = THEN_SECOND;
    self->child = second;
    if (second && blz_cancelled(cx))
        blz_await_refuse_(second, cx, -ECANCELED);
}

static blz_poll then_poll(blz_future *self, blz_cx *cx)
{
    blz_then *then = (blz_then *)self;
    int64_t result;

    if (self->line != THEN_SECOND) {
        if (blz_is_pending(poll_child(self, cx)))
            return BLZ_PENDING;
        result = self->child->result;
        self->child = NULL;
        then_start_second(self, then->fn(result, then->arg), cx);
        if (!self->child)
            return blz_future_done(self, result);
    }
    if (blz_is_pending(blz_await_child_(self->child, cx)))
        return BLZ_PENDING;
    result = self->child->result;
    self->child = NULL;
    return blz_future_done(self, result);
}

static const blz_future_ops then_ops = {.name = "then", .poll = then_poll};

blz_future *blz_then_init(blz_then *op, blz_future *inner,
                          blz_future *(*fn)(int64_t result, void *arg), void *arg)
{
    *op = (blz_then){.future = wrapper_of(&then_ops, inner), .fn = fn, .arg = arg};
    return &op->future;
}

/* ---- Box ---- */

/*
 * The frame is copied when the box is made, not when it is polled: the original is as a rule a
 * compound literal, and is gone by then if the box was made in another function. So a box owns
 * memory before its first poll. An await that is refused gives it back (blz__future_discard), and a
 * box made where its await would be refused takes none.
 */
enum { BOX_ALIGN = 16 };

void blz__box_discard(blz_box *box, blz_cx *cx)
{
    if (box->future.child)
        blz__rt_free(blz_cx_rt(cx), box->future.child, box->size, BOX_ALIGN);
    box->future.child = NULL;
}

static blz_poll box_poll(blz_future *self, blz_cx *cx)
{
    if (self->child) {
        if (blz_is_pending(poll_child(self, cx)))
            return BLZ_PENDING;
        self->result = self->child->result;
        blz__box_discard((blz_box *)self, cx);
    } else {
        self->flags |= BLZ_FUTURE_REFUSED; /* for blz_never_started */
    }
    return blz_future_done(self, self->result);
}

const blz_future_ops blz__box_ops = {.name = "box", .poll = box_poll};

/* The header's `result` says how much room there is behind the frame (BLZ_TAIL); 0: nonsense. */
static size_t size_with_tail(const blz_future *frame, size_t size)
{
    uint64_t tail = (uint64_t)frame->result;

    return tail > SIZE_MAX - size ? 0 : size + (size_t)tail;
}

static int box_fill(blz_box *op, const void *frame, size_t size)
{
    blz_cx *cx = blz__sched_current_cx();
    blz_rt *rt = blz_rt_current();

    if (!rt)
        return -ENXIO;
    if (cx && blz_cancelled(cx))
        return -ECANCELED;
    op->size = size_with_tail(frame, size);
    void *copy = op->size ? blz__rt_alloc(rt, op->size, BOX_ALIGN) : NULL;
    if (!copy)
        return -ENOMEM;
    op->future.child = memcpy(copy, frame, size);
    return 0;
}

blz_future *blz_box_init(blz_box *op, const void *frame, size_t size)
{
    *op = (blz_box){.future = {.ops = &blz__box_ops}};
    op->future.result = box_fill(op, frame, size);
    return &op->future;
}
