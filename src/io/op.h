/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an operation: from its beginning, through the hands of a driver, to the event that
 * wakes its task. The protocol, with its reasons, is in docs/design/operations.md.
 */
#ifndef BLZ_IO_OP_H
#define BLZ_IO_OP_H

#include "sched/sched.h"

/*
 * What every operation begins with, also one that no driver ever has: layout.h.
 *
 *   done     bytes moved; public, see blitz/io.h
 *   events   outstanding events, and OP_CANCEL; 0: it is not in flight
 *   kind     enum io_kind
 *   armed    readiness backends: waits for an edge; under the lock of its entry
 */
#define OP_HEAD        \
    blz_future future; \
    uint64_t done;     \
    uint32_t events;   \
    uint16_t kind;     \
    uint8_t armed

/*
 * An operation in the hands of a driver. It is a future in the frame of the task that awaits it,
 * and that memory belongs to the driver until the last event has been reported: `events` counts
 * what is outstanding, and the operation is ready at zero. A second bit-field in the same word says
 * that a cancellation has been asked for, so that it is asked for once.
 *
 *   event                       events           who
 *   ------------------------------------------------------------------------------------------
 *   submit                      = 1              the task, on the worker that polls it
 *   ask for cancellation        + 1, CANCEL      the task, on whatever worker polls it by then
 *   cancel command is executed  - 1              the home worker
 *   the driver expects more     + 1              the home worker, before the event in hand counts
 *   an event                    - 1              the home worker; at 0: wakes the task
 *
 * A cancellation from another worker than the home is a message in the home's mailbox. Because the
 * message itself is counted, it can never reach an operation that has been reused.
 */
struct blz__op {
    OP_HEAD;
    int64_t value;           /* the result so far */
    struct blz_worker *home; /* atomic: may change while it is in flight, see ready.c */
    blz_waker waker;
    blz__message cancel; /* the request to end it, on its way to the home */
};

#define OP_CANCEL 0x80000000u

/*
 * From here on the operation is in flight, and its home is the worker that polls the task; what it
 * may do at once is done before it is handed to the driver, or never is. [task]
 */
void blz__op_begin(blz__op *op, blz_cx *cx);

/* From here on its end wakes the task, whichever thread ends it. [task] */
void blz__op_await(blz__op *op, blz_cx *cx);

/* Hands an operation that has begun to the driver of the worker that polls the task. [task] */
void blz__op_hand_over(blz__op *op, blz_cx *cx);

/* Hands it over with a waker of the caller's choice, which is consumed when it is ready. [task] */
void blz__op_hand_over_for(blz__op *op, blz_waker waker, blz_cx *cx);

/* Begins an operation and hands it over. [task] */
void blz__op_begin_and_submit(blz__op *op, blz_cx *cx);

/*
 * Ends an operation that was never handed over. False: somebody has asked for its cancellation
 * meanwhile, and the request is still on its way: it is pending until that has arrived. [task]
 */
bool blz__op_end(blz__op *op, blz_cx *cx);

/* Whether its end has been asked for. A guess, unless a lock orders the two. [any thread] */
static inline bool op_cancel_requested(const blz__op *op)
{
    return blz__load(&op->events, RELAXED) & OP_CANCEL;
}

/* Whether all events have been reported; then op->value is the result. [task] */
bool blz__op_is_done(const blz__op *op);

/* Asks for the end of a submitted operation, from whatever worker the task is on. [task] */
void blz__op_cancel(blz__op *op, blz_cx *cx);

/*
 * Asks for the end of an operation of another task, in two steps. The first is made while something
 * (the lock of its entry) keeps the operation from ending: true if nothing has asked before; then
 * its memory stays until the second step, which sends the request. [any thread]
 */
bool blz__op_request_cancel(blz__op *op);
void blz__op_send_cancel(blz__op *op);

/* One more event will come. [home worker, before the event that it follows from is reported] */
void blz__op_event_add(blz__op *op);

/* An event has happened. [home worker] */
void blz__op_event_done(blz__op *op);

#endif
