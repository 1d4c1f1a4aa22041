/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What signal handlers, the herald and those who wait share: a word for each signal, the bell, and
 * lists of waiters. Between the files of src/signal. No contact with the system: the model runs it.
 *
 * The word of a signal:
 *
 *   PLAIN      a blz_signal is open for it
 *   STOP       a blz_stop is open
 *   DEADLY     somebody has been told of the stop: the next one kills, if no blz_signal wants it
 *   the rest   how many have come since the process began
 *
 *   event      word                     next        who acts
 *   ------------------------------------------------------------------------------------------
 *   open       any                      + PLAIN     the opener: installs the handler if it is the
 *                                       or STOP     first, and begins to count here
 *   signal     PLAIN or STOP            + one       the handler: rings the bell
 *   signal     STOP, DEADLY, not PLAIN  + one       the handler: default action
 *   repeat     STOP, DEADLY, not PLAIN  the same    nobody: it came too soon after the first stop
 *   signal     neither                  + one       the handler: passes the signal on
 *   stop told  STOP                     + DEADLY    who tells, or looks: before anybody knows
 *   close      any                      - PLAIN     the closer: if it was the last, and more have
 *                                       or STOP     come than were ever received, raises it again
 *
 * So a handler does one addition, and whether the signal was taken is decided by that alone. Tools
 * send a signal to a process and then to its group, so a second stop within `repeat_ns` of the
 * first is a repeat. It is not counted: otherwise the last blz_stop would find a signal that nobody
 * has received.
 * Handlers are put back before a word is closed: one that finds it closed was overtaken by that,
 * and the signal that it has in hand belongs to whatever handler there is now.
 *
 * A subscription is a number: up to where it has received. Many may wait on it, none is ever in the
 * way of another, and a wait that is cancelled has changed nothing.
 *
 * The bell is what the herald, a thread, sleeps on. A handler must not take locks or touch tasks;
 * adding to its word and ringing is all that it does. The herald wakes those who wait in the list
 * of a signal that has come. A waiter that has joined a list looks at the word afterwards. Either
 * the herald takes the list's lock after it, and finds it; or before, and then what the herald saw
 * in the word before that, the waiter sees too.
 *
 *   bell       RUNG, and above it a number that changes whenever a herald begins or ends; one whose
 *              number is gone ends, and leaves the bell alone
 */
#ifndef BLZ_SIGNAL_NOTICE_H
#define BLZ_SIGNAL_NOTICE_H

#include "signal/words.h"
#include "sync/sync.h"
#include "system/futex.h"

#include <blitz/signal.h>

#define SLOT_PLAIN  0x1u
#define SLOT_STOP   0x2u
#define SLOT_DEADLY 0x4u
#define SLOT_ONE    UINT64_C(8)
#define SLOT_OPEN   (uint64_t)(SLOT_PLAIN | SLOT_STOP)

#define BELL_RUNG 0x1u
#define BELL_NEXT 0x2u

/* What a handler has to do. */
enum notice_verdict {
    NOTICE_TAKEN,  /* nothing more */
    NOTICE_SECOND, /* the default action */
    NOTICE_CLOSED, /* pass the signal on */
};

static inline uint64_t slot_count(const signal_slot *slot)
{
    /* acquire: the sender; pairs with the release of notice_signal */
    return blz__load(&slot->word, ACQUIRE) / SLOT_ONE;
}

/* ---- the handler ---- */

static inline void notice_ring(signal_notice *notice)
{
    /* release: what has changed; pairs with the acquire of blz__notice_await_ring */
    if (!(blz__fetch_or(&notice->bell, BELL_RUNG, RELEASE) & BELL_RUNG))
        blz__futex_wake(&notice->bell, 1);
}

static inline bool slot_is_deadly(uint64_t word)
{
    return (word & (SLOT_OPEN | SLOT_DEADLY)) == (SLOT_STOP | SLOT_DEADLY);
}

/* Whether a stop that comes now belongs to the first one. */
static inline bool stop_is_repeat(const signal_notice *notice, int64_t now_ns)
{
    int64_t first_ns = blz__load(&notice->stop_ns, RELAXED);
    return first_ns != 0 && now_ns - first_ns < blz__load(&notice->repeat_ns, RELAXED);
}

