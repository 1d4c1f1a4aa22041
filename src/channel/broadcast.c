/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast channels: making one, handles, closing, freeing. (Messages: broadcast_flow.c.)
 *
 * The numbers of senders and receivers are changed under the lock: the first to be zero closes the
 * channel, the second makes sends go nowhere, and both must agree with what is sent at that moment.
 * How many handles there are at all is a count of its own, which is the last thing that a handle
 * touches: whoever takes it to zero is alone, and frees.
 *
 *   event                 under the lock                       who acts
 *   --------------------------------------------------------------------------------------------
 *   subscribe             nr_receivers + 1; begins at the tail -
 *   receiver dropped      nr_receivers - 1                     -
 *   sender dropped        nr_senders - 1; at 0: closed         wakes all who wait
 *   weak one upgraded     nr_senders + 1, unless closed        -
 *   close                 closed                               wakes all who wait
 */
#include "channel/broadcast.h"

#include "base/assert.h"
#include "base/alloc.h"

#include <blitz/error.h>

_Static_assert(sizeof(blz_broadcast_receiver) == 24, "part of the ABI");
_Static_assert(sizeof(blz_broadcast_options) == 80, "part of the ABI");
_Static_assert(sizeof(blz_broadcast_op) == 96, "part of the ABI");

/* ---- making and freeing ---- */

enum { SLOT_ALIGN = _Alignof(max_align_t) };

static bool is_valid(const blz_broadcast_options *o)
{
    if (o->capacity == 0 || o->capacity > BLZ_BROADCAST_CAPACITY_MAX)
        return false;
    return o->copy ? o->elem_size <= BLZ_BROADCAST_COPY_MAX : !o->destroy;
}

static size_t slot_size_of(const blz_broadcast_options *o)
{
    if (o->copy)
        return (sizeof(owned_slot) + o->elem_size + 15) / 16 * 16;
    return cell_size(o->elem_size);
}

static uint64_t power_of_two_from(uint64_t n)
{
    uint64_t power = 1;

    while (power < n)
        power *= 2;
    return power;
}

static int allocate(blz_broadcast **result, const blz_broadcast_options *o)
{
    const blz_allocator *allocator = o->allocator ? o->allocator : &blz__system_allocator;
    uint64_t nr_slots = power_of_two_from(o->capacity);
    size_t slot_size = slot_size_of(o), size;
    blz_broadcast *b;
    char *slots;

    if (o->elem_size > SIZE_MAX / 2 || __builtin_mul_overflow(slot_size, nr_slots, &size))
        return -ENOMEM;
    b = blz__alloc(allocator, sizeof *b, _Alignof(blz_broadcast));
    if (!b)
        return -ENOMEM;
    slots = blz__alloc_zeroed(allocator, size, SLOT_ALIGN);
    if (!slots) {
        blz__free(allocator, b, sizeof *b, _Alignof(blz_broadcast));
        return -ENOMEM;
    }
    *b = (blz_broadcast){.capacity = o->capacity,
                         .mask = nr_slots - 1,
                         .elem_size = o->elem_size,
                         .slot_size = slot_size,
                         .size = size,
                         .slots = slots,
                         .copy = o->copy,
                         .destroy = o->destroy,
                         .arg = o->arg,
                         .allocator = *allocator};
    *result = b;
    return 0;
}

int blz_broadcast_new(blz_broadcast_sender *tx, blz_broadcast_receiver *rx,
                      const blz_broadcast_options *options)
{
    blz_broadcast *b;
    int rc = is_valid(options) ? allocate(&b, options) : -EINVAL;

    if (rc < 0)
        return rc;
    b->nr_senders = b->refs = 1;
    tx->channel = b;
    if (rx)
        *rx = blz_broadcast_subscribe(tx);
    return 0;
}

static void add_ref(blz_broadcast *b)
{
    blz__fetch_add(&b->refs, (uint64_t)1, RELAXED); /* by the owner of another */
}

static void remove_ref(blz_broadcast *b)
{
    blz_allocator allocator;

    /* release: what we did to it; acquire: what the others did. Pairs with itself. */
    if (blz__fetch_sub(&b->refs, (uint64_t)1, ACQ_REL) > 1)
        return;
    blz__broadcast_clear(b);
    allocator = b->allocator;
    blz__free(&allocator, b->slots, b->size, SLOT_ALIGN);
    blz__free(&allocator, b, sizeof *b, _Alignof(blz_broadcast));
}

/* ---- closing ---- */

