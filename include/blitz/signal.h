/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as something to wait for: any signal (blz_signal), and the request to stop (blz_stop).
 *
 *     BLZ_ASYNC(reload_on_hangup)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = blz_signal_open(&self->hangup, SIGHUP);
 *         while (self->rc >= 0) {
 *             BLZ_AWAIT(self->rc, blz_signal_recv(&self->op, &self->hangup, NULL));
 *             if (self->rc > 0)
 *                 reload();                                    // rc: how many have come
 *         }
 *         blz_signal_close(&self->hangup);
 *         BLZ_END(self->rc);
 *     }
 *
 * Any number of subscriptions to a signal may be open, in tasks of several runtimes and in threads
 * that belong to none (blz_signal_wait). While one is open, the signal does not do what it did
 * before: it is counted, and every subscription gets the count. The subscription counts,
 * not the wait: nothing is lost between two waits, or by one that is cancelled. What the system
 * merges (a signal that is sent again before it is delivered) comes as one; more cannot be known.
 *
 * The handler from before is not called meanwhile. It is put back when the last subscription to the
 * signal is closed; if signals had come and none had been received, one is raised again, for it.
 * So a signal is never lost: a subscription gets it, or the handler from before does. (To drop what
 * has come, receive it before closing.) Handlers that the program puts over ours stay.
 *
 * The first subscription of the process starts a small thread, the last one closed ends it; nothing
 * is polled. A signal that all threads of the program block is delivered to that thread. System
 * calls that a signal interrupts go on (SA_RESTART).
 *
 * Signals are numbers, with the names of <signal.h>, which a program includes. ISO C names SIGINT
 * and SIGTERM, POSIX the others. Windows delivers SIGINT (Ctrl-C), SIGBREAK, SIGHUP as number 1
 * (the console is closed) and SIGTERM (the session ends), a few seconds before the process is
 * ended; to subscribe to another one is -ENOTSUP there, and the sender is not known.
 *
 * A forked child begins without a subscription; what it has inherited gives -EOWNERDEAD, and the
 * signals do to it what they did before its parent subscribed.
 */
#ifndef BLITZ_SIGNAL_H
#define BLITZ_SIGNAL_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* ---- Any signal ---- */

/* A subscription to one signal. All zero: closed. May be moved while no task waits, not copied. */
typedef struct blz_signal {
    uint64_t private_[3];
} blz_signal;

/* What has been received. */
typedef struct blz_signal_info {
    int signal;
    uint32_t uid;   /* of the process that sent the last one, if one did */
    int64_t pid;    /* and its number; 0: the system did, for a terminal, a timer, a child, ... */
    uint64_t count; /* how many have come since the last time */
    uint64_t reserved[2];
} blz_signal_info;

/* The future of blz_signal_recv. */
typedef struct blz_signal_op {
    blz_future future;
    blz_waiter waiter;
    blz_signal *signal;
    blz_signal_info *info;
    uint64_t reserved[1];
} blz_signal_op;

/*
 * Subscribes to a signal: all that are delivered from now on will be received. 0; -EINVAL: there is
 * no such signal, or it cannot be waited for (SIGKILL, SIGSTOP; SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGTRAP and SIGSYS, which belong to the instruction that raised them); -ENOTSUP: Windows does not
 * deliver it; -ENOMEM, or an error of the system: a thread could not be started. The struct must
 * not be open already. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_signal_open(blz_signal *sub, int number);

/*
 * Ends a subscription; closing a closed one does nothing. No task may be waiting on it. If it was
 * the last one, the handler from before is back when this returns. [any thread]
 */
BLZ_API void blz_signal_close(blz_signal *sub);

/*
 * Awaits signals: how many have come since the last time, at least 1, and fills in *info unless it
 * is NULL. Several may wait on one subscription; each signal is then received by one of them.
 * -EBADF: not open; -EOWNERDEAD: opened by the parent process. Interruptible: -ECANCELED, and what
 * has come stays for the next time. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_signal_recv(blz_signal_op *op, blz_signal *sub,
                                                  blz_signal_info *info);

/*
 * Takes the signals that have come, without waiting: gives how many, and fills in *info unless it
 * is NULL. -EAGAIN: none has come; -EBADF: not open; -EOWNERDEAD: opened by the parent process.
 * [any thread]
 */
