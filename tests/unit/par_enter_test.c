/* SPDX-License-Identifier: Apache-2.0 */
/* Guests of a fork-join pool, computations across pools, and a pool after a fork. */
#include "par_fib.h"

#include "base/sanitize.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static blz_pool *new_pool(unsigned threads, unsigned guests, blz_par_wait_mode waiting)
{
    return new_pool_with(
        &(blz_pool_options){.threads = threads, .guests = guests, .waiting = waiting});
}

static blz_par *enter(blz_pool *pool)
{
    blz_par *par = blz_pool_enter(pool);

    assert_non_null(par);
    return par;
}

/* ---- computations ---- */

static void note_context(blz_par *par, void *arg)
{
    *(blz_par **)arg = par;
}

/* ---- guests ---- */

static void a_guest_computes_by_itself(void **state)
{
    blz_pool *pool = new_pool(2, 0, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = enter(pool), *seen = NULL;

    (void)state;
    assert_ptr_equal(blz_par_pool(par), pool);
    assert_in_range(blz_par_index(par), 2, blz_pool_indices(pool) - 1);
    assert_int_equal(blz_pool_run(pool, note_context, &seen), 0);
    assert_ptr_equal(seen, par);
    assert_int_equal(fib(par, 15), 610);
    blz_pool_leave(par);
    seen = NULL;
    assert_int_equal(blz_pool_run(pool, note_context, &seen), 0);
    assert_in_range(blz_par_index(seen), 0, 1);
    free_pool(pool);
}

static void places_for_guests_are_counted(void **state)
{
    blz_pool *pool = new_pool(1, 3, BLZ_PAR_WAIT_LEAPFROG);

    (void)state;
    assert_int_equal(blz_pool_threads(pool), 1);
    assert_int_equal(blz_pool_indices(pool), 4);
    blz_pool_leave(NULL);
    free_pool(pool);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 0x7000, .guests = 0x1000}),
                     -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.guests = UINT32_MAX}), -EINVAL);
}

static void who_is_in_gets_the_context_that_it_has(void **state)
{
    blz_pool *pool = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = enter(pool);

    (void)state;
    assert_ptr_equal(enter(pool), par);
    blz_pool_leave(par);
    assert_int_equal(fib(par, 10), 55); /* still in */
    assert_int_equal(blz_pool_free(pool), -EDEADLK);
    blz_pool_leave(par);
    free_pool(pool);
}

static void enter_and_leave(blz_par *par, void *arg)
{
    check(blz_pool_enter(arg) == par);
    blz_pool_leave(par);
    check(blz_par_index(par) < blz_pool_threads(arg));
}

static void a_worker_that_enters_stays_a_worker(void **state)
{
    blz_pool *pool = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(blz_pool_run(pool, enter_and_leave, pool), 0);
    free_pool(pool);
}

struct guest {
    blz_pool *pool;
    struct event entered, leave;
};

static void *be_a_guest(void *arg)
{
    struct guest *guest = arg;
    blz_par *par = blz_pool_enter(guest->pool);

    check(par);
    event_post(&guest->entered);
    event_wait(&guest->leave, 1);
    blz_pool_leave(par);
    return NULL;
}

static void no_place_is_left_until_a_guest_leaves(void **state)
{
    struct guest guest = {.entered = EVENT_INIT, .leave = EVENT_INIT};
    pthread_t thread;
    blz_par *par;

    (void)state;
    guest.pool = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    thread = start_thread(be_a_guest, &guest);
    event_wait(&guest.entered, 1);
    assert_null(blz_pool_enter(guest.pool));
    assert_int_equal(blz_pool_free(guest.pool), -EBUSY);
    event_post(&guest.leave);
    join_thread(thread);
    par = enter(guest.pool);
    assert_int_equal(fib(par, 10), 55);
    blz_pool_leave(par);
    free_pool(guest.pool);
}

/* ---- a guest and a worker at once ---- */

struct meeting {
    struct event left, right;
    blz_par *left_par, *right_par;
};

static void come_from_the_right(blz_par *par, void *arg)
{
    struct meeting *m = arg;

    m->right_par = par;
    event_post(&m->right);
    event_wait(&m->left, 1);
}

