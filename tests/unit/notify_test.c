/* SPDX-License-Identifier: Apache-2.0 */
/* Notify: permits, order, all at once, enabling, cancelling, blocking, and the coop budget. */
#include "harness.h"
#include "probe.h"

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

struct waits {
    BLZ_FRAME;
    blz_notify *notify;
    int *order; /* who is woken how early: 1, 2, ... */
    int place;
    int64_t rc;
    blz_notify_op wait;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, self->notify));
    if (self->order && self->rc == 0)
        self->place = ++*self->order;
    BLZ_END(self->rc < 0 ? self->rc : self->place);
}

enum { CROWD = 5 };

static void spawn_crowd(blz_rt *rt, blz_handle *handles, blz_notify *notify, int *order)
{
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits, .notify = notify, .order = order), 0);
    turn_all(rt);
}

/* ---- permits ---- */

static void a_permit_is_stored_once(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;

    (void)state;
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
    blz_notify_one(&notify);
    blz_notify_one(&notify);
    blz_notify_last(&notify);
    assert_int_equal(blz_notify_try_await(&notify), 0);
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
}

static void a_stored_permit_ends_the_wait_at_once(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify;
    blz_handle handle;

    (void)state;
    blz_notify_init(&notify);
    blz_notify_one(&notify);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .notify = &notify), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), 0);
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
    free_rt(rt);
}

static void one_wakes_who_has_waited_longest(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[CROWD];
    int order = 0;

    (void)state;
    spawn_crowd(rt, handles, &notify, &order);
    for (int i = 0; i < CROWD; i++) {
        blz_notify_one(&notify);
        assert_int_equal(turn_all(rt), 1);
        assert_int_equal(result_of(&handles[i]), i + 1);
    }
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
    free_rt(rt);
}

static void last_wakes_who_came_last(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[CROWD];
    int order = 0;

    (void)state;
    spawn_crowd(rt, handles, &notify, &order);
    for (int i = CROWD - 1; i >= 0; i--) {
        blz_notify_last(&notify);
        assert_int_equal(turn_all(rt), 1);
        assert_int_equal(result_of(&handles[i]), CROWD - i);
    }
    free_rt(rt);
}

/* ---- all ---- */

static void all_wakes_all_that_wait_in_order(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[CROWD];
    int order = 0;

    (void)state;
    spawn_crowd(rt, handles, &notify, &order);
    blz_notify_all(&notify);
    assert_int_equal(turn_all(rt), CROWD);
    for (int i = 0; i < CROWD; i++)
        assert_true(result_of(&handles[i]) > 0);
    assert_int_equal(order, CROWD);
    free_rt(rt);
}

static void all_without_waiters_leaves_no_trace(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handle;

    (void)state;
    blz_notify_all(&notify);
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .notify = &notify), 0);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    blz_notify_one(&notify);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void all_leaves_a_stored_permit(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;

    (void)state;
    blz_notify_one(&notify);
    blz_notify_all(&notify);
    assert_int_equal(blz_notify_try_await(&notify), 0);
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
}

/* A task that is notified with all others waits again at once: it is not notified a second time. */
struct waits_twice {
    BLZ_FRAME;
    blz_notify *notify;
    int64_t rc;
    blz_notify_op wait;
};

BLZ_ASYNC(waits_twice)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, self->notify));
    BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, self->notify));
    BLZ_END(self->rc);
}

static void all_does_not_reach_those_that_wait_again(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits_twice, .notify = &notify), 0);
    turn_all(rt);
    blz_notify_all(&notify);
    turn_all(rt);
    for (int i = 0; i < 3; i++)
        assert_false(blz_handle_done(&handles[i]));
    blz_notify_all(&notify);
    turn_all(rt);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result_of(&handles[i]), 0);
    free_rt(rt);
}

/* A waker that notifies in turn: nothing is locked while wakers run. */
struct echo {
    blz_notify *notify;
    int calls;
};

static void echo_notify(void *arg)
{
    struct echo *echo = arg;

    echo->calls++;
    blz_notify_one(echo->notify);
    blz_notify_all(echo->notify);
}

static void a_waker_may_notify(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    struct echo echo = {&notify, 0};
    blz_wake_callback callback = {echo_notify, &echo};
    blz_notify_op ops[3] = {0};

    (void)state;
    for (int i = 0; i < 3; i++) { /* enabled, and with a waker of our own instead of a task's */
        blz_ignore(blz_notify_await(&ops[i], &notify));
        assert_false(blz_notify_enable(&ops[i]));
        ops[i].waiter.waker = blz_waker_callback(&callback);
    }
    blz_notify_one(&notify);
    assert_int_equal(echo.calls, 3);
    for (int i = 0; i < 3; i++)
        assert_true(blz_notify_enable(&ops[i]));
    assert_int_equal(blz_notify_try_await(&notify), 0); /* of the last echo */
}

