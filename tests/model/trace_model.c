/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of a trace (src/observe/trace_ring.c): a thread fills its own while the writer, which
 * is the test, empties it, and while sessions end and begin. What was said to be recorded comes
 * out, once, whole and in order; what begins has its end; nobody touches slots that are freed, and
 * nothing of one session gets into the next.
 */
#include "base/shared.h"
#include "observe/trace_ring.h"
#include "support/table.h"

#include <string.h>

enum { MAX_SEEN = 8 };

static trace_event *slots;

/* ghosts: what came out, and what the recorder was told */
static struct {
    uint64_t ids[MAX_SEEN];
    unsigned count;
    int depth;
} seen;
static unsigned said, asked;

/* ---- the writer ---- */

static void open_session(uint64_t size)
{
    slots = model_alloc(size * TRACE_THREADS * sizeof *slots, _Alignof(trace_event));
    memset(&seen, 0, sizeof seen);
    said = asked = 0;
    blz__trace_open_session(slots, size, TRACE_THREADS, 1);
}

static void begin(uint64_t size)
{
    memset(blz__trace_rings(), 0, sizeof *blz__trace_rings());
    open_session(size);
}

static void look_at(const trace_event *event, const char *text)
{
    model_assert(seen.count < MAX_SEEN);
    seen.ids[seen.count++] = event->id;
    seen.depth += event->kind <= TRACE_E_WORK ? 1 : event->kind <= TRACE_E_DONE ? -1 : 0;
    model_assert(seen.depth >= 0);
    if (event->len)
        model_assert(event->len == 2 && text[0] == 't' && text[1] == (char)('0' + event->id));
}

static void one_round(void)
{
    uint32_t nr = blz__load(&blz__trace_rings()->nr, ACQUIRE); /* pairs with claim, as in trace.c */
    char text[TRACE_TEXT];
    trace_event event;

    for (uint32_t i = 0; i < nr; i++) {
        blz__plain_read(&blz__trace_rings()->all[i].slots); /* and the thread's name */
        while (blz__trace_take(&blz__trace_rings()->all[i], UINT64_MAX, &event, text))
            look_at(&event, text);
    }
}

/* Nobody records any more, and all of it comes out. */
static void close_session(void)
{
    blz__trace_close_session();
    one_round();
    model_free(slots);
}

static void all_came_out_in_order(void)
{
    const trace_ring *ring = &blz__trace_rings()->all[0];

    model_assert(seen.count == said);
    model_assert(blz__load(&ring->dropped, RELAXED) == asked - said);
    for (unsigned i = 1; i < seen.count; i++)
        model_assert(seen.ids[i - 1] < seen.ids[i]);
}

/* ---- recorders ---- */

static uint32_t record(uint64_t id, const char *text)
{
    uint32_t session = blz__trace_point(&(trace_event){.id = id, .kind = TRACE_E_MARK}, text);

    asked++;
    said += session != 0;
    return session;
}

static void three_moments(void *unused)
{
    (void)unused;
    record(1, NULL);
    record(2, NULL);
    record(3, NULL);
}

/* Five slots. */
static void two_texts(void *unused)
{
    (void)unused;
    record(1, NULL);
    record(2, "t2");
    record(3, "t3");
}

/* Nested as a poll that marks something, in a ring that cannot take all of it. */
static void two_pairs(void *unused)
{
    trace_event begins = {.id = 1, .kind = TRACE_E_POLL}, ends = {.id = 3, .kind = TRACE_E_DONE};

    (void)unused;
    for (int i = 0; i < 2; i++) {
        uint32_t ticket = blz__trace_open(&begins, NULL);

        record(2, NULL);
        blz__trace_close(ticket, &ends);
    }
}

/* ---- models ---- */

static void recorded_by(void (*recorder)(void *), uint64_t size)
{
    begin(size);
    model_thread thread = model_start_named(recorder, NULL, "recorder");
    one_round();
    one_round();
    model_join(thread);
    close_session();
}

static void what_is_recorded_comes_out_in_order(void)
{
    recorded_by(three_moments, 2);
    all_came_out_in_order();
    model_assert(seen.count >= 2);
}

static void a_text_comes_out_whole(void)
{
    recorded_by(two_texts, 4);
    all_came_out_in_order();
    model_assert(seen.count >= 2);
}

static void what_begins_has_its_end(void)
{
    recorded_by(two_pairs, 2);
    model_assert(seen.depth == 0 && seen.count >= 2);
}

/* The recorder is somewhere, or has not come yet, when the session ends. */
static void what_is_recorded_while_the_trace_ends_comes_out_or_was_refused(void)
{
    begin(4);
    model_thread thread = model_start_named(three_moments, NULL, "recorder");
    close_session();
    model_join(thread);
    model_assert(seen.count == said);
    for (unsigned i = 0; i < seen.count; i++)
        model_assert(seen.ids[i] == i + 1);
}

static uint32_t last_ticket, last_session;

static void begins_and_ends(void *unused)
{
    trace_event begins = {.id = 1, .kind = TRACE_E_POLL}, ends = {.id = 2, .kind = TRACE_E_DONE};

    (void)unused;
    last_ticket = blz__trace_open(&begins, NULL);
    blz__trace_close(last_ticket, &ends);
    last_session = blz__trace_point(&(trace_event){.id = 3, .kind = TRACE_E_MARK}, NULL);
}

/* The ring that it had belongs to another one then, who records, too. */
static void nothing_of_one_session_gets_into_the_next(void)
{
    uint32_t mine;

    last_ticket = last_session = 0;
    begin(4);
    model_thread thread = model_start_named(begins_and_ends, NULL, "recorder");
    close_session();
    model_assert(seen.depth >= 0);
    open_session(4);
    mine = record(4, NULL);
    model_assert(mine == 2);
    one_round();
    close_session();
    model_join(thread);
    /* an end is in the session of its begin, or nowhere: then the writer closes what is open */
    model_assert(seen.depth <= (last_ticket == 2));
    model_assert(seen.count ==
                 1u + (last_session == 2) + 2u * (last_ticket == 2) - (unsigned)seen.depth);
}

/* Two threads have a ring each, and the third one none. */
static void one_moment(void *id)
{
    record((uint64_t)(uintptr_t)id, NULL);
}

static void a_thread_without_a_ring_is_refused(void)
{
    unsigned unplaced;

    begin(2);
    model_thread one = model_start(one_moment, (void *)1), two = model_start(one_moment, (void *)2);
    one_moment((void *)3);
    model_join(one);
    model_join(two);
    close_session();
    unplaced = (unsigned)blz__load(&blz__trace_rings()->unplaced, RELAXED);
    model_assert(said == 2 && seen.count == 2 && unplaced == 1);
    model_assert(seen.ids[0] != seen.ids[1]);
}

static const struct model models[] = {
    MODEL(what_is_recorded_comes_out_in_order, .preemptions = 4),
    MODEL(a_text_comes_out_whole, .preemptions = 4),
    MODEL(what_begins_has_its_end, .preemptions = 3),
    MODEL(what_is_recorded_while_the_trace_ends_comes_out_or_was_refused, .preemptions = 4),
    MODEL(nothing_of_one_session_gets_into_the_next, .preemptions = 3, .reduce = true),
    MODEL(a_thread_without_a_ring_is_refused, .stale_reads = 1),
};

MODEL_MAIN(models)
