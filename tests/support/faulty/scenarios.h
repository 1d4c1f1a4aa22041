/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that together call every function of the system contract: contract_fault.c runs them
 * with each of these functions failing.
 *
 * A scenario makes a runtime, does its steps as long as they succeed, and gives everything back: 0,
 * or the first error. One task does everything, so that nothing waits for a step that was left out.
 */
#ifndef BLZ_TESTS_SCENARIOS_H
#define BLZ_TESTS_SCENARIOS_H

#include "harness.h"

struct scenario {
    const char *name;
    int64_t (*run)(const blz_options *options);

    /* NULL, or: waits for what threads of the library still do, until no more than `fds`
     * descriptors are open. No call fails any more. */
    void (*settle)(const blz_options *options, int fds);
};

/* Each ends with an entry without a name. */
extern const struct scenario net_scenarios[], file_scenarios[], process_scenarios[];

/* Steps of a task; each is done only if those before it went well. */
#define STEP(future)                     \
    do {                                 \
        if (self->rc >= 0)               \
            BLZ_AWAIT(self->rc, future); \
    } while (0)
#define DO(call)               \
    do {                       \
        if (self->rc >= 0)     \
            self->rc = (call); \
    } while (0)

/* A new runtime runs a task, and is freed: its result, or the error of the runtime. */
#define RUN_SCENARIO(name, options)                       \
    static int64_t run_##name(const blz_options *options) \
    {                                                     \
        blz_rt *rt;                                       \
        int64_t rc = blz_rt_new(&rt, options);            \
                                                          \
        if (rc < 0)                                       \
            return rc;                                    \
        watch_rt(rt);                                     \
        rc = BLZ_BLOCK_ON(rt, name);                      \
        free_rt(rt);                                      \
        return rc < 0 ? rc : 0;                           \
    }

#endif
