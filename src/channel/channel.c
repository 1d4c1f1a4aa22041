/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: making, closing and freeing them, and their handles.
 *
 * There are three counts. The last sender that goes closes the channel; the last receiver that goes
 * closes it too, and destroys what is left in it; who gives up the last of the references (all
 * senders together have one, all receivers have one, and each weak sender) frees it. Nobody touches
 * a channel after giving up its handle.
 */
#include "base/alloc.h"
#include "base/panic.h"
#include "channel/store.h"
#include "system/fence.h"

_Static_assert(sizeof(blz_channel_op) == 96, "part of the ABI");
_Static_assert(sizeof(blz_channel_options) == 80, "part of the ABI");
_Static_assert(sizeof(blz_permit) == 16, "part of the ABI");

#define ELEM_SIZE_MAX ((size_t)1 << 30)

/* ---- making one ---- */

static size_t round_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/* The largest alignment that a type of this size can have, within reason. */
static size_t natural_align(size_t size)
{
    size_t align = size & (~size + 1);

    if (align == 0)
        return 1;
    return align < _Alignof(max_align_t) ? align : _Alignof(max_align_t);
}

static bool is_power_of_two(size_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static uint32_t ring_size(size_t capacity)
{
    uint32_t size = 2;

    while (size < capacity)
        size *= 2;
    return size;
}

static bool is_sensible(const blz_channel_options *options)
{
    bool unbounded = options->capacity == BLZ_UNBOUNDED;

    if (options->capacity == 0 || (!unbounded && options->capacity > BLZ_CHANNEL_CAPACITY_MAX))
        return false;
    if (options->elem_align && !is_power_of_two(options->elem_align))
        return false;
    return options->elem_size <= ELEM_SIZE_MAX && options->elem_align <= 4096;
}

/* A ring has a word in front of each message, a segment has all of it in front of the first. */
static void lay_out(blz_channel *ch, const blz_channel_options *options)
{
    size_t align = options->elem_align ? options->elem_align : natural_align(options->elem_size);
    size_t word = sizeof(uint32_t);

    ch->elem_size = options->elem_size;
    ch->align = (uint32_t)(align < sizeof(void *) ? sizeof(void *) : align);
    if (options->capacity == BLZ_UNBOUNDED) {
        ch->slot_size = (uint32_t)round_up(ch->elem_size, align);
        ch->segment_slots = (uint32_t)round_up(sizeof(segment), align);
    } else {
        ch->elem_offset = (uint32_t)round_up(word, align);
        ch->slot_size =
            (uint32_t)round_up(ch->elem_offset + ch->elem_size, align < word ? word : align);
    }
}

bool blz__ring_is_before_first(const blz_channel *ch, uint32_t pos, uint32_t stored)
{
    return stored == ring_stored(UNTOUCHED) && FIRST_POS - 1 - pos < ch->capacity;
}

static int make_ring(blz_channel *ch, size_t capacity)
{
    uint32_t size = ring_size(capacity);

    ch->capacity = (uint32_t)capacity;
    ch->mask = size - 1;
    ch->slots = blz__alloc_zeroed(&ch->allocator, (size_t)size * ch->slot_size, ch->align);
    if (!ch->slots)
        return -ENOMEM;
    ch->head = ch->tail = FIRST_POS * POS_ONE;
    return 0;
}

static void free_memory(blz_channel *ch)
{
    blz_allocator allocator = ch->allocator;

    blz__plain_write(&ch->capacity); /* and all of it: nobody else uses it any more */
    if (is_unbounded(ch))
        blz__chain_free(ch);
    else if (ch->slots)
        blz__free(&allocator, ch->slots, (size_t)(ch->mask + 1) * ch->slot_size, ch->align);
    blz__free(&allocator, ch, sizeof *ch, _Alignof(blz_channel));
}

int blz_channel_new(blz_sender *tx, blz_receiver *rx, const blz_channel_options *options)
{
    const blz_allocator *allocator =
        options->allocator ? options->allocator : &blz__system_allocator;
    blz_channel *ch;
    int rc;

    *tx = (blz_sender){NULL};
    *rx = (blz_receiver){NULL};
    if (!is_sensible(options))
        return -EINVAL;
    ch = blz__alloc(allocator, sizeof *ch, _Alignof(blz_channel));
    if (!ch)
        return -ENOMEM;
    *ch = (blz_channel){.destroy = options->destroy,
                        .destroy_arg = options->destroy_arg,
                        .allocator = *allocator,
                        .asymmetric = blz__fence_asymmetric_init(),
                        .nr_senders = 1,
                        .nr_receivers = 1,
                        .refs = 2};
    lay_out(ch, options);
    rc =
        options->capacity == BLZ_UNBOUNDED ? blz__chain_init(ch) : make_ring(ch, options->capacity);
    if (rc < 0) {
        free_memory(ch);
        return rc;
    }
    tx->channel = rx->channel = ch;
    return 0;
}

/* ---- the end of one ---- */

static void check_unused(const blz_channel *ch)
{
    if (reserved_of(blz__load(&ch->tail, RELAXED)) > 0)
        blz__panic("the last handle of a channel was dropped before a permit");
    if (ch->senders.first || ch->receivers.first || ch->watchers.first)
        blz__panic("the last handle of a channel was dropped while an operation waits");
}

static void unref(blz_channel *ch)
{
    blz__plain_read(&ch->capacity); /* we have used it so far */
    /* release: we are through with it; acquire: so are the others */
    if (blz__fetch_sub(&ch->refs, 1, ACQ_REL) != 1)
        return;
    check_unused(ch);
    blz__channel_drain(ch); /* what was published when nobody looked any more */
    free_memory(ch);
}

/* The bits come first: who has not seen them in the tail word is seen there. */
static void close_channel(blz_channel *ch, uint64_t bits)
{
    outcome out = OUTCOME_NONE;

    blz__fetch_or(&ch->tail, bits, RELEASE); /* we do not receive; pairs with look_around */
    lock(ch);
    blz__channel_settle(ch, &out);
    blz__channel_unlock(ch, &out);
}

void blz_channel_close(blz_channel *ch)
{
    close_channel(ch, CLOSED);
}

/* ---- handles ---- */

blz_sender blz_sender_clone(const blz_sender *tx)
{
    blz__fetch_add(&tx->channel->nr_senders, 1, RELAXED);
    return *tx;
}

blz_receiver blz_receiver_clone(const blz_receiver *rx)
{
    blz__fetch_add(&rx->channel->nr_receivers, 1, RELAXED);
    return *rx;
}

void blz_sender_drop(blz_sender *tx)
{
    blz_channel *ch = tx->channel;

    tx->channel = NULL;
    if (!ch)
        return;
    blz__plain_read(&ch->capacity); /* we have used it so far */
    /* release: we are through with it; acquire: so are the others */
    if (blz__fetch_sub(&ch->nr_senders, 1, ACQ_REL) != 1)
        return;
    close_channel(ch, CLOSED);
    unref(ch);
}

void blz_receiver_drop(blz_receiver *rx)
{
    blz_channel *ch = rx->channel;

    rx->channel = NULL;
    if (!ch)
        return;
    blz__plain_read(&ch->capacity); /* we have used it so far */
    /* release: we do not receive any more; acquire: nor do the others */
    if (blz__fetch_sub(&ch->nr_receivers, 1, ACQ_REL) != 1)
        return;
    close_channel(ch, CLOSED | GONE);
    blz__channel_drain(ch);
    if (!blz_channel_is_empty(ch)) { /* somebody is in the middle of sending */
        blz__channel_raise_alarm(ch, GONE);
        blz__channel_drain(ch);
    }
    unref(ch);
}

static blz_weak_sender weak_handle(blz_channel *ch)
{
    blz__fetch_add(&ch->refs, 1, RELAXED);
    blz__fetch_add(&ch->nr_weak, 1, RELAXED);
    return (blz_weak_sender){ch};
}

blz_weak_sender blz_sender_downgrade(const blz_sender *tx)
{
    return weak_handle(tx->channel);
}

blz_weak_sender blz_weak_sender_clone(const blz_weak_sender *weak)
{
    return weak_handle(weak->channel);
}

void blz_weak_sender_drop(blz_weak_sender *weak)
{
    blz_channel *ch = weak->channel;

    weak->channel = NULL;
    if (!ch)
        return;
    blz__fetch_sub(&ch->nr_weak, 1, RELAXED);
    unref(ch);
}

int blz_weak_sender_upgrade(const blz_weak_sender *weak, blz_sender *tx)
{
    blz_channel *ch = weak->channel;
    uint64_t count = blz__load(&ch->nr_senders, RELAXED);

    *tx = (blz_sender){NULL};
    do {
        if (count == 0 || blz_channel_is_closed(ch))
            return -EPIPE;
    } while (!blz__cas_weak(&ch->nr_senders, &count, count + 1, RELAXED, RELAXED));
    tx->channel = ch;
    return 0;
}

/* ---- looking at one ---- */

bool blz_channel_is_closed(const blz_channel *ch)
{
    return blz__load(&ch->tail, RELAXED) & CLOSED;
}

size_t blz_channel_capacity(const blz_channel *ch)
{
    return is_unbounded(ch) ? BLZ_UNBOUNDED : ch->capacity;
}

/* The two words are not read at the same moment: what they say together may be impossible. */
size_t blz_channel_len(const blz_channel *ch)
{
    uint32_t head = pos_of(blz__load(&ch->head, RELAXED));
    uint32_t len = pos_of(blz__load(&ch->tail, RELAXED)) - head;

    if ((int32_t)len < 0)
        return 0;
    return is_unbounded(ch) || len < ch->capacity ? len : ch->capacity;
}

size_t blz_channel_room(const blz_channel *ch)
{
    size_t used = blz_channel_len(ch) + reserved_of(blz__load(&ch->tail, RELAXED));

    if (is_unbounded(ch))
        return BLZ_UNBOUNDED;
    return used < ch->capacity ? ch->capacity - used : 0;
}

size_t blz_channel_senders(const blz_channel *ch)
{
    return blz__load(&ch->nr_senders, RELAXED);
}

size_t blz_channel_receivers(const blz_channel *ch)
{
    return blz__load(&ch->nr_receivers, RELAXED);
}

size_t blz_channel_weak_senders(const blz_channel *ch)
{
    return blz__load(&ch->nr_weak, RELAXED);
}
