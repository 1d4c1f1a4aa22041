/* SPDX-License-Identifier: Apache-2.0 */
/* Oneshot channels: sent before and after the receiver looks, dropped, closed, cancelled, raced. */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

struct receives {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
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
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), -EAGAIN);
    assert_int_equal(value, -1);
    assert_int_equal(blz_oneshot_send(&channel, 3), 0);
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 0);
    assert_int_equal(value, 3);
    blz_oneshot_init(&channel); /* may be used again */
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), -EAGAIN);
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
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 0); /* it is still there */
    blz_oneshot_init(&channel);
    blz_oneshot_drop(&channel);
    assert_true(blz_oneshot_close(&channel));
}

static void a_cancelled_receive_leaves_the_channel_as_it_was(void **state)
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
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(blz_oneshot_send(&channel, 1), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 1);
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

/* A limit that has passed: the receiver tries again, and loses nothing. */
static void a_receive_may_be_repeated_after_a_timeout(void **state)
{
    blz_oneshot channel;
    blz_oneshot_op op = {0};
    int64_t value = 0;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(blz_wait_until(blz_oneshot_recv(&op, &channel, &value), 0), -ETIMEDOUT);
    assert_int_equal(blz_oneshot_send(&channel, 8), 0);
    assert_int_equal(blz_oneshot_recv_wait(&channel, &value), 0);
    assert_int_equal(value, 8);
}

static void any_value_can_be_sent(void **state)
{
    const int64_t values[] = {0, -1, INT64_MIN, INT64_MAX, -EPIPE, -ECANCELED};
    int64_t value;

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        blz_oneshot channel = BLZ_ONESHOT_INIT;
        value = 1;
        assert_int_equal(blz_oneshot_send(&channel, values[i]), 0);
        assert_int_equal(blz_oneshot_recv_wait(&channel, &value), 0);
        assert_int_equal(value, values[i]);
    }
}

/* ---- the sender looks at the receiver ---- */

struct awaits_close {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc;
    blz_oneshot_op op;
};

BLZ_ASYNC(awaits_close)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_closed(&self->op, self->channel));
    BLZ_END(self->rc);
}

static void a_sender_learns_that_the_receiver_has_closed(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel = BLZ_ONESHOT_INIT;
    blz_handle handle;

    (void)state;
    assert_false(blz_oneshot_is_closed(&channel));
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_close, .channel = &channel), 0);
    turn_all(rt);
    assert_false(blz_oneshot_close(&channel));
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), 0);
    assert_true(blz_oneshot_is_closed(&channel));
    assert_int_equal(blz_oneshot_closed_wait(&channel), 0); /* at once */
    assert_int_equal(blz_oneshot_send(&channel, 1), -EPIPE);
    free_rt(rt);
}

static void a_sender_that_has_given_up_waiting_for_the_close_may_send(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel = BLZ_ONESHOT_INIT;
    blz_handle handle;
    int64_t value = 0;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, awaits_close, .channel = &channel), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(blz_oneshot_send(&channel, 4), 0);
    assert_int_equal(blz_oneshot_try_recv(&channel, &value), 0);
    assert_int_equal(value, 4);
    free_rt(rt);
}

/* The way to end with the channel in one's own frame: close, then see the sender out. */
static void a_receive_after_the_close_waits_for_the_sender(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot channel = BLZ_ONESHOT_INIT;
    blz_handle handle;

    (void)state;
    assert_false(blz_oneshot_close(&channel));
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &channel), 0);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    assert_int_equal(blz_oneshot_send(&channel, 1), -EPIPE);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EPIPE);
    free_rt(rt);
}

/* ---- handles ---- */

