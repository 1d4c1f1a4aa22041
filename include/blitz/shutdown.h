/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown: ending a program in phases, each with its deadline, by a signal or by code.
 *
 *     static int on_conn(blz_tcp conn, void *arg)                 // of blz_tcp_serve
 *     {
 *         struct server *s = arg;
 *         blz_guard guard;
 *         int rc = blz_guard_work(&guard, s->shutdown);           // one more at work
 *         if (rc == 0 && (rc = BLZ_SPAWN(session, .conn = conn, .guard = guard)) < 0)
 *             blz_guard_leave(&guard);
 *         return rc;
 *     }
 *     ...
 *         BLZ_AWAIT(self->rc, blz_guard_run(&self->run, &self->guard,      // in the task:
 *                             BLZ_FUTURE(self->talk, talk, .conn = self->conn)));
 *     ...
 *         self->rc = blz_shutdown_new(&self->shutdown, NULL);              // in the main task:
 *         if (self->rc == 0)
 *             self->rc = BLZ_SPAWN(serve, .shutdown = self->shutdown);
 *         if (self->rc == 0)
 *             BLZ_AWAIT(self->rc, blz_shutdown_run(&self->op, self->shutdown));
 *         if (self->rc == -ETIMEDOUT)
 *             _exit(1);                                                    // some did not end
 *
 *   phase        begins with                         ends when
 *   ------------------------------------------------------------------------------------------
 *   RUNNING                                          a signal comes, or blz_shutdown_begin
 *   STOPPING     acceptors are told to end           none is left
 *   DRAINING     no new work may begin; what has     nobody is at work
 *                begun may finish
 *   CANCELLING   work is cancelled                   nobody is at work
 *   FORCING      and shields no longer count         nobody is at work
 *   ENDED
 *
 * Each phase also ends when its time is up, or when it is hurried: a second signal (or
 * blz_shutdown_hurry) begins CANCELLING at once, a third FORCING, a fourth gives up. A signal that
 * comes within a second of the one before (BLZ_STOP_REPEAT_NS) counts as one with it. If work is
 * left when a phase ends so, there is a report: how many, and the async backtrace of every task. If
 * work is left when FORCING ends, blz_shutdown_run gives -ETIMEDOUT. A stuck task cannot be ended
 * by force: the caller decides whether to _exit, or to let the runtime end, which cancels all its
 * tasks, waits once more (blz_options.shutdown_ns), and leaks what is stuck.
 *
 * Work and acceptors are counted by guards. To enter and to leave is one atomic operation each.
 * What is not counted can still know of the phases, by their tokens (blz_shutdown_token): to await
 * one, to be cancelled by it, to be called back.
 */
#ifndef BLITZ_SHUTDOWN_H
#define BLITZ_SHUTDOWN_H

#include <blitz/future.h>
#include <blitz/token.h>

BLZ_BEGIN_DECLS

/* The end of a program: what is counted, and how far it has come. */
typedef struct blz_shutdown blz_shutdown;

/* The phases, in their order. */
enum {
    BLZ_SHUTDOWN_RUNNING,
    BLZ_SHUTDOWN_STOPPING,
    BLZ_SHUTDOWN_DRAINING,
    BLZ_SHUTDOWN_CANCELLING,
    BLZ_SHUTDOWN_FORCING,
    BLZ_SHUTDOWN_ENDED,
};

/* How a phase has ended. */
enum {
    BLZ_SHUTDOWN_SKIPPED, /* never begun, or not over yet */
    BLZ_SHUTDOWN_DONE,    /* no guard was left */
    BLZ_SHUTDOWN_LATE,    /* its time was up */
    BLZ_SHUTDOWN_HURRIED, /* by a signal, or by blz_shutdown_hurry */
};

/* ---- The report ---- */

/* What became of a phase. */
typedef struct blz_shutdown_step {
    int end;            /* BLZ_SHUTDOWN_DONE, ... */
    uint32_t accepting; /* guards when it ended */
    uint64_t working;
    int64_t ns; /* how long it took */
    uint64_t reserved;
} blz_shutdown_step;

/* How far a shutdown has come: blz_shutdown_get_report, and options.on_phase. */
typedef struct blz_shutdown_report {
    int phase;          /* which is on now */
    int signal;         /* that began it; 0: code did */
    int64_t pid;        /* of the process that sent the signal, if one did */
    uint32_t accepting; /* guards now */
    uint32_t requests;  /* signals and calls that asked for it */
    uint64_t working;
    blz_shutdown_step steps[BLZ_SHUTDOWN_ENDED]; /* by phase; the first is not used */
    uint64_t reserved[4];
} blz_shutdown_report;

/* ---- The shutdown ---- */

/* How many signals can begin it. */
#define BLZ_SHUTDOWN_SIGNALS 8

/* Instead of a time: leave the phase out. */
#define BLZ_NO_PHASE INT64_MIN

