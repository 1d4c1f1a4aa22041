/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks for, and the options that follow from it. */
#ifndef BLZ_MODEL_SETTINGS_H
#define BLZ_MODEL_SETTINGS_H

#include "model.h"

struct model__settings {
    int64_t preemptions; /* -1: not set, here and below */
    int64_t stale_reads;
    int64_t max_executions;
    int64_t seconds;
    int64_t reduce;
    bool random;
    uint64_t random_seed;
    bool no_membarrier; /* the system has no heavy fences */
    const char *replay;
    const char *mutate;
    bool list_sites;
    bool trace;         /* print the trace of a replay that holds */
    bool speed;         /* print steps a second */
    bool show_expected; /* print the trace of expected failures too */
};

/* Read once; a malformed number ends the process with status 2. */
const struct model__settings *model__settings(void);

/* The options with the defaults filled in and the environment applied. */
struct model_options model__effective_options(const struct model_options *options);

#endif
