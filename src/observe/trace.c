/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace from its start to its end: the memory, the thread that writes, the file.
 *
 * The thread comes every 20 ms, or when a ring is half full, and writes what has been recorded up
 * to a moment that it takes at the beginning of each round. From that moment and the one before it
 * knows how long a tick of the clock is just now: so times are right however long the trace is,
 * and whatever the first guess was.
 *
 * When the text reaches its limit, the thread switches recording off, ends the text, and sleeps
 * until the trace is stopped. What the rings still hold is not written.
 *
 * One trace at a time: `state` says whose turn it is. Only the thread that made it STARTING or
 * STOPPING touches the rest.
 */
#include "observe/trace.h"

#include "base/alloc.h"
#include "base/shared.h"
#include "system/clock.h"
#include "system/env.h"
#include "system/file.h"
#include "system/fork.h"
#include "system/futex.h"
#include "system/thread.h"
#include "observe/trace_json.h"

#include <blitz/error.h>
#include <string.h>

enum { DEFAULT_EVENTS = 16384, MIN_EVENTS = 64, DEFAULT_THREADS = 64 };

#define MAX_EVENTS ((size_t)1 << 24)
#define ROUND_NS   ((int64_t)20 * 1000 * 1000)

#define DEFAULT_LIMIT ((uint64_t)64 << 20)

enum { TRACE_OFF, TRACE_STARTING, TRACE_ON, TRACE_STOPPING };

static struct trace_state *trace(void)
{
    return &blz__shared()->trace;
}

/* ---- the writer's rounds ---- */

/* The moment up to which this round goes, in ticks; and the length of a tick. */
static uint64_t take_moment(void)
{
    uint64_t ticks = blz__clock_ticks(&blz__trace_rings()->clock);
    int64_t ns = blz__clock_ns();

    if (ticks > trace()->before_ticks && ns > trace()->before_ns)
        trace()->ns_per_tick =
            (double)(ns - trace()->before_ns) / (double)(ticks - trace()->before_ticks);
    return ticks;
}

/* Since the start; no two of one thread at the same time, so that it says what lies inside what. */
static int64_t time_of(trace_ring *ring, uint64_t ticks)
{
    int64_t ns = trace()->before_ns - trace()->start_ns +
                 (int64_t)((double)(int64_t)(ticks - trace()->before_ticks) * trace()->ns_per_tick);

    ring->last_ns = ns > ring->last_ns ? ns : ring->last_ns + 1;
    return ring->last_ns;
}

static void count_depth(trace_ring *ring, const trace_event *event)
{
    if (event->kind <= TRACE_E_WORK)
        ring->depth++;
    else if (event->kind <= TRACE_E_DONE)
        ring->depth--;
}

static void show_dropped(trace_ring *ring)
{
    uint64_t dropped = blz__load(&ring->dropped, RELAXED);

    if (dropped != ring->dropped_shown)
        blz__trace_json_dropped(trace()->json, ring, dropped - ring->dropped_shown,
                                ++ring->last_ns);
    ring->dropped_shown = dropped;
}

static bool is_full(void)
{
    return trace()->json->summary.bytes + trace()->json->len >= trace()->limit;
}

static void empty_ring(trace_ring *ring, uint64_t until_ticks)
{
    char text[TRACE_TEXT];
    trace_event event;

    while (!is_full() && blz__trace_take(ring, until_ticks, &event, text)) {
        count_depth(ring, &event);
        blz__trace_json_event(trace()->json, ring, &event, text, time_of(ring, event.ticks));
    }
    show_dropped(ring);
}

static void round_of_all(uint64_t until_ticks)
{
    uint32_t nr = blz__load(&blz__trace_rings()->nr, ACQUIRE); /* pairs with claim */

    for (; trace()->nr_named < nr; trace()->nr_named++)
        blz__trace_json_thread(trace()->json, &blz__trace_rings()->all[trace()->nr_named]);
    for (uint32_t i = 0; i < nr; i++)
        empty_ring(&blz__trace_rings()->all[i], until_ticks);
    blz__trace_json_flush(trace()->json);
}

