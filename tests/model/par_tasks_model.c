/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that end up with a thread that has not begun their scope, in the explorer: a guest and one
 * worker or two, which take what the other has at certain points. The points are gates, so that
 * there is little else to explore: what counts is who is left with a block, and when the scope
 * goes.
 */
#include "par/pool.h"

#include "support/memory.h"
#include "system/futex.h"

#include <blitz/par_for.h>

#include <errno.h>

/* ---- gates ---- */

enum gate { TASK_HAS_BEGUN, JOB_HAS_BEGUN, TASK_IS_DONE, NR_GATES };

static uint32_t gates[NR_GATES];

static void open_gate(enum gate gate)
{
    blz__store(&gates[gate], 1u, RELAXED);
    blz__futex_wake(&gates[gate], 2);
}

static void pass_gate(enum gate gate)
{
    while (!blz__load(&gates[gate], RELAXED))
        blz__futex_wait(&gates[gate], 0);
}

/* ---- a guest and the workers ---- */

static blz_pool *pool;

static void begin_pool(unsigned workers, blz_par_wait_mode waiting)
{
    int rc = blz_pool_new(&pool, &(blz_pool_options){.threads = workers,
                                                     .ring_size = 2,
                                                     .guests = 1,
                                                     .waiting = waiting,
                                                     .allocator = &model_memory});

    model_assert(rc == 0);
    for (int i = 0; i < NR_GATES; i++)
        gates[i] = 0;
}

static void end_pool(void)
{
    model_assert(blz_pool_free(pool) == 0);
}

static void run_with_workers(unsigned workers, blz_par_wait_mode waiting, blz_par_fn fn)
{
    blz_par *par;

    begin_pool(workers, waiting);
    par = blz_pool_enter(pool);
    fn(par, NULL);
    blz_pool_leave(par);
    end_pool();
}

static void run_as_guest(blz_par_wait_mode waiting, blz_par_fn fn)
{
    run_with_workers(1, waiting, fn);
}

/* In memory of its own, so that it is noticed who looks at it when it is gone. */
static blz_par_scope *begin_scope(blz_par *par)
{
    blz_par_scope *scope = model_alloc(sizeof *scope, sizeof(uint64_t));

    blz_par_scope_begin(par, scope);
    return scope;
}

static void end_scope(blz_par *par, blz_par_scope *scope)
{
    model_assert(blz_par_scope_end(par, scope) == 0);
    model_free(scope);
}

static int do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    return 0;
}

static void spawn(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn)
{
    model_assert(blz_par_spawn(par, scope, fn, NULL) == 0);
}

/* ---- what is offered is taken back ---- */

static blz_par_scope *inner;

static void spawn_for_the_worker(blz_par *par, blz_par_job *job)
{
    (void)job;
    spawn(par, inner, do_nothing);
}

/* In the worker: what it forks may be taken by the guest, which waits for this. */
static void fork_in_a_scope(blz_par *par, blz_par_job *job)
{
    blz_par_job part;

    (void)job;
    open_gate(JOB_HAS_BEGUN);
    inner = begin_scope(par);
    blz_par_fork(par, &part, spawn_for_the_worker);
    if (blz_par_unfork(par, &part))
        spawn_for_the_worker(par, &part);
    end_scope(par, inner);
}

static void wait_for_the_worker(blz_par *par, void *arg)
{
    blz_par_job job;

    (void)arg;
    blz_par_fork(par, &job, fork_in_a_scope);
    pass_gate(JOB_HAS_BEGUN);
    model_assert(!blz_par_unfork_with(par, &job, BLZ_PAR_WAIT_LEAPFROG));
}

/*
 * The guest helps the worker, spawns into a scope of the worker's, offers that task, and goes on
 * waiting. The worker waits for the task, and takes nothing.
 */
static void an_offer_is_not_left_behind(void)
{
    run_as_guest(BLZ_PAR_WAIT_BLOCK, wait_for_the_worker);
}

/* ---- who offers a block looks at its scope afterwards ---- */

static blz_par_scope *outer;

static int say_that_it_is_done(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    open_gate(TASK_IS_DONE);
    return 0;
}

/*
 * In the guest, most likely: the first task is offered at once, and the worker takes it. When this
 * is done the task of the outer scope is run, and on the way to it the second one is offered: all
 * that the guest has of the inner scope.
 */
static void spawn_into_both(blz_par *par, blz_par_job *job)
{
    (void)job;
    open_gate(JOB_HAS_BEGUN);
    spawn(par, inner, say_that_it_is_done);
    spawn(par, inner, do_nothing);
    spawn(par, outer, do_nothing);
    pass_gate(TASK_IS_DONE);
}

