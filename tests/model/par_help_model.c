/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers of the fork-join pool in the explorer: they are woken for what belongs to what they wait
 * for, and take nothing else. The main thread is the helper, a guest beside one worker; a second
 * thread hands foreign computations to the pool.
 */
#include "par/pool.h"

#include "support/memory.h"
#include "system/futex.h"
#include "system/thread.h"

static blz_pool *pool;
static blz_par *helper;

static blz_pool *new_pool(blz_par_wait_mode waiting)
{
    blz_pool *made;
    int rc = blz_pool_new(&made, &(blz_pool_options){.threads = 1,
                                                     .ring_size = 2,
                                                     .guests = 1,
                                                     .waiting = waiting,
                                                     .allocator = &model_memory});

    model_assert(rc == 0);
    return made;
}

static void begin(blz_par_wait_mode waiting)
{
    pool = new_pool(waiting);
    helper = blz_pool_enter(pool);
}

static void end(void)
{
    for (uint32_t i = 0; i < blz_pool_indices(pool); i++) {
        model_assert(pool->workers[i].isolated == 0);
        model_assert(pool->workers[i].taken == NULL);
    }
    blz_pool_leave(helper);
    model_assert(blz_pool_free(pool) == 0);
}

/* ---- gates ---- */

static uint32_t job_began, part_ran, foreign_began, foreign_ended;

static void reset_gates(void)
{
    job_began = part_ran = foreign_began = foreign_ended = 0;
}

static void open_gate(uint32_t *gate)
{
    blz__store(gate, 1u, RELEASE);
    blz__futex_wake(gate, 2);
}

static void pass_gate(uint32_t *gate)
{
    while (!blz__load(gate, ACQUIRE))
        blz__futex_wait(gate, 0);
}

/* ---- foreign computations ---- */

static void must_not_be_the_helper(blz_par *par, blz_par_job *job)
{
    (void)job;
    model_assert(par != helper);
}

/* Its job is public while it lasts. */
static void fork_foreign(blz_par *par, void *arg)
{
    blz_par_job job;

    (void)arg;
    model_assert(par != helper);
    blz_par_fork(par, &job, must_not_be_the_helper);
    blz__thread_yield();
    (void)!blz_par_unfork(par, &job);
}

static void run_foreign(void *arg)
{
    (void)arg;
    blz_pool_run(pool, fork_foreign, NULL);
}

/* ---- a job that the worker takes ---- */

/* The other one has taken it when this begins to wait. */
static void fork_and_wait(blz_par_job_fn run)
{
    blz_par_job job;

    blz_par_fork(helper, &job, run);
    pass_gate(&job_began);
    model_assert(!blz_par_unfork(helper, &job));
}

static void be_short(blz_par *par, blz_par_job *job)
{
    (void)job;
    model_assert(par != helper);
    open_gate(&job_began);
    model_clock_advance(BLZ_MSEC); /* worth a steal, so that the next fork is published, too */
    blz__thread_yield();           /* the helper is at work */
}

static void run_part(blz_par *par, blz_par_job *job)
{
    (void)job;
    model_assert(par == helper);
    open_gate(&part_ran);
}

/* Somebody must come for a part of it, and there is nobody but the helper. */
static void need_help(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    open_gate(&job_began);
    blz_par_fork(par, &part, run_part);
    pass_gate(&part_ran);
    model_assert(!blz_par_unfork(par, &part));
}

static void a_helper_is_woken_for_a_part(void)
{
    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    fork_and_wait(need_help);
    end();
}

static void a_helper_takes_nothing_of_what_its_thief_does_next(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_foreign, NULL);
    fork_and_wait(be_short);
    model_join(other);
    end();
}

/* Takes the foreign computation on top, if it is there. */
static void yield_once(blz_par *par, blz_par_job *job)
{
    (void)job;
    open_gate(&job_began);
    blz_par_yield(par);
}

static void a_helper_takes_nothing_that_is_foreign_on_top(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_foreign, NULL);
    fork_and_wait(yield_once);
    model_join(other);
    end();
}

/* The helper leaves the part while something foreign is on top; when that is over it must come. */
static void need_help_after_a_yield(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    blz_par_fork(par, &part, run_part);
    open_gate(&job_began);
    blz_par_yield(par);
    pass_gate(&part_ran);
    model_assert(!blz_par_unfork(par, &part));
}

static void a_helper_is_woken_when_nothing_foreign_is_on_top_any_more(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_foreign, NULL);
    fork_and_wait(need_help_after_a_yield);
    model_join(other);
    end();
}

/* A fork that is not shown to others: there is fuel. */
static void fork_private(blz_par *par, blz_par_job *job, blz_par_job_fn run)
{
    blz__store(&par->fuel, 5, RELAXED);
    blz_par_fork(par, job, run);
    blz__store(&par->fuel, 0, RELAXED);
}

