/* SPDX-License-Identifier: Apache-2.0 */
/* Wakers of tasks, of callbacks, of nothing: cloned, consumed, used late and by other threads. */
#include "harness.h"

#include <string.h>

/* A leaf that hands out `wanted` wakers in its first poll and waits for `wakes_left` more polls. */
enum { MAX_WAKERS = 300 };

struct leaf {
    blz_future future;
    blz_waker *wakers;
    int wanted;
    int polls;
    int ready_at; /* the poll in which it is ready */
};

static blz_poll leaf_poll(blz_future *future, blz_cx *cx)
{
    struct leaf *leaf = (struct leaf *)future;

    if (leaf->polls++ == 0)
        for (int i = 0; i < leaf->wanted; i++)
            leaf->wakers[i] = blz_cx_waker(cx);
    return leaf->polls >= leaf->ready_at ? blz_future_done(future, leaf->polls) : BLZ_PENDING;
}

static blz_future *leaf_init(struct leaf *leaf, blz_waker *wakers, int wanted, int ready_at)
{
    static const blz_future_ops ops = {.name = "leaf", .poll = leaf_poll};

    *leaf =
        (struct leaf){.future.ops = &ops, .wakers = wakers, .wanted = wanted, .ready_at = ready_at};
    return &leaf->future;
}

/* Awaits a leaf; its result is the number of polls. */
struct waits {
    BLZ_FRAME;
    blz_waker *wakers;
    int wanted, ready_at;
    struct leaf leaf;
    int64_t rc;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, leaf_init(&self->leaf, self->wakers, self->wanted, self->ready_at));
    BLZ_END(self->rc);
}

static void a_wake_leads_to_one_poll(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_waker waker;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .wakers = &waker, .wanted = 1, .ready_at = 2),
                     0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(turn_all(rt), 0);
    blz_waker_wake(&waker);
    assert_null(waker.ops);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 2);
    free_rt(rt);
}

static void wakes_of_a_queued_task_coalesce(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_waker wakers[3];
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .wakers = wakers, .wanted = 3, .ready_at = 3),
                     0);
    assert_int_equal(turn_all(rt), 1);
    blz_waker_wake_by_ref(&wakers[0]);
    blz_waker_wake(&wakers[1]);
    blz_waker_wake_by_ref(&wakers[0]);
    assert_int_equal(turn_all(rt), 1);
    blz_waker_wake(&wakers[2]);
    assert_int_equal(turn_all(rt), 1);
    blz_waker_drop(&wakers[0]);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(rt);
}

static void a_waker_stays_valid_after_waking_by_reference(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_waker waker;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .wakers = &waker, .wanted = 1, .ready_at = 5),
                     0);
    assert_int_equal(turn_all(rt), 1);
    for (int i = 0; i < 4; i++) {
        blz_waker_wake_by_ref(&waker);
        assert_int_equal(turn_all(rt), 1);
    }
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 5);
    blz_waker_drop(&waker);
    assert_null(waker.ops);
    free_rt(rt);
}

static void a_clone_wakes_the_same_task(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_waker waker, clone, other;
    blz_handle handle, second;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .wakers = &waker, .wanted = 1, .ready_at = 2),
                     0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &second, waits, .wakers = &other, .wanted = 1, .ready_at = 2),
                     0);
    assert_int_equal(turn_all(rt), 2);
    clone = blz_waker_clone(&waker);
    assert_true(blz_waker_will_wake(&clone, &waker));
    assert_false(blz_waker_will_wake(&clone, &other));
    blz_waker_drop(&waker);
    blz_waker_wake(&clone);
    assert_int_equal(turn_all(rt), 1);
    assert_true(blz_handle_done(&handle));
    assert_false(blz_handle_done(&second));
    blz_waker_wake(&other);
    turn_all(rt);
    blz_handle_detach(&handle);
    blz_handle_detach(&second);
    free_rt(rt);
}

/* ---- more wakers than the bias ---- */

static void a_hundred_wakers_are_made_in_one_poll(void **state)
{
    static blz_waker wakers[MAX_WAKERS];
    const int numbers[] = {63, 64, 65, 100, 128, 129, MAX_WAKERS};
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .wakers = wakers, .wanted = numbers[n],
                                      .ready_at = 1 + numbers[n]),
                         0);
        assert_int_equal(turn_all(rt), 1);
        for (int i = 0; i < numbers[n]; i++) {
            assert_false(blz_handle_done(&handle));
            blz_waker_wake(&wakers[i]);
            assert_int_equal(turn_all(rt), 1);
        }
        assert_int_equal(blz_handle_wait(&handle), 0);
    }
    free_rt(rt);
}

