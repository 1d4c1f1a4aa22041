/* SPDX-License-Identifier: Apache-2.0 */
/* The fork-join pool: its life, computations from outside, forks of all shapes, waiting. */
#include "par_fib.h"

#include <string.h>

/* ---- computations ---- */

struct fib_call {
    int n;
    uint64_t result;
};

static void run_fib(blz_par *par, void *arg)
{
    struct fib_call *call = arg;

    call->result = fib(par, call->n);
}

static uint64_t fib_in(blz_pool *pool, int n)
{
    struct fib_call call = {.n = n};

    blz_pool_run(pool, run_fib, &call);
    return call.result;
}

/* ---- life ---- */

static void a_pool_is_made_and_freed(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 9; threads += 4) {
        blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = threads});
        assert_int_equal(blz_pool_threads(pool), threads);
        free_pool(pool);
    }
    free_pool(NULL);
}

static void the_default_is_a_thread_for_each_cpu(void **state)
{
    blz_pool *pool;

    (void)state;
    assert_int_equal(blz_pool_new(&pool, NULL), 0);
    assert_true(blz_pool_threads(pool) >= 1);
    assert_int_equal(fib_in(pool, 10), 55);
    free_pool(pool);
}

static void bad_options_are_refused(void **state)
{
    blz_pool *pool;

    (void)state;
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.ring_size = 3}), -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 0x8000}), -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.guests = 0x7fff}), -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 0x7fff}), -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = -1u, .guests = 2}),
                     -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.ring_size = 1u << 31}), -EINVAL);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.stack_size = 1}), -EINVAL);
    assert_true(blz_pool_new(&pool, &(blz_pool_options){.stack_size = SIZE_MAX}) < 0);
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.waiting = BLZ_PAR_WAIT_BLOCK + 1}),
                     -EINVAL);
}

static void free_the_own_pool(blz_par *par, void *arg)
{
    void **args = arg;

    (void)par;
    *(int *)args[1] = blz_pool_free(args[0]);
}

static void a_pool_is_not_freed_from_within(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
    int rc = 0;

    (void)state;
    blz_pool_run(pool, free_the_own_pool, (void *[]){pool, &rc});
    assert_int_equal(rc, -EDEADLK);
    free_pool(pool);
}

/* ---- computations from outside ---- */

static void count_one(blz_par *par, void *arg)
{
    (void)par;
    ++*(int *)arg;
}

static void run_returns_when_the_function_has(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
    int count = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        blz_pool_run(pool, count_one, &count);
        assert_int_equal(count, i + 1);
    }
    free_pool(pool);
}

static void run_within(blz_par *par, void *arg)
{
    void **args = arg;
    int before = *(int *)args[1];

    blz_pool_run(args[0], count_one, args[1]);
    check(*(int *)args[1] == before + 1);
    check(blz_par_index(par) < blz_pool_threads(args[0]));
}

static void a_run_within_the_pool_is_a_call(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 1});
    int count = 0;

    (void)state;
    blz_pool_run(pool, run_within, (void *[]){pool, &count});
    assert_int_equal(count, 1);
    free_pool(pool);
}

static void a_pool_runs_in_another(void **state)
{
    blz_pool *outer = new_pool_with(&(blz_pool_options){.threads = 1});
    blz_pool *inner = new_pool_with(&(blz_pool_options){.threads = 1});
    int count = 0;

    (void)state;
    blz_pool_run(outer, run_within, (void *[]){inner, &count});
    assert_int_equal(count, 1);
    free_pool(inner);
    free_pool(outer);
}

static void *run_many(void *arg)
{
    static const uint64_t expected[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};

    for (int i = 0; i < 200; i++)
        check(fib_in(arg, i % 12) == expected[i % 12]);
    return NULL;
}

static void several_threads_run_at_once(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        threads[i] = start_thread(run_many, pool);
    for (int i = 0; i < 4; i++)
        join_thread(threads[i]);
    free_pool(pool);
}

/* ---- forks ---- */

static void every_kind_of_pool_computes_fib(void **state)
{
    static const unsigned sizes[] = {1, 2, 16, 0};

    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++)
        for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++)
            for (int i = 0; i < 4; i++) {
                blz_pool *pool =
                    new_pool_with(&(blz_pool_options){.threads = threads,
                                                      .waiting = (blz_par_wait_mode)waiting,
                                                      .ring_size = sizes[i]});
                assert_int_equal(fib_in(pool, 18), 2584);
                free_pool(pool);
            }
}

static void mark(blz_par *par, void *arg)
{
    (void)par;
    ++*(int *)arg;
}

static void join_two(blz_par *par, void *arg)
{
    int *counts = arg;

    blz_par_join(par, mark, &counts[0], mark, &counts[1]);
}

static void join_runs_both_branches_once(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
    int counts[2] = {0};

    (void)state;
    for (int i = 1; i <= 100; i++) {
        blz_pool_run(pool, join_two, counts);
        assert_int_equal(counts[0], i);
        assert_int_equal(counts[1], i);
    }
    free_pool(pool);
}

/* Many forks at once in one frame, more than the ring has slots. */
enum { MANY = 100 };

