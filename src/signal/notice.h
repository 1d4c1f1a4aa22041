/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notice that the process is to stop: one word, and the list of those who wait for it. Between
 * the files of src/signal.
 *
 *   bits 0-7   the signal that came first, or 0
 *   OPEN       somebody wants to know: our handlers are installed
 *   TOLD       those who waited have been woken
 *   SEEN       somebody has been given the signal
 *
 *   event            word                    next              who acts
 *   -------------------------------------------------------------------------------------------
 *   open             0                       OPEN              the opener: installs the handlers
 *   signal n         OPEN                    OPEN | n          the handler: wakes the herald
 *   signal n         OPEN | m                the same          nobody: the herald is on its way
 *   signal n         OPEN | m | TOLD, SEEN   the same          the handler: default action
 *   signal n         0                       0                 the handler: passes the signal on
 *   announce         OPEN | m                + TOLD            the herald: wakes all who wait
 *   look             OPEN | m                + SEEN            who looks has the signal
 *   close            OPEN [| m | SEEN]       0                 the herald: ends
 *   close            OPEN | m, not SEEN      0                 the closer: raises m again
 *
 * Handlers are put back before the word is closed. So a handler that finds it closed was overtaken
 * by that, and the signal that it has in hand belongs to whatever handler there is now.
 *
 * The herald is a thread that sleeps on the word. A handler must not take locks or touch tasks;
 * changing the word and waking a thread is all that it does.
 *
 * A waiter that links itself looks at the word afterwards. Either the herald takes the list's lock
 * after it, and finds it; or before, and then what it did to the word before that is visible. The
 * lock gives the order, so the operations on the word need none of their own.
 */
#ifndef BLZ_SIGNAL_NOTICE_H
#define BLZ_SIGNAL_NOTICE_H

#include "base/lock.h"

#include <blitz/signal.h>

typedef struct stop_notice {
    uint32_t word;
    blz__lock lock; /* of the list */
    blz_stop_op *waiters;
} stop_notice;

#define NOTICE_SIGNAL 0xffu
#define NOTICE_OPEN   0x100u
#define NOTICE_TOLD   0x200u
#define NOTICE_SEEN   0x400u

/* What a handler has to do. */
enum notice_verdict {
    NOTICE_TAKEN,  /* nothing more */
    NOTICE_SECOND, /* the default action */
    NOTICE_CLOSED, /* pass the signal on */
};

static inline void notice_open(stop_notice *notice)
{
    blz__store(&notice->word, NOTICE_OPEN, RELAXED);
}

/* Ends the herald; gives the signal that nobody has seen, or 0. */
static inline int notice_close(stop_notice *notice)
{
    uint32_t word = blz__swap(&notice->word, 0u, RELAXED);

    blz__futex_wake(&notice->word, 1);
    return word & NOTICE_SEEN ? 0 : (int)(word & NOTICE_SIGNAL);
}

/* A signal has come. [signal handler] */
static inline enum notice_verdict notice_signal(stop_notice *notice, int signal)
{
    uint32_t word = NOTICE_OPEN;

    if (blz__cas(&notice->word, &word, NOTICE_OPEN | (uint32_t)signal, RELAXED, RELAXED)) {
        blz__futex_wake(&notice->word, 1);
        return NOTICE_TAKEN;
    }
    if (word == 0)
        return NOTICE_CLOSED;
    return word & (NOTICE_TOLD | NOTICE_SEEN) ? NOTICE_SECOND : NOTICE_TAKEN;
}

/* The signal that has come, or 0; now somebody has seen it. */
static inline int notice_look(stop_notice *notice)
{
    uint32_t word = blz__load(&notice->word, RELAXED);

    if ((word & NOTICE_SIGNAL) && !(word & NOTICE_SEEN))
        blz__fetch_or(&notice->word, NOTICE_SEEN, RELAXED);
    return (int)(word & NOTICE_SIGNAL);
}

/* Waits for the signal and tells everybody, until the notice is closed. [herald] */
void blz__notice_herald(stop_notice *notice);

/* Links the waiter, which takes the waker over; gives the signal if it has come meanwhile, or 0. */
int blz__notice_wait(stop_notice *notice, blz_stop_op *op, blz_waker waker);

/* Unlinks it, if the herald has not. */
void blz__notice_leave(stop_notice *notice, blz_stop_op *op);

#endif
