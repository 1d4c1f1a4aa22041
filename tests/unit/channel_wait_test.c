/* SPDX-License-Identifier: Apache-2.0 */
/* Channels with waiting: who is woken when, in which order, and what a cancellation leaves. */
#include "channel_tasks.h"

/* ---- receivers ---- */

static void a_receiver_waits_for_a_message(void **state)
{
    struct fixture f = begin(1);
    int task = start_recv(&f);

    (void)state;
    assert_false(is_done(&f, task));
    assert_int_equal(try_send(&f, 3), 0);
    assert_true(blz_channel_is_empty(f.rx.raw.channel)); /* it has gone to the receiver already */
    assert_int_equal(result_of(&f, task), 3);
    assert_int_equal(try_send(&f, 4), 0);
    assert_int_equal(try_recv(&f), 4);
    end(&f);
}

static void receivers_are_served_in_order(void **state)
{
    struct fixture f = begin(2);
    int a = start_recv(&f), b = start_recv(&f), c = start_recv(&f);

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(try_send(&f, i), 0);
    assert_int_equal(result_of(&f, a), 0);
    assert_int_equal(result_of(&f, b), 1);
    assert_int_equal(result_of(&f, c), 2);
    assert_int_equal(try_recv(&f), 3);
    end(&f);
}

static void the_last_sender_wakes_all_receivers(void **state)
{
    struct fixture f = begin(2);
    int a = start_recv(&f), b = start_recv(&f);

    (void)state;
    nums_sender_drop(&f.tx);
    assert_int_equal(result_of(&f, a), -EPIPE);
    assert_int_equal(result_of(&f, b), -EPIPE);
    assert_int_equal(result_of(&f, start_recv(&f)), -EPIPE);
    end(&f);
}

static void a_permit_given_back_wakes_receivers_of_a_closed_channel(void **state)
{
    struct fixture f = begin(2);
    blz_permit permit;
    int task;

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 1), 0);
    blz_channel_close(f.tx.raw.channel);
    task = start_recv(&f);
    assert_false(is_done(&f, task));
    blz_permit_release(&permit);
    assert_int_equal(result_of(&f, task), -EPIPE);
    end(&f);
}

static void a_permit_that_is_used_wakes_a_receiver(void **state)
{
    struct fixture f = begin(2);
    blz_permit permit;
    int task = start_recv(&f);

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 1), 0);
    assert_false(is_done(&f, task));
    nums_permit_send(&permit, 6);
    assert_int_equal(result_of(&f, task), 6);
    end(&f);
}

/* Permits that fill the channel keep messages out even if somebody waits for one. */
static void permits_keep_others_out_of_the_way_to_a_receiver(void **state)
{
    struct fixture f = begin(1);
    blz_permit permit;
    int receiver = start_recv(&f);

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 1), 0);
    assert_int_equal(try_send(&f, 1), -EAGAIN);
    nums_permit_send(&permit, 2);
    assert_int_equal(result_of(&f, receiver), 2);
    assert_int_equal(try_send(&f, 1), 0);
    end(&f);
}

/* ---- senders ---- */

static void a_sender_waits_for_room(void **state)
{
    struct fixture f = begin(1);
    int task;

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    task = start_send(&f, 2);
    assert_false(is_done(&f, task));
    assert_int_equal(blz_channel_len(f.rx.raw.channel), 1);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(blz_channel_len(f.rx.raw.channel), 1); /* it has been sent already */
    assert_int_equal(result_of(&f, task), 0);
    assert_int_equal(try_recv(&f), 2);
    end(&f);
}

