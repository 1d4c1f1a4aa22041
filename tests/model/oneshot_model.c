/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oneshot: a receiver against the one sender. The value arrives, or the receiver learns that there
 * is none; no waker is lost, dropped twice, or mistaken for another; and the receiver frees the
 * channel as soon as it may, so that a sender that touches it afterwards is caught.
 */
#include <blitz/oneshot.h>

#include "support/hand_polled.h"
#include "support/table.h"

enum { VALUE = -42 };

static blz_oneshot *channel;
static int64_t value; /* what was received */
static int sent;      /* what the send returned */

static void begin(void)
{
    channel = model_alloc(sizeof *channel, _Alignof(blz_oneshot));
    blz_oneshot_init(channel);
    sent = 1;
    value = 0;
}

/* What a receive gave: the value, or an error. */
static int64_t received(int64_t rc)
{
    return rc == 0 ? value : rc;
}

static void send(void *unused)
{
    (void)unused;
    sent = blz_oneshot_send(channel, VALUE);
}

static void drop(void *unused)
{
    (void)unused;
    blz_oneshot_drop(channel);
}

/* The memory is the receiver's alone again: what the sender did to it came before. */
static void free_channel(void)
{
    blz__plain_write(&channel->value);
    model_free(channel);
}

/* The receiver closes until the sender is through; only then may the memory go. */
static void close_and_free(void)
{
    while (!blz_oneshot_close(channel))
        blz__spin_hint();
    free_channel();
}

/* ---- receiving ---- */

static void a_value_is_received_and_the_channel_freed(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread sender = model_start_named(send, NULL, "sender");
    model_assert(received(hand_await(&hand, blz_oneshot_recv(&op, channel, &value))) == VALUE);
    free_channel();
    model_join(sender);
    model_assert(sent == 0);
    hand_end(&hand);
}

static void a_sender_that_drops_ends_the_wait(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread sender = model_start_named(drop, NULL, "sender");
    model_assert(hand_await(&hand, blz_oneshot_recv(&op, channel, &value)) == -EPIPE);
    free_channel();
    model_join(sender);
    hand_end(&hand);
}

static void try_recv_sees_all_or_nothing(void)
{
    int rc;

    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    while ((rc = blz_oneshot_try_recv(channel, &value)) == -EAGAIN)
        blz__spin_hint();
    model_assert(rc == 0 && value == VALUE);
    free_channel();
    model_join(sender);
}

/* ---- closing and cancelling ---- */

static void close_against_send(void)
{
    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    bool through = blz_oneshot_close(channel);
    if (through)
        model_assert(blz_oneshot_try_recv(channel, &value) == 0 && value == VALUE);
    close_and_free();
    model_join(sender);
    model_assert(sent == (through ? 0 : -EPIPE));
}

/* A receiver that waits and is cancelled: -ECANCELED, or the value if that was faster. */
static void cancel_against(void (*act)(void *), int64_t unless_cancelled)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    blz_future *recv = blz_oneshot_recv(&op, channel, &value);
    model_thread sender = model_start_named(act, NULL, "sender");
    if (blz_is_pending(recv->ops->poll(recv, &hand.cx)))
        recv->ops->cancel(recv, &hand.cx);
    int64_t result = received(recv->line == BLZ_LINE_DONE ? recv->result : hand_await(&hand, recv));
    model_assert(result == unless_cancelled || result == -ECANCELED);
    bool through = blz_oneshot_close(channel);
    close_and_free();
    model_join(sender);
    if (act == send)
        model_assert(sent == (through ? 0 : -EPIPE) && (through || result != VALUE));
    hand_end(&hand);
}

static void cancel_against_send(void)
{
    cancel_against(send, VALUE);
}

static void cancel_against_drop(void)
{
    cancel_against(drop, -EPIPE);
}

/* ---- waiting again ---- */

/* A task that waits, and gives up. Its memory is gone afterwards. */
static bool wait_and_give_up(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    blz_future *recv = blz_oneshot_recv(&op, channel, &value);
    bool ready = blz_is_ready(recv->ops->poll(recv, &hand.cx));
    if (!ready) {
        recv->ops->cancel(recv, &hand.cx);
        ready = hand_await(&hand, recv) != -ECANCELED;
    }
    hand_end(&hand);
    return ready;
}

/*
 * The third task waits in the place of the second, with the same state but for the count. The
 * sender may have read the second one's waker already: it must not use that.
 */
static void a_waker_is_never_mistaken_for_the_one_before(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    if (!wait_and_give_up() && !wait_and_give_up()) {
        hand_begin(&hand);
        model_assert(received(hand_await(&hand, blz_oneshot_recv(&op, channel, &value))) == VALUE);
        model_join(sender);
        hand_end(&hand);
    } else {
        model_join(sender);
    }
    close_and_free();
}

