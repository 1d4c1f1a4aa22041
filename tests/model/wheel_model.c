/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel between threads: its owner, who fires timers and sleeps until the next, against
 * those who insert, remove and reset them, and a second thread that fires, as the watchdog does.
 * Each timer fires once or is removed once; its memory goes as soon as its owner learns of that;
 * and whoever inserts a timer never leaves the wheel's owner asleep beyond it.
 *
 * At the end, whole runtimes with tasks that sleep.
 */
#include "base/assert.h"
#include "sched/park.h"
#include "sched/rt.h"
#include "system/futex.h"

#include <blitz/async.h>

#define MS BLZ_MSEC

enum { NR_TIMERS = 3 };

static blz__wheel wheel;
static parker owner_parker;
static blz_timer *timers[NR_TIMERS];
static int64_t dog_now_ns; /* what the watchdog's clock says */

/* How often each timer fired. A wheel's caller would wake a task, or call back. */
static uint32_t fired[NR_TIMERS];

/* A timer that wakes: the waker only holds the number. */
static void fill(blz_timer *timer, unsigned number)
{
    *timer = (blz_timer){.target.waker = {(void *)(uintptr_t)number, NULL}};
}

static void begin(unsigned count)
{
    blz__wheel_init(&wheel, 0, true);
    owner_parker = (parker){PARK_EMPTY, NULL};
    dog_now_ns = MS;
    for (unsigned i = 0; i < NR_TIMERS; i++) {
        timers[i] = i < count ? model_alloc(sizeof(blz_timer), _Alignof(blz_timer)) : NULL;
        if (timers[i])
            fill(timers[i], i);
        fired[i] = 0;
    }
}

static void insert(unsigned number, int64_t deadline_ns)
{
    blz__wheel_insert(&wheel, timers[number], deadline_ns, true);
}

/* Fires what is due, two at a time; gives the number. */
static size_t fire_as(bool mine, int64_t now_ns)
{
    wheel_fired batch[2];
    size_t n, total = 0;

    do {
        n = blz__wheel_collect(&wheel, now_ns, batch, 2, mine);
        for (size_t i = 0; i < n; i++) {
            model_assert(mine || !batch[i].calls);
            blz__fetch_add(&fired[(uintptr_t)batch[i].target.waker.data], 1u, RELAXED);
        }
        total += n;
    } while (n == 2);
    return total;
}

static size_t fire_until(int64_t now_ns)
{
    return fire_as(true, now_ns);
}

static uint32_t times_fired(unsigned number)
{
    return blz__load(&fired[number], RELAXED);
}

/* The timer is over: it is ours, and its next life may begin anywhere. */
static void reuse_and_free(unsigned number)
{
    blz_timer *timer = timers[number];

    blz__plain_write(&timer->target);
    fill(timer, 99);
    timers[number] = NULL;
    model_free(timer);
}

static void end(void)
{
    BLZ_ASSERT_VALID(blz__wheel_check(&wheel));
    model_assert(!blz__wheel_drop(&wheel));
    model_assert(blz__wheel_next(&wheel, true) == INT64_MAX);
    for (unsigned i = 0; i < NR_TIMERS; i++)
        if (timers[i])
            model_free(timers[i]);
}

/* ---- firing against removing ---- */

static uint32_t removed[NR_TIMERS];

static void remove_and_free(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;

    removed[number] = blz__wheel_remove(timers[number], false);
    reuse_and_free(number);
}

static model_thread start_remover(unsigned number)
{
    removed[number] = 0;
    return model_start_named(remove_and_free, (void *)(uintptr_t)number, "remover");
}

static void a_timer_fires_or_is_removed(void)
{
    begin(1);
    insert(0, MS);
    model_thread remover = start_remover(0);
    fire_until(MS);
    model_join(remover);
    model_assert(times_fired(0) + removed[0] == 1);
    end();
}

/* Neighbours in one slot: who is unlinked when must not matter. */
static void neighbours_are_removed_while_one_fires(void)
{
    begin(3);
    for (unsigned i = 0; i < 3; i++)
        insert(i, MS);
    model_thread first = start_remover(0), second = start_remover(1);
    fire_until(MS);
    model_join(first);
    model_join(second);
    model_assert(times_fired(0) + removed[0] == 1);
    model_assert(times_fired(1) + removed[1] == 1);
    model_assert(times_fired(2) == 1);
    end();
}

