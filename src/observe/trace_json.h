/* SPDX-License-Identifier: Apache-2.0 */
/* Events as text: the format of Chrome's traces. Between the files of the trace. */
#ifndef BLZ_OBSERVE_TRACE_JSON_H
#define BLZ_OBSERVE_TRACE_JSON_H

#include "observe/trace_ring.h"

enum { TRACE_JSON_ROOM = 32 * 1024, TRACE_ARROWS = 4096, TRACE_SPANS = 1024 };

/* One end of an arrow, until the other one is known. */
typedef struct trace_arrow {
    uint64_t id; /* of the task; 0: nothing here */
    uint32_t polls;
    uint16_t rt;
    bool is_wake;
    uint64_t tid;
    int64_t ns;
} trace_arrow;

/* A span that has begun; or the end of one whose begin is not known yet. */
typedef struct trace_span {
    uint64_t id; /* 0: nothing here */
    uint64_t tid;
    int64_t ns;
    bool is_open; /* has begun */
    uint8_t len;
    char name[TRACE_TEXT];
} trace_span;

typedef struct trace_json {
    int (*write)(const char *text, size_t len, void *arg);
    void *arg;
    int error; /* the first of writing; nothing is written after it */
    int pid;
    size_t len;
    blz_trace_summary summary;
    trace_arrow arrows[TRACE_ARROWS];
    trace_span spans[TRACE_SPANS];
    char text[TRACE_JSON_ROOM];
} trace_json;

void blz__trace_json_begin(trace_json *json);
void blz__trace_json_thread(trace_json *json, const trace_ring *ring);

/* An event of that thread, with its text, at that time. */
void blz__trace_json_event(trace_json *json, const trace_ring *ring, const trace_event *event,
                           const char *text, int64_t ns);

/* That many events are missing here. */
void blz__trace_json_dropped(trace_json *json, const trace_ring *ring, uint64_t count, int64_t ns);

/* What began and is still going on when the trace ends: on a thread, and spans. */
void blz__trace_json_cut(trace_json *json, const trace_ring *ring, int64_t ns);
void blz__trace_json_cut_spans(trace_json *json, int64_t ns);

/* The trace ends here, at its limit. */
void blz__trace_json_limit(trace_json *json, uint64_t limit, int64_t ns);

void blz__trace_json_end(trace_json *json);

/* Writes what has gathered. */
void blz__trace_json_flush(trace_json *json);

#endif
