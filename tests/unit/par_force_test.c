/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches that wait for each other, where nothing shows the second one to others: it must be found
 * all the same, or they wait for ever. Without asymmetric fences nobody would find it.
 */
#include "par/pool.h" /* first: it has its own idea of what the header's atomics are */

#include "par.h"
#include "system/fence.h"
#include "system/futex.h"
#include "system/thread.h"

#include <blitz/par_for.h>
#include <blitz/par_scope.h>

static blz_pool *new_pool(unsigned threads, blz_par_wait_mode waiting)
{
    return new_pool_with(&(blz_pool_options){.threads = threads, .waiting = waiting});
}

/* ---- branches that meet ---- */

/* Returns when two are in here; does not fork, does not yield to the pool. */
static void meet(blz_par *par, void *arg)
{
    uint32_t *nr_met = arg;

    (void)par;
    if (blz__fetch_add(nr_met, 1u, ACQ_REL) == 1)
        blz__futex_wake(nr_met, 1);
    while (blz__load(nr_met, ACQUIRE) < 2)
        blz__futex_wait(nr_met, 1);
}

static void join_two_that_meet(blz_par *par, void *arg)
{
    uint32_t nr_met = 0;

    (void)arg;
    blz_par_join(par, meet, &nr_met, meet, &nr_met);
    check(nr_met == 2);
}

static void nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

static void join_nothing(blz_par *par, void *arg)
{
    blz_par_join(par, nothing, arg, nothing, arg);
}

/* ---- in a calm ---- */

static void make_calm_for(blz_pool *pool, uint64_t times)
{
    uint64_t now = blz__clock_ticks(&pool->clock);

    blz__store(&pool->calm_until, now + times * pool->calm_ticks, RELAXED);
}

static void make_calm(blz_pool *pool)
{
    make_calm_for(pool, 1);
}

/* Makes a calm; if `tiny`, lets the others see it and go to sleep in it. */
static void meet_in_calms(blz_pool *pool, unsigned tiny)
{
    for (int i = 0; i < 10; i++) {
        make_calm(pool);
        for (unsigned k = 0; k < tiny; k++)
            blz_pool_run(pool, join_nothing, NULL);
        assert_int_equal(blz_pool_run(pool, join_two_that_meet, NULL), 0);
    }
}

static void each_way_of_waiting(void (*fn)(blz_pool *pool, unsigned tiny), unsigned tiny)
{
    for (unsigned threads = 2; threads <= 3; threads++) {
        for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++) {
            blz_pool *pool = new_pool(threads, (blz_par_wait_mode)waiting);
            fn(pool, tiny);
            free_pool(pool);
        }
    }
}

static void a_coarse_fork_is_found_in_a_calm(void **state)
{
    (void)state;
    each_way_of_waiting(meet_in_calms, 0);
}

static void a_coarse_fork_is_found_after_tiny_computations(void **state)
{
    (void)state;
    each_way_of_waiting(meet_in_calms, 30);
}

static void a_coarse_fork_of_a_guest_is_found_in_a_calm(void **state)
{
    (void)state;
    for (unsigned tiny = 0; tiny <= 30; tiny += 30) {
        blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
        blz_par *par = blz_pool_enter(pool);

        assert_non_null(par);
        meet_in_calms(pool, tiny);
        blz_pool_leave(par);
        free_pool(pool);
    }
}

/* ---- at the edges of a calm ---- */

static bool has_watcher(const blz_pool *pool)
{
    return blz__load(&pool->has_watcher, RELAXED);
}

static uint64_t nr_sleeps(const blz_pool *pool)
{
    return blz__load(&pool->workers[0].stats.sleeps, RELAXED);
}

/* The only worker. It has been counted before that. */
static bool is_asleep(const blz_pool *pool)
{
    return blz__load(&pool->sleep.sleepers[0].word, RELAXED) == SLEEP_ASLEEP;
}

static void wait_for_sleep(const blz_pool *pool)
{
    while (!is_asleep(pool))
        blz__thread_yield();
}

/* The worker looks around, finds nothing, and sleeps again. Its time may be over just when it is
 * to be woken: that does not count. */
static void rouse(blz_pool *pool)
{
    uint64_t sleeps = nr_sleeps(pool);

    while (nr_sleeps(pool) == sleeps) {
        if (is_asleep(pool))
            blz__par_sleep_wake(&pool->sleep, 0);
        blz__thread_yield();
    }
    wait_for_sleep(pool);
}

