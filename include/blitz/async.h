/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async functions: straight-line code that waits without blocking its thread.
 *
 *     struct greet {
 *         BLZ_FRAME;                      // first
 *         const char *name;               // an argument
 *         int i;                          // lives over an await, so it is here and not a local
 *         int64_t rc;
 *         blz_future pause;
 *     };
 *
 *     BLZ_ASYNC(greet)                    // here `self` is the frame
 *     {
 *         BLZ_BEGIN;
 *         for (self->i = 0; self->i < 3; self->i++) {
 *             printf("hello %s\n", self->name);
 *             BLZ_AWAIT(self->rc, blz_yield(&self->pause));
 *             if (self->rc < 0)
 *                 break;                  // cancelled
 *         }
 *         BLZ_END(self->rc);
 *     }
 *
 *     int main(void) { return BLZ_RUN(greet, .name = "world") < 0; }
 *
 * The function is an ordinary C function that returns at each await and is called again later: it
 * jumps to where it left off. From that follow its rules:
 *
 * - What must survive an await is in the frame. A local is fine in a block without an await. The
 * compiler rejects most mistakes; blitz-check-frames and BLZ_DEBUG_FRAMES find the others.
 * - BLZ_BEGIN comes first, BLZ_END(result) last; leave early by `goto out`, a label before BLZ_END.
 * - No await inside a `switch` of your own; it aborts with a sentence when it resumes. At most one
 * await on a line.
 * - A frame has at most BLZ_FRAME_MAX bytes, 256 KiB: the macros that spawn and call build it on
 * the stack before it is copied. Large buffers go behind the frame (BLZ_TAIL), or into memory of
 * their own.
 *
 * An await gives the awaited future's result, or -ECANCELED if the task (or the enclosing scope)
 * has been cancelled: clean up and return, as for any error. Awaits in the cleanup must be
 * shielded, or they are refused as well; but not blz_scope_join, which passes the cancellation on.
 *
 * Define BLZ_DEBUG_FRAMES before including this header to make every await suspend at least once
 * and to fill the stack with rubbish before each resume: a value kept in a local is then lost for
 * sure. docs/guide/frames.md has all the rules, and which tool finds which mistake.
 *
 * The async macros are C only. C++ code spawns, blocks on and calls back (blitz/task.h).
 */
#ifndef BLITZ_ASYNC_H
#define BLITZ_ASYNC_H

#include <blitz/future.h>
#include <blitz/task.h>

#ifndef __cplusplus

/*
 * The largest frame, in bytes. BLZ_SPAWN, BLZ_RUN, BLZ_CALL and their kin build it as a compound
 * literal, on the stack of the thread that calls them: a larger one does not compile. 256 KiB has
 * room for several buffers of 64 KiB and is a small part of the usual stack of 8 MiB. Programs
 * whose threads have small stacks may define it to be less, before they include this header.
 */
#ifndef BLZ_FRAME_MAX
#define BLZ_FRAME_MAX (256 * 1024)
#endif

/* The header of a frame: the first member of the struct. */
#define BLZ_FRAME blz_future blz_frame

/*
 * Begins the definition of the async function `fn`, whose frame is `struct fn`. Inside, `self` is
 * the frame and `cx` the context.
 */
#define BLZ_ASYNC(fn) BLZ_ASYNC_(static, fn)

/*
 * Begins the definition of an async function that other files use; they say BLZ_DECLARE_EXTERN(fn).
 */
#define BLZ_ASYNC_EXTERN(fn) BLZ_ASYNC_(BLZ_NOTHING_, fn)

/* Announces a function that is defined further down, or in another file. */
#define BLZ_DECLARE(fn)        static const blz_future_ops fn##_ops
#define BLZ_DECLARE_EXTERN(fn) extern const blz_future_ops fn##_ops

/* `default` stands here because a label at the end would be jumped to over every local's scope. */
#define BLZ_BEGIN                          \
    (void)cx;                              \
    switch (self->blz_frame.line) {        \
    default:                               \
        blz_bad_resume_(&self->blz_frame); \
    case 0:;

/* Ends the body, and gives its result. What comes before it is reached by `goto out`. */
#define BLZ_END(value)                                 \
    return blz_future_done(&self->blz_frame, (value)); \
    }                                                  \
    BLZ_GUARD_POP_                                     \
    blz_stray_break_(&self->blz_frame)

/*
 * Waits until `future_expr` (an expression of type blz_future *) is ready; `dst` gets its result.
 * A statement. Refused with -ECANCELED in a cancelled scope.
 */
