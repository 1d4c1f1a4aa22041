/* SPDX-License-Identifier: Apache-2.0 */
/* The task dump: a line for each live task, with its name, state and async backtrace. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static blz_rt *rt;

/* ---- reading a dump ---- */

enum { MAX_LINES = 300 };

static struct {
    char lines[MAX_LINES][1024];
    int count;
} dump;

static void keep_line(const char *line, void *arg)
{
    (void)arg;
    if (dump.count < MAX_LINES)
        snprintf(dump.lines[dump.count], sizeof dump.lines[0], "%s", line);
    dump.count++;
}

static void take_dump(void)
{
    dump.count = 0;
    assert_int_equal(blz_task_dump(rt, keep_line, NULL), 0);
}

/* The one line that mentions the text. */
static const char *line_with(const char *text)
{
    const char *found = NULL;

    for (int i = 0; i < dump.count && i < MAX_LINES; i++) {
        if (!strstr(dump.lines[i], text))
            continue;
        assert_null(found);
        found = dump.lines[i];
    }
    if (!found)
        fail_msg("no line with %s", text);
    return found;
}

static void assert_contains(const char *line, const char *text)
{
    if (!strstr(line, text))
        fail_msg("\"%s\" is not in: %s", text, line);
}

/* ---- what a line says ---- */

struct inner {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

struct outer {
    BLZ_FRAME;
    int64_t rc;
    struct inner inner;
};

enum { INNER_LINE = __LINE__ + 5, OUTER_LINE = __LINE__ + 11, SPAWN_LINE = __LINE__ + 22 };

BLZ_ASYNC(inner)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op)); /* INNER_LINE */
    BLZ_END(self->rc);
}
BLZ_ASYNC(outer)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->inner, inner); /* OUTER_LINE */
    BLZ_END(self->rc);
}

static void a_waiting_task_shows_its_backtrace_with_lines(void **state)
{
    char backtrace[200], site[100], id[40];
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, outer), 0); /* SPAWN_LINE */
    turn_all(rt);
    take_dump();
    assert_int_equal(dump.count, 1);
    snprintf(id, sizeof id, "task %llu \"outer\" waiting ",
             (unsigned long long)blz_task_id(handle.task));
    assert_int_equal(strncmp(dump.lines[0], id, strlen(id)), 0);
    snprintf(site, sizeof site, ", spawned at dump_test.c:%d", SPAWN_LINE);
    assert_contains(dump.lines[0], site);
    snprintf(backtrace, sizeof backtrace,
             ": outer at dump_test.c:%d > inner at dump_test.c:%d > pending", OUTER_LINE,
             INNER_LINE);
    assert_contains(dump.lines[0], backtrace);
    assert_contains(dump.lines[0], ", 1 polls, ");
    assert_contains(dump.lines[0], " busy");
    blz_handle_detach(&handle);
    free_rt(rt);
}

/* ---- combinators ---- */

struct chooser {
    BLZ_FRAME;
    int64_t rc;
    blz_future ops[3];
    struct inner inner;
    blz_select_op select;
    blz_join_op join;
};

/* Of the join's branches the first ends at once. */
static blz_future *choose(struct chooser *self)
{
    return blz_select(&self->select, BLZ_FUTURE(self->inner, inner),
                      blz_join(&self->join, blz_ready(&self->ops[0], 0), blz_pending(&self->ops[1]),
                               blz_pending(&self->ops[2])));
}

enum { CHOOSER_LINE = __LINE__ + 5 };

BLZ_ASYNC(chooser)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, choose(self)); /* CHOOSER_LINE */
    BLZ_END(self->rc);
}

static void branches_are_shown_as_a_tree_without_those_that_have_ended(void **state)
{
    char tree[300];

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, chooser), 0);
    turn_all(rt);
    take_dump();
    assert_int_equal(dump.count, 1);
    snprintf(tree, sizeof tree,
             ": chooser at dump_test.c:%d > select { 0: inner at dump_test.c:%d > pending "
             "| 1: join { 1: pending | 2: pending } }",
             CHOOSER_LINE, INNER_LINE);
    assert_contains(dump.lines[0], tree);
    assert_string_equal(strstr(dump.lines[0], ": chooser at"), tree);
    free_rt(rt);
}

struct deep {
    BLZ_FRAME;
    int left;
    int64_t rc;
    blz_future op;
    blz_box box;
};

