/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a bounded channel, after Vyukov's bounded queue: each slot has a sequence number that
 * says whose turn it is. `size` is the number of slots, at least two and at least the capacity.
 *
 *   sequence of the slot of position p     meaning
 *   ------------------------------------------------------------------------------------------
 *   p                                      free for the message at p
 *   p + 1                                  that message is there
 *   p + size                               it has been taken: free for position p + size
 *   UNTOUCHED                              free for its first message, at whatever position
 *
 * Numbers are stored with a constant added, so that UNTOUCHED is a zero: a new ring is memory that
 * is all zero, and no page of it is touched before a message is in it. UNTOUCHED is so far behind
 * the first position that no other number of the first round can be mistaken for it, nor one of
 * the round in which positions have wrapped.
 *
 * The capacity is exact, whatever the size. Positions and permits are admitted in one sequence:
 * number n = position + permits given out. Number n is admitted when the message at n - capacity
 * has been taken, which its slot says. So no sender reads the head word.
 *
 * A permit becomes a position later. That its slot is free then needs no look: it was free when
 * the number p - size + capacity was admitted, which is not after p itself. What orders the two is
 * the tail word (acquire and release in each claim).
 *
 * Positions have 32 bits and wrap. A thread would have to stop between its look at a slot and its
 * compare-and-swap while exactly 2^32 messages pass, to be deceived.
 */
#ifndef BLZ_CHANNEL_RING_H
#define BLZ_CHANNEL_RING_H

#include "channel/channel.h"

#define UNTOUCHED (FIRST_POS - ((uint32_t)1 << 30))

/* A number as it is stored. */
static inline uint32_t ring_stored(uint32_t seq)
{
    return seq - UNTOUCHED;
}

static inline char *ring_slot(const blz_channel *ch, uint32_t pos)
{
    return ch->slots + (size_t)(pos & ch->mask) * ch->slot_size;
}

static inline uint32_t *ring_seq(const blz_channel *ch, uint32_t pos)
{
    return (uint32_t *)(void *)ring_slot(ch, pos);
}

/* `word` is the tail or the head that it was claimed with: a position and flags. */
static inline blz_slot_ ring_slot_at(const blz_channel *ch, uint64_t word)
{
    return (blz_slot_){ring_slot(ch, pos_of(word)) + ch->elem_offset, word};
}

/*
 * Whether it is a position before the first one, whose slot has held no message yet. Not inline:
 * it is of the first round only.
 */
bool blz__ring_is_before_first(const blz_channel *ch, uint32_t pos, uint32_t stored);

/* Whether `count` more can be admitted. */
static inline bool ring_has_room(const blz_channel *ch, uint64_t tail, uint32_t count)
{
    uint32_t from = pos_of(tail) + reserved_of(tail) - ch->capacity;

    for (uint32_t p = from; p != from + count; p++) {
        /* acquire: the message has been read; pairs with the release in ring_release */
        uint32_t stored = blz__load(ring_seq(ch, p), ACQUIRE);
        if (stored != ring_stored(p + ch->mask + 1) && !blz__ring_is_before_first(ch, p, stored))
            return false;
    }
    return true;
}

/*
 * Adds to the tail if there is room for `count`, and no flag of `barred` is set. True: *tail is
 * what it was before.
 */
static inline bool ring_admit(blz_channel *ch, uint64_t *tail, uint64_t add, uint32_t count,
                              uint64_t barred)
{
    uint64_t now = blz__load(&ch->tail, RELAXED), seen;

    for (;;) {
        if (now & barred)
            return false;
        if (ring_has_room(ch, now, count)) {
            *tail = now;
            /* acquire, release: those who were admitted before have seen slots freed */
            if (blz__cas_weak(&ch->tail, &now, now + add, ACQ_REL, RELAXED))
                return true;
            continue;
        }
        seen = now;
        now = blz__load(&ch->tail, RELAXED);
        if (now == seen)
            return false;
    }
}

/* A place for one message, or none. */
static inline blz_slot_ ring_claim(blz_channel *ch, uint64_t barred)
{
    uint64_t tail;

    if (!ring_admit(ch, &tail, POS_ONE, 1, barred))
        return (blz_slot_){NULL, 0};
    return ring_slot_at(ch, tail);
}

/* A place for a message that has a permit. */
static inline blz_slot_ ring_claim_permitted(blz_channel *ch)
{
    /* acquire: pairs with the release in ring_admit, of whoever saw the slot freed */
    uint64_t tail = blz__fetch_add(&ch->tail, POS_ONE - RESERVED_ONE, ACQUIRE);

    return ring_slot_at(ch, tail);
}

static inline void ring_publish(blz_channel *ch, blz_slot_ slot)
{
    uint32_t pos = pos_of(slot.pos);

    /* release: the message; pairs with ring_take */
    blz__store(ring_seq(ch, pos), ring_stored(pos + 1), RELEASE);
}

/* The first message, or none. */
static inline blz_slot_ ring_take(blz_channel *ch)
{
    uint64_t head = blz__load(&ch->head, RELAXED);

    for (;;) {
        uint32_t pos = pos_of(head);
        /* acquire: the message, pairs with ring_publish; or the head that is ahead of ours */
        uint32_t stored = blz__load(ring_seq(ch, pos), ACQUIRE);
        if (stored == ring_stored(pos + 1)) {
            if (blz__cas_weak(&ch->head, &head, head + POS_ONE, RELAXED, RELAXED))
                return ring_slot_at(ch, head);
        } else if ((int32_t)(stored - ring_stored(pos)) <= 0) {
            return (blz_slot_){NULL, 0};
        } else {
            head = blz__load(&ch->head, RELAXED); /* somebody else has taken it */
        }
    }
}

static inline void ring_release(blz_channel *ch, blz_slot_ slot)
{
    uint32_t pos = pos_of(slot.pos);

    /* release: it has been read; pairs with ring_has_room, and for the next message in the slot */
    blz__store(ring_seq(ch, pos), ring_stored(pos + ch->mask + 1), RELEASE);
}

#endif
