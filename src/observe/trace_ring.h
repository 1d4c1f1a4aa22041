/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, and the rings that they wait in: one for each thread, filled by it, emptied by the
 * trace's thread. Between the files of the trace.
 *
 * An event is a slot of 32 bytes; one with a text has it in the slots behind it. What begins is
 * recorded only if its end will fit too: `open` slots are kept free. So a ring that overflows loses
 * whole pairs, and what is written always nests.
 *
 * The headers of rings are static, only their slots are allocated. A thread is `inside` its ring
 * while it records, and looks at the session after it has said so; stopping ends the session, and
 * then waits until nobody is inside any ring. Both sides are sequentially consistent, so the slots
 * are never freed under a thread. Being inside is counted: a thread that went to sleep in the last
 * session may come by in this one, at a ring that is another's now, find that, and leave.
 */
#ifndef BLZ_OBSERVE_TRACE_RING_H
#define BLZ_OBSERVE_TRACE_RING_H

#include "base/cacheline.h"
#include "base/clock.h"
#include "base/lock.h"
#include "tuning.h"

#include <blitz/trace.h>

enum { TRACE_TEXT = 96 };

typedef enum trace_kind {
    TRACE_E_POLL,      /* begins; value: name */
    TRACE_E_PARK,      /* begins */
    TRACE_E_WORK,      /* begins; value: name */
    TRACE_E_POLL_DONE, /* ends; value: outcome */
    TRACE_E_DONE,      /* ends */
    TRACE_E_SPAWN,     /* value: name */
    TRACE_E_WAKE,      /* value: name */
    TRACE_E_STEAL,     /* id: victim; value: tasks */
    TRACE_E_IO,        /* id: result; value: name */
    TRACE_E_TIMER,
    TRACE_E_MARK,       /* text */
    TRACE_E_SPAN_BEGIN, /* id; text */
    TRACE_E_SPAN_END,   /* id */
} trace_kind;

/* Names are in `value`, if they are static ("fn" or "fn at file.c:12"), or in the text. */
typedef struct trace_event {
    uint64_t ticks;
    uint64_t id;    /* of the task */
    uint64_t value; /* see the kinds */
    uint32_t polls; /* of the task, before this one: with rt and id, what a wake-up answers */
    uint16_t rt;
    uint8_t kind;
    uint8_t len; /* of the text */
} trace_event;

_Static_assert(sizeof(trace_event) == 32, "a slot");

typedef struct trace_ring {
    blz__cache_aligned uint64_t head; /* the thread's; slots filled, ever */
    uint64_t tail_seen;               /* the thread's: `tail`, at its last look */
    uint64_t open;                    /* the thread's: ends to come */
    uint64_t dropped;                 /* written by the thread */
    uint64_t tid;
    trace_event *slots;
    char name[16];
    blz__cache_aligned uint32_t inside;
    blz__cache_aligned uint64_t tail; /* the writer's; slots emptied, ever */
    uint64_t dropped_shown;           /* the writer's, from here on */
    int64_t last_ns;
    uint64_t depth; /* begins that were written and whose ends were not */
} trace_ring;

typedef struct trace_rings {
    trace_ring all[TRACE_THREADS];
    uint32_t session; /* 0: off. Numbers go on from trace to trace */
    uint32_t last_session;
    blz__lock lock; /* of claiming a ring, starting and stopping; held for a moment */
    uint32_t nr;    /* that are claimed */
    uint32_t max;
    uint32_t kick;     /* futex: the writer should come now */
    uint64_t unplaced; /* events of threads without a ring */
    uint64_t size;     /* slots of a ring, a power of two */
    uint32_t sample;   /* one task in so many is recorded */
    trace_event *slots;
    blz__clock clock;
} trace_rings;

/* Opens a session, whose slots are given, and closes it: then nobody is inside any more. */
void blz__trace_open_session(trace_event *slots, uint64_t size, uint32_t max, uint32_t sample);
void blz__trace_close_session(void);

/* Records a moment: the session that it belongs to, or 0 if it was dropped. */
uint32_t blz__trace_point(trace_event *event, const char *text);

/* Records a beginning: the ticket for its end, or 0. And the end, if it still belongs here. */
uint32_t blz__trace_open(trace_event *event, const char *text);
void blz__trace_close(uint32_t ticket, trace_event *event);

/*
 * The oldest event of a ring, with its text, if it was recorded before that time; false: there is
 * none. [the writer]
 */
bool blz__trace_take(trace_ring *ring, uint64_t until_ticks, trace_event *event, char *text);

#endif
