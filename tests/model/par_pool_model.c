/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole pool in the explorer: it starts, takes computations from outside, and ends, whatever its
 * workers are doing at that moment. A wake-up that is lost anywhere is a deadlock here.
 */
#include "par/pool.h"

#include "support/memory.h"
#include "system/clock.h"
#include "system/futex.h"

#include <errno.h>

static blz_pool *new_pool(unsigned threads, blz_par_wait_mode waiting)
{
    blz_pool *pool;
    int rc = blz_pool_new(&pool, &(blz_pool_options){.threads = threads,
                                                     .ring_size = 2,
                                                     .guests = 1,
                                                     .waiting = waiting,
                                                     .allocator = &model_memory});

    model_assert(rc == 0);
    return pool;
}

static void free_pool(blz_pool *pool)
{
    uint64_t counters;

    model_assert(blz_pool_free(NULL) == 0);
    counters = blz__load(&pool->sleep.counters, RELAXED);
    model_assert(sleep_nr_asleep(counters) <= pool->nr_workers);
    model_assert(blz_pool_free(pool) == 0);
}

static void a_pool_starts_and_ends(void)
{
    free_pool(new_pool(1, BLZ_PAR_WAIT_STEAL));
}

static uint32_t begun_by;

static void note_start(unsigned index, void *arg)
{
    blz__plain_write((uint32_t *)arg);
    *(uint32_t *)arg = index + 1;
}

static void who_makes_a_pool_sees_that_it_has_begun(void)
{
    blz_pool *pool;
    int rc;

    begun_by = 0;
    rc = blz_pool_new(&pool, &(blz_pool_options){.threads = 1,
                                                 .ring_size = 2,
                                                 .guests = 1,
                                                 .on_thread_start = note_start,
                                                 .hook_arg = &begun_by,
                                                 .allocator = &model_memory});
    model_assert(rc == 0);
    blz__plain_read(&begun_by);
    model_assert(begun_by == 1);
    free_pool(pool);
}

/* ---- computations ---- */

static void write_seven(blz_par *par, void *arg)
{
    (void)par;
    blz__plain_write((uint32_t *)arg);
    *(uint32_t *)arg = 7;
}

static void a_computation_is_run_and_its_result_seen(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    uint32_t result = 0;

    blz_pool_run(pool, write_seven, &result);
    blz__plain_read(&result);
    model_assert(result == 7);
    free_pool(pool);
}

static void run_seven(void *arg)
{
    uint32_t result = 0;

    blz_pool_run(arg, write_seven, &result);
    blz__plain_read(&result);
    model_assert(result == 7);
}

static void two_threads_run_computations(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    model_thread other = model_start(run_seven, pool);

    run_seven(pool);
    model_join(other);
    free_pool(pool);
}

/* ---- two workers ---- */

static uint32_t nr_met;

/* Returns when two are in here at once. */
static void meet(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    if (blz__fetch_add(&nr_met, 1u, RELAXED) + 1 == 2)
        blz__futex_wake(&nr_met, 2);
    while (blz__load(&nr_met, RELAXED) < 2)
        blz__futex_wait(&nr_met, 1);
}

static void run_meet(void *arg)
{
    blz_pool_run(arg, meet, NULL);
}

/*
 * The second is posted while the worker that was woken for the first is still looking, and so wakes
 * nobody; that worker does, before it runs what it found.
 */
static void a_worker_wakes_another_before_it_runs_a_job(void)
{
    blz_pool *pool = new_pool(2, BLZ_PAR_WAIT_STEAL);
    model_thread other;

    nr_met = 0;
    other = model_start(run_meet, pool);
    run_meet(pool);
    model_join(other);
    free_pool(pool);
}

/* ---- forks ---- */

struct fork {
    blz_par_job job;
    uint32_t result;
};

static void run_fork(blz_par *par, blz_par_job *job)
{
    write_seven(par, &blz_container_of(job, struct fork, job)->result);
}

