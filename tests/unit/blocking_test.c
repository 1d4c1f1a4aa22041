/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking work as tasks and threads see it: results, cancellation, ownership. */
#include "blocking_jobs.h"

#include <signal.h>
#include <stdlib.h>

/* ---- tasks ---- */

struct awaits_owned {
    BLZ_FRAME;
    int64_t (*fn)(void *arg);
    void *arg;
    void (*destroy)(void *arg);
    int64_t rc;
    blz_blocking_owned_op op;
};

BLZ_ASYNC(awaits_owned)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking_owned(&self->op, self->fn, self->arg, self->destroy));
    BLZ_END(self->rc);
}

/* ---- results ---- */

static void a_task_awaits_a_function_on_the_pool(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    for (int64_t i = -5; i < 1000; i++) /* what looks like an error is a result, too */
        assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .fn = double_it, .arg = &i), 2 * i);
    free_rt(rt);
}

static int64_t own_thread(void *arg)
{
    (void)arg;
    check(blz_rt_current() == NULL && blz_task_current() == NULL);
    return thread_id();
}

static void the_function_runs_on_a_thread_that_is_no_worker(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_not_equal(BLZ_BLOCK_ON(rt, awaits, .fn = own_thread), thread_id());
    assert_int_not_equal(blz_blocking_run(rt, own_thread, NULL), thread_id());
    free_rt(rt);
}

static int64_t blocked_signals(void *arg)
{
    sigset_t set;

    (void)arg;
    check(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
    return sigismember(&set, SIGINT) && sigismember(&set, SIGUSR1) && sigismember(&set, SIGALRM);
}

static void its_threads_take_no_signals(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(blz_blocking_run(rt, blocked_signals, NULL), 1);
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

static void a_thread_starts_calls_and_waits_for_them_later(void **state)
{
    enum { CALLS = 100 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_blocking_op ops[CALLS] = {0};
    int64_t values[CALLS];

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        values[i] = i;
        assert_int_equal(blz_blocking_start(&ops[i], double_it, &values[i], rt), 0);
    }
    for (int i = CALLS - 1; i >= 0; i--)
        assert_int_equal(blz_blocking_wait(&ops[i]), 2 * i);
    free_rt(rt);
}

struct starts_many {
    BLZ_FRAME;
    uint64_t *count;
    int i;
    int64_t rc, sum;
    blz_blocking_op ops[300]; /* more than a poll's budget */
};

BLZ_ASYNC(starts_many)
{
    BLZ_BEGIN;
    for (int i = 0; i < 300; i++)
        check(blz_blocking_start(&self->ops[i], count_up, self->count, NULL) == 0);
    for (self->i = 0; self->i < 300; self->i++) {
        BLZ_AWAIT(self->rc, blz_blocking_join(&self->ops[self->i]));
        self->sum += self->rc;
    }
    BLZ_END(self->sum);
}

static void a_task_starts_calls_and_joins_them_later(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    uint64_t count = 0;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, starts_many, .count = &count), 300 * 301 / 2);
    free_rt(rt);
}

static void a_call_that_nobody_waits_for_is_made_and_destroyed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct halt h = HALT_INIT(0);
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_spawn(rt, halt, &h, halt_destroy), 0);
    event_wait(&h.begun, 1);
    assert_int_equal(event_count(&h.destroyed), 0);
    event_post(&h.go_on);
    event_wait(&h.destroyed, 1);
    assert_int_equal(blz_blocking_spawn(rt, count_up, &count, NULL), 0);
    while (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    free_rt(rt);
    assert_int_equal(event_count(&h.destroyed), 1);
}

struct nest {
    blz_rt *rt;
    int depth;
};

static int64_t run_deeper(void *arg)
{
    struct nest *n = arg;
    struct nest next = {n->rt, n->depth - 1};

    return n->depth == 0 ? 0 : 1 + blz_blocking_run(n->rt, run_deeper, &next);
}

static int64_t block_on_task(void *rt)
{
    return BLZ_BLOCK_ON((blz_rt *)rt, give, .value = 5);
}

static void a_function_may_use_the_pool_and_block_on_tasks(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct nest nest = {rt, 20};

    (void)state;
    assert_int_equal(blz_blocking_run(rt, run_deeper, &nest), 20);
    assert_int_equal(BLZ_BLOCK_ON(rt, awaits, .fn = block_on_task, .arg = rt), 5);
    free_rt(rt);
}

static int64_t run_on_worker(void *rt)
{
    uint64_t count = 0;

    check(blz_blocking_run(rt, count_up, &count) == -EDEADLK);
    check(blz_blocking_run(NULL, count_up, &count) == -EDEADLK);
    return (int64_t)count;
}

static void a_worker_must_not_wait_for_a_function(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = run_on_worker, .arg = rt), 0);
    free_rt(rt);
}

static void without_a_runtime_there_is_no_pool(void **state)
{
    blz_blocking_op op = {0};
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_run(NULL, count_up, &count), -ENXIO);
    assert_int_equal(blz_blocking_start(&op, count_up, &count, NULL), -ENXIO);
    assert_int_equal(blz_blocking_spawn(NULL, count_up, &count, NULL), -ENXIO);
    assert_int_equal(count, 0);
}

