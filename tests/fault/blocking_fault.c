/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking pool when the system has no thread or no memory for it: who is told, what stays in
 * the queue, and that arguments are destroyed exactly once.
 */
#include "harness.h"

#include "faulty.h"

#include <sched.h>

/* ---- calls ---- */

static int64_t count_up(void *arg)
{
    return (int64_t)__atomic_add_fetch((uint64_t *)arg, 1, __ATOMIC_ACQ_REL);
}

/* An argument that knows what was done to it. */
struct parcel {
    uint64_t calls, destroyed; /* atomic */
};

static int64_t open_parcel(void *arg)
{
    return count_up(&((struct parcel *)arg)->calls);
}

static void destroy_parcel(void *arg)
{
    count_up(&((struct parcel *)arg)->destroyed);
}

struct halt {
    struct event begun, go_on;
};

static int64_t halt(void *arg)
{
    struct halt *h = arg;

    event_post(&h->begun);
    event_wait(&h->go_on, 1);
    return 5;
}

struct awaits {
    BLZ_FRAME;
    void *arg;
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(awaits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking(&self->op, count_up, self->arg));
    BLZ_END(self->rc);
}

struct awaits_owned {
    BLZ_FRAME;
    struct parcel *parcel;
    int64_t rc;
    blz_blocking_owned_op op;
};

BLZ_ASYNC(awaits_owned)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking_owned(&self->op, open_parcel, self->parcel, destroy_parcel));
    BLZ_END(self->rc);
}

/* ---- no thread at all ---- */

/* A runtime whose workers run already. */
static blz_rt *new_running_rt(void)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    return rt;
}

static void without_any_thread_every_call_is_refused(void **state)
{
    static const struct {
        enum faulty call;
        int error;
    } faults[] = {{FAULTY_THREAD_START, EAGAIN}, {FAULTY_THREAD_START, ENOMEM}};
    blz_rt *rt = new_running_rt();
    struct parcel parcel = {0, 0}, spawned = {0, 0};
    blz_blocking_op op = {0};
    uint64_t count = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int error = -faults[i].error;

        fail_call(faults[i].call, 1, true, faults[i].error);
        assert_int_equal(blz_blocking_run(rt, count_up, &count), error);
        assert_int_equal(blz_blocking_start(&op, count_up, &count, rt), error);
        assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .arg = &count), error);
        assert_int_equal(BLZ_BLOCK_ON(rt, awaits_owned, .parcel = &parcel), error);
        assert_int_equal(blz_blocking_spawn(rt, open_parcel, &spawned, destroy_parcel), error);
        assert_true(stop_failing(faults[i].call));
        assert_int_equal(parcel.destroyed, i + 1); /* an owned argument is taken over */
    }
    assert_int_equal(spawned.destroyed, 0); /* but here it is still the caller's */
    assert_int_equal(parcel.calls + spawned.calls + count, 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .arg = &count), 1); /* and now it works */
    assert_int_equal(BLZ_BLOCK_ON(rt, awaits_owned, .parcel = &parcel), 1);
    assert_int_equal(parcel.destroyed, 3);
    free_rt(rt);
}

/* Calls of several threads at once: one of them tries in vain, the others rely on it. */
struct caller {
    pthread_t thread;
    blz_rt *rt;
    struct event *go;
    uint64_t count;
    int64_t rc;
};

static void *call(void *arg)
{
    struct caller *c = arg;

    event_wait(c->go, 1);
    c->rc = blz_blocking_run(c->rt, count_up, &c->count);
    return NULL;
}

static void all_who_rely_on_a_thread_that_does_not_come_are_told(void **state)
{
    enum { CALLERS = 4, ROUNDS = 200 };

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1});
        struct event go = EVENT_INIT;
        struct caller callers[CALLERS];

        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (struct caller){.rt = rt, .go = &go};
            callers[i].thread = start_thread(call, &callers[i]);
        }
        fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
        event_post(&go);
        for (int i = 0; i < CALLERS; i++) {
            join_thread(callers[i].thread);
            assert_int_equal(callers[i].rc, -EAGAIN);
            assert_int_equal(callers[i].count, 0);
        }
        stop_failing(FAULTY_THREAD_START);
        free_rt(rt);
    }
}

