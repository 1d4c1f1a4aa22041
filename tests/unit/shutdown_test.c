/* SPDX-License-Identifier: Apache-2.0 */
/* Shutting down: who is cancelled and when, what is refused, what time limits and force do. */
#include "harness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- who is cancelled ---- */

static void idle_tasks_are_cancelled(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct event started = EVENT_INIT;
    blz_handle handles[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], sleeps, .started = &started), 0);
    event_wait(&started, 20);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, -ECANCELED);
    }
    free_rt(rt);
}

struct spins {
    BLZ_FRAME;
    struct event *started;
    uint32_t *release; /* atomic */
    int64_t rc;
    blz_future op;
};

/* Keeps its worker busy until it is released, then awaits. */
BLZ_ASYNC(spins)
{
    BLZ_BEGIN;
    event_post(self->started);
    while (!__atomic_load_n(self->release, __ATOMIC_ACQUIRE))
        sched_yield();
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_END(self->rc);
}

struct shutter {
    blz_rt *rt;
    int64_t grace_ns;
    int rc;
    struct event done;
};

static void *shut_down(void *arg)
{
    struct shutter *shutter = arg;

    shutter->rc = blz_rt_shutdown(shutter->rt, shutter->grace_ns);
    event_post(&shutter->done);
    return NULL;
}

/* Until new tasks are refused. */
static void wait_for_closing(blz_rt *rt)
{
    int rc;

    while ((rc = BLZ_SPAWN_ON(rt, NULL, give)) == 0)
        sched_yield();
    assert_int_equal(rc, -ESHUTDOWN);
}

static void running_and_queued_tasks_are_cancelled(void **state)
{
    struct shutter shutter = {.rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER}),
                              .grace_ns = BLZ_NEVER,
                              .done = EVENT_INIT};
    struct event started = EVENT_INIT;
    uint32_t release = 0;
    blz_handle running, queued[10];
    pthread_t thread;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(shutter.rt, &running, spins, .started = &started,
                                  .release = &release),
                     0);
    event_wait(&started, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(BLZ_SPAWN_ON(shutter.rt, &queued[i], sleeps), 0);
    thread = start_thread(shut_down, &shutter);
    wait_for_closing(shutter.rt);
    assert_int_equal(event_count(&shutter.done), 0);
    __atomic_store_n(&release, 1, __ATOMIC_RELEASE);
    join_thread(thread);
    assert_int_equal(shutter.rc, 0);
    assert_int_equal(blz_handle_wait(&running), 0);
    assert_int_equal(running.result, -ECANCELED);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(blz_handle_wait(&queued[i]), 0);
        assert_int_equal(queued[i].result, -ECANCELED);
    }
    free_rt(shutter.rt);
}

static void yielding_tasks_are_cancelled(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handles[10];

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], yields, .times = INT32_MAX), 0);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, -ECANCELED);
    }
    free_rt(rt);
}

struct family {
    BLZ_FRAME;
    int depth;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_future op;
};

BLZ_ASYNC(family)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 3 && self->depth > 0; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, family, .depth = self->depth - 1) == 0);
    if (self->depth == 0)
        BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void parents_join_their_cancelled_children(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, family, .depth = 5), 0);
    do
        blz_rt_stats(rt, &stats);
    while (stats.live_tasks < 364);
    free_rt(rt);
}

/* ---- what is refused ---- */

struct spawns_late {
    BLZ_FRAME;
    int plain, scoped, named;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle handle;
};

/* Waits to be cancelled, and then tries to spawn. */
BLZ_ASYNC(spawns_late)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    self->plain = BLZ_SPAWN(give);
    check(BLZ_SPAWN_JOIN(&self->handle, give) == -ESHUTDOWN);
    check(self->handle.task == NULL);
    self->scoped = BLZ_SCOPE_SPAWN(&self->scope, give);
    self->named = BLZ_SPAWN_WITH((&(blz_spawn_args){.name = "late"}), give);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(0);
}

static void tasks_cannot_spawn_during_the_shutdown(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handle;
    struct spawns_late *frame;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, spawns_late), 0);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    frame = blz_handle_frame(&handle);
    assert_int_equal(frame->plain, -ESHUTDOWN);
    assert_int_equal(frame->scoped, -ESHUTDOWN);
    assert_int_equal(frame->named, -ESHUTDOWN);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void threads_cannot_spawn_after_the_shutdown(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handle = {NULL, 0};

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_int_equal(blz_rt_shutdown(rt, 0), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), -ESHUTDOWN);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), -ESHUTDOWN);
    assert_null(handle.task);
    assert_int_equal(BLZ_BLOCK_ON(rt, give), -ESHUTDOWN);
    assert_int_equal(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &handle, .name = "x"}),
                                    give),
                     -ESHUTDOWN);
    assert_null(handle.task);
    free_rt(rt);
}

static void a_runtime_that_never_started_can_be_shut_down(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(blz_rt_shutdown(rt, 0), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), -ESHUTDOWN);
    assert_int_equal(nr_threads(), before);
    assert_int_equal(blz_rt_shutdown(rt, 0), 0);
    free_rt(rt);
}

static void it_may_be_shut_down_again(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(blz_rt_shutdown(rt, 0), 0);
    free_rt(rt);
}

