/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between a worker and its I/O driver, and the life of an operation. The whole
 * protocol, with its reasons, is in docs/design/operations.md.
 *
 * A driver belongs to one worker. Everything but `wake` is called by that worker only. A driver
 * never polls a task: it reports events of operations (blz__op_event), the worker does the rest.
 *
 *   open      creates the driver of one worker: 0 or a negative errno. On any thread: what the
 *             worker's own has to do is left to the first call of the others.
 *   probe     whether one that has just been opened works, by using it; it is closed next. 0 or a
 *             negative errno. On any thread. Or NULL: open says it all.
 *   close     frees it. Nothing is in flight any more. On any thread.
 *   submit    takes the operation over. Never fails: what cannot be started completes with an
 *             error. The kernel's side may be entered later, by `poll`.
 *   cancel    asks that the operation end early. It completes as always: with -ECANCELED, or with
 *             its real result if that came first. If the request itself will have a completion,
 *             the driver counts it first (blz__op_expect).
 *   poll      enters the kernel if there is something to submit or to reap; waits up to the
 *             deadline (monotonic ns; 0: does not wait; INT64_MAX: until an event or a wake).
 *             Reports every event that there is.
 *   wake      makes a `poll` that waits, or the next one that would, return. Any thread.
 *   fd        readable when poll would find something; for embedding. Or -ENOTSUP.
 *   busy      whether anything is in flight, so that the worker has to sleep in here.
 *   forget    the descriptor is about to be closed; drops what is known of it. Any thread, under
 *             the lock of its entry, or by the last who knows it. Or NULL.
 *   let_go    carries out the cancellations asked for so far: when it returns, the kernel holds
 *             nothing any more on behalf of the operations concerned. Or NULL: it never does.
 */
#ifndef BLZ_SCHED_DRIVER_H
#define BLZ_SCHED_DRIVER_H

#include "base/atomic.h"

#include <blitz/runtime.h>

typedef struct blz__driver blz__driver;
typedef struct blz__op blz__op;
struct io;      /* src/io: an operation on a descriptor */
struct blz__fd; /* src/io: the entry of a descriptor */

typedef struct blz__driver_ops {
    const char *name;
    int (*open)(blz__driver **driver, const blz_options *options, const blz_allocator *allocator);
    int (*probe)(blz__driver *driver);
    void (*close)(blz__driver *driver);
    void (*submit)(blz__driver *driver, blz__op *op);
    void (*cancel)(blz__driver *driver, blz__op *op);
    void (*poll)(blz__driver *driver, int64_t deadline_ns);
    void (*wake)(blz__driver *driver);
    int (*fd)(blz__driver *driver);
    bool (*busy)(const blz__driver *driver);
    void (*forget)(blz__driver *driver, struct blz__fd *entry);
    void (*let_go)(blz__driver *driver);
    uint32_t attempts; /* kinds of operations that are tried before they are submitted, as bits */
    bool nonblocking;  /* wants descriptors in non-blocking mode */
    bool files;        /* takes operations of files; others leave them to the blocking pool */
} blz__driver_ops;

struct blz__driver {
    const blz__driver_ops *ops;
    struct blz_worker *worker; /* whose it is */
    blz__driver *next;         /* of those that were opened together, until its worker takes it */
    struct lease_pool *leases; /* src/io's: buffers on loan, or NULL */
    struct io *later;          /* src/io's: operations that wait for the next look at it */
    struct io *later_last;
    uint64_t completions;   /* operations that it has completed; statistics */
    uint64_t registrations; /* descriptors registered with it, over its life; statistics */
    uint64_t entries;       /* times that it entered the kernel; statistics */
};

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
 * A cancellation from another worker than the home is a command in the home's mailbox. Because the
 * command itself is counted, it can never reach an operation that has been reused.
 */
struct blz__op {
    blz_future future;
    uint64_t done;   /* bytes moved; public, see blitz/io.h */
    uint32_t events; /* outstanding events; OP_CANCEL */
    uint16_t kind;   /* what to do; src/io/io.h */
    uint8_t armed;   /* readiness backends: waits for an edge; under the lock of its entry */
    int64_t value;   /* the result so far */
    struct blz_worker *home; /* atomic: may change while it is in flight, see src/io/ready.c */
    blz_waker waker;
    blz__op *next_command;
};

#define OP_CANCEL 0x80000000u

/*
 * From here on the operation is in flight, and its home is the worker that polls the task; what it
 * may do at once is done before it is handed to the driver, or never is. [task]
 */
void blz__op_begin(blz__op *op, blz_cx *cx);

/* From here on its end wakes the task, whoever it is that ends it. [task] */
void blz__op_await(blz__op *op, blz_cx *cx);

/* Hands an operation that has begun to the driver of the worker that polls the task. [task] */
void blz__op_hand_over(blz__op *op, blz_cx *cx);

/* The same with a waker of the caller's choice, which is consumed when it is ready. [task] */
void blz__op_hand_over_for(blz__op *op, blz_waker waker, blz_cx *cx);

/* Both. [task] */
void blz__op_submit(blz__op *op, blz_cx *cx);

/*
 * Ends an operation that was never handed over. False: somebody has asked for its cancellation
 * meanwhile, and the request is still on its way: it is pending until that has arrived. [task]
 */
bool blz__op_end(blz__op *op, blz_cx *cx);

/* Whether its end has been asked for. A guess, unless a lock orders the two. [any thread] */
static inline bool op_is_asked(const blz__op *op)
{
    return blz__load(&op->events, RELAXED) & OP_CANCEL;
}

/* Whether all events have been reported; then op->value is the result. [task] */
bool blz__op_is_done(const blz__op *op);

/* Asks for the end of a submitted operation, from whatever worker the task is on. [task] */
void blz__op_cancel(blz__op *op, blz_cx *cx);

/*
 * The same in two steps, for those who do not own the operation, but know that it cannot end right
 * now. Ask: true if nobody has yet; then its memory stays until the request has been sent. [any
 * thread, while something keeps it from ending]
 */
bool blz__op_ask(blz__op *op);
void blz__op_send_cancel(blz__op *op); /* [any thread] */

/* One more event will come. [home worker, before the event that it follows from is reported] */
void blz__op_expect(blz__op *op);

/* An event has happened. [home worker] */
void blz__op_event(blz__op *op);

#endif
