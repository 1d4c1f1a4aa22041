/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Awaits in cancelled and shielded scopes, in a runtime with one worker. await_debug_test.c runs
 * all of this again with BLZ_DEBUG_FRAMES.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <blitz.h>
#include <string.h>

#include "probe.h"

static const blz_options one_worker = {.workers = 1, .watchdog_ns = BLZ_NEVER};

/* What the functions below leave behind for the test to look at. */
static struct record {
    int64_t rc[4];
    int n;
    bool flag;
    struct probe probe, other;
} record;

static int reset_record(void **state)
{
    (void)state;
    memset(&record, 0, sizeof record);
    probe_init(&record.probe);
    probe_init(&record.other);
    return 0;
}

/* Cancels the current task and comes back when that has been delivered. */
struct cancelled {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(cancelled)
{
    BLZ_BEGIN;
    blz_task_cancel(blz_task_current());
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc);
}

struct refused {
    BLZ_FRAME;
    struct cancelled cancelled;
    blz_future pause;
};

BLZ_ASYNC(refused)
{
    BLZ_BEGIN;
    BLZ_CALL(record.rc[0], self->cancelled, cancelled);
    record.flag = blz_cancelled(cx);
    BLZ_AWAIT(record.rc[1], &record.probe.future);
    BLZ_AWAIT(record.rc[2], blz_ready(&self->pause, 5));
    BLZ_END(0);
}

static void an_await_in_a_cancelled_scope_is_refused_and_nothing_starts(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, refused), 0);
    assert_true(record.flag);
    assert_int_equal(record.rc[1], -ECANCELED);
    assert_int_equal(record.rc[2], -ECANCELED);
    assert_int_equal(record.probe.polls, 0);
    assert_int_equal(record.probe.cancels, 0);
}

struct ignores {
    BLZ_FRAME;
    struct cancelled cancelled;
    int i;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(ignores)
{
    if (self->blz_frame.line != 0)
        record.n++;
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->cancelled, cancelled);
    record.n = 0;
    for (self->i = 0; self->i < 300; self->i++)
        BLZ_AWAIT(self->rc, blz_ready(&self->pause, 0));
    BLZ_END(self->rc);
}

static void refused_awaits_use_up_the_budget_and_then_let_others_run(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, ignores), -ECANCELED);
#ifndef BLZ_DEBUG_FRAMES
    assert_int_equal(record.n, 2); /* 300 awaits, 128 a poll */
#endif
}

/* Counts attempts, and gives what it is asked for. */
static int64_t attempt(int64_t result)
{
    record.n++;
    return result;
}

struct tries {
    BLZ_FRAME;
    struct cancelled cancelled;
    blz_future op;
};

BLZ_ASYNC(tries)
{
    BLZ_BEGIN;
    BLZ_AWAIT_UNLESS(record.rc[0], attempt(7), blz_ready(&self->op, 7));
    record.flag = self->op.ops == NULL; /* the future has not even been made */
    BLZ_AWAIT_UNLESS(record.rc[1], attempt(-EPIPE), blz_ready(&self->op, -EPIPE));
    BLZ_AWAIT_UNLESS(record.rc[2], attempt(-EAGAIN), blz_ready(&self->op, 5));
    BLZ_CALL(record.rc[3], self->cancelled, cancelled);
    BLZ_AWAIT_UNLESS(record.rc[3], attempt(7), &record.probe.future);
    BLZ_END(0);
}

static void an_attempt_comes_before_the_await_which_follows_only_eagain(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, tries), 0);
    assert_int_equal(record.rc[0], 7);
    assert_int_equal(record.rc[1], -EPIPE);
    assert_int_equal(record.rc[2], 5);
#ifndef BLZ_DEBUG_FRAMES
    assert_true(record.flag);
    assert_int_equal(record.n, 3);
#else
    assert_int_equal(record.n, 0); /* every await is to suspend */
#endif
    assert_int_equal(record.rc[3], -ECANCELED); /* no attempt in a cancelled scope */
    assert_int_equal(record.probe.polls, 0);
}

struct tries_on {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_semaphore semaphore;
    blz_semaphore_op op;
};

BLZ_ASYNC(tries_on)
{
    record.rc[0]++;
    BLZ_BEGIN;
    blz_semaphore_init(&self->semaphore, 300);
    for (self->i = 0; self->i < 300; self->i++) {
        BLZ_AWAIT_UNLESS(self->rc, attempt(blz_semaphore_try_acquire(&self->semaphore, 1)),
                         blz_semaphore_acquire(&self->op, &self->semaphore, 1));
        if (self->rc < 0)
            goto out;
    }
    self->rc = blz_semaphore_available(&self->semaphore);
out:
    BLZ_END(self->rc);
}

