/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancelling tasks: when it is delivered, what it refuses, what shields put off, and what is said
 * of a task that takes no notice. Mostly in an embedded runtime, where the test decides what
 * happens between two polls.
 */
#include "harness.h"

#include <string.h>

static blz_rt *rt;

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- when ---- */

static void a_waiting_task_sees_it_at_its_await(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeps), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

struct counts {
    BLZ_FRAME;
    int before, after; /* steps that were reached */
    int awaits;
    int64_t rc;
    blz_future op;
};

/* Runs up to its first await, and then makes ten more, whatever they say. */
BLZ_ASYNC(counts)
{
    BLZ_BEGIN;
    self->before++;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    self->after++;
    for (self->awaits = 0; self->awaits < 10; self->awaits++) {
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
        check(self->rc == -ECANCELED);
        check(blz_cancelled(cx));
    }
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 1));
    BLZ_END(self->rc);
}

static void a_task_cancelled_before_its_first_poll_runs_to_its_first_await(void **state)
{
    blz_handle handle;
    struct counts *frame;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, counts), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    frame = blz_handle_frame(&handle);
    assert_non_null(frame);
    assert_int_equal(frame->before, 1);
    assert_int_equal(frame->after, 1);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

static void every_later_await_is_refused(void **state)
{
    blz_handle handle;
    blz_stats stats;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, counts), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(((struct counts *)blz_handle_frame(&handle))->awaits, 10);
    assert_int_equal(result_of(&handle), -ECANCELED);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.refused, 11);
    free_rt(rt);
}

static void a_queued_task_sees_it_when_it_is_polled(void **state)
{
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
    turn_all(rt);
    /* The gate's opening queues it, and wins over the cancellation that comes after. */
    gate_open(&gate, 4);
    blz_handle_cancel(&handle);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), 4);
    free_rt(rt);
}

static void a_yielding_task_sees_it_at_its_next_await(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, yields, .times = INT32_MAX), 0);
    assert_true(blz_rt_turn(rt) > 1);
    assert_false(blz_handle_done(&handle));
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

static void a_finished_task_can_be_cancelled_in_vain(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give, .value = 8), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(turn_all(rt), 0);
    assert_int_equal(result_of(&handle), 8);
    free_rt(rt);
}

struct cancels_itself {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(cancels_itself)
{
    BLZ_BEGIN;
    blz_task_cancel(blz_task_current());
    /* Delivered before the next poll, so this one still starts, and is told. */
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_END(self->rc);
}

static void a_task_can_cancel_itself(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, cancels_itself), -ECANCELED);
    free_rt(rt);
}

/* ---- once ---- */

/* A leaf that is told, and takes its time: ready two polls after. */
struct slow_leaf {
    blz_future future;
    blz_waker waker;
    int told, polls_left;
};

static blz_poll slow_leaf_poll(blz_future *future, blz_cx *cx)
{
    struct slow_leaf *leaf = (struct slow_leaf *)future;

    if (leaf->told && leaf->polls_left-- == 0) {
        blz_waker_drop(&leaf->waker);
        return blz_future_done(future, -ECANCELED);
    }
    if (!leaf->waker.ops)
        leaf->waker = blz_cx_waker(cx); /* that nobody uses: it only waits to be cancelled */
    return leaf->told ? blz_cx_yield(cx) : BLZ_PENDING;
}

static void slow_leaf_cancel(blz_future *future, blz_cx *cx)
{
    (void)cx;
    ((struct slow_leaf *)future)->told++;
}

struct has_slow_leaf {
    BLZ_FRAME;
    struct slow_leaf leaf;
    int64_t rc;
};

BLZ_ASYNC(has_slow_leaf)
{
    static const blz_future_ops ops = {.name = "slow_leaf",
                                       .poll = slow_leaf_poll,
                                       .cancel = slow_leaf_cancel};

    BLZ_BEGIN;
    self->leaf = (struct slow_leaf){.future.ops = &ops, .polls_left = 2};
    BLZ_AWAIT(self->rc, &self->leaf.future);
    BLZ_END(self->leaf.told);
}

static void a_leaf_is_told_once_however_often_the_task_is_cancelled(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, has_slow_leaf), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    blz_handle_cancel(&handle);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
    free_rt(rt);
}

/* ---- shields ---- */

struct shielded {
    BLZ_FRAME;
    struct gate *first, *second, *third;
    int depth;
    int64_t rc;
    struct gate_wait op;
};

/* Two shields: the first gate is entered under both, the second under one, the third under none. */
BLZ_ASYNC(shielded)
{
    BLZ_BEGIN;
    check(blz_shield(cx) == 0);
    check(blz_shield(cx) == 0);
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->first));
    check(self->rc == 1);
    check(!blz_cancelled(cx));
    blz_unshield(cx);
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->second));
    check(self->rc == 2);
    check(!blz_cancelled(cx));
    blz_unshield(cx);
    check(blz_cancelled(cx));
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->third));
    BLZ_END(self->rc);
}

static void it_takes_effect_when_the_last_shield_is_lifted(void **state)
{
    struct gate first = GATE_INIT, second = GATE_INIT, third = GATE_INIT;
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, shielded, .first = &first, .second = &second,
                                  .third = &third),
                     0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(turn_all(rt), 1);
    gate_open(&first, 1);
    turn_all(rt);
    assert_int_equal(event_count(&second.arrived), 1);
    gate_open(&second, 2);
    turn_all(rt);
    assert_int_equal(event_count(&third.arrived), 0);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

