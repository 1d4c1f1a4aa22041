/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: sleeping, repeating, limiting, and timers that call back.
 *
 *     struct patient { BLZ_FRAME; blz_sleep_op nap; blz_timeout limit; blz_oneshot_op wait;
 *                      blz_oneshot *reply; int64_t rc, value; };
 *
 *     BLZ_ASYNC(patient)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_sleep(&self->nap, 50 * BLZ_MSEC));
 *         if (self->rc == 0)
 *             BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 2 * BLZ_SEC,
 *                                 blz_oneshot_recv(&self->wait, self->reply, &self->value)));
 *         BLZ_END(self->rc);              // 0, -ETIMEDOUT, or -ECANCELED
 *     }
 *
 * Instants and durations are int64_t nanoseconds of the monotonic clock. Sums saturate
 * (blz_time_add): an instant of INT64_MAX is never reached, and no duration is too long.
 *
 * One rule holds for every limit, timeout and grace period that a function takes: BLZ_NEVER means
 * no limit; zero and everything below means that the time has passed already. In options structs,
 * where all zero means the default, 0 is the default, BLZ_NEVER no limit, and a negative value
 * no time at all.
 *
 * Timers have a resolution of one millisecond and round up: nothing here ever ends early. The clock
 * of a runtime can be a virtual one, for tests (blz_options.test_clock, below).
 */
#ifndef BLITZ_TIME_H
#define BLITZ_TIME_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* ---- Instants and durations [any thread] ---- */

/* Durations, beside those of blitz/base.h. */
#define BLZ_MINUTE (60 * BLZ_SEC)
#define BLZ_HOUR   (60 * BLZ_MINUTE)
#define BLZ_DAY    (24 * BLZ_HOUR)

/*
 * The time now, of the clock of this thread's runtime (virtual if that is); on other threads of the
 * monotonic clock. It cannot fail.
 */
BLZ_API int64_t blz_now(void);

/*
 * The date and time: nanoseconds since 1970-01-01 00:00 UTC, as the machine's clock is set. It may
 * go back, when the clock is set: measure with blz_now. It cannot fail.
 */
BLZ_API int64_t blz_wall_now(void);

/* The sum a + b; INT64_MAX or INT64_MIN if it does not fit. It cannot fail. */
static inline int64_t blz_time_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (blz_unlikely(__builtin_add_overflow(a, b, &sum)))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

/* The difference a - b; INT64_MAX or INT64_MIN if it does not fit. It cannot fail. */
static inline int64_t blz_time_sub(int64_t a, int64_t b)
{
    int64_t difference;

    if (blz_unlikely(__builtin_sub_overflow(a, b, &difference)))
        return b < 0 ? INT64_MAX : INT64_MIN;
    return difference;
}

/*
 * The product count * unit: blz_time_of(hours, BLZ_HOUR); INT64_MAX or INT64_MIN if it does not
 * fit. It cannot fail.
 */