static void do_nothing(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/* Forks until another one has come for the other branch, which waits for this one. */
static void come_from_the_left(blz_par *par, void *arg)
{
    struct meeting *m = arg;
    blz_par_job job;

    m->left_par = par;
    while (event_count(&m->right) == 0) {
        blz_par_fork(par, &job, do_nothing);
        (void)!blz_par_unfork(par, &job);
    }
    event_post(&m->left);
}

static void join_meeting(blz_par *par, void *arg)
{
    blz_par_join(par, come_from_the_left, arg, come_from_the_right, arg);
}

static void a_worker_takes_the_job_of_a_guest(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
        blz_pool *pool = new_pool(1, 1, (blz_par_wait_mode)waiting);
        blz_par *par = enter(pool);
        for (int i = 0; i < 10; i++) {
            struct meeting m = {.left = EVENT_INIT, .right = EVENT_INIT};
            assert_int_equal(blz_pool_run(pool, join_meeting, &m), 0);
            assert_ptr_equal(m.left_par, par);
            assert_ptr_not_equal(m.right_par, par);
        }
        blz_pool_leave(par);
        free_pool(pool);
    }
}

/*
 * The branch that the worker takes meets another one within it; the only one who can come is the
 * guest, which waits for the branch.
 */
static void meet_within(blz_par *par, void *arg)
{
    struct meeting *m = arg;

    m->right_par = par;
    event_post(&m->right);
    event_wait(&m->left, 1);
    join_meeting(par, m + 1);
}

static void join_two_meetings(blz_par *par, void *arg)
{
    blz_par_join(par, come_from_the_left, arg, meet_within, arg);
}

static void a_guest_that_waits_takes_a_job_of_the_worker(void **state)
{
    blz_pool *pool = new_pool(1, 1, BLZ_PAR_WAIT_STEAL);
    blz_par *par = enter(pool);
    struct meeting m[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        m[i] = (struct meeting){.left = EVENT_INIT, .right = EVENT_INIT};
    assert_int_equal(blz_pool_run(pool, join_two_meetings, m), 0);
    assert_ptr_equal(m[1].left_par, m[0].right_par);
    assert_ptr_equal(m[1].right_par, par);
    blz_pool_leave(par);
    free_pool(pool);
}

static void *compute_as_a_guest(void *arg)
{
    for (int i = 0; i < 20; i++) {
        blz_par *par = blz_pool_enter(arg);
        check(par);
        check(fib(par, 12) == 144);
        blz_pool_leave(par);
    }
    return NULL;
}

static void guests_come_and_go(void **state)
{
    blz_pool *pool = new_pool(2, 4, BLZ_PAR_WAIT_STEAL);
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        threads[i] = start_thread(compute_as_a_guest, pool);
    for (int i = 0; i < 4; i++)
        join_thread(threads[i]);
    free_pool(pool);
}

/* ---- a pool is freed as soon as it can be ---- */

static void compute_fib(blz_par *par, void *arg)
{
    *(uint64_t *)arg = fib(par, 8);
}

/* What it forks may be with the workers, and who ends it wakes this place, to the last moment. */
static void *compute_once_as_a_guest(void *arg)
{
    struct guest *guest = arg;
    blz_par *par = blz_pool_enter(guest->pool);

    check(par);
    event_post(&guest->entered);
    check(fib(par, 8) == 21);
    blz_pool_leave(par);
    return NULL;
}

static void a_pool_is_freed_as_soon_as_its_guest_has_left(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct guest guest = {.entered = EVENT_INIT};
        pthread_t thread;
        int rc;

        guest.pool = new_pool(1 + (unsigned)i % 2, 1, (blz_par_wait_mode)(1 + i % 3));
        thread = start_thread(compute_once_as_a_guest, &guest);
        event_wait(&guest.entered, 1);
        while ((rc = blz_pool_free(guest.pool)) == -EBUSY)
            sched_yield();
        assert_int_equal(rc, 0);
        join_thread(thread);
    }
}

struct visit {
    blz_pool *first, *second;
};

static void free_the_second(blz_par *par, void *arg)
{
    struct visit *v = arg;
    uint64_t result = 0;

    (void)par;
    check(blz_pool_run(v->second, compute_fib, &result) == 0);
    check(result == 21);
    check(blz_pool_free(v->second) == 0); /* its thread may be in the middle of waking us */
}

static void a_pool_is_freed_by_whom_it_has_just_woken(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct visit v = {.first = new_pool(1, 1, (blz_par_wait_mode)(1 + i % 3)),
                          .second = new_pool(1 + (unsigned)i % 2, 1, BLZ_PAR_WAIT_LEAPFROG)};

        assert_int_equal(blz_pool_run(v.first, free_the_second, &v), 0);
        assert_int_equal(blz_pool_free(v.first), 0);
    }
}

