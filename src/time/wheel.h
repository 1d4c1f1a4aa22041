/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer wheel: the timers of one worker, in six levels of 64 slots. A data structure over base,
 * embedded in the worker. See wheel.c for how it works, docs/design/time.md for how it is used.
 *
 * What may be called by whom: everything by any thread, except `sleep`, which is the owner's.
 * `mine` says that the caller is the owner, for whom the lock costs next to nothing. A timer is
 * inserted by one thread at a time; it may be removed and reset by several.
 */
#ifndef BLZ_TIME_WHEEL_H
#define BLZ_TIME_WHEEL_H

#include "base/atomic.h"
#include "base/biased_lock.h"

#include <blitz/time.h>

enum {
    WHEEL_LEVELS = 6,
    WHEEL_BITS = 6,
    WHEEL_SLOTS = 1 << WHEEL_BITS,
    WHEEL_NEVER = WHEEL_LEVELS * WHEEL_SLOTS, /* the list of timers that are never due */
    WHEEL_LATE,                               /* the list of callbacks that wait for the owner */
    WHEEL_LISTS,
};

/* The length of a tick. */
#define WHEEL_TICK_NS BLZ_MSEC

/* states of a timer */
enum { TIMER_IDLE, TIMER_ARMED, TIMER_FIRED };

/* First come, first served: timers of one tick fire in the order in which they were inserted. */
typedef struct wheel_slot {
    blz_timer *first, *last;
    blz_timer *behind; /* a few before the last, or NULL; see append */
    uint32_t appended; /* since `behind` was set, up to a few */
    uint64_t min;      /* no timer in here is due before this tick */
} wheel_slot;

typedef struct blz__wheel {
    blz__biased_lock lock; /* of all that follows */
    int64_t next_ns;       /* nothing is due before */
    int64_t next_guess;    /* the same; also read without the lock */
    int64_t asleep_until;  /* when the owner looks again by itself, if it sleeps */
    uint64_t elapsed;      /* the tick from which levels are counted */
    uint64_t floor;        /* ticks before this have been handled */
    uint64_t nr_armed, nr_fired;
    uint64_t occupied[WHEEL_LEVELS]; /* a bit for each slot */
    wheel_slot slots[WHEEL_LISTS];
} blz__wheel;

/* What a timer that fired asks for. The timer itself is its owner's again. */
typedef struct wheel_fired {
    blz_timer_target target;
    bool calls; /* else it wakes */
} wheel_fired;

void blz__wheel_init(blz__wheel *wheel, int64_t now_ns, bool asymmetric_fences);

/*
 * Inserts a timer that is not armed, its target filled in. True: the owner sleeps for longer than
 * that, wake it.
 */
bool blz__wheel_insert(blz__wheel *wheel, blz_timer *timer, int64_t deadline_ns, bool mine);

/* Takes an armed timer out: its target is the caller's. False: it is not armed, or has fired. */
bool blz__wheel_remove(blz_timer *timer, bool mine);

/* What became of a reset: nothing, since the timer has fired; moved; moved, and wake the owner. */
enum wheel_reset { WHEEL_RESET_LATE, WHEEL_RESET_DONE, WHEEL_RESET_WAKE };
enum wheel_reset blz__wheel_reset(blz_timer *timer, int64_t deadline_ns, bool mine);

/*
 * Takes out timers that are due, in their order, at most `max`. Fewer than that: these were the
 * last for now. Timers inserted after the first call for a given `now_ns` are not among them. Any
 * other thread than the owner gets only timers that wake: callbacks stay armed until the owner
 * collects them.
 */
size_t blz__wheel_collect(blz__wheel *wheel, int64_t now_ns, wheel_fired *fired, size_t max,
                          bool mine);

/* When to look again; INT64_MAX: never. A little early at times, never late. */
int64_t blz__wheel_next(blz__wheel *wheel, bool mine);

/*
 * The owner is about to sleep: says until when it may (INT64_MAX: there is no timer). From now on
 * an earlier timer makes `insert` and `reset` ask for it to be woken. [owner]
 */
int64_t blz__wheel_sleep(blz__wheel *wheel);

/* Takes one timer out, whenever it is due; NULL: there is none. [any thread but the owner] */
blz_timer *blz__wheel_drop(blz__wheel *wheel);

/*
 * Validator (base/assert.h). [owner, without the lock; or any thread, if no other uses the wheel]
 */
const char *blz__wheel_check(blz__wheel *wheel);

/* Whether it waits to fire. Once it does not, its memory is the owner's again. */
static inline bool timer_is_armed(const blz_timer *timer)
{
    return blz__load(&timer->state, ACQUIRE) == TIMER_ARMED; /* pairs with fire in wheel.c */
}

/* When it is due, by a look from outside while it is armed. */
static inline int64_t timer_due_ns(const blz_timer *timer)
{
    /* relaxed: another thread may be moving it; either answer is one */
    uint64_t tick = blz__load(&timer->tick, RELAXED);

    return tick < (uint64_t)(BLZ_NEVER / WHEEL_TICK_NS) ? (int64_t)tick * WHEEL_TICK_NS : BLZ_NEVER;
}

/* A look without the lock: nothing is due before. The owner's own insertions are in it. */
static inline int64_t wheel_next_guess(const blz__wheel *wheel)
{
    return blz__load(&wheel->next_guess, RELAXED);
}

#endif
