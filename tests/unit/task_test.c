/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and join handles: spawn, join, wait, detach, call back; ids and references. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

/* ---- joining ---- */

struct joins {
    BLZ_FRAME;
    int64_t value;
    blz_handle handle;
    blz_handle_join_op join;
    int64_t rc;
};

/* Spawns a task that yields, and joins it: its result plus one. */
BLZ_ASYNC(joins)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, yields, .times = 3, .value = self->value);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    check(self->handle.task == NULL);
    BLZ_END(self->handle.result + 1);
}

static void a_join_gives_the_result_and_empties_the_handle(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, joins, .value = 41), 42);
    free_rt(rt);
}

static void a_join_returns_zero_also_when_the_task_failed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, joins, .value = -EIO), -EIO + 1);
    free_rt(rt);
}

struct joins_nothing {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(joins_nothing)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    BLZ_END(self->rc);
}

static void a_join_of_an_empty_handle_is_invalid(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, joins_nothing), -EINVAL);
    free_rt(rt);
}

struct joins_late {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    blz_future pause;
    int64_t rc;
};

/* Joins only after the task has ended. */
BLZ_ASYNC(joins_late)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, give, .value = 5);
    check(self->rc == 0);
    while (!blz_handle_done(&self->handle))
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    BLZ_END(self->handle.result);
}

static void a_task_that_has_ended_can_still_be_joined(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, joins_late), 5);
    free_rt(rt);
}

struct keeps {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(keeps)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, yields, .times = 2, .value = 9);
    check(self->rc == 0);
    check(blz_handle_frame(&self->handle) == NULL);
    BLZ_AWAIT(self->rc, blz_handle_join_keep(&self->join, &self->handle));
    check(self->rc == 0 && self->handle.result == 9);
    check(self->handle.task != NULL);
    check(((struct yields *)blz_handle_frame(&self->handle))->times == -1);
    /* and again: it is still there */
    BLZ_AWAIT(self->rc, blz_handle_join_keep(&self->join, &self->handle));
    check(self->rc == 0 && self->handle.result == 9);
    blz_handle_detach(&self->handle);
    check(self->handle.task == NULL && blz_handle_frame(&self->handle) == NULL);
    BLZ_END(0);
}

static void a_kept_handle_gives_the_finished_frame(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, keeps), 0);
    free_rt(rt);
}

struct chain {
    BLZ_FRAME;
    int depth;
    blz_handle handle;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(chain)
{
    BLZ_BEGIN;
    if (self->depth > 0) {
        self->rc = BLZ_SPAWN_JOIN(&self->handle, chain, .depth = self->depth - 1);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0);
    }
    BLZ_END(self->handle.result + 1);
}

static void joins_nest_deeper_than_they_run_in_place(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, chain, .depth = 10000), 10001);
    blz_rt_stats(rt, &stats);
    assert_true(stats.total.inline_joins > 0);
    free_rt(rt);
}

struct gives_up_joining {
    BLZ_FRAME;
    struct gate *gate;
    struct event *joining;
    blz_handle handle;
    blz_handle_join_op join;
    int64_t rc;
};

/* Is cancelled while it joins; then joins under a shield. */
BLZ_ASYNC(gives_up_joining)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, enters, .gate = self->gate);
    check(self->rc == 0);
    event_post(self->joining);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == -ECANCELED);
    check(self->handle.task != NULL);
    gate_open(self->gate, 11);
    BLZ_AWAIT_SHIELDED(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    BLZ_END(self->handle.result);
}

static void a_cancelled_joiner_keeps_its_handle_and_the_task_runs_on(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct gate gate = GATE_INIT;
    struct event joining = EVENT_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, gives_up_joining, .gate = &gate,
                                  .joining = &joining),
                     0);
    event_wait(&joining, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 11);
    free_rt(rt);
}

/* ---- from other threads ---- */

static void a_detached_task_runs(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct gate gate = GATE_INIT;
    struct event done = EVENT_INIT;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, enters, .gate = &gate, .done = &done), 0);
    event_wait(&gate.arrived, 1);
    gate_open(&gate, 0);
    event_wait(&done, 1);
    free_rt(rt);
}

static void a_handle_can_be_detached_while_the_task_runs(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct gate gate = GATE_INIT;
    struct event done = EVENT_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate, .done = &done), 0);
    event_wait(&gate.arrived, 1);
    assert_false(blz_handle_done(&handle));
    blz_handle_detach(&handle);
    assert_null(handle.task);
    gate_open(&gate, 0);
    event_wait(&done, 1);
    free_rt(rt);
}

