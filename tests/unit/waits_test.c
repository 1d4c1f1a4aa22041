/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A poll that returns pending and leaves nothing that could wake its task is a panic: in debug
 * builds for tasks, in all builds for threads that wait (blz_wait).
 */
#include "clock_rt.h"
#include "dies.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#ifdef BLZ_CHECKS
#define NEEDS_CHECK() ((void)state)
#else
#define NEEDS_CHECK() ((void)state, skip())
#endif

/* ---- leaves with a mistake ---- */

static blz_poll forgetful_poll(blz_future *future, blz_cx *cx)
{
    (void)future, (void)cx;
    return BLZ_PENDING;
}

static blz_future *forgetful(blz_future *op)
{
    static const blz_future_ops ops = {.name = "forgetful", .poll = forgetful_poll};

    *op = (blz_future){.ops = &ops};
    return op;
}

/* Takes a waker, and drops it. */
static blz_poll careless_poll(blz_future *future, blz_cx *cx)
{
    blz_waker waker = blz_cx_waker(cx);

    (void)future;
    blz_waker_drop(&waker);
    return BLZ_PENDING;
}

static blz_future *careless(blz_future *op)
{
    static const blz_future_ops ops = {.name = "careless", .poll = careless_poll};

    *op = (blz_future){.ops = &ops};
    return op;
}

struct await_leaf {
    BLZ_FRAME;
    blz_future *(*make)(blz_future *op);
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(await_leaf)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, self->make(&self->op));
    BLZ_END(self->rc);
}

static void run_forgetful(void)
{
    RUN_ALONE(await_leaf, .make = forgetful);
}

static void a_leaf_without_a_waker_is_a_panic_that_names_the_await(void **state)
{
    NEEDS_CHECK();
    assert_dies(run_forgetful, "`await_leaf` (" __FILE__ ":");
    assert_dies(run_forgetful, "waits for nothing: `forgetful` returned BLZ_PENDING");
}

static void run_careless(void)
{
    RUN_ALONE(await_leaf, .make = careless);
}

static void a_leaf_that_drops_its_waker_is_a_panic(void **state)
{
    NEEDS_CHECK();
    assert_dies(run_careless, "waits for nothing: `careless` returned BLZ_PENDING");
}

/* ---- other places ---- */

struct spawn_leaf {
    BLZ_FRAME;
    int64_t rc;
    blz_future pending;
};

BLZ_ASYNC(spawn_leaf)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN(await_leaf, .make = forgetful) == 0);
    BLZ_AWAIT(self->rc, blz_pending(&self->pending));
    BLZ_END(0);
}

static void run_detached(void)
{
    RUN_ALONE(spawn_leaf);
}

static void a_detached_task_that_waits_for_nothing_is_a_panic(void **state)
{
    NEEDS_CHECK();
    assert_dies(run_detached, "waits for nothing");
}

struct scope_leaf {
    BLZ_FRAME;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(scope_leaf)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    check(BLZ_SCOPE_SPAWN(&self->scope, await_leaf, .make = forgetful) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(0);
}

static void run_child(void)
{
    RUN_ALONE(scope_leaf);
}

static void a_child_of_a_scope_that_waits_for_nothing_is_a_panic(void **state)
{
    NEEDS_CHECK();
    assert_dies(run_child, "waits for nothing");
}

struct select_leaves {
    BLZ_FRAME;
    int64_t rc;
    blz_future op[2];
    blz_select_op select;
};

BLZ_ASYNC(select_leaves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_select(&self->select, forgetful(&self->op[0]), careless(&self->op[1])));
    BLZ_END(self->rc);
}

static void run_select(void)
{
    RUN_ALONE(select_leaves);
}

static void a_select_whose_branches_all_wait_for_nothing_is_a_panic(void **state)
{
    NEEDS_CHECK();
    assert_dies(run_select, "`select_leaves` (" __FILE__ ":");
}

static void wait_forgetful(void)
{
    blz_future op;

    (void)blz_wait(forgetful(&op));
}

