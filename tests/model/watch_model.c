/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: readers against a sender. A value is whole, nobody goes back to an older one, a change is
 * not slept through, and the last value is seen before the close.
 */
#include <blitz/watch.h>

#include "support/hand_polled.h"
#include "support/table.h"

/* Two words, so that it can be torn. */
struct value {
    uint64_t number, again;
};

static blz_watch_sender tx;
static blz_watch_receiver receivers[2];
static uint32_t nr_values; /* that the sender sends */

static void begin(uint32_t count)
{
    struct value first = {1, 1};

    model_assert(blz_watch_new(&tx, &receivers[0], &first, sizeof first, NULL) == 0);
    nr_values = count;
}

/* The first is there: numbers from 2. */
static void send_values(void *arg)
{
    for (uint64_t i = 2; i < 2 + nr_values; i++)
        model_assert(blz_watch_send(arg, &(struct value){i, i}) == 0);
}

static void send_all(void *arg)
{
    send_values(arg);
    blz_watch_sender_drop(arg);
}

/* ---- reading ---- */

static void read_some(void *arg)
{
    blz_watch_receiver *rx = arg;
    uint64_t last = 0;

    for (int i = 0; i < 2; i++) {
        struct value v;
        blz_watch_get_and_update(rx, &v);
        model_assert(v.number == v.again);
        model_assert(v.number >= last);
        last = v.number;
    }
    blz_watch_receiver_drop(rx);
}

static void a_reader_sees_no_mixture_and_never_goes_back(void)
{
    begin(3);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    read_some(&receivers[0]);
    model_join(sender);
}

static void two_readers_see_no_mixture_and_never_go_back(void)
{
    begin(2);
    receivers[1] = blz_watch_subscribe(&tx);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    model_thread other = model_start_named(read_some, &receivers[1], "reader");
    read_some(&receivers[0]);
    model_join(sender);
    model_join(other);
}

/* ---- waiting ---- */

static void follow(void *arg)
{
    blz_watch_receiver *rx = arg;
    struct value v = {1, 1};
    uint64_t last = 1;
    hand_polled hand;
    blz_watch_op op = {0};
    int64_t rc;

    hand_begin(&hand);
    while ((rc = hand_await(&hand, blz_watch_changed(&op, rx))) == 0) {
        blz_watch_get(rx, &v);
        model_assert(v.number == v.again && v.number >= last && v.number > 1);
        last = v.number;
    }
    model_assert(rc == -EPIPE && last == 1 + nr_values);
    hand_end(&hand);
    blz_watch_receiver_drop(rx);
}

static void the_last_value_is_seen_before_the_close(void)
{
    begin(1);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    follow(&receivers[0]);
    model_join(sender);
}

static void two_receivers_see_the_last_value_before_the_close(void)
{
    begin(1);
    receivers[1] = blz_watch_subscribe(&tx);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    model_thread other = model_start_named(follow, &receivers[1], "receiver");
    follow(&receivers[0]);
    model_join(sender);
    model_join(other);
}

static bool is_number(const void *value, void *arg)
{
    return ((const struct value *)value)->number == *(const uint64_t *)arg;
}

static void a_value_is_waited_for(void)
{
    uint64_t wanted = 3;
    struct value v;
    hand_polled hand;
    blz_watch_op op = {0};

    begin(2);
    model_thread sender = model_start_named(send_values, &tx, "sender");
    hand_begin(&hand);
    blz_future *wait = blz_watch_until(&op, &receivers[0], &v, is_number, &wanted);
    model_assert(hand_await(&hand, wait) == 0 && v.number == 3 && v.again == 3);
    hand_end(&hand);
    blz_watch_receiver_drop(&receivers[0]);
    model_join(sender);
    blz_watch_sender_drop(&tx); /* it is not the close that wakes */
}

/* ---- cancelled ---- */

static void a_cancelled_wait_loses_no_change(void)
{
    hand_polled hand;
    blz_watch_op op = {0};

    begin(1);
    hand_begin(&hand);
    blz_future *changed = blz_watch_changed(&op, &receivers[0]);
    model_thread sender = model_start_named(send_all, &tx, "sender");
    if (blz_is_pending(changed->ops->poll(changed, &hand.cx))) {
        changed->ops->cancel(changed, &hand.cx);
        hand_await(&hand, changed);
    }
    hand_end(&hand);
    model_assert(changed->result == 0 || changed->result == -ECANCELED);
    if (changed->result == -ECANCELED) {
        model_assert(blz_watch_has_changed(&receivers[0]) != -EPIPE);
        while (blz_watch_try_changed(&receivers[0]) == -EAGAIN)
            blz__spin_hint();
    }
    model_assert(blz_watch_has_changed(&receivers[0]) != 1);
    blz_watch_receiver_drop(&receivers[0]);
    model_join(sender);
}

/* ---- senders ---- */

static bool count_one(void *value, void *arg)
{
    struct value *v = value;

    (void)arg;
    v->number++;
    v->again++;
    return true;
}

static void modify_once(void *arg)
{
    blz_watch_sender *sender = arg;
    struct value scratch;

    model_assert(blz_watch_send_if_modified(sender, &scratch, count_one, NULL) == 1);
    blz_watch_sender_drop(sender);
}

static void modifications_add_up(void)
{
    blz_watch_sender second;
    struct value v;

    begin(0);
    second = blz_watch_sender_clone(&tx);
    model_thread other = model_start_named(modify_once, &second, "sender 2");
    modify_once(&tx);
    model_join(other);
    model_assert(blz_watch_get(&receivers[0], &v) == 1);
    model_assert(v.number == 3 && v.again == 3);
    model_assert(blz_watch_try_changed(&receivers[0]) == 0);
    model_assert(blz_watch_try_changed(&receivers[0]) == -EPIPE);
    blz_watch_receiver_drop(&receivers[0]);
}

static uint32_t receiver_left; /* plain */

static void drop_receiver(void *arg)
{
    blz__plain_write(&receiver_left);
    receiver_left = 1;
    blz_watch_receiver_drop(arg);
}

static void a_sender_learns_of_the_last_receivers_end(void)
{
    hand_polled hand;
    blz_watch_op op = {0};

    begin(0);
    receiver_left = 0;
    model_thread receiver = model_start_named(drop_receiver, &receivers[0], "receiver");
    hand_begin(&hand);
    model_assert(hand_await(&hand, blz_watch_closed(&op, &tx)) == 0);
    hand_end(&hand);
    blz__plain_read(&receiver_left);
    model_assert(receiver_left == 1);
    blz_watch_sender_drop(&tx);
    model_join(receiver);
}

static const struct model models[] = {
    MODEL(a_reader_sees_no_mixture_and_never_goes_back, .preemptions = 3, .reduce = true),
    MODEL(two_readers_see_no_mixture_and_never_go_back, .preemptions = 2, .stale_reads = 2,
          .reduce = true),
    MODEL(the_last_value_is_seen_before_the_close, .preemptions = 3, .reduce = true),
    MODEL(two_receivers_see_the_last_value_before_the_close, .preemptions = 1, .stale_reads = 1,
          .reduce = true),
    MODEL(a_value_is_waited_for, .preemptions = 2, .reduce = true),
    MODEL(a_cancelled_wait_loses_no_change, .preemptions = 3, .reduce = true),
    MODEL(modifications_add_up, .preemptions = 3, .reduce = true),
    MODEL(a_sender_learns_of_the_last_receivers_end, .preemptions = 3, .reduce = true),
};

MODEL_MAIN(models)
