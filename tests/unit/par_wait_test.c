/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a stolen job: what a thread takes meanwhile, what it leaves, and how deep it goes. */
#include "par.h"

#include <sched.h>
#include <string.h>

/* ---- a lock that is held across a join ---- */

/*
 * The first worker holds a lock and waits for a branch that another one has taken. Meanwhile a
 * computation from outside comes, which wants the same lock.
 */
struct scene {
    blz_pool *pool;
    blz_par_wait_mode waiting; /* at the unfork */
    bool isolated;
    pthread_mutex_t lock;
    bool begun_on_top; /* the foreign computation, on the stack of the one who holds the lock */
    int holder;        /* -1: nobody */
    struct event branch_began, submitted, foreign_ran;
    bool wait_for_foreign; /* the branch does */
};

struct branch {
    blz_par_job job;
    struct scene *scene;
};

static void run_branch(blz_par *par, blz_par_job *job)
{
    struct scene *s = blz_container_of(job, struct branch, job)->scene;

    (void)par;
    event_post(&s->branch_began);
    event_wait(&s->submitted, 1);
    if (s->wait_for_foreign)
        event_wait(&s->foreign_ran, 1);
    for (int i = 0; i < 200; i++) /* a chance to do what it must not do */
        sched_yield();
}

static void hold_and_wait(blz_par *par, void *arg)
{
    struct scene *s = arg;
    struct branch branch = {.scene = s};

    __atomic_store_n(&s->holder, (int)blz_par_index(par), __ATOMIC_RELAXED);
    blz_par_fork(par, &branch.job, run_branch);
    event_wait(&s->branch_began, 1); /* so it is stolen */
    check(!blz_par_unfork_with(par, &branch.job, s->waiting));
    __atomic_store_n(&s->holder, -1, __ATOMIC_RELAXED);
}

static void hold_the_lock(blz_par *par, void *arg)
{
    struct scene *s = arg;

    pthread_mutex_lock(&s->lock);
    if (s->isolated)
        blz_par_isolated(par, hold_and_wait, s);
    else
        hold_and_wait(par, s);
    pthread_mutex_unlock(&s->lock);
}

/* With a real lock it would wait for itself. */
static void want_the_lock(blz_par *par, void *arg)
{
    struct scene *s = arg;

    if (__atomic_load_n(&s->holder, __ATOMIC_RELAXED) == (int)blz_par_index(par)) {
        s->begun_on_top = true;
    } else {
        pthread_mutex_lock(&s->lock);
        pthread_mutex_unlock(&s->lock);
    }
    event_post(&s->foreign_ran);
}

static void *submit_foreign(void *arg)
{
    struct scene *s = arg;

    event_wait(&s->branch_began, 1);
    event_post(&s->submitted);
    check(blz_pool_run(s->pool, want_the_lock, s) == 0);
    return NULL;
}

static bool is_begun_on_top(blz_par_wait_mode of_pool, struct scene s)
{
    blz_pool_options o = {.threads = 2, .waiting = of_pool, .allocator = test_memory()};
    pthread_t other;

    assert_int_equal(blz_pool_new(&s.pool, &o), 0);
    pthread_mutex_init(&s.lock, NULL);
    s.holder = -1;
    s.branch_began = s.submitted = s.foreign_ran = (struct event)EVENT_INIT;
    other = start_thread(submit_foreign, &s);
    assert_int_equal(blz_pool_run(s.pool, hold_the_lock, &s), 0);
    join_thread(other);
    pthread_mutex_destroy(&s.lock);
    assert_int_equal(blz_pool_free(s.pool), 0);
    return s.begun_on_top;
}

/* The other worker is busy until the foreign computation has run. */
static void a_thread_that_steals_begins_foreign_jobs_under_its_lock(void **state)
{
    (void)state;
    assert_true(is_begun_on_top(BLZ_PAR_WAIT_STEAL, (struct scene){.wait_for_foreign = true}));
    assert_true(
        is_begun_on_top(BLZ_PAR_WAIT_LEAPFROG,
                        (struct scene){.wait_for_foreign = true, .waiting = BLZ_PAR_WAIT_STEAL}));
}

static void an_isolated_region_takes_no_foreign_job(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_false(is_begun_on_top(BLZ_PAR_WAIT_STEAL, (struct scene){.isolated = true}));
}