/* As need_help, but nobody is told of the part. */
static void need_help_in_secret(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    fork_private(par, &part, run_part);
    open_gate(&job_began);
    pass_gate(&part_ran);
    model_assert(!blz_par_unfork(par, &part));
}

static void a_helper_takes_what_its_thief_does_not_show(void)
{
    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    fork_and_wait(need_help_in_secret);
    end();
}

/* Has a public job, and takes what the helper forks on top of it. */
static void fork_and_yield(blz_par *par, void *arg)
{
    blz_par_job job;

    (void)arg;
    model_assert(par != helper);
    blz_par_fork(par, &job, must_not_be_the_helper);
    open_gate(&foreign_began);
    while (!blz_par_yield(par))
        blz__spin_hint();
    (void)!blz_par_unfork(par, &job);
}

static void run_fork_and_yield(void *arg)
{
    (void)arg;
    blz_pool_run(pool, fork_and_yield, NULL);
}

static void a_helper_takes_nothing_older(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_fork_and_yield, NULL);
    pass_gate(&foreign_began);
    fork_and_wait(be_short);
    model_join(other);
    end();
}

/* ---- scopes ---- */

static int need_help_in_task(blz_par *par, void *arg)
{
    (void)arg;
    if (par != helper)
        need_help(par, NULL);
    return 0;
}

/* The worker has taken the task when this begins to wait. */
static void spawn_and_wait(blz_par_task_fn run)
{
    blz_par_scope scope;

    blz_par_scope_begin(helper, &scope);
    model_assert(blz_par_spawn(helper, &scope, run, NULL) == 0);
    pass_gate(&job_began);
    model_assert(blz_par_scope_end(helper, &scope) == 0);
}

static void who_waits_for_a_scope_is_woken_for_a_part(void)
{
    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    spawn_and_wait(need_help_in_task);
    end();
}

static blz_par_scope *shared;
static uint32_t nr_parts;

static int run_part_as_a_task(blz_par *par, void *arg)
{
    (void)arg;
    model_assert(par == helper);
    if (blz__fetch_add(&nr_parts, 1u, ACQ_REL) == 1)
        open_gate(&part_ran);
    return 0;
}

/* Its parts are tasks of the scope that it is of itself; the second comes while the first is
 * offered, or is being taken. */
static int need_help_with_two_tasks(blz_par *par, void *arg)
{
    (void)arg;
    open_gate(&job_began);
    model_assert(blz_par_spawn(par, shared, run_part_as_a_task, NULL) == 0);
    model_assert(blz_par_spawn(par, shared, run_part_as_a_task, NULL) == 0);
    pass_gate(&part_ran);
    return 0;
}

static void wait_for_who_needs_help(blz_par_task_fn fn)
{
    blz_par_scope scope;

    reset_gates();
    nr_parts = 0;
    shared = &scope;
    begin(BLZ_PAR_WAIT_LEAPFROG);
    blz_par_scope_begin(helper, &scope);
    model_assert(blz_par_spawn(helper, &scope, fn, NULL) == 0);
    pass_gate(&job_began);
    model_assert(blz_par_scope_end(helper, &scope) == 0);
    end();
}

static void who_waits_for_a_scope_is_woken_for_all_its_tasks(void)
{
    wait_for_who_needs_help(need_help_with_two_tasks);
}

/* It has spawned many before, and looks around no more for a while, unless it is asked. */
static int need_help_with_fuel(blz_par *par, void *arg)
{
    worker *w = worker_of(par);

    w->looks = PAR_FIRST_LOOKS;
    w->burst = 9;
    blz__store(&par->fuel, 9, RELAXED);
    return need_help_with_two_tasks(par, arg);
}

static void who_waits_for_a_scope_is_heard_by_who_has_fuel(void)
{
    wait_for_who_needs_help(need_help_with_fuel);
}

static int be_a_short_task(blz_par *par, void *arg)
{
    (void)arg;
    be_short(par, NULL);
    return 0;
}

static void who_waits_for_a_scope_takes_nothing_older(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_fork_and_yield, NULL);
    pass_gate(&foreign_began);
    spawn_and_wait(be_a_short_task);
    model_join(other);
    end();
}

static void who_waits_for_a_scope_takes_nothing_of_what_comes_next(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_foreign, NULL);
    spawn_and_wait(be_a_short_task);
    model_join(other);
    end();
}

/* Takes the foreign computation on top, if it is there; its tasks are offered then. */
static int yield_in_a_task(blz_par *par, void *arg)
{
    (void)arg;
    yield_once(par, NULL);
    return 0;
}

static int be_a_foreign_task(blz_par *par, void *arg)
{
    (void)arg;
    model_assert(par != helper);
    return 0;
}