static int fork_in_an_inner_scope(blz_par *par, void *arg)
{
    blz_par_job part;

    (void)arg;
    open_gate(TASK_HAS_BEGUN);
    inner = begin_scope(par);
    blz_par_fork(par, &part, spawn_into_both);
    pass_gate(JOB_HAS_BEGUN);
    model_assert(!blz_par_unfork(par, &part));
    end_scope(par, inner);
    return 0;
}

static void spawn_one_for_the_worker(blz_par *par, void *arg)
{
    (void)arg;
    outer = begin_scope(par);
    spawn(par, outer, fork_in_an_inner_scope);
    pass_gate(TASK_HAS_BEGUN);
    end_scope(par, outer);
}

/* The worker may have run the block, and ended the scope, before the guest is through with it. */
static void a_scope_stays_until_its_owner_is_told(void)
{
    run_as_guest(BLZ_PAR_WAIT_STEAL, spawn_one_for_the_worker);
}

/* ---- who runs tasks of several scopes ---- */

/*
 * In the worker: the guest, which waits for the inner scope, takes the first task; when this is
 * done it may take the second one, while the worker begins that of the outer scope.
 */
static int spawn_for_both(blz_par *par, void *arg)
{
    (void)arg;
    open_gate(TASK_HAS_BEGUN);
    spawn(par, inner, say_that_it_is_done);
    spawn(par, inner, do_nothing);
    spawn(par, outer, do_nothing);
    pass_gate(TASK_IS_DONE);
    return 0;
}

static void wait_for_the_inner_scope(blz_par *par, void *arg)
{
    (void)arg;
    outer = begin_scope(par);
    inner = begin_scope(par);
    spawn(par, inner, spawn_for_both);
    pass_gate(TASK_HAS_BEGUN);
    end_scope(par, inner);
    end_scope(par, outer);
}

/* The inner scope ends with the task that the guest has taken, and with it what is claimed there.
 */
static void a_scope_stays_while_it_is_claimed(void)
{
    run_as_guest(BLZ_PAR_WAIT_LEAPFROG, wait_for_the_inner_scope);
}

/* ---- who looks through the lists of another ---- */

static void end_a_scope_with_a_task(blz_par *par, void *arg)
{
    blz_par_scope *scope = begin_scope(par);

    (void)arg;
    spawn(par, scope, say_that_it_is_done);
    spawn(par, scope, do_nothing);
    pass_gate(TASK_IS_DONE);
    end_scope(par, scope);
}

/* The worker has run the first one, and comes for the second. */
static void a_list_stays_while_others_look_through_it(void)
{
    run_as_guest(BLZ_PAR_WAIT_LEAPFROG, end_a_scope_with_a_task);
}

/* ---- several threads have tasks of a scope ---- */

static int do_until_all_is_done(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    open_gate(JOB_HAS_BEGUN);
    pass_gate(TASK_IS_DONE);
    return 0;
}

/* It has offered some before, and has fuel left. */
static int spawn_one_and_wait_for_it(blz_par *par, void *arg)
{
    open_gate(TASK_HAS_BEGUN);
    pass_gate(JOB_HAS_BEGUN);
    blz__store(&worker_of(par)->tasks.is_asked, 0u, RELAXED);
    blz__store(&par->fuel, 9, RELAXED);
    spawn(par, arg, say_that_it_is_done);
    pass_gate(TASK_IS_DONE);
    return 0;
}

static void give_tasks_to_both(blz_par *par, void *arg)
{
    blz_par_scope *scope = begin_scope(par);

    (void)arg;
    model_assert(blz_par_spawn(par, scope, spawn_one_and_wait_for_it, scope) == 0);
    pass_gate(TASK_HAS_BEGUN);
    spawn(par, scope, do_until_all_is_done);
    pass_gate(JOB_HAS_BEGUN);
    end_scope(par, scope);
}

/* The guest waits for two workers, and the one that began last has nothing to give. */
static void who_waits_is_heard_by_all_who_have_tasks(void)
{
    run_with_workers(2, BLZ_PAR_WAIT_LEAPFROG, give_tasks_to_both);
}

/* ---- what others wrote ---- */

static uint32_t results[2];

static void write_seven(uint32_t *result)
{
    blz__plain_write(result);
    *result = 7;
}

static void look_at_the_results(void)
{
    for (int i = 0; i < 2; i++) {
        blz__plain_read(&results[i]);
        model_assert(results[i] == 7);
    }
}

