/* SPDX-License-Identifier: Apache-2.0 */
/* Oneshot channels: sent before and after the receiver looks, dropped, closed, cancelled, raced. */
#include "harness.h"

struct receives {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc;
    blz_oneshot_wait wait;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel));
    BLZ_END(self->rc);
}

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void a_value_sent_before_is_received_at_once(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(blz_oneshot_send(&channel, 12), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), 12);
    free_rt(rt);
}

static void a_waiting_receiver_is_woken(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(blz_oneshot_send(&channel, INT64_MAX), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), INT64_MAX);
    free_rt(rt);
}

static void a_drop_wakes_with_epipe(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    turn_all(rt);
    blz_oneshot_drop(&channel);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), -EPIPE);
    free_rt(rt);
}

static void a_drop_before_is_seen_at_once(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    blz_oneshot_drop(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), -EPIPE);
    free_rt(rt);
}

static void try_recv_does_not_wait(void **state)
{
    blz_oneshot channel;
    int64_t value = -1;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 0);
    assert_int_equal(value, -1);
    assert_int_equal(blz_oneshot_send(&channel, 3), 0);
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 1);
    assert_int_equal(value, 3);
    blz_oneshot_init(&channel); /* may be used again */
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 0);
    blz_oneshot_drop(&channel);
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), -EPIPE);
}

static void a_closed_channel_refuses_the_value(void **state)
{
    blz_oneshot channel;

    (void)state;
    blz_oneshot_init(&channel);
    assert_false(blz_oneshot_close(&channel));
    assert_false(blz_oneshot_close(&channel));
    assert_int_equal(blz_oneshot_send(&channel, 1), -EPIPE);
    assert_true(blz_oneshot_close(&channel));
}

static void closing_after_the_sender_is_through_says_so(void **state)
{
    blz_oneshot channel;
    int64_t value;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(blz_oneshot_send(&channel, 1), 0);
    assert_true(blz_oneshot_close(&channel));
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 1); /* it is still there */
    blz_oneshot_init(&channel);
    blz_oneshot_drop(&channel);
    assert_true(blz_oneshot_close(&channel));
}

static void a_cancelled_receiver_closes_the_channel(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(blz_oneshot_send(&channel, 1), -EPIPE);
    assert_true(blz_oneshot_close(&channel));
    free_rt(rt);
}

static void a_value_that_came_first_wins_over_the_cancellation(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(blz_oneshot_send(&channel, 9), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 9);
    free_rt(rt);
}

/* ---- two threads ---- */

enum { ROUNDS = 2000 };

struct sender {
    blz_oneshot *channels;
    struct event go;
};

static void *send_all(void *arg)
{
    struct sender *sender = arg;

    event_wait(&sender->go, 1);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 7 == 0)
            blz_oneshot_drop(&sender->channels[i]);
        else
            (void)blz_oneshot_send(&sender->channels[i], i);
    }
    return NULL;
}

struct receives_all {
    BLZ_FRAME;
    blz_oneshot *channels;
    struct event *go;
    int i;
    int64_t rc;
    blz_oneshot_wait wait;
};

BLZ_ASYNC(receives_all)
{
    BLZ_BEGIN;
    event_post(self->go);
    for (; self->i < ROUNDS; self->i++) {
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->channels[self->i]));
        check(self->rc == (self->i % 7 ? self->i : -EPIPE));
    }
    BLZ_END(0);
}

static void values_from_another_thread_all_arrive(void **state)
{
    static blz_oneshot channels[ROUNDS];
    struct sender sender = {.channels = channels, .go = EVENT_INIT};
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    pthread_t thread;

    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        blz_oneshot_init(&channels[i]);
    thread = start_thread(send_all, &sender);
    assert_int_equal(BLZ_BLOCK_ON(rt, receives_all, .channels = channels, .go = &sender.go), 0);
    join_thread(thread);
    free_rt(rt);
}

static void *cancel_task(void *arg)
{
    blz_task_cancel(arg);
    blz_task_unref(arg);
    return NULL;
}

static void send_and_cancel_race_to_one_outcome(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    int values = 0, cancelled = 0;

    (void)state;
    for (int i = 0; i < 300; i++) {
        blz_oneshot channel;
        blz_handle handle;
        blz_oneshot_init(&channel);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
        pthread_t thread = start_thread(cancel_task, blz_task_ref(handle.task));
        int sent = blz_oneshot_send(&channel, 5);
        assert_int_equal(blz_handle_wait(&handle), 0);
        if (handle.result == 5) {
            assert_int_equal(sent, 0);
            values++;
        } else {
            /* Refused before it began, or told while it waited. */
            assert_int_equal(handle.result, -ECANCELED);
            cancelled++;
        }
        join_thread(thread);
    }
    assert_int_equal(values + cancelled, 300);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_sent_before_is_received_at_once),
        TEST(a_waiting_receiver_is_woken),
        TEST(a_drop_wakes_with_epipe),
        TEST(a_drop_before_is_seen_at_once),
        TEST(try_recv_does_not_wait),
        TEST(a_closed_channel_refuses_the_value),
        TEST(closing_after_the_sender_is_through_says_so),
        TEST(a_cancelled_receiver_closes_the_channel),
        TEST(a_value_that_came_first_wins_over_the_cancellation),
        TEST(values_from_another_thread_all_arrive),
        TEST(send_and_cancel_race_to_one_outcome),
    };
    return RUN_TESTS(tests);
}
