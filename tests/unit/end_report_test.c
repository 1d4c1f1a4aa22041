/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime says on stderr at its end: nothing if all is well, or one line. Each case is a
 * program of its own, whose stderr is read: this one, started with the case's name.
 */
#include "harness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- tasks ---- */

/* It has a waker, and never uses it. */
struct never_op {
    blz_future future;
    blz_waker waker;
};

static blz_poll never_ready_poll(blz_future *future, blz_cx *cx)
{
    struct never_op *op = (struct never_op *)(void *)future;

    if (!op->waker.ops)
        op->waker = blz_cx_waker(cx);
    return BLZ_PENDING;
}

static void never_ready_cancel(blz_future *future, blz_cx *cx)
{
    (void)future;
    (void)cx;
}

/* Does not listen to its cancellation. */
static blz_future *never_ready(struct never_op *op)
{
    static const blz_future_ops ops = {.name = "never_ready",
                                       .poll = never_ready_poll,
                                       .cancel = never_ready_cancel};

    *op = (struct never_op){.future = {.ops = &ops}};
    return &op->future;
}

struct stubborn {
    BLZ_FRAME;
    int64_t rc;
    struct never_op op;
};

enum { STUBBORN_LINE = __LINE__ + 5 };

BLZ_ASYNC(stubborn)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, never_ready(&self->op));
    BLZ_END(self->rc);
}

struct refuses {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

enum { REFUSES_LINE = __LINE__ + 7 };

/* Every await says that it is cancelled, and it goes on. */
BLZ_ASYNC(refuses)
{
    BLZ_BEGIN;
    for (;;)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

struct leaves {
    BLZ_FRAME;
    int stubborn, pipes; /* how many of them */
    bool closes;
    int64_t rc;
    blz_future op;
    blz_pipe in, out;
};

/* The root: ends, and leaves something behind. */
BLZ_ASYNC(leaves)
{
    BLZ_BEGIN;
    for (int i = 0; i < self->stubborn; i++)
        check(BLZ_SPAWN(stubborn) == 0);
    for (int i = 0; i < self->pipes; i++)
        check(blz_pipe_new(&self->in, &self->out, NULL) == 0);
    if (self->closes) {
        check(blz_pipe_close(&self->in) == 0);
        check(blz_pipe_close(&self->out) == 0);
    }
    BLZ_AWAIT(self->rc, blz_yield(&self->op)); /* they begin to wait */
    BLZ_END(0);
}

/* ---- the cases ---- */

static blz_options options(void)
{
    return (blz_options){.workers = 1, .name = "example", .shutdown_ns = 1};
}

static int all_is_well(void)
{
    blz_options given = options();

    given.shutdown_ns = 0; /* as long as it takes */
    return BLZ_RUN_WITH(&given, leaves, .pipes = 1, .closes = true) == 0 ? 0 : 1;
}

static void count_waiting(const char *line, void *arg)
{
    *(int *)arg += strstr(line, "waiting") != NULL;
}

static void await_waiting(blz_rt *rt, int count)
{
    int waiting = 0;

    for (; waiting != count; sched_yield()) {
        waiting = 0;
        check(blz_task_dump(rt, count_waiting, &waiting) == 0);
    }
}

static int leaves_tasks(void)
{
    blz_options given = options();
    blz_rt *rt;

    check(blz_rt_new(&rt, &given) == 0);
    for (int i = 0; i < 2; i++)
        check(BLZ_SPAWN_ON(rt, NULL, stubborn) == 0);
    await_waiting(rt, 2);
    check(blz_rt_shutdown(rt, 0) == -ETIMEDOUT);
    await_waiting(rt, 2); /* now they have been told for the last time */
    return blz_rt_free(rt) == -ETIMEDOUT ? 0 : 1;
}

static int leaves_tasks_quietly(void)
{
    blz_options given = options();

    given.quiet_end = true;
    return BLZ_RUN_WITH(&given, leaves, .stubborn = 2) == -ETIMEDOUT ? 0 : 1;
}

static int leaves_handles(void)
{
    blz_options given = options();

    given.shutdown_ns = 0;
    return BLZ_RUN_WITH(&given, leaves, .pipes = 3) == 0 ? 0 : 1;
}

static int leaves_handles_quietly(void)
{
    blz_options given = options();

    given.shutdown_ns = 0;
    given.quiet_end = true;
    return BLZ_RUN_WITH(&given, leaves, .pipes = 3) == 0 ? 0 : 1;
}

static struct event refused = EVENT_INIT;

static void note_refused(const blz_stuck *stuck, void *arg)
{
    (void)arg;
    if (stuck->refused)
        event_post(&refused);
}

static int leaves_one_that_refuses(void)
{
    blz_options given = options();
    blz_handle handle;
    blz_rt *rt;

    given.on_stuck = note_refused;
    check(blz_rt_new(&rt, &given) == 0);
    check(BLZ_SPAWN_ON(rt, &handle, refuses) == 0);
    blz_handle_cancel(&handle);
    event_wait(&refused, 1);
    return blz_rt_free(rt) == -ETIMEDOUT ? 0 : 1;
}

static struct event begun = EVENT_INIT, never = EVENT_INIT;

static int64_t block_for_ever(void *arg)
{
    event_post(&begun);
    event_wait(arg, 1);
    return 0;
}

static int leaves_a_blocking_call(void)
{
    blz_options given = options();
    blz_rt *rt;

    check(blz_rt_new(&rt, &given) == 0);
    check(blz_blocking_spawn(rt, block_for_ever, &never, NULL) == 0);
    event_wait(&begun, 1);
    return blz_rt_free(rt) == -ETIMEDOUT ? 0 : 1;
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    {"well", all_is_well},
    {"tasks", leaves_tasks},
    {"quiet tasks", leaves_tasks_quietly},
    {"handles", leaves_handles},
    {"quiet handles", leaves_handles_quietly},
    {"refuses", leaves_one_that_refuses},
    {"blocking", leaves_a_blocking_call},
};

/* Not by way of exit: what did not end is still there, and the sanitizers would report it. */
static _Noreturn void run_case(const char *name)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0)
            _Exit(cases[i].run());
    _Exit(99);
}

