/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helping: what a thread takes from the one that it waits for, what it leaves, and when it is
 * woken. Most of it has one worker, and the test's own thread as a guest: who does what is known.
 */
#include "par/pool.h"

#include "par.h"

#include <sched.h>

struct scene {
    blz_pool *pool, *other;
    blz_par *helper;
    struct event began, foreign_began, go_on, foreign_ran;
    int parts_by_helper, foreign_by_helper;
};

static void set_up(struct scene *s, blz_par_wait_mode waiting)
{
    *s = (struct scene){.began = EVENT_INIT,
                        .foreign_began = EVENT_INIT,
                        .go_on = EVENT_INIT,
                        .foreign_ran = EVENT_INIT};
    s->pool = new_pool_with(&(blz_pool_options){.threads = 1, .guests = 1, .waiting = waiting});
    s->helper = blz_pool_enter(s->pool);
    assert_non_null(s->helper);
}

static void tear_down(struct scene *s)
{
    blz_pool_leave(s->helper);
    free_pool(s->pool);
}

struct branch {
    blz_par_job job;
    struct scene *scene;
};

static struct scene *scene_of(blz_par_job *job)
{
    return blz_container_of(job, struct branch, job)->scene;
}

/* The job is the worker's when this returns. */
static void fork_to_worker(struct scene *s, struct branch *branch, blz_par_job_fn run)
{
    branch->scene = s;
    blz_par_fork(s->helper, &branch->job, run);
    event_wait(&s->began, 1);
}

/* Until whoever waits for the latch sleeps. */
static void wait_for_sleeper(uint32_t *latch)
{
    while (blz__load(latch, RELAXED) != LATCH_BLOCKED)
        sched_yield();
}

/* ---- a helper that sleeps ---- */

static void run_part(blz_par *par, blz_par_job *job)
{
    struct scene *s = scene_of(job);

    s->parts_by_helper += par == s->helper;
    event_post(&s->go_on);
}

/* Each time that the helper sleeps it needs it, and there is nobody else. */
static void need_help(blz_par *par, uint32_t *latch, struct scene *s)
{
    for (int i = 1; i <= 3; i++) {
        struct branch part = {.scene = s};

        wait_for_sleeper(latch);
        blz_par_fork(par, &part.job, run_part);
        event_wait(&s->go_on, i);
        check(!blz_par_unfork(par, &part.job));
    }
}

static void need_help_in_job(blz_par *par, blz_par_job *job)
{
    struct scene *s = scene_of(job);

    event_post(&s->began);
    need_help(par, &job->latch, s);
}

static void a_helper_that_sleeps_is_woken_for_a_part(void **state)
{
    struct scene s;
    struct branch branch;

    (void)state;
    set_up(&s, BLZ_PAR_WAIT_LEAPFROG);
    fork_to_worker(&s, &branch, need_help_in_job);
    assert_false(blz_par_unfork(s.helper, &branch.job));
    assert_int_equal(s.parts_by_helper, 3);
    tear_down(&s);
}

struct task {
    struct scene *scene;
    blz_par_scope scope;
};

static int need_help_in_task(blz_par *par, void *arg)
{
    struct task *task = arg;

    event_post(&task->scene->began);
    need_help(par, &task->scope.latch, task->scene);
    return 0;
}

static void who_waits_for_a_scope_is_woken_for_a_part(void **state)
{
    struct scene s;
    struct task task = {.scene = &s};

    (void)state;
    set_up(&s, BLZ_PAR_WAIT_LEAPFROG);
    blz_par_scope_begin(s.helper, &task.scope);
    assert_int_equal(blz_par_spawn(s.helper, &task.scope, need_help_in_task, &task), 0);
    event_wait(&s.began, 1);
    assert_int_equal(blz_par_scope_end(s.helper, &task.scope), 0);
    assert_int_equal(s.parts_by_helper, 3);
    tear_down(&s);
}

/* ---- foreign jobs in the ring of the thief ---- */

static void note_who_runs_it(blz_par *par, blz_par_job *job)
{
    struct scene *s = scene_of(job);

    s->foreign_by_helper += par == s->helper;
}

static void do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

static void wait_until_it_began(blz_par *par, void *arg)
{
    struct scene *s = arg;

    (void)par;
    event_wait(&s->began, 1);
}

/* Shows a job, and waits for another pool: the worker takes what the helper forks meanwhile. */
static void show_and_wait_outside(blz_par *par, void *arg)
{
    struct scene *s = arg;
    struct branch older = {.scene = s};

    blz_par_fork(par, &older.job, note_who_runs_it);
    blz__par_look(worker_of(par));
    check(ring_has_public(&worker_of(par)->ring));
    event_post(&s->foreign_began);
    check(blz_pool_run(s->other, wait_until_it_began, s) == 0);
    (void)!blz_par_unfork(par, &older.job);
}