/* The first fork, so it is published; the other worker may take it or not. */
static void fork_one(blz_par *par, void *arg)
{
    struct fork *fork = model_alloc(sizeof *fork, sizeof(uint64_t));

    (void)arg;
    fork->result = 0;
    blz_par_fork(par, &fork->job, run_fork);
    if (blz_par_unfork(par, &fork->job))
        write_seven(par, &fork->result);
    blz__plain_read(&fork->result);
    model_assert(fork->result == 7);
    model_free(fork);
}

static void fork_in(blz_par_wait_mode waiting)
{
    blz_pool *pool = new_pool(2, waiting);

    blz_pool_run(pool, fork_one, NULL);
    free_pool(pool);
}

static void a_fork_is_joined_by_stealing(void)
{
    fork_in(BLZ_PAR_WAIT_STEAL);
}

static void a_fork_is_joined_by_leapfrogging(void)
{
    fork_in(BLZ_PAR_WAIT_LEAPFROG);
}

static void a_fork_is_joined_by_blocking(void)
{
    fork_in(BLZ_PAR_WAIT_BLOCK);
}

/* Neither branch forks, and each waits for the other. */
static void join_two_that_meet(blz_par *par, void *arg)
{
    blz_par_join(par, meet, arg, meet, arg);
}

static void the_first_fork_is_seen_by_others(void)
{
    blz_pool *pool = new_pool(2, BLZ_PAR_WAIT_STEAL);

    nr_met = 0;
    blz_pool_run(pool, join_two_that_meet, NULL);
    free_pool(pool);
}

/* ---- guests ---- */

static void a_guest_forks(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);

    fork_one(par, NULL);
    blz_pool_leave(par);
    free_pool(pool);
}

static void run_meet_job(blz_par *par, blz_par_job *job)
{
    (void)job;
    meet(par, NULL);
}

/* Nobody else can come but the worker, which looks at the places of guests as they are taken. */
static void a_guest_meets_the_worker(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);
    blz_par_job job;
    struct fork filler;

    nr_met = 0;
    model_clock_advance(BLZ_MSEC);
    blz_par_fork(par, &job, run_meet_job);
    blz__store(&par->fuel, (int32_t)PAR_FUEL_ASKED, RELAXED);
    blz_par_fork(par, &filler.job, run_fork);
    meet(par, NULL);
    (void)!blz_par_unfork(par, &filler.job);
    model_assert(!blz_par_unfork(par, &job));
    blz_pool_leave(par);
    free_pool(pool);
}

static void make_calm(blz_pool *pool)
{
    pool->calm_ticks = BLZ_MSEC; /* the watcher looks again, as often as it takes */
    blz__store(&pool->calm_until, (uint64_t)blz__clock_ns() + BLZ_MSEC, RELAXED);
    blz__par_sleep_post(&pool->sleep, 0); /* who looks for work has not announced anything yet */
}

/*
 * The pool is calm, so nothing is published, if there is a watcher. If the worker has gone to sleep
 * too early to be that, the fork is not kept private.
 */
static void a_fork_in_a_calm_is_found(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);

    nr_met = 0;
    make_calm(pool);
    blz_pool_run(pool, join_two_that_meet, NULL);
    blz_pool_leave(par);
    free_pool(pool);
}

static int meet_as_a_task(blz_par *par, void *arg)
{
    meet(par, arg);
    return 0;
}

static void spawn_two_that_meet(blz_par *par, void *arg)
{
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    model_assert(blz_par_spawn_fifo(par, &scope, meet_as_a_task, NULL) == 0);
    model_assert(blz_par_spawn_fifo(par, &scope, meet_as_a_task, NULL) == 0);
    model_assert(blz_par_scope_end(par, &scope) == 0);
}

/* The same with tasks: nobody takes what is in a list by force, so it is offered; tasks that begin
 * in their order, when the first does. */
static void a_task_in_a_calm_is_found(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);

    nr_met = 0;
    make_calm(pool);
    blz_pool_run(pool, spawn_two_that_meet, NULL);
    blz_pool_leave(par);
    free_pool(pool);
}

static void spawn_and_meet(blz_par *par, void *arg)
{
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    model_assert(blz_par_spawn(par, &scope, meet_as_a_task, NULL) == 0);
    meet(par, NULL);
    model_assert(blz_par_scope_end(par, &scope) == 0);
}

