/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: handlers, the herald, subscribers, and the last one closing. A signal is never lost: a
 * subscriber gets it, or the closer has it in hand, or the handler passes it on. Only a signal that
 * comes after somebody has been told of the stop kills.
 */
#include "signal/notice.h"

#include "support/hand_polled.h"

enum { FIRST = 1, SECOND = 2, NR_SLOTS = 3, MAX_SUBS = 2, SENDER = 77 };

/* When signals come: the first, one too soon after it, one that is a request of its own. */
enum { FIRST_NS = 100, REPEAT_NS = 50, SOON_NS = 149, LATE_NS = 150 };

static signal_slot slots[NR_SLOTS];
static signal_notice notice;
static enum notice_verdict verdicts[2];

/* ---- subscribers, as in signal.c and stop.c ---- */

struct sub {
    notice_wait wait;
    uint64_t seen;
    int64_t received;
    bool sender_known; /* each time */
};

static struct sub subs[MAX_SUBS];

static bool sub_has_come(notice_wait *wait)
{
    return slot_has_come(&slots[FIRST], &((struct sub *)wait)->seen);
}

static int64_t sub_take(notice_wait *wait)
{
    struct sub *sub = (struct sub *)wait;
    int64_t count = (int64_t)blz__slot_take(&slots[FIRST], &sub->seen);

    if (count > 0 && blz__load(&slots[FIRST].sender, RELAXED) != SENDER)
        sub->sender_known = false;
    return count;
}

static bool stop_has_come(notice_wait *wait)
{
    (void)wait;
    return blz__notice_stop_has_come(&notice);
}

static int64_t stop_take(notice_wait *wait)
{
    (void)wait;
    return blz__notice_look(&notice);
}

static blz_poll sub_poll(blz_future *self, blz_cx *cx)
{
    static const notice_wait_ops ops = {sub_has_come, sub_take};
    int64_t result;

    if (!blz__notice_poll((notice_wait *)self, &slots[FIRST].list, &ops, cx, &result))
        return BLZ_PENDING;
    return blz_future_done(self, result);
}

static blz_poll stop_poll(blz_future *self, blz_cx *cx)
{
    static const notice_wait_ops ops = {stop_has_come, stop_take};
    int64_t result;

    if (!blz__notice_poll((notice_wait *)self, &notice.stop, &ops, cx, &result))
        return BLZ_PENDING;
    return blz_future_done(self, result);
}

static blz_future *wait_on(struct sub *sub, bool stop)
{
    static const blz_future_ops ops = {.name = "sub", .poll = sub_poll};
    static const blz_future_ops stop_ops = {.name = "stop", .poll = stop_poll};

    blz__plain_write(&sub->wait.waiter.waker); /* nobody else may know it by now */
    sub->wait = (notice_wait){.future = {.ops = stop ? &stop_ops : &ops}};
    return &sub->wait.future;
}

/* ---- threads ---- */

static void begin(void)
{
    for (int i = 0; i < NR_SLOTS; i++)
        slots[i] = (signal_slot){.word = 0};
    notice = (signal_notice){.slots = slots,
                             .nr_slots = 2,
                             .stops = {FIRST, SECOND},
                             .repeat_ns = REPEAT_NS};
    for (int i = 0; i < MAX_SUBS; i++)
        subs[i] = (struct sub){.sender_known = true};
}

static void herald(void *number)
{
    while (blz__notice_await_ring(&notice, (uint32_t)(uintptr_t)number))
        blz__notice_tell(&notice);
}

static model_thread start_herald(void)
{
    uint32_t number = blz__notice_begin_herald(&notice);
    return model_start_named(herald, (void *)(uintptr_t)number, "herald");
}

static void end_herald(model_thread thread)
{
    blz__notice_end_herald(&notice);
    model_join(thread);
    for (int i = 0; i < NR_SLOTS; i++)
        model_assert(!slots[i].list.waiters.first);
    model_assert(!notice.stop.waiters.first);
}

static void signal_first(void *unused)
{
    (void)unused;
    verdicts[0] = notice_signal(&notice, FIRST, SENDER, FIRST_NS);
}

static void signal_again(void *unused)
{
    (void)unused;
    verdicts[1] = notice_signal(&notice, FIRST, SENDER, LATE_NS);
}

static void signal_second(void *unused)
{
    (void)unused;
    verdicts[1] = notice_signal(&notice, SECOND, SENDER, LATE_NS);
}

