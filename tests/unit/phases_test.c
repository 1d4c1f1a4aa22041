/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown in phases: what each phase waits for, deadlines, hurry, what guards do to what they are
 * around, reports. On a clock of the test's own, so that a deadline passes when the test says so.
 */
#include "clock_rt.h"
#include "io_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 64, LINE = 400 };

/* What the shutdown has said. */
static struct {
    int phases[16], nr_phases;
    char lines[LINES][LINE];
    int nr_lines;
} said;

static void note_phase(void *arg, const blz_shutdown_report *report)
{
    check(arg == &said && said.nr_phases < 16);
    said.phases[said.nr_phases++] = report->phase;
}

static void note_line(void *arg, const char *line)
{
    check(arg == &said);
    if (said.nr_lines < LINES)
        snprintf(said.lines[said.nr_lines++], LINE, "%s", line);
}

static bool has_said(const char *text)
{
    for (int i = 0; i < said.nr_lines; i++)
        if (strstr(said.lines[i], text))
            return true;
    return false;
}

static void expect_phases(int count, const int *phases)
{
    assert_int_equal(said.nr_phases, count);
    assert_memory_equal(said.phases, phases, (size_t)count * sizeof phases[0]);
}

#define EXPECT_PHASES(...) \
    expect_phases((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static blz_shutdown *new_shutdown(blz_shutdown_options options)
{
    blz_shutdown *s;

    said.nr_phases = said.nr_lines = 0;
    options.on_phase = note_phase;
    options.write = note_line;
    options.arg = &said;
    options.allocator = test_memory();
    assert_int_equal(blz_shutdown_new(&s, &options), 0);
    return s;
}

static blz_shutdown *new_quiet_shutdown(void)
{
    return new_shutdown((blz_shutdown_options){.no_signals = true});
}

static blz_shutdown_report report_of(blz_shutdown *s)
{
    blz_shutdown_report report;

    blz_shutdown_get_report(s, &report);
    return report;
}

static blz_guard working(blz_shutdown *s)
{
    blz_guard guard;

    check(blz_guard_work(&guard, s) == 0);
    return guard;
}

static blz_guard accepting(blz_shutdown *s)
{
    blz_guard guard;

    check(blz_guard_accept(&guard, s) == 0);
    return guard;
}

/* ---- tasks ---- */

struct runs {
    BLZ_FRAME;
    blz_shutdown *shutdown;
    int64_t rc;
    blz_shutdown_op op;
};

BLZ_ASYNC(runs)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_shutdown_run(&self->op, self->shutdown));
    BLZ_END(self->rc);
}

static blz_handle run_it(blz_rt *rt, blz_shutdown *s)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, runs, .shutdown = s), 0);
    turn_all(rt);
    return handle;
}

/* Sleeps for an hour, under as many shields as that. */
struct naps {
    BLZ_FRAME;
    bool shielded;
    int64_t rc;
    blz_sleep_op nap;
};

BLZ_ASYNC(naps)
{
    BLZ_BEGIN;
    if (self->shielded)
        BLZ_AWAIT_SHIELDED(self->rc, blz_sleep(&self->nap, BLZ_HOUR));
    else
        BLZ_AWAIT(self->rc, blz_sleep(&self->nap, BLZ_HOUR));
    BLZ_END(self->rc < 0 ? self->rc : 7);
}

struct session {
    BLZ_FRAME;
    blz_guard guard;
    bool shielded;
    int64_t rc;
    struct naps naps;
    blz_guard_op op;
};

BLZ_ASYNC(session)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      BLZ_FUTURE(self->naps, naps, .shielded = self->shielded)));
    BLZ_END(self->rc);
}

static blz_handle session(blz_rt *rt, blz_guard guard, bool shielded)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, session, .guard = guard, .shielded = shielded), 0);
    turn_all(rt);
    return handle;
}

/* ---- phases ---- */