static int meet_in_a_loop(blz_par *par, size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++)
        meet(par, arg);
    return 0;
}

/* The worker has gone to sleep before the calm, for good: nobody would look for what is private. */
static void a_coarse_loop_is_shared_in_a_calm_without_a_watcher(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);
    uint32_t nr_met = 0;

    (void)state;
    assert_non_null(par);
    wait_for_sleep(pool);
    while (has_watcher(pool))
        blz__thread_yield();
    wait_for_sleep(pool);
    make_calm_for(pool, 10000);
    assert_int_equal(blz_par_for(par, 2, meet_in_a_loop, &nr_met, &(blz_par_options){.grain = 1}),
                     0);
    assert_int_equal(nr_met, 2);
    blz_pool_leave(par);
    free_pool(pool);
}

/*
 * It begins in a calm, with a watcher. The calm ends early, and the watcher is woken in vain and
 * sleeps again; only then comes the fork, and it is still solo.
 */
static void fork_after_the_calm(blz_par *par, void *arg)
{
    blz_pool *pool = arg;

    blz__par_judge(pool, blz__clock_ticks(&pool->clock), true);
    rouse(pool);
    join_two_that_meet(par, NULL);
}

/* For 20 ms: later the fork would be shown in any case. */
static void be_solo_longer(unsigned index, void *arg)
{
    (void)arg, (void)index;
    worker_of(blz__thread_locals()->par)->pool->solo_ticks *= 2000;
}

static void a_coarse_fork_is_found_when_the_calm_is_just_over(void **state)
{
    blz_pool *pool =
        new_pool_with(&(blz_pool_options){.threads = 1, .on_thread_start = be_solo_longer});
    blz_par *par = blz_pool_enter(pool);

    (void)state;
    assert_non_null(par);
    make_calm_for(pool, 10000);
    rouse(pool);
    assert_true(has_watcher(pool));
    assert_int_equal(blz_pool_run(pool, fork_after_the_calm, pool), 0);
    blz_pool_leave(par);
    free_pool(pool);
}

/* However long a computation takes: this is not about the clock. */
static void be_solo_for_ever(unsigned index, void *arg)
{
    (void)arg, (void)index;
    worker_of(blz__thread_locals()->par)->pool->solo_ticks = (uint64_t)1 << 50;
}

static int do_nothing_in_a_loop(blz_par *par, size_t begin, size_t end, void *arg)
{
    (void)par, (void)begin, (void)end, (void)arg;
    return 0;
}

static void compute_nothing(blz_par *par)
{
    assert_int_equal(blz_pool_run(blz_par_pool(par), nothing, NULL), 0);
}

static void loop_over_nothing(blz_par *par)
{
    const blz_par_options fine = {.grain = 1};

    assert_int_equal(blz_par_for(par, 100, do_nothing_in_a_loop, NULL, &fine), 0);
}

/*
 * What was solo is over, and so is the calm; the worker has seen both, and sleeps for good. What
 * the guest forks now, outside of a computation, is for others.
 */
static void meet_after_what_was_solo(void (*be_solo)(blz_par *par))
{
    blz_pool *pool =
        new_pool_with(&(blz_pool_options){.threads = 1, .on_thread_start = be_solo_for_ever});
    blz_par *par = blz_pool_enter(pool);

    assert_non_null(par);
    make_calm_for(pool, 1000000);
    rouse(pool);
    be_solo(par);
    blz__par_judge(pool, blz__clock_ticks(&pool->clock), true);
    rouse(pool);
    join_two_that_meet(par, NULL);
    blz_pool_leave(par);
    free_pool(pool);
}

static void a_coarse_fork_is_found_after_what_was_solo(void **state)
{
    (void)state;
    meet_after_what_was_solo(compute_nothing);
    meet_after_what_was_solo(loop_over_nothing);
}

/* It has seen that another one watches, and so would sleep for good. */
static void who_is_about_to_sleep_looks_again_when_nobody_watches_any_more(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);
    uint32_t event;

    (void)state;
    assert_non_null(par);
    make_calm_for(pool, 10000);
    rouse(pool);
    event = blz__par_sleep_announce(&pool->sleep);
    assert_int_equal(blz__par_watch_begin(worker_of(par)), 0);
    rouse(pool);
    assert_int_not_equal(sleep_event(blz__load(&pool->sleep.counters, RELAXED)), event);
    blz_pool_leave(par);
    free_pool(pool);
}

