/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between a worker and its I/O driver, and what a worker offers to src/io beyond that:
 * its driver, and a mailbox. Operations, which drivers carry out, are src/io's (io/op.h).
 *
 * A driver belongs to one worker. Only that worker calls its functions, unless stated otherwise
 * below. A driver never polls a task: it reports events of operations (blz__op_event_done), the
 * worker does the rest.
 *
 *   open           creates the driver of one worker: 0 or a negative errno. On any thread: what
 *                  only the worker's thread may do is left to the first call of the others.
 *   probe          uses a driver that has just been opened, to find out whether it works; it is
 *                  closed next. 0 or a negative errno. On any thread. Or NULL: open says it all.
 *   close          frees it. Nothing is in flight any more. On any thread.
 *   submit         takes the operation over. Never fails: what cannot be started completes with an
 *                  error. The kernel's side may be entered later, by `poll`.
 *   cancel         asks that the operation end early. It completes as always: with -ECANCELED, or
 *                  with its real result if that came first. If the request itself will have a
 *                  completion, the driver counts it first (blz__op_event_add).
 *   poll           enters the kernel if there is something to submit or to reap; waits up to the
 *                  deadline (monotonic ns; 0: does not wait; INT64_MAX: until an event or a wake).
 *                  Reports every event that there is.
 *   wake           makes a `poll` that waits, or the next one that would, return. Any thread.
 *   fd             readable when poll would find something; for embedding. Or -ENOTSUP.
 *   wait_ready     waits until poll would find something, or the deadline has passed: true. Or
 *                  until end_wait: false. Takes nothing away from poll. One other thread at a time,
 *                  whatever the worker does meanwhile; for embedding (options.on_ready). Or NULL,
 *                  then options.on_ready is refused.
 *   end_wait       makes a wait_ready that waits, or the next one, return. Any thread.
 *   has_pending    whether anything is in flight, so that the worker has to sleep in here.
 *   unregister_fd  the descriptor is about to be closed; drops what is known of it. Any thread,
 *                  under the lock of its entry; or by the last thread that knows it, and then
 *                  without a change of the entry's state: the home may still look at that. Or NULL.
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
    bool (*wait_ready)(blz__driver *driver, int64_t deadline_ns);
    void (*end_wait)(blz__driver *driver);
    bool (*has_pending)(const blz__driver *driver);
    void (*unregister_fd)(blz__driver *driver, struct blz__fd *entry);
    uint32_t try_first; /* kinds of operations that are tried before they are submitted, as bits */
    bool nonblocking;   /* wants descriptors in non-blocking mode */
    bool files;         /* takes operations of files; others leave them to the blocking pool */
} blz__driver_ops;

struct blz__driver {
    const blz__driver_ops *ops;
    struct blz_worker *worker; /* whose it is */
    blz__driver *next;         /* of those that were opened together, until its worker takes it */
    struct lease_pool *leases; /* src/io's: buffers on loan, or NULL */
    struct io *send_batch;     /* src/io's: writes that go out at the next look at the driver */
    struct io *send_batch_last;
    uint64_t completions;   /* operations that it has completed; statistics */
    uint64_t registrations; /* descriptors registered with it, over its life; statistics */
    uint64_t entries;       /* times that it entered the kernel; statistics */
};

/* ---- What a worker offers ---- */

/*
 * What another thread asks of a worker. It is part of the object that it is about, so that sending
 * one cannot fail; that object must stay until `fn` has been called.
 */
typedef struct blz__message blz__message;
struct blz__message {
    blz__message *next;
    void (*fn)(blz__message *message, struct blz_worker *w); /* [that worker] */
};

/* Leaves a message for a worker that is not this thread, and wakes it. [any thread] */
void blz__worker_post(struct blz_worker *w, blz__message *message);

/* The worker that this thread is, or NULL. */
struct blz_worker *blz__worker_current(void);

/* Its driver, or NULL if it has not needed one yet: the first field of a worker. [that worker] */
static inline blz__driver *worker_driver(const struct blz_worker *w)
{
    return *(blz__driver *const *)(const void *)w;
}

#endif