/* Closes what is open, and the text. */
static void end_text(void)
{
    int64_t end_ns = blz__clock_ns() - trace()->start_ns;

    if (is_full())
        blz__trace_json_limit(trace()->json, trace()->limit, end_ns);
    for (uint32_t i = 0; i < trace()->nr_named; i++) {
        trace_ring *ring = &blz__trace_rings()->all[i];
        int64_t ns = end_ns > ring->last_ns ? end_ns : ring->last_ns + 1;
        for (; ring->depth > 0; ring->depth--)
            blz__trace_json_cut(trace()->json, ring, ns);
    }
    blz__trace_json_cut_spans(trace()->json, end_ns);
    trace()->json->summary.dropped += blz__load(&blz__trace_rings()->unplaced, RELAXED);
    blz__trace_json_end(trace()->json);
    trace()->is_over = true;
}

static void switch_all(uint16_t on)
{
    for (int i = 0; i < TRACE_GROUPS; i++)
        blz__store(&blz__trace_switches[i].each[0], on, RELAXED);
}

static void one_round(void)
{
    uint64_t ticks = take_moment();

    round_of_all(ticks);
    trace()->before_ns += (int64_t)((double)(ticks - trace()->before_ticks) * trace()->ns_per_tick);
    trace()->before_ticks = ticks;
    if (is_full()) {
        switch_all(0);
        end_text();
    }
}

/* Nobody records any more. */
static void last_round(void)
{
    (void)take_moment();
    round_of_all(UINT64_MAX);
    end_text();
}

static void writer_main(void *arg)
{
    uint32_t *kick = &blz__trace_rings()->kick;

    (void)arg;
    blz__trace_json_begin(trace()->json);
    while (!blz__load(&trace()->finish, ACQUIRE)) { /* pairs with the release in blz_trace_stop */
        blz__futex_wait_until(kick, 0, trace()->is_over ? INT64_MAX : blz__clock_ns() + ROUND_NS);
        /* acquire: a kick of blz_trace_stop that is taken here shows `finish`, too */
        blz__swap(kick, 0u, ACQUIRE);
        if (!trace()->is_over)
            one_round();
    }
    if (!trace()->is_over)
        last_round();
}

/* ---- starting and stopping ---- */