static int meet_as_a_task(blz_par *par, void *arg)
{
    meet(par, arg);
    return 0;
}

static void spawn_two_that_meet(blz_par *par, void *arg)
{
    uint32_t nr_met = 0;
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, meet_as_a_task, &nr_met) == 0);
    check(blz_par_spawn(par, &scope, meet_as_a_task, &nr_met) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void a_coarse_task_is_found_in_a_calm(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);

    (void)state;
    assert_non_null(par);
    make_calm_for(pool, 20);
    rouse(pool);
    assert_int_equal(blz_pool_run(pool, spawn_two_that_meet, NULL), 0);
    blz_pool_leave(par);
    free_pool(pool);
}

/* Who has spawned it does something long itself, and spawns no more. */
static void spawn_and_meet(blz_par *par, void *arg)
{
    uint32_t nr_met = 0;
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, meet_as_a_task, &nr_met) == 0);
    meet(par, &nr_met);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void a_coarse_task_is_found_while_its_scope_goes_on(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);

    (void)state;
    assert_non_null(par);
    for (int i = 0; i < 10; i++) {
        make_calm_for(pool, 20);
        rouse(pool);
        assert_int_equal(blz_pool_run(pool, spawn_and_meet, NULL), 0);
        make_calm_for(pool, 20);
        rouse(pool);
        spawn_and_meet(par, NULL);
    }
    blz_pool_leave(par);
    free_pool(pool);
}

struct several {
    int count;
    int (*spawn)(blz_par *par, blz_par_scope *scope, blz_par_task_fn fn, void *arg);
};

static int count_as_a_task(blz_par *par, void *arg)
{
    (void)par;
    blz__fetch_add((uint32_t *)arg, 1u, RELEASE);
    blz__futex_wake(arg, 1);
    return 0;
}

/* Who spawns them runs none of them, and spawns no more. */
static void spawn_several_and_wait(blz_par *par, void *arg)
{
    const struct several *several = arg;
    uint32_t nr_run = 0, seen;
    blz_par_scope scope;

    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < several->count; i++)
        check(several->spawn(par, &scope, count_as_a_task, &nr_run) == 0);
    while ((seen = blz__load(&nr_run, ACQUIRE)) < (uint32_t)several->count)
        blz__futex_wait(&nr_run, seen);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void find_several(struct several several)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);

    assert_non_null(par);
    for (int i = 0; i < 20; i++) {
        make_calm_for(pool, i % 2 ? 20 : 0);
        rouse(pool);
        assert_int_equal(blz_pool_run(pool, spawn_several_and_wait, &several), 0);
        spawn_several_and_wait(par, &several);
    }
    blz_pool_leave(par);
    free_pool(pool);
}

/* A few, and many blocks of them. */
static void all_tasks_are_found_while_their_scope_goes_on(void **state)
{
    (void)state;
    for (int count = 2; count <= 2000; count = count * 5 / 2) {
        find_several((struct several){count, blz_par_spawn});
        find_several((struct several){count, blz_par_spawn_fifo});
    }
}

/* In the worker, while who began the scope waits for it. */
static int spawn_more_and_wait(blz_par *par, void *arg)
{
    enum { MORE = 100 };
    blz_par_scope *scope = arg;
    uint32_t nr_run = 0, seen;

    for (int i = 0; i < MORE; i++)
        check(blz_par_spawn(par, scope, count_as_a_task, &nr_run) == 0);
    while ((seen = blz__load(&nr_run, ACQUIRE)) < MORE)
        blz__futex_wait(&nr_run, seen);
    return 0;
}

static void spawn_one_that_spawns(blz_par *par, void *arg)
{
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, spawn_more_and_wait, &scope) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
}

/* Who waits by blocking takes none of them: then there must be a third thread. */
static void all_tasks_of_a_task_are_found(void **state)
{
    static const struct {
        unsigned threads;
        blz_par_wait_mode waiting;
    } ways[] = {{2, BLZ_PAR_WAIT_LEAPFROG}, {2, BLZ_PAR_WAIT_STEAL}, {3, BLZ_PAR_WAIT_BLOCK}};

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        blz_pool *pool = new_pool(ways[i].threads, ways[i].waiting);

        for (int k = 0; k < 50; k++)
            assert_int_equal(blz_pool_run(pool, spawn_one_that_spawns, NULL), 0);
        free_pool(pool);
    }
}