static void *open_gate(void *arg)
{
    struct gate *g = arg;

    event_wait(&g->arrived, 1);
    gate_open(g, 17);
    return NULL;
}

static void wait_blocks_until_the_task_has_ended(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct gate gate = GATE_INIT;
    pthread_t opener = start_thread(open_gate, &gate);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 17);
    assert_null(handle.task);
    join_thread(opener);
    free_rt(rt);
}

static void wait_of_an_empty_handle_is_invalid(void **state)
{
    blz_handle handle = {NULL, 0};

    (void)state;
    assert_int_equal(blz_handle_wait(&handle), -EINVAL);
}

static int64_t wait_on_a_worker(void *arg)
{
    return blz_handle_wait(arg);
}

static void wait_on_a_worker_is_a_deadlock(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = wait_on_a_worker, .arg = &handle), -EDEADLK);
    gate_open(&gate, 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(rt);
}

static void empty_handles_are_done_and_can_be_cancelled_and_detached(void **state)
{
    blz_handle handle = {NULL, 0};

    (void)state;
    assert_true(blz_handle_done(&handle));
    assert_null(blz_handle_frame(&handle));
    blz_handle_cancel(&handle);
    blz_handle_detach(&handle);
}

enum { SPAWNERS = 4, SPAWNS = 200 };

static void *spawn_and_wait(void *arg)
{
    for (int i = 0; i < SPAWNS; i++) {
        blz_handle handle;
        check(BLZ_SPAWN_ON((blz_rt *)arg, &handle, yields, .times = i % 3, .value = i) == 0);
        check(blz_handle_wait(&handle) == 0 && handle.result == i);
    }
    return NULL;
}

static void many_threads_spawn_and_wait_at_once(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    pthread_t threads[SPAWNERS];

    (void)state;
    for (int i = 0; i < SPAWNERS; i++)
        threads[i] = start_thread(spawn_and_wait, rt);
    for (int i = 0; i < SPAWNERS; i++)
        join_thread(threads[i]);
    free_rt(rt);
}

/* ---- calling back ---- */

struct called {
    struct event event;
    int64_t result;
    int thread;
};

static void note_call(int64_t result, void *arg)
{
    struct called *called = arg;

    called->result = result;
    called->thread = thread_id();
    event_post(&called->event);
}

static void on_done_calls_back_when_the_task_ends(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct called called = {.event = EVENT_INIT};
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
    event_wait(&gate.arrived, 1);
    assert_int_equal(blz_task_on_done(&handle, note_call, &called), 0);
    assert_null(handle.task);
    assert_int_equal(event_count(&called.event), 0);
    gate_open(&gate, 23);
    event_wait(&called.event, 1);
    assert_int_equal(called.result, 23);
    assert_int_not_equal(called.thread, thread_id());
    free_rt(rt);
}

static void on_done_calls_at_once_if_the_task_has_ended(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct called called = {.event = EVENT_INIT};
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give, .value = 3), 0);
    turn_all(rt);
    assert_true(blz_handle_done(&handle));
    assert_int_equal(blz_task_on_done(&handle, note_call, &called), 0);
    assert_int_equal(event_count(&called.event), 1);
    assert_int_equal(called.result, 3);
    assert_int_equal(called.thread, thread_id());
    free_rt(rt);
}

static void on_done_is_called_for_a_task_that_the_shutdown_cancels(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct called called = {.event = EVENT_INIT};
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeps), 0);
    assert_int_equal(blz_task_on_done(&handle, note_call, &called), 0);
    free_rt(rt);
    assert_int_equal(event_count(&called.event), 1);
    assert_int_equal(called.result, -ECANCELED);
}

static void on_done_of_an_empty_handle_is_invalid(void **state)
{
    blz_handle handle = {NULL, 0};

    (void)state;
    assert_int_equal(blz_task_on_done(&handle, note_call, NULL), -EINVAL);
}

/* ---- no runtime ---- */

static void spawning_without_a_runtime_is_refused(void **state)
{
    (void)state;
    assert_int_equal(BLZ_SPAWN(give, .value = 1), -ENXIO);
    assert_int_equal(BLZ_BLOCK_ON(NULL, give, .value = 1), -ENXIO);
}

static void outside_of_tasks_there_is_no_current_task_or_runtime(void **state)
{
    (void)state;
    assert_null(blz_task_current());
    assert_null(blz_rt_current());
    assert_int_equal(blz_task_set_name("nobody"), -ENXIO);
}

/* ---- identity ---- */

struct knows_itself {
    BLZ_FRAME;
    blz_rt *rt;
    int64_t rc;
};

