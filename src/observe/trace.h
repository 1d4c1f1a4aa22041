/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracepoints, for all folders: what the trace (blitz/trace.h) and the USDT probes hang on.
 *
 * Whether anybody watches is asked with one load and one branch. Each group of tracepoints has a
 * word; one of its four parts is the trace's, the others are the semaphores of USDT probes, which
 * the kernel counts up while somebody is attached. A word that is not 0 leads to a function of
 * probes.c, out of line, which finds out who it is:
 *
 *     if (trace_watched(TRACE_QUEUE))
 *         blz__trace_wake(task);
 *
 * In a model there are none of these: nothing depends on them.
 */
#ifndef BLZ_OBSERVE_TRACE_H
#define BLZ_OBSERVE_TRACE_H

#include "base/atomic.h"
#include "tuning.h"

#include <blitz/base.h>

struct blz_task;
struct blz_rt;
struct blz_trace_options;

/* The groups; which part of its word is whose is in probes.c. */
enum { TRACE_POLL, TRACE_QUEUE, TRACE_WORKER, TRACE_EVENT, TRACE_GROUPS };

typedef union trace_switch {
    uint64_t any;
    uint16_t each[4];
} trace_switch;

/* Said to be hidden, so that nobody has to look up where it is. */
extern __attribute__((visibility("hidden"))) trace_switch blz__trace_switches[TRACE_GROUPS];

#define trace_watched(group) \
    (PROGRAM_OBSERVED && blz_unlikely(blz__is_set(&blz__trace_switches[group].any)))

/* How a poll ended. */
typedef enum trace_outcome { TRACE_PENDING, TRACE_YIELDED, TRACE_ENDED } trace_outcome;

/* A poll between its two ends; the task may be gone at the second. */
typedef struct trace_poll {
    uint64_t id;
    uint32_t rt, polls, worker;
    uint32_t ticket;
} trace_poll;

/* TRACE_POLL. [worker] */
void blz__trace_poll_begin(trace_poll *poll, const struct blz_task *task, uint32_t worker);
void blz__trace_poll_end(const trace_poll *poll, trace_outcome outcome);

/* TRACE_QUEUE. Before the task is in a queue: afterwards it may be gone. [any thread] */
void blz__trace_spawn(const struct blz_task *task);
void blz__trace_wake(const struct blz_task *task);

/* TRACE_WORKER. What begins gives a ticket for its end; 0 is fine. */
void blz__trace_steal(uint32_t worker, uint32_t victim, uint32_t tasks);
uint32_t blz__trace_park(uint32_t worker);
void blz__trace_unpark(uint32_t worker, uint32_t ticket);

/* A piece of work of a thread that is no worker of a runtime; the name is static. */
uint32_t blz__trace_work(const char *name);
void blz__trace_work_done(uint32_t ticket);

/* TRACE_EVENT. The name is static. */
void blz__trace_io(const char *name, int64_t result);
void blz__trace_timer(void);

/*
 * Takes the options at the end of "FILE,limit=64M,sample=16", so that FILE is left. 0; -EINVAL: an
 * option that there is not, or a value that is none.
 */
int blz__trace_parse(struct blz_trace_options *options, char *text);

/* Starts the trace that the environment asks for, the first time. [any thread] */
void blz__trace_from_environment(void);

#endif
