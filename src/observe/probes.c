/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracepoints, behind the look at their switches: each fires its USDT probe, if the library has
 * been built with them, and records its event, if there is a trace.
 *
 * A switch is four parts of 16 bits: first the trace's, then the semaphores of probes.
 */
#include "observe/trace.h"

#include "base/shared.h"
#include "observe/trace_ring.h"
#include "sched/rt.h"

#ifdef BLZ_HAVE_SDT

/* The kernel finds a semaphore through the note of its probe, by its address. */
#define SEMAPHORE(name, group, part)                                                      \
    extern __attribute__((visibility("hidden"))) unsigned short blitz_##name##_semaphore; \
    __asm__(".set blitz_" #name "_semaphore, blz__trace_switches + 8 * " #group " + 2 * " #part)
SEMAPHORE(task_poll_begin, 0, 1);
SEMAPHORE(task_poll_end, 0, 2);
SEMAPHORE(task_end, 0, 3);
SEMAPHORE(task_spawn, 1, 1);
SEMAPHORE(wake, 1, 2);
SEMAPHORE(steal, 2, 1);
SEMAPHORE(park, 2, 2);
SEMAPHORE(unpark, 2, 3);
SEMAPHORE(io_complete, 3, 1);
SEMAPHORE(timer_fire, 3, 2);

_Static_assert(TRACE_POLL == 0 && TRACE_QUEUE == 1 && TRACE_WORKER == 2 && TRACE_EVENT == 3,
               "the groups above");

#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments" /* in sys/sdt.h */
#endif
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define PROBE1(name, a)       STAP_PROBE1(blitz, name, a)
#define PROBE2(name, a, b)    STAP_PROBE2(blitz, name, a, b)
#define PROBE3(name, a, b, c) STAP_PROBE3(blitz, name, a, b, c)
#define IN_PROBES             __attribute__((section(".probes"), used))
#else
#define PROBE1(name, a)       ((void)0)
#define PROBE2(name, a, b)    ((void)0)
#define PROBE3(name, a, b, c) ((void)0)
#define IN_PROBES
#endif

trace_switch blz__trace_switches[TRACE_GROUPS] IN_PROBES;

static inline bool is_traced(int group)
{
    return blz__load(&blz__trace_switches[group].each[0], RELAXED) != 0;
}

/* Whether the trace has everything, and not one task in many. */
static inline bool has_all(void)
{
    return blz__load(&blz__trace_rings()->sample, RELAXED) <= 1;
}

/* Whether a task is one of those that are recorded: the same answer during a whole trace. Tasks
 * that follow each other have numbers that do, so their numbers are mixed. */
static bool is_sampled(uint64_t id)
{
    uint32_t sample = blz__load(&blz__trace_rings()->sample, RELAXED);

    return sample <= 1 || (id * 0x9E3779B97F4A7C15u >> 32) % sample == 0;
}

/* ---- tasks ---- */

static trace_event event_of(const blz_task *task, trace_kind kind)
{
    return (trace_event){.id = blz_task_id(task),
                         .value = (uint64_t)(uintptr_t)blz__task_origin(task),
                         .polls = blz__load(&task->polls, RELAXED),
                         .rt = (uint16_t)blz__heap_rt(task)->number,
                         .kind = (uint8_t)kind};
}

/* What probes show: the name that was given, or "fn at file.c:12". */
static inline __attribute__((unused)) const char *name_of(const blz_task *task)
{
    const char *given = task_given_name(task);
    return given ? given : blz__task_origin(task);
}

void blz__trace_poll_begin(trace_poll *poll, const blz_task *task, uint32_t worker)
{
    trace_event event = event_of(task, TRACE_E_POLL);

    *poll = (trace_poll){event.id, event.rt, event.polls, worker, 0};
    PROBE3(task_poll_begin, event.id, name_of(task), worker);
    if (is_traced(TRACE_POLL) && is_sampled(event.id))
        poll->ticket = blz__trace_open(&event, task_given_name(task));
}

void blz__trace_poll_end(const trace_poll *poll, trace_outcome outcome)
{
    trace_event event = {.id = poll->id,
                         .value = outcome,
                         .polls = poll->polls,
                         .rt = (uint16_t)poll->rt,
                         .kind = TRACE_E_POLL_DONE};

    PROBE3(task_poll_end, poll->id, (int)outcome, poll->worker);
    if (outcome == TRACE_ENDED)
        PROBE2(task_end, poll->id, poll->worker);
    blz__trace_close(poll->ticket, &event);
}

void blz__trace_spawn(const blz_task *task)
{
    trace_event event = event_of(task, TRACE_E_SPAWN);

    PROBE2(task_spawn, event.id, name_of(task));
    if (is_traced(TRACE_QUEUE) && is_sampled(event.id))
        blz__trace_point(&event, task_given_name(task));
}

void blz__trace_wake(const blz_task *task)
{
    trace_event event = event_of(task, TRACE_E_WAKE);

    PROBE2(wake, event.id, name_of(task));
    if (is_traced(TRACE_QUEUE) && is_sampled(event.id))
        blz__trace_point(&event, task_given_name(task));
}

/* ---- workers, and threads of other kinds ---- */

void blz__trace_steal(uint32_t worker, uint32_t victim, uint32_t tasks)
{
    PROBE3(steal, worker, victim, tasks);
    (void)worker;
    if (is_traced(TRACE_WORKER) && has_all())
        blz__trace_point(&(trace_event){.id = victim, .value = tasks, .kind = TRACE_E_STEAL}, NULL);
}

uint32_t blz__trace_park(uint32_t worker)
{
    PROBE1(park, worker);
    (void)worker;
    if (!is_traced(TRACE_WORKER) || !has_all())
        return 0;
    return blz__trace_open(&(trace_event){.kind = TRACE_E_PARK}, NULL);
}

void blz__trace_unpark(uint32_t worker, uint32_t ticket)
{
    PROBE1(unpark, worker);
    (void)worker;
    blz__trace_close(ticket, &(trace_event){.kind = TRACE_E_DONE});
}

uint32_t blz__trace_work(const char *name)
{
    trace_event event = {.value = (uint64_t)(uintptr_t)name, .kind = TRACE_E_WORK};
    return is_traced(TRACE_WORKER) && has_all() ? blz__trace_open(&event, NULL) : 0;
}

void blz__trace_work_done(uint32_t ticket)
{
    blz__trace_close(ticket, &(trace_event){.kind = TRACE_E_DONE});
}

/* ---- events from outside ---- */

void blz__trace_io(const char *name, int64_t result)
{
    trace_event event = {.id = (uint64_t)result,
                         .value = (uint64_t)(uintptr_t)name,
                         .kind = TRACE_E_IO};

    PROBE2(io_complete, name, result);
    if (is_traced(TRACE_EVENT) && has_all())
        blz__trace_point(&event, NULL);
}

void blz__trace_timer(void)
{
    PROBE1(timer_fire, 1);
    if (is_traced(TRACE_EVENT) && has_all())
        blz__trace_point(&(trace_event){.kind = TRACE_E_TIMER}, NULL);
}

/* ---- the program's own ---- */

bool blz_trace_is_on(void)
{
    return is_traced(TRACE_EVENT);
}

void blz_trace_mark(const char *name)
{
    if (is_traced(TRACE_EVENT))
        blz__trace_point(&(trace_event){.kind = TRACE_E_MARK}, name);
}

uint64_t blz_trace_begin(const char *name)
{
    uint64_t session = blz__load(&blz__trace_rings()->session, RELAXED);
    trace_event event = {.kind = TRACE_E_SPAN_BEGIN};

    if (!is_traced(TRACE_EVENT))
        return 0;
    event.id = session << 32 | blz__fetch_add(&blz__shared()->trace.last_span, 1u, RELAXED);
    return blz__trace_point(&event, name) == session ? event.id : 0;
}

void blz_trace_end(uint64_t span)
{
    uint64_t session = blz__load(&blz__trace_rings()->session, RELAXED);

    if (span && is_traced(TRACE_EVENT) && span >> 32 == session)
        blz__trace_point(&(trace_event){.id = span, .kind = TRACE_E_SPAN_END}, NULL);
}
