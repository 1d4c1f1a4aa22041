/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded channels. Whatever the threads do to each other, a message that has been sent is received
 * once, or destroyed once if nobody is left to receive it; messages of one sender stay in order;
 * and nobody sleeps when there is something for him.
 */
#include "support/channel_kit.h"
#include "system/thread.h"

/* ---- messages ---- */

/* Polls once; if that did not do it, cancels. */
static int64_t poll_and_cancel(blz_future *future)
{
    hand_polled hand;

    hand_begin(&hand);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        future->ops->cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    hand_end(&hand);
    return future->result;
}

static void two_producers(size_t capacity)
{
    channel_begin(capacity);
    model_thread a = model_start_named(send_await, &numbers[0], "a");
    model_thread b = model_start_named(send_await, &numbers[1], "b");
    recv_await(NULL);
    recv_await(NULL);
    model_join(a);
    model_join(b);
    channel_end();
}

static void two_producers_share_one_slot(void)
{
    two_producers(1);
}

static void two_producers_share_two_slots(void)
{
    two_producers(2);
}

static void one_producer_stays_in_order(void)
{
    channel_begin(1);
    model_thread a = model_start_named(send_two, &numbers[0], "producer");
    model_assert(recv_number() == 0);
    model_assert(recv_number() == 1);
    model_join(a);
    channel_end();
}

/* One is in the middle of sending; what the other sends behind it stays in order. */
static void a_producer_in_the_middle_reorders_nothing(void)
{
    bool first = false;

    channel_begin(3);
    model_thread a = model_start_named(send_try, &numbers[0], "a");
    model_thread b = model_start_named(send_two, &numbers[1], "b");
    blz__thread_yield();
    for (int i = 0; i < 3; i++) {
        int64_t number = recv_number();
        model_assert(number != 2 || first);
        first |= number == 1;
    }
    model_join(a);
    model_join(b);
    channel_end();
}

static void two_consumers_share_one_slot(void)
{
    channel_begin(1);
    model_thread a = model_start_named(recv_await, NULL, "a");
    model_thread b = model_start_named(recv_await, NULL, "b");
    send_two(&numbers[0]);
    model_join(a);
    model_join(b);
    channel_end();
}

/* The ring has two slots, the channel one: a slot is used again that another sender saw freed. */
static void a_slot_is_used_again_when_it_has_been_read(void)
{
    channel_begin(1);
    model_thread a = model_start_named(recv_await, NULL, "a");
    numbers[0].rc = send_number(&tx, &numbers[0]);
    numbers[1].rc = send_number(&tx, &numbers[1]);
    model_thread b = model_start_named(send_await, &numbers[2], "b");
    recv_await(NULL);
    recv_await(NULL);
    model_join(a);
    model_join(b);
    channel_end();
}

/*
 * Three messages in a ring of four. The fourth sender sees that the first slot has been read; the
 * fifth, which gets that slot, sees only that the second has, and relies on the fourth.
 */
static void a_slot_is_free_since_another_sender_saw_it(void)
{
    channel_begin(3);
    send_try(&numbers[0]);
    send_try(&numbers[1]);
    send_try(&numbers[2]);
    model_thread a = model_start_named(recv_await, NULL, "receiver");
    model_thread b = model_start_named(send_try, &numbers[3], "sender");
    recv_await(NULL);
    send_try(&numbers[4]);
    model_join(a);
    model_join(b);
    channel_end();
}

static void try_send_against_try_recv(void)
{
    uint32_t value;
    int rc;

    channel_begin(1);
    model_thread a = model_start_named(send_try, &numbers[0], "a");
    model_thread b = model_start_named(send_try, &numbers[1], "b");
    rc = blz_receiver_try_recv(&rx, &value);
    if (rc == 0)
        count_number(value);
    else
        model_assert(rc == -EAGAIN);
    model_join(a);
    model_join(b);
    channel_end();
}

/* ---- the end ---- */

/* What was sent before the close is received after it. */
static void close_against_send_against_receive(void)
{
    channel_begin(1);
    model_thread a = model_start_named(send_await, &numbers[0], "sender");
    model_thread b = model_start_named(close_it, NULL, "closer");
    recv_all(NULL);
    model_join(a);
    model_join(b);
    model_assert(numbers[0].rc == 0 || numbers[0].rc == -EPIPE);
    all_arrived(); /* before the last handle goes */
    channel_end();
}

