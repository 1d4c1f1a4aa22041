/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futures: what can be awaited.
 *
 * A future is a struct that begins with a blz_future. It is polled until it is ready; then its
 * result is valid and it is not polled again. Nothing is allocated: the struct lives in the frame
 * of the function that awaits it. Most code never polls by hand but writes async functions
 * (blitz/async.h). A poll function can also be written by hand:
 *
 *     struct countdown { blz_future future; int left; };
 *
 *     static blz_poll countdown_poll(blz_future *f, blz_cx *cx)
 *     {
 *         struct countdown *c = (struct countdown *)f;
 *         if (c->left-- > 0)
 *             return blz_cx_yield(cx);
 *         return blz_future_done(f, 0);
 *     }
 *     static const blz_future_ops countdown_ops = { .name = "countdown", .poll = countdown_poll };
 *
 * One that awaits another future polls it, and lets `child` point to it meanwhile:
 *
 *     static blz_poll twice_as_much_poll(blz_future *f, blz_cx *cx)     // f->child was set before
 *     {
 *         blz_future *inner = f->child;
 *         if (blz_is_pending(inner->ops->poll(inner, cx)))
 *             return BLZ_PENDING;
 *         f->child = NULL;
 *         return blz_future_done(f, 2 * inner->result);
 *     }
 *
 * The rules of a poll function:
 * - It returns BLZ_READY once, after setting `result` (blz_future_done does both), or BLZ_PENDING
 *   after arranging for the task to be woken: it polled a child that is pending, it handed out a
 *   waker (blz_cx_waker), or it asked to be polled again (blz_cx_yield).
 * - It may be polled although nothing has changed. It never blocks.
 * - While it awaits others it polls each of them whenever it is polled itself: it cannot know which
 *   one was woken. (The combinators of blitz/combine.h do know.)
 * - From its first poll to its last a future stays in one branch of one combinator, or in none: a
 *   waker made in a branch has that branch polled.
 * - Once polled, a future is polled until it is ready: there is no dropping half way. To end it
 *   early it is cancelled, and then completes with -ECANCELED, or with its real result if that
 *   came first.
 *
 * Cancellation belongs to a scope: the whole task, or the branch of a combinator. When a scope is
 * cancelled, `ops->cancel` is called once on each future of the scope that is being awaited, from
 * the top down, between two polls, perhaps before the first; NULL means "whatever my child does".
 * After that every further await in the scope is refused with -ECANCELED, unless it is shielded. A
 * shutdown that loses its patience overrides shields: it may then be called a second time.
 */
#ifndef BLITZ_FUTURE_H
#define BLITZ_FUTURE_H

#include <blitz/base.h>
#include <blitz/waker.h>

BLZ_BEGIN_DECLS

/*
 * What a poll function returns: BLZ_READY or BLZ_PENDING. A struct, so that a function which
 * returns an int by mistake, as in `return 0;`, does not compile.
 */
typedef struct blz_poll {
    uint32_t ready; /* 0 or 1; blz_is_ready and blz_is_pending read it */
} blz_poll;

#ifdef __cplusplus
#define BLZ_POLL_(value) (blz_poll{value})
#else
#define BLZ_POLL_(value) ((blz_poll){value})
#endif

/* The future is not ready. Its poll function has arranged for the task to be woken. */
#define BLZ_PENDING BLZ_POLL_(0)

/* The future is ready and its result is valid. */
#define BLZ_READY BLZ_POLL_(1)

/* Whether a poll function returned BLZ_READY. [any thread] */
static BLZ_INLINE bool blz_is_ready(blz_poll poll)
{
    return poll.ready != 0;
}

/* Whether a poll function returned BLZ_PENDING. [any thread] */
static BLZ_INLINE bool blz_is_pending(blz_poll poll)
{
    return poll.ready == 0;
}

typedef struct blz_future blz_future;
typedef struct blz_cx blz_cx;
struct blz_wait_info;

/* A task (blitz/task.h), and a runtime (blitz/runtime.h). */
typedef struct blz_task blz_task;
typedef struct blz_rt blz_rt;

/* What a kind of future can do; one static struct for all of its kind. */
typedef struct blz_future_ops {
    const char *name; /* for dumps: "accept" */
    const char *file; /* source of the lines in `line`, or NULL */
    blz_poll (*poll)(blz_future *self, blz_cx *cx);
    void (*cancel)(blz_future *self, blz_cx *cx); /* NULL: cancels the child */
    /* Describes what it waits for, for dumps and consoles: blitz/wait_info.h. NULL: its child. */
    void (*describe_wait)(const blz_future *self, struct blz_wait_info *info);
    void *reserved[3]; /* NULL */
} blz_future_ops;