/* ---- fewer threads than wanted ---- */

static void with_one_thread_alive_calls_wait_for_it(void **state)
{
    blz_rt *rt = new_running_rt();
    struct halt h = {EVENT_INIT, EVENT_INIT};
    blz_blocking_op ops[3] = {0};
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_start(&ops[0], halt, &h, rt), 0);
    event_wait(&h.begun, 1);
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    assert_int_equal(blz_blocking_start(&ops[1], count_up, &count, rt), 0);
    assert_int_equal(blz_blocking_start(&ops[2], count_up, &count, rt), 0);
    assert_int_equal(__atomic_load_n(&count, __ATOMIC_ACQUIRE), 0);
    event_post(&h.go_on);
    assert_int_equal(blz_blocking_wait(&ops[0]), 5);
    assert_int_equal(blz_blocking_wait(&ops[1]) + blz_blocking_wait(&ops[2]), 1 + 2);
    assert_true(stop_failing(FAULTY_THREAD_START));
    free_rt(rt);
}

/* Has one thread, which is idle. */
static void warm_up(blz_rt *rt)
{
    uint64_t count = 0;
    blz_stats stats;

    assert_int_equal(blz_blocking_run(rt, count_up, &count), 1);
    for (blz_rt_stats(rt, &stats); stats.blocking_idle == 0; blz_rt_stats(rt, &stats))
        sched_yield();
}

/* Nobody adds another call, and the only thread stays in its call until the second has ended. */
static void a_thread_that_was_refused_for_a_moment_is_started_later(void **state)
{
    blz_rt *rt = new_running_rt();
    struct halt h = {EVENT_INIT, EVENT_INIT};
    blz_blocking_op first = {0}, second = {0};
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_start(&first, halt, &h, rt), 0);
    event_wait(&h.begun, 1);
    fail_call(FAULTY_THREAD_START, 1, false, EAGAIN);
    assert_int_equal(blz_blocking_start(&second, count_up, &count, rt), 0);
    assert_int_equal(blz_blocking_wait(&second), 1);
    assert_true(stop_failing(FAULTY_THREAD_START));
    event_post(&h.go_on);
    assert_int_equal(blz_blocking_wait(&first), 5);
    free_rt(rt);
}

/* The thread that is called takes one, leaves the other behind, and cannot start its successor. */
static void a_call_that_was_left_behind_gets_its_thread_later(void **state)
{
    blz_rt *rt = new_running_rt();
    struct halt h = {EVENT_INIT, EVENT_INIT};
    blz_blocking_op first = {0}, second = {0};
    uint64_t count = 0;

    (void)state;
    warm_up(rt);
    fail_call(FAULTY_THREAD_START, 1, false, EAGAIN);
    assert_int_equal(blz_blocking_start(&first, halt, &h, rt), 0);
    assert_int_equal(blz_blocking_start(&second, count_up, &count, rt), 0);
    assert_int_equal(blz_blocking_wait(&second), 1);
    assert_true(stop_failing(FAULTY_THREAD_START));
    event_post(&h.go_on);
    assert_int_equal(blz_blocking_wait(&first), 5);
    free_rt(rt);
}

static void a_later_call_brings_the_thread_that_was_refused(void **state)
{
    blz_rt *rt = new_running_rt();
    struct halt h = {EVENT_INIT, EVENT_INIT};
    blz_blocking_op ops[3] = {0};
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_start(&ops[0], halt, &h, rt), 0);
    event_wait(&h.begun, 1);
    fail_call(FAULTY_THREAD_START, 1, false, EAGAIN);
    assert_int_equal(blz_blocking_start(&ops[1], count_up, &count, rt), 0);
    assert_true(stop_failing(FAULTY_THREAD_START));
    assert_int_equal(blz_blocking_start(&ops[2], count_up, &count, rt), 0);
    /* while the first is still halted */
    assert_int_equal(blz_blocking_wait(&ops[1]) + blz_blocking_wait(&ops[2]), 1 + 2);
    event_post(&h.go_on);
    assert_int_equal(blz_blocking_wait(&ops[0]), 5);
    free_rt(rt);
}

