/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of tokens: references, children, cancelling.
 *
 * A child has a reference to its parent; the parent knows its children by a list under its lock,
 * without references. When the last reference to a child goes, it takes itself out of the list
 * before its memory is freed; whoever finds it there before that, with no reference left, passes it
 * by. So no two locks are ever held at once, and there is no order of locks to keep.
 *
 * To cancel goes down the tree level by level, with a list of those that have been cancelled,
 * linked through themselves. A token is taken from its parent's list by one thread, and marked
 * cancelled by one thread, so it is in one such list only. First all are marked and those that wait
 * are served; then all callbacks are called; so a callback finds the whole tree below cancelled.
 *
 *   event       token             what happens
 *   ------------------------------------------------------------------------------------------
 *   child       not cancelled     linked to its parent
 *   child       cancelled         cancelled, without a parent
 *   cancel      not cancelled     cancelled; its waiters are served, its children come next
 *   cancel      cancelled         nothing: whoever did it takes care of its children
 *   unref       last              leaves its parent's list; freed; lets go of its parent (loop)
 */
#include "sync/token.h"

#include "base/assert.h"
#include "base/alloc.h"
#include "base/panic.h"

/* ---- references ---- */

blz_token *blz_token_ref(blz_token *token)
{
    BLZ_ASSERT(blz__peek(&token->refs) > 0);
    blz__fetch_add(&token->refs, (uint64_t)1, RELAXED); /* the caller has one */
    return token;
}

/* A reference to a child in the list of its parent, under the lock. False: it is about to go. */
static bool try_ref(blz_token *token)
{
    uint64_t refs = blz__load(&token->refs, RELAXED);

    while (refs > 0) {
        if (blz__cas_weak(&token->refs, &refs, refs + 1, RELAXED, RELAXED))
            return true;
    }
    return false;
}

/* Under the lock of the parent. */
static void unlink_child(blz_token *parent, blz_token *child)
{
    BLZ_ASSERT(blz__lock_is_held(&parent->lock));
    BLZ_ASSERT(child->linked);
    BLZ_ASSERT(child->parent == parent);
    if (child->prev)
        child->prev->next = child->next;
    else
        parent->children = child->next;
    if (child->next)
        child->next->prev = child->prev;
    child->linked = false;
}

static void free_token(blz_token *token)
{
    const blz_allocator allocator = token->allocator;

    if (!waiters_empty(&token->waiters))
        blz__panic("a blz_token was let go of while somebody waits for it");
    blz__free(&allocator, token, sizeof *token, _Alignof(blz_token));
}

void blz_token_unref(blz_token *token)
{
    /* release: what was done with it; acquire: what others did; with each other */
    while (token && blz__fetch_sub(&token->refs, (uint64_t)1, ACQ_REL) == 1) {
        blz_token *parent = token->parent;
        if (parent) {
            blz__lock_acquire(&parent->lock);
            if (token->linked)
                unlink_child(parent, token);
            blz__lock_release(&parent->lock);
        }
        free_token(token);
        token = parent;
    }
}

/* ---- making them ---- */

static blz_token *make(const blz_allocator *allocator)
{
    blz_token *token = blz__alloc(allocator, sizeof *token, _Alignof(blz_token));

    if (token)
        *token = (blz_token){.refs = 1, .allocator = *allocator};
    return token;
}

int blz_token_new_with(blz_token **token, const blz_allocator *allocator)
{
    *token = make(allocator);
    return *token ? 0 : -ENOMEM;
}

int blz_token_new(blz_token **token)
{
    return blz_token_new_with(token, &blz__system_allocator);
}

/* Under the lock of the parent, which has not been cancelled. */
static void link_child(blz_token *parent, blz_token *child)
{
    BLZ_ASSERT(blz__lock_is_held(&parent->lock));
    BLZ_ASSERT(!child->linked);
    BLZ_ASSERT(!blz__peek(&parent->cancelled));
    child->parent = blz_token_ref(parent);
    child->linked = true;
    child->next = parent->children;
    if (child->next)
        child->next->prev = child;
    parent->children = child;
}

int blz_token_child(blz_token **child, blz_token *parent)
{
    *child = make(&parent->allocator);
    if (!*child)
        return -ENOMEM;
    blz__lock_acquire(&parent->lock);
    if (blz__load(&parent->cancelled, RELAXED)) /* ordered by the lock */
        (*child)->cancelled = true;
    else
        link_child(parent, *child);
    blz__lock_release(&parent->lock);
    return 0;
}

/* ---- cancelling ---- */

bool blz_token_is_cancelled(const blz_token *token)
{
    return token_is_cancelled(token);
}

/* Those that have been cancelled by this call, each with a reference. */
struct level {
    blz_token *first, *last;
};

static void add(struct level *list, blz_token *token)
{
    token->next_cancelled = NULL;
    if (list->last)
        list->last->next_cancelled = token;
    else
        list->first = token;
    list->last = token;
}

/* Marks it, and serves those who wait. False: it had been cancelled. */
static bool begin_cancel(blz_token *token)
{
    blz_waiters claimed = {NULL, NULL};
    bool first;

    blz__lock_acquire(&token->lock);
    first = !blz__load(&token->cancelled, RELAXED); /* ordered by the lock */
    if (first) {
        /* release: what was done before; pairs with the acquire in token_is_cancelled */
        blz__store(&token->cancelled, 1u, RELEASE);
        claimed = waiters_claim_all(&token->waiters);
    }
    blz__lock_release(&token->lock);
    waiters_serve(&claimed, WAITER_SERVED);
    return first;
}

/* Takes some children out of the list, with a reference to each; 0: there are no more. */
static int take_children(blz_token *parent, blz_token **taken, int room)
{
    int count = 0;

    blz__lock_acquire(&parent->lock);
    while (parent->children && count < room) {
        blz_token *child = parent->children;
        unlink_child(parent, child);
        if (try_ref(child))
            taken[count++] = child;
    }
    blz__lock_release(&parent->lock);
    return count;
}

static void cancel_children(blz_token *parent, struct level *list)
{
    enum { BATCH = 32 };
    blz_token *batch[BATCH];
    int count;

    while ((count = take_children(parent, batch, BATCH)) > 0) {
        for (int i = 0; i < count; i++) {
            if (begin_cancel(batch[i]))
                add(list, batch[i]);
            else
                blz_token_unref(batch[i]);
        }
    }
}

bool blz_token_cancel(blz_token *token)
{
    struct level list = {NULL, NULL};

    if (token_is_cancelled(token) || !begin_cancel(token))
        return false;
    add(&list, blz_token_ref(token)); /* a callback may drop the caller's */
    for (blz_token *t = list.first; t; t = t->next_cancelled)
        cancel_children(t, &list);
    for (blz_token *t = list.first, *next; t; t = next) {
        next = t->next_cancelled;
        blz__token_call_all(t);
        blz_token_unref(t);
    }
    return true;
}
