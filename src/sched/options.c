/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what the program says, then the environment, then the defaults. */
#include "sched/rt.h"
#include "system/cpu.h"
#include "system/env.h"
#include "system/random.h"

#include <blitz/error.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 4096, BLOCKING_THREADS = 512, MAX_BLOCKING_THREADS = 65536 };

#define DEFAULT_WATCHDOG_NS   (25 * BLZ_MSEC)
#define DEFAULT_SHUTDOWN_NS   (10 * BLZ_SEC)
#define DEFAULT_KEEP_ALIVE_NS (10 * BLZ_SEC)

/* A whole number from the environment, or `otherwise` if there is none. */
static int env_number(const char *name, int64_t otherwise, int64_t *out)
{
    const char *text = blz__env_get(name);
    char *end;

    *out = otherwise;
    if (!text || !*text)
        return 0;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' || errno == ERANGE)
        return -EINVAL;
    *out = value;
    return 0;
}

static int resolve_workers(blz_options *options)
{
    int64_t workers;

    if (options->workers == 0 && options->test_clock)
        options->workers = 1;
    if (options->workers == 0) {
        if (env_number("BLZ_WORKERS", 0, &workers) < 0 || workers < 0 || workers > MAX_WORKERS)
            return -EINVAL;
        options->workers = workers ? (unsigned)workers : blz__cpu_count();
    }
    if (options->embedded)
        options->workers = 1;
    else if (options->on_ready)
        return -EINVAL;
    if (options->test_clock && options->workers > 1)
        return -EINVAL; /* "nothing can run" is one worker's knowledge */
    return options->workers <= MAX_WORKERS ? 0 : -EINVAL;
}

static int resolve_watchdog(blz_options *options)
{
    int64_t ms;

    if (options->watchdog_ns == 0) {
        if (env_number("BLZ_WATCHDOG_MS", 0, &ms) < 0 || ms > INT32_MAX || ms < -INT32_MAX)
            return -EINVAL;
        options->watchdog_ns = ms ? ms * BLZ_MSEC : DEFAULT_WATCHDOG_NS;
        if (ms < 0)
            options->watchdog_ns = BLZ_NEVER;
    }
    return options->watchdog_ns > 0 ? 0 : -EINVAL;
}

static int resolve_seed(blz_options *options)
{
    int64_t seed;

    if (options->seed == 0) {
        if (env_number("BLZ_SEED", 0, &seed) < 0)
            return -EINVAL;
        options->seed = seed ? (uint64_t)seed : blz__random_seed();
    }
    return 0;
}

int blz__options_resolve(blz_options *options, const blz_options *given)
{
    const char *observe = blz__env_get("BLZ_OBSERVE");

    *options = given ? *given : (blz_options){0};
    if (resolve_workers(options) < 0 || resolve_watchdog(options) < 0 || resolve_seed(options) < 0)
        return -EINVAL;
    if (options->max_blocking_threads > MAX_BLOCKING_THREADS)
        return -EINVAL;
    if (options->observe == BLZ_OBSERVE_SAMPLED && observe && strcmp(observe, "full") == 0)
        options->observe = BLZ_OBSERVE_FULL;
    if (options->event_interval == 0)
        options->event_interval = EVENT_INTERVAL;
    if (options->inject_interval == 1)
        options->inject_interval = 2; /* or local tasks would never have a turn */
    if (options->budget == 0)
        options->budget = BUDGET;
    if (options->shutdown_ns == 0)
        options->shutdown_ns = DEFAULT_SHUTDOWN_NS;
    if (options->max_blocking_threads == 0)
        options->max_blocking_threads = BLOCKING_THREADS;
    if (options->blocking_keep_alive_ns == 0)
        options->blocking_keep_alive_ns = DEFAULT_KEEP_ALIVE_NS;
    if (!options->name)
        options->name = "blitz";
    return 0;
}