static void with_nobody_inside_it_is_over_at_once(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle run = run_it(rt, s);

    (void)state;
    assert_false(blz_handle_done(&run));
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_RUNNING);
    blz_shutdown_begin(s);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    EXPECT_PHASES(BLZ_SHUTDOWN_STOPPING, BLZ_SHUTDOWN_DRAINING, BLZ_SHUTDOWN_ENDED);
    for (int i = BLZ_SHUTDOWN_STOPPING; i < BLZ_SHUTDOWN_ENDED; i++)
        assert_true(blz_token_is_cancelled(blz_shutdown_token(s, i)));
    assert_null(blz_shutdown_token(s, BLZ_SHUTDOWN_RUNNING));
    assert_null(blz_shutdown_token(s, BLZ_SHUTDOWN_ENDED));
    assert_int_equal(said.nr_lines, 0);
    run = run_it(rt, s); /* it stays so */
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void it_may_begin_before_anybody_runs_it(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();

    (void)state;
    blz_shutdown_begin(s);
    blz_shutdown_begin(s);
    blz_handle run = run_it(rt, s);
    assert_int_equal(result_of(&run), 0);
    assert_int_equal(report_of(s).requests, 2);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void acceptors_end_first(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard slow = accepting(s), work = working(s), late;
    blz_handle acceptor = session(rt, accepting(s), false), run = run_it(rt, s);

    (void)state;
    assert_int_equal(report_of(s).accepting, 2);
    blz_shutdown_begin(s);
    turn_all(rt);
    assert_int_equal(result_of(&acceptor), -ECANCELED); /* it was told to */
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_STOPPING);
    assert_int_equal(report_of(s).accepting, 1);
    assert_int_equal(blz_guard_accept(&late, s), -ESHUTDOWN);
    assert_null(late.shutdown);
    late = working(s); /* what has been accepted may begin */
    blz_guard_leave(&slow);
    turn_all(rt);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    blz_guard_leave(&work);
    blz_guard_leave(&late);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void draining_lets_work_finish(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard work = working(s), more, late;
    blz_handle run = run_it(rt, s);

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    assert_int_equal(blz_guard_work(&late, s), -ESHUTDOWN);
    assert_int_equal(blz_guard_clone(&late, &late), -ESHUTDOWN);
    blz_guard_leave(&late);
    assert_int_equal(blz_guard_clone(&more, &work), 0); /* it takes two to finish this */
    blz_guard_leave(&work);
    blz_guard_leave(&work); /* counts nobody any more */
    advance(rt, 20 * BLZ_SEC);
    assert_false(blz_handle_done(&run));
    assert_false(blz_token_is_cancelled(blz_shutdown_token(s, BLZ_SHUTDOWN_CANCELLING)));
    blz_guard_leave(&more);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_DRAINING].end, BLZ_SHUTDOWN_DONE);
    assert_true(report_of(s).steps[BLZ_SHUTDOWN_DRAINING].ns == 20 * BLZ_SEC);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_CANCELLING].end, BLZ_SHUTDOWN_SKIPPED);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void cancelling_cancels_what_is_guarded(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle work = session(rt, working(s), false), run = run_it(rt, s);

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    advance(rt, 30 * BLZ_SEC - MS);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    assert_false(blz_handle_done(&work));
    advance(rt, 2 * MS);
    assert_int_equal(result_of(&work), -ECANCELED);
    assert_int_equal(result_of(&run), 0);
    EXPECT_PHASES(BLZ_SHUTDOWN_STOPPING, BLZ_SHUTDOWN_DRAINING, BLZ_SHUTDOWN_CANCELLING,
                  BLZ_SHUTDOWN_ENDED);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_DRAINING].end, BLZ_SHUTDOWN_LATE);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_DRAINING].working, 1);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_CANCELLING].end, BLZ_SHUTDOWN_DONE);
    assert_true(has_said("draining was not done after 30.0 s: 1 at work, 0 accepting"));
    assert_true(has_said("guard_run > token_guard > naps")); /* the backtrace of the session */
    assert_false(has_said("cancelling"));
    blz_shutdown_free(s);
    free_rt(rt);
}