static void attempts_use_up_the_budget_and_then_let_others_run(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, tries_on), 0);
#ifndef BLZ_DEBUG_FRAMES
    assert_int_equal(record.rc[0], 3); /* 300 operations, 128 a poll */
    assert_int_equal(record.n, 298);   /* two had to be awaited, for they began without budget */
#endif
}

/* An attempt that fails costs nothing: the await pays for the operation. */
struct tries_in_vain {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_notify notify;
    blz_notify_op op;
};

BLZ_ASYNC(tries_in_vain)
{
    record.rc[0]++;
    BLZ_BEGIN;
    blz_notify_init(&self->notify);
    for (self->i = 0; self->i < 128; self->i++) {
        blz_notify_one(&self->notify);
        BLZ_AWAIT_UNLESS(self->rc, attempt(-EAGAIN), blz_notify_await(&self->op, &self->notify));
    }
    BLZ_END(self->rc);
}

static void an_attempt_in_vain_gives_its_budget_back(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, tries_in_vain), 0);
#ifndef BLZ_DEBUG_FRAMES
    assert_int_equal(record.rc[0], 1);
    assert_int_equal(record.n, 128);
#endif
}

struct stuck_in {
    BLZ_FRAME;
    blz_future op;
};

BLZ_ASYNC(stuck_in)
{
    BLZ_BEGIN;
    BLZ_AWAIT(record.rc[0], blz_pending(&self->op));
    record.rc[1] = blz_cancelled(cx);
    BLZ_END(record.rc[0]);
}

struct canceller {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    blz_future pause;
    int64_t rc;
};

BLZ_ASYNC(canceller)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, stuck_in);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    blz_handle_cancel(&self->handle);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    BLZ_END(self->handle.result);
}

static void a_pending_await_of_a_cancelled_task_returns_ecanceled(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, canceller), -ECANCELED);
    assert_true(record.rc[1]);
}

/* With BLZ_DEBUG_FRAMES the result is there, but held back, when the cancellation is delivered. */
struct ready_first {
    BLZ_FRAME;
    int64_t rc;
};

BLZ_ASYNC(ready_first)
{
    BLZ_BEGIN;
    record.probe.ready = true;
    record.probe.value = 5;
    blz_task_cancel(blz_task_current());
    BLZ_AWAIT(self->rc, &record.probe.future);
    BLZ_END(self->rc);
}

static void a_result_that_was_there_before_the_cancellation_is_kept(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, ready_first), 5);
    assert_int_equal(record.probe.cancels, 0);
    assert_int_equal(record.probe.polls, 1);
}

struct shielded {
    BLZ_FRAME;
    struct cancelled cancelled;
    blz_future pause;
};

BLZ_ASYNC(shielded)
{
    BLZ_BEGIN;
    BLZ_CALL(record.rc[0], self->cancelled, cancelled);
    BLZ_AWAIT_SHIELDED(record.rc[1], blz_yield(&self->pause));
    record.flag = blz_cancelled(cx);
    BLZ_AWAIT(record.rc[2], blz_yield(&self->pause));
    BLZ_END(self->blz_frame.flags / BLZ_FUTURE_SHIELD);
}

static void a_shielded_await_runs_in_a_cancelled_scope_and_the_next_one_is_refused(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, shielded), 0);
    assert_int_equal(record.rc[1], 0);
    assert_true(record.flag);
    assert_int_equal(record.rc[2], -ECANCELED);
}

/* The cancellation arrives while the shield is up. */
struct shielded_before {
    BLZ_FRAME;
    struct cancelled cancelled;
    blz_future pause;
};

BLZ_ASYNC(shielded_before)
{
    BLZ_BEGIN;
    record.rc[0] = blz_shield(cx);
    BLZ_CALL(record.rc[1], self->cancelled, cancelled);
    record.flag = blz_cancelled(cx);
    BLZ_AWAIT(record.rc[2], blz_yield(&self->pause));
    blz_unshield(cx);
    BLZ_AWAIT(record.rc[3], blz_yield(&self->pause));
    BLZ_END(0);
}

static void awaits_behind_a_shield_go_on_until_it_is_down(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, shielded_before), 0);
    assert_int_equal(record.rc[1], 0);
    assert_false(record.flag);
    assert_int_equal(record.rc[2], 0);
    assert_int_equal(record.rc[3], -ECANCELED);
}

struct too_many_shields {
    BLZ_FRAME;
    int i;
    blz_future op;
};

