/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle set: that no queued task is ever left to sleepers, and that the counts are exact
 * whatever the order in which workers park, are claimed, and leave.
 *
 * The first half runs small workers that take the steps of sched/loop.c in its order, with the
 * real inject queue and parkers. A worker that has found a task never comes back, as if the task
 * took for ever: so every task needs a worker of its own, and if one is not woken, all sleep. The
 * second half calls the idle set alone.
 */
#include "base/assert.h"
#include "sched/idle.h"
#include "sched/inject.h"
#include "sched/park.h"
#include "support/parcel.h"

#include <string.h>

enum { MAX_WORKERS = 65 };

static idle_set idle;
static uint64_t bits[2];
static inject queue;
static parker parkers[MAX_WORKERS];

static void begin(uint32_t nr_workers)
{
    bits[0] = bits[1] = 0;
    memset(&idle, 0, sizeof idle);
    idle.bits = bits;
    idle.nr_workers = nr_workers;
    memset(&queue, 0, sizeof queue);
    memset(parkers, 0, sizeof parkers);
}

/* ---- small workers ---- */

static void notify(void)
{
    int index = blz__idle_claim(&idle);

    if (index >= 0)
        blz__parker_unpark(&parkers[index]);
}

/* As prepare_to_park. False: there is work, and we have been claimed for it. */
static bool may_sleep(uint32_t self, bool searching)
{
    blz__idle_park(&idle, self, searching);
    if (!inject_has_work(&queue))
        return true;
    int index = blz__idle_claim(&idle);
    if (index == (int)self)
        return false;
    if (index >= 0)
        blz__parker_unpark(&parkers[index]);
    return true;
}

/* As blz__worker_take_share: what it leaves, others may have looked for in vain. */
static blz_task *take(void)
{
    blz_task *task = blz__inject_take(&queue, 1).first;

    if (task && inject_len(&queue) > 0)
        notify();
    return task;
}

/* Returns when it has found a task. */
static void work(uint32_t self)
{
    bool searching = false;

    for (;;) {
        blz_task *task = take();

        if (!task && !searching && (searching = blz__idle_search(&idle)))
            task = take();
        if (task) {
            if (searching && blz__idle_found(&idle) && inject_has_work(&queue))
                notify();
            parcel_open(task);
            return;
        }
        if (may_sleep(self, searching)) {
            blz__parker_wait(&parkers[self], INT64_MAX);
            searching = blz__idle_unpark(&idle, self);
        } else {
            searching = true;
        }
    }
}

static void worker(void *arg)
{
    work((uint32_t)(uintptr_t)arg);
}

static model_thread start_worker(uintptr_t index)
{
    return model_start_named(worker, (void *)index, "worker");
}

static void queue_parcel(unsigned number)
{
    model_assert(blz__inject_spawn(&queue, parcel_fill(number)));
    notify();
}

static void second_producer(void *unused)
{
    (void)unused;
    queue_parcel(1);
}

/* All have found a task: nobody searches, nobody is parked. */
static void all_must_be_awake(void)
{
    model_assert(blz__load(&idle.word, RELAXED) == 0);
    model_assert(blz__load(&bits[0], RELAXED) == 0 && blz__load(&bits[1], RELAXED) == 0);
    parcels_free();
}

static void a_worker_is_woken_for_a_task(void)
{
    begin(1);
    parcels_new(1);
    model_thread w = start_worker(0);
    queue_parcel(0);
    model_join(w);
    all_must_be_awake();
}

static void each_task_wakes_a_worker(void)
{
    begin(2);
    parcels_new(2);
    model_thread a = start_worker(0), b = start_worker(1);
    queue_parcel(0);
    queue_parcel(1);
    model_join(a);
    model_join(b);
    all_must_be_awake();
}

/* The last searcher passes on what came while others relied on it. */
static void a_batch_wakes_one_worker_after_the_other(void)
{
    task_list batch = {NULL, NULL, 0};

    begin(2);
    parcels_new(2);
    model_thread a = start_worker(0), b = start_worker(1);
    task_list_append(&batch, parcel_fill(0));
    task_list_append(&batch, parcel_fill(1));
    blz__inject_push(&queue, &batch);
    notify();
    model_join(a);
    model_join(b);
    all_must_be_awake();
}

