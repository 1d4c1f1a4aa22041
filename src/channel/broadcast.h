/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broadcast channel, between its two files:
 *
 *   broadcast.c        making, handles, closing, freeing
 *   broadcast_flow.c   messages: sending, receiving, waiting
 *
 * The messages are in a ring of slots, whose number is a power of two; the capacity is exact all
 * the same, because a receiver goes by positions, not by what happens to be left in a slot. Two
 * kinds of slots: a cell (cell.h), which receivers read without a lock; and for messages with a
 * `copy` function an owned slot, with a lock for that one message.
 *
 * Who may touch what: the lock is for senders, handles, and receivers that wait. A receiver that
 * finds a message needs the tail word and the slot.
 */
#ifndef BLZ_CHANNEL_BROADCAST_H
#define BLZ_CHANNEL_BROADCAST_H

#include "base/cacheline.h"
#include "channel/cell.h"
#include "channel/handle.h"
#include "sync/sync.h"

#include <blitz/broadcast.h>

/* The tail word: how often was something sent, and whether that is all. */
#define TAIL_CLOSED ((uint64_t)1)
#define TAIL_ONE    ((uint64_t)2)

static inline uint64_t tail_sent(uint64_t tail)
{
    return tail / TAIL_ONE;
}

struct blz_broadcast {
    /* ---- does not change ---- */
    uint64_t capacity, mask;
    size_t elem_size, slot_size, size;
    char *slots;
    int (*copy)(void *to, const void *from, void *arg);
    void (*destroy)(void *elem, void *arg);
    void *arg;
    blz_allocator allocator;

    /* ---- changes with each message ---- */
    blz__cache_aligned blz__lock lock;
    uint64_t tail;       /* written under the lock */
    blz_waiters waiting; /* the rest: under the lock */
    uint64_t nr_receivers;
    uint64_t nr_senders;

    uint64_t refs; /* handles of all kinds */
};

/* A message that has to be copied by a function. The number is that of a cell; 0: it is empty. */
typedef struct owned_slot {
    uint64_t number;
    blz__lock lock;
    uint32_t unused;
    _Alignas(16) char elem[];
} owned_slot;

static inline void *slot_at(const blz_broadcast *b, uint64_t pos)
{
    return b->slots + (pos & b->mask) * b->slot_size;
}

/* The message at `pos` was the number-th of all: cells begin to count with 1. */
static inline uint64_t slot_number(uint64_t pos)
{
    return pos + 1;
}

/* ---- broadcast_flow.c ---- */

/* Destroys what is left in the ring. [who has the last handle] */
void blz__broadcast_clear(blz_broadcast *b);

#endif
