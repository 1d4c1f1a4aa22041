/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an unbounded channel keeps its messages: a chain of segments, each with room for a few. A
 * message at position p is in slot p % SEGMENT_SLOTS of its segment, which has a byte for each slot
 * that says whether the message is there. The bytes are together and the messages are together:
 * what waits in a channel takes little more memory than the messages.
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
#ifndef BLZ_CHANNEL_CHAIN_H
#define BLZ_CHANNEL_CHAIN_H

#include "channel/channel.h"

_Static_assert(FIRST_POS % SEGMENT_SLOTS == 1, "the first segment is there, and is not installed");

struct segment {
    segment *next;
    uint8_t full[SEGMENT_SLOTS];
};

static inline uint32_t chain_slot_of(uint32_t pos)
{
    return pos % SEGMENT_SLOTS;
}

static inline bool chain_is_full(const segment *seg, uint32_t i)
{
    return blz__load(&seg->full[i], ACQUIRE); /* pairs with chain_publish */
}

/* How far into its segment a message is. */
static inline size_t chain_offset(const blz_channel *ch, uint32_t i)
{
    return ch->segment_slots + (size_t)i * ch->slot_size;
}

/* `word` is the tail or the head that it was claimed with. */
static inline blz_slot_ chain_slot_at(const blz_channel *ch, segment *seg, uint64_t word)
{
    return (blz_slot_){(char *)seg + chain_offset(ch, chain_slot_of(pos_of(word))), word};
}

/* ---- senders ---- */

/* A place at the end, or none: a flag of `barred` is set, or a new segment is needed. */
static inline blz_slot_ chain_claim(blz_channel *ch, uint64_t barred)
{
    /* acquire, here and below: the segment of the tail; pairs with the release in install */
    uint64_t tail = blz__load(&ch->tail, ACQUIRE);

    while (!(tail & barred) && chain_slot_of(pos_of(tail)) != 0) {
        segment *seg = blz__load(&ch->tail_segment, RELAXED);
        if (blz__cas_weak(&ch->tail, &tail, tail + POS_ONE, ACQUIRE, ACQUIRE))
            return chain_slot_at(ch, seg, tail);
    }
    return (blz_slot_){NULL, 0};
}

static inline void chain_publish(blz_channel *ch, blz_slot_ slot)
{
    uint32_t i = chain_slot_of(pos_of(slot.pos));
    segment *seg = (segment *)(void *)((char *)slot.elem - chain_offset(ch, i));

    blz__store(&seg->full[i], (uint8_t)1, RELEASE); /* the message; pairs with chain_is_full */
}

/* ---- receivers ---- */

/* The first message, and exclusive use of the head; or none. */
static inline blz_slot_ chain_take(blz_channel *ch)
{
    uint64_t head = blz__load(&ch->head, RELAXED);
    segment *seg;

    /* acquire: head_segment, and that messages have been read; pairs with chain_release */
    if (blz_unlikely((head & HEAD_LOCKED) || chain_slot_of(pos_of(head)) == 0 ||
                     !blz__cas_weak(&ch->head, &head, head | HEAD_LOCKED, ACQUIRE, RELAXED)))
        return blz__chain_take_slow(ch);
    blz__plain_read(&ch->head_segment);
    seg = ch->head_segment;
    if (blz_likely(chain_is_full(seg, chain_slot_of(pos_of(head)))))
        return chain_slot_at(ch, seg, head);
    blz__store(&ch->head, head, RELEASE); /* pairs with the acquire above */
    return (blz_slot_){NULL, 0};
}

/* On by one message, and for others again. */
static inline void chain_release(blz_channel *ch, blz_slot_ slot)
{
    blz__store(&ch->head, slot.pos + POS_ONE, RELEASE); /* pairs with the acquire in chain_take */
}

#endif
