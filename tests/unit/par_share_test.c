/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of many branches, yields, broadcasts, memory of each thread. */
#include "par.h"

#include <sched.h>
#include <string.h>

enum { MAX_THREADS = 4 };

static blz_pool *new_pool(unsigned threads, blz_par_wait_mode waiting)
{
    return new_pool_with(&(blz_pool_options){.threads = threads, .waiting = waiting});
}

static void count_one(blz_par *par, void *arg)
{
    (void)par;
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

/* ---- joins of many ---- */

static void join_many(blz_par *par, void *arg)
{
    blz_par_call calls[100];
    int counts[100];

    (void)arg;
    for (int n = 0; n <= 100; n++) {
        memset(counts, 0, sizeof counts);
        for (int i = 0; i < n; i++)
            calls[i] = (blz_par_call){count_one, &counts[i]};
        blz_par_join_n(par, calls, (size_t)n);
        for (int i = 0; i < 100; i++)
            check(counts[i] == (i < n));
    }
    memset(counts, 0, sizeof counts);
    BLZ_PAR_JOIN(par, {count_one, &counts[0]}, {count_one, &counts[1]}, {count_one, &counts[2]});
    check(counts[0] == 1 && counts[1] == 1 && counts[2] == 1 && counts[3] == 0);
}

static void every_branch_of_many_is_called_once(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= MAX_THREADS; threads++) {
        blz_pool *pool = new_pool(threads, BLZ_PAR_WAIT_LEAPFROG);
        assert_int_equal(blz_pool_run(pool, join_many, NULL), 0);
        free_pool(pool);
    }
}

/* ---- yields ---- */

static void come(blz_par *par, void *arg)
{
    (void)par;
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

/* The other branch is not run by this thread, which is in this one. */
static void yield_until_it_has_come(blz_par *par, void *arg)
{
    while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE))
        blz_par_yield(par);
}

static void meet_by_yielding(blz_par *par, void *arg)
{
    int came = 0;

    (void)arg;
    blz_par_join(par, yield_until_it_has_come, &came, come, &came);
}

static void who_yields_shows_its_jobs(void **state)
{
    blz_pool *pool = new_pool(2, BLZ_PAR_WAIT_LEAPFROG);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(blz_pool_run(pool, meet_by_yielding, NULL), 0);
    free_pool(pool);
}

static void *run_once(void *arg)
{
    void **args = arg;

    check(blz_pool_run(args[0], come, args[1]) == 0);
    return NULL;
}

struct yielding {
    struct event begun;
    int came;
};

static void yield_until_another_was_run(blz_par *par, void *arg)
{
    struct yielding *y = arg;

    event_post(&y->begun);
    yield_until_it_has_come(par, &y->came);
}

static void *run_yielding(void *arg)
{
    void **args = arg;

    check(blz_pool_run(args[0], yield_until_another_was_run, args[1]) == 0);
    return NULL;
}

static void who_yields_runs_what_others_want(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG); /* nobody else is there */
    struct yielding y = {.begun = EVENT_INIT};
    pthread_t first, second;

    (void)state;
    first = start_thread(run_yielding, (void *[]){pool, &y});
    event_wait(&y.begun, 1);
    second = start_thread(run_once, (void *[]){pool, &y.came});
    join_thread(first);
    join_thread(second);
    free_pool(pool);
}

static void yield_once(blz_par *par, void *arg)
{
    *(bool *)arg = blz_par_yield(par);
}

static void a_yield_with_nothing_to_do_says_so(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    bool ran = true;

    (void)state;
    assert_int_equal(blz_pool_run(pool, yield_once, &ran), 0);
    assert_false(ran);
    free_pool(pool);
}

/* ---- broadcasts ---- */

struct tally {
    int counts[MAX_THREADS + 8];
    blz_pool *pool;
};

static void count_thread(blz_par *par, void *arg)
{
    struct tally *calls = arg;

    check(blz_par_index(par) < blz_pool_threads(blz_par_pool(par)));
    __atomic_fetch_add(&calls->counts[blz_par_index(par)], 1, __ATOMIC_RELAXED);
}

