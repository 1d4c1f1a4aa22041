/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of tokens: a list in each, under its lock. The thread that cancels takes them out one
 * by one, notes which one it is about to call, and calls it without the lock. It does not touch a
 * callback after its call, which may have unregistered and freed it.
 *
 *   unregister finds it      what happens
 *   -----------------------------------------------------------------------------------------
 *   in the list              takes it out: it is never called
 *   running, elsewhere       sleeps until the call has ended
 *   running, in this thread  nothing: we are inside of it, or of something that it called
 *   neither                  nothing: the call has ended
 *
 * A registered callback has a reference to its token, until it is unregistered.
 */
#include "sync/token.h"

#include "base/assert.h"
#include "system/futex.h"
#include "system/thread.h"

#include <limits.h>

/* Under the lock. */
static void append(blz_token *token, blz_token_callback *callback)
{
    BLZ_ASSERT(blz__lock_is_held(&token->lock));
    BLZ_ASSERT(!callback->linked);
    blz_token_ref(token);
    callback->linked = true;
    callback->prev = token->last_callback;
    if (token->last_callback)
        token->last_callback->next = callback;
    else
        token->first_callback = callback;
    token->last_callback = callback;
}

/* Under the lock. */
static void take_out(blz_token *token, blz_token_callback *callback)
{
    BLZ_ASSERT(blz__lock_is_held(&token->lock));
    BLZ_ASSERT(callback->linked);
    if (callback->prev)
        callback->prev->next = callback->next;
    else
        token->first_callback = callback->next;
    if (callback->next)
        callback->next->prev = callback->prev;
    else
        token->last_callback = callback->prev;
    callback->linked = false;
}

int blz_token_register(blz_token_callback *callback, blz_token *token, void (*fn)(void *arg),
                       void *arg)
{
    bool cancelled;

    *callback = (blz_token_callback){.fn = fn, .arg = arg, .token = token};
    blz__lock_acquire(&token->lock);
    cancelled = blz__load(&token->cancelled, RELAXED); /* ordered by the lock */
    if (!cancelled)
        append(token, callback);
    blz__lock_release(&token->lock);
    if (!cancelled)
        return 0;
    callback->token = NULL;
    fn(arg);
    return 1;
}

/* The next to be called, noted as running. Under the lock. NULL: there is none. */
static blz_token_callback *begin_call(blz_token *token)
{
    blz_token_callback *callback = token->first_callback;

    BLZ_ASSERT(blz__lock_is_held(&token->lock));
    BLZ_ASSERT(!token->running);
    if (callback) {
        take_out(token, callback);
        token->running = callback;
        token->runner = blz__thread_id();
    }
    return callback;
}

/* Under the lock. True: somebody sleeps until this. */
static bool end_call(blz_token *token)
{
    bool awaited = token->awaited;

    BLZ_ASSERT(blz__lock_is_held(&token->lock));
    BLZ_ASSERT(token->running);
    token->running = NULL;
    token->awaited = false;
    blz__store(&token->calls_ended, token->calls_ended + 1, RELAXED); /* ordered by the lock */
    return awaited;
}

void blz__token_call_all(blz_token *token)
{
    blz_token_callback *callback;

    blz__lock_acquire(&token->lock);
    while ((callback = begin_call(token))) {
        void (*fn)(void *arg) = callback->fn;
        void *arg = callback->arg;
        bool awaited;
        blz__lock_release(&token->lock);
        fn(arg); /* the callback may be gone now */
        blz__lock_acquire(&token->lock);
        awaited = end_call(token);
        blz__lock_release(&token->lock);
        if (awaited)
            blz__futex_wake(&token->calls_ended, INT_MAX);
        blz__lock_acquire(&token->lock);
    }
    blz__lock_release(&token->lock);
}

/* Waits until it is not running, unless we are inside of it. Under the lock, let go meanwhile. */
static void await_call(blz_token *token, const blz_token_callback *callback)
{
    BLZ_ASSERT(blz__lock_is_held(&token->lock));
    while (token->running == callback && token->runner != blz__thread_id()) {
        uint32_t ended = blz__load(&token->calls_ended, RELAXED); /* ordered by the lock */
        token->awaited = true;
        blz__lock_release(&token->lock);
        blz__futex_wait(&token->calls_ended, ended);
        blz__lock_acquire(&token->lock);
    }
}

bool blz_token_unregister(blz_token_callback *callback)
{
    blz_token *token = callback->token;
    bool linked;

    if (!token)
        return false;
    blz__lock_acquire(&token->lock);
    linked = callback->linked;
    if (linked)
        take_out(token, callback);
    else
        await_call(token, callback);
    blz__lock_release(&token->lock);
    callback->token = NULL;
    blz_token_unref(token);
    return linked;
}

/* ---- tasks ---- */

static void cancel_task(void *task)
{
    blz_task_cancel(task);
}

int blz_token_bind(blz_token_callback *callback, blz_token *token, blz_task *task)
{
    int rc = blz_token_register(callback, token, cancel_task, blz_task_ref(task));

    if (rc == 1)
        blz_task_unref(task);
    return rc;
}

bool blz_token_unbind(blz_token_callback *callback)
{
    bool bound = callback->token, unbound = blz_token_unregister(callback);

    if (bound)
        blz_task_unref(callback->arg);
    return unbound;
}
