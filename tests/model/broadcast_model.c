/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast: receivers against senders that overwrite what they read. Every message arrives whole
 * and in order, or is counted as missed; who waits is woken by a message and by the last sender's
 * close; a message that owns something is copied by one at a time and destroyed once.
 */
#include <blitz/broadcast.h>

#include "support/hand_polled.h"
#include "support/table.h"

/* Two words, so that it can be torn. */
struct message {
    uint64_t number, again;
};

static blz_broadcast_sender tx;
static blz_broadcast_receiver receivers[2];
static uint32_t nr_messages; /* that each sender sends */

static void begin(size_t capacity, uint32_t count)
{
    blz_broadcast_options options = {.capacity = capacity, .elem_size = sizeof(struct message)};

    model_assert(blz_broadcast_new(&tx, &receivers[0], &options) == 0);
    receivers[1] = (blz_broadcast_receiver){0};
    nr_messages = count;
}

/* Numbers from 1. */
static void send_all(void *arg)
{
    blz_broadcast_sender *sender = arg;

    for (uint64_t i = 1; i <= nr_messages; i++)
        model_assert(blz_broadcast_send(sender, &(struct message){i, i}) >= 0);
    blz_broadcast_sender_drop(sender);
}

/* ---- one receiver's view ---- */

/* Takes account of a receive: the next message is number *next. */
static void account(const blz_broadcast_receiver *rx, int64_t rc, struct message m, uint64_t *next)
{
    if (rc == -EOVERFLOW) {
        model_assert(blz_broadcast_missed(rx) > 0);
        *next += blz_broadcast_missed(rx);
        return;
    }
    model_assert(rc == 0);
    model_assert(m.number == m.again);
    model_assert(m.number == *next);
    (*next)++;
}

/* Awaits to the end. */
static void receive_all(void *arg)
{
    blz_broadcast_receiver *rx = arg;
    uint64_t next = 1;
    struct message m;
    hand_polled hand;
    blz_broadcast_op op = {0};
    int64_t rc;

    hand_begin(&hand);
    while ((rc = hand_await(&hand, blz_broadcast_recv(&op, rx, &m))) != -EPIPE)
        account(rx, rc, m, &next);
    model_assert(next == nr_messages + 1);
    hand_end(&hand);
    blz_broadcast_receiver_drop(rx);
}

static void a_receiver_is_woken_by_messages_and_by_the_last_senders_close(void)
{
    begin(2, 1);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    receive_all(&receivers[0]);
    model_join(sender);
}

static void two_receivers_are_woken_by_messages_and_by_the_last_senders_close(void)
{
    begin(2, 1);
    receivers[1] = blz_broadcast_subscribe(&tx);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    model_thread other = model_start_named(receive_all, &receivers[1], "receiver");
    receive_all(&receivers[0]);
    model_join(sender);
    model_join(other);
}

/* ---- overwritten while it is read ---- */

/* Tries as often as there are messages; whatever it gets adds up. */
static void try_some(void *arg)
{
    blz_broadcast_receiver *rx = arg;
    uint64_t next = 1;
    struct message m;

    for (uint32_t i = 0; i < nr_messages; i++) {
        int rc = blz_broadcast_try_recv(rx, &m);
        if (rc == -EAGAIN || rc == -EPIPE)
            break;
        account(rx, rc, m, &next);
    }
    blz_broadcast_receiver_drop(rx);
}

static void what_is_overwritten_is_whole_or_missed(void)
{
    begin(1, 3);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    try_some(&receivers[0]);
    model_join(sender);
}

static void two_readers_of_one_slot_see_no_mixture(void)
{
    begin(1, 2);
    receivers[1] = blz_broadcast_subscribe(&tx);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    model_thread other = model_start_named(try_some, &receivers[1], "receiver");
    try_some(&receivers[0]);
    model_join(sender);
    model_join(other);
}

/* The ring has four slots, and still no more than three messages are kept. */
static void the_capacity_is_exact_while_it_is_read(void)
{
    begin(3, 5);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    try_some(&receivers[0]);
    model_join(sender);
}

/* ---- several senders, late subscribers ---- */

static void the_last_of_two_senders_closes(void)
{
    blz_broadcast_sender second;
    hand_polled hand;
    blz_broadcast_op op = {0};
    struct message m;

    begin(2, 1);
    second = blz_broadcast_sender_clone(&tx);
    model_thread a = model_start_named(send_all, &tx, "sender 1");
    model_thread b = model_start_named(send_all, &second, "sender 2");
    hand_begin(&hand);
    for (int i = 0; i < 2; i++)
        model_assert(hand_await(&hand, blz_broadcast_recv(&op, &receivers[0], &m)) == 0);
    model_assert(hand_await(&hand, blz_broadcast_recv(&op, &receivers[0], &m)) == -EPIPE);
    hand_end(&hand);
    blz_broadcast_receiver_drop(&receivers[0]);
    model_join(a);
    model_join(b);
}

static void a_subscriber_gets_all_from_one_message_on(void)
{
    struct message m = {0, 0};
    uint64_t last = 0;
    int rc;

    begin(2, 2);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    receivers[1] = blz_broadcast_resubscribe(&receivers[0]);
    while ((rc = blz_broadcast_try_recv(&receivers[1], &m)) != -EPIPE) {
        if (rc == -EAGAIN) {
            blz__spin_hint();
            continue;
        }
        model_assert(rc == 0 && m.number == m.again && (last == 0 || m.number == last + 1));
        last = m.number;
    }
    model_assert(last == 0 || last == nr_messages);
    blz_broadcast_receiver_drop(&receivers[0]);
    blz_broadcast_receiver_drop(&receivers[1]);
    model_join(sender);
}

