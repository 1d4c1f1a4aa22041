/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces, as far as a program sees them: what is recorded, that it nests and that arrows have both
 * ends, what happens when a ring is full; starting and stopping at any time. That the text is JSON,
 * and what all the kinds of events look like, is checked by trace_file.
 */
#include "harness.h"

#include "observe/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the text ---- */

enum { MAX_TEXT = 4 << 20, MAX_ARROWS = 20000 };

static struct {
    char text[MAX_TEXT];
    size_t len;
    blz_trace_summary summary;
} got;

static int keep(const char *text, size_t len, void *arg)
{
    (void)arg;
    check(got.len + len < MAX_TEXT);
    memcpy(got.text + got.len, text, len);
    got.len += len;
    got.text[got.len] = '\0';
    return 0;
}

static const blz_trace_options small = {.write = keep, .events = 1024, .threads = 8};

static blz_trace_options with_memory(blz_trace_options options)
{
    options.allocator = test_memory();
    return options;
}

static void start(void)
{
    blz_trace_options options = with_memory(small);

    got.len = 0;
    check(blz_trace_start(&options) == 0);
}

static void stop(void)
{
    check(blz_trace_stop(&got.summary) == 0);
    check(got.summary.bytes == got.len);
}

/* How often a text occurs. */
static int count(const char *text)
{
    int n = 0;

    for (const char *at = got.text; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

/* ---- what holds of every trace ---- */

struct thread_seen {
    uint64_t tid;
    int depth;
    double ts;
};

static struct thread_seen *thread_of(struct thread_seen *threads, uint64_t tid)
{
    int i = 0;

    while (threads[i].tid && threads[i].tid != tid)
        i++;
    assert_true(i < 15);
    threads[i].tid = tid;
    return &threads[i];
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The ids of arrows that begin ('s') or end ('f'), sorted. */
static size_t arrows(char ph, char (*ids)[40])
{
    char head[16];
    size_t n = 0;

    snprintf(head, sizeof head, "{\"ph\":\"%c\"", ph);
    for (const char *at = got.text; (at = strstr(at, head)); at++) {
        const char *id = strstr(at, "\"id\":\"") + 6;
        assert_true(n < MAX_ARROWS);
        snprintf(ids[n++], sizeof *ids, "%.*s", (int)strcspn(id, "\""), id);
    }
    qsort(ids, n, sizeof *ids, compare_ids);
    return n;
}

/* Begins and ends nest on each thread, in the order of time; each arrow has both of its ends. */
static void assert_sound(void)
{
    static char from[MAX_ARROWS][40], to[MAX_ARROWS][40];
    struct thread_seen threads[16] = {{0}};

    for (const char *line = strstr(got.text, "{\"ph\""); line; line = strstr(line + 1, "{\"ph\"")) {
        struct thread_seen *thread;
        char head[100]; /* sscanf looks for the end of what it is given */
        uint64_t tid;
        double ts;
        char ph;

        snprintf(head, sizeof head, "%.99s", line);
        assert_int_equal(sscanf(head, "{\"ph\":\"%c\",\"pid\":%*d,\"tid\":%" SCNu64 ",\"ts\":%lf",
                                &ph, &tid, &ts),
                         3);
        thread = thread_of(threads, tid ? tid : UINT64_MAX);
        if (!strchr("BEXi", ph))
            continue;
        assert_true(ts > thread->ts || (ph == 'E' && ts == thread->ts)); /* E: cut at the end */
        thread->ts = ts;
        thread->depth += ph == 'B' ? 1 : ph == 'E' ? -1 : 0;
        assert_true(thread->depth >= 0);
    }
    for (int i = 0; i < 16; i++)
        assert_int_equal(threads[i].depth, 0);
    size_t n = arrows('s', from);
    assert_int_equal(arrows('f', to), n);
    assert_int_equal(n, got.summary.arrows);
    assert_memory_equal(from, to, n * sizeof *from);
    assert_string_equal(got.text + got.len - 4, "\n]}\n");
}

/* ---- what is recorded ---- */

static void every_poll_has_its_begin_and_its_end(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    start();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, yields, .times = 2), 0);
    turn_all(rt);
    stop();
    assert_sound();
    assert_int_equal(count("\"name\":\"spawn yields\""), 1);
    assert_int_equal(count("\"name\":\"yields\",\"cat\":\"poll\""), 3);
    assert_int_equal(count("\"outcome\":\"yielded\""), 2);
    assert_int_equal(count("\"outcome\":\"ended\""), 1);
    assert_int_equal(got.summary.dropped, 0);
    free_rt(rt);
}

static void a_wake_up_is_an_arrow_to_the_poll_that_answers(void **state)
{
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, enters, .gate = &gate), 0);
    turn_all(rt);
    start();
    gate_open(&gate, 0);
    turn_all(rt);
    stop();
    assert_sound();
    assert_int_equal(count("\"name\":\"wake enters\""), 1);
    assert_int_equal(got.summary.arrows, 1);
    free_rt(rt);
}