BLZ_ASYNC(too_many_shields)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 65535; self->i++)
        record.rc[0] |= blz_shield(cx);
    BLZ_AWAIT_SHIELDED(record.rc[1], &record.probe.future);
    for (self->i = 0; self->i < 65535; self->i++)
        blz_unshield(cx);
    BLZ_AWAIT_SHIELDED(record.rc[2], blz_ready(&self->op, 4));
    BLZ_END(self->blz_frame.flags / BLZ_FUTURE_SHIELD);
}

static void a_shielded_await_without_a_shield_to_be_had_is_refused_with_eoverflow(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, too_many_shields), 0);
    assert_int_equal(record.rc[0], 0);
    assert_int_equal(record.rc[1], -EOVERFLOW);
    assert_int_equal(record.probe.polls, 0);
    assert_int_equal(record.rc[2], 4);
}

/*
 * Two futures of one scope, awaited together. The first one shields, is cancelled, takes the shield
 * down and then waits for something that is not cancelled with it; the other is stuck.
 */
struct pair {
    blz_future future;
    blz_future *both[2];
    bool done[2];
};

static blz_poll pair_poll(blz_future *self, blz_cx *cx)
{
    struct pair *pair = (struct pair *)self;

    for (int i = 0; i < 2; i++)
        if (!pair->done[i])
            pair->done[i] = blz_is_ready(pair->both[i]->ops->poll(pair->both[i], cx));
    return pair->done[0] && pair->done[1] ? blz_future_done(self, 0) : BLZ_PENDING;
}

static void pair_cancel(blz_future *self, blz_cx *cx)
{
    struct pair *pair = (struct pair *)self;

    record.n++;
    for (int i = 0; i < 2; i++)
        if (!pair->done[i])
            blz_future_cancel(pair->both[i], cx);
}

static const blz_future_ops pair_ops = {.name = "pair", .poll = pair_poll, .cancel = pair_cancel};

struct deferred {
    BLZ_FRAME;
    struct pair pair;
    struct shielded_before first;
    int64_t rc;
};

BLZ_ASYNC(deferred)
{
    BLZ_BEGIN;
    self->first = (struct shielded_before){.blz_frame.ops = &shielded_before_ops};
    self->pair = (struct pair){.future.ops = &pair_ops,
                               .both = {&self->first.blz_frame, &record.probe.future}};
    BLZ_AWAIT(self->rc, &self->pair.future);
    BLZ_END(self->rc);
}

static void the_last_unshield_brings_the_cancellation_to_the_others_in_the_scope(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, deferred), 0);
    assert_int_equal(record.n, 1);
    assert_int_equal(record.probe.cancels, 1);
    assert_int_equal(record.rc[3], -ECANCELED);
}

/* The same in a branch: whoever polls the branch next tells it. */
struct branch_of {
    blz_future future;
    blz_future *inner;
    int polls;
};

static blz_poll branch_of_poll(blz_future *self, blz_cx *cx)
{
    struct branch_of *branch = (struct branch_of *)self;

    if (branch->polls++ == 1)
        blz_cancel_branch(branch->inner, cx);
    if (blz_is_pending(blz_poll_branch(branch->inner, cx)))
        return branch->polls < 2 ? blz_cx_yield(cx) : BLZ_PENDING;
    return blz_future_done(self, branch->inner->result);
}

static const blz_future_ops branch_of_ops = {.name = "branch_of", .poll = branch_of_poll};

struct guarded {
    BLZ_FRAME;
    struct pair pair;
    struct shield_for_a_while {
        BLZ_FRAME;
        int i;
        int64_t rc;
        blz_future pause;
    } first;
    int64_t rc;
};

BLZ_ASYNC(shield_for_a_while)
{
    BLZ_BEGIN;
    record.rc[0] = blz_shield(cx);
    for (self->i = 0; self->i < 3; self->i++) {
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        record.rc[1] += record.probe.cancels;
    }
    blz_unshield(cx);
    record.flag = blz_cancelled(cx);
    BLZ_END(self->rc);
}

BLZ_ASYNC(guarded)
{
    BLZ_BEGIN;
    self->first = (struct shield_for_a_while){.blz_frame.ops = &shield_for_a_while_ops};
    self->pair = (struct pair){.future.ops = &pair_ops,
                               .both = {&self->first.blz_frame, &record.probe.future}};
    BLZ_AWAIT(self->rc, &self->pair.future);
    BLZ_END(self->rc);
}

struct branches {
    BLZ_FRAME;
    struct branch_of branch;
    struct guarded inner;
    int64_t rc;
};

BLZ_ASYNC(branches)
{
    BLZ_BEGIN;
    self->inner = (struct guarded){.blz_frame.ops = &guarded_ops};
    self->branch =
        (struct branch_of){.future.ops = &branch_of_ops, .inner = &self->inner.blz_frame};
    BLZ_AWAIT(self->rc, &self->branch.future);
    record.rc[2] = blz_cancelled(cx);
    BLZ_END(self->rc);
}

