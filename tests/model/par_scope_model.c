/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes of the fork-join pool in the explorer, with blocks of two tasks: whoever runs them, the
 * end of the scope sees what they wrote, nobody touches the scope after it, and nobody waits for
 * ever.
 */
#include "par/pool.h"

#include "support/memory.h"

/* By a guest, beside one worker. */
static void run_in_pool(blz_par_wait_mode waiting, blz_par_fn fn)
{
    blz_pool *pool;
    blz_par *par;
    int rc = blz_pool_new(&pool, &(blz_pool_options){.threads = 1,
                                                     .ring_size = 2,
                                                     .guests = 1,
                                                     .waiting = waiting,
                                                     .allocator = &model_memory});

    model_assert(rc == 0);
    par = blz_pool_enter(pool);
    fn(par, NULL);
    blz_pool_leave(par);
    model_assert(blz_pool_free(pool) == 0);
}

/* ---- tasks ---- */

struct parts {
    blz_par_scope scope; /* in memory of its own, which is gone when it has ended */
    uint32_t *results;
};

static int write_seven(blz_par *par, void *arg)
{
    (void)par;
    blz__plain_write((uint32_t *)arg);
    *(uint32_t *)arg = 7;
    return 0;
}

static struct parts *begin(blz_par *par, uint32_t *results)
{
    struct parts *parts = model_alloc(sizeof *parts, sizeof(uint64_t));

    parts->results = results;
    blz_par_scope_begin(par, &parts->scope);
    return parts;
}

static void end(blz_par *par, struct parts *parts, int count)
{
    uint32_t *results = parts->results;

    model_assert(blz_par_scope_end(par, &parts->scope) == 0);
    model_free(parts);
    for (int i = 0; i < count; i++) {
        blz__plain_read(&results[i]);
        model_assert(results[i] == 7);
    }
}

static void spawn_one(blz_par *par, void *arg)
{
    uint32_t results[1] = {0};
    struct parts *parts = begin(par, results);

    (void)arg;
    model_assert(blz_par_spawn(par, &parts->scope, write_seven, &results[0]) == 0);
    end(par, parts, 1);
}

static void spawn_three(blz_par *par, void *arg)
{
    uint32_t results[3] = {0};
    struct parts *parts = begin(par, results);

    (void)arg;
    for (int i = 0; i < 3; i++)
        model_assert(blz_par_spawn(par, &parts->scope, write_seven, &results[i]) == 0);
    end(par, parts, 3);
}

/* The other one may be done before this is. */
static int spawn_another(blz_par *par, void *arg)
{
    struct parts *parts = arg;

    model_assert(blz_par_spawn(par, &parts->scope, write_seven, &parts->results[1]) == 0);
    return write_seven(par, &parts->results[0]);
}

static void spawn_one_that_spawns(blz_par *par, void *arg)
{
    uint32_t results[2] = {0};
    struct parts *parts = begin(par, results);

    (void)arg;
    model_assert(blz_par_spawn(par, &parts->scope, spawn_another, parts) == 0);
    end(par, parts, 2);
}

/* ---- broadcasts ---- */

static void count_call(blz_par *par, void *arg)
{
    (void)par;
    blz__plain_write((uint32_t *)arg);
    ++*(uint32_t *)arg;
}

/* The only worker sleeps, perhaps, or is about to. */
static void broadcast_twice(blz_par *par, void *arg)
{
    uint32_t count = 0;

    (void)arg;
    for (uint32_t i = 1; i <= 2; i++) {
        model_assert(blz_pool_broadcast(blz_par_pool(par), count_call, &count) == 0);
        blz__plain_read(&count);
        model_assert(count == i);
    }
}

/* ---- the models ---- */

static void a_worker_calls_each_broadcast_once(void)
{
    run_in_pool(BLZ_PAR_WAIT_STEAL, broadcast_twice);
}

static void a_task_is_run_by_either(void)
{
    run_in_pool(BLZ_PAR_WAIT_STEAL, spawn_one);
}

static void a_task_is_waited_for_by_helping(void)
{
    run_in_pool(BLZ_PAR_WAIT_LEAPFROG, spawn_one);
}

static void a_task_is_waited_for_by_blocking(void)
{
    run_in_pool(BLZ_PAR_WAIT_BLOCK, spawn_one);
}

static void blocks_are_divided(void)
{
    run_in_pool(BLZ_PAR_WAIT_LEAPFROG, spawn_three);
}

static void a_task_spawns_where_it_runs(void)
{
    run_in_pool(BLZ_PAR_WAIT_STEAL, spawn_one_that_spawns);
}

static void who_waits_is_told_of_new_tasks(void)
{
    run_in_pool(BLZ_PAR_WAIT_LEAPFROG, spawn_one_that_spawns);
}

#define BOUNDS                                             \
    {                                                      \
        .preemptions = 2, .stale_reads = 1, .reduce = true \
    }

/* Larger ones: the same loads are in those above, which read old values. */
#define FRESH                                                       \
    {                                                               \
        .preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true \
    }

static const struct model models[] = {
    {"a_worker_calls_each_broadcast_once",
     a_worker_calls_each_broadcast_once,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_task_is_run_by_either", a_task_is_run_by_either, BOUNDS},
    {"a_task_is_waited_for_by_helping", a_task_is_waited_for_by_helping, BOUNDS},
    {"a_task_is_waited_for_by_blocking", a_task_is_waited_for_by_blocking, FRESH},
    {"blocks_are_divided", blocks_are_divided, FRESH},
    {"a_task_spawns_where_it_runs", a_task_spawns_where_it_runs, FRESH},
    {"who_waits_is_told_of_new_tasks", who_waits_is_told_of_new_tasks, FRESH},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, models, sizeof models / sizeof models[0]);
}