static void senders_are_served_in_order_and_not_overtaken(void **state)
{
    struct fixture f = begin(2);
    int tasks[4];

    (void)state;
    assert_int_equal(try_send(&f, 0), 0);
    assert_int_equal(try_send(&f, 1), 0);
    for (uint64_t i = 0; i < 4; i++)
        tasks[i] = start_send(&f, 2 + i);
    assert_int_equal(try_recv(&f), 0);
    assert_int_equal(try_send(&f, 99), -EAGAIN);
    for (int i = 1; i < 6; i++)
        assert_int_equal(try_recv(&f), i);
    for (int i = 0; i < 4; i++)
        assert_int_equal(result_of(&f, tasks[i]), 0);
    assert_int_equal(try_send(&f, 6), 0); /* nobody waits any more */
    assert_int_equal(try_recv(&f), 6);
    end(&f);
}

static void a_close_turns_senders_away(void **state)
{
    struct fixture f = begin(1);
    int a, b;

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    a = start_send(&f, 2);
    b = start_send(&f, 3);
    blz_channel_close(f.rx.raw.channel);
    assert_int_equal(result_of(&f, a), -EPIPE);
    assert_int_equal(result_of(&f, b), -EPIPE);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(try_recv(&f), -EPIPE);
    end(&f);
}

static void the_last_receiver_turns_senders_away(void **state)
{
    struct fixture f = begin(1);
    int task;

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    task = start_send(&f, 2);
    nums_receiver_drop(&f.rx);
    assert_int_equal(result_of(&f, task), -EPIPE);
    end(&f);
}

struct watches {
    BLZ_FRAME;
    blz_sender *tx;
    int64_t rc;
    blz_channel_op op;
};

BLZ_ASYNC(watches)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sender_closed(&self->op, self->tx));
    BLZ_END(self->rc);
}

static void a_sender_learns_that_it_is_closed(void **state)
{
    struct fixture f = begin(1);
    int a = START(&f, watches, .tx = &f.tx.raw), b = START(&f, watches, .tx = &f.tx.raw);

    (void)state;
    assert_false(is_done(&f, a));
    assert_int_equal(cancelled(&f, b), -ECANCELED);
    nums_receiver_drop(&f.rx);
    assert_int_equal(result_of(&f, a), 0);
    assert_int_equal(result_of(&f, START(&f, watches, .tx = &f.tx.raw)), 0);
    end(&f);
}

/* ---- reserving ---- */

/* Room is kept for who waits first, though there would be enough for the one behind. */
static void a_large_reserve_is_not_starved(void **state)
{
    struct fixture f = begin(3);
    blz_permit permit;
    int large, small;

    (void)state;
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(try_send(&f, i), 0);
    large = start_reserve(&f, 2, &permit);
    small = start_send(&f, 3);
    assert_int_equal(try_recv(&f), 0);
    assert_false(is_done(&f, large));
    assert_false(is_done(&f, small));
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(result_of(&f, large), 0);
    assert_int_equal(permit.count, 2);
    assert_false(is_done(&f, small));
    assert_int_equal(try_recv(&f), 2);
    assert_int_equal(result_of(&f, small), 0);
    nums_permit_send(&permit, 4);
    blz_permit_release(&permit);
    assert_int_equal(try_recv(&f), 3);
    assert_int_equal(try_recv(&f), 4);
    end(&f);
}

static void a_permit_given_back_serves_those_who_wait(void **state)
{
    struct fixture f = begin(3);
    blz_permit permit, second;
    int a, b;

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 3), 0);
    a = start_send(&f, 1);
    b = start_reserve(&f, 2, &second);
    assert_false(is_done(&f, a));
    blz_permit_release(&permit);
    assert_int_equal(result_of(&f, a), 0);
    assert_int_equal(result_of(&f, b), 0);
    assert_int_equal(blz_channel_room(f.tx.raw.channel), 0);
    blz_permit_release(&second);
    assert_int_equal(try_recv(&f), 1);
    end(&f);
}

static void a_reserve_of_too_many_fails_at_once(void **state)
{
    struct fixture f = begin(3);
    blz_permit permit;

    (void)state;
    assert_int_equal(result_of(&f, start_reserve(&f, 4, &permit)), -EINVAL);
    assert_int_equal(result_of(&f, start_reserve(&f, 0, &permit)), -EINVAL);
    assert_int_equal(permit.count, 0);
    blz_channel_close(f.tx.raw.channel);
    assert_int_equal(result_of(&f, start_reserve(&f, 1, &permit)), -EPIPE);
    end(&f);
}