/* ---- several pools ---- */

static void a_thread_is_a_guest_of_two_pools(void **state)
{
    blz_pool *one = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG), *two = new_pool(1, 1, 0);
    blz_par *first = enter(one), *second = enter(two), *seen;

    (void)state;
    assert_int_equal(blz_pool_run(one, note_context, &seen), 0);
    assert_ptr_equal(seen, first);
    assert_int_equal(blz_pool_run(two, note_context, &seen), 0);
    assert_ptr_equal(seen, second);
    blz_pool_leave(first); /* not the last that it entered */
    assert_int_equal(blz_pool_run(two, note_context, &seen), 0);
    assert_ptr_equal(seen, second);
    blz_pool_leave(second);
    free_pool(one);
    free_pool(two);
}

struct ring_of_pools {
    blz_pool *pools[2];
    int depth;
};

static void run_in_the_other(blz_par *par, void *arg)
{
    struct ring_of_pools *r = arg;

    (void)par;
    if (r->depth > 0)
        check(blz_pool_run(r->pools[r->depth-- % 2], run_in_the_other, r) == 0);
}

/* The only worker of one pool waits for the other, whose only worker waits for the first. */
static void pools_run_in_each_other(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_STEAL; waiting++) {
        struct ring_of_pools r = {.depth = 10};
        for (int i = 0; i < 2; i++)
            r.pools[i] = new_pool(1, 1, (blz_par_wait_mode)waiting);
        assert_int_equal(blz_pool_run(r.pools[0], run_in_the_other, &r), 0);
        assert_int_equal(r.depth, 0);
        for (int i = 0; i < 2; i++)
            free_pool(r.pools[i]);
    }
}

struct three_pools {
    blz_pool *home, *visited, *far;
    blz_par *at_home, *came_home_as;
};

static void come_home(blz_par *par, void *arg)
{
    struct three_pools *p = arg;

    p->came_home_as = par;
}

static void call_home(blz_par *par, void *arg)
{
    struct three_pools *p = arg;

    (void)par;
    check(blz_pool_run(p->home, come_home, p) == 0);
}

static void visit_and_go_on(blz_par *par, void *arg)
{
    struct three_pools *p = arg;
    blz_par *guest = blz_pool_enter(p->visited);

    check(guest);
    p->at_home = par;
    check(blz_pool_run(p->far, call_home, p) == 0);
    blz_pool_leave(guest);
}

/* The only worker of a pool is a guest of another, and waits for a third, which needs the first. */
static void a_worker_that_is_a_guest_elsewhere_serves_its_own_pool(void **state)
{
    struct three_pools p = {.home = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG)};

    (void)state;
    p.visited = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    p.far = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    assert_int_equal(blz_pool_run(p.home, visit_and_go_on, &p), 0);
    assert_ptr_equal(p.came_home_as, p.at_home);
    free_pool(p.home);
    free_pool(p.visited);
    free_pool(p.far);
}

struct late_guest {
    blz_pool *home, *visited, *far;
    blz_par *guest;
    struct event busy, released;
};

static void enter_late(blz_par *par, void *arg)
{
    struct late_guest *l = arg;

    (void)par;
    l->guest = blz_pool_enter(l->visited);
}

static void call_home_to_enter(blz_par *par, void *arg)
{
    struct late_guest *l = arg;

    (void)par;
    check(blz_pool_run(l->home, enter_late, l) == 0);
}

static void be_busy(blz_par *par, void *arg)
{
    struct late_guest *l = arg;

    (void)par;
    event_post(&l->busy);
    event_wait(&l->released, 1);
}

static void release(blz_par *par, void *arg)
{
    struct late_guest *l = arg;

    (void)par;
    event_post(&l->released);
}

static void *run_busy(void *arg)
{
    struct late_guest *l = arg;

    check(blz_pool_run(l->visited, be_busy, l) == 0);
    return NULL;
}

static void *run_release(void *arg)
{
    struct late_guest *l = arg;

    check(blz_pool_run(l->visited, release, l) == 0);
    return NULL;
}

