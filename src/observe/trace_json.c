/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a trace: objects, one to a line, in the format that chrome://tracing and Perfetto
 * read. The unit says how exact times are: without it chrome://tracing takes what is less than a
 * microsecond apart for nested, and arrows end at something else. A trace that was cut short wants
 * "]}" at its end.
 *
 *   ph  B, E     a poll, a sleep, a job: begins and ends, nested, on one thread
 *       X        a wake-up or a spawn: a slice without a length, for arrows to begin at
 *       s, f     an arrow, from there to the poll that answered
 *       i        a moment: a steal, a timer, completed I/O, a mark
 *       b, e     a span of the program's, on no thread in particular
 *       M        the name of a thread or of the process
 *
 * The two ends of an arrow are recorded by two threads, and come in any order. An end waits in a
 * table until the other one comes, and only then is the arrow written: so every arrow has both. The
 * key is the task and its number of polls, as each poll answers one wake-up. An end that is
 * displaced from the table is an arrow less, no more. It begins and ends at a slice, by its time on
 * that thread, and does not go back in time: otherwise viewers leave it out. Its number is
 * hexadecimal, since one of them refuses others.
 *
 * Spans also want their names at both ends, and the second is recorded without it: begins are
 * remembered until then. Here, too, either end may come first. Numbers of spans follow each other,
 * so that a place in the table is taken only by one that is open since a thousand others: then the
 * new one is dropped.
 */
#include "observe/trace_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The longest object: its name may grow sixfold by escapes. */
enum { LONGEST = 1024 };

/* ---- text ---- */

void blz__trace_json_flush(trace_json *json)
{
    if (json->len && json->error == 0) {
        json->error = json->write(json->text, json->len, json->arg);
        json->summary.bytes += json->len;
    }
    json->len = 0;
}

static __attribute__((format(printf, 2, 3))) void add(trace_json *json, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(json->text + json->len, TRACE_JSON_ROOM - json->len, fmt, args);
    va_end(args);
    if (len > 0)
        json->len += (size_t)len;
}

/* The length of the UTF-8 character at `s`, or 0 if it is none. */
static size_t character(const char *s, size_t len)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t size = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

    if (u[0] > 0xf4 || size > len)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
        (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
        return 0; /* too long a form, half of a pair, or beyond the last */
    return size;
}

/* The inside of a JSON string; bytes that are not UTF-8 become the character for that. */
static void add_escaped(trace_json *json, const char *s, size_t len)
{
    while (len > 0) {
        size_t size = character(s, len);

        if (size == 0) {
            add(json, "\\ufffd");
            size = 1;
        } else if (*s == '"' || *s == '\\') {
            add(json, "\\%c", *s);
        } else if ((unsigned char)*s < 0x20) {
            add(json, "\\u%04x", (unsigned)*s);
        } else {
            memcpy(json->text + json->len, s, size);
            json->len += size;
        }
        s += size;
        len -= size;
    }
}

/* {"ph":"B","pid":1,"tid":2,"ts":3.000 */
static void begin(trace_json *json, char ph, uint64_t tid, int64_t ns)
{
    if (json->len > TRACE_JSON_ROOM - LONGEST)
        blz__trace_json_flush(json);
    add(json, ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%llu,\"ts\":%lld.%03d", ph, json->pid,
        (unsigned long long)tid, (long long)(ns / 1000), (int)(ns % 1000));
}

static void end(trace_json *json)
{
    add(json, "}");
}

/* The name of an event: its text, or the static one, of which "fn at file.c:12" begins with it. */
static void add_name(trace_json *json, const char *prefix, const trace_event *event,
                     const char *text)
{
    const char *fixed = event->len ? NULL : (const char *)(uintptr_t)event->value; /* or none */
    const char *place = fixed ? strstr(fixed, " at ") : NULL;
    size_t len = !fixed ? event->len : place ? (size_t)(place - fixed) : strlen(fixed);

    add(json, ",\"name\":\"%s", prefix);
    add_escaped(json, fixed ? fixed : text, len < TRACE_TEXT ? len : TRACE_TEXT);
    add(json, "\"");
}

static void add_task(trace_json *json, const trace_event *event)
{
    add(json, ",\"args\":{\"task\":%llu,\"runtime\":%u,\"polls\":%u}",
        (unsigned long long)event->id, event->rt, event->polls);
}

/* ---- arrows ---- */

static trace_arrow *arrow_place(trace_json *json, const trace_event *event)
{
    uint64_t hash = (event->id + event->polls * 0x9E3779B97F4A7C15u) ^ event->rt;
    return &json->arrows[hash * 0xD6E8FEB86659FD93u >> 52];
}

