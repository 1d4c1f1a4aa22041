/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process has of signals: the words that handlers, the signal thread and waiters share
 * (notice.h says what happens to them), and the table of subscriptions (table.c).
 */
#ifndef BLZ_SIGNAL_WORDS_H
#define BLZ_SIGNAL_WORDS_H

#include "base/lock.h"
#include "system/signal.h"
#include "system/thread.h"

#include <blitz/signal.h>

enum { NR_STOPS = 2 };

typedef struct signal_list {
    blz__lock lock;
    blz_waiters waiters;
} signal_list;

typedef struct signal_slot {
    uint64_t word;
    uint64_t seen;   /* the count up to which somebody has received it */
    uint64_t sender; /* of the last one: pid << 32 | uid, or 0 */
    uint64_t told;   /* the count of which the waiters were told; under the list's lock */
    signal_list list;
} signal_slot;

typedef struct signal_notice {
    uint32_t bell;
    uint32_t nr_slots;
    signal_slot *slots; /* by number; the first is not used */

    int stops[NR_STOPS];     /* the signals that ask to stop */
    signal_list stop;        /* waits for a stop; its lock also guards what follows */
    uint64_t base[NR_STOPS]; /* counts when the first blz_stop was opened */
    int stop_signal;         /* what everybody gets, once somebody has been told; or 0 */
    uint32_t stop_first;     /* atomic: the one that came first, if more than one has come */
    int64_t stop_ns;         /* atomic: when the first came; 0: none has come */
    int64_t repeat_ns;       /* atomic, for tests: BLZ_STOP_REPEAT_NS */
} signal_notice;

/* Subscriptions to a signal. A leaver that waits for the herald is counted in both. */
struct signal_users {
    uint32_t nr, nr_plain, leaving;
};

/* All zero: never used. */
struct signal_table {
    uint32_t *process; /* PROCESS_*; NULL: never used */
    uint64_t number;   /* of the process: how many forks there were, plus one */
    blz__lock lock;    /* of what follows, up to `acked` */
    uint32_t nr_open, nr_stop;
    struct signal_users users[BLZ__SIGNAL_LIMIT];
    blz__thread herald;
    uint32_t herald_number; /* of the bell */
    uint32_t asked;         /* how often the herald was asked to look at what it blocks */
    uint32_t acked;         /* and up to where it has. A futex */
    blz__signal_action previous[BLZ__SIGNAL_LIMIT]; /* survives a fork, as our handlers do */
    signal_slot slots[BLZ__SIGNAL_LIMIT];
    signal_notice notice;
};

#endif
