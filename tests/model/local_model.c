/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's own queue behind its biased lock: the owner, for whom it costs next to nothing,
 * against the watchdog that empties it. Every task comes out once, and both see what the other
 * left.
 *
 * The owner's fence is only a promise to the compiler; the watchdog's, as the explorer models it,
 * is one in every thread, wherever it is at that moment. That is what membarrier does.
 */
#include "sched/local.h"
#include "support/parcel.h"

static local_queue local;

static void begin(unsigned count)
{
    local_init(&local, true);
    parcels_new(count);
}

/* ---- the owner ---- */

static void open_unless_null(blz_task *task)
{
    if (task)
        parcel_open(task);
}

/* As blz__worker_push. */
static void push(unsigned number)
{
    blz_task *task = parcel_fill(number), *displaced;
    bool locked = local_enter(&local);

    displaced = local.lifo;
    local.lifo = task;
    local_leave(&local, locked);
    open_unless_null(displaced);
}

static void yield(unsigned number)
{
    blz_task *task = parcel_fill(number);
    bool locked = local_enter(&local);

    task_list_append(&local.yielded, task);
    local_leave(&local, locked);
}

static void resume_yielded(void)
{
    bool locked = local_enter(&local);

    task_list_join(&local.resumed, &local.yielded);
    local_leave(&local, locked);
}

static void pop(void)
{
    bool locked = local_enter(&local);
    blz_task *task = local.lifo;

    if (task)
        local.lifo = NULL;
    else
        task = task_list_take(&local.resumed);
    local_leave(&local, locked);
    open_unless_null(task);
}

/* ---- the watchdog ---- */

static void empty(void)
{
    task_list tasks = {NULL, NULL, 0};
    blz_task *task;

    if (!blz__local_empty(&local, &tasks))
        model_assert(tasks.count == 0);
    while ((task = task_list_take(&tasks)) != NULL)
        parcel_open(task);
}

static void empty_once(void *unused)
{
    (void)unused;
    empty();
}

static void empty_twice(void *unused)
{
    (void)unused;
    empty();
    empty();
}

/* All threads have finished: none is inside, and what is left comes out. */
static void end(void)
{
    model_assert(blz__load(&local.lock.inside, RELAXED) == 0);
    model_assert(blz__load(&local.lock.shared, RELAXED) != BIASED_LOCK_AWAITED);
    empty();
    model_assert(!local.lifo && !local.yielded.first && !local.resumed.first);
    parcels_free();
}

/* ---- models ---- */

static void a_pushed_task_is_popped_or_rescued(void)
{
    begin(1);
    model_thread dog = model_start(empty_twice, NULL);
    push(0);
    pop();
    model_join(dog);
    end();
}

static void the_owner_pushes_after_a_rescue(void)
{
    begin(3);
    push(0);
    model_thread dog = model_start(empty_once, NULL);
    push(1);
    push(2);
    pop();
    model_join(dog);
    end();
}

static void yielded_tasks_are_resumed_or_rescued(void)
{
    begin(3);
    yield(0);
    yield(1);
    model_thread dog = model_start(empty_once, NULL);
    resume_yielded();
    yield(2);
    pop();
    model_join(dog);
    end();
}

/* The runtime has one watchdog, but nothing here depends on it. */
static void two_watchdogs_take_turns(void)
{
    begin(2);
    push(0);
    model_thread dog = model_start(empty_once, NULL), other = model_start(empty_once, NULL);
    push(1);
    model_join(dog);
    model_join(other);
    end();
}

static void what_cannot_be_revoked_stays(void)
{
    task_list tasks = {NULL, NULL, 0};

    begin(1);
    local.revocable = false;
    push(0);
    model_assert(!blz__local_empty(&local, &tasks) && !tasks.first);
    pop();
    local.revocable = true;
    end();
}

static const struct model models[] = {
    {"a_pushed_task_is_popped_or_rescued", a_pushed_task_is_popped_or_rescued, {.preemptions = 3}},
    {"the_owner_pushes_after_a_rescue", the_owner_pushes_after_a_rescue, {.preemptions = 4}},
    {"yielded_tasks_are_resumed_or_rescued",
     yielded_tasks_are_resumed_or_rescued,
     {.preemptions = 4}},
    {"two_watchdogs_take_turns", two_watchdogs_take_turns, {.preemptions = 3}},
    {"what_cannot_be_revoked_stays", what_cannot_be_revoked_stays, {0}},
};

MODEL_MAIN(models)