static void forcing_overrides_shields(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle work = session(rt, working(s), true), run = run_it(rt, s);

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    advance(rt, 31 * BLZ_SEC);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_CANCELLING);
    assert_false(blz_handle_done(&work));
    advance(rt, 10 * BLZ_SEC);
    assert_int_equal(result_of(&work), -ECANCELED);
    assert_int_equal(result_of(&run), 0);
    EXPECT_PHASES(BLZ_SHUTDOWN_STOPPING, BLZ_SHUTDOWN_DRAINING, BLZ_SHUTDOWN_CANCELLING,
                  BLZ_SHUTDOWN_FORCING, BLZ_SHUTDOWN_ENDED);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_CANCELLING].end, BLZ_SHUTDOWN_LATE);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_FORCING].end, BLZ_SHUTDOWN_DONE);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void what_is_stuck_is_reported_and_left_behind(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_shutdown((blz_shutdown_options){.no_signals = true,
                                                          .stop_ns = MS,
                                                          .drain_ns = 2 * MS,
                                                          .cancel_ns = 3 * MS,
                                                          .force_ns = MS});
    blz_guard stuck = working(s), deaf = accepting(s);
    blz_handle run = run_it(rt, s);
    blz_shutdown_report report;

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    for (int i = 0; i < 10; i++)
        advance(rt, MS);
    assert_int_equal(result_of(&run), -ETIMEDOUT);
    report = report_of(s);
    assert_int_equal(report.phase, BLZ_SHUTDOWN_ENDED);
    for (int i = BLZ_SHUTDOWN_STOPPING; i < BLZ_SHUTDOWN_ENDED; i++) {
        assert_int_equal(report.steps[i].end, BLZ_SHUTDOWN_LATE);
        assert_int_equal(report.steps[i].working, 1);
        assert_int_equal(report.steps[i].accepting, 1);
    }
    assert_true(has_said("stopping was not done after 0.0 s: 1 at work, 1 accepting"));
    assert_true(has_said("forcing was not done"));
    assert_true(has_said("\"runs\" running"));
    run = run_it(rt, s); /* it stays so */
    assert_int_equal(result_of(&run), -ETIMEDOUT);
    blz_shutdown_free(s); /* the memory goes with the last guard */
    free_rt(rt);
    blz_guard_leave(&deaf);
    blz_guard_leave(&stuck);
}

/* ---- hurry ---- */

static void each_hurry_ends_a_phase(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard stuck = working(s);
    blz_handle run = run_it(rt, s);

    (void)state;
    blz_shutdown_hurry(s); /* the first begins it */
    turn_all(rt);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    blz_shutdown_begin(s); /* this does not hurry */
    turn_all(rt);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    blz_shutdown_hurry(s);
    blz_shutdown_hurry(s); /* in the same breath: one */
    turn_all(rt);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_CANCELLING);
    blz_shutdown_hurry(s);
    turn_all(rt);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_FORCING);
    blz_shutdown_hurry(s);
    turn_all(rt);
    assert_int_equal(result_of(&run), -ETIMEDOUT);
    assert_int_equal(report_of(s).steps[BLZ_SHUTDOWN_FORCING].end, BLZ_SHUTDOWN_HURRIED);
    assert_int_equal(report_of(s).requests, 6);
    assert_true(has_said("in a hurry"));
    blz_shutdown_hurry(s); /* too late: nothing */
    blz_guard_leave(&stuck);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void turn_until(blz_rt *rt, const blz_shutdown *s, int phase)
{
    while (blz_shutdown_phase(s) != phase)
        turn_all(rt); /* the herald is on its way */
}

