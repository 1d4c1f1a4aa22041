/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: which phase is on, and how many are inside. Between the files of src/shutdown.
 *
 * All of it is one word, so that nobody gets in once the phase says that it is too late:
 *
 *   bits 0-2    the phase
 *   OWNED       the shutdown has not been let go of
 *   bits 4-23   how many accept
 *   the rest    how many work
 *
 *   event       word                    next        what happens
 *   ------------------------------------------------------------------------------------------
 *   enter       the phase allows it     + one
 *   enter       it is too late          the same    -ESHUTDOWN
 *   leave       RUNNING                 - one       nobody waits for it
 *   leave       a later phase           - one       under the lock; if the phase is done by that,
 *                                                   claims the runner, and serves it after the lock
 *   advance     any                     phase       under the lock; by the runner
 *   disown      any                     - OWNED     if nobody is inside: frees, after the lock was
 *                                                   free once
 *   leave       not OWNED, the last     0           frees
 *
 * In later phases all who leave do it under the lock. So the runner, who looks under the lock,
 * either sees the count, or is in the queue when it changes. And who finds nobody inside, and takes
 * the lock once, knows that the last one is through with the gate.
 */
#ifndef BLZ_SHUTDOWN_GATE_H
#define BLZ_SHUTDOWN_GATE_H

#include "sync/sync.h"

#include <blitz/shutdown.h>

#define GATE_PHASE    UINT64_C(0x7)
#define GATE_OWNED    UINT64_C(0x8)
#define GATE_ACCEPTOR (UINT64_C(1) << 4)
#define GATE_WORKER   (UINT64_C(1) << 24)

#define GATE_ACCEPTORS (GATE_WORKER - GATE_ACCEPTOR)
#define GATE_WORKERS   (~(GATE_WORKER - 1))
#define GATE_INSIDE    (GATE_ACCEPTORS | GATE_WORKERS)

typedef struct shutdown_gate {
    uint64_t word;
    blz__lock lock;
    int wanted; /* the phase that somebody has asked for; under the lock */
    blz_waiters runner;
} shutdown_gate;

static inline int gate_phase(uint64_t word)
{
    return (int)(word & GATE_PHASE);
}

static inline uint32_t gate_accepting(uint64_t word)
{
    return (uint32_t)((word & GATE_ACCEPTORS) / GATE_ACCEPTOR);
}

static inline uint64_t gate_working(uint64_t word)
{
    return word / GATE_WORKER;
}

void blz__gate_init(shutdown_gate *gate);

/* `one` is GATE_ACCEPTOR or GATE_WORKER. 0, -ESHUTDOWN, -EOVERFLOW. [any thread] */
int blz__gate_enter(shutdown_gate *gate, uint64_t one);

/* The same in any phase. [who is inside] */
int blz__gate_enter_again(shutdown_gate *gate, uint64_t one);

/* True: the caller has to free what the gate is part of. [who is inside] */
bool blz__gate_leave(shutdown_gate *gate, uint64_t one);

/* Lets go of it; true as above. [the owner, once] */
bool blz__gate_disown(shutdown_gate *gate);

/* Somebody asks for the first phase, or is in a hurry. [any thread] */
void blz__gate_ask(shutdown_gate *gate, bool hurry);

/* ---- the runner ---- */

/* Whether nobody is left for whom this phase waits. */
static inline bool gate_is_done(uint64_t word)
{
    uint64_t inside = gate_phase(word) <= BLZ_SHUTDOWN_STOPPING ? GATE_ACCEPTORS : GATE_INSIDE;
    return gate_phase(word) != BLZ_SHUTDOWN_RUNNING && !(word & inside);
}

/* What there is to know, at one moment. */
typedef struct gate_view {
    uint64_t word;
    int wanted;
} gate_view;

gate_view blz__gate_look(shutdown_gate *gate);

/* That phase is on now; gives how many are inside. */
void blz__gate_advance(shutdown_gate *gate, int phase);

/* The future of the runner: ready when the phase is done, or another is asked for. */
typedef struct gate_wait {
    blz_future future;
    blz_waiter waiter;
    shutdown_gate *gate;
} gate_wait;

blz_future *blz__gate_wait(gate_wait *wait, shutdown_gate *gate);

#endif