static void spawn_foreign(blz_par *par, void *arg)
{
    blz_par_scope foreign;

    (void)arg;
    model_assert(par != helper);
    blz_par_scope_begin(par, &foreign);
    model_assert(blz_par_spawn(par, &foreign, be_a_foreign_task, NULL) == 0);
    model_assert(blz_par_scope_end(par, &foreign) == 0);
}

static void run_spawn_foreign(void *arg)
{
    (void)arg;
    blz_pool_run(pool, spawn_foreign, NULL);
}

static void who_waits_for_a_scope_takes_no_task_of_another(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_spawn_foreign, NULL);
    spawn_and_wait(yield_in_a_task);
    model_join(other);
    end();
}

/* ---- isolated regions, in a pool where who waits takes anything ---- */

static uint32_t inside[2]; /* functions of the region on the stack of that thread */

static void go_inside(const blz_par *par, uint32_t by)
{
    inside[blz_par_index(par)] += by;
}

static void must_not_be_inside(blz_par *par, void *arg)
{
    (void)arg;
    model_assert(inside[blz_par_index(par)] == 0);
}

static void run_outside(void *arg)
{
    (void)arg;
    blz_pool_run(pool, must_not_be_inside, NULL);
}

static void be_a_part_inside(blz_par *par, blz_par_job *job)
{
    (void)job;
    go_inside(par, 1);
    open_gate(&part_ran);
    go_inside(par, -1u);
}

/* Waits in turn, for a job that the first one has. */
static void fork_inside(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    go_inside(par, 1);
    open_gate(&job_began);
    blz_par_fork(par, &part, be_a_part_inside);
    pass_gate(&part_ran);
    model_assert(!blz_par_unfork(par, &part));
    go_inside(par, -1u);
}

static void fork_and_wait_inside(blz_par *par, void *arg)
{
    (void)arg;
    go_inside(par, 1);
    fork_and_wait(fork_inside);
    go_inside(par, -1u);
}

static void isolate(blz_par_fn fn)
{
    model_thread other;

    reset_gates();
    inside[0] = inside[1] = 0;
    begin(BLZ_PAR_WAIT_STEAL);
    other = model_start(run_outside, NULL);
    blz_par_isolated(helper, fn, NULL);
    model_join(other);
    end();
}

static void nothing_foreign_is_run_on_top_of_an_isolated_wait(void)
{
    isolate(fork_and_wait_inside);
}

static int fork_inside_a_task(blz_par *par, void *arg)
{
    (void)arg;
    model_assert(par != helper);
    fork_inside(par, NULL);
    return 0;
}

static void spawn_and_wait_inside(blz_par *par, void *arg)
{
    (void)arg;
    go_inside(par, 1);
    spawn_and_wait(fork_inside_a_task);
    go_inside(par, -1u);
}

static void nothing_foreign_is_run_on_top_of_an_isolated_task(void)
{
    isolate(spawn_and_wait_inside);
}

/* ---- tasks that leave a region ---- */

static blz_par_scope scope;

static int be_a_task_outside(blz_par *par, void *arg)
{
    must_not_be_inside(par, arg);
    return 0;
}

/* By the worker, on top of its own wait in the region. */
static void spawn_out_of_the_region(blz_par *par, blz_par_job *job)
{
    (void)job;
    model_assert(par != helper);
    go_inside(par, 1);
    for (int i = 0; i < 3; i++)
        model_assert(blz_par_spawn(par, &scope, be_a_task_outside, NULL) == 0);
    open_gate(&foreign_began);
    go_inside(par, -1u);
}

/* By the helper. */
static void be_helped_inside(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    go_inside(par, 1);
    open_gate(&part_ran);
    blz_par_fork(par, &part, spawn_out_of_the_region);
    pass_gate(&foreign_began);
    model_assert(!blz_par_unfork(par, &part));
    go_inside(par, -1u);
}

/* By the worker. */
static void help_inside(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    go_inside(par, 1);
    open_gate(&job_began);
    blz_par_fork(par, &part, be_helped_inside);
    pass_gate(&part_ran);
    model_assert(!blz_par_unfork(par, &part));
    go_inside(par, -1u);
}

static void wait_in_the_region(blz_par *par, void *arg)
{
    (void)arg;
    go_inside(par, 1);
    fork_and_wait(help_inside);
    go_inside(par, -1u);
}

static void what_leaves_a_region_is_run_outside_of_it(void)
{
    reset_gates();
    inside[0] = inside[1] = 0;
    begin(BLZ_PAR_WAIT_LEAPFROG);
    blz_par_scope_begin(helper, &scope);
    blz_par_isolated(helper, wait_in_the_region, NULL);
    model_assert(blz_par_scope_end(helper, &scope) == 0);
    end();
}

/* ---- from pool to pool and back ---- */

static blz_pool *second;

static int do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    return 0;
}