static void upgrade_against_the_last_senders_drop(void)
{
    blz_broadcast_weak_sender weak;
    blz_broadcast_sender sender;
    struct message m;

    begin(2, 0);
    weak = blz_broadcast_sender_downgrade(&tx);
    model_thread dropper = model_start_named(send_all, &tx, "sender");
    if (blz_broadcast_weak_sender_upgrade(&weak, &sender) == 0) {
        model_assert(blz_broadcast_send(&sender, &(struct message){1, 1}) == 1);
        blz_broadcast_sender_drop(&sender);
        model_assert(blz_broadcast_try_recv(&receivers[0], &m) == 0);
    }
    blz_broadcast_weak_sender_drop(&weak);
    blz_broadcast_receiver_drop(&receivers[0]);
    model_join(dropper);
}

/* ---- cancelled ---- */

static void a_cancelled_receive_loses_no_message(void)
{
    struct message m = {0, 0};
    hand_polled hand;
    blz_broadcast_op op = {0};
    int64_t rc;

    begin(2, 1);
    hand_begin(&hand);
    blz_future *recv = blz_broadcast_recv(&op, &receivers[0], &m);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    if (blz_is_pending(recv->ops->poll(recv, &hand.cx))) {
        recv->ops->cancel(recv, &hand.cx);
        hand_await(&hand, recv);
    }
    rc = recv->result;
    hand_end(&hand);
    if (rc == -ECANCELED) {
        while ((rc = blz_broadcast_try_recv(&receivers[0], &m)) == -EAGAIN)
            blz__spin_hint();
    }
    model_assert(rc == 0 && m.number == 1 && m.again == 1);
    blz_broadcast_receiver_drop(&receivers[0]);
    model_join(sender);
}

/* ---- messages that own something ---- */

enum { BOOKS = 2 };

static uint32_t copies[BOOKS], destroyed[BOOKS]; /* plain: the slot's lock orders them */

static int copy_book(void *to, const void *from, void *arg)
{
    uint64_t number = ((const struct message *)from)->number;

    (void)arg;
    blz__plain_write(&copies[number - 1]);
    copies[number - 1]++;
    *(struct message *)to = *(const struct message *)from;
    return 0;
}

static void destroy_book(void *elem, void *arg)
{
    uint64_t number = ((struct message *)elem)->number;

    (void)arg;
    blz__plain_write(&copies[number - 1]); /* no copy is being made of it, nor will be */
    model_assert(destroyed[number - 1]++ == 0);
}

static void begin_books(size_t capacity)
{
    blz_broadcast_options options = {.capacity = capacity,
                                     .elem_size = sizeof(struct message),
                                     .copy = copy_book,
                                     .destroy = destroy_book};

    model_assert(blz_broadcast_new(&tx, &receivers[0], &options) == 0);
    receivers[1] = blz_broadcast_subscribe(&tx);
    for (int i = 0; i < BOOKS; i++)
        copies[i] = destroyed[i] = 0;
    nr_messages = BOOKS;
}

static void end_books(void)
{
    for (int i = 0; i < BOOKS; i++)
        model_assert(destroyed[i] == 1 && copies[i] <= 2);
}

static void a_copy_is_made_by_one_at_a_time(void)
{
    begin_books(2);
    nr_messages = 0;
    for (uint64_t i = 1; i <= BOOKS; i++)
        model_assert(blz_broadcast_send(&tx, &(struct message){i, i}) == 2);
    blz_broadcast_sender_drop(&tx);
    nr_messages = BOOKS;
    model_thread other = model_start_named(try_some, &receivers[1], "receiver");
    try_some(&receivers[0]);
    model_join(other);
    end_books();
}

static void a_message_is_not_destroyed_while_it_is_copied(void)
{
    begin_books(1);
    blz_broadcast_receiver_drop(&receivers[1]);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    try_some(&receivers[0]);
    model_join(sender);
    end_books();
}

static const struct model models[] = {
    MODEL(a_receiver_is_woken_by_messages_and_by_the_last_senders_close, .preemptions = 3,
          .reduce = true),
    MODEL(two_receivers_are_woken_by_messages_and_by_the_last_senders_close, .preemptions = 1,
          .stale_reads = 1, .reduce = true),
    MODEL(what_is_overwritten_is_whole_or_missed, .preemptions = 3, .reduce = true),
    MODEL(two_readers_of_one_slot_see_no_mixture, .preemptions = 2, .reduce = true),
    MODEL(the_capacity_is_exact_while_it_is_read, .preemptions = 2, .reduce = true),
    MODEL(the_last_of_two_senders_closes, .preemptions = 1, .reduce = true),
    MODEL(a_subscriber_gets_all_from_one_message_on, .preemptions = 2, .reduce = true),
    MODEL(upgrade_against_the_last_senders_drop, .preemptions = 3, .reduce = true),
    MODEL(a_cancelled_receive_loses_no_message, .preemptions = 3, .reduce = true),
    MODEL(a_copy_is_made_by_one_at_a_time, .preemptions = 3, .reduce = true),
    MODEL(a_message_is_not_destroyed_while_it_is_copied, .preemptions = 3, .reduce = true),
};

MODEL_MAIN(models)
