/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch, between its two files:
 *
 *   watch.c        making, handles, closing, freeing; the value: sending, reading
 *   watch_wait.c   waiting for a change, for a value, for the last receiver to go
 *
 * There are two cells (cell.h): value number n is in cell n % 2. A sender writes the cell that is
 * not the latest, then moves the version word on. So a reader that begins with the latest has to
 * begin again only if two values have been sent, or the second is being sent, before it is through;
 * and a sender that has stopped in the middle of a value is in nobody's way.
 *
 * The lock is for senders, handles and those who wait, never for reading.
 */
#ifndef BLZ_CHANNEL_WATCH_H
#define BLZ_CHANNEL_WATCH_H

#include "base/cacheline.h"
#include "channel/cell.h"
#include "channel/handle.h"
#include "sync/sync.h"

#include <blitz/watch.h>

/* The version word: the number of the latest value, and whether it is the last. */
#define VERSION_CLOSED ((uint64_t)1)
#define VERSION_ONE    ((uint64_t)2)

static inline uint64_t version_number(uint64_t version)
{
    return version / VERSION_ONE;
}

struct blz_watch {
    /* ---- does not change ---- */
    size_t value_size, size;
    cell *cells[2];
    blz_allocator allocator;

    /* ---- changes with each value ---- */
    blz__cache_aligned blz__lock lock;
    uint64_t version;               /* written under the lock */
    blz_waiters receivers, senders; /* who wait; the rest: under the lock */
    uint64_t nr_receivers, nr_senders;

    uint64_t refs; /* handles of all kinds */
};

static inline uint64_t watch_version(const blz_watch *w)
{
    check_handle(w, "a watch channel");
    /* acquire: the value, what was before the close; pairs with publish, close_locked */
    return blz__load(&w->version, ACQUIRE);
}

static inline void claim_all(blz_waiters *queue, blz_waiters *claimed)
{
    while (!waiters_empty(queue))
        waiter_claim(queue->first, queue, claimed);
}

/* Copies the latest value; gives its version. [any thread] */
uint64_t blz__watch_read(const blz_watch *w, void *value);

#endif
