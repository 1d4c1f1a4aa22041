/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancellation tokens: say to many tasks at once that they should end. Tokens form a tree; to
 * cancel one cancels all below it.
 *
 *     rc = blz_token_new(&stop);                                      // 0 or -ENOMEM
 *     rc = blz_token_child(&session, stop);
 *
 *     BLZ_AWAIT(self->rc, blz_token_guard(&self->guard, self->session, // a task
 *                         blz_tcp_read(&self->io, &self->conn, self->buf, sizeof self->buf)));
 *     if (blz_token_is_cancelled(self->session))
 *         goto out;
 *
 *     blz_token_cancel(stop);                                         // any thread: all sessions
 *
 * A token is a reference-counted block on the heap: blz_token_ref and blz_token_unref. Children do
 * not keep their parents from being let go of, nor parents their children: when the last reference
 * to a child is gone it leaves the tree, and the memory of a parent stays while it has children,
 * but nobody can cancel it any more. A token that is let go of cancels nothing.
 *
 * What was done before blz_token_cancel is seen by every task and thread that finds the token
 * cancelled.
 */
#ifndef BLITZ_TOKEN_H
#define BLITZ_TOKEN_H

#include <blitz/future.h>
#include <blitz/task.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* One of a tree; counted references: blz_token_ref, blz_token_unref. */
typedef struct blz_token blz_token;

/* ---- Tokens ---- */

/* Makes a token without a parent, with one reference: 0; -ENOMEM. [any thread] */
BLZ_API BLZ_NODISCARD int blz_token_new(blz_token **token);

/*
 * Makes a token without a parent in memory of this allocator, which is copied: 0; -ENOMEM. Its
 * children use the same allocator. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_token_new_with(blz_token **token, const blz_allocator *allocator);

/*
 * Makes a child of a token, with one reference: 0; -ENOMEM. The child is cancelled when its parent
 * is, at once if that already is. [any thread that has a reference to the parent]
 */
BLZ_API BLZ_NODISCARD int blz_token_child(blz_token **child, blz_token *parent);

/* Adds or removes a reference. blz_token_unref of NULL does nothing. [any thread that has one] */
BLZ_API blz_token *blz_token_ref(blz_token *token);
BLZ_API void blz_token_unref(blz_token *token);

/*
 * Cancels the token and all below it: true; false: it had been cancelled. When it returns true, all
 * waiting tasks have been woken and all callbacks have been called, on this thread, without any
 * lock; only what another thread is in the middle of cancelling may still be under way. Neither
 * depth nor number of the tokens costs stack. [any thread that has a reference]
 */
BLZ_API bool blz_token_cancel(blz_token *token);

/* Whether it has been cancelled. One load. [any thread that has a reference] */
BLZ_API bool blz_token_is_cancelled(const blz_token *token);

/* ---- Waiting for it ---- */

/* The future of blz_token_cancelled. */
typedef struct blz_token_op {
    blz_future future;
    blz_waiter waiter;
    blz_token *token;
    uint64_t reserved[2];
} blz_token_op;

/*
 * Awaits the cancellation of the token: 0. The reference must stay until the future is ready.
 * Interruptible: -ECANCELED. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_token_cancelled(blz_token_op *op, blz_token *token);

/*
 * Blocks this thread until the token is cancelled: 0; -EDEADLK on a worker. [any thread but a
 * worker]
 */
static inline int64_t blz_token_wait(blz_token *token)
{
    blz_token_op op;

    return blz_wait(blz_token_cancelled(BLZ_FRESH_(&op), token));
}

/* The future of blz_token_guard. */
typedef struct blz_token_guard_op {
    blz_future future;
    blz_waiter waiter;
    blz_token *token;
    uint64_t reserved[2];
} blz_token_guard_op;

/*
 * Awaits `inner` until the token is cancelled: then `inner` is cancelled, and awaited all the same.
 * Gives its result: -ECANCELED, or what it had when that came first. It is not started if the token
 * has been cancelled before. `inner` is a cancel scope of its own; around blz_scope_join it cancels
 * all children of the scope. The reference must stay until it is ready. A cancellation from outside
 * is passed on. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_token_guard(blz_token_guard_op *op, blz_token *token,
                                                  blz_future *inner);

/* ---- Callbacks ---- */

/* A struct of the caller's, which stays until blz_token_unregister has returned. */
typedef struct blz_token_callback {
    struct blz_token_callback *next, *prev;
    void (*fn)(void *arg);
    void *arg;
    blz_token *token; /* NULL: not registered */
    uint64_t linked;
    uint64_t reserved;
} blz_token_callback;

/*
 * Registers fn(arg) to be called once when the token is cancelled, on the thread that cancels it,
 * in the order of registration. 0: registered; blz_token_unregister must be called, and the token
 * stays until then. 1: the token had been cancelled; fn(arg) has been called on this thread, and
 * nothing is registered. It cannot fail. [any thread that has a reference]
 */
BLZ_API BLZ_NODISCARD int blz_token_register(blz_token_callback *callback, blz_token *token,
                                             void (*fn)(void *arg), void *arg);

/*
 * Removes a callback. True: it has not been called, and never will be. False: it has been called;
 * if it was running, this waits for its end, so that its memory may be freed. Only inside of the
 * callback itself it does not wait. Must not be called while holding a lock that the callback
 * takes. [any thread]
 */
BLZ_API bool blz_token_unregister(blz_token_callback *callback);

/*
 * Cancels the task (blz_task_cancel) when the token is cancelled. 0: bound; blz_token_unbind must
 * be called. 1: the token had been cancelled, and the task has been cancelled at once. It cannot
 * fail. [any thread that has both references]
 */
BLZ_API BLZ_NODISCARD int blz_token_bind(blz_token_callback *callback, blz_token *token,
                                         blz_task *task);

/*
 * Undoes blz_token_bind: true if the task has not been cancelled by it. After a blz_token_bind that
 * gave 1 it does nothing. [any thread]
 */
BLZ_API bool blz_token_unbind(blz_token_callback *callback);

BLZ_END_DECLS
#endif