/* ---- cancelling ---- */

static void a_cancelled_send_is_not_sent(void **state)
{
    struct fixture f = begin(1);
    int a, b;

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    a = start_send(&f, 2);
    b = start_send(&f, 3);
    assert_int_equal(cancelled(&f, a), -ECANCELED);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(result_of(&f, b), 0);
    assert_int_equal(try_recv(&f), 3);
    assert_int_equal(try_recv(&f), -EAGAIN);
    end(&f);
}

/* The message went, then came the cancellation: the send was a success. */
static void a_send_that_is_done_cannot_be_cancelled(void **state)
{
    struct fixture f = begin(1);
    int task;

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    task = start_send(&f, 2);
    assert_int_equal(try_recv(&f), 1);
    blz_handle_cancel(&f.tasks[task]);
    assert_int_equal(result_of(&f, task), 0);
    assert_int_equal(try_recv(&f), 2);
    end(&f);
}

static void a_cancelled_receive_takes_nothing(void **state)
{
    struct fixture f = begin(1);
    int a = start_recv(&f), b = start_recv(&f);

    (void)state;
    assert_int_equal(cancelled(&f, a), -ECANCELED);
    assert_int_equal(try_send(&f, 5), 0);
    assert_int_equal(result_of(&f, b), 5);
    end(&f);
}

static void a_receive_that_is_done_cannot_be_cancelled(void **state)
{
    struct fixture f = begin(1);
    int task = start_recv(&f);

    (void)state;
    assert_int_equal(try_send(&f, 5), 0);
    blz_handle_cancel(&f.tasks[task]);
    assert_int_equal(result_of(&f, task), 5);
    end(&f);
}

static void a_cancelled_reserve_lets_others_go(void **state)
{
    struct fixture f = begin(2);
    blz_permit held, permit;
    int large, small;

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &held, 1), 0);
    large = start_reserve(&f, 2, &permit);
    small = start_send(&f, 3);
    assert_false(is_done(&f, small));
    assert_int_equal(cancelled(&f, large), -ECANCELED);
    assert_int_equal(permit.count, 0);
    assert_int_equal(result_of(&f, small), 0);
    blz_permit_release(&held);
    assert_int_equal(try_recv(&f), 3);
    end(&f);
}

static void a_reserve_that_is_done_keeps_its_permit(void **state)
{
    struct fixture f = begin(1);
    blz_permit permit;
    int task;

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    task = start_reserve(&f, 1, &permit);
    assert_int_equal(try_recv(&f), 1);
    blz_handle_cancel(&f.tasks[task]);
    assert_int_equal(result_of(&f, task), 0);
    assert_int_equal(permit.count, 1);
    blz_permit_release(&permit);
    assert_int_equal(try_send(&f, 2), 0);
    end(&f);
}

/* ---- many at once ---- */

struct receives_many {
    BLZ_FRAME;
    nums_receiver *rx;
    uint64_t *values;
    uint32_t count;
    int64_t rc;
    nums_op op;
};

BLZ_ASYNC(receives_many)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, nums_recv_many(&self->op, self->rx, self->values, self->count));
    BLZ_END(self->rc);
}

