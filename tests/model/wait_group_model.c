/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait group: the wait ends when all is done, sees what was done, and frees the group at once, so
 * that a `done` that touches it afterwards is caught; a wait that is cancelled, or begins at the
 * last moment, changes nothing for the others.
 */
#include <blitz/wait_group.h>

#include "support/hand_polled.h"

static blz_wait_group *group;
static uint32_t work[2]; /* plain: each is written by one thread */

static void begin(uint32_t count)
{
    group = model_alloc(sizeof *group, _Alignof(blz_wait_group));
    blz_wait_group_init(group);
    model_assert(blz_wait_group_add(group, count) == 0);
    for (int i = 0; i < 2; i++)
        work[i] = 0;
}

static void do_work(void *arg)
{
    uint32_t *mine = arg;

    blz__plain_write(mine);
    *mine = 1;
    blz_wait_group_done(group);
}

static void check_work(int count)
{
    for (int i = 0; i < count; i++) {
        blz__plain_read(&work[i]);
        model_assert(work[i] == 1);
    }
}

static void await_and_free(hand_polled *hand, int count)
{
    blz_wait_group_op op = {0};

    model_assert(hand_await(hand, blz_wait_group_await(&op, group)) == 0);
    model_free(group);
    check_work(count);
}

static void who_waits_for_one_frees_the_group(void)
{
    hand_polled hand;

    begin(1);
    hand_begin(&hand);
    model_thread worker = model_start_named(do_work, &work[0], "worker");
    await_and_free(&hand, 1);
    hand_end(&hand);
    model_join(worker);
}

static void who_waits_for_two_frees_the_group(void)
{
    hand_polled hand;

    begin(2);
    hand_begin(&hand);
    model_thread first = model_start_named(do_work, &work[0], "first");
    model_thread second = model_start_named(do_work, &work[1], "second");
    await_and_free(&hand, 2);
    hand_end(&hand);
    model_join(first);
    model_join(second);
}

static void who_only_looks_frees_the_group(void)
{
    begin(1);
    model_thread worker = model_start_named(do_work, &work[0], "worker");
    while (blz_wait_group_try_await(group) != 0)
        blz__spin_hint();
    model_free(group);
    check_work(1);
    model_join(worker);
}

/* Two waits of one task: the second begins when the first may have been claimed. */
static void a_wait_that_begins_at_the_last_moment(void)
{
    blz_wait_group_op early = {0};
    hand_polled hand;

    begin(1);
    hand_begin(&hand);
    blz_future *wait = blz_wait_group_await(&early, group);
    model_assert(blz_is_pending(wait->ops->poll(wait, &hand.cx)));
    model_thread worker = model_start_named(do_work, &work[0], "worker");
    blz_wait_group_op late = {0};
    model_assert(hand_await(&hand, blz_wait_group_await(&late, group)) == 0);
    model_assert(hand_await(&hand, wait) == 0);
    model_free(group);
    check_work(1);
    hand_end(&hand);
    model_join(worker);
}

/* The first wait is cancelled while the last thing is done; the second frees the group. */
static void a_cancelled_wait_leaves_the_others_alone(void)
{
    blz_wait_group_op first = {0};
    hand_polled hand;

    begin(1);
    hand_begin(&hand);
    blz_future *wait = blz_wait_group_await(&first, group);
    model_assert(blz_is_pending(wait->ops->poll(wait, &hand.cx)));
    model_thread worker = model_start_named(do_work, &work[0], "worker");
    wait->ops->cancel(wait, &hand.cx);
    int64_t result = hand_await(&hand, wait);
    model_assert(result == -ECANCELED || result == 0);
    await_and_free(&hand, 1);
    hand_end(&hand);
    model_join(worker);
}

static void do_work_twice(void *unused)
{
    (void)unused;
    do_work(&work[0]);
    model_assert(blz_wait_group_add(group, 1) == 0);
    do_work(&work[1]);
}

/* The count is zero, and is not any more, while a wait begins. */
static void a_wait_that_begins_between_two_things_to_do(void)
{
    blz_wait_group_op op = {0};
    hand_polled hand;

    begin(1);
    hand_begin(&hand);
    model_thread worker = model_start_named(do_work_twice, NULL, "worker");
    model_assert(hand_await(&hand, blz_wait_group_await(&op, group)) == 0);
    check_work(1);
    hand_end(&hand);
    model_join(worker);
    model_free(group);
}

static void await_in_thread(void *unused)
{
    blz_wait_group_op op = {0};
    hand_polled hand;

    (void)unused;
    hand_begin(&hand);
    model_assert(hand_await(&hand, blz_wait_group_await(&op, group)) == 0);
    hand_end(&hand);
}

static void two_waits_end(void)
{
    begin(1);
    model_thread waiter = model_start_named(await_in_thread, NULL, "waiter");
    model_thread worker = model_start_named(do_work, &work[0], "worker");
    await_in_thread(NULL);
    check_work(1);
    model_join(waiter);
    model_free(group);
    model_join(worker);
}

static const struct model models[] = {
    {"who_waits_for_one_frees_the_group", who_waits_for_one_frees_the_group, {.preemptions = 3}},
    {"who_waits_for_two_frees_the_group",
     who_waits_for_two_frees_the_group,
     {.preemptions = 2, .stale_reads = 1}},
    {"who_only_looks_frees_the_group", who_only_looks_frees_the_group, {.preemptions = 4}},
    {"a_wait_that_begins_at_the_last_moment",
     a_wait_that_begins_at_the_last_moment,
     {.preemptions = 2, .stale_reads = 1}},
    {"a_cancelled_wait_leaves_the_others_alone",
     a_cancelled_wait_leaves_the_others_alone,
     {.preemptions = 2}},
    {"a_wait_that_begins_between_two_things_to_do",
     a_wait_that_begins_between_two_things_to_do,
     {.preemptions = 3, .stale_reads = 1}},
    {"two_waits_end", two_waits_end, {.preemptions = 1, .stale_reads = 1}},
};

MODEL_MAIN(models)