/* ---- the tests ---- */

static char said[4096];

/* Runs a case, and gives the line that it says. */
static const char *line_of(const char *name)
{
    int status = run_self(name, said, sizeof said);
    char *end = strchr(said, '\n');

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    if (end) {
        assert_int_equal(end[1], '\0'); /* one line, not two */
        *end = '\0';
    }
    return said;
}

static void expect_words(const char *line, const char *words)
{
    if (!strstr(line, words))
        fail_msg("no \"%s\" in \"%s\"", words, line);
}

static void a_runtime_that_ends_well_says_nothing(void **state)
{
    (void)state;
    assert_string_equal(line_of("well"), "");
}

static void tasks_that_did_not_end_are_named_with_their_line(void **state)
{
    const char *line = line_of("tasks");
    char place[128];

    (void)state;
    snprintf(place, sizeof place, "stubborn at end_report_test.c:%d > never_ready", STUBBORN_LINE);
    expect_words(line, "blitz: at the end of the runtime \"example\": 2 tasks did not end: task ");
    expect_words(line, place);
}

static void a_task_that_refuses_its_cancellation_is_named_with_its_line(void **state)
{
    const char *line = line_of("refuses");
    char place[128];

    (void)state;
    snprintf(place, sizeof place, "ignores its cancellation in refuses at end_report_test.c:%d",
             REFUSES_LINE);
    expect_words(line, "1 task did not end: task ");
    expect_words(line, place);
}

static void handles_that_were_never_closed_are_counted(void **state)
{
    (void)state;
    assert_string_equal(line_of("handles"), "blitz: at the end of the runtime \"example\": 6 "
                                            "handles of sockets, files or pipes were never closed");
}

static void a_blocking_call_that_did_not_return_is_told(void **state)
{
    (void)state;
    assert_string_equal(line_of("blocking"), "blitz: at the end of the runtime \"example\": calls "
                                             "on the blocking pool did not return");
}

static void an_option_keeps_it_quiet(void **state)
{
    (void)state;
    assert_string_equal(line_of("quiet tasks"), "");
    assert_string_equal(line_of("quiet handles"), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runtime_that_ends_well_says_nothing),
        TEST(tasks_that_did_not_end_are_named_with_their_line),
        TEST(a_task_that_refuses_its_cancellation_is_named_with_its_line),
        TEST(handles_that_were_never_closed_are_counted),
        TEST(a_blocking_call_that_did_not_return_is_told),
        TEST(an_option_keeps_it_quiet),
    };

    if (argc > 1)
        run_case(argv[1]);
    return RUN_TESTS(tests);
}
