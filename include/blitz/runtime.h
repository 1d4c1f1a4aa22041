/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime: worker threads that run tasks.
 *
 * Most programs need one line: BLZ_RUN(fn, ...) in main creates a runtime, runs `fn` with the
 * calling thread as a worker, shuts down, and returns the result. To mix with other threads:
 *
 *     blz_rt *rt;
 *     int rc = blz_rt_new(&rt, NULL);                      // all workers are threads of their own
 *     if (rc < 0)
 *         return rc;
 *     int64_t result = BLZ_BLOCK_ON(rt, fetch, .url = url);
 *     rc = blz_rt_free(rt);                                // cancels what still runs, and waits
 *
 * Several runtimes may exist in one process. A forked child cannot use its parent's: every call
 * returns -EOWNERDEAD there.
 */
#ifndef BLITZ_RUNTIME_H
#define BLITZ_RUNTIME_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* How closely tasks are watched. */
enum {
    BLZ_OBSERVE_SAMPLED = 0, /* the default: clocks are read for one poll in 16 */
    BLZ_OBSERVE_FULL = 1,    /* every poll is timed */
};

/* A poll that takes too long, as the watchdog saw it. Valid during the call. */
typedef struct blz_stuck {
    unsigned worker;
    uint64_t task_id;
    const char *task; /* name of the task or of its function */
    int64_t for_ns;   /* how long it has been going on */
    bool refused;     /* not slow, but ignoring its cancellation: 1,000 awaits were refused */
    uint64_t reserved[4];
} blz_stuck;

/*
 * All zero means the default. An environment variable, where named, wins over a zero. A program
 * that has more privileges than its caller (setuid, setgid, file capabilities) ignores them all.
 */
typedef struct blz_options {
    unsigned workers;  /* BLZ_WORKERS; default: the CPUs we may use (affinity, cgroup quota) */
    size_t stack_size; /* of all threads; default: the system's */
    const char *name;  /* prefix of thread names; default "blitz" */
    const blz_allocator *allocator; /* copied; default: malloc and pages from the system */

    /* Called on each worker thread, first and last. */
    void (*on_thread_start)(unsigned worker, void *arg);
    void (*on_thread_stop)(unsigned worker, void *arg);
    /* Called on a worker before it goes to sleep and after. */
    void (*on_thread_park)(unsigned worker, void *arg);
    void (*on_thread_unpark)(unsigned worker, void *arg);
    /* Called by the watchdog thread; about refused awaits, by the worker in the middle of the poll.
     * Default: counts only. */
    void (*on_stuck)(const blz_stuck *stuck, void *arg);
    void *hook_arg;

    int64_t watchdog_ns; /* BLZ_WATCHDOG_MS; default 25 ms, BLZ_NEVER: no watchdog */
    int observe;         /* BLZ_OBSERVE=full */
    bool disable_stealing;
    bool disable_lifo;
    unsigned inject_interval; /* polls between looks at the shared queue; default: tuned */
    unsigned event_interval;  /* polls between looks at the I/O driver; default 255 */
    unsigned budget;          /* operations in one poll of a task; default 128 */
    uint64_t seed;            /* BLZ_SEED; of the choice of victims; default: random */
    int64_t shutdown_ns;      /* blz_rt_free's patience; default 10 s, BLZ_NEVER: no limit */

    const char *backend; /* BLZ_BACKEND: io_uring, epoll, poll; default: the best that works */
    unsigned max_io_completions; /* taken from the kernel at a time; default: the backend's */

    /* No threads (but the watchdog, if on_stuck is set, and one that waits, if on_ready is): the
     * caller runs the one worker, by blz_rt_turn. */
    bool embedded;
    /* With `embedded`: called when blz_rt_turn has something to do. An operation has ended, another
     * thread has spawned or woken a task, a timer is due, or the last turn did not do everything.
     * For loops that cannot wait for a descriptor (blz_rt_fd). It is called once after each turn at
     * most, and before the first turn, so each call must lead to a turn. A call may turn out to be
     * needless. It is called by a thread of the runtime, at any time until blz_rt_free returns,
     * also while a turn that was made without it runs. It must not block. It may call what is for
     * any thread, but blz_rt_turn, blz_rt_shutdown and blz_rt_free give -EDEADLK: it tells the
     * loop's thread to make the turn. */
    void (*on_ready)(void *arg);
    /* A clock of its own, for tests (blitz/time.h). One worker; -EINVAL with more. */
    bool test_clock;
    /* Writes nothing to stderr. Default: if tasks or blocking calls did not end in time, or handles
     * of sockets, files or pipes were never closed, blz_rt_free and blz_run write one line. It says
     * how many, and for a task its name and the function and line at which it waits. */
    bool quiet_end;

    /* Threads for the program's blocking work (blitz/blocking.h); default 512. Name lookups and
     * file operations have threads of their own, up to 32 and 128, but not more than this. */
    unsigned max_blocking_threads;
    int64_t blocking_keep_alive_ns; /* when idle ones end; default 10 s, BLZ_NEVER: they stay */
    uint64_t reserved[4];
} blz_options;

