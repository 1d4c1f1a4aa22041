/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oneshot: a receiver against the one sender. The value arrives, or the receiver learns that there
 * is none; no waker is lost, dropped twice, or mistaken for another; and the receiver frees the
 * channel as soon as it may, so that a sender that touches it afterwards is caught.
 */
#include <blitz/oneshot.h>

#include "support/hand_polled.h"

enum { VALUE = 42 };

static blz_oneshot *channel;
static int sent; /* what the send returned */

static void begin(void)
{
    channel = model_alloc(sizeof *channel, _Alignof(blz_oneshot));
    blz_oneshot_init(channel);
    sent = 1;
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
    blz_oneshot_wait op;
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread sender = model_start_named(send, NULL, "sender");
    model_assert(hand_await(&hand, blz_oneshot_recv(&op, channel)) == VALUE);
    free_channel();
    model_join(sender);
    model_assert(sent == 0);
    hand_end(&hand);
}

static void a_sender_that_drops_ends_the_wait(void)
{
    blz_oneshot_wait op;
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread sender = model_start_named(drop, NULL, "sender");
    model_assert(hand_await(&hand, blz_oneshot_recv(&op, channel)) == -EPIPE);
    free_channel();
    model_join(sender);
    hand_end(&hand);
}

static void try_recv_sees_all_or_nothing(void)
{
    int64_t value = 0;
    int rc;

    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    while ((rc = blz_oneshot_try_recv(channel, &value)) == 0)
        blz__spin_hint();
    model_assert(rc == 1 && value == VALUE);
    free_channel();
    model_join(sender);
}

/* ---- closing and cancelling ---- */

static void close_against_send(void)
{
    int64_t value = 0;

    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    bool through = blz_oneshot_close(channel);
    if (through)
        model_assert(blz_oneshot_try_recv(channel, &value) == 1 && value == VALUE);
    close_and_free();
    model_join(sender);
    model_assert(sent == (through ? 0 : -EPIPE));
}

/* A receiver that waits and is cancelled: -ECANCELED, or the value if that was faster. */
static void cancel_against(void (*act)(void *), int64_t unless_cancelled)
{
    blz_oneshot_wait op;
    hand_polled hand;

    begin();
    hand_begin(&hand);
    blz_future *recv = blz_oneshot_recv(&op, channel);
    model_thread sender = model_start_named(act, NULL, "sender");
    if (recv->ops->poll(recv, &hand.cx) != BLZ_READY)
        recv->ops->cancel(recv, &hand.cx);
    int64_t result = recv->line == BLZ_LINE_DONE ? recv->result : hand_await(&hand, recv);
    model_assert(result == unless_cancelled || result == -ECANCELED);
    close_and_free();
    model_join(sender);
    if (act == send)
        model_assert(sent == (result == VALUE ? 0 : -EPIPE));
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
    blz_oneshot_wait op;
    hand_polled hand;

    hand_begin(&hand);
    blz_future *recv = blz_oneshot_recv(&op, channel);
    bool ready = recv->ops->poll(recv, &hand.cx) == BLZ_READY;
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
    blz_oneshot_wait op;
    hand_polled hand;

    begin();
    model_thread sender = model_start_named(send, NULL, "sender");
    if (!wait_and_give_up() && !wait_and_give_up()) {
        hand_begin(&hand);
        model_assert(hand_await(&hand, blz_oneshot_recv(&op, channel)) == -EPIPE);
        model_join(sender);
        hand_end(&hand);
    } else {
        model_join(sender);
    }
    close_and_free();
}

static const struct model models[] = {
    {"a_value_is_received_and_the_channel_freed",
     a_value_is_received_and_the_channel_freed,
     {.preemptions = 4}},
    {"a_sender_that_drops_ends_the_wait", a_sender_that_drops_ends_the_wait, {.preemptions = 4}},
    {"try_recv_sees_all_or_nothing", try_recv_sees_all_or_nothing, {.preemptions = 4}},
    {"close_against_send", close_against_send, {.preemptions = 4}},
    {"cancel_against_send", cancel_against_send, {.preemptions = 4}},
    {"cancel_against_drop", cancel_against_drop, {.preemptions = 4}},
    {"a_waker_is_never_mistaken_for_the_one_before",
     a_waker_is_never_mistaken_for_the_one_before,
     {.preemptions = 2}},
};

MODEL_MAIN(models)