/* The first stop: when it came, and which it was; hints that are there before it is counted. */
static inline void note_stop(signal_notice *notice, int signal, int64_t now_ns)
{
    uint32_t nobody = 0;
    int64_t never = 0;

    blz__cas(&notice->stop_ns, &never, now_ns, RELAXED, RELAXED);
    blz__cas(&notice->stop_first, &nobody, (uint32_t)signal, RELAXED, RELAXED);
}

/* A signal has come, at the given instant of the monotonic clock. [signal handler] */
static inline enum notice_verdict notice_signal(signal_notice *notice, int signal, uint64_t sender,
                                                int64_t now_ns)
{
    signal_slot *slot = &notice->slots[signal];
    uint64_t word = blz__load(&slot->word, ACQUIRE); /* the hints; pairs with the CAS below */

    blz__store(&slot->sender, sender, RELAXED);
    do {
        if (slot_is_deadly(word) && stop_is_repeat(notice, now_ns))
            return NOTICE_TAKEN;
        if (word & SLOT_STOP)
            note_stop(notice, signal, now_ns);
        /* release: the sender and the hints; pairs with slot_count, and with the load above */
    } while (!blz__cas_weak(&slot->word, &word, word + SLOT_ONE, RELEASE, ACQUIRE));
    if (!(word & SLOT_OPEN))
        return NOTICE_CLOSED;
    if (slot_is_deadly(word))
        return NOTICE_SECOND;
    notice_ring(notice);
    return NOTICE_TAKEN;
}

/* ---- subscriptions; opening and closing are under a lock of the caller's ---- */

/* Returns the count from which a subscription begins. */
static inline uint64_t slot_open(signal_slot *slot, uint64_t kind)
{
    uint64_t word = blz__fetch_or(&slot->word, kind, RELAXED);

    if (!(word & SLOT_OPEN))
        blz__store(&slot->seen, word / SLOT_ONE, RELAXED);
    return word / SLOT_ONE;
}

/* The last of its kind. True: of all kinds, and what has come was not received by anybody. */
static inline bool slot_close(signal_slot *slot, uint64_t kind)
{
    uint64_t word = blz__fetch_and(&slot->word, ~kind, RELAXED);

    return !(word & SLOT_OPEN & ~kind) && word / SLOT_ONE != blz__load(&slot->seen, RELAXED);
}

/* Receives what has come since *seen, which is the subscription's: how many. */
uint64_t blz__slot_take(signal_slot *slot, uint64_t *seen);

static inline bool slot_has_come(const signal_slot *slot, const uint64_t *seen)
{
    /* acquire: the count is not older; pairs with the release in blz__slot_take */
    uint64_t mine = blz__load(seen, ACQUIRE);
    return slot_count(slot) != mine;
}

/* ---- the stop ---- */

void blz__notice_open_stop(signal_notice *notice);

/* As slot_close, for each of its signals. */
void blz__notice_close_stop(signal_notice *notice, bool unseen[NR_STOPS]);

/* Whether one of its signals has come. [with a blz_stop open] */
bool blz__notice_stop_has_come(const signal_notice *notice);

/* The signal that has come, or 0; now somebody has seen it. [with a blz_stop open] */
int blz__notice_look(signal_notice *notice);

/* ---- the herald ---- */

/* A new number for the bell, which rings: what the next herald is called by. */
uint32_t blz__notice_begin_herald(signal_notice *notice);

/* The herald of that number ends. */
void blz__notice_end_herald(signal_notice *notice);

/* Sleeps until the bell is rung. False: its time has come. [herald] */
bool blz__notice_await_ring(signal_notice *notice, uint32_t herald);

/* Wakes those who wait for what has come. [herald] */
void blz__notice_tell(signal_notice *notice);

/* ---- waiting ---- */

/* How the futures of this folder begin. */
typedef struct notice_wait {
    blz_future future;
    blz_waiter waiter;
} notice_wait;

typedef struct notice_wait_ops {
    bool (*has_come)(notice_wait *wait);
    int64_t (*take)(notice_wait *wait); /* the result; 0: nothing has come */
} notice_wait_ops;

/* True: it is ready. For ops->poll and ops->cancel of a future. */
bool blz__notice_poll(notice_wait *wait, signal_list *list, const notice_wait_ops *ops, blz_cx *cx,
                      int64_t *result);
void blz__notice_cancel(notice_wait *wait, signal_list *list);

#endif