static void a_thread_that_finds_no_help_does_the_calls_alone(void **state)
{
    enum { CALLS = 300 };
    blz_rt *rt = new_running_rt();
    blz_blocking_op ops[CALLS] = {0};
    uint64_t count = 0;
    blz_stats stats;

    (void)state;
    assert_int_equal(blz_blocking_run(rt, count_up, &count), 1);
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(blz_blocking_start(&ops[i], count_up, &count, rt), 0);
    for (int i = 0; i < CALLS; i++)
        assert_true(blz_blocking_wait(&ops[i]) > 0);
    stop_failing(FAULTY_THREAD_START);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.blocking_started, 1);
    free_rt(rt);
}

static void a_shutdown_ends_calls_whose_thread_was_refused(void **state)
{
    blz_rt *rt = new_running_rt();
    struct halt h = {EVENT_INIT, EVENT_INIT};
    struct parcel parcel = {0, 0};

    (void)state;
    assert_int_equal(blz_blocking_spawn(rt, halt, &h, NULL), 0);
    event_wait(&h.begun, 1);
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    assert_int_equal(blz_blocking_spawn(rt, open_parcel, &parcel, destroy_parcel), 0);
    assert_int_equal(blz_rt_shutdown(rt, 0), -ETIMEDOUT);
    assert_true(stop_failing(FAULTY_THREAD_START));
    assert_int_equal(parcel.calls, 0);
    assert_int_equal(parcel.destroyed, 1);
    event_post(&h.go_on);
    free_rt(rt);
    assert_int_equal(parcel.destroyed, 1);
}

/* ---- no memory ---- */

static void without_memory_for_the_pool_calls_are_refused(void **state)
{
    blz_rt *rt = new_running_rt();
    struct parcel parcel = {0, 0};
    uint64_t count = 0;

    (void)state;
    memory_fail_at(the_memory(), 1, true);
    assert_int_equal(blz_blocking_run(rt, count_up, &count), -ENOMEM);
    assert_int_equal(blz_blocking_spawn(rt, open_parcel, &parcel, destroy_parcel), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(count + parcel.calls + parcel.destroyed, 0);
    assert_int_equal(blz_blocking_run(rt, count_up, &count), 1);
    free_rt(rt);
}

/* The task's block is there already; what else it allocates fails in turn: node, pool, ... */
static void an_owned_argument_is_destroyed_wherever_memory_runs_out(void **state)
{
    int refused = 0;
    bool failed = true;

    (void)state;
    for (int n = 1; failed; n++) {
        blz_rt *rt = new_embedded_rt();
        struct parcel parcel = {0, 0};
        blz_handle handle;

        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_owned, .parcel = &parcel), 0);
        memory_fail_at(the_memory(), n, false);
        while (!blz_handle_done(&handle))
            turn_all(rt);
        failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        int64_t rc = ((struct awaits_owned *)blz_handle_frame(&handle))->rc;
        blz_handle_detach(&handle);
        assert_true(rc == 1 || (failed && rc == -ENOMEM));
        assert_int_equal(parcel.calls, rc == 1);
        assert_int_equal(parcel.destroyed, 1);
        refused += rc < 0;
        free_rt(rt);
    }
    assert_int_equal(refused, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_any_thread_every_call_is_refused),
        TEST(all_who_rely_on_a_thread_that_does_not_come_are_told),
        TEST(with_one_thread_alive_calls_wait_for_it),
        TEST(a_thread_that_was_refused_for_a_moment_is_started_later),
        TEST(a_call_that_was_left_behind_gets_its_thread_later),
        TEST(a_later_call_brings_the_thread_that_was_refused),
        TEST(a_thread_that_finds_no_help_does_the_calls_alone),
        TEST(a_shutdown_ends_calls_whose_thread_was_refused),
        TEST(without_memory_for_the_pool_calls_are_refused),
        TEST(an_owned_argument_is_destroyed_wherever_memory_runs_out),
    };
    return RUN_TESTS(tests);
}