static void check_counts(const struct tally *calls, int expected)
{
    for (unsigned i = 0; i < blz_pool_threads(calls->pool); i++)
        check(calls->counts[i] == expected);
}

static void each_thread_calls_a_broadcast_once(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= MAX_THREADS; threads++)
        for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
            struct tally calls = {.pool = new_pool(threads, (blz_par_wait_mode)waiting)};
            for (int i = 1; i <= 20; i++) {
                assert_int_equal(blz_pool_broadcast(calls.pool, count_thread, &calls), 0);
                check_counts(&calls, i);
            }
            free_pool(calls.pool);
        }
}

static void broadcast_from_within(blz_par *par, void *arg)
{
    struct tally *calls = arg;

    (void)par;
    check(blz_pool_broadcast(calls->pool, count_thread, calls) == 0);
}

static void a_computation_broadcasts(void **state)
{
    struct tally calls = {.pool = new_pool(3, BLZ_PAR_WAIT_BLOCK)};

    (void)state;
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(blz_pool_run(calls.pool, broadcast_from_within, &calls), 0);
        check_counts(&calls, i);
    }
    /* each thread broadcasts in its turn */
    assert_int_equal(blz_pool_broadcast(calls.pool, broadcast_from_within, &calls), 0);
    check_counts(&calls, 5 + 3);
    free_pool(calls.pool);
}

static void a_guest_broadcasts_to_the_others(void **state)
{
    struct tally calls = {.pool = new_pool(2, BLZ_PAR_WAIT_LEAPFROG)};
    blz_par *par = blz_pool_enter(calls.pool);

    (void)state;
    assert_non_null(par);
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(blz_pool_broadcast(calls.pool, count_thread, &calls), 0);
        check_counts(&calls, i);
    }
    blz_pool_leave(par);
    free_pool(calls.pool);
}

static void *broadcast_often(void *arg)
{
    struct tally *calls = arg;

    for (int i = 0; i < 50; i++)
        check(blz_pool_broadcast(calls->pool, count_thread, calls) == 0);
    return NULL;
}

static void broadcasts_of_several_threads_are_all_called(void **state)
{
    struct tally calls = {.pool = new_pool(3, BLZ_PAR_WAIT_LEAPFROG)};
    pthread_t threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        threads[i] = start_thread(broadcast_often, &calls);
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    check_counts(&calls, 150);
    free_pool(calls.pool);
}

/* ---- a pool while one of its threads is in a broadcast ---- */

struct held_up {
    blz_pool *pool;
    struct event held, go;
    int calls;
};

static void hold_up_the_first(blz_par *par, void *arg)
{
    struct held_up *h = arg;

    (void)par;
    if (__atomic_fetch_add(&h->calls, 1, __ATOMIC_RELAXED) == 0) {
        event_post(&h->held);
        event_wait(&h->go, 1);
    }
}

static void *broadcast_and_hold_up(void *arg)
{
    struct held_up *h = arg;

    check(blz_pool_broadcast(h->pool, hold_up_the_first, h) == 0);
    return NULL;
}

static void let_go(blz_par *par, void *arg)
{
    (void)par;
    event_post(&((struct held_up *)arg)->go);
}

static void who_is_in_a_broadcast_does_not_count_as_looking_for_work(void **state)
{
    struct held_up h = {new_pool(2, BLZ_PAR_WAIT_LEAPFROG), EVENT_INIT, EVENT_INIT, 0};
    blz_par_stats stats = {0};
    pthread_t thread;

    (void)state;
    thread = start_thread(broadcast_and_hold_up, &h);
    event_wait(&h.held, 1);
    /* The other one has called it, and sleeps again. */
    while (__atomic_load_n(&h.calls, __ATOMIC_RELAXED) != 2 || stats.sleeping != 1) {
        sched_yield();
        blz_pool_stats(h.pool, &stats);
    }
    assert_int_equal(blz_pool_run(h.pool, let_go, &h), 0);
    join_thread(thread);
    free_pool(h.pool);
}

