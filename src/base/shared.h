/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all runtimes, pools and threads of a process share, and that changes: all of it is here, in
 * one struct behind one function. No other file above src/system has a variable of its own that
 * lasts. So a simulated host, of which there are several in one process, can have a copy of its
 * own.
 *
 * Each part is defined by the folder that uses it, in a header over base alone. Two things are
 * elsewhere: variables of a thread (base/thread_locals.h), and the switches of tracepoints
 * (observe/probes.c), which a tracer finds by their symbols.
 *
 * The lines about forks say what becomes of a part in a forked child, which has a copy of all.
 */
#ifndef BLZ_BASE_SHARED_H
#define BLZ_BASE_SHARED_H

#include "observe/trace_state.h"
#include "process/orphans.h"
#include "signal/words.h"

enum { RUNTIMES_LISTED = 64 };

/* Free blocks of stream/pair.c. */
struct pair_slots {
    struct pair_slot *returned; /* atomic */
    blz__lock lock;
    struct pair_slot *stock;
};

struct blz__shared {
    /* The runtimes, or as many as fit: where a debugger begins (tools/gdb). */
    struct blz_rt *runtimes[RUNTIMES_LISTED];
    uint32_t nr_runtimes; /* that were ever made: they are numbered for traces */

    struct blz_pool *default_pool; /* par/default.c; a forked child makes another */
    struct signal_table signals;  /* signal/table.c; wiped by the first to subscribe after a fork */
    struct orphans orphans;       /* process/orphans.c; emptied in a forked child */
    struct trace_state trace;     /* observe/trace.c; a forked child has none */
    struct pair_slots pair_slots; /* stream/pair.c: free blocks */
};

extern __attribute__((visibility("hidden"))) struct blz__shared blz__shared_state;

/* The state of this process. [any thread, signal handlers] */
static inline struct blz__shared *blz__shared(void)
{
    return &blz__shared_state;
}

/* The rings that threads of this process record into. */
static inline trace_rings *blz__trace_rings(void)
{
    return &blz__shared()->trace.rings;
}

#endif
