/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an unbounded channel keeps its messages: a chain of segments, each with room for a few. A
 * message at position p is in slot p % SEGMENT_SLOTS of its segment; the slot has a word that says
 * whether the message is there.
 *
 * Senders claim a position by a compare-and-swap of the tail word. The first slot of a segment is
 * claimed under the lock, by whoever installs it; so while the tail is anywhere else, tail_segment
 * is the segment of the tail. A sender reads it before its compare-and-swap, which fails if the
 * tail has moved on since. A claimed slot keeps its segment alive until it is published and taken.
 *
 * Receivers look before they take, and what they look at must not be freed meanwhile: so there is
 * one at a time, which holds a bit of the head word from its look to its release. That is one
 * read-modify-write and one store, as much as a claim would cost.
 *
 * The receiver that goes on to the next segment gives the old one back: it is kept for the next
 * sender who needs one, and the one that had been kept before is freed. A channel that is empty
 * after a burst has two segments. It never leaves a segment before there is a next one, so that
 * who installs a segment can link it to the last.
 *
 * Positions begin at the second slot of a segment, as if the first one had been taken.
 */
#include "base/alloc.h"
#include "channel/channel.h"

#include <errno.h>

#ifdef BLZ_MODEL
enum { SEGMENT_SLOTS = 2 };
#else
enum { SEGMENT_SLOTS = 32 };
#endif

enum { HEAD_SPINS = 100 };

_Static_assert(FIRST_POS % SEGMENT_SLOTS == 1, "the first segment is there, and is not installed");

struct segment {
    segment *next;
};

static const blz_slot_ no_slot = {NULL, 0};

static size_t segment_size(const blz_channel *ch)
{
    return ch->segment_slots + (size_t)SEGMENT_SLOTS * ch->slot_size;
}

static uint32_t slot_of(uint32_t pos)
{
    return pos % SEGMENT_SLOTS;
}

/* The word that says whether the message is there. */
static uint32_t *full_at(const blz_channel *ch, segment *seg, uint32_t i)
{
    return (uint32_t *)(void *)((char *)seg + ch->segment_slots + (size_t)i * ch->slot_size);
}

static blz_slot_ slot_at(const blz_channel *ch, segment *seg, uint32_t pos)
{
    return (blz_slot_){(char *)full_at(ch, seg, slot_of(pos)) + ch->elem_offset, pos};
}

/* ---- segments ---- */

static void free_segment(blz_channel *ch, segment *seg)
{
    if (seg)
        blz__free(&ch->allocator, seg, segment_size(ch), ch->align);
}

/* For who has it alone. */
static void reset_segment(const blz_channel *ch, segment *seg)
{
    blz__store(&seg->next, NULL, RELAXED);
    for (uint32_t i = 0; i < SEGMENT_SLOTS; i++)
        blz__store(full_at(ch, seg, i), 0u, RELAXED);
}

segment *blz__chain_new_segment(blz_channel *ch)
{
    segment *seg = blz__swap(&ch->spare, NULL, ACQUIRE); /* pairs with the release in keep */

    if (seg)
        return seg;
    seg = blz__alloc(&ch->allocator, segment_size(ch), ch->align);
    if (seg)
        reset_segment(ch, seg);
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
    return slot_of(pos_of(blz__load(&ch->tail, RELAXED))) == 0;
}

blz_slot_ blz__chain_claim(blz_channel *ch, uint64_t barred)
{
    /* acquire, here and below: the segment of the tail; pairs with the release in install */
    uint64_t tail = blz__load(&ch->tail, ACQUIRE);

    while (!(tail & barred) && slot_of(pos_of(tail)) != 0) {
        segment *seg = blz__load(&ch->tail_segment, RELAXED);
        if (blz__cas_weak(&ch->tail, &tail, tail + POS_ONE, ACQUIRE, ACQUIRE))
            return slot_at(ch, seg, pos_of(tail));
    }
    return no_slot;
}

/* Under the lock, with the tail at the first slot of a new segment, which it claims. */
static blz_slot_ install(blz_channel *ch, segment *seg)
{
    segment *last = blz__load(&ch->tail_segment, RELAXED);
    uint64_t tail = blz__load(&ch->tail, RELAXED);

    blz__store(&last->next, seg, RELEASE); /* an empty segment; pairs with front */
    blz__store(&ch->tail_segment, seg, RELAXED);
    do {
        if (tail & CLOSED)
            return no_slot; /* for good: it stays where it is */
        /* release: the segment; pairs with blz__chain_claim */
    } while (!blz__cas_weak(&ch->tail, &tail, tail + POS_ONE, RELEASE, RELAXED));
    return slot_at(ch, seg, pos_of(tail));
}

blz_slot_ blz__chain_claim_locked(blz_channel *ch, segment **seg)
{
    blz_slot_ slot;

    for (;;) {
        slot = blz__chain_claim(ch, CLOSED);
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

void blz__chain_publish(blz_channel *ch, blz_slot_ slot)
{
    uint32_t *full = (uint32_t *)(void *)((char *)slot.elem - ch->elem_offset);

    blz__store(full, 1u, RELEASE); /* the message; pairs with is_full */
}

/* ---- receivers ---- */

static bool is_full(const blz_channel *ch, segment *seg, uint32_t i)
{
    return blz__load(full_at(ch, seg, i), ACQUIRE); /* pairs with blz__chain_publish */
}

static void lock_head(blz_channel *ch)
{
    uint64_t head = blz__load(&ch->head, RELAXED);

    for (unsigned spins = 0;; spins++) {
        /* acquire: head_segment, and that messages have been read; pairs with unlock_head */
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

/* And on by as many messages. */
static void unlock_head(blz_channel *ch, uint32_t taken)
{
    uint64_t head = blz__load(&ch->head, RELAXED) & ~HEAD_LOCKED;

    blz__store(&ch->head, head + taken * POS_ONE, RELEASE); /* pairs with lock_head */
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
    reset_segment(ch, seg);
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
    if (blz_unlikely(blz__load(&ch->retired, RELAXED) != NULL))
        free_segments(ch, blz__swap(&ch->retired, NULL, ACQUIRE)); /* pairs with put_aside */
}

blz_slot_ blz__chain_front(blz_channel *ch)
{
    uint32_t pos = pos_of(blz__load(&ch->head, RELAXED));
    segment *seg = ch->head_segment, *next;

    blz__plain_read(&ch->head_segment);
    if (slot_of(pos) != 0)
        return is_full(ch, seg, slot_of(pos)) ? slot_at(ch, seg, pos) : no_slot;
    next = blz__load(&seg->next, ACQUIRE); /* pairs with the release in install */
    if (!next || !is_full(ch, next, 0))
        return no_slot;
    retire(ch, seg, next);
    return slot_at(ch, next, pos);
}

/* Others may look at the head, but nobody changes it. */
void blz__chain_advance(blz_channel *ch)
{
    unlock_head(ch, 1);
}

blz_slot_ blz__chain_take(blz_channel *ch)
{
    blz_slot_ slot;

    lock_head(ch);
    slot = blz__chain_front(ch);
    if (!slot.elem)
        unlock_head(ch, 0);
    return slot;
}

void blz__chain_release(blz_channel *ch, blz_slot_ slot)
{
    (void)slot;
    unlock_head(ch, 1);
}

/* ---- the end ---- */

void blz__chain_free(blz_channel *ch)
{
    blz__chain_clean_up(ch);
    free_segments(ch, ch->head_segment);
    free_segments(ch, blz__load(&ch->spare, RELAXED));
}
