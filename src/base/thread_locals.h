/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a thread: all that the library has, in one struct. A simulator and the model
 * explorer, whose threads are fibres of one thread, exchange them in one go.
 *
 * They are looked at on the fastest paths. Where the system has such a thing, they are found
 * without a call (initial-exec), at the price of a few bytes that every thread of the program has.
 */
#ifndef BLZ_BASE_THREAD_LOCALS_H
#define BLZ_BASE_THREAD_LOCALS_H

#include <blitz/base.h>

#include <stdbool.h>
#include <stdint.h>

struct blz__thread_locals {
    struct blz_worker *worker;       /* the worker of a runtime that this thread is; or NULL */
    const struct lane_config *lane;  /* the blocking pool that this thread belongs to; or NULL */
    struct blz_par *par;             /* its context in a fork-join pool, in others further out */
    struct trace_ring *trace_ring;   /* its ring in a session of the trace; or NULL */
    uint32_t trace_session;          /* which session that is */
    bool stack_known;                /* whether the next two have been asked for */
    uintptr_t stack_low, stack_size; /* size 0: not known */
};

extern __attribute__((visibility("hidden"))) _Thread_local struct blz__thread_locals blz__locals
    __attribute__((tls_model("initial-exec")));

/* Those of the calling thread. [any thread] */
static inline struct blz__thread_locals *blz__thread_locals(void)
{
    return &blz__locals;
}

#endif