static void whoever_is_last_frees_a_channel_with_handles(void **state)
{
    blz_oneshot_sender sender;
    blz_oneshot_receiver receiver;
    int64_t value = 0;

    (void)state;
    for (int sender_first = 0; sender_first < 2; sender_first++) {
        assert_int_equal(blz_oneshot_new(&sender, &receiver, test_memory()), 0);
        assert_int_equal(blz_oneshot_receiver_try_recv(&receiver, &value), -EAGAIN);
        if (sender_first) {
            assert_int_equal(blz_oneshot_sender_send(&sender, -7), 0);
            assert_int_equal(blz_oneshot_receiver_recv_wait(&receiver, &value), 0);
            assert_int_equal(value, -7);
            blz_oneshot_receiver_drop(&receiver);
        } else {
            blz_oneshot_receiver_drop(&receiver);
            assert_true(blz_oneshot_sender_is_closed(&sender));
            assert_int_equal(blz_oneshot_sender_closed_wait(&sender), 0);
            assert_int_equal(blz_oneshot_sender_send(&sender, 7), -EPIPE);
        }
        assert_int_equal(memory_blocks(the_memory()), 0);
    }
}

static void handles_that_have_ended_say_so(void **state)
{
    blz_oneshot_sender sender;
    blz_oneshot_receiver receiver;
    int64_t value;

    (void)state;
    assert_int_equal(blz_oneshot_new(&sender, &receiver, NULL), 0);
    blz_oneshot_sender_drop(&sender);
    assert_int_equal(blz_oneshot_sender_send(&sender, 1), -EBADF);
    assert_int_equal(blz_oneshot_sender_closed_wait(&sender), -EBADF);
    blz_oneshot_sender_drop(&sender);
    assert_int_equal(blz_oneshot_receiver_try_recv(&receiver, &value), -EPIPE);
    assert_true(blz_oneshot_receiver_close(&receiver));
    blz_oneshot_receiver_drop(&receiver);
    assert_int_equal(blz_oneshot_receiver_try_recv(&receiver, &value), -EBADF);
    assert_int_equal(blz_oneshot_receiver_recv_wait(&receiver, &value), -EBADF);
    blz_oneshot_receiver_drop(&receiver);
}

static void a_channel_without_memory_is_an_error(void **state)
{
    blz_oneshot_sender sender;
    blz_oneshot_receiver receiver;

    (void)state;
    memory_fail_at(the_memory(), 1, false);
    assert_int_equal(blz_oneshot_new(&sender, &receiver, test_memory()), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
}

/* ---- of another type ---- */

struct point {
    double x, y, z;
};

BLZ_ONESHOT(points, struct point)

struct receives_point {
    BLZ_FRAME;
    points *channel;
    struct point point;
    int64_t rc;
    points_op op;
};

BLZ_ASYNC(receives_point)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, points_recv(&self->op, self->channel, &self->point));
    BLZ_END(self->rc < 0 ? self->rc : (int64_t)(self->point.x + self->point.y + self->point.z));
}

static void a_value_of_any_type_is_received(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct point point = {0, 0, 0};
    points channel;
    blz_handle handle;

    (void)state;
    points_init(&channel);
    assert_int_equal(points_try_recv(&channel, &point), -EAGAIN);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_point, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(points_send(&channel, (struct point){1, 2, 3}), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 6);
    assert_int_equal(points_try_recv(&channel, &point), 0);
    assert_true(point.x == 1 && point.y == 2 && point.z == 3);
    points_init(&channel);
    points_drop(&channel);
    assert_int_equal(points_recv_wait(&channel, &point), -EPIPE);
    assert_true(points_close(&channel));
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
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(receives_all)
{
    BLZ_BEGIN;
    event_post(self->go);
    for (; self->i < ROUNDS; self->i++) {
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->channels[self->i], &self->value));
        check(self->rc == (self->i % 7 ? 0 : -EPIPE) && (self->rc < 0 || self->value == self->i));
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

static void *send_or_drop(void *arg)
{
    blz_oneshot_sender *sender = arg;

    (void)blz_oneshot_sender_send(sender, 3);
    return NULL;
}

/* Each side ends its handle when it likes; with a thread that blocks in between. */
static void handles_end_on_two_threads_in_any_order(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        blz_oneshot_sender sender;
        blz_oneshot_receiver receiver;
        int64_t value = 0;
        assert_int_equal(blz_oneshot_new(&sender, &receiver, test_memory()), 0);
        pthread_t thread = start_thread(send_or_drop, &sender);
        if (i % 2) {
            assert_int_equal(blz_oneshot_receiver_recv_wait(&receiver, &value), 0);
            assert_int_equal(value, 3);
        }
        blz_oneshot_receiver_drop(&receiver);
        join_thread(thread);
    }
}

