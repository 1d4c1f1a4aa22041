/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(2) in the middle of a computation. The child has the thread that forked and the memory of
 * all of them: jobs and computations that only the parent may run, and waits for threads that are
 * not there.
 */
#include "par/pool.h" /* first: it has its own idea of what the header's atomics are */

#include "par.h"

#include "base/sanitize.h"

#include <blitz/par_scope.h>

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RAN_IN_THE_CHILD = 7 };

static pid_t parent;

/* Calls fn in a child that this thread forks; gives its status. */
static int status_of_child(int (*fn)(blz_par *par, void *arg), blz_par *par, void *arg)
{
    static const struct rlimit no_core;
    sigset_t none;
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        sigemptyset(&none); /* threads of a pool leave signals to others */
        pthread_sigmask(SIG_SETMASK, &none, NULL);
        alarm(CHILD_SECONDS);
        setrlimit(RLIMIT_CORE, &no_core);
        _exit(fn(par, arg));
    }
    check(pid > 0);
    check(waitpid(pid, &status, 0) == pid);
    return status;
}

/* ---- another pool ---- */

static void do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

/* It is in the queue of the parent's pool when the child comes to be. */
static void not_in_the_child(blz_par *par, void *arg)
{
    (void)par;
    if (getpid() != parent)
        _exit(RAN_IN_THE_CHILD);
    ++*(int *)arg;
}

static int use_another_pool(blz_par *par, void *arg)
{
    blz_pool *pool;

    (void)arg;
    if (blz_pool_new(&pool, &(blz_pool_options){.threads = 1}) != 0)
        return 1;
    if (blz_par_yield(par))
        return 2;
    for (int i = 0; i < 10; i++)
        if (blz_pool_run(pool, do_nothing, NULL) != 0)
            return 3;
    if (blz_pool_broadcast(pool, do_nothing, NULL) != 0)
        return 4;
    return blz_pool_free(pool) == 0 ? 0 : 5;
}

struct queued {
    blz_pool *pool;
    int runs;
    int status;
};

static void *queue_one(void *arg)
{
    struct queued *q = arg;

    check(blz_pool_run(q->pool, not_in_the_child, &q->runs) == 0);
    return NULL;
}

static void fork_when_one_is_queued(blz_par *par, void *arg)
{
    struct queued *q = arg;
    blz_par_stats stats;

    do {
        sched_yield();
        blz_pool_stats(q->pool, &stats);
    } while (stats.queued == 0);
    q->status = status_of_child(use_another_pool, par, NULL);
}

static void *run_the_forking_one(void *arg)
{
    struct queued *q = arg;

    check(blz_pool_run(q->pool, fork_when_one_is_queued, q) == 0);
    return NULL;
}

static void a_child_uses_other_pools_and_runs_nothing_of_its_parent(void **state)
{
    struct queued q = {.runs = 0};
    pthread_t forking, queueing;
    blz_par_stats stats;

    (void)state;
#ifdef BLZ_TSAN
    skip(); /* it allows no threads in a child */
#endif
    parent = getpid();
    q.pool = new_pool_of(1);
    forking = start_thread(run_the_forking_one, &q);
    do { /* the only thread is taken */
        sched_yield();
        blz_pool_stats(q.pool, &stats);
    } while (stats.injected == 0);
    queueing = start_thread(queue_one, &q);
    join_thread(forking);
    join_thread(queueing);
    assert_int_equal(q.status, 0);
    assert_int_equal(q.runs, 1);
    free_pool(q.pool);
}

/* ---- what a thread of the parent has ---- */

struct stolen {
    blz_par_job job;
    struct event begun, go_on;
    int status;
};

static void wait_to_go_on(blz_par *par, blz_par_job *job)
{
    struct stolen *s = blz_container_of(job, struct stolen, job);

    (void)par;
    event_post(&s->begun);
    event_wait(&s->go_on, 1);
}

static int wait_for_it_in_the_child(blz_par *par, void *arg)
{
    struct stolen *s = arg;

    return blz_par_unfork(par, &s->job) ? 1 : 2;
}

static void fork_when_one_is_stolen(blz_par *par, void *arg)
{
    struct stolen *s = arg;

    blz_par_fork(par, &s->job, wait_to_go_on);
    event_wait(&s->begun, 1);
    s->status = status_of_child(wait_for_it_in_the_child, par, s);
    event_post(&s->go_on);
    check(!blz_par_unfork(par, &s->job));
}