static void the_first_of_many_is_waited_for(void **state)
{
    struct fixture f = begin(8);
    uint64_t values[4] = {0};
    int task = START(&f, receives_many, .rx = &f.rx, .values = values, .count = 4);

    (void)state;
    assert_false(is_done(&f, task));
    for (uint64_t i = 1; i <= 6; i++)
        assert_int_equal(try_send(&f, i), 0);
    assert_int_equal(result_of(&f, task), 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(values[i], i + 1);
    task = START(&f, receives_many, .rx = &f.rx, .values = values, .count = 4);
    assert_int_equal(result_of(&f, task), 2);
    assert_int_equal(values[0], 5);
    task = START(&f, receives_many, .rx = &f.rx, .values = values, .count = 0);
    assert_int_equal(result_of(&f, task), 0);
    task = START(&f, receives_many, .rx = &f.rx, .values = values, .count = 4);
    nums_sender_drop(&f.tx);
    assert_int_equal(result_of(&f, task), -EPIPE);
    end(&f);
}

/* Taking many makes room for as many senders. */
static void many_senders_are_served_by_one_receive(void **state)
{
    struct fixture f = begin(2);
    uint64_t values[5];
    int tasks[3];

    (void)state;
    assert_int_equal(try_send(&f, 0), 0);
    assert_int_equal(try_send(&f, 1), 0);
    for (uint64_t i = 0; i < 3; i++)
        tasks[i] = start_send(&f, 2 + i);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 5), 5);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(values[i], i);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result_of(&f, tasks[i]), 0);
    end(&f);
}

/* ---- fairness of tasks ---- */

struct counts {
    BLZ_FRAME;
    nums_receiver *rx;
    uint64_t count, value;
    int64_t rc;
    nums_op op;
};

/* Never waits: there is always a message. */
BLZ_ASYNC(counts)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, nums_recv(&self->op, self->rx, &self->value));
        self->count++;
    } while (self->rc == 0);
    BLZ_END((int64_t)self->count);
}

static void a_receiver_that_never_waits_lets_others_run(void **state)
{
    struct fixture f = begin(1000);
    int64_t polls;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(try_send(&f, i), 0);
    nums_sender_drop(&f.tx);
    assert_int_equal(BLZ_SPAWN_ON(f.rt, &f.tasks[0], counts, .rx = &f.rx), 0);
    polls = turn_all(f.rt);
    assert_true(polls >= 1001 / 128 && polls <= 1001 / 64);
    assert_int_equal(result_of(&f, 0), 1001);
    end(&f);
}

/* ---- select ---- */

struct selects {
    BLZ_FRAME;
    nums_sender *tx;
    nums_receiver *rx;
    uint64_t value;
    int64_t rc;
    nums_op send, recv;
    blz_select_op select;
};

/* Ends with 1 if the message went, with 10 + the number if one came; the other is cancelled. */
BLZ_ASYNC(selects)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_select(&self->select, nums_send(&self->send, self->tx, 7),
                                   nums_recv(&self->recv, self->rx, &self->value)));
    check((self->rc == 0 ? &self->recv : &self->send)->op.future.result == -ECANCELED);
    BLZ_END(self->rc == 0 ? 1 : 10 + (int64_t)self->value);
}

static void a_select_over_send_and_receive(void **state)
{
    struct fixture f = begin(1), g = {.rt = f.rt};
    int task;

    (void)state;
    channel_new(&g, 1);
    assert_int_equal(try_send(&f, 1), 0); /* f is full, g is empty: both wait */
    task = START(&f, selects, .tx = &f.tx, .rx = &g.rx);
    assert_int_equal(try_send(&g, 5), 0);
    assert_int_equal(result_of(&f, task), 15);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(try_recv(&f), -EAGAIN); /* the 7 was not sent */
    assert_int_equal(try_send(&f, 1), 0);
    task = START(&f, selects, .tx = &f.tx, .rx = &g.rx);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(result_of(&f, task), 1);
    assert_int_equal(try_recv(&f), 7);
    assert_int_equal(try_send(&g, 6), 0);
    assert_int_equal(try_recv(&g), 6); /* the receive has left the queue */
    nums_sender_drop(&g.tx);
    nums_receiver_drop(&g.rx);
    end(&f);
}

/* Both branches are served before the task runs: one wins, and the other has its result, too. */
struct selects_both {
    BLZ_FRAME;
    nums_sender *tx;
    nums_receiver *rx;
    uint64_t value;
    int64_t rc;
    nums_op send, recv;
    blz_select_op select;
};

