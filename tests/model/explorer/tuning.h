/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and patience of models (src/tuning/library/tuning.h says what each is): small, so that
 * rings wrap and references run out within a few operations; and without spinning, which only adds
 * steps.
 */
#ifndef BLZ_TUNING_H
#define BLZ_TUNING_H

/* ---- sizes ---- */

#define RUNQ_CAPACITY 4u
#define TASK_BIAS     2u
#define MUTEX_PASSES  1u
#define SEGMENT_SLOTS 2
#define HEAP_CHUNK    ((size_t)1024) /* one task each, so that the explorer sees every free */
#define BLOCK_TASKS   2
#define TRACE_THREADS 2

/* ---- patience ---- */

#define LOCK_SPINS          0
#define STORE_UNLOCK_SPINS  0
#define BIAS_AFTER          2
#define MUTEX_SPINS         0
#define CHANNEL_ROOM_LOOKS  0
#define CHANNEL_RECV_LOOKS  0
#define WAIT_LOOKS          0
#define JOIN_LOOKS          0
#define WATCHDOG_IDLE_LOOKS 1
#define SEARCH_ROUNDS       1
#define SEARCH_PAUSES       0
#define BLOCKING_SPIN_NS    ((int64_t)0)
#define PAR_SPINS           0
#define PAR_SPINS_LONG      0
#define PAR_YIELDS          0
#define PAR_ASK_EVERY       1
#define PAR_CALM_NS         0 /* clocks wake nobody, but where the model has made a calm */

/* ---- what a build has ---- */

#define CHANNEL_STORE_UNLOCK 0 /* fewer steps to explore; the other lock has models of its own */
#define CLOCK_COUNTER        0
#define PAGES_FROM_SYSTEM    0
#define PROGRAM_OBSERVED     0 /* nothing depends on it: no steps of a model */
#define PAR_INLINE_HOOKED    1

#endif