BLZ_ASYNC(deep)
{
    BLZ_BEGIN;
    if (self->left > 0)
        BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, deep, .left = self->left - 1));
    else
        BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_END(self->rc);
}

static void of_a_deep_chain_the_outermost_and_the_innermost_are_shown(void **state)
{
    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, deep, .left = 49), 0);
    turn_all(rt);
    take_dump();
    assert_int_equal(dump.count, 1);
    assert_contains(dump.lines[0], " > (76 more) > "); /* of 50 functions, 49 boxes and the leaf */
    assert_contains(dump.lines[0], " > pending");
    free_rt(rt);
}

struct is_notified {
    BLZ_FRAME;
    blz_notify *notify;
    int64_t rc;
    blz_notify_op op;
};

BLZ_ASYNC(is_notified)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_notify_await(&self->op, self->notify));
    BLZ_END(self->rc);
}

static void a_queued_task_is_shown_as_queued(void **state)
{
    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    take_dump();
    assert_int_equal(dump.count, 1);
    assert_contains(dump.lines[0], "\"give\" queued");
    assert_contains(dump.lines[0], ", 0 polls, ");
    free_rt(rt);
}

static void a_woken_task_is_queued_until_it_is_polled(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, is_notified, .notify = &notify), 0);
    turn_all(rt);
    take_dump();
    assert_contains(dump.lines[0], "\"is_notified\" waiting");
    blz_notify_one(&notify);
    take_dump();
    assert_contains(dump.lines[0], "\"is_notified\" queued");
    turn_all(rt);
    take_dump();
    assert_int_equal(dump.count, 0);
    free_rt(rt);
}

static int64_t dump_from_inside(void *arg)
{
    (void)arg;
    dump.count = 0;
    return blz_task_dump(rt, keep_line, NULL);
}

static void a_task_that_dumps_shows_itself_as_running(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, calls, .fn = dump_from_inside), 0);
    turn_all(rt);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 0);
    assert_int_equal(dump.count, 2);
    assert_contains(line_with("\"calls\""), "running");
    assert_contains(line_with("\"sleeps\""), "waiting");
    free_rt(rt);
}

struct busy {
    BLZ_FRAME;
    struct event *started;
    struct event *enough;
};

BLZ_ASYNC(busy)
{
    BLZ_BEGIN;
    event_post(self->started);
    event_wait(self->enough, 1);
    BLZ_END(0);
}

static void a_task_in_a_poll_is_shown_as_running_to_other_threads(void **state)
{
    struct event started = EVENT_INIT, enough = EVENT_INIT;
    blz_handle handle;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, busy, .started = &started, .enough = &enough), 0);
    event_wait(&started, 1);
    take_dump();
    assert_int_equal(dump.count, 1);
    assert_contains(dump.lines[0], "\"busy\" running");
    event_post(&enough);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(rt);
}

struct shielded {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    struct gate_wait op;
};

BLZ_ASYNC(shielded)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->rc, gate_enter(&self->op, self->gate));
    BLZ_END(self->rc);
}

static void a_cancelled_task_that_still_waits_is_shown_so(void **state)
{
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, shielded, .gate = &gate), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    take_dump();
    assert_contains(line_with("\"shielded\""), "cancelled, waiting");
    assert_contains(line_with("\"shielded\""), "> gate");
    gate_open(&gate, 0);
    turn_all(rt);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void names_are_shown(void **state)
{
    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .name = "the long-lived one"}),
                                    sleeps),
                     0);
    turn_all(rt);
    take_dump();
    assert_contains(line_with("\"the long-lived one\""), "waiting");
    assert_contains(line_with("\"the long-lived one\""), ": sleeps at frames.c:");
    free_rt(rt);
}

struct by_hand {
    blz_future future;
    blz_future pending;
};

static blz_poll by_hand_poll(blz_future *future, blz_cx *cx)
{
    if (!future->child)
        future->child = blz_pending(&((struct by_hand *)future)->pending);
    if (blz_is_pending(future->child->ops->poll(future->child, cx)))
        return BLZ_PENDING;
    return blz_future_done(future, future->child->result);
}

static void a_hand_written_future_has_no_lines(void **state)
{
    static const blz_future_ops ops = {.name = "by_hand", .poll = by_hand_poll};
    struct by_hand frame = {.future.ops = &ops};

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(blz_spawn(&frame, sizeof frame, &(blz_spawn_args){.rt = rt}), 0);
    turn_all(rt);
    take_dump();
    assert_int_equal(dump.count, 1);
    assert_contains(dump.lines[0], "\"by_hand\" waiting");
    assert_contains(dump.lines[0], ": by_hand > pending");
    assert_null(strstr(dump.lines[0], " at "));
    free_rt(rt);
}