BLZ_ASYNC(selects_both)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_select(&self->select, nums_send(&self->send, self->tx, 7),
                                   nums_recv(&self->recv, self->rx, &self->value)));
    check(self->send.op.future.result == 0 && self->recv.op.future.result == 0);
    BLZ_END((int64_t)self->value);
}

static void a_select_that_loses_keeps_its_message(void **state)
{
    struct fixture f = begin(1), g = {.rt = f.rt};
    int task;

    (void)state;
    channel_new(&g, 1);
    assert_int_equal(try_send(&f, 1), 0);
    task = START(&f, selects_both, .tx = &f.tx, .rx = &g.rx);
    assert_int_equal(try_send(&g, 5), 0);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(result_of(&f, task), 5);
    assert_int_equal(try_recv(&f), 7);
    nums_sender_drop(&g.tx);
    nums_receiver_drop(&g.rx);
    end(&f);
}

/* ---- threads ---- */

static void *send_some(void *arg)
{
    nums_sender *tx = arg;

    for (uint64_t i = 0; i < 100; i++)
        check(nums_send_wait(tx, i) == 0);
    nums_sender_drop(tx);
    return NULL;
}

static void threads_send_and_receive(void **state)
{
    struct fixture f = begin(2);
    pthread_t thread = start_thread(send_some, &f.tx);
    uint64_t value;

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(nums_recv_wait(&f.rx, &value), 0);
        assert_int_equal(value, i);
    }
    assert_int_equal(nums_recv_wait(&f.rx, &value), -EPIPE);
    join_thread(thread);
    end(&f);
}

static void *wait_for_the_end(void *tx)
{
    check(blz_sender_closed_wait(tx) == 0);
    return NULL;
}

static void a_thread_waits_for_the_end(void **state)
{
    struct fixture f = begin(2);
    pthread_t thread = start_thread(wait_for_the_end, &f.tx.raw);
    blz_permit permit;

    (void)state;
    assert_int_equal(blz_sender_reserve_wait(&f.tx.raw, &permit, 2), 0);
    blz_permit_release(&permit);
    blz_channel_close(f.rx.raw.channel);
    join_thread(thread);
    assert_int_equal(blz_sender_reserve_wait(&f.tx.raw, &permit, 2), -EPIPE);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_receiver_waits_for_a_message),
        TEST(receivers_are_served_in_order),
        TEST(the_last_sender_wakes_all_receivers),
        TEST(a_permit_given_back_wakes_receivers_of_a_closed_channel),
        TEST(a_permit_that_is_used_wakes_a_receiver),
        TEST(permits_keep_others_out_of_the_way_to_a_receiver),
        TEST(a_sender_waits_for_room),
        TEST(senders_are_served_in_order_and_not_overtaken),
        TEST(a_close_turns_senders_away),
        TEST(the_last_receiver_turns_senders_away),
        TEST(a_sender_learns_that_it_is_closed),
        TEST(a_large_reserve_is_not_starved),
        TEST(a_permit_given_back_serves_those_who_wait),
        TEST(a_reserve_of_too_many_fails_at_once),
        TEST(a_cancelled_send_is_not_sent),
        TEST(a_send_that_is_done_cannot_be_cancelled),
        TEST(a_cancelled_receive_takes_nothing),
        TEST(a_receive_that_is_done_cannot_be_cancelled),
        TEST(a_cancelled_reserve_lets_others_go),
        TEST(a_reserve_that_is_done_keeps_its_permit),
        TEST(the_first_of_many_is_waited_for),
        TEST(many_senders_are_served_by_one_receive),
        TEST(a_receiver_that_never_waits_lets_others_run),
        TEST(a_select_over_send_and_receive),
        TEST(a_select_that_loses_keeps_its_message),
        TEST(threads_send_and_receive),
        TEST(a_thread_waits_for_the_end),
    };
    return RUN_TESTS(tests);
}
