/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of the process: see trace.c; and the rings that threads record into. */
#ifndef BLZ_OBSERVE_TRACE_STATE_H
#define BLZ_OBSERVE_TRACE_STATE_H

#include "observe/trace_ring.h"
#include "system/thread.h"

#include <blitz/runtime.h>

struct trace_state {
    uint32_t state;
    uint32_t finish; /* the thread writes what is left, and ends */
    blz_allocator allocator;
    uint64_t size; /* slots of a ring */
    uint32_t max;  /* rings */
    trace_event *slots;
    struct trace_json *json;
    uint32_t *fork_word;
    blz_sysfd fd;   /* or BLZ_NO_SYSFD */
    uint64_t limit; /* bytes of text */
    blz__thread thread;

    /* the thread's */
    bool is_over;      /* the text has its end */
    uint32_t nr_named; /* rings whose threads have been named */
    uint64_t before_ticks;
    int64_t before_ns, start_ns;
    double ns_per_tick;

    uint32_t asked;     /* atomic: BLZ_TRACE has been looked at */
    uint32_t last_span; /* atomic: numbers of blz_trace_begin */
    trace_rings rings;
};

#endif
