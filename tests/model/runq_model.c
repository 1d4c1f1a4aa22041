/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run queue: its owner against one and two thieves. The ring has four slots here. Whatever
 * happens, every task comes out exactly once, with its contents, and in order for the owner.
 */
#include "base/assert.h"
#include "sched/runq.h"
#include "support/parcel.h"

#include <string.h>

#define CAPACITY RUNQ_CAPACITY
#define HALF     (RUNQ_CAPACITY / 2)

_Static_assert(CAPACITY == 4, "the models count on it");

static runq ring, loot, second_loot;
static task_list spilled;

/* All positions of all rings begin there. */
static void begin_at(uint32_t position, unsigned count)
{
    runq *const rings[] = {&ring, &loot, &second_loot};

    for (int i = 0; i < 3; i++) {
        memset(rings[i], 0, sizeof *rings[i]);
        rings[i]->head = (uint64_t)position << 32 | position;
        rings[i]->tail = position;
    }
    spilled = (task_list){NULL, NULL, 0};
    parcels_new(count);
}

static void push(runq *q, unsigned number)
{
    blz__runq_push(q, parcel_fill(number), &spilled);
}

static void push_all(runq *q, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        push(q, i);
}

/* Pops `count` tasks at most, which must come in order. */
static void pop_in_order(runq *q, unsigned count)
{
    int64_t last = -1;
    blz_task *task;

    while (count-- > 0 && (task = blz__runq_pop(q)) != NULL) {
        int64_t number = parcel_open(task);
        model_assert(number > last);
        last = number;
    }
}

static void steal(runq *victim, runq *into)
{
    uint32_t moved = 0;
    blz_task *task = blz__runq_steal(victim, into, &moved);

    if (!task)
        return;
    model_assert(moved >= 1 && moved <= HALF);
    parcel_open(task);
}

static void thief(void *unused)
{
    (void)unused;
    steal(&ring, &loot);
    pop_in_order(&loot, CAPACITY);
}

static void second_thief(void *unused)
{
    (void)unused;
    steal(&ring, &second_loot);
    pop_in_order(&second_loot, CAPACITY);
}

/* Everybody has finished: takes out what is left. */
static void take_the_rest(void)
{
    blz_task *task;

    BLZ_ASSERT_VALID(blz__runq_check(&ring));
    BLZ_ASSERT_VALID(blz__runq_check(&loot));
    BLZ_ASSERT_VALID(blz__runq_check(&second_loot));
    BLZ_ASSERT_VALID(blz__task_list_check(&spilled));
    pop_in_order(&ring, CAPACITY);
    pop_in_order(&loot, CAPACITY);
    pop_in_order(&second_loot, CAPACITY);
    while ((task = task_list_take(&spilled)) != NULL)
        parcel_open(task);
    parcels_free();
}

/* ---- one thief ---- */

static void owner_and_thief_share_from(uint32_t position)
{
    begin_at(position, 4);
    model_thread t = model_start(thief, NULL);
    push_all(&ring, 0, 2);
    pop_in_order(&ring, 1);
    push_all(&ring, 2, 4);
    pop_in_order(&ring, 2);
    model_join(t);
    model_assert(spilled.count == 0);
    take_the_rest();
}

static void owner_and_thief_share_the_tasks(void)
{
    owner_and_thief_share_from(0);
}

static void positions_wrap(void)
{
    owner_and_thief_share_from(UINT32_MAX - 2);
}

/* The slots that the thief still reads are not filled again. */
static void the_owner_fills_only_what_the_thief_has_left_from(uint32_t position)
{
    begin_at(position, 7);
    push_all(&ring, 0, 3);
    model_thread t = model_start(thief, NULL);
    push_all(&ring, 3, 5);
    pop_in_order(&ring, 1);
    push_all(&ring, 5, 7);
    model_join(t);
    take_the_rest();
}

static void the_owner_fills_only_what_the_thief_has_left(void)
{
    the_owner_fills_only_what_the_thief_has_left_from(0);
}

static void a_full_ring_wraps(void)
{
    the_owner_fills_only_what_the_thief_has_left_from(UINT32_MAX - 2);
}

static void a_full_ring_spills_while_a_thief_steals(void)
{
    begin_at(0, 6);
    push_all(&ring, 0, 4);
    model_thread t = model_start(thief, NULL);
    push_all(&ring, 4, 6);
    pop_in_order(&ring, 1);
    model_join(t);
    take_the_rest();
}

/* The thief finds the half that stayed, at its new position. */
static void what_a_spill_keeps_can_be_stolen(void)
{
    begin_at(UINT32_MAX - 2, 5);
    model_thread t = model_start(thief, NULL);
    push_all(&ring, 0, 5);
    model_join(t);
    model_assert(spilled.count == 0 || spilled.count == 1 || spilled.count == 3);
    take_the_rest();
}