/* The same where the one who spawns does not come to run tasks. */
static void a_task_in_a_calm_is_found_while_its_scope_goes_on(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);

    nr_met = 0;
    make_calm(pool);
    spawn_and_meet(par, NULL);
    blz_pool_leave(par);
    free_pool(pool);
}

static uint32_t nr_run;

static int count_as_a_task(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    blz__fetch_add(&nr_run, 1u, RELEASE);
    blz__futex_wake(&nr_run, 1);
    return 0;
}

static void spawn_to_count(blz_par *par, blz_par_scope *scope)
{
    model_assert(blz_par_spawn(par, scope, count_as_a_task, NULL) == 0);
}

static void end_when_counted(blz_par *par, blz_par_scope *scope, uint32_t count)
{
    uint32_t seen;

    while ((seen = blz__load(&nr_run, ACQUIRE)) < count)
        blz__futex_wait(&nr_run, seen);
    model_assert(blz_par_scope_end(par, scope) == 0);
}

static void spawn_two_and_wait(blz_par *par, void *arg)
{
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    spawn_to_count(par, &scope);
    spawn_to_count(par, &scope);
    end_when_counted(par, &scope, 2);
}

/* The first one is shown. Then it has fuel, and looks around no more for a while, unless it is
 * asked. */
static void spawn_with_fuel_and_wait(blz_par *par, void *arg)
{
    worker *w = worker_of(par);
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    spawn_to_count(par, &scope);
    w->looks = PAR_FIRST_LOOKS;
    w->burst = 9;
    blz__store(&par->fuel, 9, RELAXED);
    spawn_to_count(par, &scope);
    spawn_to_count(par, &scope);
    end_when_counted(par, &scope, 3);
}

/* By a guest, beside one worker. */
static void count_tasks(blz_par_fn fn, bool in_a_calm)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);

    nr_run = 0;
    if (in_a_calm)
        make_calm(pool);
    blz_pool_run(pool, fn, NULL);
    blz_pool_leave(par);
    free_pool(pool);
}

/* The second one comes while the first is offered, or is being taken. */
static void two_tasks_are_found_while_their_scope_goes_on(void)
{
    count_tasks(spawn_two_and_wait, false);
}

static void two_tasks_in_a_calm_are_found_while_their_scope_goes_on(void)
{
    count_tasks(spawn_two_and_wait, true);
}

static void tasks_of_who_has_fuel_are_found(void)
{
    count_tasks(spawn_with_fuel_and_wait, false);
}

/* Keeps a worker busy until the two have met. */
static void wait_for_the_meeting(blz_par *par, void *arg)
{
    uint32_t met;

    (void)par, (void)arg;
    while ((met = blz__load(&nr_met, RELAXED)) < 2)
        blz__futex_wait(&nr_met, met);
}

static void run_wait_for_the_meeting(void *arg)
{
    blz_pool_run(arg, wait_for_the_meeting, NULL);
}

/* The same, where the watcher is given something else to do: then the other one must look. */
static void a_fork_in_a_calm_is_found_though_the_watcher_is_busy(void)
{
    blz_pool *pool = new_pool(2, BLZ_PAR_WAIT_STEAL);
    blz_par *par = blz_pool_enter(pool);
    model_thread other;

    nr_met = 0;
    make_calm(pool);
    other = model_start(run_wait_for_the_meeting, pool);
    blz_pool_run(pool, join_two_that_meet, NULL);
    model_join(other);
    blz_pool_leave(par);
    free_pool(pool);
}

static void visit(void *arg)
{
    blz_par *par = blz_pool_enter(arg);

    if (par)
        blz_pool_leave(par);
}

static void a_place_has_one_guest_at_a_time(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_STEAL);
    model_thread other = model_start(visit, pool);

    visit(pool);
    model_join(other);
    free_pool(pool);
}

static int do_nothing_more(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    return 0;
}

