/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and patience of the library: what differs between its builds. There is one such header a
 * build, and the include path picks it:
 *
 *   the library                     src/tuning/library/tuning.h
 *   models, in the explorer         tests/model/explorer/tuning.h: small, without spinning
 *   stress tests of what is rare    tests/support/tiny/tuning.h: this one with tiny queues
 *
 * Nothing here changes what the library does, only how much of it fits and how long it looks before
 * it sleeps. A value that no build has another of belongs where it is used.
 */
#ifndef BLZ_TUNING_H
#define BLZ_TUNING_H

/* ---- sizes ---- */

#define RUNQ_CAPACITY 256u                /* tasks in the queue of a worker; a power of two */
#define TASK_BIAS     64u                 /* wakers that a poll can make without an atomic */
#define MUTEX_PASSES  BLZ_MUTEX_PASSES    /* lockers that may overtake a waiter */
#define SEGMENT_SLOTS 32                  /* messages in a segment of an unbounded channel */
#define HEAP_CHUNK    ((size_t)64 * 1024) /* what a heap of tasks grows by */
#define BLOCK_TASKS   61                  /* tasks of a scope in a block: it is a kilobyte */
#define TRACE_THREADS 256                 /* that can record at a time */

/* ---- patience: looks, spins and rounds before something is given up ---- */

#define LOCK_SPINS          100
#define STORE_UNLOCK_SPINS  100
#define BIAS_AFTER          2048 /* entries of an undisturbed owner before a lock is biased again */
#define MUTEX_SPINS         10
#define CHANNEL_ROOM_LOOKS  20  /* before a fence: another thread is freeing a slot */
#define CHANNEL_RECV_LOOKS  50  /* at a message that is being written */
#define WAIT_LOOKS          100 /* of a thread, at what it waits for */
#define JOIN_LOOKS          100 /* of a task, at the task that it joins */
#define WATCHDOG_IDLE_LOOKS 4   /* that find all workers parked, before it sleeps */
#define SEARCH_ROUNDS       32  /* of a worker without work, at all others */
#define SEARCH_PAUSES       16
#define BLOCKING_SPIN_NS    (20 * BLZ_USEC) /* of a thread of the pool, before it sleeps */
#define PAR_SPINS           64              /* rounds without a yield */
#define PAR_SPINS_LONG      4096            /* the same, where a program asks for it */
#define PAR_YIELDS          32              /* rounds with a yield */
#define PAR_ASK_EVERY       32              /* rounds: a thief asks its victim again */
#define PAR_CALM_NS         1e6             /* for how long small jobs are kept from others */

/* ---- what a build has: 1 or 0 ---- */

#define CHANNEL_STORE_UNLOCK 1 /* the lock of channels; otherwise a plain one */
#define CLOCK_COUNTER        1 /* the processor's counter as a clock */
#define PAGES_FROM_SYSTEM    1 /* chunks of the default allocator are pages */
#define PROGRAM_OBSERVED     1 /* traces, and the list of runtimes for debuggers */
#define PAR_INLINE_HOOKED    0 /* atomics of blitz/par.h must go through base/atomic.h */

#endif
