/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one thread that finds tasks and polls them. For the files of src/sched and for
 * src/observe; others include sched/sched.h.
 */
#ifndef BLZ_SCHED_WORKER_H
#define BLZ_SCHED_WORKER_H

#include "base/cacheline.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/rng.h"
#include "system/thread.h"
#include "observe/hist.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/inject.h"
#include "sched/local.h"
#include "sched/park.h"
#include "sched/runq.h"
#include "sched/watchdog.h"
#include "task/task.h"
#include "time/wheel.h"

#include <blitz/runtime.h>
#include <blitz/stats.h>

enum {
    LIFO_MAX_RUN = 3,     /* tasks taken from the LIFO slot in a row */
    EVENT_INTERVAL = 255, /* polls between two looks at the driver */
    BUDGET = 128,         /* operations in one poll */
    INJECT_BATCH_MIN = 4,
    INJECT_BATCH_MAX = 64,
    SAMPLE_INTERVAL = 16,  /* polls for each that is timed */
    INLINE_DEPTH = 8,      /* joined tasks that run on top of each other */
    REFUSED_REPORT = 1000, /* refused awaits in a row that are reported */
    REMOTE_FREE_BATCH = 32,
};

/* Counters that one thread writes and others read. */
#define stat_add(field, n) blz__stat_store(&(field), blz__stat_load(&(field)) + (n))
#define stat_inc(field)    stat_add(field, 1)

/* How often to look where, from how long polls take. */
typedef struct tuner {
    uint64_t mean_ticks;      /* moving average of sampled polls */
    uint32_t inject_interval; /* polls between looks at the inject queue */
    uint32_t sample_interval; /* polls between timed ones */
    bool fixed_inject;
} tuner;

struct blz_worker {
    /* The owner's, in the order in which a poll needs them. */
    blz__driver *driver; /* first: see worker_driver in driver.h */
    blz_rt *rt;
    local_queue local;
    blz_cx *cx; /* of the poll in progress, or NULL */
    uint32_t index;
    uint32_t lifo_run;      /* tasks taken from the LIFO slot in a row */
    uint32_t until_events;  /* polls left before the next look at the driver */
    uint32_t until_inject;  /* and at the inject queue */
    uint32_t until_sample;  /* and at the clock */
    uint32_t until_latency; /* queued tasks left before the next precise stamp */
    bool searching;
    uint32_t turn; /* of ring, yielded and pinned tasks; see queue.c */
    uint32_t inline_depth;
    uint32_t busy_rest;   /* polled time too short to have been charged to a task yet */
    uint64_t now;         /* ticks at the last look at the clock */
    uint64_t events_at;   /* ticks at the last look at the driver */
    uint64_t gave_way_at; /* ticks when it last had work, or let other threads run */
    uint64_t polls_seen;  /* polls, at the last look at the driver */
    uint64_t yields_seen; /* and those that ended in a yield */
    uint64_t next_id, ids_left;
    tuner tuner;
    blz__rng rng;
    task_list pinned;         /* pinned tasks that can run; never stolen */
    task_list pinned_yielded; /* since the last look at the driver */
    task_list remote_frees;   /* blocks of one other heap, not yet given back */
    uint64_t started_at, parked_ticks;
    bool in_turn_park;     /* embedded: parked in the driver between two turns */
    blz__driver *reserved; /* opened when the backend was chosen, until it is needed */
    blz__heap heap;
    blz_worker_stats stats;
    tick_histogram poll_histogram, latency_histogram;

    /* Others' too. */
    blz__cache_aligned runq ring;
    blz__cache_aligned parker parker;
    blz__cache_aligned blz__message *mailbox; /* what other threads ask of it; a stack */
    blz_task *pinned_mail;                    /* woken pinned tasks, from other threads; a stack */
    blz__cache_aligned blz__wheel wheel;
    blz__cache_aligned blz_task *current; /* being polled; for the watchdog */
    uint64_t parked_at;                   /* 0, or ticks; for the watchdog */
    uint64_t stuck;                       /* polls that it found too long */
    watchdog_view seen;                   /* its own */
    blz__thread thread;
    bool is_thread;
    uint64_t thread_id; /* of whoever runs it; for debuggers */
};

typedef struct blz_worker blz_worker;

void blz__worker_set_current(blz_worker *worker);

int blz__worker_init(blz_worker *w, blz_rt *rt, uint32_t index);
void blz__worker_destroy(blz_worker *w);

/* Runs tasks until *until is not 0, or the deadline (INT64_MAX: none) has come. [its thread] */
void blz__worker_run(blz_worker *w, const uint32_t *until, int64_t deadline_ns);

/* Embedded: parked in the driver until the next turn. False: there is work. */
bool blz__worker_park_for_turn(blz_worker *w);

/* One embedded turn: runs what can run, then stays parked in the driver. Number of polls. */
int64_t blz__worker_turn(blz_worker *w);

/* Polls one task that was taken from a queue. */
void blz__worker_poll(blz_worker *w, blz_task *task);

/* The next task from this worker's own queues, and now and then from the inject queue; or NULL. */
blz_task *blz__worker_next(blz_worker *w);

/*
 * For a worker that has nothing but yielding tasks, and so never searches: half of what one other
 * worker has, which may not be running at all; or NULL.
 */
blz_task *blz__worker_steal_now_and_then(blz_worker *w);

/* A task of the inject queue, and more of them into the ring; or NULL. */
blz_task *blz__worker_take_share(blz_worker *w);

/* Spawns, with nothing special, into its own queue. [owner, while no shutdown can begin] */
int blz__worker_spawn(blz_worker *w, const void *frame, size_t size, blz_handle *handle,
                      const char *site);

/* Queues. push: in front (LIFO slot); push_back: behind; wake_back: behind, who has been woken.
 * [owner] */
void blz__worker_push(blz_worker *w, blz_task *task);
void blz__worker_push_back(blz_worker *w, blz_task *task);
void blz__worker_wake_back(blz_worker *w, blz_task *task);

/* Opens its driver, which it has none of yet. 0 or a negative errno. [owner; or any thread, before
 * the worker runs] */
int blz__worker_open_driver(blz_worker *w);

/* Closes it, if there is one. [the end of the runtime] */
void blz__worker_close_driver(blz_worker *w);

/* Leaves a pinned task that can run for a worker that is not this thread. [any thread] */
void blz__worker_mail_pinned(blz_worker *w, blz_task *task);

/* Whether other threads have left it something; a guess. [owner] */
static inline bool worker_has_mail(const blz_worker *w)
{
    return blz__load(&w->pinned_mail, RELAXED) || blz__load(&w->mailbox, RELAXED);
}

/*
 * Takes the pinned tasks that were left, and executes the messages. True: there were any. [owner]
 */
bool blz__worker_read_mail(blz_worker *w);

/* Driver events, messages, yielded tasks. [owner] */
void blz__worker_maintain(blz_worker *w);

/* Blocks of other heaps, kept back to be returned in batches. [owner] */
void blz__worker_flush_frees(blz_worker *w);

/* Tuning: after a timed poll of `ticks`. */
void blz__tuner_init(tuner *t, const blz_rt *rt);
void blz__tuner_sample(tuner *t, const blz_rt *rt, uint64_t ticks);

#endif