static void a_wake_up_without_a_poll_has_no_arrow(void **state)
{
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, enters, .gate = &gate), 0);
    turn_all(rt);
    start();
    gate_open(&gate, 0);
    stop();
    turn_all(rt);
    assert_sound();
    assert_int_equal(count("\"name\":\"wake enters\""), 1);
    assert_int_equal(got.summary.arrows, 0);
    free_rt(rt);
}

static int64_t stop_and_start(void *arg)
{
    (void)arg;
    stop();
    start();
    return 0;
}

static void a_poll_that_a_trace_ends_in_is_cut_and_not_ended_in_the_next(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    start();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, calls, .fn = stop_and_start), 0);
    turn_all(rt);
    stop();
    assert_sound();
    assert_int_equal(count("\"ph\":\"E\""), 0);
    free_rt(rt);
}

static void a_given_name_and_a_mark_may_contain_anything(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    start();
    assert_int_equal(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt,
                                                       .name = "a \"b\" \\ \x01 \xff \xc3\xa9"}),
                                    give),
                     0);
    turn_all(rt);
    blz_trace_mark("");
    stop();
    assert_sound();
    assert_int_equal(count("\"name\":\"a \\\"b\\\" \\\\ \\u0001 \\ufffd \xc3\xa9\""), 1);
    assert_int_equal(count("\"name\":\"\",\"cat\":\"mark\""), 1);
    free_rt(rt);
}

static void a_long_name_is_cut(void **state)
{
    char name[1001];

    (void)state;
    memset(name, 'n', sizeof name);
    name[1000] = '\0';
    start();
    blz_trace_mark(name);
    stop();
    name[96] = '\0';
    assert_int_equal(count(name), 1);
    assert_int_equal(count("n\",\"cat\":\"mark\""), 1);
}

static void spans_end_in_the_trace_that_they_began_in(void **state)
{
    uint64_t first, second;

    (void)state;
    assert_int_equal(blz_trace_begin("nobody listens"), 0);
    blz_trace_end(0);
    start();
    assert_true(blz_trace_is_on());
    first = blz_trace_begin("first");
    stop();
    assert_false(blz_trace_is_on());
    start();
    second = blz_trace_begin("second");
    blz_trace_end(first);
    blz_trace_end(second);
    stop();
    assert_int_not_equal(first, second);
    assert_int_equal(count("\"ph\":\"b\""), 1);
    assert_int_equal(count("\"ph\":\"e\""), 1);
    assert_int_equal(count("\"name\":\"second\""), 2);
}

static void a_span_that_is_open_when_the_trace_ends_is_cut(void **state)
{
    (void)state;
    start();
    assert_int_not_equal(blz_trace_begin("still open"), 0);
    stop();
    assert_int_equal(count("\"ph\":\"b\""), 1);
    assert_int_equal(count("\"ph\":\"e\""), 1);
    assert_int_equal(count("\"name\":\"still open\""), 2);
}

/* ---- too much ---- */

static struct event writing = EVENT_INIT, may_write = EVENT_INIT;