/* Under the lock: nothing more is sent; claims those who wait for something. */
static void close_locked(blz_broadcast *b, blz_waiters *claimed)
{
    BLZ_ASSERT(blz__lock_is_held(&b->lock));
    /* release: for receivers that see it without the lock; pairs with blz_broadcast_try_recv */
    blz__store(&b->tail, b->tail | TAIL_CLOSED, RELEASE);
    while (!waiters_empty(&b->waiting))
        waiter_claim(b->waiting.first, &b->waiting, claimed);
}

void blz_broadcast_close(blz_broadcast *b)
{
    blz_waiters claimed = {NULL, NULL};

    blz__lock_acquire(&b->lock);
    close_locked(b, &claimed);
    blz__lock_release(&b->lock);
    waiters_serve(&claimed, WAITER_SERVED);
}

/* ---- handles ---- */

static blz_broadcast_receiver subscribe(blz_broadcast *b)
{
    blz_broadcast_receiver rx = {.channel = b};

    add_ref(b);
    blz__lock_acquire(&b->lock);
    b->nr_receivers++;
    rx.next = tail_sent(b->tail);
    blz__lock_release(&b->lock);
    return rx;
}

blz_broadcast_receiver blz_broadcast_subscribe(const blz_broadcast_sender *tx)
{
    return subscribe(tx->channel);
}

blz_broadcast_receiver blz_broadcast_resubscribe(const blz_broadcast_receiver *rx)
{
    return subscribe(rx->channel);
}

void blz_broadcast_receiver_drop(blz_broadcast_receiver *rx)
{
    blz_broadcast *b = rx->channel;

    if (!b)
        return;
    rx->channel = NULL;
    blz__lock_acquire(&b->lock);
    b->nr_receivers--;
    blz__lock_release(&b->lock);
    remove_ref(b);
}

blz_broadcast_sender blz_broadcast_sender_clone(const blz_broadcast_sender *tx)
{
    blz_broadcast *b = tx->channel;

    add_ref(b);
    blz__lock_acquire(&b->lock);
    b->nr_senders++;
    blz__lock_release(&b->lock);
    return *tx;
}

void blz_broadcast_sender_drop(blz_broadcast_sender *tx)
{
    blz_broadcast *b = tx->channel;
    blz_waiters claimed = {NULL, NULL};

    if (!b)
        return;
    tx->channel = NULL;
    blz__lock_acquire(&b->lock);
    if (--b->nr_senders == 0)
        close_locked(b, &claimed);
    blz__lock_release(&b->lock);
    waiters_serve(&claimed, WAITER_SERVED);
    remove_ref(b);
}

blz_broadcast_weak_sender blz_broadcast_sender_downgrade(const blz_broadcast_sender *tx)
{
    add_ref(tx->channel);
    return (blz_broadcast_weak_sender){tx->channel};
}

void blz_broadcast_weak_sender_drop(blz_broadcast_weak_sender *weak)
{
    blz_broadcast *b = weak->channel;

    weak->channel = NULL;
    if (b)
        remove_ref(b);
}

int blz_broadcast_weak_sender_upgrade(const blz_broadcast_weak_sender *weak,
                                      blz_broadcast_sender *tx)
{
    blz_broadcast *b = weak->channel;
    bool open;

    tx->channel = NULL;
    blz__lock_acquire(&b->lock);
    open = !(b->tail & TAIL_CLOSED);
    if (open)
        b->nr_senders++;
    blz__lock_release(&b->lock);
    if (!open)
        return -EPIPE;
    add_ref(b);
    tx->channel = b;
    return 0;
}

/* ---- looking ---- */

bool blz_broadcast_is_closed(const blz_broadcast *b)
{
    return blz__load(&b->tail, ACQUIRE) & TAIL_CLOSED; /* pairs with close_locked */
}

size_t blz_broadcast_capacity(const blz_broadcast *b)
{
    return b->capacity;
}

static size_t read_locked(blz_broadcast *b, const uint64_t *count)
{
    size_t value;

    blz__lock_acquire(&b->lock);
    value = *count;
    blz__lock_release(&b->lock);
    return value;
}

size_t blz_broadcast_senders(blz_broadcast *b)
{
    return read_locked(b, &b->nr_senders);
}

size_t blz_broadcast_receivers(blz_broadcast *b)
{
    return read_locked(b, &b->nr_receivers);
}

size_t blz_broadcast_len(const blz_broadcast_receiver *rx)
{
    blz_broadcast *b = rx->channel;
    uint64_t left = tail_sent(blz__load(&b->tail, RELAXED)) - rx->next;

    return left < b->capacity ? left : b->capacity;
}