static void room_is_never_less_than_promised(void)
{
    begin_at(0, 8);
    push_all(&ring, 0, 4);
    model_thread t = model_start(thief, NULL);
    uint32_t room = blz__runq_room(&ring);
    model_assert(room <= HALF);
    push_all(&ring, 4, 4 + room);
    model_assert(spilled.count == 0);
    model_join(t);
    nr_parcels = 4 + room;
    for (unsigned i = nr_parcels; i < 8; i++)
        model_free(parcels[i]);
    take_the_rest();
}

/* A quick look says how much there is, or less, and never nonsense. */
static void look_at_length(void *unused)
{
    (void)unused;
    model_assert(blz__runq_len(&ring) <= CAPACITY);
    model_assert(blz__runq_len(&ring) <= CAPACITY);
}

static void length_is_never_nonsense(void)
{
    begin_at(UINT32_MAX - 2, 6);
    push_all(&ring, 0, 3);
    model_thread t = model_start(look_at_length, NULL);
    pop_in_order(&ring, 2);
    push_all(&ring, 3, 6);
    pop_in_order(&ring, 1);
    model_join(t);
    take_the_rest();
}

/* ---- several thieves ---- */

static void two_thieves_never_take_the_same(void)
{
    begin_at(0, 4);
    push_all(&ring, 0, 3);
    model_thread a = model_start(thief, NULL), b = model_start(second_thief, NULL);
    push(&ring, 3);
    pop_in_order(&ring, 1);
    model_join(a);
    model_join(b);
    take_the_rest();
}

static void a_thief_and_an_owner_at_the_last_task(void)
{
    begin_at(0, 1);
    model_thread a = model_start(thief, NULL), b = model_start(second_thief, NULL);
    push(&ring, 0);
    pop_in_order(&ring, 1);
    model_join(a);
    model_join(b);
    take_the_rest();
}

static void steal_from_the_thief(void *unused)
{
    (void)unused;
    steal(&loot, &second_loot);
    pop_in_order(&second_loot, CAPACITY);
}

/* What is stolen goes behind what the thief has, and can be stolen from there. */
static void a_thief_is_robbed(void)
{
    begin_at(0, 6);
    push_all(&ring, 0, 4);
    push_all(&loot, 4, 6);
    model_thread t = model_start(steal_from_the_thief, NULL);
    steal(&ring, &loot);
    blz_task *task;
    bool loot_has_come = false;
    while ((task = blz__runq_pop(&loot)) != NULL) {
        bool is_loot = parcel_open(task) < 4;
        model_assert(is_loot || !loot_has_come);
        loot_has_come = is_loot;
    }
    model_join(t);
    take_the_rest();
}

static void push_three(void *unused)
{
    (void)unused;
    push_all(&ring, 0, 3);
}

/* Contents reach the third thread through the second. */
static void loot_can_be_stolen_in_turn(void)
{
    begin_at(0, 3);
    model_thread owner = model_start(push_three, NULL);
    model_thread robber = model_start(steal_from_the_thief, NULL);
    steal(&ring, &loot);
    model_join(owner);
    model_join(robber);
    take_the_rest();
}

/* The loot goes into slots from which another has just stolen. */
static void rob(void *unused)
{
    (void)unused;
    steal(&ring, &loot);
    pop_in_order(&loot, 1);
}

static void loot_goes_only_into_free_slots(void)
{
    begin_at(0, 6);
    push_all(&ring, 0, 2);
    push_all(&loot, 2, 6);
    model_thread robber = model_start(steal_from_the_thief, NULL), t = model_start(rob, NULL);
    model_join(robber);
    model_join(t);
    take_the_rest();
}

/* No state twice: the parcels are handed over by what is being modelled. */
#define DEEP .preemptions = 3, .reduce = true

static const struct model models[] = {
    {"owner_and_thief_share_the_tasks", owner_and_thief_share_the_tasks, {DEEP}},
    {"positions_wrap", positions_wrap, {DEEP}},
    {"the_owner_fills_only_what_the_thief_has_left",
     the_owner_fills_only_what_the_thief_has_left,
     {DEEP}},
    {"a_full_ring_wraps", a_full_ring_wraps, {DEEP}},
    {"a_full_ring_spills_while_a_thief_steals", a_full_ring_spills_while_a_thief_steals, {DEEP}},
    {"what_a_spill_keeps_can_be_stolen", what_a_spill_keeps_can_be_stolen, {DEEP}},
    {"room_is_never_less_than_promised", room_is_never_less_than_promised, {DEEP}},
    {"length_is_never_nonsense", length_is_never_nonsense, {DEEP}},
    {"two_thieves_never_take_the_same", two_thieves_never_take_the_same, {DEEP}},
    {"a_thief_and_an_owner_at_the_last_task", a_thief_and_an_owner_at_the_last_task, {DEEP}},
    {"a_thief_is_robbed", a_thief_is_robbed, {DEEP}},
    {"loot_can_be_stolen_in_turn", loot_can_be_stolen_in_turn, {DEEP}},
    {"loot_goes_only_into_free_slots", loot_goes_only_into_free_slots, {DEEP}},
};

MODEL_MAIN(models)