static void signals_begin_and_hurry(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_shutdown((blz_shutdown_options){0});
    blz_guard stuck = working(s);
    blz_handle run = run_it(rt, s);

    (void)state;
    raise(SIGTERM);
    turn_until(rt, s, BLZ_SHUTDOWN_DRAINING);
    assert_int_equal(report_of(s).signal, SIGTERM);
    assert_int_equal(report_of(s).pid, getpid());
    raise(SIGINT);
    turn_until(rt, s, BLZ_SHUTDOWN_CANCELLING);
    raise(SIGINT);
    turn_until(rt, s, BLZ_SHUTDOWN_FORCING);
    raise(SIGTERM);
    turn_until(rt, s, BLZ_SHUTDOWN_ENDED);
    turn_all(rt);
    assert_int_equal(result_of(&run), -ETIMEDOUT);
    assert_int_equal(report_of(s).signal, SIGTERM);
    assert_int_equal(report_of(s).requests, 4);
    blz_guard_leave(&stuck);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void a_signal_before_the_run_is_not_lost(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_shutdown((blz_shutdown_options){.signals = {SIGUSR1, SIGUSR2}});

    (void)state;
    raise(SIGUSR2);
    raise(SIGUSR2); /* in the same breath: one */
    raise(SIGUSR1);
    blz_guard work = working(s);
    blz_handle run = run_it(rt, s);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    blz_guard_leave(&work);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static int nr_own; /* atomic */

static void count_own(int signal)
{
    (void)signal;
    __atomic_fetch_add(&nr_own, 1, __ATOMIC_RELAXED);
}

static void a_signal_that_nobody_has_answered_is_raised_again(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s;
    blz_handle run;

    (void)state;
    signal(SIGUSR1, count_own);
    s = new_shutdown((blz_shutdown_options){.signals = {SIGUSR1}});
    run = run_it(rt, s);
    raise(SIGUSR1);
    turn_until(rt, s, BLZ_SHUTDOWN_ENDED);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    raise(SIGUSR1); /* impatient, and late */
    blz_shutdown_free(s);
    assert_int_equal(__atomic_load_n(&nr_own, __ATOMIC_RELAXED), 0);
    s = new_shutdown((blz_shutdown_options){.signals = {SIGUSR1}});
    raise(SIGUSR1); /* nobody runs it */
    blz_shutdown_free(s);
    while (__atomic_load_n(&nr_own, __ATOMIC_RELAXED) == 0)
        usleep(100); /* any thread may get it */
    assert_int_equal(__atomic_load_n(&nr_own, __ATOMIC_RELAXED), 1);
    signal(SIGUSR1, SIG_DFL);
    free_rt(rt);
}

static void which_signals_is_an_option(void **state)
{
    struct sigaction before, now;
    blz_shutdown *s;

    (void)state;
    sigaction(SIGINT, NULL, &before);
    s = new_shutdown((blz_shutdown_options){.signals = {SIGUSR1}});
    sigaction(SIGINT, NULL, &now);
    assert_true(now.sa_handler == before.sa_handler);
    blz_shutdown_free(s);
    s = new_quiet_shutdown();
    sigaction(SIGINT, NULL, &now);
    assert_true(now.sa_handler == before.sa_handler);
    blz_shutdown_free(s);
    s = new_shutdown((blz_shutdown_options){0});
    sigaction(SIGINT, NULL, &now);
    assert_false(now.sa_handler == before.sa_handler);
    blz_shutdown_free(s);
    sigaction(SIGINT, NULL, &now);
    assert_true(now.sa_handler == before.sa_handler);
    assert_int_equal(blz_shutdown_new(&s, &(blz_shutdown_options){.signals = {SIGUSR1, SIGKILL}}),
                     -EINVAL);
    assert_null(s);
    blz_shutdown_free(s);
    assert_int_equal(blz_shutdown_new(&s, NULL), 0);
    blz_shutdown_free(s);
}

/* ---- the runner ---- */

static void one_runs_it_at_a_time(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle run = run_it(rt, s), second = run_it(rt, s);

    (void)state;
    assert_int_equal(result_of(&second), -EBUSY);
    blz_handle_cancel(&run);
    turn_all(rt);
    assert_int_equal(result_of(&run), -ECANCELED);
    run = run_it(rt, s);
    assert_false(blz_handle_done(&run));
    blz_shutdown_begin(s);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void a_cancelled_run_goes_on_where_it_was(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard work = working(s);
    blz_handle run = run_it(rt, s);

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    advance(rt, 10 * BLZ_SEC);
    blz_handle_cancel(&run);
    turn_all(rt);
    assert_int_equal(result_of(&run), -ECANCELED);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    run = run_it(rt, s);
    advance(rt, 19 * BLZ_SEC);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    advance(rt, 2 * BLZ_SEC); /* its deadline is what it was */
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_CANCELLING);
    blz_guard_leave(&work);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void a_phase_may_have_no_limit(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_shutdown((blz_shutdown_options){.no_signals = true, .drain_ns = -1});
    blz_guard work = working(s);
    blz_handle run = run_it(rt, s);

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    advance(rt, 1000 * BLZ_DAY);
    assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
    blz_guard_leave(&work);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void a_phase_may_be_left_out(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_shutdown((blz_shutdown_options){.no_signals = true,
                                                          .stop_ns = BLZ_NO_PHASE,
                                                          .drain_ns = BLZ_NO_PHASE});
    blz_handle acceptor = session(rt, accepting(s), false), work = session(rt, working(s), false);
    blz_handle run = run_it(rt, s);

    (void)state;
    blz_shutdown_begin(s);
    turn_all(rt);
    assert_int_equal(result_of(&acceptor), -ECANCELED);
    assert_int_equal(result_of(&work), -ECANCELED);
    assert_int_equal(result_of(&run), 0);
    EXPECT_PHASES(BLZ_SHUTDOWN_CANCELLING, BLZ_SHUTDOWN_ENDED);
    assert_int_equal(said.nr_lines, 0);
    blz_shutdown_free(s);
    s = new_shutdown((blz_shutdown_options){.no_signals = true,
                                            .cancel_ns = BLZ_NO_PHASE,
                                            .force_ns = BLZ_NO_PHASE});
    blz_guard stuck = working(s);
    run = run_it(rt, s);
    blz_shutdown_begin(s);
    turn_all(rt);
    advance(rt, 31 * BLZ_SEC); /* the last of its phases */
    assert_int_equal(result_of(&run), -ETIMEDOUT);
    EXPECT_PHASES(BLZ_SHUTDOWN_STOPPING, BLZ_SHUTDOWN_DRAINING, BLZ_SHUTDOWN_ENDED);
    blz_guard_leave(&stuck);
    blz_shutdown_free(s);
    free_rt(rt);
}

/* ---- tokens ---- */

struct awaits {
    BLZ_FRAME;
    blz_token *token;
    int64_t rc;
    blz_token_op op;
};

BLZ_ASYNC(awaits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_token_cancelled(&self->op, self->token));
    BLZ_END(self->rc);
}

static void each_phase_can_be_awaited(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard stuck = working(s);
    blz_handle waiters[BLZ_SHUTDOWN_ENDED], run = run_it(rt, s);

    (void)state;
    for (int i = BLZ_SHUTDOWN_STOPPING; i < BLZ_SHUTDOWN_ENDED; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &waiters[i], awaits, .token = blz_shutdown_token(s, i)),
                         0);
    turn_all(rt);
    for (int i = BLZ_SHUTDOWN_DRAINING; i < BLZ_SHUTDOWN_ENDED; i++) {
        blz_shutdown_hurry(s);
        turn_all(rt);
        for (int k = BLZ_SHUTDOWN_STOPPING; k < BLZ_SHUTDOWN_ENDED; k++)
            assert_true(blz_handle_done(&waiters[k]) == (k <= i));
    }
    for (int i = BLZ_SHUTDOWN_STOPPING; i < BLZ_SHUTDOWN_ENDED; i++)
        assert_int_equal(result_of(&waiters[i]), 0);
    blz_guard_leave(&stuck);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

/* ---- guards around futures ---- */

static void a_guard_leaves_with_what_it_is_around(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle work = session(rt, working(s), false);

    (void)state;
    assert_int_equal(report_of(s).working, 1);
    advance(rt, BLZ_HOUR);
    assert_int_equal(result_of(&work), 7);
    assert_int_equal(report_of(s).working, 0);
    work = session(rt, working(s), true);
    blz_handle_cancel(&work); /* from outside, and shielded */
    turn_all(rt);
    assert_int_equal(report_of(s).working, 1);
    advance(rt, BLZ_HOUR);
    assert_int_equal(result_of(&work), 7);
    work = session(rt, working(s), false);
    blz_handle_cancel(&work);
    turn_all(rt);
    assert_int_equal(result_of(&work), -ECANCELED);
    assert_int_equal(report_of(s).working, 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void in_a_cancelled_task_the_guard_leaves_all_the_same(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard guards[] = {working(s), {NULL, 0}};
    blz_handle work;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &work, session, .guard = guards[i]), 0);
        blz_handle_cancel(&work); /* before it has begun */
        turn_all(rt);
        assert_int_equal(result_of(&work), -ECANCELED);
        assert_int_equal(report_of(s).working, 0);
    }
    blz_shutdown_free(s);
    free_rt(rt);
}

static void without_a_guard_nothing_is_started(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle work = session(rt, (blz_guard){NULL, 0}, false);

    (void)state;
    assert_int_equal(result_of(&work), -ESHUTDOWN);
    free_rt(rt);
}

struct crowd {
    BLZ_FRAME;
    blz_guard guard;
    int64_t rc;
    blz_scope scope;
    blz_scope_wait wait;
    blz_guard_op op;
};

BLZ_ASYNC(crowd)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 5; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, naps, .shielded = false) == 0);
    BLZ_AWAIT(self->rc,
              blz_guard_run(&self->op, &self->guard, blz_scope_join(&self->wait, &self->scope)));
    check(blz_scope_live(&self->scope) == 0);
    BLZ_END(self->rc);
}