#define BLZ_AWAIT(dst, future_expr)                                                              \
    do {                                                                                         \
        {                                                                                        \
            int64_t blz_result_;                                                                 \
            if (blz_await_first_(&self->blz_frame, (future_expr), __LINE__, cx, &blz_result_)) { \
                (dst) = blz_result_;                                                             \
                break;                                                                           \
            }                                                                                    \
        }                                                                                        \
        return BLZ_PENDING;                                                                      \
        BLZ_GUARD_SHOW_;                                                                         \
    case __LINE__:                                                                               \
        BLZ_GUARD_HIDE_;                                                                         \
        if (blz_is_pending(blz_await_poll_(&self->blz_frame, cx)))                               \
            return BLZ_PENDING;                                                                  \
        (dst) = blz_await_result_(&self->blz_frame);                                             \
    } while (0)

/*
 * Awaits an operation that can mostly be done at once: makes `attempt` first (an expression whose
 * value is a result), and awaits only if that is -EAGAIN; `dst` gets the result. So the operation
 * is not even begun unless it has to wait. It counts against the budget and is refused in a
 * cancelled scope like any other await.
 *
 *     BLZ_AWAIT_UNLESS(self->rc, blz_mutex_try_lock(&mutex), blz_mutex_lock(&self->op, &mutex));
 */
#define BLZ_AWAIT_UNLESS(dst, attempt, future_expr)    \
    do {                                               \
        if (blz_await_may_try_(cx)) {                  \
            int64_t blz_attempt_ = (attempt);          \
            if (blz_likely(blz_attempt_ != -EAGAIN)) { \
                (dst) = blz_attempt_;                  \
                break;                                 \
            }                                          \
            blz_coop_give_back(cx);                    \
        }                                              \
        BLZ_AWAIT(dst, future_expr);                   \
    } while (0)

/*
 * Waits until `future_expr` is ready, and holds off a cancellation until then; `dst` gets its
 * result. For cleanup that itself must wait. A statement.
 */
#define BLZ_AWAIT_SHIELDED(dst, future_expr)                                      \
    do {                                                                          \
        blz_await_shield_(&self->blz_frame, cx);                                  \
        blz_await_start_shielded_(&self->blz_frame, (future_expr), __LINE__, cx); \
        BLZ_GUARD_SHOW_;                                                          \
        __attribute__((fallthrough));                                             \
    case __LINE__:                                                                \
        BLZ_GUARD_HIDE_;                                                          \
        if (blz_is_pending(blz_await_poll_(&self->blz_frame, cx)))                \
            return BLZ_PENDING;                                                   \
        (dst) = blz_await_unshield_(&self->blz_frame, cx);                        \
    } while (0)

/*
 * Awaits another async function in place: BLZ_CALL(self->rc, self->child, fetch, .url = url). Its
 * frame is `slot`, a member of ours of type struct fetch. In a cancelled scope the function does
 * not begin: what it was to take over is still ours then (blz_never_started).
 */
#define BLZ_CALL(...)                 BLZ_CALL_(__VA_ARGS__, )
#define BLZ_CALL_(dst, slot, fn, ...) BLZ_AWAIT(dst, BLZ_FUTURE_(slot, fn, __VA_ARGS__))

/*
 * Another async function as a future, to be awaited with a limit, shielded, or in a race:
 *
 *     BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_SEC,
 *                                          BLZ_FUTURE(self->child, fetch, .url = url)));
 */