static void two_producers_wake_two_workers(void)
{
    begin(2);
    parcels_new(2);
    model_thread a = start_worker(0), b = start_worker(1);
    model_thread other = model_start_named(second_producer, NULL, "producer");
    queue_parcel(0);
    model_join(other);
    model_join(a);
    model_join(b);
    all_must_be_awake();
}

/* ---- the set alone ---- */

static uint32_t claims, claimed;     /* by blz__idle_claim; by those who found themselves claimed */
static int32_t balance[MAX_WORKERS]; /* the same of each worker, the one minus the other */

/* Neither half of the word has ever gone below zero. */
static void counts_must_be_possible(void)
{
    uint64_t word = blz__load(&idle.word, RELAXED);

    model_assert(idle_searching(word) <= idle.nr_workers);
    model_assert(idle_parked(word) <= idle.nr_workers);
}

/* False: nobody needs to be woken. */
static bool claim_one(void)
{
    int index = blz__idle_claim(&idle);

    if (index >= 0) {
        blz__fetch_add(&claims, 1u, RELAXED);
        blz__fetch_add(&balance[index], 1, RELAXED);
    }
    return index >= 0;
}

static void claim(void *unused)
{
    (void)unused;
    claim_one();
    counts_must_be_possible();
}

/* A worker that was woken by its driver or its mailbox. */
static void leave(void *arg)
{
    uint32_t self = (uint32_t)(uintptr_t)arg;

    if (blz__idle_unpark(&idle, self)) {
        blz__fetch_add(&claimed, 1u, RELAXED);
        blz__fetch_sub(&balance[self], 1, RELAXED);
    }
    counts_must_be_possible();
}

static model_thread start_leaving(uintptr_t worker)
{
    return model_start_named(leave, (void *)worker, "leaver");
}

static void begin_parked(uint32_t nr_workers, uint32_t first, uint32_t second)
{
    begin(nr_workers);
    claims = claimed = 0;
    memset(balance, 0, sizeof balance);
    blz__idle_park(&idle, first, false);
    if (second != first)
        blz__idle_park(&idle, second, false);
}

/* How many sleep, and that word and bitmap agree on it. */
static uint32_t sleepers(void)
{
    BLZ_ASSERT_VALID(blz__idle_check(&idle));
    return idle_parked(blz__load(&idle.word, RELAXED));
}

/* All have left: who was claimed knows of it, and nobody sleeps. */
static void all_must_have_left(void)
{
    model_assert(claims == claimed && sleepers() == 0);
    for (int i = 0; i < MAX_WORKERS; i++)
        model_assert(balance[i] == 0);
}

static void searchers_must_be(uint32_t count)
{
    model_assert(idle_searching(blz__load(&idle.word, RELAXED)) == count);
}

/* The claimer has taken the worker off the count, and clears its bit in a moment. */
static void a_claimed_worker_leaves(void)
{
    begin_parked(2, 0, 0);
    model_thread a = start_leaving(0);
    claim(NULL);
    model_join(a);
    all_must_have_left();
    searchers_must_be(claims);
}

/* One leaves; whom the claim meets decides who sleeps on. */
static void one_leaves_while_one_of_two_is_claimed_of(uint32_t nr_workers, uint32_t first,
                                                      uint32_t second)
{
    begin_parked(nr_workers, first, second);
    model_thread a = start_leaving(first);
    claim(NULL);
    model_join(a);
    model_assert(claims == 1);
    model_assert(sleepers() == claimed);
    searchers_must_be(1);
    leave((void *)(uintptr_t)second);
    all_must_have_left();
}

static void one_leaves_while_one_of_two_is_claimed(void)
{
    one_leaves_while_one_of_two_is_claimed_of(2, 0, 1);
}

static void workers_beyond_the_first_word(void)
{
    one_leaves_while_one_of_two_is_claimed_of(65, 64, 0);
}

static void workers_beyond_the_first_word_the_other_way_round(void)
{
    one_leaves_while_one_of_two_is_claimed_of(65, 0, 64);
}

/* The one that gives back what it took off the count for another. */
static void both_leave_while_one_is_claimed(void)
{
    begin_parked(2, 0, 1);
    model_thread a = start_leaving(0), b = start_leaving(1);
    claim(NULL);
    model_join(a);
    model_join(b);
    all_must_have_left();
    searchers_must_be(claims);
}

