/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search: executes a test again and again until all choices have been taken.
 *
 * An execution is determined by its choices: a list of numbers, each below the count of what was
 * possible there. The first execution takes 0 everywhere (go on; read the newest). The next one
 * repeats the list of the last up to the last choice that has an alternative left, takes that, and
 * 0 from there on: a depth-first walk without any stored states. A count that differs while a
 * prefix is repeated means that the test depends on something else than its choices, which is an
 * error.
 *
 * A failing execution is reported as its list of choices, one digit each, after the limits that
 * shape the list; MODEL_REPLAY takes that back.
 */
#include "explorer.h"
#include "settings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct choice {
    uint8_t taken;
    uint8_t count;
};

static struct {
    struct choice choices[MAX_CHOICES];
    uint32_t depth;  /* choices taken in this execution */
    uint32_t prefix; /* choices that are prescribed */
    bool random;
    uint64_t random_state;
    int64_t executions;
    int64_t pruned; /* executions ended by the reduction */
    int64_t steps;
    int64_t started_ns;
    bool replay;
} search;

/* ---- Choosing ---- */

static uint64_t next_random(void)
{
    search.random_state ^= search.random_state >> 12;
    search.random_state ^= search.random_state << 25;
    search.random_state ^= search.random_state >> 27;
    return search.random_state * UINT64_C(0x2545F4914F6CDD1D);
}

static unsigned choose_randomly(unsigned count, unsigned weight)
{
    unsigned ticket = (unsigned)((next_random() >> 33) % (count - 1 + weight));

    return ticket < weight ? 0 : ticket - weight + 1;
}

static unsigned take_prescribed(unsigned count)
{
    struct choice *choice = &search.choices[search.depth++];

    if (choice->count == 0 && choice->taken < count)
        choice->count = (uint8_t)count; /* a replay knows only what was taken */
    if (choice->count != count)
        model_fail("the test is not deterministic: a choice of %d became one of %u", choice->count,
                   count);
    return choice->taken;
}

unsigned model__choose_weighted(unsigned count, unsigned weight)
{
    if (count <= 1)
        return 0;
    if (search.depth < search.prefix)
        return take_prescribed(count);
    if (search.depth == MAX_CHOICES)
        model_fail("more than %d choices in one execution", MAX_CHOICES);
    unsigned taken = search.random ? choose_randomly(count, weight) : 0;
    search.choices[search.depth++] = (struct choice){(uint8_t)taken, (uint8_t)count};
    return taken;
}

unsigned model__choose_thread(unsigned count, unsigned weight)
{
    if (model__run.options.reduce && count > 1 && search.depth >= search.prefix &&
        model__visited_before()) {
        model__run.pruned = true;
        model__abandon();
    }
    return model__choose_weighted(count, weight);
}

unsigned model__choose(unsigned count)
{
    return model__choose_weighted(count, 1);
}

unsigned model_choose(unsigned count)
{
    if (!model__run.active || count == 0 || count > 36)
        model_fail("model_choose of %u, in or out of a test", count);
    unsigned taken = model__choose(count);
    model__run.self->trail = model__mix(model__run.self->trail, taken);
    model__trace(model__run.self, TRACE_CHOICE)->value = taken;
    return taken;
}

/* Prescribes the next execution; false: there is none. */
static bool backtrack(void)
{
    while (search.depth > 0) {
        struct choice *last = &search.choices[search.depth - 1];
        if (last->taken + 1 < last->count) {
            last->taken++;
            search.prefix = search.depth;
            return true;
        }
        search.depth--;
    }
    return false;
}

/* ---- Failing, and the way back ---- */

_Noreturn void model_fail(const char *format, ...)
{
    struct run *run = &model__run;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(run->message, sizeof run->message, format, arguments);
    va_end(arguments);
    if (!run->active) {
        fprintf(stderr, "model: outside of an execution: %s\n", run->message);
        abort();
    }
    run->failed = true;
    model__abandon();
}

static char digit_of(unsigned value)
{
    return "0123456789abcdefghijklmnopqrstuvwxyz"[value % 36];
}

/* The choices, without the zeros at the end. */
static void print_replay(const char *name)
{
    uint32_t length = search.depth;

    while (length > 0 && search.choices[length - 1].taken == 0)
        length--;
    printf("  replay: MODEL_REPLAY=%d.%d:", model__run.options.preemptions,
           model__run.options.stale_reads);
    for (uint32_t i = 0; i < length; i++)
        putchar(digit_of(search.choices[i].taken));
    printf(" (%s)\n", name);
}

/* Takes the limits and the choices from what print_replay printed. */
static bool prescribe_replay(const char *text)
{
    struct model_options *options = &model__run.options;
    int consumed = 0;

    if (sscanf(text, "%d.%d:%n", &options->preemptions, &options->stale_reads, &consumed) != 2 ||
        consumed == 0)
        return false;
    search.prefix = 0;
    for (const char *at = text + consumed; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) || search.prefix == MAX_CHOICES)
            return false;
        int digit =
            isdigit((unsigned char)*at) ? *at - '0' : tolower((unsigned char)*at) - 'a' + 10;
        search.choices[search.prefix++] = (struct choice){(uint8_t)digit, 0};
    }
    return true;
}