static void it_works_in_an_embedded_runtime(void **state)
{
    blz_rt *rt = new_embedded_rt();
    int64_t value = 4;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits, .fn = double_it, .arg = &value), 0);
    while (!blz_handle_done(&handle))
        turn_all(rt);
    assert_int_equal(((struct awaits *)blz_handle_frame(&handle))->rc, 8);
    blz_handle_detach(&handle);
    free_rt(rt);
}

static void it_works_with_the_calling_thread_as_a_worker(void **state)
{
    blz_options options = {.workers = 1, .allocator = test_memory()};
    int64_t value = 5;

    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&options, awaits, .fn = double_it, .arg = &value), 10);
}

/* ---- cancellation ---- */

/* A runtime with one thread for blocking work, which is in `h`. */
static blz_rt *new_blocked_rt(struct halt *h)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .max_blocking_threads = 1});

    assert_int_equal(blz_blocking_spawn(rt, halt, h, NULL), 0);
    event_wait(&h->begun, 1);
    return rt;
}

static void a_queued_call_that_is_cancelled_ends_at_once_and_is_never_made(void **state)
{
    struct halt h = HALT_INIT(0);
    blz_rt *rt = new_blocked_rt(&h);
    blz_handle first, second, third;
    uint64_t count = 0;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &first, awaits, .fn = count_up, .arg = &count), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &second, awaits, .fn = count_up, .arg = &count), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &third, awaits, .fn = count_up, .arg = &count), 0);
    wait_for_queued(rt, 3);
    blz_handle_cancel(&second); /* from the middle of the queue */
    assert_int_equal(blz_handle_wait(&second), 0);
    assert_int_equal(second.result, -ECANCELED);
    blz_handle_cancel(&third);
    assert_int_equal(blz_handle_wait(&third), 0);
    assert_int_equal(third.result, -ECANCELED);
    assert_int_equal(stats_of(rt).blocking_queued, 1);
    event_post(&h.go_on);
    assert_int_equal(blz_handle_wait(&first), 0);
    assert_int_equal(first.result, 1);
    free_rt(rt);
    assert_int_equal(count, 1);
}

static void a_running_call_that_is_cancelled_gives_its_result_when_it_is_done(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct event done = EVENT_INIT;
    struct halt h = HALT_INIT(7);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits, .fn = halt, .arg = &h, .done = &done), 0);
    event_wait(&h.begun, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(BLZ_BLOCK_ON(rt, give), 0); /* behind the cancelled task, which was polled */
    assert_int_equal(event_count(&done), 0);
    event_post(&h.go_on);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 7);
    free_rt(rt);
}

/* Cancels itself, and awaits in spite of that. */
struct awaits_late {
    BLZ_FRAME;
    uint64_t *count;
    struct halt *h;
    int64_t rc, plain, owned, started;
    blz_blocking_op op, second;
    blz_blocking_owned_op owned_op;
};

BLZ_ASYNC(awaits_late)
{
    BLZ_BEGIN;
    check(blz_blocking_start(&self->second, halt, self->h, NULL) == 0);
    event_wait(&self->h->begun, 1);
    blz_task_cancel(blz_task_current());
    BLZ_AWAIT(self->rc, blz_yield(&self->op.future));
    BLZ_AWAIT(self->plain, blz_blocking(&self->op, count_up, self->count));
    BLZ_AWAIT(self->owned, blz_blocking_owned(&self->owned_op, count_up, self->h, halt_destroy));
    event_post(&self->h->go_on);
    BLZ_AWAIT(self->started, blz_blocking_join(&self->second));
    BLZ_END(0);
}

static void in_a_cancelled_task_calls_are_refused_but_those_under_way_are_joined(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct halt h = HALT_INIT(7);
    struct awaits_late *frame;
    blz_handle handle;
    uint64_t count = 0;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_late, .count = &count, .h = &h), 0);
    while (!blz_handle_done(&handle))
        sched_yield();
    frame = blz_handle_frame(&handle);
    assert_int_equal(frame->plain, -ECANCELED);
    assert_int_equal(frame->owned, -ECANCELED);
    assert_int_equal(event_count(&h.destroyed), 1); /* its argument is not forgotten */
    assert_int_equal(frame->started, 7);
    assert_int_equal(count, 0);
    blz_handle_detach(&handle);
    free_rt(rt);
}

struct joins_queued {
    BLZ_FRAME;
    uint64_t *count;
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(joins_queued)
{
    BLZ_BEGIN;
    check(blz_blocking_start(&self->op, count_up, self->count, NULL) == 0);
    BLZ_AWAIT(self->rc, blz_blocking_join(&self->op));
    BLZ_END(self->rc);
}

static void a_started_call_that_is_cancelled_in_the_queue_is_never_made(void **state)
{
    struct halt h = HALT_INIT(0);
    blz_rt *rt = new_blocked_rt(&h);
    uint64_t count = 0;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, joins_queued, .count = &count), 0);
    wait_for_queued(rt, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    event_post(&h.go_on);
    free_rt(rt);
    assert_int_equal(count, 0);
}

