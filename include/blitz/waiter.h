/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a future of a sync primitive or a channel waits with: it is linked into the queue of what it
 * waits for. All fields are the library's.
 */
#ifndef BLITZ_WAITER_H
#define BLITZ_WAITER_H

#include <blitz/waker.h>

BLZ_BEGIN_DECLS

/* One that waits. */
typedef struct blz_waiter {
    struct blz_waiter *next, *prev;
    blz_waker waker;
    uint32_t state;
    uint32_t count; /* what it wants of it: permits, a kind of lock */
} blz_waiter;

/* First come, first served. */
typedef struct blz_waiters {
    blz_waiter *first, *last;
} blz_waiters;

BLZ_END_DECLS
#endif