/* A timer that waits further up, and moves down while somebody takes it out. */
static void a_timer_is_removed_while_it_moves_down(void)
{
    begin(2);
    insert(0, 70 * MS);
    insert(1, 80 * MS);
    model_thread remover = start_remover(0);
    fire_until(69 * MS);
    fire_until(80 * MS);
    model_join(remover);
    model_assert(times_fired(0) + removed[0] == 1);
    model_assert(times_fired(1) == 1);
    end();
}

/* As a task does that looks whether its sleep is over, without the lock. */
static void look_and_free(void *unused)
{
    (void)unused;
    while (timer_is_armed(timers[0]))
        blz__spin_hint();
    reuse_and_free(0);
}

static void who_sees_that_a_timer_has_fired_may_free_it(void)
{
    begin(1);
    insert(0, MS);
    model_thread looker = model_start_named(look_and_free, NULL, "looker");
    fire_until(MS);
    model_join(looker);
    model_assert(times_fired(0) == 1);
    end();
}

/* ---- two that fire ---- */

static void fire_too(void *unused)
{
    (void)unused;
    fire_as(false, dog_now_ns);
}

static void two_threads_fire_each_timer_once(void)
{
    begin(3);
    for (unsigned i = 0; i < 3; i++)
        insert(i, MS);
    model_thread dog = model_start_named(fire_too, NULL, "watchdog");
    fire_until(MS);
    model_join(dog);
    for (unsigned i = 0; i < 3; i++)
        model_assert(times_fired(i) == 1);
    end();
}

static void one_is_inserted_while_two_threads_fire(void)
{
    begin(2);
    insert(0, MS);
    model_thread dog = model_start_named(fire_too, NULL, "watchdog");
    insert(1, MS);
    fire_until(MS);
    model_join(dog);
    fire_until(2 * MS); /* that tick may have been over already */
    model_assert(times_fired(0) == 1 && times_fired(1) == 1);
    end();
}

/*
 * A callback is the owner's to fire, also if the watchdog looks first. Here its target has the
 * form of a waker: nobody calls it.
 */
static void a_callback_is_left_to_the_owner(void)
{
    begin(2);
    timers[0]->calls = true;
    for (unsigned i = 0; i < 2; i++)
        insert(i, MS);
    model_thread dog = model_start_named(fire_too, NULL, "watchdog");
    fire_until(MS);
    model_join(dog);
    model_assert(times_fired(0) == 1 && times_fired(1) == 1);
    end();
}

static void a_callback_left_to_the_owner_is_removed(void)
{
    begin(2);
    timers[0]->calls = timers[1]->calls = true;
    for (unsigned i = 0; i < 2; i++)
        insert(i, MS);
    model_thread remover = start_remover(0);
    model_thread dog = model_start_named(fire_too, NULL, "watchdog");
    model_join(dog);
    model_assert(times_fired(0) == 0 && times_fired(1) == 0);
    fire_until(MS);
    model_join(remover);
    model_assert(times_fired(0) + removed[0] == 1);
    model_assert(times_fired(1) == 1);
    end();
}

/* ---- resetting ---- */

static enum wheel_reset outcome;

static void reset_to_later(void *unused)
{
    (void)unused;
    outcome = blz__wheel_reset(timers[0], 100 * MS, false);
}

static void a_reset_timer_fires_once_at_either_time(void)
{
    begin(1);
    insert(0, MS);
    model_thread resetter = model_start_named(reset_to_later, NULL, "resetter");
    fire_until(MS);
    model_join(resetter);
    model_assert(times_fired(0) == (outcome == WHEEL_RESET_LATE));
    fire_until(100 * MS);
    model_assert(times_fired(0) == 1);
    end();
}

static void a_timer_is_reset_and_removed_at_once(void)
{
    begin(1);
    insert(0, MS);
    model_thread resetter = model_start_named(reset_to_later, NULL, "resetter");
    removed[0] = blz__wheel_remove(timers[0], true);
    model_join(resetter);
    model_assert(removed[0]);
    end();
}

/* Removed, and armed anew on another wheel, while the first one's owner looks. */
static blz__wheel other_wheel;

static void move_to_the_other_wheel(void *unused)
{
    (void)unused;
    removed[0] = blz__wheel_remove(timers[0], false);
    if (removed[0])
        blz__wheel_insert(&other_wheel, timers[0], MS, true);
}