/*
 * Nothing comes after the end, also for who never takes the lock. The sender takes it, because a
 * receiver has waited before.
 */
static void the_end_is_final_for_who_only_tries(void)
{
    uint32_t value;
    blz_channel_op op = {0};
    int rc;

    channel_begin(1);
    model_assert(poll_and_cancel(blz_receiver_recv(&op, &rx, &value)) == -ECANCELED);
    model_thread a = model_start_named(send_try, &numbers[0], "sender");
    model_thread b = model_start_named(close_it, NULL, "closer");
    while ((rc = blz_receiver_try_recv(&rx, &value)) != -EPIPE) {
        if (rc == 0)
            count_number(value);
        blz__spin_hint();
    }
    model_join(a);
    model_join(b);
    all_arrived();
    channel_end();
}

static void close_against_a_sender_that_waits(void)
{
    channel_begin(1);
    send_try(&numbers[0]);
    model_thread a = model_start_named(send_await, &numbers[1], "sender");
    close_it(NULL);
    model_join(a);
    recv_all(NULL);
    channel_end();
}

static void send_and_drop(void *arg)
{
    send_await(arg);
    blz_sender_drop(&tx);
}

static void the_last_sender_wakes_a_receiver(void)
{
    channel_begin(1);
    model_thread a = model_start_named(send_and_drop, &numbers[0], "sender");
    recv_all(NULL);
    model_join(a);
    channel_end();
}

static void drop_sender(void *arg)
{
    blz_sender_drop(arg);
}

static void the_last_of_two_senders_closes(void)
{
    blz_sender other;

    channel_begin(1);
    other = blz_sender_clone(&tx);
    model_thread a = model_start_named(drop_sender, &other, "a");
    model_thread b = model_start_named(drop_sender, &tx, "b");
    model_assert(recv_number() == -EPIPE);
    model_join(a);
    model_join(b);
    channel_end();
}

/* Nobody uses it any more when the second of them frees it. */
static void the_last_of_two_senders_frees(void)
{
    blz_sender other;

    channel_begin(1);
    other = blz_sender_clone(&tx);
    blz_receiver_drop(&rx);
    model_thread a = model_start_named(drop_sender, &other, "a");
    blz_sender_drop(&tx);
    model_join(a);
    channel_end();
}

static void drop_receiver(void *arg)
{
    blz_receiver_drop(arg);
}

static void the_last_of_two_receivers_frees(void)
{
    blz_receiver other;

    channel_begin(1);
    other = blz_receiver_clone(&rx);
    blz_sender_drop(&tx);
    model_thread a = model_start_named(drop_receiver, &other, "a");
    blz_receiver_drop(&rx);
    model_join(a);
    channel_end();
}

/* Sent or not, the message is destroyed once, or stays with its sender. */
static void the_last_receiver_leaves_nothing_behind(void)
{
    channel_begin(1);
    model_thread a = model_start_named(send_await, &numbers[0], "sender");
    blz_receiver_drop(&rx);
    model_join(a);
    model_assert(numbers[0].rc == 0 || numbers[0].rc == -EPIPE);
    all_arrived(); /* before the last handle goes */
    channel_end();
}

static void the_last_handle_frees_the_channel(void)
{
    channel_begin(1);
    send_try(&numbers[0]);
    model_thread a = model_start_named(drop_sender, &tx, "sender");
    blz_receiver_drop(&rx);
    model_join(a);
    channel_end();
}

static void a_weak_sender_does_not_outlive_the_last(void)
{
    blz_weak_sender weak;
    blz_sender upgraded;
    int rc;

    channel_begin(1);
    weak = blz_sender_downgrade(&tx);
    model_thread a = model_start_named(drop_sender, &tx, "sender");
    rc = blz_weak_sender_upgrade(&weak, &upgraded);
    if (rc == 0)
        numbers[0].rc = blz_sender_try_send(&upgraded, &numbers[0].value);
    model_assert(rc == 0 ? numbers[0].rc == 0 : rc == -EPIPE);
    blz_weak_sender_drop(&weak);
    blz_sender_drop(&upgraded);
    model_join(a);
    recv_all(NULL);
    channel_end();
}

static void await_closed(void *unused)
{
    blz_channel_op op = {0};
    hand_polled hand;

    (void)unused;
    hand_begin(&hand);
    model_assert(hand_await(&hand, blz_sender_closed(&op, &tx)) == 0);
    hand_end(&hand);
}