BLZ_API int64_t blz_signal_try_recv(blz_signal *sub, blz_signal_info *info);

/*
 * Blocks this thread until a signal comes: gives how many have come since the last time, at least
 * 1, and fills in *info unless it is NULL. -EBADF: not open; -EOWNERDEAD: opened by the parent
 * process; -EDEADLK on a worker. [any thread but a worker]
 */
static inline int64_t blz_signal_wait(blz_signal *sub, blz_signal_info *info)
{
    blz_signal_op op;

    return blz_wait(blz_signal_recv(BLZ_FRESH_(&op), sub, info));
}

/* ---- Stopping ---- */

/* Stop signals that come within this time of the first are no second request. */
#define BLZ_STOP_REPEAT_NS BLZ_SEC

/*
 * SIGINT (Ctrl-C) and SIGTERM as a state of the process:
 *
 *     BLZ_ASYNC(run)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = blz_stop_open(&self->stop);               // before anything is served
 *         if (self->rc == 0)
 *             self->rc = BLZ_SPAWN_JOIN(&self->server, serve, .ln = self->ln);
 *         if (self->rc == 0) {
 *             BLZ_AWAIT(self->rc, blz_stop_await(&self->wait, &self->stop));
 *             blz_handle_cancel(&self->server);                // self->rc is SIGINT or SIGTERM
 *             BLZ_AWAIT_SHIELDED(self->rc, blz_handle_join(&self->join, &self->server));
 *         }
 *         blz_stop_close(&self->stop);
 *         BLZ_END(self->rc);
 *     }
 *
 * While at least one blz_stop is open, in whatever runtime, the first of these signals is kept, and
 * every task that waits, or begins to wait later, gets its number at once.
 *
 * A second signal, of either kind, has its default action: it kills. A program that hangs while it
 * shuts down can be interrupted. What comes within a second of the first (BLZ_STOP_REPEAT_NS), or
 * before any task has been told of it, counts as one with it: timeout(1) and other tools send a
 * signal to the process and then to its group. Where a blz_signal is open for it, the signal goes
 * there and does not kill. A shutdown in phases, in which a second signal means to hurry, is in
 * blitz/shutdown.h.
 *
 * When the last blz_stop is closed, and no task has looked at a signal that had come, that signal
 * is raised again.
 */
typedef struct blz_stop {
    uint64_t private_[2];
} blz_stop;

/* The future of the waits below. */
typedef struct blz_stop_op {
    blz_future future;
    blz_waiter waiter;
    blz_stop *stop;
    blz_stop own; /* of blz_stop_signal */
    uint64_t reserved[1];
} blz_stop_op;

/*
 * Makes stop signals something to wait for, from now on. 0; -ENOMEM, or an error of the system: a
 * thread could not be started. The struct must not be open already. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_stop_open(blz_stop *stop);

/*
 * Ends what blz_stop_open began; closing a closed one does nothing. No task may be waiting on it.
 * [any thread]
 */
BLZ_API void blz_stop_close(blz_stop *stop);

/*
 * Awaits the request to stop: SIGINT or SIGTERM, whichever came first, and from then on always at
 * once. -EBADF: not open; -EOWNERDEAD: opened by the parent process. Interruptible. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stop_await(blz_stop_op *op, blz_stop *stop);

/*
 * The stop signal that has come, or 0. -EBADF: not open; -EOWNERDEAD: opened by the parent process.
 * [any thread]
 */
BLZ_API int blz_stop_received(const blz_stop *stop);

/*
 * Opens a blz_stop, awaits the request to stop, and closes it: gives SIGINT or SIGTERM. For a
 * program that waits once. A signal that comes while no blz_stop is open kills as ever, so around a
 * loop use a blz_stop. -ENOMEM, or the errors of blz_stop_open. Interruptible: -ECANCELED. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_stop_signal(blz_stop_op *op);

BLZ_END_DECLS
#endif