static void the_last_unshield_of_a_branch_brings_the_cancellation_to_that_branch(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, branches), 0);
    assert_int_equal(record.rc[1], 0); /* not told while the shield was up */
    assert_true(record.flag);
    assert_int_equal(record.probe.cancels, 1);
    assert_int_equal(record.rc[2], 0); /* the task itself is not cancelled */
}

static blz_future *make_recorded(int64_t result, void *arg)
{
    (void)arg;
    record.rc[1] = result;
    return &record.probe.future;
}

static int64_t cancel_self(void *arg)
{
    (void)arg;
    blz_task_cancel(blz_task_current());
    return 1;
}

static blz_future *pause_after(int64_t result, void *arg)
{
    (void)result;
    return blz_yield(arg);
}

struct then_refused {
    BLZ_FRAME;
    blz_then inner, outer;
    blz_lazy lazy;
    blz_future pause;
    int64_t rc;
};

BLZ_ASYNC(then_refused)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_then_init(&self->outer,
                                      blz_then_init(&self->inner,
                                                    blz_lazy_init(&self->lazy, cancel_self, NULL),
                                                    pause_after, &self->pause),
                                      make_recorded, NULL));
    BLZ_END(self->rc);
}

static void the_second_future_of_then_is_refused_in_a_cancelled_scope(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, then_refused), -ECANCELED);
    assert_int_equal(record.rc[1], 0); /* the yield in between was not refused */
    assert_int_equal(record.probe.polls, 0);
}

struct must_run {
    BLZ_FRAME;
    struct cancelled cancelled;
    int64_t rc;
};

BLZ_ASYNC(must_run)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->cancelled, cancelled);
    record.probe.future.flags |= BLZ_FUTURE_ALWAYS;
    BLZ_AWAIT(self->rc, &record.probe.future);
    BLZ_END(self->rc);
}

static void a_future_that_must_always_run_is_told_and_then_polled(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, must_run), -ECANCELED);
    assert_int_equal(record.probe.cancels, 1);
    assert_int_equal(record.probe.polls, 1);
}

/* An async function as a future, in a slot that is used again. */
struct adds {
    BLZ_FRAME;
    int64_t a, b, rc;
    blz_future pause;
};

BLZ_ASYNC(adds)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc < 0 ? self->rc : self->a + self->b);
}

struct adds_up {
    BLZ_FRAME;
    struct adds child;
    struct cancelled cancelled;
    int64_t rc;
};

BLZ_ASYNC(adds_up)
{
    BLZ_BEGIN;
    BLZ_AWAIT(record.rc[0], BLZ_FUTURE(self->child, adds, .a = 1, .b = 2));
    BLZ_AWAIT(record.rc[1], BLZ_FUTURE(self->child, adds, .b = 4));
    BLZ_CALL(self->rc, self->cancelled, cancelled);
    BLZ_AWAIT_SHIELDED(record.rc[2], BLZ_FUTURE(self->child, adds, .a = 5, .b = 6));
    BLZ_AWAIT(record.rc[3], BLZ_FUTURE(self->child, adds));
    BLZ_END(0);
}

static void an_async_function_is_awaited_as_a_future(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&one_worker, adds_up), 0);
    assert_int_equal(record.rc[0], 3);
    assert_int_equal(record.rc[1], 4);
    assert_int_equal(record.rc[2], 11);
    assert_int_equal(record.rc[3], -ECANCELED);
}

#define test(name) cmocka_unit_test_setup(name, reset_record)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(an_async_function_is_awaited_as_a_future),
        test(an_await_in_a_cancelled_scope_is_refused_and_nothing_starts),
        test(refused_awaits_use_up_the_budget_and_then_let_others_run),
        test(an_attempt_comes_before_the_await_which_follows_only_eagain),
        test(attempts_use_up_the_budget_and_then_let_others_run),
        test(an_attempt_in_vain_gives_its_budget_back),
        test(a_pending_await_of_a_cancelled_task_returns_ecanceled),
        test(a_result_that_was_there_before_the_cancellation_is_kept),
        test(a_shielded_await_runs_in_a_cancelled_scope_and_the_next_one_is_refused),
        test(awaits_behind_a_shield_go_on_until_it_is_down),
        test(a_shielded_await_without_a_shield_to_be_had_is_refused_with_eoverflow),
        test(the_last_unshield_brings_the_cancellation_to_the_others_in_the_scope),
        test(the_last_unshield_of_a_branch_brings_the_cancellation_to_that_branch),
        test(the_second_future_of_then_is_refused_in_a_cancelled_scope),
        test(a_future_that_must_always_run_is_told_and_then_polled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