/* All zero means the default. */
typedef struct blz_shutdown_options {
    int signals[BLZ_SHUTDOWN_SIGNALS]; /* of <signal.h>; default SIGINT and SIGTERM */
    bool no_signals;                   /* none does */
    /* Time for each phase; BLZ_NEVER: no limit; BLZ_NO_PHASE: the next begins in its place. */
    int64_t stop_ns;   /* default 5 s */
    int64_t drain_ns;  /* default 30 s */
    int64_t cancel_ns; /* default 10 s */
    int64_t force_ns;  /* default 5 s */
    /* Called when a phase has begun (report->phase), the last time with ENDED. [worker] */
    void (*on_phase)(const blz_shutdown_report *report, void *arg);
    /* Called with each line of a text, without newlines, when a phase ends before all is done: how
     * many guards are left, and the tasks of the runtime (blz_task_dump). May be NULL. [worker] */
    void (*write)(const char *line, void *arg);
    void *arg;
    const blz_allocator *allocator; /* copied; default: the system's */
    uint64_t reserved[4];
} blz_shutdown_options;

/*
 * Makes one, and subscribes to its signals (blitz/signal.h): from now on they do not kill.
 * `options` may be NULL. 0; -ENOMEM; -EINVAL: a signal that cannot be caught; -ENOTSUP: one that
 * Windows does not deliver (blitz/signal.h); or why a subscription failed. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_shutdown_new(blz_shutdown **shutdown,
                                           const blz_shutdown_options *options);

/*
 * Frees it: the signals do what they did before. (Impatient ones that came while it was under way
 * do nothing more; one that came and did not begin it is raised again.) Its memory stays until the
 * last guard has left, so tasks that are stuck do no harm. No task may be in blz_shutdown_run, or
 * enter any more. NULL is allowed. [any thread]
 */
BLZ_API void blz_shutdown_free(blz_shutdown *shutdown);

/* The future of blz_shutdown_run. */
typedef struct blz_shutdown_op {
    blz_future future;
    blz_shutdown *shutdown;
    uint64_t reserved[3];
} blz_shutdown_op;

/*
 * Waits until the shutdown begins, goes through the phases, and is ready when all is done: 0;
 * -ETIMEDOUT: not all (blz_shutdown_get_report says what); -EBUSY: another task awaits it; -ENXIO:
 * this is no task (blz_wait). At the end the tokens of all phases have been cancelled. Timers, and
 * the dump, are those of the awaiting task's runtime. Interruptible: with -ECANCELED everything
 * stays as it is, and it may be awaited again. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_shutdown_run(blz_shutdown_op *op, blz_shutdown *shutdown);

/* Begins the shutdown, if it has not begun. [any thread] */
BLZ_API void blz_shutdown_begin(blz_shutdown *shutdown);

/* Begins the shutdown, or ends the phase that is on early, as a signal does. [any thread] */
BLZ_API void blz_shutdown_hurry(blz_shutdown *shutdown);

/* Which phase is on (BLZ_SHUTDOWN_RUNNING, ...). One load. It cannot fail. [any thread] */
BLZ_API int blz_shutdown_phase(const blz_shutdown *shutdown);

/*
 * The token that is cancelled when the phase begins (STOPPING, DRAINING, CANCELLING or FORCING),
 * and at the end in any case; NULL: there is no such. Await it (blz_token_cancelled), have a future
 * cancelled by it (blz_token_guard), make children. The reference is the shutdown's. [any thread]
 */
BLZ_API blz_token *blz_shutdown_token(const blz_shutdown *shutdown, int phase);

/* How far it has come. [any thread] */
BLZ_API void blz_shutdown_get_report(blz_shutdown *shutdown, blz_shutdown_report *report);

/* ---- Guards ---- */

/* Counts one piece of work, or one acceptor. All zero: it counts none. May be moved, not copied. */
typedef struct blz_guard {
    blz_shutdown *shutdown;
    uint64_t private_;
} blz_guard;

/*
 * Counts one more piece of work: 0; -ESHUTDOWN from DRAINING on: *guard counts none; -EOVERFLOW:
 * too many. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_guard_work(blz_guard *guard, blz_shutdown *shutdown);

/*
 * Counts one more acceptor, which brings work in: 0; -ESHUTDOWN from STOPPING on: *guard counts
 * none; -EOVERFLOW: too many. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_guard_accept(blz_guard *guard, blz_shutdown *shutdown);

/*
 * Counts one more of the same kind as another guard, in any phase: work that has begun may have to
 * do several things to finish. 0; -ESHUTDOWN: the other guard counts none; -EOVERFLOW: too many.
 * [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_guard_clone(blz_guard *guard, const blz_guard *other);

/*
 * Counts one less; the guard counts none afterwards. If it did not count before, nothing happens.
 * [any thread]
 */
BLZ_API void blz_guard_leave(blz_guard *guard);

/* The future of blz_guard_run. */
typedef struct blz_guard_op {
    blz_future future;
    blz_guard guard;
    blz_token_guard_op soft;
    blz_token_op force;
    uint64_t reserved[2];
} blz_guard_op;

/*
 * Awaits `inner`, counted by the guard, which it takes over: gives its result, and the guard has
 * left then. `inner` is cancelled when CANCELLING begins (an acceptor's: STOPPING), and its shields
 * do not count from FORCING on. -ESHUTDOWN if the guard counts none: `inner` is not started. Around
 * blz_scope_join it cancels all children of the scope. A cancellation from outside is passed on; in
 * a scope that is cancelled already `inner` is not started, and the guard leaves. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_guard_run(blz_guard_op *op, blz_guard *guard,
                                                blz_future *inner);

BLZ_END_DECLS
#endif