/* ---- which tasks ---- */

static void ended_tasks_are_not_shown(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    take_dump();
    assert_int_equal(dump.count, 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), 0);
    turn_all(rt);
    take_dump();
    assert_int_equal(dump.count, 0);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void all_tasks_of_all_heaps_are_shown(void **state)
{
    enum { TASKS = 20000 };
    struct event started = EVENT_INIT;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps, .started = &started), 0);
    event_wait(&started, TASKS);
    take_dump();
    assert_int_equal(dump.count, TASKS);
    free_rt(rt);
}

/* ---- where to ---- */

static void a_dump_to_a_descriptor_has_newlines(void **state)
{
    char text[4096];
    ssize_t n;
    int fds[2], lines = 0;

    (void)state;
    rt = new_embedded_rt();
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    turn_all(rt);
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(blz_task_dump_fd(rt, fds[1]), 0);
    n = read(fds[0], text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    for (char *line = text; (line = strchr(line, '\n')); line++)
        lines++;
    assert_int_equal(lines, 3);
    assert_int_equal(text[n - 1], '\n');
    close(fds[0]);
    close(fds[1]);
    free_rt(rt);
}

/* ---- while they run ---- */

enum { PAIRS = 20, STROKES = 300 };

struct pair {
    blz_oneshot there[STROKES], back[STROKES];
};

struct player {
    BLZ_FRAME;
    blz_oneshot *mine, *others;
    bool first;
    int i;
    int64_t rc, ball;
    blz_oneshot_op wait;
};

/* Plays a ball to the other side and back: one lost wakeup and it hangs. */
BLZ_ASYNC(player)
{
    BLZ_BEGIN;
    for (; self->i < STROKES; self->i++) {
        if (self->first)
            check(blz_oneshot_send(&self->others[self->i], self->i) == 0);
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->mine[self->i], &self->ball));
        check(self->rc == 0 && self->ball == self->i);
        if (!self->first)
            check(blz_oneshot_send(&self->others[self->i], self->i) == 0);
        if (self->i % 50 == 0)
            check(blz_task_set_name(self->first ? "server" : "receiver") == 0);
    }
    BLZ_END(0);
}

static void no_wakeup_is_lost_while_tasks_are_read(void **state)
{
    static struct pair pairs[PAIRS];
    blz_handle handles[2 * PAIRS];
    bool done = false;
    int dumps = 0;

    (void)state;
    for (int p = 0; p < PAIRS; p++)
        for (int i = 0; i < STROKES; i++) {
            blz_oneshot_init(&pairs[p].there[i]);
            blz_oneshot_init(&pairs[p].back[i]);
        }
    rt = new_rt(&(blz_options){.workers = 2});
    for (int p = 0; p < PAIRS; p++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[2 * p], player, .mine = pairs[p].back,
                                      .others = pairs[p].there, .first = true),
                         0);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[2 * p + 1], player, .mine = pairs[p].there,
                                      .others = pairs[p].back),
                         0);
    }
    for (; !done || dumps < 20; dumps++) {
        take_dump();
        assert_true(dump.count <= 2 * PAIRS);
        done = true;
        for (int i = 0; i < 2 * PAIRS; i++)
            done &= blz_handle_done(&handles[i]);
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_waiting_task_shows_its_backtrace_with_lines),
        TEST(branches_are_shown_as_a_tree_without_those_that_have_ended),
        TEST(of_a_deep_chain_the_outermost_and_the_innermost_are_shown),
        TEST(a_queued_task_is_shown_as_queued),
        TEST(a_woken_task_is_queued_until_it_is_polled),
        TEST(a_task_that_dumps_shows_itself_as_running),
        TEST(a_task_in_a_poll_is_shown_as_running_to_other_threads),
        TEST(a_cancelled_task_that_still_waits_is_shown_so),
        TEST(names_are_shown),
        TEST(a_hand_written_future_has_no_lines),
        TEST(ended_tasks_are_not_shown),
        TEST(all_tasks_of_all_heaps_are_shown),
        TEST(a_dump_to_a_descriptor_has_newlines),
        TEST(no_wakeup_is_lost_while_tasks_are_read),
    };
    return RUN_TESTS(tests);
}
