/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: a queue of jobs and the threads that do them. The protocol is in docs/design/blocking.md;
 * here is what its words mean. Everything is under the lane's lock, but for the word on which a
 * thread sleeps.
 *
 * A thread that is not doing a job is one of:
 *
 *   called     on its way to the queue: woken, or starting. Takes a job as soon as it is there.
 *   on guard   there are jobs left, and this thread sees to it that they do not stay: it sleeps for
 *              a moment, and helps if the others have not come far meanwhile. At most one.
 *   idle       sleeps until it is called, or put on guard, or has been idle for too long.
 *
 * The invariant: a job in the queue, while nobody holds the lock, means that a thread is called, or
 * one is on guard, or all threads that there may be are doing jobs, or a timer is armed that starts
 * a thread. The thread that adds a job establishes it. A thread that takes one and leaves others
 * behind does so before it begins, since a job may never come back.
 *
 * The timer is there for a system that has no more threads for a while: a start that fails is tried
 * again, by a worker.
 */
#ifndef BLZ_BLOCKING_LANE_H
#define BLZ_BLOCKING_LANE_H

#include "base/cacheline.h"
#include "base/lock.h"
#include "system/thread.h"
#include "blocking/blocking.h"

#include <blitz/time.h>

/*
 * The word of a thread that waits. It goes from AWAKE to ASLEEP by its own hand; everything else is
 * written under the lock, by whoever takes the thread off the idle stack or from its guard.
 */
enum {
    SLEEPER_AWAKE,  /* waits, but does not need to be woken: it looks at the word */
    SLEEPER_ASLEEP, /* sleeps on it */
    SLEEPER_CALLED,
    SLEEPER_ON_GUARD,
    SLEEPER_LEAVES,
};

typedef struct sleeper {
    uint32_t word;
    int64_t called_ns;             /* when it was called, if it slept */
    struct sleeper *above, *below; /* on the idle stack */
} sleeper;

/* What is the same for all lanes of a pool. */
typedef struct lane_config {
    blz_rt *rt;
    uint32_t eager;        /* as many idle threads are called at once, if there are jobs */
    int64_t keep_alive_ns; /* BLZ_NEVER: idle threads stay */
    size_t stack_size;
    char thread_name[16];
} lane_config;

/*
 * What workers look at without the lock, to guess whether a wait is worth it (blz__lane_is_brisk).
 */
#define lane_set(field, value) blz__stat_store(&(field), (value))

typedef struct lane {
    blz__cache_aligned blz__lock lock;
    uint32_t queued;
    blz__job *first, *last;
    uint32_t max_threads;
    uint32_t threads; /* alive, including one that is starting */
    uint32_t nr_idle;
    uint32_t called;
    sleeper *idle;    /* top of the stack: the last one to have become idle */
    sleeper *spinner; /* the one on it that began to wait awake, or NULL */
    uint64_t taken;
    bool closed;
    bool guarded;           /* a thread is on guard, or on its way there */
    bool starting_on_guard; /* what the thread that is starting will be */
    bool retrying;          /* `retry` is armed, or about to be */
    blz_timer retry;        /* starts a thread, since the system refused one */
    int64_t retry_ns;       /* how long it waited last; 0: the last start has succeeded */
    uint32_t in_flight;     /* jobs submitted and not ended */
    uint32_t spin_score;    /* how well waiting awake has paid lately */

    /* the guard's */
    sleeper *guard; /* asleep at its post, or NULL */
    int64_t guard_since_ns, guard_until_ns;
    uint64_t guard_taken; /* `taken`, then */
    uint32_t misses;      /* times in a row that it found no progress at all */

    uint32_t ended; /* futex and flag: closed, and no thread is left */
    bool has_exited;
    blz__thread exited; /* the last thread to have left, still to be joined */
    uint64_t started;   /* threads, ever */
    uint64_t spun;      /* times that a thread was called while it waited awake */
    const lane_config *config;
} lane;

/* What is to be done once the lock has been released. */
typedef struct summons {
    uint32_t *wake; /* a word on which somebody sleeps */
    bool start;     /* a thread */
    bool on_guard;  /* which will be on guard */
} summons;

void blz__lane_init(lane *l, const lane_config *config, uint32_t max_threads);

/* 0, or an error and the job was not queued. [any thread] */
int blz__lane_submit(lane *l, blz__job *job);

/* True: the job was queued, and is not any more. [any thread] */
bool blz__lane_withdraw(lane *l, blz__job *job);

/* Refuses new jobs, cancels those in the queue, sends the threads away. [any thread] */
void blz__lane_close(lane *l);

/* Waits for the threads of a closed lane. False: not all have left by then. [any thread] */
bool blz__lane_wait(lane *l, int64_t deadline_ns);

/* Whether this is a thread of one of the pool's lanes. */
bool blz__lane_is_mine(const lane_config *config);

/* Whether jobs come in quick succession, and one is under way. A guess. [any thread] */
bool blz__lane_is_brisk(const lane *l);

/* ---- between lane.c and crew.c ---- */

/* The next job, or NULL. If others remain, whom to summon for them. [locked] */
blz__job *blz__lane_take(lane *l, summons *out);

/* Brings somebody in: wakes an idle thread, or asks for a new one. False: cannot. [locked] */
bool blz__lane_summon(lane *l, bool on_guard, summons *out);

/* Carries out what was asked for: 0, or why no thread could be started. [not locked] */
int blz__lane_carry_out(lane *l, const summons *todo);

/* Ends a list of jobs that were never begun. [not locked] */
void blz__lane_refuse(lane *l, blz__job *jobs, int error);

/* Empties the queue. [locked] */
blz__job *blz__lane_take_all(lane *l);

/* Takes a thread off the idle stack. [locked] */
void blz__lane_unlink_idle(lane *l, sleeper *s);

/* Whether an idle thread waits awake. [locked] */
bool blz__lane_has_spinner(const lane *l);

/* How long the next guard, who begins now, is to watch. [locked] */
void blz__lane_open_watch(lane *l);

/* What a thread of a lane does all its life. */
void blz__crew_main(void *lane);

#endif