static void two_threads_may_shut_down_at_once(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct shutter shutters[2] = {{.rt = rt, .grace_ns = BLZ_NEVER, .done = EVENT_INIT},
                                  {.rt = rt, .grace_ns = BLZ_HOUR, .done = EVENT_INIT}};
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread(shut_down, &shutters[i]);
    for (int i = 0; i < 2; i++)
        join_thread(threads[i]);
    assert_int_equal(shutters[0].rc, 0);
    assert_int_equal(shutters[1].rc, 0);
    free_rt(rt);
}

/* ---- grace, force, and no end ---- */

struct cleans_up {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc, cleanup;
    blz_future op;
    struct gate_wait enter;
};

BLZ_ASYNC(cleans_up)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT_SHIELDED(self->cleanup, gate_enter(&self->enter, self->gate));
    BLZ_END(self->cleanup);
}

static void a_shielded_task_finishes_within_the_grace_period(void **state)
{
    struct shutter shutter = {.rt = new_rt(&(blz_options){.workers = 2}),
                              .grace_ns = BLZ_HOUR,
                              .done = EVENT_INIT};
    struct gate gate = GATE_INIT;
    blz_handle handle;
    pthread_t thread;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(shutter.rt, &handle, cleans_up, .gate = &gate), 0);
    thread = start_thread(shut_down, &shutter);
    event_wait(&gate.arrived, 1);
    assert_int_equal(event_count(&shutter.done), 0);
    gate_open(&gate, 5);
    join_thread(thread);
    assert_int_equal(shutter.rc, 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 5);
    free_rt(shutter.rt);
}

static void force_overrides_shields(void **state)
{
    struct shutter patient = {.rt = new_rt(&(blz_options){.workers = 2}),
                              .grace_ns = BLZ_NEVER,
                              .done = EVENT_INIT};
    struct gate gate = GATE_INIT;
    blz_handle handle;
    pthread_t thread;
    int rc;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(patient.rt, &handle, cleans_up, .gate = &gate), 0);
    thread = start_thread(shut_down, &patient);
    event_wait(&gate.arrived, 1);
    /* The gate never opens: what ends the cleanup is the force phase. */
    while ((rc = blz_rt_shutdown(patient.rt, BLZ_MSEC)) == -ETIMEDOUT)
        ;
    assert_int_equal(rc, 0);
    join_thread(thread);
    assert_int_equal(patient.rc, 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    free_rt(patient.rt);
}

struct never_ends {
    BLZ_FRAME;
    bool *enough; /* atomic; NULL: really never */
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(never_ends)
{
    BLZ_BEGIN;
    while (!self->enough || !__atomic_load_n(self->enough, __ATOMIC_RELAXED))
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(0);
}

static void find_task(const char *line, void *arg)
{
    if (strstr(line, "\"never_ends\""))
        ++*(int *)arg;
}

static void a_task_that_does_not_end_is_reported(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    bool enough = false;
    int found = 0;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, never_ends, .enough = &enough), 0);
    assert_int_equal(blz_rt_shutdown(rt, 20 * BLZ_MSEC), -ETIMEDOUT);
    assert_int_equal(blz_task_dump(rt, find_task, &found), 0);
    assert_int_equal(found, 1);
    assert_int_equal(blz_rt_shutdown(rt, 0), -ETIMEDOUT);
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    free_rt(rt);
}

/* ---- leaking on purpose: in a process of its own ---- */

static int leaks_new(void)
{
    blz_options options = {.workers = 2, .shutdown_ns = 20 * BLZ_MSEC};
    blz_rt *rt;

    check(blz_rt_new(&rt, &options) == 0);
    check(BLZ_SPAWN_ON(rt, NULL, never_ends) == 0);
    return blz_rt_free(rt) == -ETIMEDOUT ? 0 : 1;
}

struct leaves_one {
    BLZ_FRAME;
};

BLZ_ASYNC(leaves_one)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN(never_ends) == 0);
    BLZ_END(4);
}

static int leaks_run(void)
{
    blz_options options = {.workers = 2, .shutdown_ns = 20 * BLZ_MSEC};

    return BLZ_RUN_WITH(&options, leaves_one) == -ETIMEDOUT ? 0 : 1;
}

static const struct {
    const char *name;
    int (*fn)(void);
} children[] = {{"leaks_new", leaks_new}, {"leaks_run", leaks_run}};

static int child_main(const char *name)
{
    alarm(CHILD_SECONDS);
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
        if (strcmp(children[i].name, name) == 0)
            _exit(children[i].fn()); /* threads still run: leave without looking back */
    _exit(99);
}

static void freeing_gives_up_on_a_task_that_never_ends(void **state)
{
    (void)state;
    in_own_process("leaks_new");
}

static void run_gives_up_on_a_task_that_never_ends(void **state)
{
    (void)state;
    in_own_process("leaks_run");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(idle_tasks_are_cancelled),
        TEST(running_and_queued_tasks_are_cancelled),
        TEST(yielding_tasks_are_cancelled),
        TEST(parents_join_their_cancelled_children),
        TEST(tasks_cannot_spawn_during_the_shutdown),
        TEST(threads_cannot_spawn_after_the_shutdown),
        TEST(a_runtime_that_never_started_can_be_shut_down),
        TEST(it_may_be_shut_down_again),
        TEST(two_threads_may_shut_down_at_once),
        TEST(a_shielded_task_finishes_within_the_grace_period),
        TEST(force_overrides_shields),
        TEST(a_task_that_does_not_end_is_reported),
        TEST(freeing_gives_up_on_a_task_that_never_ends),
        TEST(run_gives_up_on_a_task_that_never_ends),
    };

    if (argc > 1)
        return child_main(argv[1]);
    return RUN_TESTS(tests);
}
