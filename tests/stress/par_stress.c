/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fork-join pool under load: computations from many threads at once, more workers than cores,
 * rings of two slots, workers that fall asleep and are woken all the time. A lost wake-up or a lost
 * job hangs; a job that is run twice gives a wrong sum.
 */
#include "harness.h"

#include <string.h>

struct range {
    blz_par_job job;
    uint32_t *counts;
    int64_t from, to;
    uint64_t sum;
};

static void run_range(blz_par *par, blz_par_job *job);

/* Counts each element once, and adds them up. */
static uint64_t count(blz_par *par, uint32_t *counts, int64_t from, int64_t to)
{
    struct range right = {.counts = counts, .from = from + (to - from) / 2, .to = to};
    uint64_t left;

    if (to - from == 1) {
        __atomic_fetch_add(&counts[from], 1, __ATOMIC_RELAXED);
        return (uint64_t)from;
    }
    blz_par_fork(par, &right.job, run_range);
    left = count(par, counts, from, right.from);
    if (blz_par_unfork(par, &right.job))
        right.sum = count(par, counts, right.from, to);
    return left + right.sum;
}

static void run_range(blz_par *par, blz_par_job *job)
{
    struct range *range = blz_container_of(job, struct range, job);

    range->sum = count(par, range->counts, range->from, range->to);
}

enum { ELEMENTS = 4096 };

struct computation {
    uint32_t counts[ELEMENTS];
    uint64_t sum;
};

static void compute(blz_par *par, void *arg)
{
    struct computation *c = arg;

    c->sum = count(par, c->counts, 0, ELEMENTS);
}

static void *compute_often(void *arg)
{
    static __thread struct computation c;
    blz_pool *pool = arg;
    int64_t rounds = scaled(60);

    memset(&c, 0, sizeof c);
    for (int64_t i = 1; i <= rounds; i++) {
        blz_pool_run(pool, compute, &c);
        check(c.sum == (uint64_t)ELEMENTS * (ELEMENTS - 1) / 2);
        for (int k = 0; k < ELEMENTS; k++)
            check(c.counts[k] == (uint32_t)i);
    }
    return NULL;
}

static void compute_from_threads(unsigned workers, unsigned ring_size, blz_par_wait_mode waiting)
{
    pthread_t threads[3];
    blz_pool *pool;

    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = workers,
                                                             .ring_size = ring_size,
                                                             .waiting = waiting,
                                                             .allocator = test_memory()}),
                     0);
    for (int i = 0; i < 3; i++)
        threads[i] = start_thread(compute_often, pool);
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    assert_int_equal(blz_pool_free(pool), 0);
}

static void every_element_is_counted_once(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++)
        for (unsigned workers = 2; workers <= 8; workers *= 2) {
            compute_from_threads(workers, 2, (blz_par_wait_mode)waiting);
            compute_from_threads(workers, 0, (blz_par_wait_mode)waiting);
        }
}

static void count_one(blz_par *par, void *arg)
{
    (void)par;
    __atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
}

struct injector {
    blz_pool *pool;
    uint64_t *counter;
    int64_t rounds;
};

static void *inject_often(void *arg)
{
    struct injector *injector = arg;

    for (int64_t i = 0; i < injector->rounds; i++)
        blz_pool_run(injector->pool, count_one, injector->counter);
    return NULL;
}

static void pools_come_and_go(void **state)
{
    uint64_t counter = 0;
    int64_t rounds = scaled(100);

    (void)state;
    for (int64_t i = 0; i < rounds; i++) {
        struct injector injector = {.counter = &counter, .rounds = i % 3};
        assert_int_equal(blz_pool_new(&injector.pool,
                                      &(blz_pool_options){.threads = 3,
                                                          .allocator = test_memory()}),
                         0);
        inject_often(&injector);
        assert_int_equal(blz_pool_free(injector.pool), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_element_is_counted_once),
        TEST(pools_come_and_go),
    };
    return RUN_TESTS(tests);
}