struct two_pools {
    struct tally calls;
    blz_pool *other;
};

/* It is still one of the threads that call it. */
static void broadcast_from_another_pool(blz_par *par, void *arg)
{
    struct two_pools *both = arg;
    blz_par *guest = blz_pool_enter(both->other);

    check(guest && guest != par);
    check(blz_pool_broadcast(both->calls.pool, count_thread, &both->calls) == 0);
    blz_pool_leave(guest);
}

static void a_thread_that_has_entered_another_pool_broadcasts(void **state)
{
    struct two_pools both = {.calls = {.pool = new_pool(2, BLZ_PAR_WAIT_LEAPFROG)}};

    (void)state;
    both.other = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    assert_int_equal(blz_pool_run(both.calls.pool, broadcast_from_another_pool, &both), 0);
    check_counts(&both.calls, 1);
    free_pool(both.other);
    free_pool(both.calls.pool);
}

static void try_to_broadcast(blz_par *par, void *arg)
{
    struct tally *calls = arg;

    (void)par;
    check(blz_pool_broadcast(calls->pool, count_thread, calls) == -EDEADLK);
    __atomic_store_n(&calls->counts[MAX_THREADS], 1, __ATOMIC_RELEASE);
}

static void join_broadcast(blz_par *par, void *arg)
{
    struct tally *calls = arg;

    blz_par_join(par, yield_until_it_has_come, &calls->counts[MAX_THREADS], try_to_broadcast,
                 calls);
}

static void who_took_a_job_may_not_broadcast(void **state)
{
    struct tally calls = {.pool = new_pool(2, BLZ_PAR_WAIT_LEAPFROG)};

    (void)state;
    assert_int_equal(blz_pool_run(calls.pool, join_broadcast, &calls), 0);
    check_counts(&calls, 0);
    free_pool(calls.pool);
}

/* ---- broadcasts that come back by way of another pool ---- */

/* In a region of the first pool, whose only thread waits for the second and calls nothing. */
static void broadcast_from_a_region(blz_par *par, void *arg)
{
    struct two_pools *both = arg;

    (void)par;
    check(blz_pool_broadcast(both->other, count_thread, &both->calls) == -EDEADLK);
    check(blz_pool_run(both->other, try_to_broadcast, &both->calls) == 0);
}

static void isolate_the_broadcast(blz_par *par, void *arg)
{
    blz_par_isolated(par, broadcast_from_a_region, arg);
}

static void a_region_does_not_broadcast_by_way_of_another_pool(void **state)
{
    struct two_pools both = {.calls = {.pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG)}};

    (void)state;
    both.other = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    assert_int_equal(blz_pool_run(both.calls.pool, isolate_the_broadcast, &both), 0);
    check_counts(&both.calls, 0);
    free_pool(both.other);
    free_pool(both.calls.pool);
}

/* A stolen job: the thread that waits for it, by helping, calls nothing meanwhile. */
static void broadcast_by_another_pool(blz_par *par, void *arg)
{
    struct two_pools *both = arg;

    (void)par;
    check(blz_pool_run(both->other, try_to_broadcast, &both->calls) == 0);
}

static void join_broadcast_by_another_pool(blz_par *par, void *arg)
{
    struct two_pools *both = arg;

    blz_par_join(par, yield_until_it_has_come, &both->calls.counts[MAX_THREADS],
                 broadcast_by_another_pool, both);
}

static void who_took_a_job_does_not_broadcast_by_way_of_another_pool(void **state)
{
    struct two_pools both = {.calls = {.pool = new_pool(2, BLZ_PAR_WAIT_LEAPFROG)}};

    (void)state;
    both.other = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    assert_int_equal(blz_pool_run(both.calls.pool, join_broadcast_by_another_pool, &both), 0);
    check_counts(&both.calls, 0);
    free_pool(both.other);
    free_pool(both.calls.pool);
}