static void signal_repeated(void *unused)
{
    (void)unused;
    verdicts[1] = notice_signal(&notice, FIRST, SENDER, SOON_NS);
}

static void receive(void *arg)
{
    struct sub *sub = arg;
    hand_polled hand;

    hand_begin(&hand);
    sub->received += hand_await(&hand, wait_on(sub, false));
    hand_end(&hand);
}

static void wait_for_stop(void *arg)
{
    struct sub *sub = arg;
    hand_polled hand;

    hand_begin(&hand);
    sub->received = hand_await(&hand, wait_on(sub, true));
    hand_end(&hand);
}

/* Begins to wait. */
static blz_future *joined(struct sub *sub, bool stop, hand_polled *hand)
{
    blz_future *future = wait_on(sub, stop);

    model_assert(blz_is_pending(future->ops->poll(future, &hand->cx)));
    return future;
}

/* Polls once, is cancelled, and awaited. */
static void cancelled_at_once(struct sub *sub)
{
    blz_future *future = wait_on(sub, true);
    hand_polled hand;

    hand_begin(&hand);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        blz__notice_cancel(&sub->wait, &notice.stop);
        while (blz_is_pending(future->ops->poll(future, &hand.cx)))
            hand_wait(&hand);
    }
    sub->received = future->result;
    hand_end(&hand);
}

/* ---- signals ---- */

static void subscribe(int count)
{
    begin();
    for (int i = 0; i < count; i++)
        subs[i].seen = slot_open(&slots[FIRST], SLOT_PLAIN);
}

static void a_subscriber_gets_the_signal(void)
{
    subscribe(1);
    model_thread h = start_herald();
    model_thread w = model_start_named(receive, &subs[0], "subscriber");
    signal_first(NULL);
    model_join(w);
    model_assert(subs[0].received == 1 && subs[0].sender_known && verdicts[0] == NOTICE_TAKEN);
    model_assert(!slot_close(&slots[FIRST], SLOT_PLAIN)); /* it has been received */
    end_herald(h);
}

