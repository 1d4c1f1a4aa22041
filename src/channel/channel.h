/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/channel: what a channel is made of.
 *
 *   channel.c   making, closing, freeing; handles; looking at one
 *   ring.h      where a bounded channel keeps its messages: a ring
 *   chain.h, .c where an unbounded one does: a chain of segments
 *   store.h     either of them
 *   flow.c      who waits, and who serves them
 *   send.c      sending, permits; the futures of senders
 *   recv.c      receiving; the futures of receivers
 *
 * The tail word is the senders': every message and every permit goes through a read-modify-write of
 * it. The head word is the receivers'.
 *
 *   tail    bits 32..63  position of the next message to be sent
 *           bits 4..31   messages that permits have been given out for
 *           GONE         there are no receivers any more: who publishes must clear up
 *           RECV_WAIT    receivers wait: who publishes must look after them
 *           SEND_WAIT    senders wait: nobody may overtake them
 *           CLOSED       nothing more is sent, but with permits
 *   head    bits 32..63  position of the next message to be received
 *           SEND_WAIT    senders wait: who frees a slot must look after them
 *           HEAD_LOCKED  unbounded: one receiver at a time (chain.c)
 *
 * A sender claims a position, writes the message, and publishes it by a store to the slot; then it
 * looks whether somebody waits. A receiver that is about to wait says so first, and looks for
 * messages afterwards. Nothing but the tail word orders the two, and that is how:
 *
 *   - A claim after RECV_WAIT was set: the sender has seen the bit.
 *   - A claim before: the receiver has seen the claim, since it set the bit in the same word. If
 *     the message is not there yet, it is *busy*: the receiver sets the bit in `alarm` as well,
 *     executes a heavy fence, and looks again. The sender publishes before that fence, and the
 *     receiver sees it, or after it, and sees the alarm.
 *
 * So a sender needs no fence (but where the system cannot fence all threads at once: fence_light),
 * and it looks at the word that it claimed with, not at the one that is there now: to read a word
 * again after a locked operation on it costs half as much as the operation.
 * The same holds the other way round: receivers claim and free, senders wait.
 *
 * The WAIT bits are set and cleared under the lock. A bit may stay set when nobody waits any more:
 * whoever comes by on account of it clears it. Two tasks that take turns need neither.
 */
#ifndef BLZ_CHANNEL_CHANNEL_H
#define BLZ_CHANNEL_CHANNEL_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/fence.h"
#include "base/store_unlock_lock.h"
#include "base/lock.h"
#include "channel/handle.h"
#include "sync/sync.h"
#include "tuning.h"

#include <blitz/channel.h>

#include <string.h>

#define CLOSED       ((uint64_t)0x1)
#define SEND_WAIT    ((uint64_t)0x2)
#define RECV_WAIT    ((uint64_t)0x4)
#define GONE         ((uint64_t)0x8)
#define RESERVED_ONE ((uint64_t)0x10)
#define POS_ONE      ((uint64_t)1 << 32)
#define HEAD_LOCKED  ((uint64_t)0x1)

/*
 * The position of the first message: 32 bits wrap after 63 messages, so that every channel does
 * it, not only those that live long. Odd, for chain.c.
 */
#define FIRST_POS ((uint32_t)-63)

typedef struct segment segment;

#if CHANNEL_STORE_UNLOCK
typedef blz__store_unlock_lock channel_lock;
#else
typedef blz__lock channel_lock;
#endif

struct blz_channel {
    /* ---- does not change ---- */
    uint32_t capacity; /* 0: unbounded */
    uint32_t mask;     /* of the ring, whose size is a power of two */
    uint32_t slot_size;
    uint32_t elem_offset; /* bounded: of the message, in its slot */
    size_t elem_size;
    char *slots;            /* bounded */
    uint32_t segment_slots; /* unbounded: how far into a segment they begin */
    uint32_t align;         /* of slots */
    bool asymmetric;        /* there are heavy fences */
    uint32_t alarm;         /* does change, but rarely: bits for those who did not see the flag */
    void (*destroy)(void *elem, void *arg);
    void *destroy_arg;
    blz_allocator allocator;

    /* ---- senders ---- */
    blz__cache_aligned uint64_t tail;
    segment *tail_segment; /* unbounded: where the tail is, unless at the first slot of one */

    /* ---- receivers ---- */
    blz__cache_aligned uint64_t head;
    segment *head_segment; /* unbounded; under HEAD_LOCKED */
    segment *retired;      /* unbounded: to be freed when no lock is held */

    /* ---- waiting; under the lock ---- */
    blz__cache_aligned channel_lock lock;
    bool send_fenced, recv_fenced; /* there was a heavy fence since the bit was set */
    blz_waiters senders, receivers, watchers;

    /* ---- handles ---- */
    uint64_t nr_senders, nr_receivers, nr_weak;
    uint64_t refs; /* weak senders, and one each for all senders and all receivers */
    uint64_t drains;
    segment *spare; /* unbounded: one segment for the next who needs one */
};

/* ---- words ---- */

static inline uint32_t pos_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t reserved_of(uint64_t tail)
{
    return (uint32_t)tail / (uint32_t)RESERVED_ONE;
}