/* Closed, sent and received at the same time: the value arrives, or the sender knows. */
static void close_and_send_race_to_one_outcome(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        blz_oneshot_sender sender;
        blz_oneshot_receiver receiver;
        int64_t value = 0;
        assert_int_equal(blz_oneshot_new(&sender, &receiver, test_memory()), 0);
        pthread_t thread = start_thread(send_or_drop, &sender);
        bool through = blz_oneshot_receiver_close(&receiver);
        int rc = i % 2 ? blz_oneshot_receiver_recv_wait(&receiver, &value)
                       : blz_oneshot_receiver_try_recv(&receiver, &value);
        if (through)
            assert_true(rc == 0 && value == 3);
        else
            assert_true(rc == -EPIPE || (i % 2 == 0 && rc == -EAGAIN));
        blz_oneshot_receiver_drop(&receiver);
        join_thread(thread);
    }
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

/* ---- mistakes: each in a process of its own, which ends well if it aborts ---- */

static void end_well(int signal)
{
    (void)signal;
    _exit(0);
}

static void send_twice(void)
{
    blz_oneshot channel = BLZ_ONESHOT_INIT;

    blz_oneshot_send(&channel, 1);
    blz_oneshot_drop(&channel);
}

static void send_while_the_close_is_awaited(void)
{
    blz_oneshot channel = BLZ_ONESHOT_INIT;
    blz_rt *rt = new_embedded_rt();

    check(BLZ_SPAWN_ON(rt, NULL, awaits_close, .channel = &channel) == 0);
    turn_all(rt);
    blz_oneshot_send(&channel, 1);
}

static void drop_the_receiver_while_it_waits(void)
{
    blz_oneshot_sender sender;
    blz_oneshot_receiver receiver;
    blz_rt *rt = new_embedded_rt();

    check(blz_oneshot_new(&sender, &receiver, NULL) == 0);
    check(BLZ_SPAWN_ON(rt, NULL, receives, .channel = receiver.channel) == 0);
    turn_all(rt);
    blz_oneshot_receiver_drop(&receiver);
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"send_twice", send_twice},
    {"send_while_the_close_is_awaited", send_while_the_close_is_awaited},
    {"drop_the_receiver_while_it_waits", drop_the_receiver_while_it_waits},
};

enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static int make_mistake(const char *name)
{
    signal(SIGABRT, end_well);
    for (int i = 0; i < MISTAKES; i++)
        if (strcmp(name, mistakes[i].name) == 0)
            mistakes[i].make();
    return 1;
}

static void mistakes_abort(void **state)
{
    (void)state;
    for (int i = 0; i < MISTAKES; i++)
        in_own_process(mistakes[i].name);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_sent_before_is_received_at_once),
        TEST(a_waiting_receiver_is_woken),
        TEST(a_drop_wakes_with_epipe),
        TEST(a_drop_before_is_seen_at_once),
        TEST(try_recv_does_not_wait),
        TEST(a_closed_channel_refuses_the_value),
        TEST(closing_after_the_sender_is_through_says_so),
        TEST(a_cancelled_receive_leaves_the_channel_as_it_was),
        TEST(a_value_that_came_first_wins_over_the_cancellation),
        TEST(a_receive_may_be_repeated_after_a_timeout),
        TEST(any_value_can_be_sent),
        TEST(a_sender_learns_that_the_receiver_has_closed),
        TEST(a_sender_that_has_given_up_waiting_for_the_close_may_send),
        TEST(a_receive_after_the_close_waits_for_the_sender),
        TEST(whoever_is_last_frees_a_channel_with_handles),
        TEST(handles_that_have_ended_say_so),
        TEST(a_channel_without_memory_is_an_error),
        TEST(a_value_of_any_type_is_received),
        TEST(values_from_another_thread_all_arrive),
        TEST(handles_end_on_two_threads_in_any_order),
        TEST(close_and_send_race_to_one_outcome),
        TEST(send_and_cancel_race_to_one_outcome),
        TEST(mistakes_abort),
    };

    if (argc > 1)
        return make_mistake(argv[1]);
    return RUN_TESTS(tests);
}
