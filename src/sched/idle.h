/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle set: who sleeps, who searches, and whom to wake. Its purpose is to wake as few workers
 * as possible without ever leaving a queued task to sleepers.
 *
 * One word packs {searching, parked}; a bitmap says which workers are parked. A worker sets its bit
 * before it is counted as parked, and a claimer takes one off the count before it clears a bit,
 * so there is always a bit for every claim:
 *
 *     bits set  >=  parked  +  claims that have not cleared their bit yet
 *
 *   event      word                           bitmap                 who
 *   -----------------------------------------------------------------------------------------
 *   park       parked + 1, searching - 1 (1)  own bit set, before    the worker
 *   claim      parked - 1, searching + 1      any bit cleared, after whoever queued work
 *   leave      parked - 1                     own bit cleared, after the worker, woken by other (2)
 *   search     searching + 1                  -                      a worker out of work
 *   found      searching - 1                  -                      a searcher that has work
 *
 *   (1) if it was searching.
 *   (2) by its driver, its mailbox, or a deadline. If a claimer was faster, the worker has been
 *       claimed and is a searcher; whoever clears the bit decides.
 *
 * Why no wakeup is lost: whoever fills the inject queue looks at the word afterwards, and whoever
 * parks looks at the queue after it has been counted; both sides are sequentially consistent, so
 * one of them sees the other. Work that nobody is woken for because somebody searches is found by
 * that searcher, or by the look at all queues that the last searcher takes when it stops searching.
 *
 * A worker that fills its own ring looks without that order, to save an atomic operation: its
 * tasks are not lost, since it is awake and runs them, and it looks again at its next poll. If it
 * is stuck before that, the watchdog wakes somebody (watchdog.c).
 */
#ifndef BLZ_SCHED_IDLE_H
#define BLZ_SCHED_IDLE_H

#include "base/atomic.h"
#include "base/cacheline.h"

typedef struct idle_set {
    blz__cache_aligned uint64_t word;
    blz__cache_aligned uint64_t *bits;
    uint32_t nr_workers;
} idle_set;

static inline uint32_t idle_searching(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t idle_parked(uint64_t word)
{
    return (uint32_t)word;
}

/* Bitmap words needed. */
static inline uint32_t idle_words(uint32_t nr_workers)
{
    return (nr_workers + 63) / 64;
}

/* Whether work that has just been queued by a worker may need a claim. A quick, relaxed look. */
static inline bool idle_wants_work(const idle_set *idle)
{
    uint64_t word = blz__load(&idle->word, RELAXED);
    return idle_searching(word) == 0 && idle_parked(word) != 0;
}

/*
 * Claims a parked worker if nobody searches: its index, to be unparked as a searcher; -1: nobody
 * needs to be woken. After queueing. [any thread]
 */
int blz__idle_claim(idle_set *idle);

/* Counts the worker as parked. True: it was the last searcher. Then look at the queues. [worker] */
bool blz__idle_park(idle_set *idle, uint32_t worker, bool searching);

/* After any sleep. True: the worker has been claimed and is a searcher. [worker] */
bool blz__idle_unpark(idle_set *idle, uint32_t worker);

/* Becomes a searcher, unless half of the workers search already. [worker] */
bool blz__idle_search(idle_set *idle);

/* Stops searching. True: it was the last one, which must look for others' work. [worker] */
bool blz__idle_found(idle_set *idle);

/* Validator (base/assert.h). No thread claims, parks or wakes up meanwhile. */
const char *blz__idle_check(const idle_set *idle);

#endif
