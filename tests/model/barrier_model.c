/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier: all parties go on when all are there, exactly one of them as the leader, and they see
 * what the others did before; a party that is cancelled is counted, or it is not; and the barrier
 * is freed as soon as a round is over, so that a party that touches it afterwards is caught.
 */
#include <blitz/barrier.h>

#include "support/hand_polled.h"

static blz_barrier *barrier;
static uint32_t work[2];  /* plain: each is written by one party */
static int64_t result[2]; /* of the last round */

static void begin(void)
{
    barrier = model_alloc(sizeof *barrier, _Alignof(blz_barrier));
    model_assert(blz_barrier_init(barrier, 2) == 0);
    for (int i = 0; i < 2; i++) {
        work[i] = 0;
        result[i] = -1;
    }
}

static int64_t meet(hand_polled *hand, uint32_t me)
{
    blz_barrier_op op = {0};

    blz__plain_write(&work[me]);
    work[me]++;
    result[me] = hand_await(hand, blz_barrier_arrive(&op, barrier));
    blz__plain_read(&work[1 - me]);
    model_assert(work[1 - me] == work[me]);
    return result[me];
}

static void meet_once(void *unused)
{
    hand_polled hand;

    (void)unused;
    hand_begin(&hand);
    meet(&hand, 1);
    hand_end(&hand);
}

static void two_parties_meet_and_one_leads(void)
{
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread other = model_start_named(meet_once, NULL, "other");
    meet(&hand, 0);
    model_free(barrier);
    hand_end(&hand);
    model_join(other);
    model_assert(result[0] + result[1] == 1 && result[0] >= 0 && result[1] >= 0);
}

/* In the second round each may come before the other has left the first. */
static void meet_twice(void *arg)
{
    uint32_t *me = arg;
    hand_polled hand;
    blz_barrier_op op = {0};

    hand_begin(&hand);
    int64_t first = hand_await(&hand, blz_barrier_arrive(&op, barrier));
    int64_t second = hand_await(&hand, blz_barrier_arrive(&op, barrier));
    result[*me] = first + 2 * second;
    hand_end(&hand);
}

static void a_round_follows_a_round(void)
{
    static uint32_t numbers[2] = {0, 1};

    begin();
    model_thread other = model_start_named(meet_twice, &numbers[1], "other");
    meet_twice(&numbers[0]);
    model_join(other);
    model_assert(result[0] + result[1] == 3); /* one leader each */
    model_assert(blz_barrier_rounds(barrier) == 2);
    model_free(barrier);
}

static void signal_once(void *unused)
{
    (void)unused;
    blz__plain_write(&work[1]);
    work[1]++;
    result[1] = blz_barrier_signal(barrier);
}

static void who_signals_does_not_wait(void)
{
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread other = model_start_named(signal_once, NULL, "other");
    meet(&hand, 0);
    model_free(barrier);
    hand_end(&hand);
    model_join(other);
    model_assert(result[0] + result[1] == 1);
}

static void leave_once(void *unused)
{
    (void)unused;
    blz_barrier_leave(barrier);
}

/* Whether it waits when the other leaves, or comes later: it leads a round of its own. */
static void who_leaves_holds_up_nobody(void)
{
    blz_barrier_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread other = model_start_named(leave_once, NULL, "other");
    model_assert(hand_await(&hand, blz_barrier_arrive(&op, barrier)) == 1);
    hand_end(&hand);
    model_join(other);
    model_free(barrier);
}

/* Comes, and is cancelled; if it was in time it comes again. */
static void a_cancelled_party_is_counted_once_or_not_at_all(void)
{
    blz_barrier_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    work[0] = 1;
    model_thread other = model_start_named(meet_once, NULL, "other");
    blz_future *wait = blz_barrier_arrive(&op, barrier);
    if (blz_is_pending(wait->ops->poll(wait, &hand.cx))) {
        wait->ops->cancel(wait, &hand.cx);
        hand_await(&hand, wait);
    }
    result[0] = wait->result;
    if (result[0] == -ECANCELED)
        result[0] = hand_await(&hand, blz_barrier_arrive(&op, barrier));
    model_join(other);
    model_assert(result[0] + result[1] == 1);
    model_assert(blz_barrier_rounds(barrier) == 1);
    model_assert(blz_barrier_signal(barrier) == 0); /* nobody is there: two make a round */
    model_assert(blz_barrier_signal(barrier) == 1);
    hand_end(&hand);
    model_free(barrier);
}

static const struct model models[] = {
    {"two_parties_meet_and_one_leads", two_parties_meet_and_one_leads, {.preemptions = 3}},
    {"a_round_follows_a_round", a_round_follows_a_round, {.preemptions = 2, .stale_reads = 1}},
    {"who_signals_does_not_wait", who_signals_does_not_wait, {.preemptions = 4}},
    {"who_leaves_holds_up_nobody", who_leaves_holds_up_nobody, {.preemptions = 4}},
    {"a_cancelled_party_is_counted_once_or_not_at_all",
     a_cancelled_party_is_counted_once_or_not_at_all,
     {.preemptions = 3}},
};

MODEL_MAIN(models)
