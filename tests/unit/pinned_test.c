/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned tasks stay on the worker that spawned them; and without stealing, so do all. */
#include "harness.h"

/* ---- pinned tasks ---- */

struct stays {
    BLZ_FRAME;
    int rounds;
    int thread;
    int64_t rc;
    blz_future op;
};

/* Finds itself on the same thread after every yield. */
BLZ_ASYNC(stays)
{
    BLZ_BEGIN;
    self->thread = thread_id();
    for (; self->rounds > 0; self->rounds--) {
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
        check(self->thread == thread_id());
    }
    BLZ_END(self->thread);
}

struct spawns_pinned {
    BLZ_FRAME;
    int children;
    int thread, i;
    int64_t rc;
    blz_handle handles[50];
    blz_handle_join_op join;
    blz_future op;
};

/* Pins children to the worker on which it is; they all say the same thread. */
BLZ_ASYNC(spawns_pinned)
{
    BLZ_BEGIN;
    self->thread = thread_id();
    for (int i = 0; i < self->children; i++)
        check(BLZ_SPAWN_WITH((&(blz_spawn_args){.handle = &self->handles[i], .pinned = true}),
                             stays, .rounds = 100) == 0);
    for (; self->i < self->children; self->i++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
        check(self->rc == 0);
        check(self->handles[self->i].result == self->thread);
    }
    BLZ_END(0);
}

static void pinned_tasks_stay_over_many_yields(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 4});
    blz_handle handles[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], spawns_pinned, .children = 50), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    free_rt(rt);
}

/* ---- woken by other threads ---- */

enum { ROUNDS = 200, PINNED = 10 };

struct mailbox {
    blz_oneshot channels[ROUNDS];
};

struct receives_pinned {
    BLZ_FRAME;
    struct mailbox *mail;
    int thread, i;
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(receives_pinned)
{
    BLZ_BEGIN;
    self->thread = thread_id();
    for (; self->i < ROUNDS; self->i++) {
        BLZ_AWAIT(self->rc,
                  blz_oneshot_recv(&self->wait, &self->mail->channels[self->i], &self->value));
        check(self->rc == 0 && self->value == self->i);
        check(self->thread == thread_id());
    }
    BLZ_END(0);
}

struct spawns_receivers {
    BLZ_FRAME;
    struct mailbox *mail;
    struct event *ready;
    int i;
    int64_t rc;
    blz_handle handles[PINNED];
    blz_handle_join_op join;
};

BLZ_ASYNC(spawns_receivers)
{
    BLZ_BEGIN;
    for (int i = 0; i < PINNED; i++)
        check(BLZ_SPAWN_WITH((&(blz_spawn_args){.handle = &self->handles[i], .pinned = true}),
                             receives_pinned, .mail = &self->mail[i]) == 0);
    event_post(self->ready);
    for (; self->i < PINNED; self->i++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
        check(self->rc == 0 && self->handles[self->i].result == 0);
    }
    BLZ_END(0);
}

static void pinned_tasks_stay_when_other_threads_wake_them(void **state)
{
    static struct mailbox mail[PINNED];
    blz_rt *rt = new_rt(&(blz_options){.workers = 3});
    struct event ready = EVENT_INIT;
    blz_handle handle;

    (void)state;
    for (int p = 0; p < PINNED; p++)
        for (int i = 0; i < ROUNDS; i++)
            blz_oneshot_init(&mail[p].channels[i]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, spawns_receivers, .mail = mail, .ready = &ready), 0);
    event_wait(&ready, 1);
    for (int i = 0; i < ROUNDS; i++)
        for (int p = 0; p < PINNED; p++)
            assert_int_equal(blz_oneshot_send(&mail[p].channels[i], i), 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(rt);
}

struct spawns_sleepers {
    BLZ_FRAME;
    struct event *started;
    blz_handle *first;
};

BLZ_ASYNC(spawns_sleepers)
{
    BLZ_BEGIN;
    for (int i = 0; i < 5; i++)
        check(BLZ_SPAWN_WITH((&(blz_spawn_args){.handle = i ? NULL : self->first, .pinned = true}),
                             sleeps, .started = self->started) == 0);
    BLZ_END(0);
}

static void pinned_tasks_are_cancelled_from_other_threads_and_by_the_shutdown(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct event started = EVENT_INIT;
    blz_handle first;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_sleepers, .started = &started, .first = &first), 0);
    event_wait(&started, 5);
    blz_handle_cancel(&first);
    assert_int_equal(blz_handle_wait(&first), 0);
    assert_int_equal(first.result, -ECANCELED);
    free_rt(rt);
}

static void pinning_from_a_thread_that_is_no_worker_is_not_permitted(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handle = {NULL, 0};

    (void)state;
    assert_int_equal(
        BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &handle, .pinned = true}), stays),
        -EPERM);
    assert_null(handle.task);
    free_rt(rt);
}

static int64_t pin_elsewhere(void *arg)
{
    return BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = arg, .pinned = true}), stays);
}

static void pinning_to_a_worker_of_another_runtime_is_not_permitted(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_rt *other = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = pin_elsewhere, .arg = other), -EPERM);
    free_rt(other);
    free_rt(rt);
}

/* ---- no stealing ---- */

struct spawns_plain {
    BLZ_FRAME;
    int thread, i;
    uint64_t *runs; /* of all tasks */
    int64_t rc;
    blz_future op;
    blz_handle handles[300];
    blz_handle_join_op join;
};

struct counts_run {
    BLZ_FRAME;
    uint64_t *runs;
    int thread;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(counts_run)
{
    BLZ_BEGIN;
    __atomic_fetch_add(self->runs, 1, __ATOMIC_RELAXED);
    self->thread = thread_id();
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    check(self->thread == thread_id());
    BLZ_END(self->thread);
}

/* More tasks than the ring holds would spill to the inject queue, where all workers take. */
BLZ_ASYNC(spawns_plain)
{
    BLZ_BEGIN;
    self->thread = thread_id();
    for (int i = 0; i < 200; i++)
        check(BLZ_SPAWN_JOIN(&self->handles[i], counts_run, .runs = self->runs) == 0);
    for (; self->i < 200; self->i++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->i]));
        check(self->rc == 0);
        check(self->handles[self->i].result == self->thread);
        check(self->thread == thread_id());
    }
    BLZ_END(0);
}

static void without_stealing_tasks_stay_where_they_were_spawned(void **state)
{
    uint64_t runs = 0;

    (void)state;
    for (int round = 0; round < 20; round++) {
        blz_rt *rt = new_rt(
            &(blz_options){.workers = 4, .disable_stealing = true, .watchdog_ns = BLZ_NEVER});
        blz_stats stats;
        runs = 0;
        for (int i = 0; i < 10; i++)
            assert_int_equal(BLZ_BLOCK_ON(rt, spawns_plain, .runs = &runs), 0);
        assert_int_equal(runs, 2000);
        blz_rt_stats(rt, &stats);
        assert_int_equal(stats.total.steals, 0);
        free_rt(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pinned_tasks_stay_over_many_yields),
        TEST(pinned_tasks_stay_when_other_threads_wake_them),
        TEST(pinned_tasks_are_cancelled_from_other_threads_and_by_the_shutdown),
        TEST(pinning_from_a_thread_that_is_no_worker_is_not_permitted),
        TEST(pinning_to_a_worker_of_another_runtime_is_not_permitted),
        TEST(without_stealing_tasks_stay_where_they_were_spawned),
    };
    return RUN_TESTS(tests);
}
