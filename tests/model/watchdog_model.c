/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog's sleep: it sleeps without a time limit while all workers are parked, and one that
 * wakes up must never find it asleep for good. Here the test plays the workers: each says that it
 * is awake and pokes, in the order of sched/loop.c, and is then stuck in a poll until the
 * watchdog has noticed. If it is never noticed, all sleep.
 *
 * At the end, whole runtimes in which a stuck worker is helped.
 */
#include "base/alloc.h"
#include "sched/rt.h"
#include "system/futex.h"

#include <blitz/async.h>

#include <string.h>

enum { LIMIT_NS = 100 };

static blz_rt rt;
static blz_worker workers[2];
static blz_task *task;
static uint32_t noticed[2];

static void on_stuck(const blz_stuck *stuck, void *unused)
{
    (void)unused;
    blz__store(&noticed[stuck->worker], 1u, RELEASE);
    blz__futex_wake(&noticed[stuck->worker], 1);
}

/* All workers are parked. */
static void begin(uint32_t nr_workers)
{
    memset(&rt, 0, sizeof rt);
    memset(workers, 0, sizeof workers);
    rt.nr_workers = nr_workers;
    rt.workers = workers;
    rt.allocator = blz__system_allocator;
    rt.options.watchdog_ns = LIMIT_NS;
    rt.options.on_stuck = on_stuck;
    for (uint32_t i = 0; i < nr_workers; i++) {
        workers[i].index = i;
        workers[i].parked_at = 1;
        blz__wheel_init(&workers[i].wheel, 0, true);
        noticed[i] = 0;
    }
    task = model_alloc(sizeof(blz_task) + sizeof(blz_future), _Alignof(blz_task));
    task->id = 2;
    task->origin = (uintptr_t) "task at test";
    model_assert(blz__watchdog_start(&rt) == 0);
}

static void end(void)
{
    blz__watchdog_stop(&rt);
    model_free(task);
}

/* As park does after its sleep, and before it. */
static void wake_up(blz_worker *w)
{
    blz__swap(&w->parked_at, (uint64_t)0, SEQ_CST);
    blz__watchdog_poke(&rt);
}

static void go_to_sleep(blz_worker *w)
{
    blz__store(&w->parked_at, (uint64_t)1, RELAXED);
}

/* A poll that ends when the watchdog has noticed that it takes long. */
static void be_stuck(blz_worker *w)
{
    blz__store(&w->current, task, RELAXED);
    while (!blz__load(&noticed[w->index], ACQUIRE))
        blz__futex_wait(&noticed[w->index], 0);
    blz__store(&w->current, (blz_task *)NULL, RELAXED);
}

/* ---- models ---- */

static void it_wakes_up_with_the_worker(void)
{
    begin(1);
    wake_up(&workers[0]);
    be_stuck(&workers[0]);
    end();
}

static void it_wakes_up_again(void)
{
    begin(1);
    wake_up(&workers[0]);
    go_to_sleep(&workers[0]);
    wake_up(&workers[0]);
    be_stuck(&workers[0]);
    end();
}

static void second_worker(void *unused)
{
    (void)unused;
    wake_up(&workers[1]);
    be_stuck(&workers[1]);
}

static void it_wakes_up_with_either_of_two(void)
{
    begin(2);
    model_thread second = model_start(second_worker, NULL);
    wake_up(&workers[0]);
    go_to_sleep(&workers[0]);
    model_join(second);
    end();
}

static void it_stops_whether_asleep_or_not(void)
{
    begin(1);
    end();
}

static void wake_first(void *unused)
{
    (void)unused;
    wake_up(&workers[0]);
}

static void it_stops_while_it_is_poked(void)
{
    begin(1);
    model_thread first = model_start(wake_first, NULL);
    blz__watchdog_stop(&rt);
    model_join(first);
    model_free(task);
}

/* ---- whole runtimes ---- */

static blz_rt *whole;
static uint32_t rescued;

struct child {
    BLZ_FRAME;
};

BLZ_ASYNC(child)
{
    BLZ_BEGIN;
    blz__store(&rescued, 1u, RELEASE);
    blz__futex_wake(&rescued, 1);
    BLZ_END(0);
}

/* Blocks its thread until its child has run, which is in the LIFO slot of that very thread. */
struct parent {
    BLZ_FRAME;
    int64_t rc;
};

BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN(child);
    model_assert(self->rc == 0);
    while (!blz__load(&rescued, ACQUIRE))
        blz__futex_wait(&rescued, 0);
    BLZ_END(9);
}

static void what_a_stuck_worker_keeps_is_run_by_another(void)
{
    blz_options options = {.workers = 2,
                           .watchdog_ns = LIMIT_NS,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};

    rescued = 0;
    model_assert(blz_rt_new(&whole, &options) == 0);
    model_assert(BLZ_BLOCK_ON(whole, parent) == 9);
    model_assert(blz_rt_free(whole) == 0);
}

/* Blocks its thread until the watchdog has noticed. */
struct long_poll {
    BLZ_FRAME;
};

BLZ_ASYNC(long_poll)
{
    BLZ_BEGIN;
    while (!blz__load(&noticed[0], ACQUIRE))
        blz__futex_wait(&noticed[0], 0);
    BLZ_END(9);
}

/* The worker starts, parks, and is woken for a long poll, while the watchdog goes to sleep. */
static void a_worker_that_is_woken_is_watched(void)
{
    blz_options options = {.workers = 1,
                           .watchdog_ns = LIMIT_NS,
                           .on_stuck = on_stuck,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};
    blz_handle handle;

    noticed[0] = 0;
    model_assert(blz_rt_new(&whole, &options) == 0);
    model_assert(blz__rt_start(whole, false) == 0);
    model_assert(BLZ_SPAWN_ON(whole, &handle, long_poll) == 0);
    model_assert(blz_handle_wait(&handle) == 0 && handle.result == 9);
    model_assert(blz_rt_free(whole) == 0);
}

static const struct model models[] = {
    {"it_wakes_up_with_the_worker", it_wakes_up_with_the_worker, {.preemptions = 3}},
    {"it_wakes_up_again", it_wakes_up_again, {.preemptions = 3}},
    {"it_wakes_up_with_either_of_two", it_wakes_up_with_either_of_two, {0}},
    {"it_stops_whether_asleep_or_not", it_stops_whether_asleep_or_not, {.preemptions = 4}},
    {"it_stops_while_it_is_poked", it_stops_while_it_is_poked, {.preemptions = 3}},
    {"what_a_stuck_worker_keeps_is_run_by_another",
     what_a_stuck_worker_keeps_is_run_by_another,
     {.preemptions = MODEL_NONE, .stale_reads = 1}},
    {"a_worker_that_is_woken_is_watched",
     a_worker_that_is_woken_is_watched,
     {.preemptions = 1, .stale_reads = 2, .reduce = true}},
};

MODEL_MAIN(models)
