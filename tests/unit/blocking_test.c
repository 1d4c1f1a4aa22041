/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking pool, as its users see it: results, cancellation, threads, shutdown. */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- jobs ---- */

static int64_t double_it(void *arg)
{
    return 2 * *(int64_t *)arg;
}

static int64_t do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Says that it has begun, and waits until it may end. */
struct stop {
    struct event begun, go_on;
    int64_t value;
};

#define STOP_INIT                 \
    {                             \
        EVENT_INIT, EVENT_INIT, 7 \
    }

static int64_t stop(void *arg)
{
    struct stop *s = arg;

    event_post(&s->begun);
    event_wait(&s->go_on, 1);
    return s->value;
}

/* Waits until as many others wait. */
struct meeting {
    struct event arrived;
    int64_t members;
};

static int64_t meet(void *arg)
{
    struct meeting *m = arg;

    event_post(&m->arrived);
    event_wait(&m->arrived, m->members);
    return 1;
}

/* ---- tasks ---- */

struct awaits {
    BLZ_FRAME;
    int64_t (*fn)(void *arg);
    void *arg;
    struct event *done; /* posted at the end, if there is one */
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(awaits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking(&self->op, self->fn, self->arg));
    if (self->done)
        event_post(self->done);
    BLZ_END(self->rc);
}

/* ---- results ---- */

static void a_task_awaits_a_function_on_the_pool(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .fn = double_it, .arg = &i), 2 * i);
    free_rt(rt);
}

static void a_thread_runs_a_function_on_the_pool(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    int64_t value = 21;

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(blz_blocking_run(rt, double_it, &value), 42);
    free_rt(rt);
}

/* ---- threads ---- */

static void jobs_that_wait_for_each_other_all_get_a_thread(void **state)
{
    enum { MEMBERS = 512 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct meeting m = {.arrived = EVENT_INIT, .members = MEMBERS};
    blz_handle *handles = calloc(MEMBERS, sizeof *handles);

    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], awaits, .fn = meet, .arg = &m), 0);
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, 1);
    }
    free(handles);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_awaits_a_function_on_the_pool),
        TEST(a_thread_runs_a_function_on_the_pool),
        TEST(jobs_that_wait_for_each_other_all_get_a_thread),
    };
    (void)do_nothing;
    (void)stop;
    return RUN_TESTS(tests);
}