static void claim_and_find(void *unused)
{
    (void)unused;
    if (claim_one())
        blz__idle_found(&idle); /* as if the worker had */
    counts_must_be_possible();
}

static void one_leaves_while_two_are_claimed(void)
{
    begin_parked(2, 0, 1);
    model_thread a = start_leaving(0);
    model_thread c = model_start_named(claim_and_find, NULL, "claimer");
    claim_and_find(NULL);
    model_join(a);
    model_join(c);
    leave((void *)(uintptr_t)1);
    all_must_have_left();
    searchers_must_be(0);
}

/* Two that queue at once wake one worker: the other relies on it. */
static void two_claims_wake_one(void)
{
    begin_parked(2, 0, 1);
    model_thread c = model_start_named(claim, NULL, "claimer");
    claim(NULL);
    model_join(c);
    model_assert(claims == 1 && sleepers() == 1);
    searchers_must_be(1);
}

static void park_again(void *unused)
{
    (void)unused;
    leave((void *)(uintptr_t)0);
    blz__idle_park(&idle, 0, false);
    counts_must_be_possible();
}

/* A claim may meet the worker's next sleep. */
static void a_worker_leaves_and_parks_again(void)
{
    begin_parked(2, 0, 1);
    model_thread a = model_start_named(park_again, NULL, "leaver");
    claim_and_find(NULL);
    claim_and_find(NULL);
    model_join(a);
    model_assert(sleepers() == 2 + claimed - claims);
    leave((void *)(uintptr_t)0);
    leave((void *)(uintptr_t)1);
    all_must_have_left();
    searchers_must_be(0);
}

/* ---- searchers ---- */

static uint32_t searching, last;

static void search_and_find(void *unused)
{
    (void)unused;
    if (!blz__idle_search(&idle))
        return;
    blz__fetch_add(&searching, 1u, RELAXED);
    if (blz__idle_found(&idle))
        blz__fetch_add(&last, 1u, RELAXED);
}

static void search_and_park(void *unused)
{
    (void)unused;
    if (!blz__idle_search(&idle))
        return;
    blz__fetch_add(&searching, 1u, RELAXED);
    if (blz__idle_park(&idle, 0, true))
        blz__fetch_add(&last, 1u, RELAXED);
}

/* Whether they overlap or not, somebody is the last of them. */
static void there_is_always_a_last_searcher(void)
{
    begin(4);
    searching = last = 0;
    model_thread a = model_start(search_and_find, NULL), b = model_start(search_and_park, NULL);
    search_and_find(NULL);
    model_join(a);
    model_join(b);
    model_assert(searching >= 1 && last >= 1 && last <= searching);
    searchers_must_be(0);
    model_assert(sleepers() <= 1);
}

static const struct model models[] = {
    {"a_worker_is_woken_for_a_task", a_worker_is_woken_for_a_task, {.preemptions = 4}},
    {"each_task_wakes_a_worker", each_task_wakes_a_worker, {.reduce = true}},
    {"a_batch_wakes_one_worker_after_the_other",
     a_batch_wakes_one_worker_after_the_other,
     {.reduce = true}},
    {"two_producers_wake_two_workers",
     two_producers_wake_two_workers,
     {.preemptions = 1, .reduce = true}},
    {"a_claimed_worker_leaves", a_claimed_worker_leaves, {.preemptions = 4}},
    {"one_leaves_while_one_of_two_is_claimed",
     one_leaves_while_one_of_two_is_claimed,
     {.preemptions = 4}},
    {"workers_beyond_the_first_word", workers_beyond_the_first_word, {.preemptions = 4}},
    {"workers_beyond_the_first_word_the_other_way_round",
     workers_beyond_the_first_word_the_other_way_round,
     {.preemptions = 4}},
    {"both_leave_while_one_is_claimed", both_leave_while_one_is_claimed, {.preemptions = 3}},
    {"one_leaves_while_two_are_claimed", one_leaves_while_two_are_claimed, {.preemptions = 3}},
    {"two_claims_wake_one", two_claims_wake_one, {.preemptions = 4}},
    {"a_worker_leaves_and_parks_again", a_worker_leaves_and_parks_again, {.preemptions = 3}},
    {"there_is_always_a_last_searcher", there_is_always_a_last_searcher, {.preemptions = 3}},
};

MODEL_MAIN(models)