static inline bool is_unbounded(const blz_channel *ch)
{
    return ch->capacity == 0;
}

/* ---- fences: see above ---- */

/* Between publishing or freeing, and the look at who waits. */
static inline void fence_light(const blz_channel *ch)
{
    blz__fence_light_or_full(ch->asymmetric); /* pairs with fence_heavy */
}

/* Between the bit and the second look. */
static inline void fence_heavy(const blz_channel *ch)
{
    blz__fence_heavy_or_full(ch->asymmetric); /* pairs with fence_light */
}

static inline void lock(blz_channel *ch)
{
#if CHANNEL_STORE_UNLOCK
    blz__store_unlock_lock_acquire(&ch->lock, ch->asymmetric);
#else
    blz__lock_acquire(&ch->lock);
#endif
}

/* Whether a thread holds the lock; for asserts. */
static inline bool is_locked(const blz_channel *ch)
{
#ifndef BLZ_MODEL
    return blz__store_unlock_lock_is_held(&ch->lock);
#else
    return blz__lock_is_held(&ch->lock);
#endif
}

static inline void unlock(blz_channel *ch)
{
#if CHANNEL_STORE_UNLOCK
    blz__store_unlock_lock_release(&ch->lock, ch->asymmetric);
#else
    blz__lock_release(&ch->lock);
#endif
}

/* ---- messages, of any size ---- */

static inline void copy_elem(const blz_channel *ch, void *to, const void *from)
{
    if (blz_likely(ch->elem_size == 8))
        memcpy(to, from, 8);
    else
        memcpy(to, from, ch->elem_size);
}

static inline void put_elem(const blz_channel *ch, blz_slot_ slot, const void *elem)
{
    blz__plain_write((char *)slot.elem);
    copy_elem(ch, slot.elem, elem);
}

static inline void get_elem(const blz_channel *ch, blz_slot_ slot, void *elem)
{
    blz__plain_read((char *)slot.elem);
    copy_elem(ch, elem, slot.elem);
}

/* ---- chain.c: segments of an unbounded channel ---- */

int blz__chain_init(blz_channel *ch);
void blz__chain_free(blz_channel *ch);

/* Whether the next message needs a new segment; makes one, which is installed with the claim. */
bool blz__chain_at_end(const blz_channel *ch);
segment *blz__chain_new_segment(blz_channel *ch);
void blz__chain_keep_segment(blz_channel *ch, segment *seg);

/* A place at the end, under the lock. Takes *seg if it is needed; that may be NULL. */
blz_slot_ blz__chain_claim_locked(blz_channel *ch, segment **seg);

/* The first message and exclusive use of the head, or none. */
blz_slot_ blz__chain_take_slow(blz_channel *ch);

/* The first message, for who is alone at the head anyway. */
blz_slot_ blz__chain_front(blz_channel *ch);

/* Frees what has been put aside. Not under the lock. */
void blz__chain_clean_up(blz_channel *ch);

/* ---- flow.c: under the lock, if not said otherwise ---- */

/* Who gets what they waited for, and who learns that they do not; served after the lock. */
typedef struct outcome {
    blz_waiters served, closed;
} outcome;

#define OUTCOME_NONE   \
    {                  \
        {NULL, NULL},  \
        {              \
            NULL, NULL \
        }              \
    }

/* Announce a sender or a receiver that may wait. */
void blz__channel_expect_sender(blz_channel *ch);
void blz__channel_expect_receiver(blz_channel *ch);

/*
 * A thread that has claimed before the bit was set shall look as well. With a heavy fence. The last
 * receiver calls it without the lock.
 */
void blz__channel_raise_alarm(blz_channel *ch, uint64_t bit);

/* Clears the bits of those who do not wait any more. */
void blz__channel_tidy(blz_channel *ch);

/* Room for one message, or `count` permits; a message. With a second look if it is busy. */
blz_slot_ blz__channel_claim_locked(blz_channel *ch, segment **seg);
bool blz__channel_admit_locked(blz_channel *ch, uint32_t count);
blz_slot_ blz__channel_take_locked(blz_channel *ch);

/* Closed, and all that was sent has been received, and there are no permits. */
bool blz__channel_is_drained(const blz_channel *ch);

/* Serves all who can be served. */
void blz__channel_settle(blz_channel *ch, outcome *out);

/* Releases the lock, and wakes. */
void blz__channel_unlock(blz_channel *ch, const outcome *out);

/* Somebody waits, or nobody is left: after publishing or freeing. Without the lock. */
void blz__channel_look_around(blz_channel *ch);

/* Destroys all messages: there are no receivers any more. Without the lock. [any thread] */
void blz__channel_drain(blz_channel *ch);

/* ---- futures ---- */

/* `line` of an operation. */
enum { OP_START, OP_WAITING, OP_CANCELLED };

/* The end of a wait: BLZ_PENDING, or the result. */
blz_poll blz__channel_op_waited(blz_channel_op *op);

/* Takes an operation out of its queue; false: it has been served. With repair. Without the lock. */
bool blz__channel_op_leave(blz_channel_op *op, blz_waiters *queue);

#endif