static void *run_foreign(void *arg)
{
    struct scene *s = arg;

    check(blz_pool_run(s->pool, show_and_wait_outside, s) == 0);
    return NULL;
}

/* Goes on when the helper has found nothing that it may take. */
static void wait_until_the_helper_sleeps(blz_par *par, blz_par_job *job)
{
    struct scene *s = scene_of(job);

    (void)par;
    event_post(&s->began);
    wait_for_sleeper(&job->latch);
}

static void fork_and_wait(blz_par *par, void *arg)
{
    struct scene *s = arg;
    struct branch branch;

    (void)par;
    fork_to_worker(s, &branch, wait_until_the_helper_sleeps);
    check(!blz_par_unfork(s->helper, &branch.job));
}

static void what_the_thief_had_before_is_left(blz_par_wait_mode waiting, bool isolated)
{
    struct scene s;
    pthread_t thread;

    set_up(&s, waiting);
    s.other = new_pool_of(1);
    thread = start_thread(run_foreign, &s);
    event_wait(&s.foreign_began, 1);
    if (isolated)
        blz_par_isolated(s.helper, fork_and_wait, &s);
    else
        fork_and_wait(s.helper, &s);
    join_thread(thread);
    assert_int_equal(s.foreign_by_helper, 0);
    free_pool(s.other);
    tear_down(&s);
}

static void a_helper_leaves_what_its_thief_had_before(void **state)
{
    (void)state;
    what_the_thief_had_before_is_left(BLZ_PAR_WAIT_LEAPFROG, false);
    what_the_thief_had_before_is_left(BLZ_PAR_WAIT_LEAPFROG, true);
    what_the_thief_had_before_is_left(BLZ_PAR_WAIT_STEAL, true);
}

/* ---- foreign jobs on top of what is waited for ---- */

struct on_top {
    struct scene scene;
    uint32_t *latch; /* of the helper */
};

/* Shows a job while the helper looks for something. */
static void show_until_the_helper_sleeps(blz_par *par, void *arg)
{
    struct on_top *o = arg;
    struct branch branch = {.scene = &o->scene};

    blz_par_fork(par, &branch.job, note_who_runs_it);
    blz__par_look(worker_of(par));
    wait_for_sleeper(o->latch);
    (void)!blz_par_unfork(par, &branch.job);
    event_post(&o->scene.foreign_ran);
}

static void *run_on_top(void *arg)
{
    struct on_top *o = arg;

    event_wait(&o->scene.began, 1);
    check(blz_pool_run(o->scene.pool, show_until_the_helper_sleeps, o) == 0);
    return NULL;
}

/* Takes the foreign computation while it waits for one of its own. */
static void take_it_on_top(blz_par *par, blz_par_job *job)
{
    struct scene *s = scene_of(job);
    struct on_top *o = blz_container_of(s, struct on_top, scene);

    o->latch = &job->latch;
    event_post(&s->began);
    while (event_count(&s->foreign_ran) == 0)
        blz_par_yield(par);
}

static void a_helper_leaves_what_its_thief_does_on_top(void **state)
{
    struct on_top o;
    struct branch branch;
    pthread_t thread;

    (void)state;
    set_up(&o.scene, BLZ_PAR_WAIT_LEAPFROG);
    thread = start_thread(run_on_top, &o);
    fork_to_worker(&o.scene, &branch, take_it_on_top);
    assert_false(blz_par_unfork(o.scene.helper, &branch.job));
    join_thread(thread);
    assert_int_equal(o.scene.foreign_by_helper, 0);
    tear_down(&o.scene);
}

/* ---- a part that was beneath something foreign ---- */

static void wait_on_top(blz_par *par, void *arg)
{
    struct on_top *o = arg;

    (void)par;
    event_post(&o->scene.foreign_began);
    wait_for_sleeper(o->latch);
    event_post(&o->scene.foreign_ran);
}

static void *run_wait_on_top(void *arg)
{
    struct on_top *o = arg;

    event_wait(&o->scene.began, 1);
    check(blz_pool_run(o->scene.pool, wait_on_top, o) == 0);
    return NULL;
}

/* Its part is shown all the time, but the helper must not take it while the other one is on top. */
static void show_and_yield(blz_par *par, blz_par_job *job)
{
    struct scene *s = scene_of(job);
    struct on_top *o = blz_container_of(s, struct on_top, scene);
    struct branch part = {.scene = s};

    o->latch = &job->latch;
    blz_par_fork(par, &part.job, run_part);
    event_post(&s->began);
    while (event_count(&s->foreign_ran) == 0)
        blz_par_yield(par);
    event_wait(&s->go_on, 1);
    check(!blz_par_unfork(par, &part.job));
}

