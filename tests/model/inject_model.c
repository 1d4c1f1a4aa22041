/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inject queue: producers, workers that take, and the one that closes it. What is queued comes
 * out once and in order; what is refused was never queued; after the close nothing new is.
 */
#include "sched/inject.h"
#include "support/parcel.h"

#include <string.h>

static inject queue;

static void begin(unsigned count)
{
    memset(&queue, 0, sizeof queue);
    parcels_new(count);
}

/* Opens what it takes, which must be in order; returns how many. */
static uint32_t take(uint32_t max)
{
    task_list taken = blz__inject_take(&queue, max);
    uint32_t count = taken.count;
    int64_t last = -1;
    blz_task *task;

    model_assert(count <= max);
    while ((task = task_list_take(&taken)) != NULL) {
        int64_t number = parcel_open(task);
        model_assert(number > last);
        last = number;
    }
    return count;
}

static void take_one(void *unused)
{
    (void)unused;
    take(1);
}

static void take_two(void *unused)
{
    (void)unused;
    take(2);
}

/* All have finished: the length is right, and what is left can be taken. */
static void end(void)
{
    uint64_t len = inject_len(&queue);

    model_assert(take(MAX_PARCELS) == len);
    model_assert(inject_len(&queue) == 0 && queue.list.count == 0);
    parcels_free();
}

static void push_batch(unsigned from, unsigned to)
{
    task_list batch = {NULL, NULL, 0};

    for (unsigned i = from; i < to; i++)
        task_list_append(&batch, parcel_fill(i));
    blz__inject_push(&queue, &batch);
    model_assert(batch.first == NULL && batch.count == 0);
}

/* ---- producers and takers ---- */

static void tasks_come_out_once_and_in_order(void)
{
    begin(4);
    model_thread taker = model_start(take_two, NULL);
    model_assert(blz__inject_spawn(&queue, parcel_fill(0)));
    push_batch(1, 4);
    take(1);
    model_join(taker);
    end();
}

/* One walks the list without the lock while others take and push. */
static void what_a_taker_leaves_stays_in_front(void)
{
    begin(4);
    push_batch(0, 3);
    model_thread first = model_start(take_one, NULL), second = model_start(take_one, NULL);
    push_batch(3, 4);
    model_join(first);
    model_join(second);
    end();
}

static uint32_t said;

static void push_and_say(void *unused)
{
    (void)unused;
    push_batch(0, 1);
    blz__store(&said, 1u, RELEASE);
}

/* Whoever has been told of a push finds it, unless another took it. */
static void length_is_seen_by_who_knows_of_the_push(void)
{
    begin(1);
    said = 0;
    model_thread producer = model_start(push_and_say, NULL);
    if (blz__load(&said, ACQUIRE)) {
        model_assert(inject_len(&queue) == 1);
        model_assert(take(1) == 1);
    }
    model_join(producer);
    end();
}

/* ---- a worker that parks ---- */

static uint32_t parked;

/* The two halves of the pair: see idle.h. */
static void push_and_look(void *saw_parked)
{
    push_batch(0, 1);
    *(bool *)saw_parked = blz__load(&parked, SEQ_CST);
}

static void a_parking_worker_or_the_producer_sees_the_other(void)
{
    bool saw_parked = false;

    begin(1);
    parked = 0;
    model_thread producer = model_start(push_and_look, &saw_parked);
    blz__swap(&parked, 1u, SEQ_CST);
    bool saw_work = inject_has_work(&queue);
    model_join(producer);
    model_assert(saw_work || saw_parked);
    end();
}

/* ---- closing ---- */

static uint32_t nr_refused;
static uint32_t closed;

/* A refused task is the caller's: it has not been queued, so opening it is no second time. */
static void spawn(unsigned number)
{
    bool was_closed = blz__load(&closed, ACQUIRE);

    if (blz__inject_spawn(&queue, parcel_fill(number))) {
        model_assert(!was_closed);
        return;
    }
    parcel_open(parcels[number]);
    blz__fetch_add(&nr_refused, 1u, RELAXED);
}

static void spawn_two(void *unused)
{
    (void)unused;
    spawn(0);
    spawn(1);
}

static void close_queue(void)
{
    blz__inject_close(&queue);
    blz__store(&closed, 1u, RELEASE);
}

static void a_spawn_is_queued_or_refused(void)
{
    begin(3);
    nr_refused = closed = 0;
    model_thread producer = model_start(spawn_two, NULL), taker = model_start(take_one, NULL);
    close_queue();
    spawn(2);
    model_join(producer);
    model_join(taker);
    model_assert(nr_refused >= 1 && queue.spawned + nr_refused == 3);
    end();
}

/* A task that exists already is woken after the close, too. */
static void push_first(void *unused)
{
    (void)unused;
    push_batch(0, 1);
}

static void a_closed_queue_still_takes_tasks_that_exist(void)
{
    begin(2);
    nr_refused = closed = 0;
    model_thread producer = model_start(push_first, NULL);
    close_queue();
    spawn(1);
    model_assert(nr_refused == 1);
    model_join(producer);
    end();
}

static const struct model models[] = {
    {"tasks_come_out_once_and_in_order", tasks_come_out_once_and_in_order, {.preemptions = 3}},
    {"what_a_taker_leaves_stays_in_front", what_a_taker_leaves_stays_in_front, {0}},
    {"length_is_seen_by_who_knows_of_the_push",
     length_is_seen_by_who_knows_of_the_push,
     {.preemptions = 4}},
    {"a_parking_worker_or_the_producer_sees_the_other",
     a_parking_worker_or_the_producer_sees_the_other,
     {.preemptions = 4}},
    {"a_spawn_is_queued_or_refused", a_spawn_is_queued_or_refused, {0}},
    {"a_closed_queue_still_takes_tasks_that_exist",
     a_closed_queue_still_takes_tasks_that_exist,
     {.preemptions = 4}},
};

MODEL_MAIN(models)
