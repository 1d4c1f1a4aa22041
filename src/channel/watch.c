/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: making one, handles, the value. (Waiting: watch_wait.c.)
 *
 * Invariant: the version word names a value that is whole in its cell, or was when the word was
 * read. Senders take turns under the lock:
 *
 *   event               under the lock                              who acts after it
 *   --------------------------------------------------------------------------------------------
 *   send                writes the other cell, version + 1          wakes the receivers
 *   modify              the same, if the version is still that      wakes the receivers, or tries
 *                       of the copy that was modified               again
 *   sender dropped      nr_senders - 1; at 0: closed                wakes the receivers
 *   receiver dropped    nr_receivers - 1; at 0:                     wakes the senders
 *
 * The count of handles is the last thing that a handle touches: whoever takes it to zero frees.
 */
#include "channel/watch.h"

#include "base/assert.h"
#include "base/alloc.h"

#include <blitz/error.h>

_Static_assert(sizeof(blz_watch_receiver) == 16, "part of the ABI");
_Static_assert(sizeof(blz_watch_op) == 120, "part of the ABI");

/* ---- making and freeing ---- */

static blz_watch *allocate(size_t value_size, const blz_allocator *allocator)
{
    size_t cell_bytes, size;
    blz_watch *w;

    if (value_size > SIZE_MAX / 8)
        return NULL;
    cell_bytes = (cell_size(value_size) + BLZ_CACHE_LINE - 1) / BLZ_CACHE_LINE * BLZ_CACHE_LINE;
    size = sizeof *w + 2 * cell_bytes;
    w = blz__alloc(allocator, size, _Alignof(blz_watch));
    if (!w)
        return NULL;
    memset(w, 0, size);
    w->value_size = value_size;
    w->size = size;
    w->cells[0] = (cell *)(void *)(w + 1);
    w->cells[1] = (cell *)(void *)((char *)(w + 1) + cell_bytes);
    w->allocator = *allocator;
    return w;
}

int blz_watch_new(blz_watch_sender *tx, blz_watch_receiver *rx, const void *initial, size_t size,
                  const blz_allocator *allocator)
{
    blz_watch *w = allocate(size, allocator ? allocator : &blz__system_allocator);

    if (!w)
        return -ENOMEM;
    cell_write(w->cells[1], 1, initial, size);
    w->version = VERSION_ONE;
    w->nr_senders = w->refs = 1;
    tx->watch = w;
    if (rx)
        *rx = blz_watch_subscribe(tx);
    return 0;
}

static void add_ref(blz_watch *w)
{
    blz__fetch_add(&w->refs, (uint64_t)1, RELAXED); /* by the owner of another */
}

static void remove_ref(blz_watch *w)
{
    blz_allocator allocator;

    /* release: what we did to it; acquire: what the others did. Pairs with itself. */
    if (blz__fetch_sub(&w->refs, (uint64_t)1, ACQ_REL) > 1)
        return;
    allocator = w->allocator;
    blz__free(&allocator, w, w->size, _Alignof(blz_watch));
}

/* ---- handles ---- */

blz_watch_sender blz_watch_sender_clone(const blz_watch_sender *tx)
{
    blz_watch *w = tx->watch;

    add_ref(w);
    blz__lock_acquire(&w->lock);
    w->nr_senders++;
    blz__lock_release(&w->lock);
    return *tx;
}

static blz_watch_receiver new_receiver(blz_watch *w, uint64_t seen)
{
    add_ref(w);
    blz__lock_acquire(&w->lock);
    w->nr_receivers++;
    blz__lock_release(&w->lock);
    return (blz_watch_receiver){w, seen};
}

blz_watch_receiver blz_watch_subscribe(const blz_watch_sender *tx)
{
    return new_receiver(tx->watch, version_number(watch_version(tx->watch)));
}

blz_watch_receiver blz_watch_receiver_clone(const blz_watch_receiver *rx)
{
    return new_receiver(rx->watch, rx->seen);
}

/* Under the lock. */
static void close_locked(blz_watch *w, blz_waiters *claimed)
{
    BLZ_ASSERT(blz__lock_is_held(&w->lock));
    /* release: for receivers that see it without the lock; pairs with watch_version */
    blz__store(&w->version, w->version | VERSION_CLOSED, RELEASE);
    claim_all(&w->receivers, claimed);
}

void blz_watch_close(blz_watch *w)
{
    blz_waiters claimed = {NULL, NULL};

    blz__lock_acquire(&w->lock);
    close_locked(w, &claimed);
    blz__lock_release(&w->lock);
    waiters_serve(&claimed, WAITER_SERVED);
}

