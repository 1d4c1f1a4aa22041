/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel computations that tasks await: results, free workers, cancellation. */
#include "par.h"

#include <errno.h>

/* ---- computations ---- */

static int64_t double_it(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    check(blz_par_pool(par) && blz_par_cancel_code(cancel) == 0);
    check(!blz_rt_current() && !blz_task_current());
    return 2 * *(int64_t *)arg;
}

/* Says that it has begun, and goes on when it may. */
struct halt {
    struct event begun, go_on;
    int64_t calls;
};

#define HALT_INIT                 \
    {                             \
        EVENT_INIT, EVENT_INIT, 0 \
    }

static int64_t halt(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    struct halt *h = arg;

    (void)par, (void)cancel;
    h->calls++;
    event_post(&h->begun);
    event_wait(&h->go_on, 1);
    return 7;
}

static int pass(blz_par *par, size_t begin, size_t end, void *arg)
{
    (void)par, (void)begin, (void)end, (void)arg;
    return 0;
}

/* Loops until it is cancelled. */
static int64_t loop(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    struct halt *h = arg;
    int rc;

    event_post(&h->begun);
    do {
        rc = blz_par_for(par, 100, pass, NULL, &(blz_par_options){.cancel = cancel});
    } while (rc == 0);
    check(blz_par_cancel_code(cancel) == rc);
    return rc - 1000; /* its own result, not the await's */
}

/* ---- tasks ---- */

struct awaits {
    BLZ_FRAME;
    blz_pool *pool;
    blz_par_run_fn fn;
    void *arg;
    int64_t rc;
    blz_par_run_op op;
};

BLZ_ASYNC(awaits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_par_run(&self->op, self->pool, self->fn, self->arg));
    BLZ_END(self->rc);
}

struct posts {
    BLZ_FRAME;
    struct event *event;
};

BLZ_ASYNC(posts)
{
    BLZ_BEGIN;
    event_post(self->event);
    BLZ_END(0);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- results ---- */

static void a_task_awaits_a_computation(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_pool *pool = new_pool_of(2);

    (void)state;
    for (int64_t i = -5; i < 500; i++) /* what looks like an error is a result, too */
        assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .pool = pool, .fn = double_it, .arg = &i), 2 * i);
    assert_int_equal(blz_pool_free(pool), 0);
    free_rt(rt);
}

/* The computation ends when another task of the only worker has run. */
static void the_worker_is_free_meanwhile(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_pool *pool = new_pool_of(1);
    struct halt h = HALT_INIT;
    blz_handle task, other;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, awaits, .pool = pool, .fn = halt, .arg = &h), 0);
    event_wait(&h.begun, 1);
    assert_int_equal(BLZ_SPAWN_ON(rt, &other, posts, .event = &h.go_on), 0);
    assert_int_equal(result_of(&task), 7);
    assert_int_equal(result_of(&other), 0);
    assert_int_equal(blz_pool_free(pool), 0);
    free_rt(rt);
}

/* Made before the test: it stays. */
static void no_pool_is_the_default_pool(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    int64_t value = 21;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .fn = double_it, .arg = &value), 42);
    free_rt(rt);
}

struct repeats {
    BLZ_FRAME;
    blz_pool *pool;
    int64_t i, rc, sum;
    blz_par_run_op op;
};

BLZ_ASYNC(repeats)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 100; self->i++) {
        BLZ_AWAIT(self->rc, blz_par_run(&self->op, self->pool, double_it, &self->i));
        self->sum += self->rc;
    }
    BLZ_END(self->sum);
}

static void many_tasks_share_a_pool(void **state)
{
    enum { TASKS = 20 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_pool *pool = new_pool_of(2);
    blz_handle tasks[TASKS];

    (void)state;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[i], repeats, .pool = pool), 0);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(result_of(&tasks[i]), 99 * 100);
    assert_int_equal(blz_pool_free(pool), 0);
    free_rt(rt);
}

/* ---- cancellation ---- */

static void a_computation_that_has_not_begun_never_will(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_pool *pool = new_pool_of(1);
    struct halt first = HALT_INIT, second = HALT_INIT;
    struct event polled = EVENT_INIT;
    blz_handle running, waiting;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &running, awaits, .pool = pool, .fn = halt, .arg = &first),
                     0);
    event_wait(&first.begun, 1);
    assert_int_equal(BLZ_SPAWN_ON(rt, &waiting, awaits, .pool = pool, .fn = halt, .arg = &second),
                     0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, posts, .event = &polled), 0);
    event_wait(&polled, 1); /* after the one that waits */
    blz_handle_cancel(&waiting);
    assert_int_equal(result_of(&waiting), -ECANCELED); /* the first one still runs */
    event_post(&first.go_on);
    assert_int_equal(result_of(&running), 7);
    assert_int_equal(blz_pool_free(pool), 0);
    assert_int_equal(second.calls, 0);
    free_rt(rt);
}

static void a_computation_that_runs_is_told_and_waited_for(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_pool *pool = new_pool_of(2);
    struct halt h = HALT_INIT;
    blz_handle task;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, awaits, .pool = pool, .fn = loop, .arg = &h), 0);
    event_wait(&h.begun, 1);
    blz_handle_cancel(&task);
    assert_int_equal(result_of(&task), -ECANCELED - 1000);
    assert_int_equal(blz_pool_free(pool), 0);
    free_rt(rt);
}

struct races {
    BLZ_FRAME;
    blz_pool *pool;
    struct halt *halt;
    struct gate *gate;
    int64_t rc;
    blz_par_run_op op;
    struct gate_wait wait;
    blz_race_op race;
};

BLZ_ASYNC(races)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_race(&self->race, gate_enter(&self->wait, self->gate),
                                 blz_par_run(&self->op, self->pool, loop, self->halt)));
    check(self->op.future.result == -ECANCELED - 1000); /* drained, and readable */
    BLZ_END(self->rc);
}

static void a_computation_that_loses_a_race_is_cancelled(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_pool *pool = new_pool_of(2);
    struct halt h = HALT_INIT;
    struct gate gate = GATE_INIT;
    blz_handle task;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, races, .pool = pool, .halt = &h, .gate = &gate), 0);
    event_wait(&h.begun, 1);
    gate_open(&gate, 0);
    assert_int_equal(result_of(&task), 0);
    assert_int_equal(blz_pool_free(pool), 0);
    free_rt(rt);
}

static void a_shutdown_cancels_a_computation(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_pool *pool = new_pool_of(1);
    struct halt h = HALT_INIT;
    blz_handle task;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, awaits, .pool = pool, .fn = loop, .arg = &h), 0);
    event_wait(&h.begun, 1);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(result_of(&task), -ECANCELED - 1000);
    assert_int_equal(blz_pool_free(pool), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_awaits_a_computation),
        TEST(the_worker_is_free_meanwhile),
        TEST(no_pool_is_the_default_pool),
        TEST(many_tasks_share_a_pool),
        TEST(a_computation_that_has_not_begun_never_will),
        TEST(a_computation_that_runs_is_told_and_waited_for),
        TEST(a_computation_that_loses_a_race_is_cancelled),
        TEST(a_shutdown_cancels_a_computation),
    };

    check(blz_pool_default() != NULL);
    return RUN_TESTS(tests);
}