static void all_subscribers_get_the_signal(void)
{
    hand_polled hand;

    subscribe(2);
    hand_begin(&hand);
    blz_future *a = joined(&subs[0], false, &hand), *b = joined(&subs[1], false, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    model_assert(hand_await(&hand, a) == 1 && hand_await(&hand, b) == 1);
    model_join(s);
    end_herald(h);
    hand_end(&hand);
}

static void signals_that_come_at_once_are_all_counted(void)
{
    hand_polled hand;

    subscribe(1);
    hand_begin(&hand);
    blz_future *future = joined(&subs[0], false, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_again, NULL, "another signal");
    signal_first(NULL);
    for (int64_t got = 0; (got += hand_await(&hand, future)) < 2; future = wait_on(&subs[0], false))
        model_assert(got == 1);
    model_join(s);
    model_assert(blz__slot_take(&slots[FIRST], &subs[0].seen) == 0);
    end_herald(h);
    hand_end(&hand);
}

static void take_some(void *arg)
{
    struct sub *sub = arg;

    sub->received = (int64_t)blz__slot_take(&slots[FIRST], &subs[0].seen);
}

/* Two threads, one subscription: what one receives the other does not. */
static void each_signal_is_received_once(void)
{
    subscribe(1);
    signal_first(NULL);
    model_thread t = model_start_named(take_some, &subs[1], "taker");
    model_thread s = model_start_named(signal_again, NULL, "another signal");
    int64_t mine = (int64_t)blz__slot_take(&slots[FIRST], &subs[0].seen);
    model_assert(mine >= 0 && mine <= 2);
    model_join(t);
    model_assert(subs[1].received >= 0 && mine + subs[1].received <= 2);
    model_join(s);
    mine += (int64_t)blz__slot_take(&slots[FIRST], &subs[0].seen);
    model_assert(mine + subs[1].received == 2);
    model_assert(!slot_close(&slots[FIRST], SLOT_PLAIN));
}

static void a_cancelled_wait_loses_nothing(void)
{
    hand_polled hand;

    subscribe(1);
    hand_begin(&hand);
    blz_future *future = joined(&subs[0], false, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    blz__notice_cancel(&subs[0].wait, &slots[FIRST].list);
    model_assert(hand_await(&hand, future) == -ECANCELED);
    model_assert(hand_await(&hand, wait_on(&subs[0], false)) == 1); /* with the same struct */
    model_join(s);
    end_herald(h);
    hand_end(&hand);
}

static void one_may_leave_while_another_stays(void)
{
    hand_polled hand;

    subscribe(2);
    hand_begin(&hand);
    blz_future *a = joined(&subs[0], false, &hand), *b = joined(&subs[1], false, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    blz__notice_cancel(&subs[1].wait, &slots[FIRST].list);
    model_assert(hand_await(&hand, b) == -ECANCELED && hand_await(&hand, a) == 1);
    model_join(s);
    end_herald(h);
    hand_end(&hand);
}

static void a_signal_against_the_close_is_not_lost(void)
{
    subscribe(1);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    bool unseen = slot_close(&slots[FIRST], SLOT_PLAIN);
    end_herald(h);
    model_join(s);
    model_assert(verdicts[0] == (unseen ? NOTICE_TAKEN : NOTICE_CLOSED));
}

/* The last subscription goes, a new one comes, with a herald of its own. */
static void a_new_herald_is_rung_for(void)
{
    hand_polled hand;

    subscribe(1);
    hand_begin(&hand);
    model_thread old = start_herald();
    slot_close(&slots[FIRST], SLOT_PLAIN);
    blz__notice_end_herald(&notice);
    subs[0].seen = slot_open(&slots[FIRST], SLOT_PLAIN);
    model_thread h = start_herald();
    blz_future *future = joined(&subs[0], false, &hand);
    signal_first(NULL);
    model_assert(hand_await(&hand, future) == 1);
    end_herald(h);
    model_join(old);
    hand_end(&hand);
}

/* ---- the stop ---- */

static void open_stop(void)
{
    begin();
    notice.nr_slots = 1; /* the herald has no other signals to look for */
    blz__notice_open_stop(&notice);
}

static bool close_stop(void)
{
    bool unseen[NR_STOPS];

    blz__notice_close_stop(&notice, unseen);
    return unseen[0] || unseen[1];
}

static void a_waiter_gets_the_stop(void)
{
    open_stop();
    model_thread h = start_herald();
    model_thread w = model_start_named(wait_for_stop, &subs[0], "waiter");
    signal_first(NULL);
    model_join(w);
    model_assert(subs[0].received == FIRST && verdicts[0] == NOTICE_TAKEN);
    model_assert(!close_stop()); /* it has been seen */
    end_herald(h);
}

static void all_waiters_get_the_stop(void)
{
    hand_polled hand;

    open_stop();
    hand_begin(&hand);
    blz_future *a = joined(&subs[0], true, &hand), *b = joined(&subs[1], true, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    model_assert(hand_await(&hand, a) == FIRST && hand_await(&hand, b) == FIRST);
    model_join(s);
    end_herald(h);
    hand_end(&hand);
}

static void everybody_gets_the_same_stop(void)
{
    hand_polled hand;

    open_stop();
    hand_begin(&hand);
    blz_future *future = joined(&subs[0], true, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_second, NULL, "second signal");
    signal_first(NULL);
    int looked = blz__notice_look(&notice);
    model_assert(looked != 0 && hand_await(&hand, future) == looked);
    model_join(s);
    model_assert(verdicts[0] == NOTICE_TAKEN || looked == SECOND);
    model_assert(verdicts[1] == NOTICE_TAKEN || looked == FIRST);
    end_herald(h);
    hand_end(&hand);
}

static void the_stop_that_came_first_stands(void)
{
    open_stop();
    model_thread h = start_herald();
    signal_second(NULL);
    model_thread s = model_start_named(signal_first, NULL, "first signal");
    model_assert(blz__notice_look(&notice) == SECOND);
    model_join(s);
    model_assert(blz__notice_look(&notice) == SECOND);
    end_herald(h);
}

/* After a waiter has been woken there is no signal that does nothing. */
static void a_signal_after_the_wake_kills(void)
{
    hand_polled hand;

    open_stop();
    hand_begin(&hand);
    joined(&subs[0], true, &hand);
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "first signal");
    hand_wait(&hand);
    signal_second(NULL);
    model_assert(verdicts[1] == NOTICE_SECOND);
    model_join(s);
    model_assert(close_stop()); /* woken, but nobody has looked */
    end_herald(h);
    hand_end(&hand);
}

/* Nor after one has looked, which may be before the herald comes. */
static void a_signal_after_a_look_kills(void)
{
    open_stop();
    model_thread h = start_herald();
    signal_first(NULL);
    model_assert(blz__notice_look(&notice) == FIRST);
    signal_second(NULL);
    model_assert(verdicts[1] == NOTICE_SECOND);
    end_herald(h);
}

/* Wherever it comes, a repeat is part of the first one: nobody is killed, nothing is left over. */
static void a_repeated_stop_is_none(void)
{
    open_stop();
    model_thread h = start_herald();
    signal_first(NULL);
    model_thread s = model_start_named(signal_repeated, NULL, "repeat");
    model_assert(blz__notice_look(&notice) == FIRST);
    model_join(s);
    model_assert(verdicts[1] == NOTICE_TAKEN);
    model_assert(!close_stop());
    end_herald(h);
}

/* If nobody has looked at the first one, it is still to be raised again. */
static void a_repeated_stop_hides_nothing(void)
{
    open_stop();
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_repeated, NULL, "repeat");
    signal_first(NULL);
    model_join(s);
    model_assert(verdicts[0] == NOTICE_TAKEN && verdicts[1] == NOTICE_TAKEN);
    model_assert(close_stop());
    end_herald(h);
}

static void a_signal_that_somebody_wants_does_not_kill(void)
{
    subscribe(1);
    blz__notice_open_stop(&notice);
    model_thread h = start_herald();
    signal_first(NULL);
    model_assert(blz__notice_look(&notice) == FIRST);
    signal_again(NULL);
    model_assert(verdicts[1] == NOTICE_TAKEN);
    while (subs[0].received < 2)
        receive(&subs[0]);
    end_herald(h);
}

static void a_signal_against_the_last_stop_is_not_lost(void)
{
    open_stop();
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    bool unseen = close_stop();
    model_join(s);
    model_assert(verdicts[0] == (unseen ? NOTICE_TAKEN : NOTICE_CLOSED));
    blz__notice_open_stop(&notice); /* what is over stays so */
    model_assert(blz__notice_look(&notice) == 0);
    verdicts[0] = notice_signal(&notice, FIRST, SENDER, FIRST_NS);
    model_assert(verdicts[0] == NOTICE_TAKEN);
    model_assert(blz__notice_look(&notice) == FIRST);
    end_herald(h);
}

static void a_waiter_that_leaves_has_not_seen_the_stop(void)
{
    open_stop();
    model_thread h = start_herald();
    model_thread s = model_start_named(signal_first, NULL, "signal");
    cancelled_at_once(&subs[0]);
    model_join(s);
    model_assert(subs[0].received == FIRST || subs[0].received == -ECANCELED);
    model_assert(close_stop() == (subs[0].received != FIRST));
    end_herald(h);
}

#define MODEL(fn, bound)                         \
    {                                            \
#fn, fn,                                 \
        {                                        \
            .preemptions = bound, .reduce = true \
        }                                        \
    }

static const struct model models[] = {
    MODEL(a_subscriber_gets_the_signal, 1),
    MODEL(all_subscribers_get_the_signal, 1),
    {"signals_that_come_at_once_are_all_counted",
     signals_that_come_at_once_are_all_counted,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    MODEL(each_signal_is_received_once, 3),
    MODEL(a_cancelled_wait_loses_nothing, 1),
    MODEL(one_may_leave_while_another_stays, 1),
    MODEL(a_signal_against_the_close_is_not_lost, 3),
    MODEL(a_new_herald_is_rung_for, 1),
    MODEL(a_waiter_gets_the_stop, 1),
    MODEL(all_waiters_get_the_stop, 1),
    MODEL(everybody_gets_the_same_stop, 1),
    MODEL(the_stop_that_came_first_stands, 1),
    MODEL(a_signal_after_the_wake_kills, 1),
    MODEL(a_signal_after_a_look_kills, 2),
    MODEL(a_repeated_stop_is_none, 2),
    MODEL(a_repeated_stop_hides_nothing, 2),
    MODEL(a_signal_that_somebody_wants_does_not_kill, 1),
    MODEL(a_signal_against_the_last_stop_is_not_lost, 2),
    MODEL(a_waiter_that_leaves_has_not_seen_the_stop, 1),
};

MODEL_MAIN(models)