_Static_assert(TRACE_ARROWS == 1 << 12, "the upper 12 bits choose");

static void write_arrow(trace_json *json, const trace_arrow *from, const trace_arrow *to)
{
    unsigned long long number = ++json->summary.arrows;

    begin(json, 's', from->tid, from->ns);
    add(json, ",\"cat\":\"wake\",\"name\":\"wake\",\"id\":\"0x%llx\"", number);
    end(json);
    begin(json, 'f', to->tid, to->ns);
    add(json, ",\"cat\":\"wake\",\"name\":\"wake\",\"bp\":\"e\",\"id\":\"0x%llx\"", number);
    end(json);
}

static void add_arrow_end(trace_json *json, const trace_ring *ring, const trace_event *event,
                          bool is_wake, int64_t ns)
{
    trace_arrow *other = arrow_place(json, event);
    trace_arrow here = {event->id, event->polls, event->rt, is_wake, ring->tid, ns};
    const trace_arrow *from = is_wake ? &here : other, *to = is_wake ? other : &here;
    bool match = other->id == here.id && other->polls == here.polls && other->rt == here.rt &&
                 other->is_wake != is_wake;

    if (!match) {
        *other = here;
        return;
    }
    if (from->ns <=
        to->ns) /* the clocks of two CPUs may differ by more than lies between the two */
        write_arrow(json, from, to);
    other->id = 0;
}

/* ---- spans ---- */

static void write_span(trace_json *json, char ph, const trace_span *span, uint64_t tid, int64_t ns)
{
    begin(json, ph, tid, ns);
    add(json, ",\"cat\":\"span\",\"id\":\"0x%llx\",\"name\":\"", (unsigned long long)span->id);
    add_escaped(json, span->name, span->len);
    add(json, "\"");
    end(json);
}

static void begin_span(trace_json *json, const trace_ring *ring, const trace_event *event,
                       const char *text, int64_t ns)
{
    trace_span *span = &json->spans[event->id % TRACE_SPANS];
    trace_span end = *span;

    if (end.id && end.id != event->id && end.is_open) {
        json->summary.dropped++;
        return;
    }
    *span = (trace_span){event->id, ring->tid, ns, .is_open = true, .len = event->len};
    memcpy(span->name, text, event->len);
    write_span(json, 'b', span, ring->tid, ns);
    if (end.id == event->id) {
        write_span(json, 'e', span, end.tid, end.ns > ns ? end.ns : ns);
        span->id = 0;
    }
}

/* An end that nothing has begun waits for that, until another one wants its place. */
static void end_span(trace_json *json, const trace_ring *ring, const trace_event *event, int64_t ns)
{
    trace_span *span = &json->spans[event->id % TRACE_SPANS];

    if (span->id == event->id) {
        write_span(json, 'e', span, ring->tid, ns > span->ns ? ns : span->ns);
        span->id = 0;
    } else if (span->id && span->is_open) {
        json->summary.dropped++;
    } else {
        *span = (trace_span){event->id, ring->tid, ns, .is_open = false};
    }
}

/* ---- kinds ---- */

static void write_poll(trace_json *json, const trace_ring *ring, const trace_event *event,
                       const char *text, int64_t ns)
{
    begin(json, 'B', ring->tid, ns);
    add_name(json, "", event, text);
    add(json, ",\"cat\":\"poll\"");
    add_task(json, event);
    end(json);
    add_arrow_end(json, ring, event, false, ns);
}

static void write_wake(trace_json *json, const trace_ring *ring, const trace_event *event,
                       const char *text, int64_t ns)
{
    bool spawn = event->kind == TRACE_E_SPAWN;

    begin(json, 'X', ring->tid, ns);
    add_name(json, spawn ? "spawn " : "wake ", event, text);
    add(json, ",\"cat\":\"%s\",\"dur\":0", spawn ? "spawn" : "wake");
    add_task(json, event);
    end(json);
    add_arrow_end(json, ring, event, true, ns);
}

static void write_begin(trace_json *json, const trace_ring *ring, const trace_event *event,
                        const char *text, int64_t ns)
{
    begin(json, 'B', ring->tid, ns);
    if (event->kind == TRACE_E_PARK)
        add(json, ",\"name\":\"parked\",\"cat\":\"park\"");
    else {
        add_name(json, "", event, text);
        add(json, ",\"cat\":\"work\"");
    }
    end(json);
}

