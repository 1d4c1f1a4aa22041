/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of an unbounded channel (chain.h): what happens once in a segment. */
#include "base/assert.h"
#include "base/alloc.h"
#include "channel/chain.h"
#include "system/thread.h"

#include <blitz/error.h>

enum { HEAD_SPINS = 100 };

static const blz_slot_ no_slot = {NULL, 0};

static size_t segment_size(const blz_channel *ch)
{
    return ch->segment_slots + (size_t)SEGMENT_SLOTS * ch->slot_size;
}

/* ---- segments ---- */

static void free_segment(blz_channel *ch, segment *seg)
{
    if (seg)
        blz__free(&ch->allocator, seg, segment_size(ch), ch->align);
}

/* For who has it alone: it is handed on with a release, so the bytes need not be atomic here. */
static void reset_segment(segment *seg)
{
    blz__store(&seg->next, NULL, RELAXED);
    blz__clear_words(seg->full, SEGMENT_SLOTS);
}

segment *blz__chain_new_segment(blz_channel *ch)
{
    segment *seg = blz__swap(&ch->spare, NULL, ACQUIRE); /* pairs with the release in keep */

    if (seg)
        return seg;
    seg = blz__alloc(&ch->allocator, segment_size(ch), ch->align);
    if (seg)
        reset_segment(seg);
    return seg;
}

/* Keeps it for the next who needs one. Returns the one that was kept before. */
static segment *keep(blz_channel *ch, segment *seg)
{
    /* release: it has been reset, and its messages read; acquire: so has the other one */
    return blz__swap(&ch->spare, seg, ACQ_REL);
}

void blz__chain_keep_segment(blz_channel *ch, segment *seg)
{
    free_segment(ch, keep(ch, seg));
}

int blz__chain_init(blz_channel *ch)
{
    segment *first = blz__chain_new_segment(ch);

    if (!first)
        return -ENOMEM;
    ch->head_segment = ch->tail_segment = first;
    ch->head = ch->tail = FIRST_POS * POS_ONE;
    return 0;
}

/* ---- senders ---- */

bool blz__chain_at_end(const blz_channel *ch)
{
    return chain_slot_of(pos_of(blz__load(&ch->tail, RELAXED))) == 0;
}

/* Under the lock, with the tail at the first slot of a new segment, which it claims. */
static blz_slot_ install(blz_channel *ch, segment *seg)
{
    segment *last = blz__load(&ch->tail_segment, RELAXED);
    uint64_t tail = blz__load(&ch->tail, RELAXED);

    BLZ_ASSERT(is_locked(ch));
    blz__store(&last->next, seg, RELEASE); /* an empty segment; pairs with front */
    blz__store(&ch->tail_segment, seg, RELAXED);
    do {
        if (tail & CLOSED)
            return no_slot; /* for good: it stays where it is */
        /* release: the segment; pairs with chain_claim */
    } while (!blz__cas_weak(&ch->tail, &tail, tail + POS_ONE, RELEASE, RELAXED));
    return chain_slot_at(ch, seg, tail);
}

blz_slot_ blz__chain_claim_locked(blz_channel *ch, segment **seg)
{
    blz_slot_ slot;

    BLZ_ASSERT(is_locked(ch));
    BLZ_ASSERT(is_unbounded(ch));
    for (;;) {
        slot = chain_claim(ch, CLOSED);
        if (slot.elem || (blz__load(&ch->tail, RELAXED) & CLOSED))
            return slot;
        if (!blz__chain_at_end(ch))
            continue;
        if (!*seg)
            return no_slot;
        slot = install(ch, *seg);
        *seg = NULL;
        return slot;
    }
}

/* ---- receivers ---- */

static void lock_head(blz_channel *ch)
{
    uint64_t head = blz__load(&ch->head, RELAXED);

    for (unsigned spins = 0;; spins++) {
        /* acquire: head_segment, and that messages have been read; pairs with chain_release */
        if (!(head & HEAD_LOCKED) &&
            blz__cas_weak(&ch->head, &head, head | HEAD_LOCKED, ACQUIRE, RELAXED))
            return;
        if (head & HEAD_LOCKED) {
            if (spins % HEAD_SPINS == HEAD_SPINS - 1)
                blz__thread_yield();
            blz__spin_hint();
            head = blz__load(&ch->head, RELAXED);
        }
    }
}

static void unlock_head(blz_channel *ch)
{
    uint64_t head = blz__load(&ch->head, RELAXED);

    blz__store(&ch->head, head & ~HEAD_LOCKED, RELEASE); /* pairs with lock_head */
}

/* It is freed when no lock is held. */
static void put_aside(blz_channel *ch, segment *seg)
{
    segment *next = blz__load(&ch->retired, RELAXED);

    do {
        blz__store(&seg->next, next, RELAXED);
        /* release: nobody uses it any more; pairs with blz__chain_clean_up */
    } while (!blz__cas_weak(&ch->retired, &next, seg, RELEASE, RELAXED));
}

/* All of it has been taken: on to the next segment. */
static void retire(blz_channel *ch, segment *seg, segment *next)
{
    blz__plain_write(&ch->head_segment);
    ch->head_segment = next;
    reset_segment(seg);
    seg = keep(ch, seg);
    if (seg)
        put_aside(ch, seg);
}

static void free_segments(blz_channel *ch, segment *seg)
{
    for (segment *next; seg; seg = next) {
        next = blz__load(&seg->next, RELAXED);
        free_segment(ch, seg);
    }
}

void blz__chain_clean_up(blz_channel *ch)
{
    if (blz__load(&ch->retired, RELAXED) != NULL)
        free_segments(ch, blz__swap(&ch->retired, NULL, ACQUIRE)); /* pairs with put_aside */
}

/* For who is alone at the head. */
blz_slot_ blz__chain_front(blz_channel *ch)
{
    uint64_t head = blz__load(&ch->head, RELAXED) & ~HEAD_LOCKED;
    uint32_t i = chain_slot_of(pos_of(head));
    segment *seg = ch->head_segment, *next;

    blz__plain_read(&ch->head_segment);
    if (i != 0)
        return chain_is_full(seg, i) ? chain_slot_at(ch, seg, head) : no_slot;
    next = blz__load(&seg->next, ACQUIRE); /* pairs with the release in install */
    if (!next || !chain_is_full(next, 0))
        return no_slot;
    retire(ch, seg, next);
    return chain_slot_at(ch, next, head);
}

blz_slot_ blz__chain_take_slow(blz_channel *ch)
{
    blz_slot_ slot;

    lock_head(ch);
    slot = blz__chain_front(ch);
    if (!slot.elem)
        unlock_head(ch);
    return slot;
}

/* ---- the end ---- */

void blz__chain_free(blz_channel *ch)
{
    blz__chain_clean_up(ch);
    free_segments(ch, ch->head_segment);
    free_segments(ch, blz__load(&ch->spare, RELAXED));
}