/* It leaves memory to the pool. */
static void visit_with_a_task(void *arg)
{
    blz_par *par = blz_pool_enter(arg);
    blz_par_scope scope;

    blz__store(&nr_met, 1u, RELAXED);
    blz_par_scope_begin(par, &scope);
    model_assert(blz_par_spawn(par, &scope, do_nothing_more, NULL) == 0);
    model_assert(blz_par_scope_end(par, &scope) == 0);
    blz_pool_leave(par);
}

static void a_pool_is_freed_after_its_guest(void)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_BLOCK);
    model_thread guest;

    nr_met = 0;
    guest = model_start(visit_with_a_task, pool);
    while (!blz__load(&nr_met, RELAXED)) /* it is in */
        blz__spin_hint();
    while (blz_pool_free(pool) == -EBUSY)
        blz__spin_hint();
    model_join(guest);
}

/* ---- two pools ---- */

struct through {
    blz_pool *pool;
    uint32_t result;
};

static void run_through(blz_par *par, void *arg)
{
    struct through *t = arg;

    (void)par;
    blz_pool_run(t->pool, write_seven, &t->result);
}

/* The worker of the one sleeps in its own pool until that of the other is done. */
static void a_pool_runs_in_another(void)
{
    blz_pool *outer = new_pool(1, BLZ_PAR_WAIT_STEAL);
    struct through t = {new_pool(1, BLZ_PAR_WAIT_STEAL), 0};

    blz_pool_run(outer, run_through, &t);
    blz__plain_read(&t.result);
    model_assert(t.result == 7);
    free_pool(outer);
    free_pool(t.pool);
}

static void do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

static void run_nothing(void *arg)
{
    blz_pool_run(arg, do_nothing, NULL);
}

/* Its worker is woken by another computation, just when the inner pool is about to wake it. */
static void a_pool_ends_before_the_one_that_it_ran_in(void)
{
    blz_pool *outer = new_pool(1, BLZ_PAR_WAIT_STEAL);
    struct through t = {new_pool(1, BLZ_PAR_WAIT_STEAL), 0};
    model_thread other = model_start(run_nothing, outer);

    blz_pool_run(outer, run_through, &t);
    model_join(other);
    free_pool(outer);
    free_pool(t.pool);
}

static void broadcast_through(blz_par *par, void *arg)
{
    struct through *t = arg;

    (void)par;
    model_assert(blz_pool_broadcast(t->pool, write_seven, &t->result) == 0);
}

/* The same, by a broadcast. */
static void a_pool_ends_before_the_one_that_it_broadcast_in(void)
{
    blz_pool *outer = new_pool(1, BLZ_PAR_WAIT_STEAL);
    struct through t = {new_pool(1, BLZ_PAR_WAIT_STEAL), 0};
    model_thread other = model_start(run_nothing, outer);

    blz_pool_run(outer, broadcast_through, &t);
    model_join(other);
    free_pool(outer);
    free_pool(t.pool);
}

/* ---- a thread that two pools need ---- */

struct both {
    blz_pool *home, *visited;
    uint32_t result;
    bool broadcasts;
};

static void call_home(blz_par *par, void *arg)
{
    struct both *b = arg;

    (void)par;
    if (b->broadcasts)
        model_assert(blz_pool_broadcast(b->home, write_seven, &b->result) == 0);
    else
        blz_pool_run(b->home, write_seven, &b->result);
}

static void broadcast_as_a_guest(blz_par *par, void *arg)
{
    struct both *b = arg;
    blz_par *guest = blz_pool_enter(b->visited);

    (void)par;
    model_assert(blz_pool_broadcast(b->visited, call_home, b) == 0);
    blz_pool_leave(guest);
}

/* It sleeps in the pool that it visits, and is the only one for what comes to its own. */
static void visit_and_be_called(bool broadcasts)
{
    struct both b = {.home = new_pool(1, BLZ_PAR_WAIT_STEAL),
                     .visited = new_pool(1, BLZ_PAR_WAIT_STEAL),
                     .broadcasts = broadcasts};

    blz_pool_run(b.home, broadcast_as_a_guest, &b);
    blz__plain_read(&b.result);
    model_assert(b.result == 7);
    free_pool(b.home);
    free_pool(b.visited);
}