/* ---- ownership ---- */

static void an_owned_call_gives_its_result_after_its_argument_is_gone(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct halt h = HALT_INIT(9);

    (void)state;
    event_post(&h.go_on);
    assert_int_equal(BLZ_BLOCK_ON(rt, awaits_owned, .fn = halt, .arg = &h, .destroy = halt_destroy),
                     9);
    assert_int_equal(event_count(&h.destroyed), 1);
    assert_int_equal(BLZ_BLOCK_ON(rt, awaits_owned, .fn = halt, .arg = &h), 9);
    free_rt(rt);
    assert_int_equal(event_count(&h.destroyed), 1);
}

static void a_running_owned_call_that_is_cancelled_is_left_to_itself(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct halt h = HALT_INIT(0);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_owned, .fn = halt, .arg = &h,
                                  .destroy = halt_destroy),
                     0);
    event_wait(&h.begun, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0); /* it cannot have ended: nobody let it */
    assert_int_equal(handle.result, -ECANCELED);
    assert_int_equal(event_count(&h.destroyed), 0);
    event_post(&h.go_on);
    event_wait(&h.destroyed, 1);
    free_rt(rt);
    assert_int_equal(event_count(&h.destroyed), 1);
}

static void a_queued_owned_call_that_is_cancelled_is_destroyed_by_the_task(void **state)
{
    struct halt h = HALT_INIT(0), owned = HALT_INIT(0);
    blz_rt *rt = new_blocked_rt(&h);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_owned, .fn = halt, .arg = &owned,
                                  .destroy = halt_destroy),
                     0);
    wait_for_queued(rt, 1);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    assert_int_equal(event_count(&owned.destroyed), 1);
    event_post(&h.go_on);
    free_rt(rt);
    assert_int_equal(event_count(&owned.begun), 0);
    assert_int_equal(event_count(&owned.destroyed), 1);
}

struct limited {
    BLZ_FRAME;
    struct halt *h;
    int64_t rc;
    blz_timeout limit;
    blz_blocking_owned_op op;
};

BLZ_ASYNC(limited)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, BLZ_MSEC,
                               blz_blocking_owned(&self->op, halt, self->h, halt_destroy)));
    BLZ_END(self->rc);
}

static void a_time_limit_lets_go_of_an_owned_call(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct halt h = HALT_INIT(0);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, limited, .h = &h), -ETIMEDOUT);
    event_post(&h.go_on);
    event_wait(&h.destroyed, 1);
    free_rt(rt);
}

/* ---- the test clock ---- */

struct dozes {
    BLZ_FRAME;
    struct halt *h;
    blz_sleep_op op;
    int64_t rc;
};

BLZ_ASYNC(dozes)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, BLZ_HOUR));
    BLZ_END(event_count(&self->h->go_on));
}

/* The clock would go on at once, were it not for the call. */
static void a_test_clock_waits_for_calls(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .test_clock = true});
    struct halt h = HALT_INIT(0);
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_blocking_spawn(rt, halt, &h, NULL), 0);
    event_wait(&h.begun, 1);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, dozes, .h = &h), 0);
    for (int i = 0; i < 100; i++) /* the worker runs out of work as often */
        assert_int_equal(BLZ_BLOCK_ON(rt, give), 0);
    assert_false(blz_handle_done(&handle));
    event_post(&h.go_on);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 1);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_awaits_a_function_on_the_pool),
        TEST(the_function_runs_on_a_thread_that_is_no_worker),
        TEST(its_threads_take_no_signals),
        TEST(a_thread_runs_a_function_on_the_pool),
        TEST(a_thread_starts_calls_and_waits_for_them_later),
        TEST(a_task_starts_calls_and_joins_them_later),
        TEST(a_call_that_nobody_waits_for_is_made_and_destroyed),
        TEST(a_function_may_use_the_pool_and_block_on_tasks),
        TEST(a_worker_must_not_wait_for_a_function),
        TEST(without_a_runtime_there_is_no_pool),
        TEST(it_works_in_an_embedded_runtime),
        TEST(it_works_with_the_calling_thread_as_a_worker),
        TEST(a_queued_call_that_is_cancelled_ends_at_once_and_is_never_made),
        TEST(a_running_call_that_is_cancelled_gives_its_result_when_it_is_done),
        TEST(in_a_cancelled_task_calls_are_refused_but_those_under_way_are_joined),
        TEST(a_started_call_that_is_cancelled_in_the_queue_is_never_made),
        TEST(an_owned_call_gives_its_result_after_its_argument_is_gone),
        TEST(a_running_owned_call_that_is_cancelled_is_left_to_itself),
        TEST(a_queued_owned_call_that_is_cancelled_is_destroyed_by_the_task),
        TEST(a_time_limit_lets_go_of_an_owned_call),
        TEST(a_test_clock_waits_for_calls),
    };
    return RUN_TESTS(tests);
}
