/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How workers without work go to sleep, and how new jobs wake them.
 *
 * One word has three counters: workers asleep; workers inactive (asleep, or looking for work); and
 * the jobs event counter, whose lowest bit says who moved it last:
 *
 *   even   a worker has announced that it is about to sleep; no job was posted since
 *   odd    a job was posted since the last announcement
 *
 * A worker that finds nothing announces itself (odd -> even), issues a heavy fence, looks
 * everywhere once more, and is counted as asleep if the counter is still what it was then. Who
 * posts a job publishes it, issues a light fence, and looks at the counter: even -> odd, and odd
 * stays (one load, no store: the usual case). Then
 *
 *   the job was published before the fence of the worker: it is found by the last look;
 *   or after it: the poster sees the announcement, or something later. If the worker has not been
 *   counted yet, it no longer will be; otherwise the poster sees that there is one asleep.
 *
 * The word of a sleeper says how far it is, so that a waker needs no lock and misses nobody:
 *
 *   state      event: worker                      waker
 *   -------------------------------------------------------------------------------
 *   RUNNING    PREP, before it is counted         -
 *   PREP       ASLEEP; or RUNNING, gives up       NOTIFIED
 *   ASLEEP     sleeps; RUNNING, uncounts itself:  CLAIMED; uncounts it; NOTIFIED; wakes it
 *              its time is over
 *   CLAIMED    sleeps                             -
 *   NOTIFIED   RUNNING; uncounts itself if it     -
 *              never slept
 *
 * So the count drops when a worker is notified, not when it gets to run, and nobody is woken
 * twice for the same sleep.
 */
#ifndef BLZ_PAR_SLEEP_H
#define BLZ_PAR_SLEEP_H

#include "base/atomic.h"
#include "base/cacheline.h"

enum { SLEEP_RUNNING, SLEEP_PREP, SLEEP_ASLEEP, SLEEP_CLAIMED, SLEEP_NOTIFIED };

#define SLEEP_ONE_ASLEEP   ((uint64_t)1)
#define SLEEP_ONE_INACTIVE ((uint64_t)1 << 16)
#define SLEEP_ONE_EVENT    ((uint64_t)1 << 32)

typedef struct sleeper {
    blz__cache_aligned uint32_t word;
} sleeper;

typedef struct sleep_state {
    blz__cache_aligned uint64_t counters;
    blz__cache_aligned sleeper *sleepers; /* one for each worker */
    uint32_t nr_sleepers;                 /* only grows: a new one first, then it may be counted */
    bool asymmetric_fences;
} sleep_state;

static inline uint32_t sleep_nr_asleep(uint64_t counters)
{
    return (uint32_t)(counters & 0xffff);
}

/* Awake, and looking for work. */
static inline uint32_t sleep_nr_looking(uint64_t counters)
{
    return (uint32_t)(counters >> 16 & 0xffff) - sleep_nr_asleep(counters);
}

static inline uint32_t sleep_event(uint64_t counters)
{
    return (uint32_t)(counters >> 32);
}

/* The worker has nothing to do and begins to look. [worker] */
void blz__par_sleep_begin_looking(sleep_state *s);

/*
 * It has found a job, or what it waited for has happened: wakes two others, since where one job
 * is there are more. Before the job is run, which may take long. [worker]
 */
void blz__par_sleep_end_looking(sleep_state *s);

/* After it everything is seen that was posted before; what comes later sees what is before it. */
void blz__par_sleep_fence(const sleep_state *s);

/* The worker is about to sleep; after this it looks everywhere once more. Gives the event. */
uint32_t blz__par_sleep_announce(sleep_state *s);

/* It was not woken, since it has not slept; it was woken; its time was over. */
typedef enum sleep_end { SLEEP_NOT_AT_ALL, SLEEP_WOKEN, SLEEP_OVER } sleep_end;

/*
 * Sleeps until woken: for a job, or for the latch. Returns at once if something has been posted
 * since that event. deadline_ns: of the monotonic clock, or 0 for none. [worker]
 */
sleep_end blz__par_sleep(sleep_state *s, uint32_t worker, uint32_t event, uint32_t *latch,
                         int64_t deadline_ns);

/*
 * That many jobs have been published: wakes workers if too few are looking. True: it was so.
 * [any thread]
 */
bool blz__par_sleep_post(sleep_state *s, uint32_t jobs);

/* Wakes that worker, or makes it not go to sleep. [any thread] */
bool blz__par_sleep_wake(sleep_state *s, uint32_t worker);

#endif
