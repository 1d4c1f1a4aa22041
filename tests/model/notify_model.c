/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify: no notification is lost, whether it meets a task that waits, one that is about to, or one
 * that is being cancelled; one for all reaches those that wait, and nobody else; who has enabled
 * its wait and then looks misses nothing; and the notify is freed by whoever was notified last, so
 * that a notifier that touches it afterwards is caught.
 */
#include <blitz/notify.h>

#include "support/hand_polled.h"

static blz_notify *notify;
static uint32_t data;  /* plain; what was done before the notification */
static uint32_t items; /* atomic; what consumers look for */

static void begin(void)
{
    notify = model_alloc(sizeof *notify, _Alignof(blz_notify));
    blz_notify_init(notify);
    data = items = 0;
    model_forget(&data, sizeof data);
    model_forget(&items, sizeof items);
}

static void one(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 7;
    blz_notify_one(notify);
}

static void read_data(void)
{
    blz__plain_read(&data);
    model_assert(data == 7);
}

static int64_t await_once(void)
{
    blz_notify_op op = {0};
    hand_polled hand;
    int64_t result;

    hand_begin(&hand);
    result = hand_await(&hand, blz_notify_await(&op, notify));
    hand_end(&hand);
    return result;
}

static void await_in_thread(void *unused)
{
    (void)unused;
    model_assert(await_once() == 0);
}

/* ---- one notification, one task ---- */

static void a_task_is_notified_and_frees(void)
{
    blz_notify_op op = {0};
    hand_polled hand;

    begin();
    model_thread notifier = model_start_named(one, NULL, "notifier");
    hand_begin(&hand);
    model_assert(hand_await(&hand, blz_notify_await(&op, notify)) == 0);
    model_free(notify);
    read_data();
    hand_end(&hand);
    model_join(notifier);
}

static void try_takes_a_permit_and_frees(void)
{
    begin();
    model_thread notifier = model_start_named(one, NULL, "notifier");
    while (blz_notify_try_await(notify) == -EAGAIN)
        blz__spin_hint();
    model_free(notify);
    read_data();
    model_join(notifier);
}

/* ---- two tasks ---- */

/* Two waits of one task, which are both there when the other thread starts. */
struct pair {
    hand_polled hand;
    blz_notify_op ops[2];
    model_thread notifier;
};

static void begin_pair(struct pair *pair, void (*notifier)(void *))
{
    begin();
    hand_begin(&pair->hand);
    for (int i = 0; i < 2; i++) {
        blz_future *wait = blz_notify_await(&pair->ops[i], notify);
        model_assert(blz_is_pending(wait->ops->poll(wait, &pair->hand.cx)));
    }
    pair->notifier = model_start_named(notifier, NULL, "notifier");
}

/* `data` is read at once: the second may be found ready before its wake has come. */
static void end_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        model_assert(hand_await(&pair->hand, &pair->ops[i].future) == 0);
    read_data();
    model_free(notify);
    hand_end(&pair->hand);
    model_join(pair->notifier);
}

static void notify_one_and_last(void *unused)
{
    (void)unused;
    blz_notify_one(notify);
    blz__plain_write(&data);
    data = 7;
    blz_notify_last(notify);
}

static void two_notifications_end_two_waits(void)
{
    struct pair pair = {0};

    begin_pair(&pair, notify_one_and_last);
    end_pair(&pair);
}

static void await_and_pass(void *unused)
{
    (void)unused;
    model_assert(await_once() == 0);
    blz_notify_one(notify);
}

static void a_baton_goes_through_two_tasks(void)
{
    begin();
    model_thread first = model_start_named(await_and_pass, NULL, "first");
    model_thread second = model_start_named(await_and_pass, NULL, "second");
    blz_notify_one(notify);
    model_join(first);
    model_join(second);
    model_assert(blz_notify_try_await(notify) == 0);
    model_free(notify);
}

/* ---- all ---- */

static void notify_all(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 7;
    blz_notify_all(notify);
}

static void all_that_wait_are_notified(void)
{
    struct pair pair = {0};

    begin_pair(&pair, notify_all);
    end_pair(&pair);
}

/* One comes when another has been notified, perhaps while the notifier is not through. */
static void who_comes_later_is_not_meant(void)
{
    struct pair pair = {0};
    blz_notify_op late = {0};

    begin_pair(&pair, notify_all);
    model_assert(hand_await(&pair.hand, &pair.ops[0].future) == 0);
    blz_future *wait = blz_notify_await(&late, notify);
    model_assert(blz_is_pending(wait->ops->poll(wait, &pair.hand.cx)));
    model_assert(hand_await(&pair.hand, &pair.ops[1].future) == 0);
    model_join(pair.notifier);
    model_assert(blz_is_pending(wait->ops->poll(wait, &pair.hand.cx)));
    blz_notify_one(notify);
    model_assert(hand_await(&pair.hand, wait) == 0);
    hand_end(&pair.hand);
    model_free(notify);
}

/* ---- look after enabling ---- */

static void set_and_notify_all(void *unused)
{
    (void)unused;
    blz__store(&items, 1u, RELAXED);
    blz_notify_all(notify);
}

