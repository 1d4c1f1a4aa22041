/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computations that go from pool to pool and back, where each pool has one thread: whoever waits is
 * the only one who could go on with what it waits for.
 */
#include "par.h"

#include <blitz/par_scope.h>

struct circle {
    blz_pool *a, *b, *c;
    blz_par_job outer, inner;
    struct event outer_begun, inner_begun;
    unsigned runs;
};

static void count_run(blz_par *par, void *arg)
{
    struct circle *t = arg;

    (void)par;
    __atomic_fetch_add(&t->runs, 1, __ATOMIC_RELAXED);
}

/* In C: asks both of the others for something. */
static void call_back(blz_par *par, void *arg)
{
    struct circle *t = arg;

    (void)par;
    for (int i = 0; i < 3; i++) {
        check(blz_pool_run(t->a, count_run, t) == 0);
        check(blz_pool_run(t->b, count_run, t) == 0);
    }
}

/* In the thread of A, which has taken it from that of B. */
static void run_inner(blz_par *par, blz_par_job *job)
{
    struct circle *t = blz_container_of(job, struct circle, inner);

    (void)par;
    event_post(&t->inner_begun);
    check(blz_pool_run(t->c, call_back, t) == 0);
}

/* In the thread of B, which waits for the one of A in the end, and takes nothing else. */
static void run_outer(blz_par *par, blz_par_job *job)
{
    struct circle *t = blz_container_of(job, struct circle, outer);

    event_post(&t->outer_begun);
    blz_par_fork(par, &t->inner, run_inner);
    event_wait(&t->inner_begun, 1);
    check(!blz_par_unfork(par, &t->inner));
}

static void fork_as_a_guest(blz_par *par, void *arg)
{
    struct circle *t = arg;

    blz_par_fork(par, &t->outer, run_outer);
    event_wait(&t->outer_begun, 1);
    check(!blz_par_unfork(par, &t->outer));
}

static void enter_the_second(blz_par *par, void *arg)
{
    struct circle *t = arg;
    blz_par *guest = blz_pool_enter(t->b);

    (void)par;
    check(guest);
    check(blz_pool_run(t->b, fork_as_a_guest, t) == 0);
    blz_pool_leave(guest);
}

/* The thread of A is the only one for what comes to A, and to B, and waits for C. */
static void a_thread_that_is_needed_in_two_pools_serves_both(void **state)
{
    struct circle t = {.outer_begun = EVENT_INIT, .inner_begun = EVENT_INIT};

    (void)state;
    t.a = new_pool_of(1);
    t.b = new_pool_of(1);
    t.c = new_pool_of(1);
    assert_int_equal(blz_pool_run(t.a, enter_the_second, &t), 0);
    assert_int_equal(t.runs, 6);
    free_pool(t.a);
    free_pool(t.b);
    free_pool(t.c);
}

/* ---- broadcasts ---- */

static void broadcast_in_the_first(blz_par *par, void *arg)
{
    struct circle *t = arg;

    (void)par;
    check(blz_pool_broadcast(t->a, count_run, t) == 0);
    check(blz_pool_run(t->a, count_run, t) == 0);
}

/* The thread of A, as a guest of B, waits for a broadcast there that wants something of A. */
static void broadcast_as_a_guest(blz_par *par, void *arg)
{
    struct circle *t = arg;
    blz_par *guest = blz_pool_enter(t->b);

    (void)par;
    check(guest);
    check(blz_pool_broadcast(t->b, broadcast_in_the_first, t) == 0);
    blz_pool_leave(guest);
}

static void a_thread_that_waits_as_a_guest_calls_the_broadcasts_of_its_pool(void **state)
{
    struct circle t = {.a = new_pool_of(1), .b = new_pool_of(1)};

    (void)state;
    assert_int_equal(blz_pool_run(t.a, broadcast_as_a_guest, &t), 0);
    assert_int_equal(t.runs, 2);
    free_pool(t.a);
    free_pool(t.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_thread_that_is_needed_in_two_pools_serves_both),
        TEST(a_thread_that_waits_as_a_guest_calls_the_broadcasts_of_its_pool),
    };
    return RUN_TESTS(tests);
}