static void a_timer_moves_to_another_wheel(void)
{
    wheel_fired batch[2];

    begin(1);
    blz__wheel_init(&other_wheel, 0, true);
    insert(0, MS);
    model_thread mover = model_start_named(move_to_the_other_wheel, NULL, "mover");
    fire_until(MS);
    model_join(mover);
    model_assert(times_fired(0) + blz__wheel_collect(&other_wheel, MS, batch, 2, false) == 1);
    end();
}

/* ---- the owner sleeps ---- */

/* As a worker: fires what is due, or sleeps until something is. */
static void serve_until_fired(unsigned number)
{
    while (!times_fired(number)) {
        if (fire_until(model_clock_now()) == 0)
            blz__parker_wait(&owner_parker, blz__wheel_sleep(&wheel));
    }
}

static void insert_and_wake(void *arg)
{
    if (blz__wheel_insert(&wheel, timers[0], model_clock_now() + (int64_t)(uintptr_t)arg, false))
        blz__parker_unpark(&owner_parker);
}

/* Without a timer it sleeps without end: if it is not woken, all sleep. */
static void a_sleeping_owner_is_woken_for_the_first_timer(void)
{
    begin(1);
    model_thread inserter = model_start_named(insert_and_wake, (void *)(uintptr_t)MS, "inserter");
    serve_until_fired(0);
    model_join(inserter);
    end();
}

/* It sleeps for a late one. If it is not woken it fires the early one an hour late. */
static void a_sleeping_owner_is_woken_for_an_earlier_timer(void)
{
    int64_t began;

    begin(2);
    began = model_clock_now();
    insert(1, began + BLZ_HOUR);
    model_thread inserter = model_start_named(insert_and_wake, (void *)(uintptr_t)MS, "inserter");
    serve_until_fired(0);
    model_assert(model_clock_now() < began + BLZ_MINUTE);
    model_join(inserter);
    model_assert(blz__wheel_remove(timers[1], true));
    end();
}

/* It sleeps until the callback is due, while the watchdog moves that. */
static void a_sleeping_owner_calls_what_the_watchdog_left(void)
{
    begin(1);
    timers[0]->calls = true;
    dog_now_ns = model_clock_now() + MS;
    insert(0, dog_now_ns);
    model_thread dog = model_start_named(fire_too, NULL, "watchdog");
    serve_until_fired(0);
    model_join(dog);
    end();
}

static void reset_and_wake(void *unused)
{
    (void)unused;
    if (blz__wheel_reset(timers[0], model_clock_now() + MS, false) == WHEEL_RESET_WAKE)
        blz__parker_unpark(&owner_parker);
}

static void a_sleeping_owner_is_woken_for_a_reset(void)
{
    int64_t began;

    begin(1);
    began = model_clock_now();
    insert(0, began + BLZ_HOUR);
    model_thread resetter = model_start_named(reset_and_wake, NULL, "resetter");
    serve_until_fired(0);
    model_assert(model_clock_now() < began + BLZ_MINUTE);
    model_join(resetter);
    end();
}

/* Two insert, an early one and a late one, in either order: the early one is fired in its time. */
static void insert_late_and_wake(void *unused)
{
    (void)unused;
    if (blz__wheel_insert(&wheel, timers[1], model_clock_now() + BLZ_HOUR, false))
        blz__parker_unpark(&owner_parker);
}

static void a_sleeping_owner_is_woken_by_either_of_two(void)
{
    int64_t began;

    begin(2);
    began = model_clock_now();
    model_thread first = model_start_named(insert_and_wake, (void *)(uintptr_t)MS, "inserter");
    model_thread second = model_start_named(insert_late_and_wake, NULL, "second");
    serve_until_fired(0);
    model_assert(model_clock_now() < began + BLZ_MINUTE);
    model_join(first);
    model_join(second);
    model_assert(blz__wheel_remove(timers[1], true));
    end();
}

/* ---- whole runtimes ---- */

struct sleeper {
    BLZ_FRAME;
    int64_t ns, rc;
    blz_sleep_op op;
};

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, self->ns));
    BLZ_END(self->rc);
}

static const blz_options one_worker = {.workers = 1,
                                       .watchdog_ns = BLZ_NEVER,
                                       .seed = 1,
                                       .shutdown_ns = BLZ_NEVER};

static void a_task_sleeps(void)
{
    int64_t began = model_clock_now();
    blz_rt *rt;

    model_assert(blz_rt_new(&rt, &one_worker) == 0);
    model_assert(BLZ_BLOCK_ON(rt, sleeper, .ns = 5 * MS) == 0);
    model_assert(model_clock_now() >= began + 5 * MS);
    model_assert(blz_rt_free(rt) == 0);
}

