/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakers: how something that a task waits for tells the task to look again.
 *
 * A waker is a 16-byte value. Cloning one counts a reference to its task, so it may be woken or
 * dropped from any thread at any time, also after the task has finished. A leaf future that has to
 * wait takes one with blz_cx_waker(cx), keeps it, and returns BLZ_PENDING. The thread that makes it
 * ready calls blz_waker_wake() on it:
 *
 *     static blz_poll door_poll(blz_future *f, blz_cx *cx)
 *     {
 *         struct door *d = (struct door *)f;
 *         pthread_mutex_lock(&d->lock);
 *         bool open = d->open;
 *         if (!open && !d->waker.ops)
 *             d->waker = blz_cx_waker(cx);
 *         pthread_mutex_unlock(&d->lock);
 *         return open ? blz_future_done(f, 0) : BLZ_PENDING;
 *     }
 */
#ifndef BLITZ_WAKER_H
#define BLITZ_WAKER_H

#include <blitz/base.h>

BLZ_BEGIN_DECLS

typedef struct blz_waker blz_waker;

/* What a kind of waker does; called with its data, on any thread. */
typedef struct blz_waker_ops {
    void (*wake)(void *data);        /* wakes, and consumes the waker */
    void (*wake_by_ref)(void *data); /* wakes, and leaves it valid */
    void (*clone)(void *data);       /* makes a second waker of the same data valid */
    void (*drop)(void *data);        /* consumes it without waking */
    void *reserved[2];               /* NULL */
} blz_waker_ops;

/* All zero: no waker. Every function here accepts that and does nothing. */
struct blz_waker {
    void *data;
    const blz_waker_ops *ops;
};

/* Wakes the task and consumes the waker: *waker is no waker afterwards. [any thread] */
BLZ_API void blz_waker_wake(blz_waker *waker);

/* Wakes the task; the waker stays valid. [any thread] */
BLZ_API void blz_waker_wake_by_ref(const blz_waker *waker);

/* Makes a second waker for the task. [any thread] */
BLZ_API blz_waker blz_waker_clone(const blz_waker *waker);

/* Consumes the waker without waking. [any thread] */
BLZ_API void blz_waker_drop(blz_waker *waker);

/* Whether two wakers would wake the same task. [any thread] */
static inline bool blz_waker_will_wake(const blz_waker *a, const blz_waker *b)
{
    return a->data == b->data && a->ops == b->ops;
}

/* A waker that does nothing. [any thread] */
BLZ_API blz_waker blz_waker_noop(void);

/*
 * What a callback waker calls. The struct is the caller's and outlives every waker made from it.
 * The call comes from the thread that wakes, any number of times.
 */
typedef struct blz_wake_callback {
    void (*fn)(void *arg);
    void *arg;
} blz_wake_callback;

/* A waker that calls back. [any thread] */
BLZ_API blz_waker blz_waker_callback(blz_wake_callback *callback);

BLZ_END_DECLS
#endif