static void fork_many(blz_par *par, void *arg)
{
    struct half halves[MANY];
    uint64_t *sum = arg;

    for (int i = 0; i < MANY; i++) {
        halves[i].n = i % 10;
        blz_par_fork(par, &halves[i].job, run_half);
    }
    for (int i = MANY; i-- > 0;) {
        if (blz_par_unfork(par, &halves[i].job))
            halves[i].result = fib(par, halves[i].n);
        *sum += halves[i].result;
    }
}

static void more_forks_than_slots_are_all_run(void **state)
{
    (void)state;
    for (unsigned size = 1; size <= 256; size *= 4) {
        blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 3, .ring_size = size});
        for (int i = 0; i < 20; i++) {
            uint64_t sum = 0;
            blz_pool_run(pool, fork_many, &sum);
            assert_int_equal(sum, 88 * (MANY / 10));
        }
        free_pool(pool);
    }
}

/* ---- two threads at once ---- */

struct meeting {
    struct event left, right;
    unsigned left_index, right_index;
    struct half filler[4];
};

static void come_from_the_right(blz_par *par, void *arg)
{
    struct meeting *m = arg;

    m->right_index = blz_par_index(par);
    event_post(&m->right);
    event_wait(&m->left, 1);
}

/* Forks until another worker has come for the other branch, which waits for this one. */
static void come_from_the_left(blz_par *par, void *arg)
{
    struct meeting *m = arg;
    struct half filler = {.n = 0};

    m->left_index = blz_par_index(par);
    while (event_count(&m->right) == 0) {
        blz_par_fork(par, &filler.job, run_half);
        if (blz_par_unfork(par, &filler.job))
            filler.result = 0;
    }
    event_post(&m->left);
}

static void join_meeting(blz_par *par, void *arg)
{
    blz_par_join(par, come_from_the_left, arg, come_from_the_right, arg);
}

static void a_branch_is_taken_by_a_worker_that_sleeps(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
        blz_pool *pool =
            new_pool_with(&(blz_pool_options){.threads = 2, .waiting = (blz_par_wait_mode)waiting});
        for (int i = 0; i < 20; i++) {
            struct meeting m = {.left = EVENT_INIT, .right = EVENT_INIT};
            blz_pool_run(pool, join_meeting, &m);
            assert_int_not_equal(m.left_index, m.right_index);
        }
        free_pool(pool);
    }
}

/* ---- coarse branches ---- */

/* Neither branch forks, and each waits for the other: both run at once, or for ever. */
static void come_from_one_side(struct event *mine, struct event *other)
{
    event_post(mine);
    event_wait(other, 1);
}

static void long_left(blz_par *par, void *arg)
{
    struct meeting *m = arg;

    m->left_index = blz_par_index(par);
    come_from_one_side(&m->left, &m->right);
}

static void long_right(blz_par *par, void *arg)
{
    struct meeting *m = arg;

    m->right_index = blz_par_index(par);
    come_from_one_side(&m->right, &m->left);
}

static void join_long(blz_par *par, void *arg)
{
    blz_par_join(par, long_left, arg, long_right, arg);
}

static void run_coarsely(blz_pool *pool, blz_par_fn fn)
{
    struct meeting m = {.left = EVENT_INIT, .right = EVENT_INIT};

    blz_pool_run(pool, fn, &m);
    assert_int_not_equal(m.left_index, m.right_index);
}

static void the_first_fork_of_a_new_pool_is_seen_by_others(void **state)
{
    (void)state;
    for (unsigned threads = 2; threads <= 4; threads++)
        for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
            blz_pool *pool = new_pool_with(
                &(blz_pool_options){.threads = threads, .waiting = (blz_par_wait_mode)waiting});
            run_coarsely(pool, join_long);
            free_pool(pool);
        }
}

/* Each of the first forks is looked at, so a coarse one is seen also after some tiny ones. */
static void join_long_after_tiny_ones(blz_par *par, void *arg)
{
    int counts[2] = {0};

    for (int i = 0; i < 5; i++)
        blz_par_join(par, mark, &counts[0], mark, &counts[1]);
    join_long(par, arg);
}

static void a_coarse_fork_is_seen_after_tiny_ones(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
        run_coarsely(pool, join_long_after_tiny_ones);
        free_pool(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pool_is_made_and_freed),
        TEST(the_default_is_a_thread_for_each_cpu),
        TEST(bad_options_are_refused),
        TEST(a_pool_is_not_freed_from_within),
        TEST(run_returns_when_the_function_has),
        TEST(a_run_within_the_pool_is_a_call),
        TEST(a_pool_runs_in_another),
        TEST(several_threads_run_at_once),
        TEST(every_kind_of_pool_computes_fib),
        TEST(join_runs_both_branches_once),
        TEST(more_forks_than_slots_are_all_run),
        TEST(a_branch_is_taken_by_a_worker_that_sleeps),
        TEST(the_first_fork_of_a_new_pool_is_seen_by_others),
        TEST(a_coarse_fork_is_seen_after_tiny_ones),
    };
    return RUN_TESTS(tests);
}