static void a_sender_learns_of_the_end(void)
{
    channel_begin(1);
    model_thread a = model_start_named(await_closed, NULL, "sender");
    blz_receiver_drop(&rx);
    model_join(a);
    channel_end();
}

/* ---- cancelling ---- */

static void a_cancelled_receive_loses_nothing(void)
{
    uint32_t value = 0;
    blz_channel_op op = {0};
    int64_t rc;

    channel_begin(1);
    model_thread a = model_start_named(send_try, &numbers[0], "sender");
    rc = poll_and_cancel(blz_receiver_recv(&op, &rx, &value));
    if (rc == 0)
        count_number(value);
    else
        model_assert(rc == -ECANCELED);
    model_join(a);
    channel_end(); /* what has not been received is still there, and destroyed */
}

static void a_message_passes_by_a_cancelled_receive(void)
{
    uint32_t value = 0;
    blz_channel_op op = {0};
    int64_t rc;

    channel_begin(1);
    model_thread a = model_start_named(recv_all, NULL, "receiver");
    model_thread b = model_start_named(send_and_drop, &numbers[0], "sender");
    rc = poll_and_cancel(blz_receiver_recv(&op, &rx, &value));
    if (rc == 0)
        count_number(value);
    model_join(a);
    model_join(b);
    channel_end();
}

static void a_cancelled_send_is_sent_or_not(void)
{
    blz_channel_op op = {0};

    channel_begin(1);
    send_try(&numbers[0]);
    model_thread a = model_start_named(recv_await, NULL, "receiver");
    numbers[1].rc = (int)poll_and_cancel(blz_sender_send(&op, &tx, &numbers[1].value));
    model_assert(numbers[1].rc == 0 || numbers[1].rc == -ECANCELED);
    model_join(a);
    channel_end();
}

/* ---- permits ---- */

static void release_permit(void *permit)
{
    blz_permit_release(permit);
}

static void a_permit_given_back_is_room_for_a_sender(void)
{
    blz_permit permit;

    channel_begin(1);
    model_assert(blz_sender_try_reserve(&tx, &permit, 1) == 0);
    model_thread a = model_start_named(release_permit, &permit, "permit");
    send_await(&numbers[0]);
    model_join(a);
    channel_end();
}

static void a_permit_given_back_lets_receivers_go(void)
{
    blz_permit permit;

    channel_begin(1);
    model_assert(blz_sender_try_reserve(&tx, &permit, 1) == 0);
    close_it(NULL);
    model_thread a = model_start_named(release_permit, &permit, "permit");
    model_assert(recv_number() == -EPIPE);
    model_join(a);
    channel_end();
}

static void use_permit(void *permit)
{
    blz_permit_send(permit, &numbers[0].value);
    numbers[0].rc = 0;
}

static void a_permit_is_good_after_the_close(void)
{
    blz_permit permit;

    channel_begin(1);
    model_assert(blz_sender_try_reserve(&tx, &permit, 1) == 0);
    model_thread a = model_start_named(use_permit, &permit, "permit");
    model_thread b = model_start_named(close_it, NULL, "closer");
    recv_all(NULL);
    model_join(a);
    model_join(b);
    all_arrived();
    channel_end();
}

/* As above: the slot that the permit ends up with was seen free by another sender. */
static void a_permit_gets_a_slot_that_has_been_read(void)
{
    blz_permit permit;

    channel_begin(2);
    send_try(&numbers[1]);
    send_try(&numbers[2]);
    recv_await(NULL);
    model_assert(blz_sender_try_reserve(&tx, &permit, 1) == 0);
    model_thread a = model_start_named(recv_await, NULL, "receiver");
    model_thread b = model_start_named(send_try, &numbers[3], "sender");
    use_permit(&permit);
    model_join(a);
    model_join(b);
    channel_end();
}

static void a_permit_without_receivers_is_cleared_up(void)
{
    blz_permit permit;

    channel_begin(1);
    model_assert(blz_sender_try_reserve(&tx, &permit, 1) == 0);
    model_thread a = model_start_named(use_permit, &permit, "permit");
    blz_receiver_drop(&rx);
    model_join(a);
    all_arrived();
    channel_end();
}