/* ---- enabling ---- */

static void an_enabled_wait_is_notified_before_its_first_poll(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_future scope = {0};
    blz_cx cx = cx_for(&scope);
    blz_notify_op enabled = {0}, fresh = {0};

    (void)state;
    blz_ignore(blz_notify_await(&enabled, &notify));
    blz_ignore(blz_notify_await(&fresh, &notify));
    assert_false(blz_notify_enable(&enabled));
    assert_false(blz_notify_enable(&enabled)); /* again: nothing */
    blz_notify_all(&notify);
    assert_true(blz_notify_enable(&enabled));
    assert_true(blz_is_ready(poll_once(&enabled.future, &cx)));
    assert_int_equal(enabled.future.result, 0);
    assert_false(blz_notify_enable(&fresh)); /* did not wait when all were notified */
    blz_notify_disable(&fresh);
}

static void enabling_takes_a_stored_permit(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_future scope = {0};
    blz_cx cx = cx_for(&scope);
    blz_notify_op op = {0};

    (void)state;
    blz_notify_one(&notify);
    blz_ignore(blz_notify_await(&op, &notify));
    assert_true(blz_notify_enable(&op));
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 0);
}

static void disabling_passes_a_permit_on(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_notify_op first = {0}, second = {0};

    (void)state;
    blz_ignore(blz_notify_await(&first, &notify));
    blz_ignore(blz_notify_await(&second, &notify));
    assert_false(blz_notify_enable(&first));
    assert_false(blz_notify_enable(&second));
    blz_notify_one(&notify);
    assert_true(blz_notify_enable(&first));
    blz_notify_disable(&first);
    assert_true(blz_notify_enable(&second));
    blz_notify_disable(&second);
    assert_int_equal(blz_notify_try_await(&notify), 0);
}

static void one_for_all_is_not_passed_on(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_notify_op op = {0};

    (void)state;
    blz_ignore(blz_notify_await(&op, &notify));
    assert_false(blz_notify_enable(&op));
    blz_notify_all(&notify);
    blz_notify_disable(&op);
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
}

/* One for all does not make a wait swallow the permit that comes after it. */
static void a_wait_that_was_ended_takes_no_permit(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_future scope = {0};
    blz_cx cx = cx_for(&scope);
    blz_notify_op op = {0};

    (void)state;
    blz_ignore(blz_notify_await(&op, &notify));
    assert_false(blz_notify_enable(&op));
    blz_notify_all(&notify);
    blz_notify_one(&notify);
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 0);
    assert_int_equal(blz_notify_try_await(&notify), 0);
}

struct waits_enabled {
    BLZ_FRAME;
    blz_notify *notify;
    bool cancel_first; /* the task is cancelled between enabling and awaiting */
    int64_t rc;
    blz_notify_op wait;
};

BLZ_ASYNC(waits_enabled)
{
    BLZ_BEGIN;
    blz_ignore(blz_notify_await(&self->wait, self->notify));
    blz_notify_enable(&self->wait);
    if (self->cancel_first) {
        self->cancel_first = false;
        blz_cancel_branch(&self->blz_frame, cx);
    }
    BLZ_AWAIT(self->rc, &self->wait.future);
    BLZ_END(self->rc);
}

static void an_enabled_wait_of_a_task_is_woken(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_enabled, .notify = &notify), 0);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    blz_notify_one(&notify);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void an_enabled_wait_in_a_cancelled_scope_leaves_the_queue(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_enabled, .notify = &notify,
                                  .cancel_first = true),
                     0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    blz_notify_one(&notify); /* would write into a frame that is gone */
    assert_int_equal(blz_notify_try_await(&notify), 0);
    free_rt(rt);
}

/* ---- cancelling ---- */

static void a_cancelled_wait_leaves_the_queue(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[CROWD];
    int order = 0;

    (void)state;
    spawn_crowd(rt, handles, &notify, &order);
    blz_handle_cancel(&handles[0]);
    blz_handle_cancel(&handles[2]);
    turn_all(rt);
    blz_notify_one(&notify);
    turn_all(rt);
    assert_true(blz_handle_done(&handles[1]));
    blz_notify_all(&notify);
    turn_all(rt);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(result_of(&handles[i]) < 0, i == 0 || i == 2);
    free_rt(rt);
}

static void a_lone_wait_that_is_cancelled_leaves_nothing_behind(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .notify = &notify), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    blz_notify_one(&notify);
    assert_int_equal(blz_notify_try_await(&notify), 0);
    free_rt(rt);
}