static int keep_when_allowed(const char *text, size_t len, void *arg)
{
    event_post(&writing);
    event_wait(&may_write, 1);
    return keep(text, len, arg);
}

/* What is recorded from here on stays in the rings until `may_write`. */
static void hold_the_writer(void)
{
    event_wait(&writing, 1);
}

static void start_held(size_t events)
{
    blz_trace_options options = with_memory(small);

    options.write = keep_when_allowed;
    options.events = events;
    got.len = 0;
    writing = may_write = (struct event)EVENT_INIT;
    check(blz_trace_start(&options) == 0);
}

static void a_full_ring_drops_events_and_says_how_many(void **state)
{
    (void)state;
    start_held(64);
    hold_the_writer();
    for (int i = 0; i < 1000; i++)
        blz_trace_mark("");
    event_post(&may_write);
    stop();
    assert_sound();
    assert_int_equal(count("\"cat\":\"mark\"") + (int)got.summary.dropped, 1000);
    assert_true(got.summary.dropped >= 1000 - 64);
    assert_int_equal(count("events dropped"), 1);
}

static void *begin_a_span(void *arg)
{
    *(uint64_t *)arg = blz_trace_begin("elsewhere");
    return NULL;
}

/* The ring of this thread is emptied first. */
static void a_span_has_its_name_at_both_ends_whichever_comes_first(void **state)
{
    const char *begins, *ends;
    uint64_t span = 0;

    (void)state;
    start_held(1024);
    blz_trace_mark("first");
    hold_the_writer();
    join_thread(start_thread(begin_a_span, &span));
    assert_int_not_equal(span, 0);
    blz_trace_end(span);
    event_post(&may_write);
    stop();
    begins = strstr(got.text, "{\"ph\":\"b\"");
    ends = strstr(got.text, "{\"ph\":\"e\"");
    assert_true(begins && ends && begins < ends);
    assert_int_equal(count("\"name\":\"elsewhere\""), 2);
    assert_int_equal(got.summary.dropped, 0);
}

/* An open one keeps its place, which is that of the 1024th after it. */
static void a_span_whose_place_is_taken_is_dropped_as_a_whole(void **state)
{
    blz_trace_options options = with_memory(small);
    uint64_t open;

    (void)state;
    options.events = 8192;
    got.len = 0;
    assert_int_equal(blz_trace_start(&options), 0);
    open = blz_trace_begin("open");
    for (int i = 0; i < 1030; i++)
        blz_trace_end(blz_trace_begin(""));
    blz_trace_end(open);
    stop();
    assert_int_equal(got.summary.dropped, 2);
    assert_int_equal(count("\"ph\":\"b\""), 1030);
    assert_int_equal(count("\"ph\":\"e\""), 1030);
    assert_int_equal(count("\"name\":\"open\""), 2);
}

static int64_t mark_a_lot(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++)
        blz_trace_mark("");
    return 0;
}

static void a_poll_whose_begin_was_recorded_has_an_end_in_a_full_ring_too(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    start_held(64);
    hold_the_writer();
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, calls, .fn = mark_a_lot), 0);
    turn_all(rt);
    event_post(&may_write);
    stop();
    assert_sound();
    assert_int_equal(count("\"cat\":\"poll\""), 1);
    assert_int_equal(count("\"outcome\":\"ended\""), 1);
    free_rt(rt);
}

static void *mark(void *arg)
{
    (void)arg;
    blz_trace_mark("other");
    return NULL;
}

static void threads_without_a_ring_are_counted_as_dropped(void **state)
{
    blz_trace_options options = with_memory(small);

    (void)state;
    options.threads = 1;
    got.len = 0;
    assert_int_equal(blz_trace_start(&options), 0);
    blz_trace_mark("mine");
    join_thread(start_thread(mark, NULL));
    join_thread(start_thread(mark, NULL));
    stop();
    assert_int_equal(got.summary.threads, 1);
    assert_int_equal(got.summary.dropped, 2);
    assert_int_equal(count("other"), 0);
}

/* ---- at any time ---- */

static uint64_t enough;

