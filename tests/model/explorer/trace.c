/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace: what the execution did, in order. It is recorded always, since that is cheaper than
 * finding out whether a failed execution can be repeated, and printed only when one fails.
 */
#include "explorer.h"

#include <string.h>

/* Operations, and what has no step of its own: starts, finishes, allocations. */
#define MAX_EVENTS (2 * MAX_STEPS)

static struct {
    uint32_t count;
    struct trace_event events[MAX_EVENTS];
} trace;

static struct trace_event lost;

void model__trace_reset(void)
{
    trace.count = 0;
}

struct trace_event *model__trace(struct thread *self, enum trace_kind kind)
{
    if (trace.count == MAX_EVENTS)
        return &lost;
    struct trace_event *event = &trace.events[trace.count++];
    *event = (struct trace_event){.kind = (uint8_t)kind,
                                  .thread = (uint8_t)self->id,
                                  .site = self->last_site};
    return event;
}

const char *model__order_name(int order)
{
    switch (order) {
    case __ATOMIC_RELAXED:
        return "relaxed";
    case __ATOMIC_CONSUME:
        return "consume";
    case __ATOMIC_ACQUIRE:
        return "acquire";
    case __ATOMIC_RELEASE:
        return "release";
    case __ATOMIC_ACQ_REL:
        return "acq_rel";
    default:
        return "seq_cst";
    }
}

const char *model_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_number(uint64_t value)
{
    if (value < 100000)
        printf("%llu", (unsigned long long)value);
    else
        printf("0x%llx", (unsigned long long)value);
}

static void print_transition(const char *between, const struct trace_event *event)
{
    print_number(event->value);
    printf("%s", between);
    print_number(event->second);
}

static void print_read(const struct trace_event *event)
{
    printf(" -> ");
    print_number(event->value);
    if (event->stale) {
        printf(" (stale: newest is ");
        print_number(event->second);
        printf(")");
    }
}

static void print_cas(const struct trace_event *event)
{
    if (event->succeeded) {
        printf(": ");
        print_transition(" => ", event);
        return;
    }
    printf(" failed%s", event->spurious ? " spuriously" : "");
    print_read(event);
}

static void print_operation(const struct trace_event *event)
{
    static const char *const names[] = {"load",  "store", "rmw",        "cas",
                                        "fence", "spin",  "plain read", "plain write"};
    const struct model_site *site = event->site;
    bool failed_cas = site->op == MODEL_OP_CAS && !event->succeeded;

    printf("%s", names[site->op]);
    if (site->op <= MODEL_OP_FENCE)
        printf(" %s%s", model__order_name(failed_cas ? site->effective_fail : site->effective),
               site->dropped   ? " (dropped by the mutant)"
               : site->mutated ? " (the mutant)"
                               : "");
    if (site->what[0] != '\0')
        printf(" %s", site->what);
    if (site->op <= MODEL_OP_CAS)
        printf(" [%u]", event->location);
    if (site->op == MODEL_OP_LOAD)
        print_read(event);
    if (site->op == MODEL_OP_STORE) {
        printf(" = ");
        print_number(event->value);
    }
    if (site->op == MODEL_OP_RMW) {
        printf(": ");
        print_transition(" => ", event);
    }
    if (site->op == MODEL_OP_CAS)
        print_cas(event);
}

static void print_other(const struct trace_event *event)
{
    static const char *const texts[] = {
        [TRACE_START] = "starts thread",
        [TRACE_JOIN] = "joins thread",
        [TRACE_FINISH] = "finishes",
        [TRACE_WAIT] = "futex_wait: sleeps while it is",
        [TRACE_WOKEN] = "futex_wait: was woken",
        [TRACE_WAIT_REFUSED] = "futex_wait: returns at once, the newest value is",
        [TRACE_WAIT_TIMED_OUT] = "futex_wait: timed out",
        [TRACE_WAIT_SPURIOUS] = "futex_wait: returns for no reason",
        [TRACE_WAKE] = "futex_wake: wakes",
        [TRACE_ALLOC] = "allocates block",
        [TRACE_FREE] = "frees block",
        [TRACE_YIELD] = "thread_yield",
        [TRACE_CHOICE] = "model_choose",
    };

    printf("%s", texts[event->kind]);
    switch (event->kind) {
    case TRACE_START:
    case TRACE_JOIN:
    case TRACE_CHOICE:
        printf(" %u", (unsigned)event->value);
        break;
    case TRACE_WAIT:
    case TRACE_WAIT_REFUSED:
        printf(" ");
        print_number(event->value);
        printf(" at %s [%u]", model__location_name(event->location), event->location);
        break;
    case TRACE_WAKE:
        if (event->value == 0)
            printf(" nobody");
        else
            printf(" thread %u", (unsigned)event->second);
        break;
    case TRACE_ALLOC:
    case TRACE_FREE:
        printf(" %u of %u bytes", event->location, (unsigned)event->value);
        break;
    default:
        break;
    }
}

static int format_place(char *place, size_t size, const struct trace_event *event)
{
    const struct model_site *site = event->site;

    if (site == NULL)
        return snprintf(place, size, "%s", "");
    return snprintf(place, size, "%s%s:%u %s", event->kind == TRACE_SITE ? "" : "after ",
                    model_basename(site->file), site->line, site->function);
}

/* The column of places is as wide as the longest of them, indentation included. */
static int widest_place(void)
{
    int widest = 0;

    for (uint32_t index = 0; index < trace.count; index++) {
        const struct trace_event *event = &trace.events[index];
        int width = format_place(NULL, 0, event) + 2 * event->thread;
        if (width > widest)
            widest = width;
    }
    return widest;
}

static void print_event(uint32_t index, const struct trace_event *event, int width)
{
    char place[200];

    format_place(place, sizeof place, event);
    printf("  %5u  %*s%u  %-*s  ", index, 2 * event->thread, "", event->thread,
           width - 2 * event->thread, place);
    if (event->kind == TRACE_SITE)
        print_operation(event);
    else
        print_other(event);
    printf("\n");
}

void model__trace_print(void)
{
    int width = widest_place();

    for (uint32_t index = 0; index < trace.count; index++)
        print_event(index, &trace.events[index], width);
    for (int id = 0; id < MODEL_MAX_THREADS; id++) {
        const struct thread *thread = &model__run.threads[id];
        if (thread->state != THREAD_UNUSED && thread->name != NULL)
            printf("         thread %d is \"%s\"\n", id, thread->name);
    }
    fflush(stdout);
}