/* ---- tiny scopes ---- */

static int nothing_as_a_task(blz_par *par, void *arg)
{
    (void)par, (void)arg;
    return 0;
}

static void spawn_tiny_ones(blz_par *par, void *arg)
{
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < 3; i++)
        check(blz_par_spawn(par, &scope, nothing_as_a_task, NULL) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
}

struct busy {
    blz_pool *pool;
    struct event begun, go_on;
};

static void be_busy(blz_par *par, void *arg)
{
    struct busy *b = arg;

    (void)par;
    event_post(&b->begun);
    event_wait(&b->go_on, 1);
}

static void *keep_busy(void *arg)
{
    struct busy *b = arg;

    check(blz_pool_run(b->pool, be_busy, b) == 0);
    return NULL;
}

/* The only worker has something else to do, so the guest takes back what it has offered. */
static void a_scope_that_nobody_comes_for_begins_a_calm(void **state)
{
    struct busy b = {.pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG),
                     .begun = EVENT_INIT,
                     .go_on = EVENT_INIT};
    pthread_t other = start_thread(keep_busy, &b);
    blz_par *par = blz_pool_enter(b.pool);

    (void)state;
    assert_non_null(par);
    event_wait(&b.begun, 1);
    assert_int_equal(blz__load(&b.pool->vain, RELAXED), 0);
    assert_int_equal(blz_pool_run(b.pool, spawn_tiny_ones, NULL), 0);
    assert_int_equal(blz__load(&b.pool->vain, RELAXED), 1);
    event_post(&b.go_on);
    join_thread(other);
    blz_pool_leave(par);
    free_pool(b.pool);
}

static void tiny_scopes_in_a_calm_wake_nobody(void **state)
{
    blz_pool *pool =
        new_pool_with(&(blz_pool_options){.threads = 1, .on_thread_start = be_solo_for_ever});
    blz_par *par = blz_pool_enter(pool);
    uint64_t sleeps;

    (void)state;
    assert_non_null(par);
    make_calm_for(pool, 1000000);
    rouse(pool);
    sleeps = nr_sleeps(pool);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(blz_pool_run(pool, spawn_tiny_ones, NULL), 0);
        spawn_tiny_ones(par, NULL); /* outside of a computation: it is one itself */
    }
    assert_int_equal(sleep_nr_asleep(blz__load(&pool->sleep.counters, RELAXED)), 1);
    assert_int_equal(nr_sleeps(pool), sleeps);
    blz_pool_leave(par);
    free_pool(pool);
}

/* Longer than what is too small to share. */
static int take_long(blz_par *par, void *arg)
{
    const blz_pool *pool = blz_par_pool(par);
    uint64_t began = blz__clock_ticks(&pool->clock);

    meet(par, arg);
    while (blz__clock_ticks(&pool->clock) - began < 2 * pool->small_ticks)
        blz__spin_hint();
    return 0;
}

static void spawn_long_ones(blz_par *par, void *arg)
{
    uint32_t nr_met = 0;
    blz_par_scope scope;

    (void)arg;
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, take_long, &nr_met) == 0);
    check(blz_par_spawn(par, &scope, take_long, &nr_met) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void a_block_that_was_worth_it_ends_a_calm(void **state)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);

    (void)state;
    assert_non_null(par);
    make_calm_for(pool, 20);
    blz__store(&pool->vain, 1u, RELAXED);
    assert_int_equal(blz_pool_run(pool, spawn_long_ones, NULL), 0);
    while (blz__load(&pool->vain, RELAXED)) /* the worker says so after the end of the scope */
        blz__thread_yield();
    blz_pool_leave(par);
    free_pool(pool);
}

/* ---- solo computations that are interrupted, or wait ---- */