struct busy {
    BLZ_FRAME;
    blz_future op;
    blz_handle child;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(busy)
{
    BLZ_BEGIN;
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        self->rc = BLZ_SPAWN_JOIN(&self->child, yields, .times = 1);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->child));
    }
    BLZ_END(0);
}

static void tracing_begins_and_ends_while_workers_run(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handles[4];
    int rounds = 4;

    (void)state;
    __atomic_store_n(&enough, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], busy), 0);
    for (int i = 0; i < rounds; i++) {
        uint64_t before, now;
        blz_stats stats;

        start();
        blz_rt_stats(rt, &stats);
        before = stats.total.polls;
        do {
            blz_rt_stats(rt, &stats);
            now = stats.total.polls;
        } while (now < before + 300);
        stop();
        assert_sound();
        assert_true(count("\"cat\":\"poll\"") > 0);
    }
    __atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    free_rt(rt);
}

static int64_t trace_myself(void *arg)
{
    (void)arg;
    start();
    blz_trace_mark("inside");
    stop();
    return 0;
}

static void a_task_may_start_and_stop_a_trace(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = trace_myself), 0);
    assert_sound();
    assert_int_equal(count("inside"), 1);
    free_rt(rt);
}

/* ---- I/O ---- */

static int close_at_once(blz_tcp conn, void *arg)
{
    (void)arg;
    blz_tcp_close(&conn);
    return 0;
}

struct visitor {
    BLZ_FRAME;
    blz_addr addr;
    blz_tcp conn;
    int64_t rc;
    blz_io io;
    char byte;
};

BLZ_ASYNC(visitor)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_connect_with(&self->io, &self->conn, &self->addr, NULL));
    if (self->rc == 0) {
        BLZ_AWAIT(self->rc, blz_tcp_read(&self->io, &self->conn, &self->byte, 1));
        blz_tcp_close(&self->conn);
    }
    BLZ_END(self->rc);
}

struct short_server {
    BLZ_FRAME;
    blz_tcp_listener listener;
    blz_addr addr;
    int64_t rc;
    blz_serve_op serve;
    struct visitor visitor;
    blz_race_op race;
};

BLZ_ASYNC(short_server)
{
    BLZ_BEGIN;
    self->addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    self->rc = blz_tcp_listen_with(&self->listener, &self->addr,
                                   &(blz_tcp_listen_options){.spread = true});
    if (self->rc < 0)
        goto out;
    blz_tcp_listener_addr(&self->listener, &self->addr);
    BLZ_AWAIT(self->rc, blz_race(&self->race,
                                 blz_tcp_serve(&self->serve, &self->listener, close_at_once, NULL),
                                 BLZ_FUTURE(self->visitor, visitor, .addr = self->addr)));
    blz_tcp_listener_close(&self->listener);
out:
    BLZ_END(self->rc);
}

/* With io_uring the driver has a request of its own there, which belongs to no task. */
static void a_server_is_traced_to_its_end(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    start();
    assert_int_equal(BLZ_BLOCK_ON(rt, short_server), 1);
    free_rt(rt);
    stop();
    assert_sound();
    assert_true(count("\"tcp_accept\"") > 0);
}

/* ---- the limit ---- */

static void start_limited(uint64_t limit)
{
    blz_trace_options options = with_memory(small);

    options.limit = limit;
    got.len = 0;
    check(blz_trace_start(&options) == 0);
}

struct fills {
    BLZ_FRAME;
    int64_t rc;
    uint64_t span;
    blz_future pause;
};

/* Makes events until none is recorded any more. */
BLZ_ASYNC(fills)
{
    BLZ_BEGIN;
    self->span = blz_trace_begin("fills");
    while (blz_trace_is_on())
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    blz_trace_end(self->span);
    BLZ_END(0);
}