static void a_child_that_waits_for_a_thread_of_its_parent_is_told(void **state)
{
    struct stolen s = {.begun = EVENT_INIT, .go_on = EVENT_INIT};
    blz_pool *pool = new_pool_of(2);

    (void)state;
    assert_int_equal(blz_pool_run(pool, fork_when_one_is_stolen, &s), 0);
    assert_true(WIFSIGNALED(s.status));
    assert_int_equal(WTERMSIG(s.status), SIGABRT);
    free_pool(pool);
}

/* ---- locks that a thread of the parent held ---- */

static int unfork_in_the_child(blz_par *par, void *arg)
{
    return blz_par_unfork(par, arg) ? 1 : 2;
}

static void run_nothing(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/* A thief has raised the guard, and has not looked whether the job is still there. */
static void fork_when_one_is_being_taken(blz_par *par, void *arg)
{
    ring *r = &worker_of(par)->ring;
    blz_par_job job;

    blz_par_fork(par, &job, run_nothing);
    check(ring_force_begin(r) == &job);
    *(int *)arg = status_of_child(unfork_in_the_child, par, &job);
    ring_force_cancel(r);
    check(blz_par_unfork(par, &job));
}

static void a_child_whose_job_a_thief_of_its_parent_was_taking_is_told(void **state)
{
    int status = 0;

    (void)state;
    in_pool_of(1, fork_when_one_is_being_taken, &status);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static int spawn_nothing(blz_par *par, void *arg)
{
    ++*(int *)arg;
    (void)par;
    return 0;
}

/* More blocks than a worker keeps for itself: they come from the pile, and go there. */
static int fork_and_spawn_in_the_child(blz_par *par, void *arg)
{
    enum { TASKS = 200 * BLOCK_TASKS };
    blz_par_scope scope;
    int forked = 0, spawned = 0;

    (void)arg;
    for (int i = 0; i < 100; i++) {
        blz_par_job job;
        blz_par_fork(par, &job, run_nothing);
        forked += blz_par_unfork(par, &job);
    }
    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < TASKS; i++)
        if (blz_par_spawn(par, &scope, spawn_nothing, &spawned) != 0)
            return 1;
    if (blz_par_scope_end(par, &scope) != 0 || spawned != TASKS)
        return 2;
    return forked == 100 ? 0 : 3;
}

/* Others were about to look at the ring, to take tasks by force, and to take blocks from the pile
 * or to give some. */
static void fork_when_locks_are_held(blz_par *par, void *arg)
{
    worker *w = worker_of(par);
    task_pile *pile = &w->pool->pile;
    uint32_t len = blz__load(&pile->len, RELAXED);

    check(blz__lock_try(&w->ring.lock));
    blz__biased_lock_enter_other(&w->tasks.lock);
    blz__lock_acquire(&pile->lock);
    blz__store(&pile->len, 1u, RELAXED);
    *(int *)arg = status_of_child(fork_and_spawn_in_the_child, par, NULL);
    blz__store(&pile->len, len, RELAXED);
    blz__lock_release(&pile->lock);
    blz__biased_lock_leave_other(&w->tasks.lock);
    blz__lock_release(&w->ring.lock);
}

static void a_child_waits_for_no_lock_of_its_parent(void **state)
{
    int status = 0;

    (void)state;
    in_pool_of(2, fork_when_locks_are_held, &status);
    assert_int_equal(status, 0);
}

static int spawn_in_the_child(blz_par *par, void *arg)
{
    int spawned = 0, rc = fork_and_spawn_in_the_child(par, NULL); /* a scope of its own */

    return rc ? rc : blz_par_spawn(par, arg, spawn_nothing, &spawned);
}

static void fork_when_tasks_are_being_taken(blz_par *par, void *arg)
{
    worker *w = worker_of(par);
    blz_par_scope scope;

    blz_par_scope_begin(par, &scope);
    blz__biased_lock_enter_other(&w->tasks.lock);
    blz__store(&w->tasks.cut, &scope.tasks, RELAXED);
    *(int *)arg = status_of_child(spawn_in_the_child, par, &scope);
    blz__store(&w->tasks.cut, NULL, RELAXED);
    blz__biased_lock_leave_other(&w->tasks.lock);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void a_child_whose_tasks_a_thief_of_its_parent_was_taking_is_told(void **state)
{
    int status = 0;

    (void)state;
    in_pool_of(2, fork_when_tasks_are_being_taken, &status);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_child_uses_other_pools_and_runs_nothing_of_its_parent),
        TEST(a_child_that_waits_for_a_thread_of_its_parent_is_told),
        TEST(a_child_whose_job_a_thief_of_its_parent_was_taking_is_told),
        TEST(a_child_waits_for_no_lock_of_its_parent),
        TEST(a_child_whose_tasks_a_thief_of_its_parent_was_taking_is_told),
    };
    return RUN_TESTS(tests);
}
