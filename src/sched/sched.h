/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/sched for the modules above it. They get along with the public API, the task
 * front door, and the driver contract (sched/driver.h); this is the rest.
 */
#ifndef BLZ_SCHED_SCHED_H
#define BLZ_SCHED_SCHED_H

#include "sched/driver.h"
#include "task/task.h"
#include "time/wheel.h"

#include <blitz/runtime.h>

/* The driver of the worker that this thread is, or NULL if it has not needed one yet. */
blz__driver *blz__driver_current(void);

/* The same, opened if need be: 0 or a negative errno. [worker] */
int blz__driver_need(void);

/* The descriptors of a runtime. */
struct blz__io *blz__rt_io(const blz_rt *rt);

/*
 * What its drivers are; chosen and opened at the first call, by trying. A negative errno in *rc,
 * and NULL: then the next call tries again. [any thread]
 */
const blz__driver_ops *blz__rt_driver_ops(blz_rt *rt, int *rc);

/*
 * Spawns a task that is pinned (args->pinned) to any worker of this thread's runtime: 0 or a
 * negative errno, as blz_spawn. [task]
 */
int blz__spawn_pinned(const blz_spawn_args *args, const void *frame, size_t size, unsigned worker);

/* Whether other tasks wait to be run on it; a guess. [that worker] */
bool blz__worker_has_more(const struct blz_worker *worker);

/* How many tasks may be made ready before the queue of this thread's worker overflows. [worker] */
uint32_t blz__worker_room(void);

/* The number of the worker that this thread is. [worker] */
unsigned blz__worker_index(void);

/* A random number, from the worker that polls (or from the clock, if it is none). [task] */
uint64_t blz__sched_random(const blz_cx *cx);

/* ---- What the scheduler needs from src/io ---- */

/*
 * Chooses a backend by name (NULL: the best that works here), says why, and opens a driver of it
 * for each worker, as a list: a backend that would be refused to some of them is not used at all.
 * 0; -EINVAL: no such name; or why the one that was asked for does not work.
 */
int blz__io_choose(const blz_options *options, const blz__driver_ops **ops, blz__driver **drivers,
                   char *reason, size_t size);

int blz__io_new(struct blz__io **io, blz_rt *rt);
void blz__io_end(struct blz__io *io); /* closes what is still open, when the last task has ended */
void blz__io_free(struct blz__io *io);

/* Validator (base/assert.h) of all entries. No thread uses one meanwhile. */
const char *blz__fd_check(struct blz__io *io);

/* Handles of sockets, files and pipes that have not been closed. [any thread] */
uint64_t blz__io_open_count(struct blz__io *io);

/* ---- What the scheduler needs from src/time ---- */

/* The runtime's clock: the monotonic one, or its own (options.test_clock). [any thread] */
int64_t blz__rt_now(blz_rt *rt);

/* Fires the timers that are due. [any thread: the watchdog does it for a worker that is stuck] */
void blz__worker_expire(struct blz_worker *w);

/* Drops the timers that are left. [the end of the runtime] */
void blz__worker_drop_timers(struct blz_worker *w);

/* ---- for threads that are not workers ---- */

/*
 * Between the two calls the runtime neither closes its drivers nor frees its memory. For a thread
 * that goes on to use the runtime after it has let something go that kept it: see visitors.h.
 * Nothing of the program's may be called meanwhile. [any thread]
 */
void blz__rt_visit(blz_rt *rt);
void blz__rt_leave(blz_rt *rt);

/* ---- for the blocking pool ---- */

/*
 * A part of a runtime that stands above the scheduler and has threads of its own: made when it is
 * first used, closed after the last task, freed with the runtime.
 */
typedef struct blz__service blz__service;
struct blz__service {
    /* Ends its threads. 0; -ETIMEDOUT: some have not ended by then. May be called again. */
    int (*close)(blz__service *service, int64_t deadline_ns);
    /* Frees it, after close gave 0. */
    void (*destroy)(blz__service *service);
    /* Whether the calling thread is one of its own. */
    bool (*is_mine)(const blz__service *service);
    /* Whether it is likely to wake a task any moment. A guess, and cheap. */
    bool (*is_brisk)(const blz__service *service);
};

/* The runtime's blocking pool, or NULL. [any thread] */
blz__service *blz__rt_blocking(const blz_rt *rt);

/* Makes `pool` it, unless there is one already: the one there is; NULL: too late. [any thread] */
blz__service *blz__rt_set_blocking(blz_rt *rt, blz__service *pool);

/* Whether no shutdown has begun. [any thread] */
bool blz__rt_is_open(blz_rt *rt);

/* As resolved. [any thread] */
const blz_options *blz__rt_options(const blz_rt *rt);

/* ---- for those who look at a runtime from outside ---- */

/* Is told, once, when the runtime has shut down and its memory is about to go. */
typedef struct blz__rt_end_hook blz__rt_end_hook;
struct blz__rt_end_hook {
    blz__rt_end_hook *next;
    void (*ended)(blz__rt_end_hook *hook, blz_rt *rt);
};

/* 0, or -ESHUTDOWN: a shutdown has begun. [any thread] */
int blz__rt_add_end_hook(blz_rt *rt, blz__rt_end_hook *hook);

/* False: it is being told, or has been. [any thread] */
bool blz__rt_remove_end_hook(blz_rt *rt, blz__rt_end_hook *hook);

#endif