/* More than one block of tasks, into a scope of another thread. */
static void spawn_some(blz_par *par, void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        model_assert(blz_par_spawn(par, &scope, do_nothing, NULL) == 0);
}

static void pass_job_began(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    pass_gate(&job_began);
}

/* Has a job that is not public, and waits for the other pool: it takes what the helper forks. */
static void fork_private_and_wait_outside(blz_par *par, void *arg)
{
    blz_par_job job;

    (void)arg;
    model_assert(par != helper);
    fork_private(par, &job, must_not_be_the_helper);
    open_gate(&foreign_began);
    blz_pool_run(second, pass_job_began, NULL);
    (void)!blz_par_unfork(par, &job);
}

static void run_fork_private(void *arg)
{
    (void)arg;
    blz_pool_run(pool, fork_private_and_wait_outside, NULL);
}

static void a_helper_takes_nothing_older_that_is_not_shown(void)
{
    model_thread other;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    second = new_pool(BLZ_PAR_WAIT_LEAPFROG);
    other = model_start(run_fork_private, NULL);
    pass_gate(&foreign_began);
    fork_and_wait(be_short);
    model_join(other);
    model_assert(blz_pool_free(second) == 0);
    end();
}

static void go_back(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    blz_pool_run(pool, spawn_some, NULL);
    open_gate(&foreign_began);
    pass_gate(&foreign_ended);
}

static void go_there(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
    open_gate(&job_began);
    blz_pool_run(second, go_back, NULL);
}

/* The worker waits, beneath those tasks, for the end of the scope that they are of. */
static void what_comes_back_leaves_nothing_behind(void)
{
    blz_par_job job;

    reset_gates();
    begin(BLZ_PAR_WAIT_LEAPFROG);
    second = new_pool(BLZ_PAR_WAIT_LEAPFROG);
    blz_par_scope_begin(helper, &scope);
    blz_par_fork(helper, &job, go_there);
    pass_gate(&job_began);
    pass_gate(&foreign_began);
    model_assert(blz_par_scope_end(helper, &scope) == 0);
    open_gate(&foreign_ended);
    model_assert(!blz_par_unfork(helper, &job));
    model_assert(blz_pool_free(second) == 0);
    end();
}

#define SHALLOW                                                     \
    {                                                               \
        .preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true \
    }

static const struct model models[] = {
    {"a_helper_is_woken_for_a_part",
     a_helper_is_woken_for_a_part,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_helper_takes_nothing_of_what_its_thief_does_next",
     a_helper_takes_nothing_of_what_its_thief_does_next,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_helper_takes_nothing_that_is_foreign_on_top", a_helper_takes_nothing_that_is_foreign_on_top,
     SHALLOW},
    {"a_helper_is_woken_when_nothing_foreign_is_on_top_any_more",
     a_helper_is_woken_when_nothing_foreign_is_on_top_any_more, SHALLOW},
    {"a_helper_takes_what_its_thief_does_not_show", a_helper_takes_what_its_thief_does_not_show,
     SHALLOW},
    {"a_helper_takes_nothing_older", a_helper_takes_nothing_older, SHALLOW},
    {"a_helper_takes_nothing_older_that_is_not_shown",
     a_helper_takes_nothing_older_that_is_not_shown,
     {.preemptions = MODEL_NONE, .stale_reads = MODEL_NONE, .reduce = true}},
    {"who_waits_for_a_scope_is_woken_for_a_part", who_waits_for_a_scope_is_woken_for_a_part,
     SHALLOW},
    {"who_waits_for_a_scope_is_woken_for_all_its_tasks",
     who_waits_for_a_scope_is_woken_for_all_its_tasks,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"who_waits_for_a_scope_is_heard_by_who_has_fuel",
     who_waits_for_a_scope_is_heard_by_who_has_fuel,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"who_waits_for_a_scope_takes_nothing_older", who_waits_for_a_scope_takes_nothing_older,
     SHALLOW},
    {"who_waits_for_a_scope_takes_nothing_of_what_comes_next",
     who_waits_for_a_scope_takes_nothing_of_what_comes_next, SHALLOW},
    {"who_waits_for_a_scope_takes_no_task_of_another",
     who_waits_for_a_scope_takes_no_task_of_another, SHALLOW},
    {"nothing_foreign_is_run_on_top_of_an_isolated_wait",
     nothing_foreign_is_run_on_top_of_an_isolated_wait, SHALLOW},
    {"nothing_foreign_is_run_on_top_of_an_isolated_task",
     nothing_foreign_is_run_on_top_of_an_isolated_task, SHALLOW},
    {"what_leaves_a_region_is_run_outside_of_it", what_leaves_a_region_is_run_outside_of_it,
     SHALLOW},
    {"what_comes_back_leaves_nothing_behind", what_comes_back_leaves_nothing_behind, SHALLOW},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, models, sizeof models / sizeof models[0]);
}
