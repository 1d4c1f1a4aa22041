/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes of the fork-join pool: tasks from everywhere, in order, errors, memory. */
#include "par/pool.h"

#include "par.h"

#include <sched.h>
#include <string.h>

static blz_pool *new_pool(unsigned threads, blz_par_wait_mode waiting)
{
    return new_pool_with(&(blz_pool_options){.threads = threads, .waiting = waiting});
}

/* Runs the function in pools of one, two and four threads that wait in each way. */
static void in_all_pools(blz_par_fn fn, void *arg)
{
    for (unsigned threads = 1; threads <= 4; threads *= 2)
        for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
            blz_pool *pool = new_pool(threads, (blz_par_wait_mode)waiting);
            assert_int_equal(blz_pool_run(pool, fn, arg), 0);
            assert_int_equal(blz_pool_free(pool), 0);
        }
}

static int count_one(blz_par *par, void *arg)
{
    (void)par;
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
    return 0;
}

/* ---- many ---- */

static void spawn_many(blz_par *par, void *arg)
{
    static const int counts[] = {0, 1, 2, 60, 61, 62, 200, 5000};

    (void)arg;
    for (int i = 0; i < 8; i++) {
        blz_par_scope scope;
        int count = 0;

        blz_par_scope_begin(par, &scope);
        for (int k = 0; k < counts[i]; k++)
            check((k % 3 ? blz_par_spawn : blz_par_spawn_fifo)(par, &scope, count_one, &count) ==
                  0);
        check(blz_par_scope_end(par, &scope) == 0);
        check(count == counts[i]);
    }
}

static void a_scope_ends_when_all_tasks_are_done(void **state)
{
    (void)state;
    in_all_pools(spawn_many, NULL);
}

/* ---- order ---- */

struct orders {
    int seen[200], nr_seen;
};

struct step {
    struct orders *orders;
    int number;
};

static int note(blz_par *par, void *arg)
{
    struct step *step = arg;

    (void)par;
    if (step->orders->nr_seen < 200)
        step->orders->seen[step->orders->nr_seen] = step->number;
    step->orders->nr_seen++;
    return 0;
}

static void spawn_in_both_orders(blz_par *par, void *arg)
{
    struct orders *orders = arg;
    struct step steps[200];
    blz_par_scope scope;

    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < 200; i++) {
        steps[i] = (struct step){orders, i};
        check((i % 2 ? blz_par_spawn : blz_par_spawn_fifo)(par, &scope, note, &steps[i]) == 0);
    }
    check(orders->nr_seen == 0); /* none is run by spawning */
    check(blz_par_scope_end(par, &scope) == 0);
}

static void check_orders(const struct orders *orders)
{
    assert_int_equal(orders->nr_seen, 200);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(orders->seen[i], 199 - 2 * i); /* the last one first */
        assert_int_equal(orders->seen[100 + i], 2 * i); /* then, the first one first */
    }
}

static void tasks_of_one_thread_begin_in_their_order(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    struct orders orders = {.nr_seen = 0};
    int rc = blz_pool_run(pool, spawn_in_both_orders, &orders);

    (void)state;
    free_pool(pool); /* first: what fails below leaves nobody behind */
    assert_int_equal(rc, 0);
    check_orders(&orders);
}

struct busy {
    blz_par_job job;
    int began, may_end;
};