static void a_helper_is_woken_for_what_is_no_longer_beneath_something_foreign(void **state)
{
    struct on_top o;
    struct branch branch;
    pthread_t thread;

    (void)state;
    set_up(&o.scene, BLZ_PAR_WAIT_LEAPFROG);
    thread = start_thread(run_wait_on_top, &o);
    fork_to_worker(&o.scene, &branch, show_and_yield);
    event_wait(&o.scene.foreign_began, 1);
    assert_false(blz_par_unfork(o.scene.helper, &branch.job));
    join_thread(thread);
    assert_int_equal(o.scene.parts_by_helper, 1);
    tear_down(&o.scene);
}

/* ---- regions that leave their pool ---- */

/*
 * In the first pool somebody is in an isolated region, and calls into the second. There a branch is
 * taken by the other worker, and a foreign computation waits.
 */
struct crossing {
    blz_pool *first, *second;
    struct event branch_began, submitted;
    unsigned index; /* of who is in the region, in the second pool */
    bool taken_inside;
};

struct crossing_branch {
    blz_par_job job;
    struct crossing *c;
};

static void run_crossing_branch(blz_par *par, blz_par_job *job)
{
    struct crossing *c = blz_container_of(job, struct crossing_branch, job)->c;

    (void)par;
    event_post(&c->branch_began);
    event_wait(&c->submitted, 1);
    wait_for_sleeper(&job->latch); /* having found nothing that it may take */
}

static void wait_in_the_second(blz_par *par, void *arg)
{
    struct crossing *c = arg;
    struct crossing_branch branch = {.c = c};

    __atomic_store_n(&c->index, blz_par_index(par), __ATOMIC_RELAXED);
    blz_par_fork(par, &branch.job, run_crossing_branch);
    event_wait(&c->branch_began, 1);
    check(!blz_par_unfork(par, &branch.job));
    __atomic_store_n(&c->index, UINT32_MAX, __ATOMIC_RELAXED);
}

static void call_the_second(blz_par *par, void *arg)
{
    struct crossing *c = arg;

    (void)par;
    check(blz_pool_run(c->second, wait_in_the_second, c) == 0);
}

static void enter_the_second(blz_par *par, void *arg)
{
    struct crossing *c = arg;
    blz_par *guest = blz_pool_enter(c->second);

    (void)par;
    check(guest);
    wait_in_the_second(guest, c);
    blz_pool_leave(guest);
}

static void isolate_call(blz_par *par, void *arg)
{
    blz_par_isolated(par, call_the_second, arg);
}

static void isolate_entry(blz_par *par, void *arg)
{
    blz_par_isolated(par, enter_the_second, arg);
}

static void look_where_it_runs(blz_par *par, void *arg)
{
    struct crossing *c = arg;

    if (__atomic_load_n(&c->index, __ATOMIC_RELAXED) == blz_par_index(par))
        c->taken_inside = true;
}

/* Queued, so that whoever looks for anything finds it. */
static void *submit_look(void *arg)
{
    struct crossing *c = arg;
    struct inject_queue *queue = &c->second->injected;

    event_wait(&c->branch_began, 1);
    while (blz__load(&queue->len, RELAXED) == 0)
        sched_yield();
    event_post(&c->submitted);
    return NULL;
}

static void *run_look(void *arg)
{
    struct crossing *c = arg;

    event_wait(&c->branch_began, 1);
    check(blz_pool_run(c->second, look_where_it_runs, c) == 0);
    return NULL;
}

static void cross(blz_par_fn fn, unsigned threads)
{
    struct crossing c = {.branch_began = EVENT_INIT, .submitted = EVENT_INIT, .index = UINT32_MAX};
    pthread_t looking, submitting;

    c.first = new_pool_of(1);
    c.second = new_pool_with(
        &(blz_pool_options){.threads = threads, .guests = 1, .waiting = BLZ_PAR_WAIT_STEAL});
    looking = start_thread(run_look, &c);
    submitting = start_thread(submit_look, &c);
    assert_int_equal(blz_pool_run(c.first, fn, &c), 0);
    join_thread(looking);
    join_thread(submitting);
    assert_false(c.taken_inside);
    free_pool(c.first);
    free_pool(c.second);
}

/* All workers of the second pool are in the region. */
static void an_isolated_region_reaches_into_other_pools(void **state)
{
    (void)state;
    cross(isolate_call, 2);
    cross(isolate_entry, 1);
}

/* ---- a lock that is held across everything ---- */

