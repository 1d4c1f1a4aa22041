/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The biased lock: its owner, which enters by a store while no other thread comes, against threads
 * that wait for it or only try, behind a fence that reaches into the owner's CPU. Never two inside,
 * each sees what the one before it did, none waits for ever; also when it is biased again in
 * between.
 */
#include "base/biased_lock.h"

static blz__biased_lock lock;
static uint32_t value; /* plain: what the lock protects */
static uint32_t tried; /* times that a thread that tried was inside */

static void begin(void)
{
    blz__biased_lock_init(&lock, true);
    value = tried = 0;
}

static void count(void)
{
    uint32_t before = value;

    blz__plain_write(&value);
    value = before + 1;
}

static void owner_counts(void)
{
    bool locked = blz__biased_lock_enter(&lock);

    count();
    blz__biased_lock_leave(&lock, locked);
}

static void other_counts(void)
{
    blz__biased_lock_enter_other(&lock);
    count();
    blz__biased_lock_leave_other(&lock);
}

static void other_tries(void)
{
    if (!blz__biased_lock_try_other(&lock))
        return;
    count();
    tried++;
    blz__biased_lock_leave_other(&lock);
}

static void tries_twice(void *unused)
{
    (void)unused;
    other_tries();
    other_tries();
}

static void counts_once(void *unused)
{
    (void)unused;
    other_counts();
}

static void counts_twice(void *unused)
{
    (void)unused;
    other_counts();
    other_counts();
}

static void end(uint32_t expected)
{
    other_counts();
    model_assert(value == expected + 1);
    model_assert(blz__load(&lock.inside, RELAXED) == 0);
}

static void the_owner_and_another_take_turns(void)
{
    begin();
    model_thread other = model_start_named(counts_once, NULL, "other");
    owner_counts();
    owner_counts();
    model_join(other);
    end(3);
}

/* The owner comes often enough to make the lock biased again while the other is on its way. */
static void it_is_biased_again_between_two_visits(void)
{
    begin();
    model_thread other = model_start_named(counts_twice, NULL, "other");
    for (int i = 0; i < 4; i++)
        owner_counts();
    model_join(other);
    end(6);
}

static void two_others_come_at_once(void)
{
    begin();
    model_thread first = model_start_named(counts_once, NULL, "first");
    model_thread second = model_start_named(counts_once, NULL, "second");
    owner_counts();
    owner_counts();
    model_join(first);
    model_join(second);
    end(4);
}

/* The owner does not look whether another thread waits: none does. */
static void owner_counts_unawaited(void)
{
    bool locked = blz__biased_lock_enter(&lock);

    count();
    blz__biased_lock_leave_unawaited(&lock, locked);
}

static void a_thread_that_tries_gives_up_or_is_alone(void)
{
    begin();
    model_thread other = model_start_named(tries_twice, NULL, "other");
    for (int i = 0; i < 3; i++)
        owner_counts_unawaited();
    model_join(other);
    end(3 + tried);
}

static void a_thread_that_tries_and_one_that_waits(void)
{
    begin();
    model_thread trier = model_start_named(tries_twice, NULL, "trier");
    model_thread waiter = model_start_named(counts_once, NULL, "waiter");
    owner_counts();
    owner_counts();
    model_join(trier);
    model_join(waiter);
    end(3 + tried);
}

static void without_fences_it_is_a_lock(void)
{
    begin();
    blz__biased_lock_init(&lock, false);
    model_thread other = model_start_named(counts_twice, NULL, "other");
    for (int i = 0; i < 3; i++)
        owner_counts();
    model_join(other);
    model_assert(blz__load(&lock.shared, RELAXED) == BIASED_LOCK_SHARED);
    end(5);
}

static const struct model models[] = {
    {"the_owner_and_another_take_turns", the_owner_and_another_take_turns, {.preemptions = 4}},
    {"it_is_biased_again_between_two_visits",
     it_is_biased_again_between_two_visits,
     {.preemptions = 3}},
    {"two_others_come_at_once", two_others_come_at_once, {.preemptions = 2}},
    {"a_thread_that_tries_gives_up_or_is_alone",
     a_thread_that_tries_gives_up_or_is_alone,
     {.preemptions = 3}},
    {"a_thread_that_tries_and_one_that_waits",
     a_thread_that_tries_and_one_that_waits,
     {.preemptions = 2}},
    {"without_fences_it_is_a_lock", without_fences_it_is_a_lock, {.preemptions = 3}},
};

MODEL_MAIN(models)