static void who_sleeps_elsewhere_is_woken_for_a_computation(void)
{
    visit_and_be_called(false);
}

static void who_sleeps_elsewhere_is_woken_for_a_broadcast(void)
{
    visit_and_be_called(true);
}

static void visit_and_free(blz_par *par, void *arg)
{
    struct both *b = arg;
    blz_par *guest = blz_pool_enter(b->visited);

    (void)par;
    model_assert(blz_pool_broadcast(b->visited, do_nothing, NULL) == 0);
    blz_pool_leave(guest);
    free_pool(b->visited);
}

/* Somebody is about to wake it there for another computation. */
static void a_pool_is_freed_by_who_slept_in_it(void)
{
    struct both b = {.home = new_pool(1, BLZ_PAR_WAIT_STEAL),
                     .visited = new_pool(1, BLZ_PAR_WAIT_STEAL)};
    model_thread other = model_start(run_nothing, b.home);

    blz_pool_run(b.home, visit_and_free, &b);
    model_join(other);
    free_pool(b.home);
}

static const struct model models[] = {
    {"a_pool_starts_and_ends", a_pool_starts_and_ends, {.preemptions = 2}},
    {"who_makes_a_pool_sees_that_it_has_begun",
     who_makes_a_pool_sees_that_it_has_begun,
     {.preemptions = 1}},
    {"a_computation_is_run_and_its_result_seen",
     a_computation_is_run_and_its_result_seen,
     {.preemptions = 2, .stale_reads = 2, .reduce = true}},
    {"two_threads_run_computations",
     two_threads_run_computations,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_worker_wakes_another_before_it_runs_a_job",
     a_worker_wakes_another_before_it_runs_a_job,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"the_first_fork_is_seen_by_others",
     the_first_fork_is_seen_by_others,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_fork_in_a_calm_is_found",
     a_fork_in_a_calm_is_found,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_task_in_a_calm_is_found",
     a_task_in_a_calm_is_found,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_task_in_a_calm_is_found_while_its_scope_goes_on",
     a_task_in_a_calm_is_found_while_its_scope_goes_on,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"two_tasks_are_found_while_their_scope_goes_on",
     two_tasks_are_found_while_their_scope_goes_on,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"tasks_of_who_has_fuel_are_found",
     tasks_of_who_has_fuel_are_found,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"two_tasks_in_a_calm_are_found_while_their_scope_goes_on",
     two_tasks_in_a_calm_are_found_while_their_scope_goes_on,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_fork_in_a_calm_is_found_though_the_watcher_is_busy",
     a_fork_in_a_calm_is_found_though_the_watcher_is_busy,
     {.preemptions = MODEL_NONE, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_fork_is_joined_by_stealing",
     a_fork_is_joined_by_stealing,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_fork_is_joined_by_leapfrogging",
     a_fork_is_joined_by_leapfrogging,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_fork_is_joined_by_blocking",
     a_fork_is_joined_by_blocking,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_guest_forks", a_guest_forks, {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_guest_meets_the_worker",
     a_guest_meets_the_worker,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_place_has_one_guest_at_a_time",
     a_place_has_one_guest_at_a_time,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_pool_is_freed_after_its_guest",
     a_pool_is_freed_after_its_guest,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_pool_runs_in_another",
     a_pool_runs_in_another,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_pool_ends_before_the_one_that_it_ran_in",
     a_pool_ends_before_the_one_that_it_ran_in,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_pool_ends_before_the_one_that_it_broadcast_in",
     a_pool_ends_before_the_one_that_it_broadcast_in,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"who_sleeps_elsewhere_is_woken_for_a_computation",
     who_sleeps_elsewhere_is_woken_for_a_computation,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"who_sleeps_elsewhere_is_woken_for_a_broadcast",
     who_sleeps_elsewhere_is_woken_for_a_broadcast,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"a_pool_is_freed_by_who_slept_in_it",
     a_pool_is_freed_by_who_slept_in_it,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, models, sizeof models / sizeof models[0]);
}