/*
 * Creates a runtime. `options` may be NULL. The workers start with the first task. 0; -ENOMEM;
 * -EINVAL: an option makes no sense; -ENOTSUP: options.on_ready, and the backend is poll; or an
 * error of the system. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_rt_new(blz_rt **rt, const blz_options *options);

/*
 * Shuts down: new tasks are refused, all tasks are cancelled and run to their end until `grace_ns`
 * has passed (BLZ_NEVER: no limit); then shields are overridden, for a second time as long.
 * After the tasks the blocking pool: jobs that are queued there are cancelled, jobs that run have
 * as much time once more. 0; -ETIMEDOUT: tasks (they are in the dump) or jobs did not end even so;
 * -EDEADLK on a worker or in a job; -EOWNERDEAD: in a forked child. May be called again. [any
 * thread but a worker]
 */
BLZ_API BLZ_NODISCARD int blz_rt_shutdown(blz_rt *rt, int64_t grace_ns);

/*
 * Shuts down (see options.shutdown_ns) and frees the runtime: 0. -ETIMEDOUT: tasks and jobs that
 * did not end are leaked on purpose, with all they use. -EDEADLK on a worker or in a job: nothing
 * is freed. NULL is allowed. [any thread but a worker]
 */
BLZ_API BLZ_NODISCARD int blz_rt_free(blz_rt *rt);

/*
 * Creates a runtime, runs one task with this thread as worker 0, shuts the runtime down and frees
 * it; gives the task's result. -EDEADLK on a worker; -EINVAL: options.embedded, or an option makes
 * no sense; -ENOMEM, or an error of the system; -ETIMEDOUT: the result was not negative, but tasks
 * or jobs did not end (blz_rt_shutdown). [any thread but a worker]
 */
BLZ_API int64_t blz_run(const void *frame, size_t size, const char *site,
                        const blz_options *options);

/* The runtime of the worker thread that this is, or NULL. [any thread] */
BLZ_API blz_rt *blz_rt_current(void);

/* How many workers it has, or will have. [any thread] */
BLZ_API unsigned blz_rt_workers(const blz_rt *rt);

/* The I/O backend ("io_uring", "epoll", "poll", "none"), and in a sentence why it is that one.
 * Chosen at the first call, or when I/O is first needed; the same for all workers. [any thread] */
BLZ_API const char *blz_rt_backend(blz_rt *rt);
BLZ_API const char *blz_rt_backend_reason(blz_rt *rt);

/*
 * A descriptor for another event loop (options.embedded), which is readable when blz_rt_turn has
 * something to do: also when another thread has spawned or woken a task meanwhile. The loop waits
 * for it, but no longer than until blz_rt_deadline, and then calls blz_rt_turn. A loop that cannot
 * wait for a descriptor uses options.on_ready. -ENOTSUP: not embedded, or the backend is poll,
 * which has none. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_rt_fd(blz_rt *rt);

/*
 * The instant at which an embedded runtime wants a turn even if its descriptor is not readable: the
 * next timer of a task is due. In ns of the monotonic clock; INT64_MAX: there is no timer. It may
 * change with each turn. It cannot fail. [the thread that makes the turns]
 */
BLZ_API int64_t blz_rt_deadline(blz_rt *rt);

/*
 * Runs what can run in an embedded runtime, and does not block: the number of polls. The first
 * thread that calls it is the worker from then on; -EPERM on any other. -ENOTSUP: the runtime is
 * not embedded; -EDEADLK: in a task, or in options.on_ready. [the thread that makes the turns]
 */
BLZ_API int64_t blz_rt_turn(blz_rt *rt);

/*
 * Writes one line for each live task: id, name, state, spawn site, async backtrace, how long it has
 * waited, polls, busy time. The branches of a combinator are in braces, with their numbers:
 * "serve at s.c:12 > select { 0: accept | 1: sleep }". `write` is called with each line, without
 * newline. 0, or -ENOMEM; -EOWNERDEAD: in a forked child. [any thread]
 */
BLZ_API int blz_task_dump(blz_rt *rt, void (*write)(const char *line, void *arg), void *arg);

/*
 * Writes one line for each live task, as blz_task_dump does, to a descriptor of the system, one
 * write for each line with its newline: blz_task_dump_fd(rt, 2) to the standard error. May wait if
 * the descriptor is in blocking mode. 0; -ENOMEM; -EOWNERDEAD: in a forked child. [any thread]
 */
BLZ_API int blz_task_dump_fd(blz_rt *rt, blz_sysfd fd);

BLZ_END_DECLS
#endif