void blz_watch_sender_drop(blz_watch_sender *tx)
{
    blz_waiters claimed = {NULL, NULL};
    blz_watch *w = tx->watch;

    if (!w)
        return;
    tx->watch = NULL;
    blz__lock_acquire(&w->lock);
    if (--w->nr_senders == 0)
        close_locked(w, &claimed);
    blz__lock_release(&w->lock);
    waiters_serve(&claimed, WAITER_SERVED);
    remove_ref(w);
}

void blz_watch_receiver_drop(blz_watch_receiver *rx)
{
    blz_waiters claimed = {NULL, NULL};
    blz_watch *w = rx->watch;

    if (!w)
        return;
    rx->watch = NULL;
    blz__lock_acquire(&w->lock);
    if (--w->nr_receivers == 0)
        claim_all(&w->senders, &claimed);
    blz__lock_release(&w->lock);
    waiters_serve(&claimed, WAITER_SERVED);
    remove_ref(w);
}

/* ---- looking ---- */

static size_t read_locked(blz_watch *w, const uint64_t *count)
{
    size_t value;

    blz__lock_acquire(&w->lock);
    value = *count;
    blz__lock_release(&w->lock);
    return value;
}

bool blz_watch_is_closed(const blz_watch *w)
{
    return watch_version(w) & VERSION_CLOSED;
}

size_t blz_watch_senders(blz_watch *w)
{
    return read_locked(w, &w->nr_senders);
}

size_t blz_watch_receivers(blz_watch *w)
{
    return read_locked(w, &w->nr_receivers);
}

/* ---- sending ---- */

/* Under the lock, which it releases: *value is the next. */
static void publish(blz_watch *w, const void *value)
{
    uint64_t number = version_number(w->version) + 1;
    blz_waiters claimed = {NULL, NULL};

    BLZ_ASSERT(blz__lock_is_held(&w->lock));
    BLZ_ASSERT(!(w->version & VERSION_CLOSED));
    cell_write(w->cells[number % 2], number, value, w->value_size);
    /* release: the cell; pairs with watch_version */
    blz__store(&w->version, w->version + VERSION_ONE, RELEASE);
    claim_all(&w->receivers, &claimed);
    blz__lock_release(&w->lock);
    waiters_serve(&claimed, WAITER_SERVED);
}

/* Takes the lock. False: closed, and it has been released. */
static bool lock_open(blz_watch *w)
{
    check_handle(w, "a watch channel");
    blz__lock_acquire(&w->lock);
    if (!(w->version & VERSION_CLOSED))
        return true;
    blz__lock_release(&w->lock);
    return false;
}

int blz_watch_send(const blz_watch_sender *tx, const void *value)
{
    if (!lock_open(tx->watch))
        return -EPIPE;
    publish(tx->watch, value);
    return 0;
}

int blz_watch_replace(const blz_watch_sender *tx, void *old, const void *value)
{
    if (!lock_open(tx->watch))
        return -EPIPE;
    blz__watch_read(tx->watch, old); /* at the first attempt: nobody else sends */
    publish(tx->watch, value);
    return 0;
}

int blz_watch_send_if_modified(const blz_watch_sender *tx, void *scratch, blz_watch_modifier modify,
                               void *arg)
{
    blz_watch *w = tx->watch;

    for (;;) {
        uint64_t version = blz__watch_read(w, scratch);
        if (version & VERSION_CLOSED)
            return -EPIPE;
        if (!modify(scratch, arg))
            return 0;
        if (!lock_open(w))
            return -EPIPE;
        if (w->version == version) {
            publish(w, scratch);
            return 1;
        }
        blz__lock_release(&w->lock);
    }
}

/* ---- reading ---- */

uint64_t blz__watch_read(const blz_watch *w, void *value)
{
    for (;;) {
        uint64_t version = watch_version(w), number = version_number(version);
        if (blz_likely(cell_read(w->cells[number % 2], number, value, w->value_size)))
            return version;
        blz__spin_hint(); /* two values have been sent meanwhile */
    }
}

void blz_watch_sender_get(const blz_watch_sender *tx, void *value)
{
    blz__watch_read(tx->watch, value);
}

int blz_watch_get(const blz_watch_receiver *rx, void *value)
{
    return version_number(blz__watch_read(rx->watch, value)) != rx->seen;
}

int blz_watch_get_and_update(blz_watch_receiver *rx, void *value)
{
    uint64_t number = version_number(blz__watch_read(rx->watch, value));
    bool is_new = number != rx->seen;

    rx->seen = number;
    return is_new;
}
