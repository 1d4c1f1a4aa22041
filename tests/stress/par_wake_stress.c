/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computations that come from outside, one at a time from each of several threads: each of them
 * may find the workers at any point on their way to sleep, and each must wake one, or hang. Parks
 * have no time limit, so a wake-up that is lost is noticed, by the watchdog of the test.
 *
 * In a soak it is a hundred million of them.
 */
#include "par.h"

#include <stdio.h>
#include <time.h>

/* In all: a multiple of the kinds, times what their threads do at a time. */
enum { SOAK_TOTAL = 100000000, SOAK_PART = 1000000, PART = 2000 };

enum { MAX_INJECTORS = 4 };

static const struct kind {
    unsigned workers, injectors;
    blz_pool_spin spin;
} kinds[] = {
    {2, 2, BLZ_POOL_SPIN_SHORT}, /* as most programs have it */
    {1, 1, BLZ_POOL_SPIN_NEVER}, /* both sleep each time */
    {2, 4, BLZ_POOL_SPIN_NEVER}, /* there is always one more to come */
    {4, 2, BLZ_POOL_SPIN_SHORT}, /* and always one more to wake */
    {3, 3, BLZ_POOL_SPIN_NEVER},
};

enum { NR_KINDS = sizeof kinds / sizeof kinds[0] };

struct injector {
    blz_pool *pool;
    int64_t rounds;
    uint64_t done; /* by computations of this thread: one at a time */
    uint64_t *all;
};

static void count_one(blz_par *par, void *arg)
{
    struct injector *injector = arg;

    (void)par;
    injector->done++;
    __atomic_fetch_add(injector->all, 1, __ATOMIC_RELAXED);
}

static void *inject_often(void *arg)
{
    struct injector *injector = arg;

    for (int64_t i = 1; i <= injector->rounds; i++) {
        check(blz_pool_run(injector->pool, count_one, injector) == 0);
        check(injector->done == (uint64_t)i);
    }
    return NULL;
}

/* As many computations, shared by the threads of that kind. */
static void inject(const struct kind *kind, int64_t count)
{
    struct injector injectors[MAX_INJECTORS];
    pthread_t threads[MAX_INJECTORS];
    uint64_t all = 0;
    int64_t left = count;
    blz_pool *pool =
        new_pool_with(&(blz_pool_options){.threads = kind->workers, .spin = kind->spin});

    for (unsigned i = 0; i < kind->injectors; i++) {
        int64_t rounds = left / (kind->injectors - i);
        left -= rounds;
        injectors[i] = (struct injector){.pool = pool, .rounds = rounds, .all = &all};
        threads[i] = start_thread(inject_often, &injectors[i]);
    }
    for (unsigned i = 0; i < kind->injectors; i++)
        join_thread(threads[i]);
    assert_int_equal(all, count);
    free_pool(pool);
}

static void report(int64_t done, int64_t total, time_t since)
{
    fprintf(stderr, "%lld of %lld computations from outside, %lld s\n", (long long)done,
            (long long)total, (long long)(time(NULL) - since));
}

static void no_wakeup_is_lost(void **state)
{
    bool long_run = is_soak() && !is_sanitized();
    int64_t part = long_run ? SOAK_PART : scaled(PART);
    int64_t total = long_run ? SOAK_TOTAL : NR_KINDS * part, done = 0;
    time_t start = time(NULL);

    (void)state;
    for (int kind = 0; done < total; kind = (kind + 1) % NR_KINDS) {
        allow_seconds(60); /* for each part anew */
        inject(&kinds[kind], part);
        done += part;
        if (is_soak())
            report(done, total, start);
    }
    assert_int_equal(done, total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_wakeup_is_lost),
    };
    return RUN_TESTS(tests);
}