struct shared {
    blz_pool *pool;
    pthread_mutex_t lock;
    uint64_t count; /* of what is done with the lock */
    int sum, left;
};

static void take_the_lock(blz_par *par, void *arg)
{
    struct shared *s = arg;

    (void)par;
    check(pthread_mutex_lock(&s->lock) == 0); /* EDEADLK if this thread has it */
    s->count++;
    check(pthread_mutex_unlock(&s->lock) == 0);
}

static void fork_foreign(blz_par *par, void *arg)
{
    blz_par_join(par, take_the_lock, arg, take_the_lock, arg);
}

static void *submit_foreign(void *arg)
{
    struct shared *s = arg;

    while (__atomic_load_n(&s->left, __ATOMIC_ACQUIRE))
        check(blz_pool_run(s->pool, fork_foreign, s) == 0);
    return NULL;
}

struct node {
    struct shared *s;
    int depth;
};

static void add_one(struct shared *s)
{
    __atomic_fetch_add(&s->sum, 1, __ATOMIC_RELAXED);
}

static void join_tree(blz_par *par, void *arg)
{
    struct node *node = arg, child = {node->s, node->depth - 1};

    if (node->depth == 0)
        add_one(node->s);
    else
        blz_par_join(par, join_tree, &child, join_tree, &child);
}

static int be_a_task(blz_par *par, void *arg)
{
    struct node tree = {arg, 2};

    join_tree(par, &tree);
    return 0;
}

static int be_a_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct node tree = {arg, 1};

    for (size_t i = begin; i < end; i++)
        join_tree(par, &tree);
    return 0;
}

enum { TREE = 64, TASKS = 40, RANGE = 100 };

static void do_all_kinds(blz_par *par, void *arg)
{
    struct shared *s = arg;
    struct node tree = {s, 6};
    blz_par_scope scope;

    join_tree(par, &tree);
    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < TASKS; i++)
        check(blz_par_spawn(par, &scope, be_a_task, s) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
    check(blz_par_for(par, RANGE, be_a_range, s, NULL) == 0);
}

static void hold_the_lock(blz_par *par, void *arg)
{
    struct shared *s = arg;

    check(pthread_mutex_lock(&s->lock) == 0);
    s->sum = 0;
    blz_par_isolated(par, do_all_kinds, s);
    check(s->sum == TREE + TASKS * 4 + RANGE * 2);
    check(pthread_mutex_unlock(&s->lock) == 0);
}

static void share_a_lock(unsigned threads, blz_par_wait_mode waiting)
{
    struct shared s = {.left = 1};
    pthread_mutexattr_t checking;
    pthread_t others[2];

    pthread_mutexattr_init(&checking);
    pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&s.lock, &checking);
    s.pool = new_pool_with(&(blz_pool_options){.threads = threads, .waiting = waiting});
    for (int i = 0; i < 2; i++)
        others[i] = start_thread(submit_foreign, &s);
    for (int i = 0; i < 10; i++)
        assert_int_equal(blz_pool_run(s.pool, hold_the_lock, &s), 0);
    __atomic_store_n(&s.left, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        join_thread(others[i]);
    free_pool(s.pool);
    pthread_mutex_destroy(&s.lock);
    pthread_mutexattr_destroy(&checking);
}

static void a_lock_is_held_across_an_isolated_region(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
        share_a_lock(2, (blz_par_wait_mode)waiting);
        share_a_lock(8, (blz_par_wait_mode)waiting);
    }
}

static void try_in_a_region(blz_par *par, void *arg)
{
    check(blz_pool_broadcast(arg, do_nothing, NULL) == -EDEADLK);
    check(!blz_par_yield(par));
}

static void run_in_a_region(blz_par *par, void *arg)
{
    blz_par_isolated(par, try_in_a_region, arg);
    check(blz_pool_broadcast(arg, do_nothing, NULL) == 0);
}

static void what_would_call_foreign_functions_is_refused_in_a_region(void **state)
{
    blz_pool *pool = new_pool_of(2);

    (void)state;
    assert_int_equal(blz_pool_run(pool, run_in_a_region, pool), 0);
    free_pool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_helper_that_sleeps_is_woken_for_a_part),
        TEST(who_waits_for_a_scope_is_woken_for_a_part),
        TEST(a_helper_leaves_what_its_thief_had_before),
        TEST(a_helper_leaves_what_its_thief_does_on_top),
        TEST(a_helper_is_woken_for_what_is_no_longer_beneath_something_foreign),
        TEST(an_isolated_region_reaches_into_other_pools),
        TEST(a_lock_is_held_across_an_isolated_region),
        TEST(what_would_call_foreign_functions_is_refused_in_a_region),
    };
    return RUN_TESTS(tests);
}