static void who_enables_and_looks_misses_nothing(void)
{
    blz_notify_op op = {0};
    hand_polled hand;

    begin();
    hand_begin(&hand);
    model_thread notifier = model_start_named(set_and_notify_all, NULL, "notifier");
    blz_future *wait = blz_notify_await(&op, notify);
    blz_notify_enable(&op);
    if (blz__load(&items, RELAXED) == 1)
        blz_notify_disable(&op);
    else
        model_assert(hand_await(&hand, wait) == 0);
    model_assert(blz__load(&items, RELAXED) == 1);
    model_join(notifier);
    hand_end(&hand);
    model_free(notify);
}

/* Takes an item, if there is one. */
static bool pop(void)
{
    uint32_t n = blz__load(&items, RELAXED);

    while (n > 0) {
        if (blz__cas_weak(&items, &n, n - 1, RELAXED, RELAXED))
            return true;
    }
    return false;
}

static void consume(void *unused)
{
    blz_notify_op op = {0};
    hand_polled hand;

    (void)unused;
    hand_begin(&hand);
    for (;;) {
        blz_future *wait = blz_notify_await(&op, notify);
        blz_notify_enable(&op);
        if (pop()) {
            blz_notify_disable(&op);
            break;
        }
        model_assert(hand_await(&hand, wait) == 0);
    }
    hand_end(&hand);
}

static void two_consumers_find_two_items(void)
{
    begin();
    model_thread first = model_start_named(consume, NULL, "first");
    model_thread second = model_start_named(consume, NULL, "second");
    for (int i = 0; i < 2; i++) {
        blz__fetch_add(&items, 1u, RELAXED);
        blz_notify_one(notify);
    }
    model_join(first);
    model_join(second);
    model_free(notify);
}

/* ---- cancel ---- */

/* Polls, cancels, and awaits the end. */
static int64_t wait_and_cancel(bool enabled)
{
    blz_notify_op op = {0};
    hand_polled hand;
    int64_t result;

    hand_begin(&hand);
    blz_future *wait = blz_notify_await(&op, notify);
    if (enabled)
        blz_notify_enable(&op);
    if (enabled || blz_is_pending(wait->ops->poll(wait, &hand.cx))) {
        wait->ops->cancel(wait, &hand.cx);
        hand_await(&hand, wait);
    }
    result = wait->result;
    hand_end(&hand);
    return result;
}

static void cancel_against_one(bool enabled)
{
    begin();
    model_thread notifier = model_start_named(one, NULL, "notifier");
    int64_t result = wait_and_cancel(enabled);
    model_join(notifier);
    if (result == -ECANCELED)
        model_assert(blz_notify_try_await(notify) == 0); /* the permit is there for another */
    else
        model_assert(result == 0);
    model_assert(blz_notify_try_await(notify) == -EAGAIN);
    model_free(notify);
}

static void a_cancelled_wait_loses_no_permit(void)
{
    cancel_against_one(false);
}

static void a_cancelled_enabled_wait_loses_no_permit(void)
{
    cancel_against_one(true);
}

/* The other one waits behind us, or before, or comes later: it gets the permit if we do not. */
static void a_cancelled_wait_passes_the_permit_on(void)
{
    begin();
    model_thread other = model_start_named(await_in_thread, NULL, "other");
    model_thread notifier = model_start_named(one, NULL, "notifier");
    if (wait_and_cancel(false) == 0)
        blz_notify_one(notify);
    model_join(other);
    model_join(notifier);
    model_free(notify);
}

static void disable_loses_no_permit(void)
{
    blz_notify_op op = {0};

    begin();
    model_thread notifier = model_start_named(one, NULL, "notifier");
    blz_ignore(blz_notify_await(&op, notify));
    blz_notify_enable(&op);
    blz_notify_disable(&op);
    model_join(notifier);
    model_assert(blz_notify_try_await(notify) == 0);
    model_free(notify);
}

static const struct model models[] = {
    {"a_task_is_notified_and_frees", a_task_is_notified_and_frees, {.preemptions = 4}},
    {"try_takes_a_permit_and_frees", try_takes_a_permit_and_frees, {.preemptions = 4}},
    {"two_notifications_end_two_waits",
     two_notifications_end_two_waits,
     {.preemptions = 2, .stale_reads = 1}},
    {"a_baton_goes_through_two_tasks",
     a_baton_goes_through_two_tasks,
     {.preemptions = 1, .stale_reads = 1}},
    {"all_that_wait_are_notified", all_that_wait_are_notified, {.preemptions = 2}},
    {"who_comes_later_is_not_meant", who_comes_later_is_not_meant, {.preemptions = 2}},
    {"who_enables_and_looks_misses_nothing",
     who_enables_and_looks_misses_nothing,
     {.preemptions = 2}},
    {"two_consumers_find_two_items",
     two_consumers_find_two_items,
     {.preemptions = 1, .stale_reads = 2}},
    {"a_cancelled_wait_loses_no_permit", a_cancelled_wait_loses_no_permit, {.preemptions = 3}},
    {"a_cancelled_enabled_wait_loses_no_permit",
     a_cancelled_enabled_wait_loses_no_permit,
     {.preemptions = 3}},
    {"a_cancelled_wait_passes_the_permit_on",
     a_cancelled_wait_passes_the_permit_on,
     {.preemptions = 1}},
    {"disable_loses_no_permit", disable_loses_no_permit, {.preemptions = 3}},
};

MODEL_MAIN(models)