static inline int64_t blz_time_of(int64_t count, int64_t unit)
{
    int64_t product;

    if (blz_unlikely(__builtin_mul_overflow(count, unit, &product)))
        return (count < 0) == (unit < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

/* A duration in whole units, rounded towards zero: blz_time_in(ns, BLZ_MSEC). It cannot fail. */
static inline int64_t blz_time_in(int64_t ns, int64_t unit)
{
    return ns / unit;
}

/*
 * The instant `ns` from now, by which something must be done. Several awaits can share a deadline
 * (blz_with_deadline), so that together they take no longer. It cannot fail.
 */
static inline int64_t blz_deadline(int64_t ns)
{
    return blz_time_add(blz_now(), ns);
}

/*
 * How long it is until an instant; 0 once it has passed; BLZ_NEVER if it never does. It cannot
 * fail.
 */
static inline int64_t blz_deadline_left(int64_t deadline_ns)
{
    int64_t left = deadline_ns == BLZ_NEVER ? BLZ_NEVER : blz_time_sub(deadline_ns, blz_now());

    return left > 0 ? left : 0;
}

/* ---- Timers: the entries of a worker's wheel ---- */

/* What a timer does when it fires. */
typedef union blz_timer_target {
    blz_waker waker;
    blz_wake_callback call;
} blz_timer_target;

/*
 * A timer in the caller's memory. The fields are the library's. It must stay until it has fired, or
 * has been cancelled; then it may be used again, or go. All zero: not armed.
 */
typedef struct blz_timer {
    struct blz_timer *next, *prev;
    void *wheel;
    uint64_t tick; /* when it is due; until it is armed, as the owner likes */
    blz_timer_target target;
    uint32_t state;
    uint16_t slot;
    uint16_t calls; /* target is `call` */
    struct blz_timer *ahead;
} blz_timer;

/* Prepares a timer that will call fn(arg). [any thread] */
BLZ_API void blz_timer_init(blz_timer *timer, void (*fn)(void *arg), void *arg);

/*
 * Arms the timer: fn(arg) is called once, at or after the given instant, by a worker of the
 * runtime, in between two polls. A poll that takes long delays it. fn must be short, and must not
 * block. It may do anything with the timer, also arm it anew. `rt` NULL: the runtime of this
 * thread. 0; -EBUSY: it is armed; -ENXIO: no runtime; -ESHUTDOWN: the runtime is ending;
 * -EOWNERDEAD: in a forked child. A timer that is still armed when the runtime is freed is dropped
 * without a call. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_timer_start(blz_timer *timer, int64_t deadline_ns, blz_rt *rt);

/*
 * Disarms the timer. True: it will not fire. False: it was not armed, or has fired: the call has
 * been made, or is being made right now. In both cases the timer's own memory may be freed at once.
 * [any thread, but not while another one starts it or frees the runtime]
 */
BLZ_API bool blz_timer_cancel(blz_timer *timer);

/*
 * Moves an armed timer to another instant. False: it was not armed, or has fired. [any thread, but
 * not while another one starts it or frees the runtime]
 */
BLZ_API bool blz_timer_reset(blz_timer *timer, int64_t deadline_ns);

/* Whether the timer waits to fire. [any thread] */
BLZ_API bool blz_timer_is_armed(const blz_timer *timer);

/*
 * Makes a timer on the heap of the runtime (NULL: this thread's); NULL: no memory. blz_timer_free
 * cancels and frees it. It may be called by the timer's callback, and after the runtime has been
 * freed. [any thread, but not while another one starts it or frees the runtime]
 */
BLZ_API blz_timer *blz_timer_new(void (*fn)(void *arg), void *arg, blz_rt *rt);
BLZ_API void blz_timer_free(blz_timer *timer);

/*
 * Wakes the task being polled at or after the given instant. For a poll function. The timer must
 * not be armed. Once it has fired, or blz_timer_cancel has been called, it may be armed again.
 * [task]
 */
BLZ_API void blz_timer_wake_at(blz_timer *timer, int64_t deadline_ns, blz_cx *cx);

/* ---- Sleeping ---- */

/* The future of blz_sleep and blz_sleep_until. */
typedef struct blz_sleep_op {
    blz_future future;
    blz_timer timer;
} blz_sleep_op;

/*
 * Awaits the passing of time, or an instant: 0. `ns` counts from the first poll; zero or less is
 * ready at once. -ENXIO: this is no task (blz_wait). Interruptible: -ECANCELED. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_sleep(blz_sleep_op *op, int64_t ns);
BLZ_API BLZ_NODISCARD blz_future *blz_sleep_until(blz_sleep_op *op, int64_t deadline_ns);

/*
 * Changes when a sleep ends that is being awaited in this task and not ready yet: a branch of a
 * race, say. [task that awaits it]
 */
BLZ_API void blz_sleep_reset(blz_sleep_op *op, int64_t deadline_ns);

/* ---- Limiting ---- */

/* The future of blz_with_timeout and blz_with_deadline. */
typedef struct blz_timeout {
    blz_future future;
    blz_timer timer;
} blz_timeout;

/*
 * Awaits `inner`, but no longer than `ns`, which count from the first poll: then `inner` is
 * cancelled, and awaited to its end. Gives its result; -ETIMEDOUT only if that is -ECANCELED
 * because of the timeout. So what came in spite of it (bytes read, say) is not lost. Zero or less:
 * `inner` has one poll to be ready in. If it is ready at its first poll no clock is read. -ENXIO:
 * it would have to wait, and this is no task (blz_wait; there blz_wait_until has a limit).
 * Interruptible as `inner` is. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_with_timeout(blz_timeout *op, int64_t ns, blz_future *inner);

/*
 * Awaits `inner`, but not past an instant (blz_deadline) that several awaits may share: then
 * `inner` is cancelled, and awaited to its end. Gives its result; -ETIMEDOUT only if that is
 * -ECANCELED because of the deadline. -ENXIO: it would have to wait, and this is no task.
 * Interruptible as `inner` is. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_with_deadline(blz_timeout *op, int64_t deadline_ns,
                                                    blz_future *inner);

/* ---- Repeating ---- */

/* What becomes of ticks that were not awaited in time. */
enum {
    BLZ_INTERVAL_BURST = 0, /* they follow at once, up to 64 of them */
    BLZ_INTERVAL_DELAY = 1, /* dropped; the next comes a whole period after the late one */
    BLZ_INTERVAL_SKIP = 2,  /* dropped; the next comes when it would have come anyway */
};

/*
 * Ticks, a period apart:
 *
 *     self->rc = blz_interval_init(&self->iv, blz_now(), BLZ_SEC, BLZ_INTERVAL_SKIP);
 *     for (;;) {
 *         BLZ_AWAIT(self->rc, blz_interval_tick(&self->iv));
 *         if (self->rc < 0)
 *             break;
 *         ...
 *     }
 */
typedef struct blz_interval {
    blz_future future;
    blz_timer timer;
    int64_t next_ns; /* when the next tick is due; may be changed while none is awaited */
    int64_t period_ns;
    int policy;
    uint64_t reserved;
} blz_interval;

/*
 * Prepares an interval: the first tick is due at `start_ns` (blz_now(): at once;
 * blz_deadline(period): after a period). 0; -EINVAL: the period is not positive, or there is no
 * such policy. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_interval_init(blz_interval *iv, int64_t start_ns, int64_t period_ns,
                                            int policy);

/*
 * Awaits the next tick: gives the number of ticks before the next one that are dropped because it
 * is too late for them; 0 if all is well. -ENXIO: this is no task (blz_wait). Interruptible: with
 * -ECANCELED the tick is not lost. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_interval_tick(blz_interval *iv);

/* ---- The test clock ---- */

/*
 * With options.test_clock a runtime has a clock of its own. It begins at the same instant in every
 * run, and stands still, but for this: when nothing can run (no task is queued, no event is there,
 * no blocking job is under way) it goes ahead to the next timer at once, instead of sleeping. A
 * program that sleeps for hours is through in no time, and does the same in every run.
 *
 *     BLZ_RUN_WITH((&(blz_options){.test_clock = true}), night_shift);
 *
 * resume lets it go on as the real one does, pause stops it again, advance sets it ahead; timers
 * that are due by then fire when the worker has its next turn, so a task that advances the clock
 * yields to see them. -ENOTSUP: the runtime has no test clock; -EINVAL: `ns` is negative;
 * -EOWNERDEAD: in a forked child. [any thread]
 */
BLZ_API int blz_clock_pause(blz_rt *rt);
BLZ_API int blz_clock_resume(blz_rt *rt);
BLZ_API int blz_clock_advance(blz_rt *rt, int64_t ns);

BLZ_END_DECLS
#endif
