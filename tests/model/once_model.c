/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once: everyone who asks gets the value, and sees what belongs to it; it is made by one at a time,
 * and once; a maker that fails, or is cancelled, at whatever moment, hands over to the next.
 */
#include <blitz/once.h>

#include "support/hand_polled.h"

enum { VALUE = 42 };

static blz_once *once;
static uint32_t content; /* plain: what belongs to the value */
static uint32_t makers;  /* atomic: how many are making it at the moment */
static uint32_t made;    /* plain, by makers */

/* A future that makes the value, or fails, at its second poll. */
struct make {
    blz_future future;
    bool fails, begun, cancelled;
};

static blz_poll make_poll(blz_future *future, blz_cx *cx)
{
    struct make *make = (struct make *)future;

    if (!make->begun) {
        model_assert(blz__fetch_add(&makers, 1u, RELAXED) == 0);
        make->begun = true;
        return blz_cx_yield(cx);
    }
    blz__plain_write(&made);
    made++;
    if (!make->fails && !make->cancelled) {
        blz__plain_write(&content);
        content = VALUE;
    }
    blz__fetch_sub(&makers, 1u, RELAXED);
    if (make->cancelled)
        return blz_future_done(future, -ECANCELED);
    return blz_future_done(future, make->fails ? -EIO : VALUE);
}

static void make_cancel(blz_future *future, blz_cx *cx)
{
    (void)cx;
    ((struct make *)future)->cancelled = true;
}

static blz_future *make_init(struct make *make, bool fails)
{
    static const blz_future_ops ops = {.name = "make", .poll = make_poll, .cancel = make_cancel};

    *make = (struct make){.future = {.ops = &ops}, .fails = fails};
    return &make->future;
}

static void begin(void)
{
    once = model_alloc(sizeof *once, _Alignof(blz_once));
    blz_once_init(once);
    content = makers = made = 0;
    model_forget(&makers, sizeof makers);
}

static void check_value(int64_t value)
{
    model_assert(value == VALUE);
    blz__plain_read(&content);
    model_assert(content == VALUE);
}

static int64_t get(bool fails)
{
    blz_once_op op = {0};
    struct make make;
    hand_polled hand;
    int64_t result;

    hand_begin(&hand);
    result = hand_await(&hand, blz_once_get(&op, once, make_init(&make, fails)));
    hand_end(&hand);
    return result;
}

static void get_value(void *unused)
{
    (void)unused;
    check_value(get(false));
}

static void get_or_fail(void *unused)
{
    (void)unused;
    int64_t result = get(true);
    model_assert(result == -EIO || result == VALUE);
}

static void wait_for_value(void *unused)
{
    blz_once_op op = {0};
    hand_polled hand;

    (void)unused;
    hand_begin(&hand);
    check_value(hand_await(&hand, blz_once_get(&op, once, NULL)));
    hand_end(&hand);
}

/* The other thread runs `other`, this one gets the value, which is made once. */
static void get_against(void (*other)(void *), uint32_t times)
{
    begin();
    model_thread thread = model_start_named(other, NULL, "other");
    get_value(NULL);
    model_join(thread);
    model_assert(made >= 1 && made <= times);
    model_free(once);
}

static void two_get_one_value(void)
{
    get_against(get_value, 1);
}

static void who_fails_hands_over(void)
{
    get_against(get_or_fail, 2);
}

static void who_only_waits_gets_the_value(void)
{
    get_against(wait_for_value, 1);
}

static void try_sees_all_or_nothing(void)
{
    int64_t value;

    begin();
    model_thread thread = model_start_named(get_value, NULL, "other");
    while ((value = blz_once_try_get(once)) == -EAGAIN)
        blz__spin_hint();
    check_value(value);
    model_join(thread);
    model_free(once);
}

static void set_by_hand(void *unused)
{
    (void)unused;
    int rc = blz_once_set(once, VALUE + 1);
    model_assert(rc == 0 || rc == -EBUSY || rc == -EEXIST);
    if (rc == 0)
        made = 100;
}

static void a_value_set_by_hand_is_the_only_one(void)
{
    begin();
    model_thread thread = model_start_named(set_by_hand, NULL, "other");
    int64_t value = get(false);
    model_join(thread);
    model_assert(made == (value == VALUE ? 1 : 100));
    model_assert(blz_once_try_get(once) == value);
    model_free(once);
}

/* ---- cancelling ---- */

static void get_and_cancel(void *unused)
{
    blz_once_op op = {0};
    struct make make;
    hand_polled hand;

    (void)unused;
    hand_begin(&hand);
    blz_future *wait = blz_once_get(&op, once, make_init(&make, false));
    if (blz_is_pending(wait->ops->poll(wait, &hand.cx))) {
        hand.cx.yielded = 0;
        wait->ops->cancel(wait, &hand.cx);
        hand_await(&hand, wait);
    }
    model_assert(wait->result == VALUE || wait->result == -ECANCELED);
    hand_end(&hand);
}

static void a_cancelled_maker_hands_over(void)
{
    get_against(get_and_cancel, 2);
}

/* One wait of a task of its own, which has been polled once. */
struct wait {
    hand_polled hand;
    blz_once_op op;
    struct make make;
};

static void begin_wait(struct wait *wait, bool fails)
{
    hand_begin(&wait->hand);
    blz_future *get = blz_once_get(&wait->op, once, make_init(&wait->make, fails));
    model_assert(blz_is_pending(get->ops->poll(get, &wait->hand.cx)));
    wait->hand.cx.yielded = 0;
}

static int64_t end_wait(struct wait *wait)
{
    int64_t result = hand_await(&wait->hand, &wait->op.future);

    hand_end(&wait->hand);
    return result;
}

static void fail(void *arg)
{
    model_assert(end_wait(arg) == -EIO);
}

/* The first fails and hands over to the second, perhaps while that one is cancelled. */
static void a_turn_that_comes_with_a_cancellation_goes_on(void)
{
    struct wait first = {0}, second = {0};

    begin();
    begin_wait(&first, true);
    begin_wait(&second, false);
    model_thread thread = model_start_named(fail, &first, "fails");
    second.op.future.ops->cancel(&second.op.future, &second.hand.cx);
    model_assert(end_wait(&second) == -ECANCELED);
    get_value(NULL);
    model_join(thread);
    model_free(once);
}

static const struct model models[] = {
    {"two_get_one_value", two_get_one_value, {.preemptions = 2}},
    {"who_fails_hands_over", who_fails_hands_over, {.preemptions = 2}},
    {"who_only_waits_gets_the_value", who_only_waits_gets_the_value, {.preemptions = 2}},
    {"try_sees_all_or_nothing", try_sees_all_or_nothing, {.preemptions = 3}},
    {"a_value_set_by_hand_is_the_only_one",
     a_value_set_by_hand_is_the_only_one,
     {.preemptions = 3}},
    {"a_cancelled_maker_hands_over", a_cancelled_maker_hands_over, {.preemptions = 3}},
    {"a_turn_that_comes_with_a_cancellation_goes_on",
     a_turn_that_comes_with_a_cancellation_goes_on,
     {.preemptions = 2}},
};

MODEL_MAIN(models)