struct cleans_up {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc, cleanup;
    struct gate_wait op;
    blz_future pause;
};

/* Ends with what the cleanup's await gave. */
BLZ_ASYNC(cleans_up)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->pause));
    check(self->rc == -ECANCELED);
    BLZ_AWAIT_SHIELDED(self->cleanup, gate_enter(&self->op, self->gate));
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    check(self->rc == -ECANCELED);
    BLZ_END(self->cleanup);
}

static void a_shielded_await_waits_in_a_cancelled_task(void **state)
{
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, cleans_up, .gate = &gate), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    assert_int_equal(event_count(&gate.arrived), 1);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    gate_open(&gate, 77);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 77);
    free_rt(rt);
}

struct shields_deeply {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(shields_deeply)
{
    int i;

    BLZ_BEGIN;
    for (i = 0; i < 65535; i++)
        check(blz_shield(cx) == 0);
    check(blz_shield(cx) == -EOVERFLOW);
    BLZ_AWAIT_SHIELDED(self->rc, blz_ready(&self->op, 5));
    check(self->rc == -EOVERFLOW);
    for (i = 0; i < 65535; i++)
        blz_unshield(cx);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 6));
    BLZ_END(self->rc);
}

static void too_many_shields_are_an_error(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(BLZ_BLOCK_ON(rt, shields_deeply), 6);
    free_rt(rt);
}

/* ---- nested calls ---- */

struct nests {
    BLZ_FRAME;
    int depth;
    int64_t rc;
    blz_box box;
    blz_future op;
};

BLZ_ASYNC(nests)
{
    BLZ_BEGIN;
    if (self->depth == 0)
        BLZ_AWAIT(self->rc, blz_pending(&self->op));
    else
        BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, nests, .depth = self->depth - 1));
    check(self->rc == -ECANCELED);
    BLZ_END(self->rc);
}

static void it_reaches_the_innermost_of_many_nested_calls(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, nests, .depth = 100), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

/* ---- tasks that take no notice ---- */

struct ignores {
    BLZ_FRAME;
    int awaits, done;
    bool *enough; /* atomic */
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(ignores)
{
    BLZ_BEGIN;
    while (self->done++ < self->awaits) {
        if (self->enough && __atomic_load_n(self->enough, __ATOMIC_RELAXED))
            break;
        BLZ_AWAIT(self->rc, blz_pending(&self->op));
    }
    BLZ_END(0);
}

struct reports {
    int count;
    blz_stuck last;
    char task[64];
};

static void note_stuck(const blz_stuck *stuck, void *arg)
{
    struct reports *reports = arg;

    if (!stuck->refused)
        return;
    reports->count++;
    reports->last = *stuck;
    strncpy(reports->task, stuck->task, sizeof reports->task - 1);
}

static void ignore(int awaits, struct reports *reports)
{
    blz_handle handle;
    uint64_t id;

    rt = new_rt(&(blz_options){
        .embedded = true, .watchdog_ns = BLZ_NEVER, .on_stuck = note_stuck, .hook_arg = reports});
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, ignores, .awaits = awaits), 0);
    id = blz_task_id(handle.task);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    if (reports->count)
        assert_int_equal(reports->last.task_id, id);
    free_rt(rt);
}

static void a_thousand_refused_awaits_are_reported_once(void **state)
{
    struct reports reports = {0};

    (void)state;
    ignore(5000, &reports);
    assert_int_equal(reports.count, 1);
    assert_true(reports.last.refused);
    assert_int_equal(reports.last.worker, 0);
    assert_string_equal(reports.task, "ignores");
}

static void fewer_refused_awaits_are_not_reported(void **state)
{
    struct reports reports = {0};

    (void)state;
    ignore(999, &reports);
    assert_int_equal(reports.count, 0);
}

static void a_task_that_ignores_its_cancellation_lets_others_run(void **state)
{
    blz_handle ignoring, other;
    bool enough = false;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(BLZ_SPAWN_ON(rt, &ignoring, ignores, .awaits = INT32_MAX, .enough = &enough),
                     0);
    blz_handle_cancel(&ignoring);
    assert_int_equal(BLZ_SPAWN_ON(rt, &other, yields, .times = 100, .value = 3), 0);
    assert_int_equal(blz_handle_wait(&other), 0);
    assert_int_equal(other.result, 3);
    assert_false(blz_handle_done(&ignoring));
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    assert_int_equal(blz_handle_wait(&ignoring), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_waiting_task_sees_it_at_its_await),
        TEST(a_task_cancelled_before_its_first_poll_runs_to_its_first_await),
        TEST(every_later_await_is_refused),
        TEST(a_queued_task_sees_it_when_it_is_polled),
        TEST(a_yielding_task_sees_it_at_its_next_await),
        TEST(a_finished_task_can_be_cancelled_in_vain),
        TEST(a_task_can_cancel_itself),
        TEST(a_leaf_is_told_once_however_often_the_task_is_cancelled),
        TEST(it_takes_effect_when_the_last_shield_is_lifted),
        TEST(a_shielded_await_waits_in_a_cancelled_task),
        TEST(too_many_shields_are_an_error),
        TEST(it_reaches_the_innermost_of_many_nested_calls),
        TEST(a_thousand_refused_awaits_are_reported_once),
        TEST(fewer_refused_awaits_are_not_reported),
        TEST(a_task_that_ignores_its_cancellation_lets_others_run),
    };
    return RUN_TESTS(tests);
}
