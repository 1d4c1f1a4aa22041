/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel loops under load: many at once, of all sizes and costs, one inside the other, some of
 * them cancelled from outside or failing. Each element is done once, or the loop says that it was
 * not; nobody is at work when it returns.
 */
#include "par.h"

#include <string.h>

enum { MOST = 2000 };

struct job {
    uint64_t seed;
    size_t n;
    uint32_t done, inside;
    bool fails;
    blz_par_cancel cancel;
};

/* Now and then an element takes long. */
static void work_on(const struct job *j, size_t i)
{
    uint64_t spins = mix(j->seed + i) % 64 == 0 ? mix(i) % 2000 : 0;

    for (uint64_t volatile k = 0; k < spins; k++)
        continue;
}

static int do_elements(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct job *j = arg;
    int rc = 0;

    (void)par;
    __atomic_fetch_add(&j->inside, 1, __ATOMIC_RELAXED);
    for (size_t i = begin; i < end; i++) {
        work_on(j, i);
        if (j->fails && i == j->n / 2)
            rc = -EDOM;
    }
    __atomic_fetch_add(&j->done, (uint32_t)(end - begin), __ATOMIC_RELAXED);
    __atomic_fetch_sub(&j->inside, 1, __ATOMIC_RELAXED);
    return rc;
}

static void check_result(const struct job *j, int rc)
{
    check(__atomic_load_n(&j->inside, __ATOMIC_RELAXED) == 0);
    check(rc != 0 || j->done == j->n);
    check(rc == 0 || rc == (j->fails ? -EDOM : -EINTR) || rc == -EINTR);
}

static int do_loops(blz_par *par, size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) {
        struct job j = {.seed = *(uint64_t *)arg + i, .n = mix(i) % 200};
        check_result(&j, blz_par_for(par, j.n, do_elements, &j, NULL));
    }
    return 0;
}

static uint64_t serial_sum(uint64_t seed, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += mix(seed + i);
    return sum;
}

BLZ_PAR_DEFINE_SUM(sum_mixed, uint64_t, const uint64_t, seed, i, mix(*seed + i))

static void compute(blz_par *par, void *arg)
{
    struct job *j = arg;
    blz_par_options options = {.cancel = &j->cancel};
    uint64_t sum;

    check_result(j, blz_par_for(par, j->n, do_elements, j, &options));
    check(blz_par_for(par, 10, do_loops, &j->seed, NULL) == 0);
    check(sum_mixed(par, &sum, j->n, &j->seed, NULL) == 0);
    check(sum == serial_sum(j->seed, j->n));
    check(sum_mixed_deterministic(par, &sum, j->n, &j->seed, NULL) == 0);
    check(sum == serial_sum(j->seed, j->n));
}

struct caller {
    blz_pool *pool;
    uint64_t seed;
};

static void *cancel_it(void *arg)
{
    struct job *j = arg;

    blz_par_cancel_set(&j->cancel, -EINTR);
    return NULL;
}

static void *compute_often(void *arg)
{
    struct caller *c = arg;
    int64_t rounds = scaled(40);

    for (int64_t i = 0; i < rounds; i++) {
        struct job j = {.seed = c->seed + (uint64_t)i * MOST, .fails = i % 5 == 1};
        pthread_t canceller;

        j.n = mix(j.seed) % MOST;
        if (i % 5 == 0)
            canceller = start_thread(cancel_it, &j);
        blz_pool_run(c->pool, compute, &j);
        if (i % 5 == 0)
            join_thread(canceller);
    }
    return NULL;
}

static void loop_from_threads(unsigned workers)
{
    blz_pool *pool = new_pool_of(workers);
    struct caller callers[3];
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        callers[i] = (struct caller){pool, (uint64_t)i * 1000003};
        threads[i] = start_thread(compute_often, &callers[i]);
    }
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    assert_int_equal(blz_pool_free(pool), 0);
}

static void loops_of_many_threads_get_done(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 8; workers = workers * 2)
        loop_from_threads(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(loops_of_many_threads_get_done),
    };
    return RUN_TESTS(tests);
}