static void around_a_scope_all_children_are_cancelled(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle crowd, run = run_it(rt, s);

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &crowd, crowd, .guard = working(s)), 0);
    turn_all(rt);
    blz_shutdown_begin(s);
    turn_all(rt);
    blz_shutdown_hurry(s);
    turn_all(rt);
    assert_int_equal(result_of(&crowd), -ECANCELED);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

/* ---- a server ---- */

struct server {
    blz_shutdown *shutdown;
    blz_listener listener;
    struct event serving, accepted;
};

struct talk {
    BLZ_FRAME;
    blz_tcp conn;
    blz_guard guard;
    int64_t rc;
    blz_io io;
    blz_guard_op op;
    char buf[16];
};

BLZ_ASYNC(talk)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      blz_tcp_read(&self->io, &self->conn, self->buf, 16)));
    blz_tcp_close(&self->conn);
    BLZ_END(self->rc);
}

static int on_conn(void *arg, blz_tcp conn)
{
    struct server *server = arg;
    blz_guard guard;
    int rc = blz_guard_work(&guard, server->shutdown);

    if (rc == 0 && (rc = BLZ_SPAWN(talk, .conn = conn, .guard = guard)) < 0)
        blz_guard_leave(&guard);
    event_post(&server->accepted);
    return rc;
}

