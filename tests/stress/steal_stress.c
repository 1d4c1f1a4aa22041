/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every task runs exactly once, however it travels: from one producer to many thieves, over full
 * rings and the inject queue, with yields at random; with more workers than CPUs, on one CPU alone,
 * and with workers that are kept busy in a poll now and then. Also built with rings of four.
 */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

struct ledger {
    uint32_t *runs; /* of each task; atomic */
    uint64_t finished;
    int yields;  /* at most, in each task */
    bool blocks; /* now and then a task keeps its worker */
};

struct unit {
    BLZ_FRAME;
    struct ledger *ledger;
    int64_t number;
    uint64_t seed;
    uint32_t left;
    int64_t rc;
    blz_future op;
};

/* Spins for about a millisecond. */
static void keep_busy(void)
{
    struct timespec start, now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + (now.tv_nsec - start.tv_nsec) < 1000000);
}

BLZ_ASYNC(unit)
{
    BLZ_BEGIN;
    self->seed = (uint64_t)self->number;
    self->left =
        self->ledger->yields ? random_below(&self->seed, 1 + (uint32_t)self->ledger->yields) : 0;
    for (; self->left > 0; self->left--)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    if (self->ledger->blocks && random_below(&self->seed, 200) == 0)
        keep_busy();
    __atomic_fetch_add(&self->ledger->runs[self->number], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&self->ledger->finished, 1, __ATOMIC_RELAXED);
    BLZ_END(0);
}

struct produces {
    BLZ_FRAME;
    struct ledger *ledger;
    int64_t first, count, batch;
    int64_t i;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

/* All from one worker, in batches that it waits for. */
BLZ_ASYNC(produces)
{
    BLZ_BEGIN;
    while (self->i < self->count) {
        blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
        for (int64_t n = 0; n < self->batch && self->i < self->count; n++, self->i++)
            check(BLZ_SCOPE_SPAWN(&self->scope, unit, .ledger = self->ledger,
                                  .number = self->first + self->i) == 0);
        BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
        check(self->rc == 0);
    }
    BLZ_END(0);
}

static blz_stats produce(const blz_options *options, int producers, int64_t each, int64_t batch,
                         int yields, bool blocks)
{
    struct ledger ledger = {.yields = yields, .blocks = blocks};
    blz_handle *handles = calloc((size_t)producers, sizeof *handles);
    blz_rt *rt = new_rt(options);
    int64_t total = producers * each;
    blz_stats stats;

    ledger.runs = calloc((size_t)total, sizeof *ledger.runs);
    check(handles && ledger.runs);
    for (int p = 0; p < producers; p++)
        check(BLZ_SPAWN_ON(rt, &handles[p], produces, .ledger = &ledger, .first = p * each,
                           .count = each, .batch = batch) == 0);
    for (int p = 0; p < producers; p++)
        check(blz_handle_wait(&handles[p]) == 0 && handles[p].result == 0);
    check(ledger.finished == (uint64_t)total);
    for (int64_t i = 0; i < total; i++)
        check(ledger.runs[i] == 1);
    blz_rt_stats(rt, &stats);
    check(stats.live_tasks == 0);
    check(stats.total.completed == stats.total.spawned + stats.remote_spawned);
    free_rt(rt);
    free(ledger.runs);
    free(handles);
    return stats;
}

static void small_tasks_of_one_producer_are_stolen(void **state)
{
    blz_options options = {.workers = 2};
    blz_stats stats;

    (void)state;
    allow_seconds(60);
    stats = produce(&options, 1, scaled(3000000), 200, 0, false);
    assert_true(stats.total.steals > 0);
}

static void full_rings_spill_while_thieves_are_at_work(void **state)
{
    blz_options options = {.workers = 4};
    blz_stats stats;

    (void)state;
    allow_seconds(60);
    stats = produce(&options, 2, scaled(600000), 1500, 0, false);
    assert_true(stats.total.overflows > 0);
}

static void tasks_yield_at_random(void **state)
{
    blz_options options = {.workers = 2};

    (void)state;
    allow_seconds(60);
    produce(&options, 4, scaled(200000), 300, 6, false);
}

static void there_are_many_more_workers_than_cpus(void **state)
{
    cpu_set_t set;
    blz_options options = {0};

    (void)state;
    allow_seconds(60);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    options.workers = 8 * (unsigned)CPU_COUNT(&set);
    produce(&options, 16, scaled(30000), 200, 3, false);
}

static void there_is_only_one_cpu(void **state)
{
    blz_options options = {.workers = 4};

    (void)state;
    allow_seconds(60);
    use_one_cpu(true);
    produce(&options, 4, scaled(60000), 200, 3, false);
    use_one_cpu(false);
}

static void the_lifo_slot_is_off(void **state)
{
    blz_options options = {.workers = 3, .disable_lifo = true};

    (void)state;
    allow_seconds(60);
    produce(&options, 3, scaled(120000), 300, 2, false);
}

static void stealing_is_off(void **state)
{
    blz_options options = {.workers = 3, .disable_stealing = true};
    blz_stats stats;

    (void)state;
    allow_seconds(60);
    stats = produce(&options, 6, scaled(80000), 300, 2, false);
    assert_int_equal(stats.total.steals, 0);
}

static void workers_are_stuck_now_and_then(void **state)
{
    /* A limit that is reached all the time, so that the watchdog interferes as much as it can. */
    blz_options options = {.workers = 3, .watchdog_ns = 300 * BLZ_USEC};

    (void)state;
    allow_seconds(60);
    produce(&options, 6, scaled(40000), 100, 3, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(small_tasks_of_one_producer_are_stolen),
        TEST(full_rings_spill_while_thieves_are_at_work),
        TEST(tasks_yield_at_random),
        TEST(there_are_many_more_workers_than_cpus),
        TEST(there_is_only_one_cpu),
        TEST(the_lifo_slot_is_off),
        TEST(stealing_is_off),
        TEST(workers_are_stuck_now_and_then),
    };
    return RUN_TESTS(tests);
}