static void a_trace_that_reaches_its_limit_says_so_and_is_whole(void **state)
{
    enum { LIMIT = 200000 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    start_limited(LIMIT);
    assert_int_equal(BLZ_BLOCK_ON(rt, fills), 0);
    blz_trace_mark("too late");
    assert_int_equal(blz_trace_begin("too late"), 0);
    stop();
    free_rt(rt);
    assert_sound();
    assert_int_equal(got.summary.limited, 1);
    assert_int_equal(count("the trace ends here: its limit is 200000 bytes"), 1);
    assert_int_equal(count("\"ph\":\"b\""), 1);
    assert_int_equal(count("\"ph\":\"e\""), 1); /* open when the limit came */
    assert_int_equal(count("too late"), 0);
    assert_in_range(got.len, LIMIT, LIMIT + 10000);
}

static void a_limit_that_is_reached_when_the_trace_is_stopped_is_kept(void **state)
{
    (void)state;
    start_limited(10000);
    for (int i = 0; i < 1000; i++)
        blz_trace_mark("a mark with some text to fill the file");
    stop();
    assert_sound();
    assert_int_equal(got.summary.limited, 1);
    assert_in_range(got.len, 10000, 12000);
}

static void a_trace_below_its_limit_has_no_note(void **state)
{
    (void)state;
    start_limited(1 << 20);
    blz_trace_mark("all is well");
    stop();
    assert_int_equal(got.summary.limited, 0);
    assert_int_equal(count("the trace ends here"), 0);
}

static void after_a_trace_that_reached_its_limit_there_can_be_another(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    for (int i = 0; i < 3; i++) {
        start_limited(20000);
        assert_int_equal(BLZ_BLOCK_ON(rt, fills), 0);
        assert_int_equal(blz_trace_start(&small), -EBUSY); /* until it is stopped */
        stop();
        assert_int_equal(got.summary.limited, 1);
    }
    free_rt(rt);
}

static int count_bytes(const char *text, size_t len, void *arg)
{
    (void)text;
    *(uint64_t *)arg += len;
    return 0;
}

static void the_limit_is_64_mebibytes_if_nothing_is_said(void **state)
{
    enum { LIMIT = 64 << 20 };
    uint64_t bytes = 0;
    blz_trace_options options = {.write = count_bytes, .arg = &bytes, .allocator = test_memory()};
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(blz_trace_start(&options), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, fills), 0);
    assert_int_equal(blz_trace_stop(NULL), 0);
    free_rt(rt);
    assert_in_range(bytes, LIMIT, LIMIT + 10000);
}

/* ---- sampling ---- */

struct sleeps_shortly {
    BLZ_FRAME;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(sleeps_shortly)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, BLZ_MSEC));
    BLZ_END(self->rc);
}

static void start_sampled(unsigned sample)
{
    blz_trace_options options = with_memory(small);

    options.sample = sample;
    options.events = 1 << 16;
    got.len = 0;
    check(blz_trace_start(&options) == 0);
}

/* Many tasks, each with a spawn, three polls and no wake-up; and a mark. */
static void run_many(int tasks)
{
    blz_rt *rt = new_embedded_rt();

    for (int i = 0; i < tasks; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, yields, .times = 2), 0);
    turn_all(rt);
    blz_trace_mark("done");
    free_rt(rt);
}

static void of_sampled_tasks_everything_is_recorded_and_of_others_nothing(void **state)
{
    enum { TASKS = 1000, SAMPLE = 10 };
    int sampled;

    (void)state;
    start_sampled(SAMPLE);
    run_many(TASKS);
    stop();
    assert_sound();
    sampled = count("\"name\":\"spawn yields\"");
    assert_in_range(sampled, TASKS / SAMPLE / 2, TASKS / SAMPLE * 2);
    assert_int_equal(count("\"name\":\"yields\",\"cat\":\"poll\""), 3 * sampled);
    assert_int_equal(count("\"outcome\":\"ended\""), sampled);
    assert_int_equal(got.summary.arrows, sampled); /* from the spawn; a yield is no wake-up */
    assert_int_equal(count("\"cat\":\"mark\""), 1);
}

static void one_task_in_one_is_every_task(void **state)
{
    (void)state;
    start_sampled(1);
    run_many(100);
    stop();
    assert_int_equal(count("\"name\":\"spawn yields\""), 100);
}

