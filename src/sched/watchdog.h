/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: a thread that looks at the workers now and then, and helps if one is stuck in a
 * poll. It sleeps without a time limit while all workers do; a worker that wakes up wakes it.
 */
#ifndef BLZ_SCHED_WATCHDOG_H
#define BLZ_SCHED_WATCHDOG_H

#include "base/atomic.h"
#include "base/lock.h"
#include "system/thread.h"

#include <blitz/future.h>

enum { STUCK_NAME = 64, STUCK_RECORDS = 32 };

/* What it has found; for those who look at the program. */
typedef struct stuck_record {
    uint64_t id;
    uint64_t polls; /* the worker's count, by which to see whether it still goes on */
    int64_t since_ns, for_ns;
    uint32_t worker;
    bool refused;
    bool ended;
    char name[STUCK_NAME];
    const char *function, *file; /* of a refused await, and its line: static storage, or NULL */
    uint32_t line;
} stuck_record;

typedef struct watchdog {
    blz__lock log_lock;
    uint32_t nr_records; /* ever; under the lock, as are the last of them */
    stuck_record records[STUCK_RECORDS];
    uint32_t state; /* futex: WATCHDOG_* */
    bool running;
    int64_t limit_ns;
    blz__thread thread;
    uint64_t thread_id;
} watchdog;

/* What its last look saw of a worker. */
typedef struct watchdog_view {
    uint64_t polls;
    blz_task *task;
    int64_t since_ns;
    bool reported;
} watchdog_view;

enum { WATCHDOG_AWAKE, WATCHDOG_ASLEEP, WATCHDOG_STOP };

int blz__watchdog_start(blz_rt *rt);
void blz__watchdog_stop(blz_rt *rt);

/* Whether this is the watchdog's thread. */
bool blz__watchdog_is_me(const blz_rt *rt);

/* A worker has woken up. [worker] */
void blz__watchdog_poke(blz_rt *rt);

/* A task ignores its cancellation. [worker, in a poll] */
void blz__watchdog_refused(blz_rt *rt, blz_task *task, uint32_t worker);

#endif