/* The beginning of every future. */
struct blz_future {
    const blz_future_ops *ops;
    blz_future *child; /* what this one awaits: the async stack */
    int64_t result;    /* >= 0, or -errno; valid once ready */
    uint32_t line;     /* async function: where to resume; 0 is the beginning */
    uint32_t flags;    /* BLZ_FUTURE_*, and the shield depth in the upper half */
};

#define BLZ_FUTURE_CANCELLED 0x1u     /* this scope has been asked to end */
#define BLZ_FUTURE_DELIVERED 0x2u     /* and the futures in it have been told */
#define BLZ_FUTURE_FORCED    0x4u     /* shields no longer count */
#define BLZ_FUTURE_REFUSED   0x8u     /* never started: its scope was cancelled */
#define BLZ_FUTURE_REFUSAL   0x20u    /* scope: one refused await; counts to 1,000 */
#define BLZ_FUTURE_ALWAYS    0x8000u  /* not refused in a cancelled scope: started, and told */
#define BLZ_FUTURE_SHIELD    0x10000u /* one shield */

/* blz_future.line of one that is ready. */
#define BLZ_LINE_DONE UINT32_MAX

/* blz_future.line of an operation that has begun, if it has no other number for that. */
#define BLZ_LINE_BEGUN 1u

/*
 * The context of a poll: which task is being polled, and in which cancel scope. Valid only during
 * the poll. The fields are for the inline functions here.
 */
struct blz_cx {
    blz_task *task;
    blz_future *scope; /* the innermost cancel scope */
    struct blz_worker *worker;
    uint32_t budget;    /* operations left before the task must let others run */
    uint32_t refs_left; /* wakers that can be made without an atomic operation */
    uint32_t yielded;   /* poll again after the driver has been looked at */
    uint32_t group;     /* wake group of the branch that we are in, from 1; 0: in none */
    uint32_t groups;    /* those in use by the combinators around us */
    uint32_t woken;     /* those that were woken before this poll */
    uint32_t answered;  /* and those whose combinators have looked at that */
    uint32_t reserved;
};

BLZ_API BLZ_COLD void blz_op_in_flight_(const blz_future *op, const blz_future_ops *next);

/* Ends a poll function: stores the result and returns BLZ_READY. [task] */
static inline blz_poll blz_future_done(blz_future *self, int64_t result)
{
    self->result = result;
    self->line = BLZ_LINE_DONE;
    return BLZ_READY;
}

/*
 * For a function that makes an operation: aborts if the memory is that of an operation in flight,
 * one that has been polled and is not ready. Memory that was never used is zero. [any thread]
 */
static BLZ_INLINE void blz_op_check(const blz_future *op, const blz_future_ops *next)
{
    if (blz_unlikely(op->line - 1 < BLZ_LINE_DONE - 1)) /* neither 0 nor DONE */
        blz_op_in_flight_(op, next);
}

/* Memory of an operation that was never used, on the stack of a function that blocks. */
#define BLZ_FRESH_(op) ((op)->future.line = 0, (op))

/* ---- Inside a poll function [task] ---- */

/* A waker for the task being polled. */
BLZ_API blz_waker blz_cx_waker(blz_cx *cx);

/* Asks for another poll, after other tasks and the I/O driver have had their turn. */
static inline blz_poll blz_cx_yield(blz_cx *cx)
{
    cx->yielded = 1;
    return BLZ_PENDING;
}

/* The runtime of the task being polled; NULL on a thread of its own (blz_wait). */
BLZ_API blz_rt *blz_cx_rt(const blz_cx *cx);

/*
 * The coop budget: a leaf calls this before each operation that could succeed without waiting. On
 * false it returns BLZ_PENDING at once; the task is polled again after the others. If it turns out
 * that the operation has to wait, it gives the unit back.
 */
static inline bool blz_coop_take(blz_cx *cx)
{
    if (blz_unlikely(cx->budget == 0)) {
        cx->yielded = 1;
        return false;
    }
    cx->budget--;
    return true;
}

/* Gives back what blz_coop_take took: the operation has to wait. */
static inline void blz_coop_give_back(blz_cx *cx)
{
    cx->budget++;
}

/* ---- Cancellation [task] ---- */

/* Whether the scope that we are in has been cancelled and no shield holds it off. */
static BLZ_INLINE bool blz_cancelled(const blz_cx *cx)
{
    uint32_t flags = cx->scope->flags;
    return (flags & BLZ_FUTURE_CANCELLED) &&
           (flags < BLZ_FUTURE_SHIELD || (flags & BLZ_FUTURE_FORCED));
}

/*
 * Whether a future that was awaited never began: the await was refused because its scope had been
 * cancelled, or there was no memory for its box. What the future was to take over (a connection, a
 * buffer to free) is then still the caller's. Ask after the await, whatever its result:
 *
 *     BLZ_CALL(self->rc, self->session, session, .conn = self->conn);
 *     if (blz_never_started(&self->session.blz_frame))
 *         blz_tcp_close(&self->conn);             // session closes it otherwise
 *
 * It also holds for a future inside of one that was refused: one with a limit, or a branch.
 */