static void a_sampled_trace_has_nothing_that_belongs_to_no_task(void **state)
{
    static const char *const kinds[] = {"park", "steal", "work", "timer", "io"};
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    char text[32];

    (void)state;
    start_sampled(UINT32_MAX);
    assert_int_equal(BLZ_BLOCK_ON(rt, short_server), 1);
    assert_int_equal(BLZ_BLOCK_ON(rt, sleeps_shortly), 0);
    free_rt(rt);
    stop();
    assert_sound();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(text, sizeof text, "\"cat\":\"%s\"", kinds[i]);
        assert_int_equal(count(text), 0);
    }
}

/* ---- BLZ_TRACE ---- */

static void the_environment_names_a_file_and_options(void **state)
{
    static const struct {
        const char *text, *path;
        uint64_t limit;
        unsigned sample;
    } good[] = {
        {"a.json", "a.json", 0, 0},
        {"a.json,limit=64M", "a.json", 64 << 20, 0},
        {"a.json,limit=200k,sample=16", "a.json", 200 << 10, 16},
        {"a.json,sample=1,limit=1000", "a.json", 1000, 1},
        {"a.json,limit=2G", "a.json", (uint64_t)2 << 30, 0},
        {"a,b.json", "a,b.json", 0, 0},
        {"a,b.json,sample=2", "a,b.json", 0, 2},
        {"a=b,c", "a=b,c", 0, 0},
    };
    static const char *const bad[] = {
        "a,limit=",
        "a,limit=0",
        "a,limit=12x",
        "a,limit=-1",
        "a,limit=1MM",
        "a,limits=1",
        "a,sample=0",
        "a,sample=4294967296",
        ",limit=1M",
        "a,unknown=12",
        "",
        "a,limit=18446744073709551616",
        "a,limit=99999999999G",
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        blz_trace_options options = {0};
        snprintf(text, sizeof text, "%s", good[i].text);
        assert_int_equal(blz__trace_parse(&options, text), 0);
        assert_string_equal(text, good[i].path);
        assert_int_equal(options.limit, good[i].limit);
        assert_int_equal(options.sample, good[i].sample);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        blz_trace_options options = {0};
        snprintf(text, sizeof text, "%s", bad[i]);
        if (blz__trace_parse(&options, text) != -EINVAL)
            fail_msg("taken for an option: %s", bad[i]);
    }
}

/* ---- errors ---- */

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    assert_int_equal(blz_trace_start(&(blz_trace_options){0}), -EINVAL);
    assert_int_equal(blz_trace_start(&(blz_trace_options){.path = "x", .write = keep}), -EINVAL);
    assert_int_equal(blz_trace_start(&(blz_trace_options){.write = keep, .threads = 257}), -EINVAL);
    assert_int_equal(blz_trace_start(
                         &(blz_trace_options){.write = keep, .events = ((size_t)1 << 24) + 1}),
                     -EINVAL);
    assert_int_equal(blz_trace_start(&(blz_trace_options){.path = "/no/such/folder/x"}), -ENOENT);
    assert_int_equal(blz_trace_stop(NULL), -ENXIO);
}

static void there_is_one_trace_at_a_time(void **state)
{
    (void)state;
    start();
    assert_int_equal(blz_trace_start(&small), -EBUSY);
    stop();
    start();
    stop();
}

static int refuse(const char *text, size_t len, void *arg)
{
    (void)text;
    (void)len;
    ++*(int *)arg;
    return -ENOSPC;
}

static void an_error_of_writing_is_what_stop_gives(void **state)
{
    int calls_seen = 0;
    blz_trace_options options = with_memory(small);

    (void)state;
    options.write = refuse;
    options.arg = &calls_seen;
    assert_int_equal(blz_trace_start(&options), 0);
    blz_trace_mark("lost");
    assert_int_equal(blz_trace_stop(NULL), -ENOSPC);
    assert_int_equal(calls_seen, 1);
}