static void write_end(trace_json *json, const trace_ring *ring, const trace_event *event,
                      int64_t ns)
{
    static const char *const outcomes[] = {"pending", "yielded", "ended"};

    begin(json, 'E', ring->tid, ns);
    if (event->kind == TRACE_E_POLL_DONE)
        add(json, ",\"args\":{\"outcome\":\"%s\"}", outcomes[event->value]);
    end(json);
}

static void write_moment(trace_json *json, const trace_ring *ring, const trace_event *event,
                         const char *text, int64_t ns)
{
    begin(json, 'i', ring->tid, ns);
    add(json, ",\"s\":\"t\"");
    if (event->kind == TRACE_E_STEAL)
        add(json, ",\"name\":\"steal\",\"cat\":\"steal\",\"args\":{\"from\":%llu,\"tasks\":%llu}",
            (unsigned long long)event->id, (unsigned long long)event->value);
    else if (event->kind == TRACE_E_TIMER)
        add(json, ",\"name\":\"timer\",\"cat\":\"timer\"");
    else {
        add_name(json, "", event, text);
        if (event->kind == TRACE_E_IO)
            add(json, ",\"cat\":\"io\",\"args\":{\"result\":%lld}", (long long)event->id);
        else
            add(json, ",\"cat\":\"mark\"");
    }
    end(json);
}

void blz__trace_json_event(trace_json *json, const trace_ring *ring, const trace_event *event,
                           const char *text, int64_t ns)
{
    json->summary.events++;
    switch ((trace_kind)event->kind) {
    case TRACE_E_POLL:
        write_poll(json, ring, event, text, ns);
        break;
    case TRACE_E_PARK:
    case TRACE_E_WORK:
        write_begin(json, ring, event, text, ns);
        break;
    case TRACE_E_POLL_DONE:
    case TRACE_E_DONE:
        write_end(json, ring, event, ns);
        break;
    case TRACE_E_SPAWN:
    case TRACE_E_WAKE:
        write_wake(json, ring, event, text, ns);
        break;
    case TRACE_E_STEAL:
    case TRACE_E_IO:
    case TRACE_E_TIMER:
    case TRACE_E_MARK:
        write_moment(json, ring, event, text, ns);
        break;
    case TRACE_E_SPAN_BEGIN:
        begin_span(json, ring, event, text, ns);
        break;
    case TRACE_E_SPAN_END:
        end_span(json, ring, event, ns);
        break;
    }
}

/* ---- around them ---- */

void blz__trace_json_begin(trace_json *json)
{
    add(json,
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"ts\":0,\"name\":\"process_name\","
        "\"args\":{\"name\":\"blitz\"}}",
        json->pid);
}

void blz__trace_json_thread(trace_json *json, const trace_ring *ring)
{
    begin(json, 'M', ring->tid, 0);
    add(json, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
    add_escaped(json, ring->name, strlen(ring->name));
    add(json, "\"}");
    end(json);
    json->summary.threads++;
}

void blz__trace_json_dropped(trace_json *json, const trace_ring *ring, uint64_t count, int64_t ns)
{
    begin(json, 'i', ring->tid, ns);
    add(json,
        ",\"s\":\"t\",\"name\":\"%llu events dropped\",\"cat\":\"dropped\","
        "\"args\":{\"count\":%llu}",
        (unsigned long long)count, (unsigned long long)count);
    end(json);
    json->summary.dropped += count;
}

void blz__trace_json_limit(trace_json *json, uint64_t limit, int64_t ns)
{
    begin(json, 'i', 0, ns);
    add(json,
        ",\"s\":\"g\",\"name\":\"the trace ends here: its limit is %llu bytes\",\"cat\":\"limit\","
        "\"args\":{\"limit\":%llu}",
        (unsigned long long)limit, (unsigned long long)limit);
    end(json);
    json->summary.limited = 1;
}

void blz__trace_json_cut(trace_json *json, const trace_ring *ring, int64_t ns)
{
    begin(json, 'E', ring->tid, ns);
    add(json, ",\"args\":{\"outcome\":\"going on\"}");
    end(json);
}

void blz__trace_json_cut_spans(trace_json *json, int64_t ns)
{
    for (int i = 0; i < TRACE_SPANS; i++) {
        const trace_span *span = &json->spans[i];
        if (span->id && span->is_open)
            write_span(json, 'e', span, span->tid, ns > span->ns ? ns : span->ns);
    }
}

void blz__trace_json_end(trace_json *json)
{
    add(json, "\n]}\n");
    blz__trace_json_flush(json);
}