static void be_busy(blz_par *par, blz_par_job *job)
{
    struct busy *busy = blz_container_of(job, struct busy, job);

    (void)par;
    __atomic_store_n(&busy->began, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&busy->may_end, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void spawn_beside_one_who_is_busy(blz_par *par, void *arg)
{
    struct busy busy = {.began = 0};

    blz_par_fork(par, &busy.job, be_busy);
    while (!__atomic_load_n(&busy.began, __ATOMIC_ACQUIRE))
        sched_yield();
    blz__store(&par->fuel, 1000, RELAXED); /* nobody has asked */
    blz__store(&worker_of(par)->tasks.is_asked, 0u, RELAXED);
    spawn_in_both_orders(par, arg);
    __atomic_store_n(&busy.may_end, 1, __ATOMIC_RELEASE);
    check(!blz_par_unfork(par, &busy.job));
}

/* The only other one has something to do. */
static void tasks_begin_in_their_order_if_nobody_takes_any(void **state)
{
    struct orders orders = {.nr_seen = 0};

    (void)state;
    in_pool_of(2, spawn_beside_one_who_is_busy, &orders);
    check_orders(&orders);
}

/* ---- tasks that spawn ---- */

struct tree {
    blz_par_scope *scope;
    int *count;
    struct tree *children;
    int depth;
};

enum { WIDTH = 3, DEPTH = 7, NODES = 3280 };

static struct tree nodes[NODES];

static int visit(blz_par *par, void *arg)
{
    struct tree *node = arg;

    for (int i = 0; node->children && i < WIDTH; i++)
        check((i ? blz_par_spawn : blz_par_spawn_fifo)(par, node->scope, visit,
                                                       &node->children[i]) == 0);
    return count_one(par, node->count);
}

static void plant(blz_par_scope *scope, int *count)
{
    int next = 1;

    for (int i = 0; i < NODES; i++) {
        nodes[i] = (struct tree){.scope = scope, .count = count};
        if (next < NODES) {
            nodes[i].children = &nodes[next];
            next += WIDTH;
        }
    }
}

static void visit_all(blz_par *par, void *arg)
{
    blz_par_scope scope;
    int count = 0;

    (void)arg;
    for (int i = 0; i < 5; i++) {
        plant(&scope, &count);
        blz_par_scope_begin(par, &scope);
        check(blz_par_spawn(par, &scope, visit, &nodes[0]) == 0);
        check(blz_par_scope_end(par, &scope) == 0);
        check(count == (i + 1) * NODES);
    }
}

static void tasks_spawn_into_their_own_scope(void **state)
{
    (void)state;
    in_all_pools(visit_all, NULL);
}

/* ---- scopes in scopes ---- */

struct nest {
    blz_par_scope *outer;
    int *count;
    int depth;
};

/* Spawns into the scope outside, into one of its own, and forks. */
static int open_another(blz_par *par, void *arg);

static void spawn_outside(blz_par *par, void *arg)
{
    struct nest *nest = arg;

    check(blz_par_spawn(par, nest->outer, count_one, nest->count) == 0);
}

static int open_another(blz_par *par, void *arg)
{
    struct nest *nest = arg, inner[4];
    blz_par_scope scope;

    if (nest->depth == 0)
        return count_one(par, nest->count);
    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < 4; i++) {
        inner[i] = (struct nest){&scope, nest->count, nest->depth - 1};
        check(blz_par_spawn(par, &scope, open_another, &inner[i]) == 0);
    }
    blz_par_join(par, spawn_outside, nest, spawn_outside, nest);
    check(blz_par_scope_end(par, &scope) == 0);
    return 0;
}

static void open_scopes(blz_par *par, void *arg)
{
    int count = 0;
    blz_par_scope scope;
    struct nest nest = {&scope, &count, 4};

    (void)arg;
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, open_another, &nest) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
    check(count == 256 + 2 * (1 + 4 + 16 + 64));
}

static void scopes_nest_and_tasks_reach_the_outer_ones(void **state)
{
    (void)state;
    in_all_pools(open_scopes, NULL);
}

/* ---- a task is taken by another thread ---- */

struct meeting {
    struct event came;
    unsigned indices[2];
};

static int come(blz_par *par, void *arg)
{
    struct meeting *m = arg;
    static unsigned next;
    unsigned mine = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 2;

    m->indices[mine] = blz_par_index(par);
    event_post(&m->came);
    event_wait(&m->came, 2);
    return 0;
}

static int do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    return 0;
}

/* Two tasks that wait for each other; spawning goes on until somebody has come for one of them. */
static void spawn_two_that_meet(blz_par *par, void *arg)
{
    struct meeting *m = arg;
    blz_par_scope scope;

    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, come, m) == 0);
    while (event_count(&m->came) == 0) {
        check(blz_par_spawn(par, &scope, do_nothing, NULL) == 0);
        sched_yield();
    }
    check(blz_par_spawn(par, &scope, come, m) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void a_task_is_taken_by_a_thread_without_work(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
        blz_pool *pool = new_pool(2, (blz_par_wait_mode)waiting);
        for (int i = 0; i < 10; i++) {
            struct meeting m = {.came = EVENT_INIT};
            assert_int_equal(blz_pool_run(pool, spawn_two_that_meet, &m), 0);
            assert_int_not_equal(m.indices[0], m.indices[1]);
        }
        assert_int_equal(blz_pool_free(pool), 0);
    }
}

/* ---- guests ---- */

static void a_guest_has_scopes(void **state)
{
    blz_pool *pool = new_pool(2, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);

    (void)state;
    assert_non_null(par);
    spawn_many(par, NULL);
    visit_all(par, NULL);
    open_scopes(par, NULL);
    blz_pool_leave(par);
    assert_int_equal(blz_pool_free(pool), 0);
}

/* ---- errors ---- */

struct failing {
    blz_par_scope scope;
    int begun;
};

static int give_error(blz_par *par, void *arg)
{
    struct failing *f = arg;

    count_one(par, &f->begun);
    check(blz_par_scope_code(&f->scope) == 0 || blz_pool_threads(blz_par_pool(par)) > 1);
    return -EIO;
}

static void spawn_failing(blz_par *par, void *arg)
{
    struct failing *f = arg;

    f->begun = 0;
    blz_par_scope_begin(par, &f->scope);
    for (int i = 0; i < 1000; i++) {
        int rc = blz_par_spawn(par, &f->scope, give_error, f);
        check(rc == 0 || rc == -EIO);
    }
    check(blz_par_scope_end(par, &f->scope) == -EIO);
    /* Each thread has begun one at most before it saw the error. */
    check(f->begun >= 1 && f->begun <= (int)blz_pool_threads(blz_par_pool(par)));
}