/* Close, send and receive at once: the value is received, or the sender knows that it is not. */
static void close_and_receive_against_send(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread sender = model_start_named(send, NULL, "sender");
    bool through = blz_oneshot_close(channel);
    int64_t result = received(hand_await(&hand, blz_oneshot_recv(&op, channel, &value)));
    model_assert(result == (through ? VALUE : -EPIPE));
    free_channel();
    model_join(sender);
    model_assert(sent == (through ? 0 : -EPIPE));
    hand_end(&hand);
}

/* ---- the sender waits for the receiver to close ---- */

static blz_oneshot_sender sender_handle;
static blz_oneshot_receiver receiver_handle;

static void begin_handles(void)
{
    model_assert(blz_oneshot_new(&sender_handle, &receiver_handle, NULL) == 0);
    channel = sender_handle.channel;
    sent = 1;
    value = 0;
}

static uint32_t receiver_left; /* plain: what the receiver did before it closed */

static void drop_receiver(void *unused)
{
    (void)unused;
    blz__plain_write(&receiver_left);
    receiver_left = 1;
    blz_oneshot_receiver_drop(&receiver_handle);
}

static void a_sender_that_waits_learns_of_the_close(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin_handles();
    receiver_left = 0;
    hand_begin(&hand);
    model_thread receiver = model_start_named(drop_receiver, NULL, "receiver");
    model_assert(hand_await(&hand, blz_oneshot_sender_closed(&op, &sender_handle)) == 0);
    blz__plain_read(&receiver_left);
    model_assert(receiver_left == 1);
    model_assert(blz_oneshot_sender_send(&sender_handle, VALUE) == -EPIPE); /* and frees */
    model_join(receiver);
    hand_end(&hand);
}

static bool watch_and_give_up(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    blz_future *closed = blz_oneshot_sender_closed(&op, &sender_handle);
    bool ready = blz_is_ready(closed->ops->poll(closed, &hand.cx));
    if (!ready) {
        closed->ops->cancel(closed, &hand.cx);
        ready = hand_await(&hand, closed) == 0;
    }
    hand_end(&hand);
    return ready;
}

/* Two that give up, one that waits: the receiver wakes the last of them, whatever it has read. */
static void a_sender_that_gave_up_is_not_woken_for_the_next(void)
{
    blz_oneshot_op op = {0};
    hand_polled hand;

    begin_handles();
    model_thread receiver = model_start_named(drop_receiver, NULL, "receiver");
    if (!watch_and_give_up() && !watch_and_give_up()) {
        hand_begin(&hand);
        model_assert(hand_await(&hand, blz_oneshot_sender_closed(&op, &sender_handle)) == 0);
        hand_end(&hand);
    }
    blz_oneshot_sender_drop(&sender_handle);
    model_join(receiver);
}

/* ---- handles: whoever is last frees ---- */

static void send_by_handle(void *unused)
{
    (void)unused;
    sent = blz_oneshot_sender_send(&sender_handle, VALUE);
}

static void the_last_handle_frees_the_channel(void)
{
    begin_handles();
    model_thread sender = model_start_named(send_by_handle, NULL, "sender");
    int rc = blz_oneshot_receiver_try_recv(&receiver_handle, &value);
    model_assert(rc == -EAGAIN || value == VALUE);
    blz_oneshot_receiver_drop(&receiver_handle);
    model_join(sender);
    model_assert(sent == 0 || (sent == -EPIPE && rc == -EAGAIN));
}

/* A thread that blocks, with the channel on its stack. */
static void a_thread_blocks_until_the_value_comes(void)
{
    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    model_assert(blz_oneshot_recv_wait(channel, &value) == 0 && value == VALUE);
    free_channel();
    model_join(sender);
}

static const struct model models[] = {
    MODEL(a_value_is_received_and_the_channel_freed, .preemptions = 4),
    MODEL(a_sender_that_drops_ends_the_wait, .preemptions = 4),
    MODEL(try_recv_sees_all_or_nothing, .preemptions = 4),
    MODEL(close_against_send, .preemptions = 4),
    MODEL(cancel_against_send, .preemptions = 3, .reduce = true),
    MODEL(cancel_against_drop, .preemptions = 3, .reduce = true),
    MODEL(a_waker_is_never_mistaken_for_the_one_before, .preemptions = 2, .reduce = true),
    MODEL(close_and_receive_against_send, .preemptions = 3, .reduce = true),
    MODEL(a_sender_that_waits_learns_of_the_close, .preemptions = 4),
    MODEL(a_sender_that_gave_up_is_not_woken_for_the_next, .preemptions = 2, .reduce = true),
    MODEL(the_last_handle_frees_the_channel, .preemptions = 4),
    MODEL(a_thread_blocks_until_the_value_comes, .preemptions = 3),
};

MODEL_MAIN(models)