/* Until who began the scope has nothing left to do but wait for two blocks, or one. */
static void wait_for_the_owner(const blz_par_scope *scope)
{
    while (blz__load(&scope->out, RELAXED) > 2)
        blz__spin_hint();
}

static int write_first(blz_par *par, void *arg)
{
    (void)par;
    open_gate(TASK_HAS_BEGUN);
    wait_for_the_owner(arg);
    write_seven(&results[0]);
    return 0;
}

static int write_second(blz_par *par, void *arg)
{
    (void)par;
    open_gate(JOB_HAS_BEGUN);
    wait_for_the_owner(arg);
    write_seven(&results[1]);
    return 0;
}

static void spawn_for_each_worker(blz_par *par, void *arg)
{
    blz_par_scope *scope = begin_scope(par);

    (void)arg;
    model_assert(blz_par_spawn(par, scope, write_first, scope) == 0);
    pass_gate(TASK_HAS_BEGUN);
    model_assert(blz_par_spawn(par, scope, write_second, scope) == 0);
    pass_gate(JOB_HAS_BEGUN);
    end_scope(par, scope);
    look_at_the_results();
}

/* The last one of them tells the guest, and must have seen the other one's. */
static void the_end_of_a_scope_shows_what_all_wrote(void)
{
    run_with_workers(2, BLZ_PAR_WAIT_BLOCK, spawn_for_each_worker);
}

/* ---- broadcasts ---- */

static void write_own(blz_par *par, void *arg)
{
    (void)arg;
    write_seven(&results[blz_par_index(par)]);
}

/* By a thread that is not in the pool, and has nothing but the latch. */
static void the_end_of_a_broadcast_shows_what_all_wrote(void)
{
    begin_pool(2, BLZ_PAR_WAIT_BLOCK);
    model_assert(blz_pool_broadcast(pool, write_own, NULL) == 0);
    look_at_the_results();
    end_pool();
}

static void do_little(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

static bool is_listed(void)
{
    bool listed;

    blz__lock_acquire(&pool->broadcasts.lock);
    listed = pool->broadcasts.first || pool->broadcasts.last;
    blz__lock_release(&pool->broadcasts.lock);
    return listed;
}

static void broadcast_once(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    model_assert(blz_pool_broadcast(pool, do_little, NULL) == 0);
    model_assert(!is_listed()); /* it is in the frame of the call, which has returned */
}

static void a_broadcast_is_in_the_list_until_it_returns(void)
{
    run_as_guest(BLZ_PAR_WAIT_STEAL, broadcast_once);
}

/* ---- cancellation ---- */

static blz_par_cancel cancel;

static void cancel_with_a_reason(void *arg)
{
    (void)arg;
    write_seven(&results[0]);
    blz_par_cancel_set(&cancel, -ECANCELED);
}

static void who_finds_a_cancellation_sees_what_led_to_it(void)
{
    model_thread other;

    cancel = (blz_par_cancel){0};
    other = model_start(cancel_with_a_reason, NULL);
    if (blz_par_cancel_code(&cancel) == -ECANCELED) {
        blz__plain_read(&results[0]);
        model_assert(results[0] == 7);
    }
    model_join(other);
}

#define BOUNDS                                                      \
    {                                                               \
        .preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true \
    }
#define FURTHER                                                     \
    {                                                               \
        .preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true \
    }

static const struct model models[] = {
    {"an_offer_is_not_left_behind", an_offer_is_not_left_behind, BOUNDS},
    {"a_scope_stays_until_its_owner_is_told", a_scope_stays_until_its_owner_is_told, FURTHER},
    {"a_scope_stays_while_it_is_claimed", a_scope_stays_while_it_is_claimed, FURTHER},
    {"a_list_stays_while_others_look_through_it", a_list_stays_while_others_look_through_it,
     FURTHER},
    {"who_waits_is_heard_by_all_who_have_tasks", who_waits_is_heard_by_all_who_have_tasks, BOUNDS},
    {"the_end_of_a_scope_shows_what_all_wrote", the_end_of_a_scope_shows_what_all_wrote, BOUNDS},
    {"a_broadcast_is_in_the_list_until_it_returns", a_broadcast_is_in_the_list_until_it_returns,
     BOUNDS},
    {"the_end_of_a_broadcast_shows_what_all_wrote", the_end_of_a_broadcast_shows_what_all_wrote,
     BOUNDS},
    {"who_finds_a_cancellation_sees_what_led_to_it",
     who_finds_a_cancellation_sees_what_led_to_it,
     {.preemptions = 2}},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, models, sizeof models / sizeof models[0]);
}