static void an_unfork_waits_in_its_own_way(void **state)
{
    (void)state;
    assert_false(
        is_begun_on_top(BLZ_PAR_WAIT_STEAL, (struct scene){.waiting = BLZ_PAR_WAIT_BLOCK}));
    assert_false(
        is_begun_on_top(BLZ_PAR_WAIT_STEAL, (struct scene){.waiting = BLZ_PAR_WAIT_LEAPFROG}));
}

/* ---- isolation is inherited ---- */

enum { MAX_THREADS = 3 };

struct heritage {
    blz_pool *pool;
    int inside[MAX_THREADS]; /* functions of the region on the stack of that worker */
    struct event outer_began, inner_began, submitted;
    bool taken_inside;
};

struct heir {
    blz_par_job job;
    struct heritage *h;
};

static void enter_region(struct heritage *h, const blz_par *par, int by)
{
    __atomic_fetch_add(&h->inside[blz_par_index(par)], by, __ATOMIC_RELAXED);
}

static void run_inner(blz_par *par, blz_par_job *job)
{
    struct heritage *h = blz_container_of(job, struct heir, job)->h;

    enter_region(h, par, 1);
    event_post(&h->inner_began);
    event_wait(&h->submitted, 1);
    for (int i = 0; i < 200; i++)
        sched_yield();
    enter_region(h, par, -1);
}

static void run_outer(blz_par *par, blz_par_job *job)
{
    struct heritage *h = blz_container_of(job, struct heir, job)->h;
    struct heir inner = {.h = h};

    enter_region(h, par, 1);
    event_post(&h->outer_began);
    blz_par_fork(par, &inner.job, run_inner);
    event_wait(&h->inner_began, 1);
    check(!blz_par_unfork(par, &inner.job));
    enter_region(h, par, -1);
}

static void fork_outer(blz_par *par, void *arg)
{
    struct heritage *h = arg;
    struct heir outer = {.h = h};

    enter_region(h, par, 1);
    blz_par_fork(par, &outer.job, run_outer);
    event_wait(&h->outer_began, 1);
    check(!blz_par_unfork(par, &outer.job));
    enter_region(h, par, -1);
}

static void run_isolated(blz_par *par, void *arg)
{
    blz_par_isolated(par, fork_outer, arg);
}

static void look_where_it_runs(blz_par *par, void *arg)
{
    struct heritage *h = arg;

    if (__atomic_load_n(&h->inside[blz_par_index(par)], __ATOMIC_RELAXED) > 0)
        h->taken_inside = true;
}

static void *submit_look(void *arg)
{
    struct heritage *h = arg;

    event_wait(&h->inner_began, 1);
    event_post(&h->submitted);
    check(blz_pool_run(h->pool, look_where_it_runs, h) == 0);
    return NULL;
}

static void who_takes_a_job_of_the_region_is_isolated_too(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct heritage h = {.outer_began = EVENT_INIT,
                             .inner_began = EVENT_INIT,
                             .submitted = EVENT_INIT};
        blz_pool_options o = {.threads = MAX_THREADS,
                              .guests = 1,
                              .waiting = BLZ_PAR_WAIT_STEAL,
                              .allocator = test_memory()};
        pthread_t other;

        assert_int_equal(blz_pool_new(&h.pool, &o), 0);
        other = start_thread(submit_look, &h);
        assert_int_equal(blz_pool_run(h.pool, run_isolated, &h), 0);
        join_thread(other);
        assert_int_equal(blz_pool_free(h.pool), 0);
        assert_false(h.taken_inside);
    }
}

/* ---- the depth of the stack ---- */

/*
 * One worker, and computations that each take much stack and wait for a pool that is busy. While it
 * waits it begins the next one on top, until its stack is short; all of them would not fit.
 */
enum { STACK = 8 << 20, FRAME = 1 << 19, COMPUTATIONS = 40 };

struct tower {
    blz_pool *pool, *busy;
    struct event begun, busy_began;
    int height, highest;
};

static void do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

static void BLZ_NOINLINE use_stack(struct tower *t)
{
    volatile char frame[FRAME];

    memset((char *)(uintptr_t)frame, 1, sizeof frame);
    check(blz_pool_run(t->busy, do_nothing, NULL) == 0);
    check(frame[FRAME / 2] == 1);
}

static void build(blz_par *par, void *arg)
{
    struct tower *t = arg;
    int height = ++t->height; /* the one worker only */

    (void)par;
    if (height > t->highest)
        __atomic_store_n(&t->highest, height, __ATOMIC_RELAXED);
    event_post(&t->begun);
    use_stack(t);
    t->height--;
}