BLZ_ASYNC(knows_itself)
{
    BLZ_BEGIN;
    check(blz_rt_current() == self->rt);
    check(blz_cx_rt(cx) == self->rt);
    check(blz_task_current() == cx->task);
    check(strcmp(blz_task_name(blz_task_current()), "knows_itself") == 0);
    check(blz_task_set_name("somebody") == 0);
    check(strcmp(blz_task_name(blz_task_current()), "somebody") == 0);
    check(blz_task_set_name("a name that is quite a bit longer than the one before") == 0);
    check(strcmp(blz_task_name(blz_task_current()),
                 "a name that is quite a bit longer than the one before") == 0);
    BLZ_END((int64_t)blz_task_id(blz_task_current()));
}

static void a_task_knows_its_name_number_and_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_true(BLZ_BLOCK_ON(rt, knows_itself, .rt = rt) > 0);
    free_rt(rt);
}

static void a_task_can_be_named_when_it_is_spawned(void **state)
{
    blz_rt *rt = new_embedded_rt();
    char name[] = "copied";
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &handle, .name = name}),
                                    give),
                     0);
    name[0] = '?';
    assert_string_equal(blz_task_name(handle.task), "copied");
    turn_all(rt);
    assert_string_equal(blz_task_name(handle.task), "copied");
    blz_handle_detach(&handle);
    free_rt(rt);
}

enum { MANY = 5000 };

struct spawns_many {
    BLZ_FRAME;
    uint64_t *ids;
};

BLZ_ASYNC(spawns_many)
{
    BLZ_BEGIN;
    for (int i = 0; i < MANY; i++) {
        blz_handle handle;
        check(BLZ_SPAWN_JOIN(&handle, give) == 0);
        self->ids[i] = blz_task_id(handle.task);
        blz_handle_detach(&handle);
    }
    BLZ_END(0);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void ids_are_never_used_twice(void **state)
{
    static uint64_t ids[3 * MANY];
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle spawners[2], handle;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &spawners[i], spawns_many, .ids = ids + i * MANY), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), 0);
        ids[2 * MANY + i] = blz_task_id(handle.task);
        blz_handle_detach(&handle);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(blz_handle_wait(&spawners[i]), 0);
    qsort(ids, 3 * MANY, sizeof ids[0], compare_ids);
    assert_true(ids[0] > 0);
    for (int i = 1; i < 3 * MANY; i++)
        assert_true(ids[i - 1] < ids[i]);
    free_rt(rt);
}

static void a_reference_outlives_task_and_handle(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;
    blz_task *task;
    uint64_t id;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeps), 0);
    task = blz_task_ref(handle.task);
    id = blz_task_id(task);
    turn_all(rt);
    blz_task_cancel(task);
    turn_all(rt);
    assert_true(blz_handle_done(&handle));
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    assert_int_equal(blz_task_id(task), id);
    assert_string_equal(blz_task_name(task), "sleeps");
    blz_task_cancel(task);
    blz_task_unref(task);
    blz_task_unref(NULL);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_gives_the_result_and_empties_the_handle),
        TEST(a_join_returns_zero_also_when_the_task_failed),
        TEST(a_join_of_an_empty_handle_is_invalid),
        TEST(a_task_that_has_ended_can_still_be_joined),
        TEST(a_kept_handle_gives_the_finished_frame),
        TEST(joins_nest_deeper_than_they_run_in_place),
        TEST(a_cancelled_joiner_keeps_its_handle_and_the_task_runs_on),
        TEST(a_detached_task_runs),
        TEST(a_handle_can_be_detached_while_the_task_runs),
        TEST(wait_blocks_until_the_task_has_ended),
        TEST(wait_of_an_empty_handle_is_invalid),
        TEST(wait_on_a_worker_is_a_deadlock),
        TEST(empty_handles_are_done_and_can_be_cancelled_and_detached),
        TEST(many_threads_spawn_and_wait_at_once),
        TEST(on_done_calls_back_when_the_task_ends),
        TEST(on_done_calls_at_once_if_the_task_has_ended),
        TEST(on_done_is_called_for_a_task_that_the_shutdown_cancels),
        TEST(on_done_of_an_empty_handle_is_invalid),
        TEST(spawning_without_a_runtime_is_refused),
        TEST(outside_of_tasks_there_is_no_current_task_or_runtime),
        TEST(a_task_knows_its_name_number_and_runtime),
        TEST(a_task_can_be_named_when_it_is_spawned),
        TEST(ids_are_never_used_twice),
        TEST(a_reference_outlives_task_and_handle),
    };
    return RUN_TESTS(tests);
}
