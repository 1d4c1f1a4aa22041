/* SPDX-License-Identifier: Apache-2.0 */
/* A shutdown. Front door of src/shutdown; between its files. */
#ifndef BLZ_SHUTDOWN_SHUTDOWN_H
#define BLZ_SHUTDOWN_SHUTDOWN_H

#include "shutdown/gate.h"

#include <blitz/async.h>
#include <blitz/combine.h>
#include <blitz/signal.h>
#include <blitz/time.h>

enum { MAX_SIGNALS = BLZ_SHUTDOWN_SIGNALS, NR_PHASES = BLZ_SHUTDOWN_ENDED };

/* What goes through the phases: the frame of an async function. One at a time. */
struct run {
    BLZ_FRAME;
    blz_shutdown *shutdown;
    int64_t rc;
    gate_wait wait;
    blz_signal_op recv[MAX_SIGNALS];
    blz_signal_info info[MAX_SIGNALS];
    blz_future *branches[1 + MAX_SIGNALS];
    blz_select_op select;
    blz_timeout limit;
};

struct blz_shutdown {
    shutdown_gate gate;
    blz_token *tokens[NR_PHASES]; /* by phase; the first is NULL */
    blz_shutdown_options options; /* as resolved */
    blz_allocator allocator;
    int nr_signals;
    blz_signal signals[MAX_SIGNALS];

    blz__lock lock; /* of the report */
    blz_shutdown_report report;

    uint32_t running;              /* atomic: somebody is in blz_shutdown_run */
    int64_t began_ns, deadline_ns; /* of the phase; the runner's, as what follows */
    int64_t next_signal_ns;        /* before, a signal is a repeat of the last one */
    struct run run;
};

/* Frees the memory, when nobody is inside and nobody owns it. */
void blz__shutdown_destroy(blz_shutdown *shutdown);

/* The phase has ended before all was done: tells it in lines of text. [runner] */
void blz__shutdown_tell(blz_shutdown *shutdown, int phase);

/* The name of a phase, for people. */
const char *blz__shutdown_phase_name(int phase);

#endif