/* Both happen before the task runs again. */
static void a_permit_for_a_cancelled_wait_goes_to_the_next(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[CROWD];
    int order = 0;

    (void)state;
    spawn_crowd(rt, handles, &notify, &order);
    blz_notify_one(&notify);
    blz_handle_cancel(&handles[0]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), -ECANCELED);
    assert_int_equal(result_of(&handles[1]), 1);
    blz_notify_last(&notify);
    blz_handle_cancel(&handles[CROWD - 1]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[CROWD - 1]), -ECANCELED);
    assert_int_equal(result_of(&handles[CROWD - 2]), 2); /* the one that is last now */
    blz_notify_one(&notify);
    blz_handle_cancel(&handles[2]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[2]), -ECANCELED);
    assert_int_equal(blz_notify_try_await(&notify), 0); /* nobody is left: stored */
    free_rt(rt);
}

static void one_for_all_that_came_first_stands(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handles[CROWD];

    (void)state;
    spawn_crowd(rt, handles, &notify, NULL);
    blz_notify_all(&notify);
    blz_handle_cancel(&handles[1]);
    turn_all(rt);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(result_of(&handles[i]), 0);
    assert_int_equal(blz_notify_try_await(&notify), -EAGAIN);
    free_rt(rt);
}

/* ---- limits, threads, budget ---- */

struct waits_a_little {
    BLZ_FRAME;
    blz_notify *notify;
    int64_t rc;
    blz_notify_op wait;
    blz_timeout limit;
};

BLZ_ASYNC(waits_a_little)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, 0, blz_notify_await(&self->wait, self->notify)));
    BLZ_END(self->rc);
}

static void a_wait_that_times_out_takes_nothing(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_a_little, .notify = &notify), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ETIMEDOUT);
    blz_notify_one(&notify);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_a_little, .notify = &notify), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0); /* it was there before the limit was looked at */
    free_rt(rt);
}

struct notifies_itself {
    BLZ_FRAME;
    blz_notify notify;
    int left;
    int64_t rc;
    blz_notify_op wait;
};

BLZ_ASYNC(notifies_itself)
{
    BLZ_BEGIN;
    while (self->left-- > 0) {
        blz_notify_one(&self->notify);
        BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, &self->notify));
    }
    BLZ_END(self->rc);
}

static void a_task_that_is_always_notified_lets_others_run(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, notifies_itself, .left = 1000), 0);
    assert_true(turn_all(rt) >= 1000 / 128);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void *notify_from_thread(void *arg)
{
    blz_notify_one(arg);
    return NULL;
}

static void a_thread_blocks_until_it_is_notified(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    pthread_t thread = start_thread(notify_from_thread, &notify);

    (void)state;
    assert_int_equal(blz_notify_wait(&notify), 0);
    join_thread(thread);
}

struct blocks {
    BLZ_FRAME;
    blz_notify *notify;
};

BLZ_ASYNC(blocks)
{
    BLZ_BEGIN;
    BLZ_END(blz_notify_wait(self->notify));
}

static void blocking_on_a_worker_is_refused(void **state)
{
    blz_notify notify = BLZ_NOTIFY_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, blocks, .notify = &notify), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EDEADLK);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_permit_is_stored_once),
        TEST(a_stored_permit_ends_the_wait_at_once),
        TEST(one_wakes_who_has_waited_longest),
        TEST(last_wakes_who_came_last),
        TEST(all_wakes_all_that_wait_in_order),
        TEST(all_without_waiters_leaves_no_trace),
        TEST(all_leaves_a_stored_permit),
        TEST(all_does_not_reach_those_that_wait_again),
        TEST(a_waker_may_notify),
        TEST(an_enabled_wait_is_notified_before_its_first_poll),
        TEST(enabling_takes_a_stored_permit),
        TEST(disabling_passes_a_permit_on),
        TEST(one_for_all_is_not_passed_on),
        TEST(a_wait_that_was_ended_takes_no_permit),
        TEST(an_enabled_wait_of_a_task_is_woken),
        TEST(an_enabled_wait_in_a_cancelled_scope_leaves_the_queue),
        TEST(a_cancelled_wait_leaves_the_queue),
        TEST(a_lone_wait_that_is_cancelled_leaves_nothing_behind),
        TEST(a_permit_for_a_cancelled_wait_goes_to_the_next),
        TEST(one_for_all_that_came_first_stands),
        TEST(a_wait_that_times_out_takes_nothing),
        TEST(a_task_that_is_always_notified_lets_others_run),
        TEST(a_thread_blocks_until_it_is_notified),
        TEST(blocking_on_a_worker_is_refused),
    };
    return RUN_TESTS(tests);
}