static void nothing_as_a_job(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/* Looks around, with a job that could be shown. How many have been so far. */
static uint64_t nr_shown_after_a_look(blz_par *par)
{
    uint64_t shown;
    blz_par_job job;

    blz__store(&par->fuel, 0, RELAXED);
    blz_par_fork(par, &job, nothing_as_a_job);
    shown = worker_of(par)->stats.published;
    (void)!blz_par_unfork(par, &job);
    return shown;
}

/* Or has been kept from the processor for so long. */
static void spin_until(const blz_pool *pool, uint64_t ticks)
{
    while ((int64_t)(blz__clock_ticks(&pool->clock) - ticks) <= 0)
        blz__spin_hint();
}

static void look_after_an_interruption(blz_par *par, void *arg)
{
    const worker *w = worker_of(par);
    uint64_t shown = w->stats.published;

    (void)arg;
    check(w->is_solo);
    check(nr_shown_after_a_look(par) == shown);
    spin_until(w->pool, w->solo_until);
    check(nr_shown_after_a_look(par) == shown);
    spin_until(w->pool, w->solo_until);
    check(nr_shown_after_a_look(par) == shown + 1);
    check(!w->is_solo);
}

static void yield_with_a_job(blz_par *par, void *arg)
{
    const worker *w = worker_of(par);
    uint64_t shown = w->stats.published;
    blz_par_job job;

    (void)arg;
    check(w->is_solo);
    blz_par_fork(par, &job, nothing_as_a_job);
    check(w->stats.published == shown);
    (void)!blz_par_yield(par);
    check(w->stats.published == shown + 1);
    (void)!blz_par_unfork(par, &job);
}

static void in_a_calm_with_a_watcher(blz_par_fn fn)
{
    blz_pool *pool = new_pool(1, BLZ_PAR_WAIT_LEAPFROG);
    blz_par *par = blz_pool_enter(pool);

    assert_non_null(par);
    make_calm_for(pool, 1000000);
    rouse(pool);
    assert_int_equal(blz_pool_run(pool, fn, NULL), 0);
    blz_pool_leave(par);
    free_pool(pool);
}

static void who_was_interrupted_once_is_not_taken_for_long(void **state)
{
    (void)state;
    in_a_calm_with_a_watcher(look_after_an_interruption);
}

static void who_yields_is_not_excused(void **state)
{
    (void)state;
    in_a_calm_with_a_watcher(yield_with_a_job);
}

/* ---- with fuel ---- */

static void fork_often(blz_par *par, void *arg)
{
    for (uintptr_t i = 0; i < (uintptr_t)arg; i++)
        join_nothing(par, NULL);
    join_two_that_meet(par, NULL);
}

/* Private jobs that are older than the one that is wanted. */
static void fork_deep(blz_par *par, void *arg)
{
    uintptr_t depth = (uintptr_t)arg;

    if (depth == 0)
        join_two_that_meet(par, NULL);
    else
        blz_par_join(par, fork_deep, (void *)(depth - 1), nothing, NULL);
}

static void meet_after_fine_forks(blz_pool *pool, unsigned most)
{
    for (uintptr_t forks = 1; forks < most; forks = forks * 5 / 3 + 1) {
        assert_int_equal(blz_pool_run(pool, fork_often, (void *)forks), 0);
        assert_int_equal(blz_pool_run(pool, fork_deep, (void *)(forks % 50)), 0);
    }
}

static void a_coarse_fork_is_found_after_fine_ones(void **state)
{
    (void)state;
    each_way_of_waiting(meet_after_fine_forks, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_coarse_fork_is_found_in_a_calm),
        TEST(a_coarse_fork_is_found_after_tiny_computations),
        TEST(a_coarse_fork_of_a_guest_is_found_in_a_calm),
        TEST(a_coarse_loop_is_shared_in_a_calm_without_a_watcher),
        TEST(a_coarse_fork_is_found_when_the_calm_is_just_over),
        TEST(a_coarse_fork_is_found_after_what_was_solo),
        TEST(who_is_about_to_sleep_looks_again_when_nobody_watches_any_more),
        TEST(a_coarse_task_is_found_in_a_calm),
        TEST(a_coarse_task_is_found_while_its_scope_goes_on),
        TEST(all_tasks_are_found_while_their_scope_goes_on),
        TEST(all_tasks_of_a_task_are_found),
        TEST(a_scope_that_nobody_comes_for_begins_a_calm),
        TEST(tiny_scopes_in_a_calm_wake_nobody),
        TEST(a_block_that_was_worth_it_ends_a_calm),
        TEST(who_was_interrupted_once_is_not_taken_for_long),
        TEST(who_yields_is_not_excused),
        TEST(a_coarse_fork_is_found_after_fine_ones),
    };

    if (!blz__fence_asymmetric_init())
        return 77; /* skipped */
    return RUN_TESTS(tests);
}