/* ---- memory of each thread ---- */

struct item {
    uint64_t tag;
    int count;
};

static void make_item(void *item, void *arg)
{
    check(((struct item *)item)->count == 0);
    ((struct item *)item)->tag = (uint64_t)(uintptr_t)arg;
}

static void count_locally(blz_par *par, void *arg)
{
    struct item *item = blz_par_per_thread_get(arg, par);

    check(item->tag == 42);
    item->count++;
    check(blz_par_per_thread_get(arg, par) == item);
}

static int sum_items(const blz_par_per_thread *local, int *nr)
{
    int sum = 0;

    *nr = 0;
    for (struct item *item = NULL; (item = blz_par_per_thread_next(local, item)); (*nr)++)
        sum += item->count;
    return sum;
}

static void each_thread_has_an_item_of_its_own(void **state)
{
    blz_pool *pool = new_pool(3, BLZ_PAR_WAIT_LEAPFROG);
    blz_par_per_thread local;
    blz_par *par;
    int nr;

    (void)state;
    assert_int_equal(blz_par_per_thread_init(&local, pool, sizeof(struct item), make_item,
                                             (void *)(uintptr_t)42),
                     0);
    assert_null(blz_par_per_thread_next(&local, NULL));
    assert_int_equal(blz_pool_run(pool, count_locally, &local), 0);
    assert_int_equal(sum_items(&local, &nr), 1);
    assert_int_equal(nr, 1);
    assert_int_equal(blz_pool_broadcast(pool, count_locally, &local), 0);
    assert_int_equal(sum_items(&local, &nr), 4);
    assert_int_equal(nr, 3);
    par = blz_pool_enter(pool);
    assert_non_null(par);
    count_locally(par, &local);
    blz_pool_leave(par);
    assert_int_equal(sum_items(&local, &nr), 5);
    assert_int_equal(nr, 4);
    blz_par_per_thread_free(&local);
    free_pool(pool);
}

static void get_and_fill(blz_par *par, void *arg)
{
    char *item = blz_par_per_thread_get(arg, par);

    check((uintptr_t)item % 16 == 0);
    for (int i = 0; i < 1000; i++)
        check(item[i] == 0);
    memset(item, 1, 1000);
}

static void items_are_0_and_apart(void **state)
{
    blz_pool *pool = new_pool(4, BLZ_PAR_WAIT_LEAPFROG);
    blz_par_per_thread local;

    (void)state;
    assert_int_equal(blz_par_per_thread_init(&local, pool, 1000, NULL, NULL), 0);
    assert_int_equal(blz_pool_broadcast(pool, get_and_fill, &local), 0);
    blz_par_per_thread_free(&local);
    assert_int_equal(blz_par_per_thread_init(&local, pool, 0, NULL, NULL), -EINVAL);
    assert_int_equal(blz_par_per_thread_init(&local, pool, SIZE_MAX / 4, NULL, NULL), -EINVAL);
    free_pool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_branch_of_many_is_called_once),
        TEST(who_yields_shows_its_jobs),
        TEST(who_yields_runs_what_others_want),
        TEST(a_yield_with_nothing_to_do_says_so),
        TEST(each_thread_calls_a_broadcast_once),
        TEST(a_computation_broadcasts),
        TEST(a_guest_broadcasts_to_the_others),
        TEST(broadcasts_of_several_threads_are_all_called),
        TEST(who_is_in_a_broadcast_does_not_count_as_looking_for_work),
        TEST(a_thread_that_has_entered_another_pool_broadcasts),
        TEST(who_took_a_job_may_not_broadcast),
        TEST(a_region_does_not_broadcast_by_way_of_another_pool),
        TEST(who_took_a_job_does_not_broadcast_by_way_of_another_pool),
        TEST(each_thread_has_an_item_of_its_own),
        TEST(items_are_0_and_apart),
    };
    return RUN_TESTS(tests);
}
