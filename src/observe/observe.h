/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/observe: the tasks of a runtime as data, for those who show them.
 *
 * A walk looks at all tasks in steps. Between two steps no lock is held and no task is claimed, so
 * a runtime with any number of tasks is held up for the length of a step at most, and only where a
 * worker needs new memory for tasks at that moment. What one walk gives is no single moment: each
 * task is shown as it was when the walk came by.
 */
#ifndef BLZ_OBSERVE_OBSERVE_H
#define BLZ_OBSERVE_OBSERVE_H

#include "task/task.h"

#include <blitz/wait_info.h>
#include <blitz/runtime.h>

enum {
    OBSERVE_NAME = 64,    /* of a task; longer ones are cut */
    OBSERVE_FRAMES = 24,  /* of a backtrace; the innermost are kept */
    OBSERVE_WAITS = 4,    /* that are told of a task; a join of many has more */
    OBSERVE_STUCK = 32,   /* long polls that are told of */
    OBSERVE_BLOCKS = 256, /* that a step looks at */
};

enum observe_state { OBSERVE_WAITING, OBSERVE_QUEUED, OBSERVE_RUNNING };

/* A future of the backtrace. The strings are in static storage. */
struct observed_frame {
    const char *name, *file; /* no file: it has no lines */
    uint32_t line;
    uint16_t depth; /* of the tree: branches have the same */
    int16_t branch; /* its number in the combinator, if a branch begins with it; else -1 */
};

/* What a future waits for; see blitz/wait_info.h. */
struct observed_wait {
    const char *kind;
    uintptr_t object;
    uint64_t holder;
    uint32_t holder32;
    int fd;
    int64_t due_ns;
    bool optional; /* the task may go on without: inside of a select, or with a limit */
};

struct observed_task {
    uint64_t id;
    int64_t since_ns; /* in this state; a guess for one that runs */
    uint64_t busy_ns;
    uint32_t polls;
    uint8_t state;
    bool cancelled;
    uint8_t nr_frames, nr_waits;
    uint32_t omitted;   /* frames: outer ones, that did not fit */
    int32_t worker;     /* that runs it, or -1 */
    const char *origin; /* "fn at file.c:12", in static storage */
    char name[OBSERVE_NAME];
    struct observed_frame frames[OBSERVE_FRAMES];
    struct observed_wait waits[OBSERVE_WAITS];
};

typedef struct observe_walk {
    blz_rt *rt;
    heap_cursor cursor;
    uint32_t heap; /* of those of the runtime */
    uint64_t now;
    double ns_per_tick;
    struct observed_task *out;
    size_t room, count;
} observe_walk;

/* [any thread] */
void blz__observe_begin(observe_walk *walk, blz_rt *rt);

/* Fills in up to `max` tasks, perhaps none: how many. *more: that was not all. [the same thread] */
size_t blz__observe_step(observe_walk *walk, struct observed_task *out, size_t max, bool *more);

/* Also of a walk that has not come to its end. */
void blz__observe_end(observe_walk *walk);

/* How its I/O is done, or "none yet": unlike blz_rt_backend, this chooses nothing. [any thread] */
const char *blz__observe_backend(const blz_rt *rt);

/* A poll that the watchdog found too long, or a task that ignores its cancellation. */
struct observed_stuck {
    uint64_t id;
    int64_t since_ns; /* of the monotonic clock: when it was first seen */
    int64_t for_ns;   /* so far, if it is still going on */
    uint32_t worker;
    bool refused, ongoing;
    char name[OBSERVE_NAME];
};

/* The last ones, newest first: how many; up to OBSERVE_STUCK. [any thread] */
size_t blz__observe_stuck(blz_rt *rt, struct observed_stuck *out);

#endif