struct serve_all {
    BLZ_FRAME;
    struct server *server;
    blz_guard guard;
    int64_t rc;
    blz_serve_op serve;
    blz_guard_op op;
};

BLZ_ASYNC(serve_all)
{
    BLZ_BEGIN;
    event_post(&self->server->serving);
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      blz_serve(&self->serve, &self->server->listener, on_conn,
                                                self->server)));
    blz_listener_close(&self->server->listener);
    BLZ_END(self->rc);
}

static int dial(const blz_listener *listener)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *sa;
    blz_addr addr;
    uint32_t len;

    check(blz_listener_addr(listener, &addr) == 0);
    sa = blz_addr_sockaddr(&addr, &len);
    check(fd >= 0 && connect(fd, sa, len) == 0);
    return fd;
}

/* Ends in the given phase: the client closes when that has begun. */
static void stop_server(blz_rt *rt, int phase)
{
    struct server server = {.serving = EVENT_INIT, .accepted = EVENT_INIT};
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_shutdown_options options = {.no_signals = true,
                                    .stop_ns = -1,
                                    .drain_ns = -1,
                                    .cancel_ns = -1,
                                    .allocator = test_memory()};
    blz_handle serve, run;
    int clients[3];

    assert_int_equal(blz_shutdown_new(&server.shutdown, &options), 0);
    assert_int_equal(blz_listen_with(&server.listener, &addr,
                                     &(blz_listen_options){.rt = rt, .spread = true}),
                     0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &run, runs, .shutdown = server.shutdown), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &serve, serve_all, .server = &server,
                                  .guard = accepting(server.shutdown)),
                     0);
    event_wait(&server.serving, 1);
    for (int i = 0; i < 3; i++)
        clients[i] = dial(&server.listener);
    event_wait(&server.accepted, 3);
    blz_shutdown_begin(server.shutdown);
    assert_int_equal(blz_token_wait(blz_shutdown_token(server.shutdown, BLZ_SHUTDOWN_DRAINING)), 0);
    assert_int_equal(blz_handle_wait(&serve), 0); /* nobody accepts any more */
    assert_int_equal(serve.result, -ECANCELED);
    if (phase == BLZ_SHUTDOWN_CANCELLING)
        blz_shutdown_hurry(server.shutdown);
    else
        for (int i = 0; i < 3; i++)
            assert_int_equal(write(clients[i], "x", 1), 1); /* what they wait for */
    assert_int_equal(blz_handle_wait(&run), 0);
    assert_int_equal(run.result, 0);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    assert_int_equal(report_of(server.shutdown).steps[phase].end, BLZ_SHUTDOWN_DONE);
    blz_shutdown_free(server.shutdown);
}