static int write_file(const char *text, size_t len, void *arg)
{
    blz_sysfd fd = *(const blz_sysfd *)arg;

    while (len > 0) {
        blz_iovec piece = {(void *)(uintptr_t)text, len};
        int64_t n = blz__file_write(fd, &piece, 1, FILE_AT_POSITION);
        if (n < 0)
            return (int)n;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

static uint64_t power_of_two(size_t wanted)
{
    uint64_t size = MIN_EVENTS;

    while (size < wanted)
        size *= 2;
    return size;
}

static size_t slots_size(void)
{
    return (size_t)(trace()->size * trace()->max) * sizeof(trace_event);
}

static void free_all(void)
{
    if (trace()->fd != BLZ_NO_SYSFD)
        (void)blz__file_close(trace()->fd);
    blz__fork_word_free(trace()->fork_word);
    blz__free(&trace()->allocator, trace()->json, sizeof(trace_json), _Alignof(trace_json));
    blz__free(&trace()->allocator, trace()->slots, slots_size(), BLZ_CACHE_LINE);
}

static int allocate(void)
{
    trace()->fork_word = NULL;
    trace()->json = NULL;
    trace()->slots = blz__alloc(&trace()->allocator, slots_size(), BLZ_CACHE_LINE);
    if (!trace()->slots)
        return -ENOMEM;
    trace()->json = blz__alloc(&trace()->allocator, sizeof(trace_json), _Alignof(trace_json));
    if (!trace()->json)
        goto out_slots;
    memset(trace()->json, 0, sizeof *trace()->json);
    trace()->fork_word = blz__fork_word_new();
    if (!trace()->fork_word)
        goto out_json;
    return 0;
out_json:
    blz__free(&trace()->allocator, trace()->json, sizeof(trace_json), _Alignof(trace_json));
out_slots:
    blz__free(&trace()->allocator, trace()->slots, slots_size(), BLZ_CACHE_LINE);
    return -ENOMEM;
}

static int open_output(const blz_trace_options *options)
{
    int64_t fd;

    trace()->json->write = options->write ? options->write : write_file;
    trace()->json->arg = options->write ? options->arg : &trace()->fd;
    trace()->json->pid = (int)blz__env_pid();
    if (options->write)
        return 0;
    /* Names what the program does, and has its texts: for its owner alone. Another user who knows
     * the name may have put a link there first. */
    fd = blz__file_open(FILE_CURRENT_DIR, options->path,
                        OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE | OPEN_NO_FOLLOW, 0600);
    if (fd < 0)
        return (int)fd;
    trace()->fd = (blz_sysfd)fd;
    return 0;
}

static int start(const blz_trace_options *options)
{
    int rc;

    trace()->fd = BLZ_NO_SYSFD;
    trace()->finish = 0;
    trace()->nr_named = 0;
    trace()->is_over = false;
    trace()->limit = options->limit ? options->limit : DEFAULT_LIMIT;
    trace()->allocator = options->allocator ? *options->allocator : blz__system_allocator;
    trace()->size = power_of_two(options->events ? options->events : DEFAULT_EVENTS);
    trace()->max = options->threads ? options->threads : DEFAULT_THREADS;
    rc = allocate();
    if (rc < 0)
        return rc;
    rc = open_output(options);
    if (rc < 0)
        goto out;
    blz__trace_open_session(trace()->slots, trace()->size, trace()->max, options->sample);
    trace()->before_ticks = blz__clock_ticks(&blz__trace_rings()->clock);
    trace()->before_ns = trace()->start_ns = blz__clock_ns();
    trace()->ns_per_tick = blz__trace_rings()->clock.ns_per_tick;
    switch_all(1); /* before the thread is there: at the limit it switches off */
    rc = blz__thread_start(&trace()->thread, writer_main, NULL, 0, "blitz-trace");
    if (rc < 0)
        goto out_session;
    return 0;
out_session:
    switch_all(0);
    blz__trace_close_session();
out:
    free_all();
    return rc;
}

int blz_trace_start(const blz_trace_options *options)
{
    uint32_t off = TRACE_OFF;
    int rc;

    if (!options->path == !options->write || options->events > MAX_EVENTS ||
        options->threads > TRACE_THREADS)
        return -EINVAL;
    /* acquire: pairs with the release of the last stop */
    if (!blz__cas(&trace()->state, &off, TRACE_STARTING, ACQUIRE, RELAXED))
        return -EBUSY;
    rc = start(options);
    /* release: pairs with the acquire in stop */
    blz__store(&trace()->state, (uint32_t)(rc < 0 ? TRACE_OFF : TRACE_ON), RELEASE);
    return rc;
}

int blz_trace_stop(blz_trace_summary *out)
{
    uint32_t on = TRACE_ON;
    int rc;

    /* acquire: pairs with the release of the start */
    if (!blz__cas(&trace()->state, &on, TRACE_STOPPING, ACQUIRE, RELAXED))
        return -ENXIO;
    switch_all(0);
    if (blz__load(trace()->fork_word, RELAXED) == 0)
        return -EOWNERDEAD; /* for good: the thread that would write is not in this process */
    blz__trace_close_session();
    blz__store(&trace()->finish, 1u, RELEASE);          /* pairs with writer_main */
    blz__store(&blz__trace_rings()->kick, 1u, RELEASE); /* pairs with writer_main */
    blz__futex_wake(&blz__trace_rings()->kick, 1);
    blz__thread_join(trace()->thread);
    if (out)
        *out = trace()->json->summary;
    rc = trace()->json->error;
    free_all();
    blz__store(&trace()->state, (uint32_t)TRACE_OFF, RELEASE); /* pairs with the next start */
    return rc;
}