#define BLZ_FUTURE(slot, ...) BLZ_FUTURE_(slot, __VA_ARGS__, )
#define BLZ_FUTURE_(slot, fn, ...)                                                             \
    ((void)BLZ_FRAME_SIZE_(fn), (slot) = (struct fn){.blz_frame.ops = &fn##_ops, __VA_ARGS__}, \
     &(slot).blz_frame)

/* A boxed call, for recursion: BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, walk, .node = left)). */
#define BLZ_BOX(box, ...) BLZ_BOX_(box, __VA_ARGS__, )
#define BLZ_BOX_(box, fn, ...) \
    blz_box_init((box), &(struct fn){.blz_frame.ops = &fn##_ops, __VA_ARGS__}, BLZ_FRAME_SIZE_(fn))

/*
 * Spawns `fn` as a task of the current runtime, detached. 0; -ENOMEM; -ESHUTDOWN: the runtime is
 * ending; -ENXIO: no runtime on this thread.
 *
 *     rc = BLZ_SPAWN(echo, .conn = conn);
 */
#define BLZ_SPAWN(...) BLZ_SPAWN_HERE_(NULL, __VA_ARGS__, )

/*
 * Spawns `fn` as a task of the current runtime, with a handle: BLZ_SPAWN_JOIN(&self->h, fn, .arg =
 * x). The handle must be joined or detached. 0; -ENOMEM; -ESHUTDOWN: the runtime is ending; -ENXIO:
 * no runtime on this thread.
 */
#define BLZ_SPAWN_JOIN(handle_ptr, ...) BLZ_SPAWN_HERE_((handle_ptr), __VA_ARGS__, )

/*
 * Spawns `fn` with all that can be said about a task: runtime, handle, scope, name, pinning
 * (blz_spawn_args in blitz/task.h). Results and errors of blz_spawn.
 *
 *     rc = BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .name = "logger"}), logger, .fd = fd);
 */
#define BLZ_SPAWN_WITH(args, ...) \
    BLZ_SPAWN_(blz_spawn_site_((args), BLZ_SITE_(__VA_ARGS__, )), __VA_ARGS__, )

/*
 * Spawns on the given runtime, from any thread. The handle may be NULL. Results and errors of
 * blz_spawn.
 */
#define BLZ_SPAWN_ON(runtime, handle_ptr, ...)                        \
    BLZ_SPAWN_((&(blz_spawn_args){.rt = (runtime),                    \
                                  .handle = (handle_ptr),             \
                                  .site = BLZ_SITE_(__VA_ARGS__, )}), \
               __VA_ARGS__, )

/* Spawns a pinned task: it stays on the worker that this is. The handle may be NULL. */
#define BLZ_SPAWN_PINNED(handle_ptr, ...)                             \
    BLZ_SPAWN_((&(blz_spawn_args){.pinned = true,                     \
                                  .handle = (handle_ptr),             \
                                  .site = BLZ_SITE_(__VA_ARGS__, )}), \
               __VA_ARGS__, )

/*
 * Spawns a child of a scope (blz_scope in blitz/task.h) on the runtime of this thread. Results and
 * errors of blz_spawn.
 */
#define BLZ_SCOPE_SPAWN(scope_ptr, ...)                                                     \
    BLZ_SPAWN_((&(blz_spawn_args){.scope = (scope_ptr), .site = BLZ_SITE_(__VA_ARGS__, )}), \
               __VA_ARGS__, )

/*
 * Runs `fn` to its end on a runtime of its own, with this thread as a worker; gives its result, or
 * an error of blz_run.
 */
#define BLZ_RUN(...)               BLZ_RUN_(NULL, __VA_ARGS__, )
#define BLZ_RUN_WITH(options, ...) BLZ_RUN_((options), __VA_ARGS__, )

/*
 * Runs `fn` on `rt` and blocks this thread until it has ended; gives its result, or an error of
 * blz_block_on.
 */
#define BLZ_BLOCK_ON(rt, ...) BLZ_BLOCK_ON_((rt), __VA_ARGS__, )

/*
 * For a frame that ends in a flexible array: room for `n` bytes behind it, not cleared. As an
 * argument: BLZ_SPAWN(echo, BLZ_TAIL(4096), .conn = conn).
 */
#define BLZ_TAIL(n) .blz_frame.result = (int64_t)(n)

/* ---- What the macros are made of ---- */

#define BLZ_NOTHING_
#define BLZ_STRING_(x)     #x
#define BLZ_STRING(x)      BLZ_STRING_(x)
#define BLZ_SITE_(fn, ...) #fn " at " __FILE__ ":" BLZ_STRING(__LINE__)

#define BLZ_ASYNC_(linkage, fn)                                                                    \
    static blz_poll fn##_poll(struct fn *self, blz_cx *cx) BLZ_POLL_ATTRIBUTE_;                    \
    static blz_poll fn##_resume_(blz_future *future, blz_cx *cx)                                   \
    {                                                                                              \
        _Static_assert(offsetof(struct fn, blz_frame) == 0, "BLZ_FRAME must come first");          \
        _Static_assert(_Alignof(struct fn) <= 16, "a frame is aligned to at most 16 bytes");       \
        BLZ_SCRIBBLE_();                                                                           \
        return fn##_poll((struct fn *)(void *)future, cx);                                         \
    }                                                                                              \
    linkage const blz_future_ops fn##_ops = {.name = #fn, .file = __FILE__, .poll = fn##_resume_}; \
    BLZ_GUARD_PUSH_                                                                                \
    static blz_poll fn##_poll(struct fn *self, blz_cx *cx)

/* sizeof(struct fn), if that is a size that a frame may have. */
#define BLZ_FRAME_SIZE_(fn)                                                                     \
    (sizeof(struct fn) +                                                                        \
     0 * sizeof(struct {                                                                        \
         _Static_assert(sizeof(struct fn) <= BLZ_FRAME_MAX,                                     \
                        "this frame is larger than BLZ_FRAME_MAX and would be built on the "    \
                        "stack: put its large buffers behind it (BLZ_TAIL), or allocate them"); \
         char blz_unused_;                                                                      \
     }))

#define BLZ_SPAWN_HERE_(handle, fn, ...)                                                        \
    blz_spawn_here_(&(struct fn){.blz_frame.ops = &fn##_ops, __VA_ARGS__}, BLZ_FRAME_SIZE_(fn), \
                    (handle), BLZ_SITE_(fn, ))
#define BLZ_SPAWN_(args, fn, ...) \
    blz_spawn(&(struct fn){.blz_frame.ops = &fn##_ops, __VA_ARGS__}, BLZ_FRAME_SIZE_(fn), (args))
#define BLZ_RUN_(options, fn, ...)                                                      \
    blz_run(&(struct fn){.blz_frame.ops = &fn##_ops, __VA_ARGS__}, BLZ_FRAME_SIZE_(fn), \
            BLZ_SITE_(fn, ), (options))
#define BLZ_BLOCK_ON_(rt, fn, ...)                                                                 \
    blz_block_on((rt), &(struct fn){.blz_frame.ops = &fn##_ops, __VA_ARGS__}, BLZ_FRAME_SIZE_(fn), \
                 BLZ_SITE_(fn, ))

/*
 * Lost locals become errors, in async functions only: BLZ_ASYNC turns the warnings on and BLZ_END
 * restores what was. The push stands in front of the function because clang looks there to decide
 * whether to analyse it at all; both compilers then go by the place where the variable is used. But
 * gcc reports a jump over an initialiser at the `case`, which is written here; where this is a
 * system header it would keep quiet, if it were not told to look into those just there.
 */
/* clang-format off */
#if defined(__clang__)
#define BLZ_GUARD_PUSH_                                               \
    _Pragma("clang diagnostic push")                                  \
    _Pragma("clang diagnostic error \"-Wconditional-uninitialized\"") \
    _Pragma("clang diagnostic error \"-Wsometimes-uninitialized\"")   \
    _Pragma("clang diagnostic error \"-Wuninitialized\"")
#define BLZ_GUARD_POP_ _Pragma("clang diagnostic pop")
#define BLZ_GUARD_SHOW_
#define BLZ_GUARD_HIDE_
#else
#define BLZ_GUARD_PUSH_                                       \
    _Pragma("GCC diagnostic push")                            \
    _Pragma("GCC diagnostic error \"-Wjump-misses-init\"")    \
    _Pragma("GCC diagnostic error \"-Wmaybe-uninitialized\"") \
    _Pragma("GCC diagnostic error \"-Wuninitialized\"")
#define BLZ_GUARD_POP_ _Pragma("GCC diagnostic pop")
#define BLZ_GUARD_SHOW_ _Pragma("GCC diagnostic warning \"-Wsystem-headers\"")
#define BLZ_GUARD_HIDE_ _Pragma("GCC diagnostic ignored \"-Wsystem-headers\"")
#endif
/* clang-format on */

BLZ_API BLZ_NORETURN BLZ_COLD void blz_bad_resume_(const blz_future *self);
BLZ_API BLZ_NORETURN BLZ_COLD void blz_stray_break_(const blz_future *self);
BLZ_API BLZ_COLD void blz_await_refuse_(blz_future *child, blz_cx *cx, int64_t error);
BLZ_API BLZ_COLD blz_poll blz_await_refused_(blz_future *child, blz_cx *cx);
BLZ_API void blz_debug_scribble_(void);

#ifdef BLZ_DEBUG_FRAMES
#define BLZ_POLL_ATTRIBUTE_ __attribute__((noinline))
#define BLZ_SCRIBBLE_()     blz_debug_scribble_()
#define BLZ_AWAIT_FLAGS_    BLZ_FUTURE_FRESH_
#else
#define BLZ_POLL_ATTRIBUTE_
#define BLZ_SCRIBBLE_()  ((void)0)
#define BLZ_AWAIT_FLAGS_ 0u
#endif

/*
 * A bit of `flags` that only BLZ_DEBUG_FRAMES uses. In a frame: its await has not suspended yet. In
 * its child too: the child is ready, and its result is held back until the frame has suspended.
 */
#define BLZ_FUTURE_FRESH_ 0x10u

static inline void blz_await_start_(blz_future *self, blz_future *child, uint32_t line, blz_cx *cx)
{
    self->child = child;
    self->line = line;
    self->flags |= BLZ_AWAIT_FLAGS_;
    if (blz_unlikely(blz_cancelled(cx)))
        blz_await_refuse_(child, cx, -ECANCELED);
}

/*
 * The shield comes before the child is made, so that nothing in it sees the cancellation. Where
 * there are no more shields, `child` says so until the child is known.
 */
static inline void blz_await_shield_(blz_future *self, blz_cx *cx)
{
    self->child = blz_shield(cx) < 0 ? self : NULL;
}

static inline void blz_await_start_shielded_(blz_future *self, blz_future *child, uint32_t line,
                                             blz_cx *cx)
{
    bool shielded = self->child == NULL;

    blz_await_start_(self, child, line, cx);
    if (blz_unlikely(!shielded))
        blz_await_refuse_(child, cx, -EOVERFLOW);
}

static BLZ_INLINE blz_poll blz_await_child_(blz_future *child, blz_cx *cx)
{
    if (blz_unlikely(child->flags & BLZ_FUTURE_REFUSED))
        return blz_await_refused_(child, cx);
    return child->ops->poll(child, cx);
}

#ifndef BLZ_DEBUG_FRAMES
static inline blz_poll blz_await_poll_(blz_future *self, blz_cx *cx)
{
    return blz_await_child_(self->child, cx);
}
#else
static inline blz_poll blz_await_poll_(blz_future *self, blz_cx *cx)
{
    blz_future *child = self->child;
    bool held = self->flags & child->flags & BLZ_FUTURE_FRESH_;

    if (!held && blz_is_pending(blz_await_child_(child, cx))) {
        self->flags &= ~BLZ_FUTURE_FRESH_;
        return BLZ_PENDING;
    }
    if (!held && (self->flags & BLZ_FUTURE_FRESH_)) {
        child->flags |= BLZ_FUTURE_FRESH_;
        return blz_cx_yield(cx);
    }
    self->flags &= ~BLZ_FUTURE_FRESH_;
    child->flags &= ~BLZ_FUTURE_FRESH_;
    return BLZ_READY;
}
#endif

/*
 * The first poll. A child that is ready at once leaves no trace in the frame: most awaits of locks
 * and channels are of that kind. While a future is polled no dump looks at the future that awaits
 * it.
 *
 * In a cancelled scope it has a call of its own, so that nothing comes between the making of the
 * child and its poll in the other one: a compiler that sees both knows what it calls.
 */
#ifndef BLZ_DEBUG_FRAMES
static BLZ_INLINE blz_poll blz_await_in_cancelled_(blz_future *child, blz_cx *cx)
{
    blz_await_refuse_(child, cx, -ECANCELED);
    return blz_await_child_(child, cx);
}

static BLZ_INLINE bool blz_await_first_(blz_future *self, blz_future *child, uint32_t line,
                                        blz_cx *cx, int64_t *result)
{
    blz_poll poll;

    if (blz_unlikely(blz_cancelled(cx)))
        poll = blz_await_in_cancelled_(child, cx);
    else
        poll = blz_await_child_(child, cx);
    if (blz_is_pending(poll)) {
        self->child = child;
        self->line = line;
        return false;
    }
    *result = child->result;
    return true;
}
#else
static inline bool blz_await_first_(blz_future *self, blz_future *child, uint32_t line, blz_cx *cx,
                                    int64_t *result)
{
    blz_await_start_(self, child, line, cx);
    (void)blz_await_poll_(self, cx); /* pending for sure */
    (void)result;
    return false;
}
#endif

/* Takes a unit of the budget, too. Frames that are being debugged suspend at every await. */
static BLZ_INLINE bool blz_await_may_try_(blz_cx *cx)
{
#ifndef BLZ_DEBUG_FRAMES
    if (blz_unlikely(blz_cancelled(cx) || cx->budget == 0))
        return false;
    cx->budget--;
    return true;
#else
    (void)cx;
    return false;
#endif
}

static inline int64_t blz_await_result_(blz_future *self)
{
    int64_t result = self->child->result;

    self->child = NULL;
    return result;
}

static inline int64_t blz_await_unshield_(blz_future *self, blz_cx *cx)
{
    bool refused = self->child->flags & BLZ_FUTURE_REFUSED;
    int64_t result = blz_await_result_(self);

    if (blz_likely(!refused || result != -EOVERFLOW))
        blz_unshield(cx);
    return result;
}

static inline blz_spawn_args *blz_spawn_site_(blz_spawn_args *args, const char *site)
{
    args->site = site;
    return args;
}

#endif /* __cplusplus */
#endif
