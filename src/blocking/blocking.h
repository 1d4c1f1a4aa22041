/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/blocking for the modules above it: lanes, and jobs as the pool sees them.
 *
 * A lane is a queue with threads of its own, so that a hundred slow name lookups do not keep a
 * file from being read. The program's jobs go to BLZ__LANE_USER. See docs/design/blocking.md.
 */
#ifndef BLZ_BLOCKING_BLOCKING_H
#define BLZ_BLOCKING_BLOCKING_H

#include <blitz/blocking.h>

enum { BLZ__LANE_USER, BLZ__LANE_FILES, BLZ__LANE_DNS, BLZ__NR_LANES };

/*
 * A job: whoever submits it sets `call`, which is called exactly once, without a lock:
 *
 *   call(job, 0)       on a thread of the lane: do it
 *   call(job, error)   it will not be done: -ECANCELED, a shutdown, on the thread that shuts down;
 *                      another error, no thread could be started, on the thread that tried
 *
 * The pool does not touch the job any more once `call` has begun, so it may free itself.
 */
typedef blz_blocking_job blz__job;

/*
 * Queues the job. 0, or an error and `call` is never called: -ESHUTDOWN, -EOWNERDEAD, -ENOMEM, or
 * what the system said when it refused the lane its first thread. [any thread]
 */
int blz__blocking_submit(blz_rt *rt, uint32_t lane, blz__job *job);

/*
 * Takes back a job that has been submitted and may not have been called yet. True: it never will
 * be. False: it runs, or has run. The job's memory must still be there. [any thread]
 */
bool blz__blocking_withdraw(blz_rt *rt, blz__job *job);

/* blz_blocking and blz_blocking_owned in a lane of the caller's choice. [task] */
blz_future *blz__blocking_in(blz_blocking_op *op, uint32_t lane, int64_t (*fn)(void *arg),
                             void *arg);
blz_future *blz__blocking_owned_in(blz_blocking_owned_op *op, uint32_t lane,
                                   int64_t (*fn)(void *arg), void *arg, void (*destroy)(void *arg));

/*
 * For functions that are not futures: fills in the runtime of this thread if none is given, and
 * refuses: -ENXIO, -EOWNERDEAD, -ESHUTDOWN unless it is a task that asks. [any thread]
 */
int blz__blocking_door(blz_rt **rt);

/* Sums over the lanes. [any thread] */
typedef struct blz__blocking_counts {
    uint64_t threads; /* alive, including those that are starting */
    uint64_t idle;    /* of these: waiting for a job */
    uint64_t queued;  /* jobs that have not begun */
    uint64_t jobs;    /* jobs that have begun, ever */
    uint64_t started; /* threads that were started, ever */
} blz__blocking_counts;
void blz__blocking_count(const blz_rt *rt, blz__blocking_counts *out);

#endif