static void a_thread_that_waits_for_nothing_is_a_panic(void **state)
{
    (void)state;
    assert_dies(wait_forgetful, "`forgetful` returned BLZ_PENDING and waits for nothing");
}

/* One lock operation for two tasks: its waker is that of the first. */
struct await_shared {
    BLZ_FRAME;
    blz_future *shared;
    int64_t rc;
};

BLZ_ASYNC(await_shared)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, self->shared);
    BLZ_END(self->rc);
}

static void share_a_future(void)
{
    blz_rt *rt = new_embedded_rt();
    blz_mutex mutex = BLZ_MUTEX_INIT;
    blz_mutex_op op = {0};
    blz_future *shared = blz_mutex_lock(&op, &mutex);

    check(blz_mutex_try_lock(&mutex) == 0);
    check(BLZ_SPAWN_ON(rt, NULL, await_shared, .shared = shared) == 0);
    check(BLZ_SPAWN_ON(rt, NULL, await_shared, .shared = shared) == 0);
    turn_all(rt);
}

static void a_future_that_two_tasks_await_is_a_panic(void **state)
{
    NEEDS_CHECK();
    assert_dies(share_a_future, "waits for nothing: `mutex_lock` returned BLZ_PENDING");
}

/* ---- what is meant to be so ---- */

struct until_cancelled {
    BLZ_FRAME;
    int64_t rc;
    blz_future pending, yield;
    blz_join_op join;
};

/* The second poll does not come to `pending`, whose branch was not woken. */
BLZ_ASYNC(until_cancelled)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_join(&self->join, blz_pending(&self->pending), blz_yield(&self->yield)));
    BLZ_END(self->rc);
}

static void a_task_may_wait_for_its_cancellation(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, until_cancelled), 0);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

static void waiting_for_nothing_with_a_limit_is_a_way_to_wait(void **state)
{
    blz_future op;

    (void)state;
    assert_int_equal(blz_wait_until(blz_pending(&op), 1), -ETIMEDOUT);
}

/* ---- references come and go while the task waits ---- */

enum { ROUNDS = 300 };

struct awaits_notify {
    BLZ_FRAME;
    blz_notify *notify;
    int i;
    int64_t rc;
    blz_notify_op op;
};

BLZ_ASYNC(awaits_notify)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < ROUNDS; self->i++)
        BLZ_AWAIT(self->rc, blz_notify_await(&self->op, self->notify));
    BLZ_END(0);
}

struct referrer {
    pthread_t thread;
    blz_task *task;
    bool stop;
};

static void *refer(void *arg)
{
    struct referrer *r = arg;

    while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
        blz_task_ref(r->task);
        blz_task_unref(r->task);
        sched_yield();
    }
    return NULL;
}

static void references_of_others_are_not_taken_for_the_lack_of_a_waker(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_notify notify = BLZ_NOTIFY_INIT;
    struct referrer r = {.stop = false};
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_notify, .notify = &notify), 0);
    r.task = blz_task_ref(handle.task);
    assert_int_equal(pthread_create(&r.thread, NULL, refer, &r), 0);
    while (!blz_handle_done(&handle)) {
        blz_notify_one(&notify);
        sched_yield();
    }
    __atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
    pthread_join(r.thread, NULL);
    blz_task_unref(r.task);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_leaf_without_a_waker_is_a_panic_that_names_the_await),
        TEST(a_leaf_that_drops_its_waker_is_a_panic),
        TEST(a_detached_task_that_waits_for_nothing_is_a_panic),
        TEST(a_child_of_a_scope_that_waits_for_nothing_is_a_panic),
        TEST(a_select_whose_branches_all_wait_for_nothing_is_a_panic),
        TEST(a_thread_that_waits_for_nothing_is_a_panic),
        TEST(a_future_that_two_tasks_await_is_a_panic),
        TEST(a_task_may_wait_for_its_cancellation),
        TEST(waiting_for_nothing_with_a_limit_is_a_way_to_wait),
        TEST(references_of_others_are_not_taken_for_the_lack_of_a_waker),
    };

    return RUN_TESTS(tests);
}