/* Its thread is in a wait when it enters, and no longer when it takes something as a guest. */
static void enter_in_a_wait(blz_par *par, void *arg)
{
    struct late_guest *l = arg;

    (void)par;
    check(blz_pool_run(l->far, call_home_to_enter, l) == 0);
    check(l->guest);
    while (event_count(&l->released) == 0)
        blz_par_yield(l->guest);
    blz_pool_leave(l->guest);
}

static void who_entered_in_a_wait_takes_what_there_is_after_it(void **state)
{
    struct late_guest l = {.home = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG),
                           .busy = EVENT_INIT,
                           .released = EVENT_INIT};
    pthread_t busy, releasing;

    (void)state;
    l.visited = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    l.far = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    busy = start_thread(run_busy, &l);
    event_wait(&l.busy, 1); /* from here on only the guest can run what comes */
    releasing = start_thread(run_release, &l);
    assert_int_equal(blz_pool_run(l.home, enter_in_a_wait, &l), 0);
    join_thread(busy);
    join_thread(releasing);
    free_pool(l.home);
    free_pool(l.visited);
    free_pool(l.far);
}

struct taken_job {
    blz_par_job job;
    blz_pool *home, *visited, *far;
    struct event entered, forked, begun, called;
};

static void do_little(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

/* Until the guest looks for work: where it is a guest, or at home. */
static void wait_for_the_guest(blz_par *par, void *arg)
{
    struct taken_job *t = arg;
    blz_par_stats stats;

    (void)par;
    do {
        sched_yield();
        blz_pool_stats(t->visited, &stats);
    } while (stats.looking + stats.sleeping == 0 && event_count(&t->called) == 0);
}

/* In the guest: goes far when there is something to do at home. */
static void go_far(blz_par *par, blz_par_job *job)
{
    struct taken_job *t = blz_container_of(job, struct taken_job, job);
    blz_par_stats stats;

    (void)par;
    event_post(&t->begun);
    do {
        sched_yield();
        blz_pool_stats(t->home, &stats);
    } while (stats.queued == 0);
    check(blz_pool_run(t->far, wait_for_the_guest, t) == 0);
}

static void fork_for_a_guest(blz_par *par, void *arg)
{
    struct taken_job *t = arg;

    event_wait(&t->entered, 1); /* who is alone in a pool shows nothing */
    blz_par_fork(par, &t->job, go_far);
    event_post(&t->forked);
    event_wait(&t->begun, 1);
    check(!blz_par_unfork(par, &t->job));
}

static void visit_and_take_it(blz_par *par, void *arg)
{
    struct taken_job *t = arg;
    blz_par *guest = blz_pool_enter(t->visited);

    (void)par;
    check(guest);
    event_post(&t->entered);
    event_wait(&t->forked, 1);
    while (event_count(&t->begun) == 0)
        blz_par_yield(guest);
    blz_pool_leave(guest);
}

static void call_visited(blz_par *par, void *arg)
{
    struct taken_job *t = arg;

    (void)par;
    event_post(&t->called);
    check(blz_pool_run(t->visited, do_little, NULL) == 0);
}

static void *run_at_visited(void *arg)
{
    struct taken_job *t = arg;

    check(blz_pool_run(t->visited, fork_for_a_guest, t) == 0);
    return NULL;
}

static void *run_at_home(void *arg)
{
    struct taken_job *t = arg;

    check(blz_pool_run(t->home, visit_and_take_it, t) == 0);
    return NULL;
}

/*
 * The only worker at home has taken a job of the pool that it visits, whose only worker waits for
 * it. If it did something else in the middle of that job which asks the visited pool for anything,
 * they would wait for each other.
 */
static void a_guest_that_has_a_job_of_others_serves_their_pool(void **state)
{
    struct taken_job t = {.entered = EVENT_INIT,
                          .forked = EVENT_INIT,
                          .begun = EVENT_INIT,
                          .called = EVENT_INIT};
    pthread_t visited, home;

    (void)state;
    t.home = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    t.visited = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    t.far = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    visited = start_thread(run_at_visited, &t);
    home = start_thread(run_at_home, &t);
    event_wait(&t.begun, 1);
    assert_int_equal(blz_pool_run(t.home, call_visited, &t), 0);
    join_thread(visited);
    join_thread(home);
    free_pool(t.home);
    free_pool(t.visited);
    free_pool(t.far);
}

/* ---- a forked child ---- */

static int use_in_child(blz_pool *pool)
{
    blz_par *seen;

    if (blz_pool_run(pool, note_context, &seen) != -EOWNERDEAD)
        return 1;
    if (blz_pool_enter(pool))
        return 2;
    return blz_pool_free(pool) == -EOWNERDEAD ? 0 : 3;
}

static void check_in_child(blz_pool *pool)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(use_in_child(pool));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_child_is_told_that_the_owner_is_gone(void **state)
{
    blz_pool *pool = new_pool(2, 1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par;

    (void)state;
    check_in_child(pool);
    par = enter(pool);
    check_in_child(pool);
    assert_int_equal(fib(par, 10), 55); /* and the parent goes on */
    blz_pool_leave(par);
    free_pool(pool);
}

/* ---- a child that is forked in the middle of a computation ---- */

struct fork_inside {
    blz_pool *pool;
    struct event began;
    int run_in_child; /* a computation of the parent that was waiting */
};

static void be_foreign(blz_par *par, void *arg)
{
    struct fork_inside *f = arg;

    (void)par;
    __atomic_store_n(&f->run_in_child, 1, __ATOMIC_RELAXED);
}

/* Gives the other thread of the child the time to do what it must not. */
static void be_slow(blz_par *par, void *arg)
{
    struct fork_inside *f = arg;

    (void)par;
    for (int i = 0; i < 500 && !__atomic_load_n(&f->run_in_child, __ATOMIC_RELAXED); i++)
        sched_yield();
}

/* Has the context of a worker of a pool that is not there, and whose queue is not empty. */
static int compute_in_child(struct fork_inside *f)
{
    blz_pool *own;
    blz_par *guest;

    if (blz_pool_new(&own, &(blz_pool_options){.threads = 1}) < 0)
        return 1;
    if (blz_pool_run(own, be_slow, f) < 0 || blz_pool_broadcast(own, be_slow, f) < 0)
        return 2;
    guest = blz_pool_enter(own);
    if (!guest || blz_pool_run(own, be_slow, f) < 0 || fib(guest, 12) != 144)
        return 3;
    blz_pool_leave(guest);
    if (blz_pool_free(own) < 0)
        return 4;
    if (f->run_in_child)
        return 5;
    return use_in_child(f->pool);
}

static void fork_in_computation(blz_par *par, void *arg)
{
    struct fork_inside *f = arg;
    blz_par_stats stats;
    int status = -1;
    pid_t pid;

    (void)par;
    event_post(&f->began);
    do {
        sched_yield();
        blz_pool_stats(f->pool, &stats);
    } while (stats.queued == 0);
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(compute_in_child(f));
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *wait_in_queue(void *arg)
{
    struct fork_inside *f = arg;

    event_wait(&f->began, 1);
    check(blz_pool_run(f->pool, be_foreign, f) == 0);
    return NULL;
}

static void a_child_does_not_work_for_its_parent(void **state)
{
    struct fork_inside f = {.began = EVENT_INIT};
    pthread_t thread;

    (void)state;
#ifdef BLZ_TSAN
    skip(); /* it allows no threads in a child */
#endif
    f.pool = new_pool(1, 1, BLZ_PAR_WAIT_LEAPFROG);
    thread = start_thread(wait_in_queue, &f);
    assert_int_equal(blz_pool_run(f.pool, fork_in_computation, &f), 0);
    join_thread(thread);
    assert_int_equal(f.run_in_child, 1); /* here, in its turn */
    free_pool(f.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_guest_computes_by_itself),
        TEST(places_for_guests_are_counted),
        TEST(who_is_in_gets_the_context_that_it_has),
        TEST(a_worker_that_enters_stays_a_worker),
        TEST(no_place_is_left_until_a_guest_leaves),
        TEST(a_worker_takes_the_job_of_a_guest),
        TEST(a_guest_that_waits_takes_a_job_of_the_worker),
        TEST(guests_come_and_go),
        TEST(a_pool_is_freed_as_soon_as_its_guest_has_left),
        TEST(a_pool_is_freed_by_whom_it_has_just_woken),
        TEST(a_thread_is_a_guest_of_two_pools),
        TEST(pools_run_in_each_other),
        TEST(a_worker_that_is_a_guest_elsewhere_serves_its_own_pool),
        TEST(who_entered_in_a_wait_takes_what_there_is_after_it),
        TEST(a_guest_that_has_a_job_of_others_serves_their_pool),
        TEST(a_child_is_told_that_the_owner_is_gone),
        TEST(a_child_does_not_work_for_its_parent),
    };
    return RUN_TESTS(tests);
}