/* Cancelled at any moment, also when the timer has fired and the task has not run yet. */
static void a_sleep_is_cancelled(void)
{
    blz_handle handle;
    blz_rt *rt;

    model_assert(blz_rt_new(&rt, &one_worker) == 0);
    model_assert(BLZ_SPAWN_ON(rt, &handle, sleeper, .ns = 5 * MS) == 0);
    blz_handle_cancel(&handle);
    model_assert(blz_handle_wait(&handle) == 0);
    model_assert(handle.result == 0 || handle.result == -ECANCELED);
    model_assert(blz_rt_free(rt) == 0);
}

static uint32_t rung;

static void ring(void *unused)
{
    (void)unused;
    blz__store(&rung, 1u, RELEASE);
    blz__futex_wake(&rung, 1);
}

/* From a thread that is no worker, to a runtime that starts, or sleeps. */
static void a_thread_starts_a_timer(void)
{
    blz_timer timer;
    blz_rt *rt;

    rung = 0;
    model_assert(blz_rt_new(&rt, &one_worker) == 0);
    blz_timer_init(&timer, ring, NULL);
    model_assert(blz_timer_start(&timer, model_clock_now() + MS, rt) == 0);
    while (!blz__load(&rung, ACQUIRE))
        blz__futex_wait(&rung, 0);
    model_assert(!blz_timer_cancel(&timer));
    model_assert(blz_rt_free(rt) == 0);
}

static const struct model models[] = {
    {"a_timer_fires_or_is_removed", a_timer_fires_or_is_removed, {.preemptions = 4}},
    {"neighbours_are_removed_while_one_fires",
     neighbours_are_removed_while_one_fires,
     {.preemptions = 3}},
    {"a_timer_is_removed_while_it_moves_down",
     a_timer_is_removed_while_it_moves_down,
     {.preemptions = 4}},
    {"who_sees_that_a_timer_has_fired_may_free_it",
     who_sees_that_a_timer_has_fired_may_free_it,
     {.preemptions = 4}},
    {"two_threads_fire_each_timer_once", two_threads_fire_each_timer_once, {.preemptions = 3}},
    {"one_is_inserted_while_two_threads_fire",
     one_is_inserted_while_two_threads_fire,
     {.preemptions = 3}},
    {"a_callback_is_left_to_the_owner", a_callback_is_left_to_the_owner, {.preemptions = 3}},
    {"a_callback_left_to_the_owner_is_removed",
     a_callback_left_to_the_owner_is_removed,
     {.preemptions = 3}},
    {"a_sleeping_owner_calls_what_the_watchdog_left",
     a_sleeping_owner_calls_what_the_watchdog_left,
     {.preemptions = 4, .timeouts = MODEL_NONE}},
    {"a_reset_timer_fires_once_at_either_time",
     a_reset_timer_fires_once_at_either_time,
     {.preemptions = 4}},
    {"a_timer_is_reset_and_removed_at_once",
     a_timer_is_reset_and_removed_at_once,
     {.preemptions = 4}},
    {"a_timer_moves_to_another_wheel", a_timer_moves_to_another_wheel, {.preemptions = 4}},
    {"a_sleeping_owner_is_woken_for_the_first_timer",
     a_sleeping_owner_is_woken_for_the_first_timer,
     {.preemptions = 4, .timeouts = MODEL_NONE}},
    {"a_sleeping_owner_is_woken_for_an_earlier_timer",
     a_sleeping_owner_is_woken_for_an_earlier_timer,
     {.preemptions = 4, .timeouts = MODEL_NONE}},
    {"a_sleeping_owner_is_woken_for_a_reset",
     a_sleeping_owner_is_woken_for_a_reset,
     {.preemptions = 4, .timeouts = MODEL_NONE}},
    {"a_sleeping_owner_is_woken_by_either_of_two",
     a_sleeping_owner_is_woken_by_either_of_two,
     {.preemptions = 3, .timeouts = MODEL_NONE}},
    {"a_task_sleeps", a_task_sleeps, {.preemptions = 2, .stale_reads = 1, .reduce = true}},
    {"a_sleep_is_cancelled",
     a_sleep_is_cancelled,
     {.preemptions = 2, .stale_reads = 1, .reduce = true}},
    {"a_thread_starts_a_timer",
     a_thread_starts_a_timer,
     {.preemptions = 2, .stale_reads = 1, .reduce = true}},
};

MODEL_MAIN(models)
