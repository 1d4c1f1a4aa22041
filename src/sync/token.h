/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token. Between token.c (the tree), token_call.c (callbacks) and token_wait.c (futures).
 *
 *   field                        belongs to
 *   ---------------------------------------------------------------------------------------
 *   cancelled                    set under the lock, once; read by anyone
 *   waiters, callbacks, running  the lock; no more come once it is cancelled
 *   children                     the lock; no more come once it is cancelled
 *   next, prev, linked           the lock of the parent
 *   next_cancelled               the one thread that cancels it
 */
#ifndef BLZ_SYNC_TOKEN_H
#define BLZ_SYNC_TOKEN_H

#include "sync/sync.h"

#include <blitz/token.h>

struct blz_token {
    uint64_t refs;
    uint32_t cancelled;
    blz__lock lock;
    blz_waiters waiters;

    blz_token_callback *first_callback, *last_callback;
    blz_token_callback *running; /* is being called, by the thread `runner` */
    uint64_t runner;
    uint32_t calls_ended; /* a futex */
    uint32_t awaited;     /* somebody sleeps on it */

    blz_token *parent; /* a reference; NULL: none */
    blz_token *children;
    blz_token *next, *prev;
    bool linked; /* is among the children of its parent */
    blz_token *next_cancelled;
    blz_allocator allocator;
};

static inline bool token_is_cancelled(const blz_token *token)
{
    return blz__load(&token->cancelled, ACQUIRE); /* pairs with the release in begin_cancel */
}

/* Calls the callbacks of a token that has been cancelled; by the one thread that did it. */
void blz__token_call_all(blz_token *token);

#endif
