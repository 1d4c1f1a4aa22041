/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping: SIGINT (Ctrl-C) and SIGTERM as something to wait for.
 *
 *     BLZ_ASYNC(run)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = blz_stop_open(&self->stop);               // before anything is served
 *         if (self->rc == 0)
 *             self->rc = BLZ_SPAWN_JOIN(&self->server, serve, .ln = self->ln);
 *         if (self->rc == 0) {
 *             BLZ_AWAIT(self->rc, blz_stop_wait(&self->wait, &self->stop));
 *             blz_handle_cancel(&self->server);                // self->rc is SIGINT or SIGTERM
 *             BLZ_AWAIT_SHIELDED(self->rc, blz_handle_join(&self->join, &self->server));
 *         }
 *         blz_stop_close(&self->stop);
 *         BLZ_END(self->rc);
 *     }
 *
 * The request to stop is a state of the process. While at least one blz_stop is open, in whatever
 * runtime, the two signals do not kill the process: the first one is kept, and everybody who waits,
 * or begins to wait later, gets its number at once. So nothing is lost between two awaits.
 *
 * A second signal, of either kind, has its default action: it kills. A program that hangs while it
 * shuts down can be interrupted. (Signals that come before anybody has been told of the first one
 * count as one: some tools send it to the process and then to its group.)
 *
 * When the last blz_stop is closed, the handlers from before are put back. If a signal had come and
 * nobody had looked at it, it is raised again, for them. Opening starts a small thread, closing the
 * last one ends it; nothing is polled.
 *
 * A forked child begins without an open blz_stop; what it has inherited gives -EOWNERDEAD, and the
 * signals do to it what they did before its parent opened one.
 */
#ifndef BLITZ_SIGNAL_H
#define BLITZ_SIGNAL_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* A subscription. All zero: closed. */
typedef struct blz_stop {
    uint64_t private_[2];
} blz_stop;

/* The future of the waits below. */
typedef struct blz_stop_op {
    blz_future future;
    blz_stop *stop;
    blz_stop own; /* of blz_stop_signal */
    blz_waker waker;
    struct blz_stop_op *next, **link;
    uint64_t reserved[2];
} blz_stop_op;

/*
 * From now on a stop signal is something to wait for. 0, -ENOMEM, or why a thread could not be
 * started. The struct must not be open already. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_stop_open(blz_stop *stop);

/* Ends that. Closing a closed one is fine. Nobody may be waiting on it. [any thread] */
BLZ_API void blz_stop_close(blz_stop *stop);

/*
 * Awaits the request to stop: SIGINT or SIGTERM, whichever came first, and from then on always at
 * once. -EBADF: not open; -EOWNERDEAD: opened by the parent process. Interruptible. [task]
 */
BLZ_API blz_future *blz_stop_wait(blz_stop_op *op, blz_stop *stop);

/* The signal that has come, or 0. -EBADF, -EOWNERDEAD as above. [any thread] */
BLZ_API int blz_stop_received(const blz_stop *stop);

/*
 * Opens, waits and closes: for a program that waits once. A signal that comes while nobody has one
 * open kills as ever, so around a loop use a blz_stop. Fails like blz_stop_open. Interruptible.
 */
BLZ_API blz_future *blz_stop_signal(blz_stop_op *op);

BLZ_END_DECLS
#endif
