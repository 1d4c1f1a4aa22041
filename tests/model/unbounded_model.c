/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unbounded channels, with segments of two messages, so that every other one needs a new segment:
 * none is freed that somebody still uses, none is lost, and messages arrive as in a bounded one.
 */
#include "support/channel_kit.h"

/* Two messages each: they fill a segment together, and both see the end of it. */
static void two_producers_install_segments(void)
{
    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(send_two, &numbers[0], "a");
    model_thread b = model_start_named(send_two, &numbers[2], "b");
    model_join(a);
    model_join(b);
    for (int i = 0; i < 4; i++)
        model_assert(recv_number() >= 0);
    channel_end();
}

static void a_consumer_follows_a_producer(void)
{
    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(send_two, &numbers[0], "producer");
    model_assert(recv_number() == 0);
    model_assert(recv_number() == 1);
    model_join(a);
    channel_end();
}

static void send_three(void *arg)
{
    struct number *number = arg;

    for (int i = 0; i < 3; i++)
        send_try(&number[i]);
}

/* A segment goes round: emptied by one, filled again by another. */
static void a_segment_is_used_again(void)
{
    channel_begin(BLZ_UNBOUNDED);
    send_two(&numbers[0]);
    model_thread a = model_start_named(send_three, &numbers[2], "producer");
    for (int64_t i = 0; i < 5; i++)
        model_assert(recv_number() == i);
    model_join(a);
    channel_end();
}

static void two_consumers_take_turns(void)
{
    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(recv_await, NULL, "a");
    model_thread b = model_start_named(recv_await, NULL, "b");
    send_two(&numbers[0]);
    model_join(a);
    model_join(b);
    channel_end();
}

static void two_consumers_at_the_end_of_a_segment(void)
{
    channel_begin(BLZ_UNBOUNDED);
    send_two(&numbers[0]);
    numbers[2].rc = send_number(&tx, &numbers[2]);
    model_thread a = model_start_named(recv_await, NULL, "a");
    recv_await(NULL);
    recv_await(NULL);
    model_join(a);
    channel_end();
}

static void close_against_send_against_receive(void)
{
    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(send_two, &numbers[0], "sender");
    model_thread b = model_start_named(close_it, NULL, "closer");
    recv_all(NULL);
    model_join(a);
    model_join(b);
    all_arrived(); /* before the last handle goes */
    channel_end();
}

static void send_two_and_drop(void *arg)
{
    send_two(arg);
    blz_sender_drop(&tx);
}

static void the_last_sender_wakes_a_receiver(void)
{
    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(send_two_and_drop, &numbers[0], "sender");
    recv_all(NULL);
    model_join(a);
    channel_end();
}

static void the_last_receiver_leaves_nothing_behind(void)
{
    channel_begin(BLZ_UNBOUNDED);
    send_try(&numbers[0]);
    model_thread a = model_start_named(send_two, &numbers[1], "sender");
    blz_receiver_drop(&rx);
    model_join(a);
    channel_end();
}

/* Who clears up sees how far the receivers had come. */
static void a_sender_clears_up_behind_the_receivers(void)
{
    channel_begin(BLZ_UNBOUNDED);
    send_two(&numbers[0]);
    model_thread a = model_start_named(send_try, &numbers[2], "sender");
    recv_await(NULL);
    recv_await(NULL);
    blz_receiver_drop(&rx);
    model_join(a);
    channel_end();
}

static void two_senders_clear_up_without_receivers(void)
{
    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(send_try, &numbers[0], "a");
    model_thread b = model_start_named(send_try, &numbers[1], "b");
    blz_receiver_drop(&rx);
    model_join(a);
    model_join(b);
    all_arrived();
    channel_end();
}

static void a_cancelled_receive_loses_nothing(void)
{
    uint32_t value = 0;
    blz_channel_op op = {0};
    hand_polled hand;
    blz_future *future;

    channel_begin(BLZ_UNBOUNDED);
    model_thread a = model_start_named(send_try, &numbers[0], "sender");
    hand_begin(&hand);
    future = blz_receiver_recv(&op, &rx, &value);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        future->ops->cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    hand_end(&hand);
    if (future->result == 0)
        count_number(value);
    model_join(a);
    channel_end();
}

static const struct model models[] = {
    MODEL(two_producers_install_segments, .stale_reads = 1, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(a_consumer_follows_a_producer, .preemptions = 3, .stale_reads = 1,
          .spurious_cas = MODEL_NONE, .reduce = true),
    MODEL(a_segment_is_used_again, .stale_reads = MODEL_NONE, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(two_consumers_take_turns, .stale_reads = MODEL_NONE, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(two_consumers_at_the_end_of_a_segment, .stale_reads = 1, .preemptions = 3,
          .reduce = true),
    MODEL(close_against_send_against_receive, .stale_reads = MODEL_NONE, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(the_last_sender_wakes_a_receiver, .stale_reads = 1, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(the_last_receiver_leaves_nothing_behind, .preemptions = 3, .reduce = true),
    MODEL(a_sender_clears_up_behind_the_receivers, .preemptions = 3, .stale_reads = 2,
          .reduce = true),
    MODEL(two_senders_clear_up_without_receivers, .reduce = true),
    MODEL(a_cancelled_receive_loses_nothing, .preemptions = 3, .reduce = true),
};

MODEL_MAIN(models)
