/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's struct. For the files of src/sched and src/observe; others see sched/sched.h. */
#ifndef BLZ_SCHED_RT_H
#define BLZ_SCHED_RT_H

#include "base/fence.h"
#include "sched/sched.h"
#include "sched/visitors.h"
#include "sched/ready_thread.h"
#include "sched/watchdog.h"
#include "sched/worker.h"
#include "time/test_clock.h"

/* How far a shutdown has come. Only ever goes up. */
enum { RT_OPEN, RT_CLOSING, RT_FORCING };

struct blz_rt {
    /* read by every poll and every spawn, written at start and shutdown */
    uint32_t phase; /* RT_OPEN and on */
    uint32_t budget;
    uint32_t event_interval;
    uint32_t nr_workers;
    blz_worker *workers;
    uint32_t *fork_word;   /* reads 0 in a forked child */
    uint64_t target_ticks; /* 200 us: how long a look at other queues may be put off */
    bool observe_full;
    bool stealing;
    bool lifo;
    bool embedded;
    bool asymmetric_fences;

    blz_options options;
    char name[16]; /* options.name points here */
    blz_allocator allocator;
    const blz__driver_ops *driver_ops; /* NULL: not chosen yet */
    blz__lock driver_lock;             /* of choosing, as long as that takes */
    char driver_reason[160];
    struct blz__io *io;
    blz__clock clock;
    test_clock test_clock;
    blz__pool pool;
    idle_set idle;
    inject inject;
    uint32_t visitors; /* threads from outside that wake a worker right now; see visitors.h */
    watchdog watchdog;
    ready_thread ready_thread;

    /* threads that are not workers; under inject.lock, so that a spawn takes one lock */
    blz__heap foreign_heap;
    uint64_t foreign_ids;
    uint64_t next_ids; /* where the next batch of ids begins */

    blz__service *blocking; /* the pool, once there has been a job; set under life_lock */

    /* life */
    blz__lock life_lock; /* of started and closed */
    bool started;
    bool stopped;
    bool pool_closed;            /* the pool's time is over; under life_lock */
    bool jobs_stuck;             /* and not all of its jobs have ended; under life_lock */
    bool ended;                  /* freed: the last of the orphans destroys it; under inject.lock */
    blz__rt_end_hook *end_hooks; /* under life_lock */
    uint64_t callbacks;          /* that will run when a task ends */
    size_t orphans; /* blocks still referred to after the end, threads that release memory; too */
    uint32_t nr_threads;
    uint64_t turn_owner; /* the thread that makes embedded turns; 0: none yet */
    blz_worker *closer;  /* the worker that shuts down, or NULL */
    uint32_t stop;       /* futex and flag: worker threads return */
    uint32_t drained;    /* futex and flag: closing, and no task is left */
    uint32_t number;     /* of this runtime in the process, from 0; for traces */
};

/* Queues for anyone, and wakes a worker if need be. [any thread] */
void blz__rt_inject(blz_rt *rt, task_list *tasks);

/* Wakes a parked worker if nobody is looking for work. After queueing. [any thread] */
void blz__rt_notify(blz_rt *rt);

/* After the end: one block, or thread, fewer that needs the runtime. [any thread] */
void blz__rt_drop_orphan(blz_rt *rt);

/* Whether there is work that a worker other than its owner could take. */
bool blz__rt_has_work(const blz_rt *rt, const blz_worker *asking);

/* Cancels all tasks that are idle. [any thread] */
void blz__rt_cancel_idle(blz_rt *rt);

/* Tasks that have been spawned and not completed. A guess while others run. [any thread] */
uint64_t blz__rt_live(const blz_rt *rt);

/*
 * Between what a worker has done and its look at the phase. Pairs with the fence in enter_phase.
 */
static inline void rt_fence_before_phase(const blz_rt *rt)
{
    blz__fence_light_or_full(rt->asymmetric_fences);
}

/* If a shutdown waits for the last task and there is none left: says so. [any thread] */
void blz__rt_check_drained(blz_rt *rt);

/* Calls visit for each block of each heap. [any thread] */
void blz__rt_walk(blz_rt *rt, void (*visit)(blz_task *block, void *arg), void *arg);

/* Starts the workers, once. 0 or a negative errno. [any thread] */
int blz__rt_start(blz_rt *rt, bool caller_is_worker_0);

/* After the shutdown: its threads end, its memory is given back, maybe later. [any thread] */
void blz__rt_end(blz_rt *rt);

/* Says on stderr what did not end, or was not closed (src/observe). Before handles are closed. */
void blz__rt_report_end(blz_rt *rt, bool drained);

/* Embedded: the first thread that makes a turn is the only one that may. [any thread] */
bool blz__rt_is_turn_owner(blz_rt *rt);

/* Creates a runtime that is not started, with a driver for each worker (or NULL). */
int blz__rt_create(blz_rt **out, const blz_options *options, const blz__driver_ops *driver_ops);
void blz__rt_destroy(blz_rt *rt);

/* Shutdown in steps, see shutdown.c. `self` is the calling worker, or NULL. */
int blz__rt_shutdown(blz_rt *rt, blz_worker *self, int64_t grace_ns);

/* The options with the environment and the defaults filled in. 0 or -EINVAL. */
int blz__options_resolve(blz_options *options, const blz_options *given);

static inline bool rt_is_forked(const blz_rt *rt)
{
    return blz_unlikely(blz__load(rt->fork_word, RELAXED) == 0);
}

#endif