static inline bool blz_never_started(const blz_future *future)
{
    return (future->flags & BLZ_FUTURE_REFUSED) || future->line == 0;
}

/*
 * Defers cancellation in the current scope until blz_unshield has been called as often. Up to
 * 65,535 deep, then -EOVERFLOW.
 */
BLZ_API BLZ_NODISCARD int blz_shield(blz_cx *cx);
BLZ_API void blz_unshield(blz_cx *cx);

/* Polls a child that is a cancel scope of its own, as combinators do with their branches. */
BLZ_API blz_poll blz_poll_branch(blz_future *branch, blz_cx *cx);

/* Cancels a branch: it is told now, and polling it goes on until it is ready. */
BLZ_API void blz_cancel_branch(blz_future *branch, blz_cx *cx);

/* Passes a cancellation on to a future of the same scope; for `ops->cancel`. */
BLZ_API void blz_future_cancel(blz_future *future, blz_cx *cx);

/* ---- Small futures ---- */

/*
 * A future that is ready at its first poll, with `value` as its result. [any thread; awaited in a
 * task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_ready(blz_future *op, int64_t value);

/*
 * A future that is never ready by itself; it ends when it is cancelled, with -ECANCELED. For a task
 * that waits for its cancellation: a poll function that returns BLZ_PENDING and keeps no waker is a
 * panic in debug builds. [any thread; awaited in a task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_pending(blz_future *op);

/*
 * Lets other tasks run, and the I/O driver look for events: 0, or -ECANCELED. [any thread; awaited
 * in a task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_yield(blz_future *op);

/*
 * The future of blz_lazy_init, which calls fn(arg) at its first poll and is ready with the result
 * of that call. [any thread; awaited in a task]
 */
typedef struct blz_lazy {
    blz_future future;
    int64_t (*fn)(void *arg);
    void *arg;
    uint64_t reserved;
} blz_lazy;
BLZ_API BLZ_NODISCARD blz_future *blz_lazy_init(blz_lazy *op, int64_t (*fn)(void *arg), void *arg);

/*
 * The future of blz_map_init, which awaits `inner`, calls fn(result, arg) with its result, and is
 * ready with what fn returns. [any thread; awaited in a task]
 */
typedef struct blz_map {
    blz_future future;
    int64_t (*fn)(int64_t result, void *arg);
    void *arg;
    uint64_t reserved;
} blz_map;
BLZ_API BLZ_NODISCARD blz_future *blz_map_init(blz_map *op, blz_future *inner,
                                               int64_t (*fn)(int64_t result, void *arg), void *arg);

/*
 * The future of blz_then_init, which awaits `inner`, calls fn(result, arg) with its result, and
 * awaits the future that fn returns. If fn returns NULL, it ends with the result of `inner`. The
 * second future may live where the first one did. [any thread; awaited in a task]
 */
typedef struct blz_then {
    blz_future future;
    blz_future *(*fn)(int64_t result, void *arg);
    void *arg;
    uint64_t reserved;
} blz_then;
BLZ_API BLZ_NODISCARD blz_future *blz_then_init(blz_then *op, blz_future *inner,
                                                blz_future *(*fn)(int64_t result, void *arg),
                                                void *arg);

/*
 * A future on the heap: for recursion, and for children whose type the frame does not know. The
 * memory is the runtime's and is freed when the box is ready. It is made by BLZ_BOX (blitz/async.h)
 * or by blz_box_init, which copies a prepared frame. Without memory the box is ready with -ENOMEM.
 * [task]
 */
typedef struct blz_box {
    blz_future future;
    size_t size;
    uint64_t reserved;
} blz_box;
BLZ_API BLZ_NODISCARD blz_future *blz_box_init(blz_box *op, const void *frame, size_t size);

/* ---- Waiting on a thread of your own ---- */

/*
 * Polls a future on this thread, which sleeps in between, until it is ready; gives its result. For
 * the futures of sync primitives and channels, and combinators and async functions made of them:
 *
 *     blz_wait(blz_semaphore_acquire(&op, &semaphore, 1));
 *
 * What needs a runtime (I/O, timers and limits, blocking calls, processes) ends with -ENXIO, unless
 * it has its result without waiting: it belongs into a task (blz_block_on). For a limit there is
 * blz_wait_until. -EDEADLK on a worker thread, where nothing has been polled. [any thread but a
 * worker]
 */
BLZ_API int64_t blz_wait(blz_future *future);

/*
 * Polls a future on this thread as blz_wait does, up to a deadline in nanoseconds of the monotonic
 * clock: then the future is cancelled, and -ETIMEDOUT is what becomes of its -ECANCELED. [any
 * thread but a worker]
 */
BLZ_API int64_t blz_wait_until(blz_future *future, int64_t deadline_ns);

BLZ_END_DECLS
#endif