/* ---- The search ---- */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool out_of_time(void)
{
    int seconds = model__run.options.seconds;

    return seconds > 0 && (search.executions & 255) == 0 &&
           now_ns() - search.started_ns > (int64_t)seconds * 1000000000;
}

enum search_end { SEARCH_FAILED, SEARCH_EXHAUSTED, SEARCH_LIMIT, SEARCH_TIME };

static enum search_end run_search(void (*test)(void))
{
    for (;;) {
        search.depth = 0;
        model__execute(test);
        search.executions++;
        search.steps += model__run.step;
        search.pruned += model__run.pruned;
        if (model__run.failed)
            return SEARCH_FAILED;
        if (search.random)
            search.prefix = 0;
        else if (search.replay || !backtrack())
            return SEARCH_EXHAUSTED;
        if (search.executions >= model__run.options.max_executions)
            return SEARCH_LIMIT;
        if (out_of_time())
            return SEARCH_TIME;
    }
}

static void search_begin(const struct model_options *options)
{
    const struct model__settings *settings = model__settings();

    model__run.options = *options;
    model__run.stale_reads_ran_out = false;
    search.prefix = 0;
    search.executions = search.pruned = search.steps = 0;
    search.random = settings->random;
    search.random_state = settings->random_seed | 1;
    search.replay = settings->replay != NULL;
    search.started_ns = now_ns();
    if (search.random || search.replay)
        model__run.options.reduce = false;
    model__reduce_begin();
    if (search.random)
        model__run.options.preemptions = model__run.options.stale_reads = MODEL_UNLIMITED;
    if (search.replay && !prescribe_replay(settings->replay)) {
        fprintf(stderr, "model: MODEL_REPLAY is malformed: %s\n", settings->replay);
        exit(2);
    }
}

/* ---- The report ---- */

static void print_speed(void)
{
    int64_t took_ns = now_ns() - search.started_ns;

    if (model__settings()->speed)
        printf(" [%lld steps, %.2f s, %.2f million steps/s]", (long long)search.steps,
               (double)took_ns / 1e9, (double)search.steps * 1e3 / (double)(took_ns + 1));
    printf("\n");
}

static void print_extent(enum search_end end)
{
    const struct model_options *options = &model__run.options;

    if (search.replay)
        printf("replayed, and holds");
    else if (search.random)
        printf("random from seed %llu", (unsigned long long)model__settings()->random_seed);
    else if (end == SEARCH_LIMIT)
        printf("STOPPED at the limit of %lld executions", (long long)options->max_executions);
    else if (end == SEARCH_TIME)
        printf("STOPPED at the limit of %d seconds", options->seconds);
    else if (options->preemptions >= MODEL_UNLIMITED)
        printf("exhaustive");
    else
        printf("exhaustive up to %d preemptions", options->preemptions);
    if (!search.replay && !search.random && model__run.stale_reads_ran_out)
        printf(" and %d stale reads", options->stale_reads);
    if (options->reduce)
        printf(", reduced (%lld were cut short)", (long long)search.pruned);
}

static void print_failure(const char *name)
{
    printf("model %s: FAILED after %lld executions\n  %s\n", name, (long long)search.executions,
           model__run.message);
    printf("  the failing execution (%d preemptions):\n", model__run.preemptions_used);
    model__trace_print();
    print_replay(name);
}

static enum model_verdict verdict_on_failure(const char *name, const char *expect)
{
    if (expect == NULL || strstr(model__run.message, expect) == NULL) {
        print_failure(name);
        if (expect != NULL)
            printf("  (a failure was expected, but with the words: %s)\n", expect);
        return MODEL_FAILED;
    }
    if (model__settings()->show_expected) {
        print_failure(name);
        return MODEL_HOLDS;
    }
    printf("model %s: %lld executions, fails as expected (%s)", name, (long long)search.executions,
           expect);
    print_speed();
    return MODEL_HOLDS;
}

enum model_verdict model_check(const char *name, void (*test)(void),
                               const struct model_options *options)
{
    struct model_options effective = model__effective_options(options);

    search_begin(&effective);
    enum search_end end = run_search(test);
    if (end == SEARCH_FAILED)
        return verdict_on_failure(name, effective.expect);
    bool missed = effective.expect != NULL && !search.replay;
    printf("model %s: %s%lld executions, ", name, missed ? "FAILED: " : "",
           (long long)search.executions);
    print_extent(end);
    if (missed)
        printf("; none failed with the words: %s", effective.expect);
    print_speed();
    if (search.replay && model__settings()->trace)
        model__trace_print();
    if (missed)
        return MODEL_FAILED;
    return end == SEARCH_EXHAUSTED || search.random ? MODEL_HOLDS : MODEL_STOPPED;
}