static void *submit_build(void *arg)
{
    struct tower *t = arg;

    event_wait(&t->busy_began, 1);
    check(blz_pool_run(t->pool, build, t) == 0);
    return NULL;
}

/* Until no more are begun, as far as one can see. */
static void be_busy(blz_par *par, void *arg)
{
    struct tower *t = arg;
    int64_t before;

    (void)par;
    event_post(&t->busy_began);
    event_wait(&t->begun, 2);
    do {
        before = event_count(&t->begun);
        for (int i = 0; i < 300; i++)
            sched_yield();
    } while (event_count(&t->begun) != before);
}

static void *keep_busy(void *arg)
{
    struct tower *t = arg;

    check(blz_pool_run(t->busy, be_busy, t) == 0);
    return NULL;
}

static void foreign_jobs_are_begun_only_while_there_is_stack(void **state)
{
    struct tower t = {.begun = EVENT_INIT, .busy_began = EVENT_INIT};
    blz_pool_options o = {.threads = 1, .stack_size = STACK, .allocator = test_memory()};
    pthread_t threads[COMPUTATIONS + 1];

    (void)state;
    assert_int_equal(blz_pool_new(&t.pool, &o), 0);
    assert_int_equal(blz_pool_new(&t.busy, &o), 0);
    threads[COMPUTATIONS] = start_thread(keep_busy, &t);
    for (int i = 0; i < COMPUTATIONS; i++)
        threads[i] = start_thread(submit_build, &t);
    for (int i = 0; i <= COMPUTATIONS; i++)
        join_thread(threads[i]);
    assert_in_range(t.highest, 2, STACK / FRAME);
    assert_int_equal(event_count(&t.begun), COMPUTATIONS);
    assert_int_equal(blz_pool_free(t.pool), 0);
    assert_int_equal(blz_pool_free(t.busy), 0);
}

/* ---- the same, for who yields ---- */

/* Begins the next one on top, if it may; the first one waits until all the others are there. */
static void BLZ_NOINLINE yield_deep(blz_par *par)
{
    volatile char frame[FRAME];

    memset((char *)(uintptr_t)frame, 1, sizeof frame);
    blz_par_yield(par);
    check(frame[FRAME / 2] == 1);
}

static void wait_for_queue(const struct tower *t)
{
    blz_par_stats stats;

    do {
        sched_yield();
        blz_pool_stats(t->pool, &stats);
    } while (stats.queued < COMPUTATIONS - 1);
}

static void build_by_yielding(blz_par *par, void *arg)
{
    struct tower *t = arg;
    int height = ++t->height; /* the one worker only */

    if (height > t->highest)
        t->highest = height;
    if (event_count(&t->begun) == 0)
        wait_for_queue(t);
    event_post(&t->begun);
    yield_deep(par);
    t->height--;
}

static void *submit_build_by_yielding(void *arg)
{
    struct tower *t = arg;

    check(blz_pool_run(t->pool, build_by_yielding, t) == 0);
    return NULL;
}

static void who_yields_begins_others_only_while_there_is_stack(void **state)
{
    struct tower t = {.begun = EVENT_INIT};
    blz_pool_options o = {.threads = 1, .stack_size = STACK, .allocator = test_memory()};
    pthread_t threads[COMPUTATIONS];

    (void)state;
    assert_int_equal(blz_pool_new(&t.pool, &o), 0);
    for (int i = 0; i < COMPUTATIONS; i++)
        threads[i] = start_thread(submit_build_by_yielding, &t);
    for (int i = 0; i < COMPUTATIONS; i++)
        join_thread(threads[i]);
    assert_in_range(t.highest, 2, STACK / FRAME);
    assert_int_equal(event_count(&t.begun), COMPUTATIONS);
    assert_int_equal(blz_pool_free(t.pool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_thread_that_steals_begins_foreign_jobs_under_its_lock),
        TEST(an_isolated_region_takes_no_foreign_job),
        TEST(an_unfork_waits_in_its_own_way),
        TEST(who_takes_a_job_of_the_region_is_isolated_too),
        TEST(foreign_jobs_are_begun_only_while_there_is_stack),
        TEST(who_yields_begins_others_only_while_there_is_stack),
    };
    return RUN_TESTS(tests);
}
