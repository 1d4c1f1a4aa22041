/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For models of channels: one channel of numbers, threads that send and receive, and what became
 * of each number. A number that is sent (with result 0) must be received once or destroyed once.
 *
 *     channel_begin(1);
 *     model_thread a = model_start(send_await, &numbers[0]);
 *     ...
 *     channel_end();
 */
#ifndef BLZ_MODEL_CHANNEL_KIT_H
#define BLZ_MODEL_CHANNEL_KIT_H

#include <blitz/channel.h>

#include "hand_polled.h"
#include "table.h"

#include <string.h>

enum { MAX_NUMBERS = 5 };

struct number {
    uint32_t value;
    int rc; /* of the send; 1: not sent */
};

static blz_sender tx;
static blz_receiver rx;
static struct number numbers[MAX_NUMBERS];
static uint32_t arrived[MAX_NUMBERS]; /* how often: atomic, without order */

static inline void count_number(uint32_t value)
{
    model_assert(value < MAX_NUMBERS);
    model_assert(blz__fetch_add(&arrived[value], 1u, RELAXED) == 0); /* not twice */
}

static void destroy_number(void *elem, void *arg)
{
    uint32_t value;

    (void)arg;
    memcpy(&value, elem, sizeof value);
    count_number(value);
}

static inline void channel_begin(size_t capacity)
{
    blz_channel_options options = {.capacity = capacity,
                                   .elem_size = sizeof(uint32_t),
                                   .destroy = destroy_number};

    for (uint32_t i = 0; i < MAX_NUMBERS; i++) {
        numbers[i] = (struct number){i, 1};
        arrived[i] = 0;
    }
    model_forget(arrived, sizeof arrived);
    model_assert(blz_channel_new(&tx, &rx, &options) == 0);
}

/* What was sent has arrived, and nothing else. */
static inline void all_arrived(void)
{
    for (int i = 0; i < MAX_NUMBERS; i++)
        model_assert(blz__load(&arrived[i], RELAXED) == (numbers[i].rc == 0));
}

/* All handles go; what nobody has received is destroyed. */
static inline void channel_end(void)
{
    blz_sender_drop(&tx);
    blz_receiver_drop(&rx);
    all_arrived();
}

/* ---- threads ---- */

static inline int send_number(const blz_sender *sender, struct number *number)
{
    blz_channel_op op = {0};
    hand_polled hand;
    int rc;

    hand_begin(&hand);
    rc = (int)hand_await(&hand, blz_sender_send(&op, sender, &number->value));
    hand_end(&hand);
    return rc;
}

/* Sends one, and waits for room. */
static __attribute__((unused)) void send_await(void *arg)
{
    struct number *number = arg;

    number->rc = send_number(&tx, number);
}

/* Sends two, in order. */
static __attribute__((unused)) void send_two(void *arg)
{
    struct number *number = arg;

    number[0].rc = send_number(&tx, &number[0]);
    number[1].rc = send_number(&tx, &number[1]);
}

static __attribute__((unused)) void send_try(void *arg)
{
    struct number *number = arg;

    number->rc = blz_sender_try_send(&tx, &number->value);
}

/* Awaits one: its number, or a negative errno. */
static inline int64_t recv_number(void)
{
    uint32_t value = UINT32_MAX;
    blz_channel_op op = {0};
    hand_polled hand;
    int64_t rc;

    hand_begin(&hand);
    rc = hand_await(&hand, blz_receiver_recv(&op, &rx, &value));
    hand_end(&hand);
    if (rc < 0)
        return rc;
    count_number(value);
    return value;
}

static __attribute__((unused)) void recv_await(void *unused)
{
    (void)unused;
    model_assert(recv_number() >= 0);
}

/* Receives until the channel ends. */
static __attribute__((unused)) void recv_all(void *unused)
{
    int64_t last;

    (void)unused;
    while ((last = recv_number()) >= 0)
        ;
    model_assert(last == -EPIPE);
}

static __attribute__((unused)) void close_it(void *unused)
{
    (void)unused;
    blz_channel_close(tx.channel);
}

#endif
