/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leaning lock: its owner, who enters by a store while nobody else comes, against others, who
 * go through a fence that reaches into the owner's CPU. Never two inside, each sees what the
 * one before it did, nobody waits for ever; also when it leans again in between.
 */
#include "base/lean.h"

static blz__lean lean;
static uint32_t value; /* plain: what the lock protects */

static void begin(void)
{
    blz__lean_init(&lean, true);
    value = 0;
}

static void count(void)
{
    uint32_t before = value;

    blz__plain_write(&value);
    value = before + 1;
}

static void owner_counts(void)
{
    bool locked = blz__lean_enter(&lean);

    count();
    blz__lean_leave(&lean, locked);
}

static void other_counts(void)
{
    blz__lean_enter_other(&lean);
    count();
    blz__lean_leave_other(&lean);
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
    model_assert(blz__load(&lean.inside, RELAXED) == 0);
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

/* The owner comes often enough to have the lock lean again while the other is on its way. */
static void it_leans_again_between_two_visits(void)
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

static void without_fences_it_is_a_lock(void)
{
    begin();
    blz__lean_init(&lean, false);
    model_thread other = model_start_named(counts_twice, NULL, "other");
    for (int i = 0; i < 3; i++)
        owner_counts();
    model_join(other);
    model_assert(blz__load(&lean.shared, RELAXED) == 1);
    end(5);
}

static const struct model models[] = {
    {"the_owner_and_another_take_turns", the_owner_and_another_take_turns, {.preemptions = 4}},
    {"it_leans_again_between_two_visits", it_leans_again_between_two_visits, {.preemptions = 3}},
    {"two_others_come_at_once", two_others_come_at_once, {.preemptions = 2}},
    {"without_fences_it_is_a_lock", without_fences_it_is_a_lock, {.preemptions = 3}},
};

MODEL_MAIN(models)