static void wakers_may_be_left_over_when_the_task_ends_in_the_same_poll(void **state)
{
    static blz_waker wakers[MAX_WAKERS];
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (int n = 1; n <= MAX_WAKERS; n++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, waits, .wakers = wakers, .wanted = n,
                                      .ready_at = 1),
                         0);
        assert_int_equal(turn_all(rt), 1);
        for (int i = 0; i < n; i++) {
            if (i % 2)
                blz_waker_wake(&wakers[i]);
            else
                blz_waker_drop(&wakers[i]);
        }
        assert_int_equal(turn_all(rt), 0);
    }
    free_rt(rt);
}

/* ---- late, and from other threads ---- */

struct late {
    blz_waker waker;
    struct event go;
};

static void *use_late(void *arg)
{
    struct late *late = arg;

    event_wait(&late->go, 1);
    blz_waker clone = blz_waker_clone(&late->waker);
    blz_waker_wake_by_ref(&late->waker);
    blz_waker_wake(&late->waker);
    blz_waker_drop(&clone);
    return NULL;
}

static void a_waker_may_be_used_after_the_task_has_finished(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct late late = {.go = EVENT_INIT};
    pthread_t thread = start_thread(use_late, &late);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, waits, .wakers = &late.waker, .wanted = 1, .ready_at = 1), 1);
    event_post(&late.go);
    join_thread(thread);
    free_rt(rt);
}

static void a_waker_may_outlive_the_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct late late = {.go = EVENT_INIT};
    pthread_t thread = start_thread(use_late, &late);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, waits, .wakers = &late.waker, .wanted = 1, .ready_at = 1), 1);
    free_rt(rt);
    event_post(&late.go);
    join_thread(thread);
}

static void a_handle_may_outlive_the_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sleeps), 0);
    free_rt(rt);
    assert_true(blz_handle_done(&handle));
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
}

static void *wake_once(void *arg)
{
    blz_waker_wake(arg);
    return NULL;
}

/* Wakes itself from another thread in the middle of its poll. */
struct woken_while_running {
    blz_future future;
    int polls;
};

static blz_poll woken_while_running_poll(blz_future *future, blz_cx *cx)
{
    struct woken_while_running *self = (struct woken_while_running *)future;

    if (self->polls++ == 0) {
        blz_waker waker = blz_cx_waker(cx);
        join_thread(start_thread(wake_once, &waker));
        return BLZ_PENDING;
    }
    return blz_future_done(future, self->polls);
}

static void a_wake_during_the_poll_leads_to_another_poll(void **state)
{
    static const blz_future_ops ops = {.name = "woken", .poll = woken_while_running_poll};
    struct woken_while_running frame = {.future.ops = &ops};
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(blz_block_on(rt, &frame, sizeof frame, "woken"), 2);
    free_rt(rt);
}

/* ---- not of tasks ---- */

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void a_callback_waker_calls_each_time(void **state)
{
    int calls = 0;
    blz_wake_callback callback = {count_call, &calls};
    blz_waker waker = blz_waker_callback(&callback), clone = blz_waker_clone(&waker);

    (void)state;
    assert_true(blz_waker_will_wake(&waker, &clone));
    blz_waker_wake_by_ref(&waker);
    assert_int_equal(calls, 1);
    blz_waker_wake(&clone);
    assert_int_equal(calls, 2);
    blz_waker_drop(&waker);
    assert_int_equal(calls, 2);
    assert_null(waker.ops);
    assert_null(clone.ops);
}

static void a_noop_waker_does_nothing(void **state)
{
    blz_waker waker = blz_waker_noop(), clone = blz_waker_clone(&waker), none = {NULL, NULL};

    (void)state;
    assert_true(blz_waker_will_wake(&waker, &clone));
    assert_false(blz_waker_will_wake(&waker, &none));
    blz_waker_wake_by_ref(&waker);
    blz_waker_wake(&waker);
    blz_waker_drop(&clone);
    assert_null(waker.ops);
}

static void no_waker_is_accepted_everywhere(void **state)
{
    blz_waker none = {NULL, NULL}, clone = blz_waker_clone(&none);

    (void)state;
    assert_null(clone.ops);
    blz_waker_wake_by_ref(&none);
    blz_waker_wake(&none);
    blz_waker_drop(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wake_leads_to_one_poll),
        TEST(wakes_of_a_queued_task_coalesce),
        TEST(a_waker_stays_valid_after_waking_by_reference),
        TEST(a_clone_wakes_the_same_task),
        TEST(a_hundred_wakers_are_made_in_one_poll),
        TEST(wakers_may_be_left_over_when_the_task_ends_in_the_same_poll),
        TEST(a_waker_may_be_used_after_the_task_has_finished),
        TEST(a_waker_may_outlive_the_runtime),
        TEST(a_handle_may_outlive_the_runtime),
        TEST(a_wake_during_the_poll_leads_to_another_poll),
        TEST(a_callback_waker_calls_each_time),
        TEST(a_noop_waker_does_nothing),
        TEST(no_waker_is_accepted_everywhere),
    };
    return RUN_TESTS(tests);
}
