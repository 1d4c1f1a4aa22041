/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown in phases: what each phase waits for, deadlines, hurry, reports. On a clock of the
 * test's own, so that a deadline passes when the test says so.
 */
#include "clock_rt.h"
#include "phases.h"
#include "signal/table.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

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
    advance(rt, BLZ_STOP_REPEAT_NS);
    raise(SIGINT);
    turn_until(rt, s, BLZ_SHUTDOWN_CANCELLING);
    advance(rt, BLZ_STOP_REPEAT_NS);
    raise(SIGINT);
    turn_until(rt, s, BLZ_SHUTDOWN_FORCING);
    advance(rt, BLZ_STOP_REPEAT_NS);
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

/* The shutdown has received all that have come. */
static void turn_until_received(blz_rt *rt, int signal)
{
    const signal_slot *slot = &blz__signals()->slots[signal];

    while (slot_has_come(slot, &slot->seen))
        turn_all(rt);
}

static void a_signal_that_is_repeated_within_a_second_does_not_hurry(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_shutdown((blz_shutdown_options){0});
    blz_guard work = working(s);
    blz_handle run = run_it(rt, s);

    (void)state;
    raise(SIGTERM);
    turn_until(rt, s, BLZ_SHUTDOWN_DRAINING);
    for (int i = 0; i < 2; i++) {
        raise(i ? SIGINT : SIGTERM);
        turn_until_received(rt, i ? SIGINT : SIGTERM);
        assert_int_equal(blz_shutdown_phase(s), BLZ_SHUTDOWN_DRAINING);
        advance(rt, BLZ_STOP_REPEAT_NS / 2 - 1);
    }
    assert_int_equal(report_of(s).requests, 1);
    blz_guard_leave(&work);
    turn_until(rt, s, BLZ_SHUTDOWN_ENDED);
    turn_all(rt);
    assert_int_equal(result_of(&run), 0);
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
    blz_shutdown *s =
        new_shutdown((blz_shutdown_options){.no_signals = true, .drain_ns = BLZ_NEVER});
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
        TEST(a_signal_that_is_repeated_within_a_second_does_not_hurry),
        TEST(a_signal_before_the_run_is_not_lost),
        TEST(a_signal_that_nobody_has_answered_is_raised_again),
        TEST(which_signals_is_an_option),
        TEST(one_runs_it_at_a_time),
        TEST(a_cancelled_run_goes_on_where_it_was),
        TEST(a_phase_may_have_no_limit),
        TEST(a_phase_may_be_left_out),
        TEST(each_phase_can_be_awaited),
    };
    return RUN_TESTS(tests);
}
