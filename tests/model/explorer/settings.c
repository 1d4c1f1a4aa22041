/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: what the test asks for, then the environment's word, then the defaults.
 *
 * In struct model_options zero is the default and MODEL_NONE is zero, so that an option that is
 * not mentioned keeps its default; here the two are resolved once per check.
 */
#include "settings.h"
#include "explorer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t number_from(const char *variable, int64_t otherwise)
{
    const char *text = getenv(variable);
    char *end;

    if (text == NULL || *text == '\0')
        return otherwise;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < 0) {
        fprintf(stderr, "model: %s=%s is not a number\n", variable, text);
        exit(2);
    }
    return value;
}

static const char *text_from(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL && *text != '\0' ? text : NULL;
}

const struct model__settings *model__settings(void)
{
    static struct model__settings settings;
    static bool read;

    if (read)
        return &settings;
    read = true;
    settings = (struct model__settings){
        .preemptions = number_from("MODEL_PREEMPTIONS", -1),
        .stale_reads = number_from("MODEL_STALE_READS", -1),
        .max_executions = number_from("MODEL_MAX_EXECUTIONS", -1),
        .seconds = number_from("MODEL_SECONDS", -1),
        .reduce = number_from("MODEL_REDUCE", -1),
        .random = text_from("MODEL_RANDOM") != NULL,
        .random_seed = (uint64_t)number_from("MODEL_RANDOM", 0),
        .no_membarrier = number_from("MODEL_NO_MEMBARRIER", 0) != 0,
        .replay = text_from("MODEL_REPLAY"),
        .mutate = text_from("MODEL_MUTATE"),
        .list_sites = number_from("MODEL_LIST_SITES", 0) != 0,
        .trace = number_from("MODEL_TRACE", 0) != 0,
        .speed = number_from("MODEL_SPEED", 0) != 0,
        .show_expected = number_from("MODEL_SHOW_EXPECTED", 0) != 0,
    };
    return &settings;
}

static int resolve(int option, int otherwise)
{
    return option == 0 ? otherwise : option < 0 ? 0 : option;
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

struct model_options model__effective_options(const struct model_options *options)
{
    const struct model__settings *settings = model__settings();
    struct model_options result = options != NULL ? *options : (struct model_options){0};

    result.preemptions = resolve(result.preemptions, 2);
    result.stale_reads = resolve(result.stale_reads, 3);
    result.stale_rereads = (int)at_most(resolve(result.stale_rereads, 2), 255);
    result.spurious_cas = resolve(result.spurious_cas, 1);
    result.spurious_wakes = resolve(result.spurious_wakes, 0);
    result.timeouts = resolve(result.timeouts, 1);
    result.spins = resolve(result.spins, 1);
    result.history = (int)at_most(resolve(result.history, 4), MAX_HISTORY);
    result.max_steps = (int)at_most(resolve(result.max_steps, 4000), MAX_STEPS);
    if (result.history == 0)
        result.history = 1;
    if (result.max_executions == 0)
        result.max_executions = 20000000;
    if (settings->preemptions >= 0)
        result.preemptions = (int)at_most(settings->preemptions, MODEL_UNLIMITED);
    if (settings->stale_reads >= 0)
        result.stale_reads = (int)at_most(settings->stale_reads, MODEL_UNLIMITED);
    if (settings->max_executions >= 0)
        result.max_executions = settings->max_executions;
    if (settings->reduce >= 0)
        result.reduce = settings->reduce != 0;
#ifdef MODEL_ASAN
    result.reduce = false; /* the sanitizer's side of a stack that is never left would leak */
#endif
    if (settings->seconds >= 0)
        result.seconds = (int)at_most(settings->seconds, 1000000);
    return result;
}
