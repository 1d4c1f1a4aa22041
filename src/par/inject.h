/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computations that come from outside of the pool and have not been begun: a list under a small
 * lock, oldest first, and its length for those who only want to know whether to look. The nodes are
 * in the frames of the threads and tasks that wait for them, so the list owns nothing and cannot be
 * full.
 */
#ifndef BLZ_PAR_INJECT_H
#define BLZ_PAR_INJECT_H

#include "base/cacheline.h"
#include "base/lock.h"

#include "par/deque.h"

typedef struct root root;

struct root {
    root *next, *prev; /* in the queue */
    blz_par_fn fn;
    void *arg;
    void (*finish)(root *r); /* tells who waits; the root is gone afterwards */
    uint32_t latch;          /* for a thread that waits */
    uint32_t isolated;       /* in how many regions was who began it */
    bool is_awaited;         /* it was begun within something that was taken from another thread */
    bool queued;             /* under the queue's lock */
};

typedef struct inject_queue {
    blz__cache_aligned blz__lock lock;
    root *first, *last;
    blz__cache_aligned uint32_t len;
} inject_queue;

void blz__par_inject_init(inject_queue *q);

/* Then post it (sleep.h). [any thread] */
void blz__par_inject_push(inject_queue *q, root *r);

/* The oldest, or NULL. [any thread] */
root *blz__par_inject_take(inject_queue *q);

/* Out of the queue again: false if it has been taken. [who waits for it] */
bool blz__par_inject_withdraw(inject_queue *q, root *r);

#endif