static void stop_servers(blz_rt *rt)
{
    stop_server(rt, BLZ_SHUTDOWN_DRAINING);
    stop_server(rt, BLZ_SHUTDOWN_CANCELLING);
}

static void a_server_stops_in_phases(void **state)
{
    (void)state;
    on_every_backend_of(2, stop_servers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(with_nobody_inside_it_is_over_at_once),
        TEST(it_may_begin_before_anybody_runs_it),
        TEST(acceptors_end_first),
        TEST(draining_lets_work_finish),
        TEST(cancelling_cancels_what_is_guarded),
        TEST(forcing_overrides_shields),
        TEST(what_is_stuck_is_reported_and_left_behind),
        TEST(each_hurry_ends_a_phase),
        TEST(signals_begin_and_hurry),
        TEST(a_signal_before_the_run_is_not_lost),
        TEST(a_signal_that_nobody_has_answered_is_raised_again),
        TEST(which_signals_is_an_option),
        TEST(one_runs_it_at_a_time),
        TEST(a_cancelled_run_goes_on_where_it_was),
        TEST(a_phase_may_have_no_limit),
        TEST(a_phase_may_be_left_out),
        TEST(each_phase_can_be_awaited),
        TEST(a_guard_leaves_with_what_it_is_around),
        TEST(in_a_cancelled_task_the_guard_leaves_all_the_same),
        TEST(without_a_guard_nothing_is_started),
        TEST(around_a_scope_all_children_are_cancelled),
        TEST(a_server_stops_in_phases),
    };
    return RUN_TESTS(tests);
}