static void the_first_error_ends_the_scope(void **state)
{
    struct failing f;

    (void)state;
    in_all_pools(spawn_failing, &f);
}

static int cancel_other(blz_par *par, void *arg)
{
    (void)par;
    blz_par_scope_cancel(arg, 0); /* no error */
    blz_par_scope_cancel(arg, 5);
    check(blz_par_scope_code(arg) == 0);
    blz_par_scope_cancel(arg, -ETIMEDOUT);
    blz_par_scope_cancel(arg, -EIO); /* too late */
    return -EPERM;
}

static void cancel_in_a_task(blz_par *par, void *arg)
{
    blz_par_scope scope;
    int count = 0;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, cancel_other, &scope) == 0);
    check(blz_par_scope_end(par, &scope) == -ETIMEDOUT);

    blz_par_scope_begin(par, &scope);
    blz_par_scope_cancel(&scope, -ECANCELED);
    check(blz_par_spawn(par, &scope, count_one, &count) == -ECANCELED);
    check(blz_par_scope_end(par, &scope) == -ECANCELED);
    check(count == 0);
}

static void a_scope_is_cancelled_once(void **state)
{
    (void)state;
    in_all_pools(cancel_in_a_task, NULL);
}

/* ---- who waits for a scope takes nothing that is not of it ---- */

struct outside {
    blz_par_scope scope;
    blz_par *owner;
    int begun, ending, helped, is_run, run_by_the_owner;
};

static int help_with_one(blz_par *par, void *arg)
{
    struct outside *o = arg;

    if (par == o->owner)
        __atomic_store_n(&o->helped, 1, __ATOMIC_RELEASE);
    return 0;
}

/* Gives the owner a task of the scope; then the time to do what it must not. */
static int spawn_one(blz_par *par, void *arg)
{
    struct outside *o = arg;
    int rc;

    __atomic_store_n(&o->begun, 1, __ATOMIC_RELEASE);
    if (par == o->owner)
        return 0;
    while (!__atomic_load_n(&o->ending, __ATOMIC_ACQUIRE))
        sched_yield();
    rc = blz_par_spawn(par, &o->scope, help_with_one, o);
    for (int i = 0; i < 2000 && !__atomic_load_n(&o->is_run, __ATOMIC_ACQUIRE); i++)
        sched_yield();
    return rc;
}

struct outside_job {
    blz_par_job job;
    struct outside *o;
};

static void note_who_runs_it(blz_par *par, blz_par_job *job)
{
    struct outside *o = blz_container_of(job, struct outside_job, job)->o;

    o->run_by_the_owner = par == o->owner;
    __atomic_store_n(&o->is_run, 1, __ATOMIC_RELEASE);
}

static void end_a_scope_with_a_job_outside(blz_par *par, void *arg)
{
    struct outside *o = arg;
    struct outside_job job = {.o = o};

    o->owner = par;
    blz_par_scope_begin(par, &o->scope);
    check(blz_par_spawn(par, &o->scope, spawn_one, o) == 0);
    while (!__atomic_load_n(&o->begun, __ATOMIC_ACQUIRE))
        blz__par_look(worker_of(par));
    blz_par_fork(par, &job.job, note_who_runs_it);
    blz__par_look(worker_of(par)); /* the job is public */
    __atomic_store_n(&o->ending, 1, __ATOMIC_RELEASE);
    check(blz_par_scope_end(par, &o->scope) == 0);
    if (!blz_par_unfork(par, &job.job))
        check(!o->run_by_the_owner);
}

static void who_waits_for_a_scope_does_not_take_its_own_jobs_outside(void **state)
{
    blz_pool *pool;

    (void)state;
    assert_int_equal(blz_pool_new(&pool,
                                  &(blz_pool_options){.threads = 2, .allocator = test_memory()}),
                     0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(blz_pool_run(pool, end_a_scope_with_a_job_outside,
                                      &(struct outside){.begun = 0}),
                         0);
    assert_int_equal(blz_pool_free(pool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_waits_for_a_scope_does_not_take_its_own_jobs_outside),
        TEST(a_scope_ends_when_all_tasks_are_done),
        TEST(tasks_of_one_thread_begin_in_their_order),
        TEST(tasks_begin_in_their_order_if_nobody_takes_any),
        TEST(tasks_spawn_into_their_own_scope),
        TEST(scopes_nest_and_tasks_reach_the_outer_ones),
        TEST(a_task_is_taken_by_a_thread_without_work),
        TEST(a_guest_has_scopes),
        TEST(the_first_error_ends_the_scope),
        TEST(a_scope_is_cancelled_once),
    };
    return RUN_TESTS(tests);
}