static void without_memory_nothing_is_started(void **state)
{
    blz_trace_options options = with_memory(small);
    int rc;

    (void)state;
    for (int n = 1; n <= 2; n++) {
        memory_fail_at(the_memory(), n, false);
        assert_int_equal(blz_trace_start(&options), -ENOMEM);
        assert_int_equal(memory_blocks(the_memory()), 0);
    }
    memory_fail_at(the_memory(), 3, false);
    got.len = 0;
    rc = blz_trace_start(&options);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(rc, 0);
    stop();
}

static void a_forked_child_has_no_trace(void **state)
{
    int status = -1;
    pid_t pid;

    (void)state;
    start();
    blz_trace_mark("parent");
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        blz_trace_mark("child");
        _exit(blz_trace_stop(NULL) == -EOWNERDEAD && !blz_trace_is_on() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    stop();
    assert_int_equal(count("parent"), 1);
    assert_int_equal(count("child"), 0);
}

static void a_trace_is_a_file_for_its_owner_alone(void **state)
{
    char path[] = "/tmp/blitz-trace-XXXXXX", file[64];
    mode_t before = umask(0);
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/trace", path);
    assert_int_equal(blz_trace_start(&(blz_trace_options){.path = file}), 0);
    assert_int_equal(blz_trace_stop(NULL), 0);
    umask(before);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(path), 0);
}

static void a_trace_is_not_written_through_a_link(void **state)
{
    char path[] = "/tmp/blitz-trace-XXXXXX", file[64];
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/trace", path);
    assert_int_equal(symlink("elsewhere", file), 0);
    assert_int_equal(blz_trace_start(&(blz_trace_options){.path = file}), -ELOOP);
    assert_int_equal(unlink(file), 0);
    snprintf(file, sizeof file, "%s/elsewhere", path);
    assert_int_equal(stat(file, &st), -1);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_poll_has_its_begin_and_its_end),
        TEST(a_wake_up_is_an_arrow_to_the_poll_that_answers),
        TEST(a_wake_up_without_a_poll_has_no_arrow),
        TEST(a_poll_that_a_trace_ends_in_is_cut_and_not_ended_in_the_next),
        TEST(a_given_name_and_a_mark_may_contain_anything),
        TEST(a_long_name_is_cut),
        TEST(spans_end_in_the_trace_that_they_began_in),
        TEST(a_span_that_is_open_when_the_trace_ends_is_cut),
        TEST(a_span_has_its_name_at_both_ends_whichever_comes_first),
        TEST(a_span_whose_place_is_taken_is_dropped_as_a_whole),
        TEST(a_full_ring_drops_events_and_says_how_many),
        TEST(a_poll_whose_begin_was_recorded_has_an_end_in_a_full_ring_too),
        TEST(threads_without_a_ring_are_counted_as_dropped),
        TEST(tracing_begins_and_ends_while_workers_run),
        TEST(a_task_may_start_and_stop_a_trace),
        TEST(a_server_is_traced_to_its_end),
        TEST(a_trace_that_reaches_its_limit_says_so_and_is_whole),
        TEST(a_limit_that_is_reached_when_the_trace_is_stopped_is_kept),
        TEST(a_trace_below_its_limit_has_no_note),
        TEST(after_a_trace_that_reached_its_limit_there_can_be_another),
        TEST(the_limit_is_64_mebibytes_if_nothing_is_said),
        TEST(of_sampled_tasks_everything_is_recorded_and_of_others_nothing),
        TEST(one_task_in_one_is_every_task),
        TEST(a_sampled_trace_has_nothing_that_belongs_to_no_task),
        TEST(the_environment_names_a_file_and_options),
        TEST(what_makes_no_sense_is_refused),
        TEST(there_is_one_trace_at_a_time),
        TEST(an_error_of_writing_is_what_stop_gives),
        TEST(without_memory_nothing_is_started),
        TEST(a_forked_child_has_no_trace),
        TEST(a_trace_is_a_file_for_its_owner_alone),
        TEST(a_trace_is_not_written_through_a_link),
    };
    return RUN_TESTS(tests);
}