static void a_cancelled_reserve_loses_no_room(void)
{
    blz_permit permit;
    blz_channel_op op = {0};

    channel_begin(2);
    send_try(&numbers[0]);
    send_try(&numbers[1]);
    model_thread a = model_start_named(recv_await, NULL, "receiver");
    if (poll_and_cancel(blz_sender_reserve(&op, &tx, &permit, 1)) == 0)
        blz_permit_release(&permit);
    model_assert(permit.count == 0);
    model_join(a);
    model_assert(blz_channel_room(tx.channel) == 1);
    model_assert(blz_sender_try_reserve(&tx, &permit, 1) == 0);
    blz_permit_release(&permit);
    channel_end();
}

/* A large reserve in front is cancelled: the sender behind it has room, and is told so. */
static void who_stood_behind_a_cancelled_reserve_goes_on(void)
{
    blz_permit held, wanted;
    blz_channel_op op = {0};
    hand_polled hand;
    blz_future *future;

    channel_begin(2);
    model_assert(blz_sender_try_reserve(&tx, &held, 1) == 0);
    hand_begin(&hand);
    future = blz_sender_reserve(&op, &tx, &wanted, 2);
    model_assert(blz_is_pending(future->ops->poll(future, &hand.cx)));
    model_thread a = model_start_named(send_await, &numbers[0], "sender");
    future->ops->cancel(future, &hand.cx);
    model_assert(hand_await(&hand, future) == -ECANCELED);
    hand_end(&hand);
    model_join(a);
    blz_permit_release(&held);
    channel_end();
}

static const struct model models[] = {
    MODEL(two_producers_share_one_slot, .stale_reads = 1, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(two_producers_share_two_slots, .stale_reads = MODEL_NONE, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(one_producer_stays_in_order, .stale_reads = 1, .spurious_cas = MODEL_NONE,
          .preemptions = 3, .reduce = true),
    MODEL(a_producer_in_the_middle_reorders_nothing, .stale_reads = MODEL_NONE,
          .spurious_cas = MODEL_NONE, .reduce = true),
    MODEL(two_consumers_share_one_slot, .stale_reads = MODEL_NONE, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(a_slot_is_used_again_when_it_has_been_read, .stale_reads = 1, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(a_slot_is_free_since_another_sender_saw_it, .stale_reads = MODEL_NONE,
          .spurious_cas = MODEL_NONE, .reduce = true),
    MODEL(try_send_against_try_recv, .preemptions = 3, .reduce = true),
    MODEL(close_against_send_against_receive, .stale_reads = 1, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(the_end_is_final_for_who_only_tries, .stale_reads = 1, .reduce = true),
    MODEL(close_against_a_sender_that_waits, .preemptions = 3, .reduce = true),
    MODEL(the_last_sender_wakes_a_receiver, .stale_reads = 1, .preemptions = 3,
          .spurious_cas = MODEL_NONE, .reduce = true),
    MODEL(the_last_of_two_senders_closes, .reduce = true),
    MODEL(the_last_of_two_senders_frees, .reduce = true),
    MODEL(the_last_of_two_receivers_frees, .reduce = true),
    MODEL(the_last_receiver_leaves_nothing_behind, .preemptions = 3, .reduce = true),
    MODEL(the_last_handle_frees_the_channel, .preemptions = 4, .reduce = true),
    MODEL(a_weak_sender_does_not_outlive_the_last, .preemptions = 3, .reduce = true),
    MODEL(a_sender_learns_of_the_end, .preemptions = 3, .reduce = true),
    MODEL(a_cancelled_receive_loses_nothing, .preemptions = 3, .reduce = true),
    MODEL(a_message_passes_by_a_cancelled_receive, .stale_reads = MODEL_NONE,
          .spurious_cas = MODEL_NONE, .reduce = true),
    MODEL(a_cancelled_send_is_sent_or_not, .preemptions = 3, .reduce = true),
    MODEL(a_permit_given_back_is_room_for_a_sender, .preemptions = 3, .reduce = true),
    MODEL(a_permit_given_back_lets_receivers_go, .preemptions = 3, .reduce = true),
    MODEL(a_permit_is_good_after_the_close, .stale_reads = MODEL_NONE, .spurious_cas = MODEL_NONE,
          .reduce = true),
    MODEL(a_permit_gets_a_slot_that_has_been_read, .stale_reads = 1, .reduce = true),
    MODEL(a_permit_without_receivers_is_cleared_up, .preemptions = 3, .reduce = true),
    MODEL(a_cancelled_reserve_loses_no_room, .stale_reads = 1, .reduce = true),
    MODEL(who_stood_behind_a_cancelled_reserve_goes_on, .preemptions = 3, .reduce = true),
};

MODEL_MAIN(models)
