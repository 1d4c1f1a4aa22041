/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what the program says, what the environment says, and what makes no sense. */
#include "harness.h"

#include "sched/rt.h"

#include <sched.h>
#include <stdlib.h>

/* The result of creating a runtime, which is freed again; *out are its options. */
static int create(const blz_options *given, blz_options *out)
{
    blz_options options = given ? *given : (blz_options){0};
    blz_rt *rt;
    int rc;

    options.allocator = test_memory();
    rc = blz_rt_new(&rt, &options);
    if (rc < 0)
        return rc;
    if (out)
        *out = rt->options;
    assert_int_equal(blz_rt_workers(rt), rt->options.workers);
    assert_int_equal(blz_rt_free(rt), 0);
    return 0;
}

static int create_with(const char *name, const char *value, blz_options *out)
{
    int rc;

    setenv(name, value, 1);
    rc = create(NULL, out);
    unsetenv(name);
    return rc;
}

static void the_environment_says_how_many_workers(void **state)
{
    blz_options out;

    (void)state;
    assert_int_equal(create_with("BLZ_WORKERS", "3", &out), 0);
    assert_int_equal(out.workers, 3);
    assert_int_equal(create_with("BLZ_WORKERS", "4096", &out), 0);
    assert_int_equal(out.workers, 4096);
}

static void an_option_wins_over_the_environment(void **state)
{
    blz_options out;

    (void)state;
    setenv("BLZ_WORKERS", "3", 1);
    setenv("BLZ_WATCHDOG_MS", "70", 1);
    assert_int_equal(create(&(blz_options){.workers = 2, .watchdog_ns = 5}, &out), 0);
    unsetenv("BLZ_WORKERS");
    unsetenv("BLZ_WATCHDOG_MS");
    assert_int_equal(out.workers, 2);
    assert_int_equal(out.watchdog_ns, 5);
}

static void an_empty_or_zero_value_is_the_default(void **state)
{
    blz_options out, defaults;

    (void)state;
    assert_int_equal(create(NULL, &defaults), 0);
    assert_int_equal(create_with("BLZ_WORKERS", "", &out), 0);
    assert_int_equal(out.workers, defaults.workers);
    assert_int_equal(create_with("BLZ_WORKERS", "0", &out), 0);
    assert_int_equal(out.workers, defaults.workers);
    assert_int_equal(create_with("BLZ_WATCHDOG_MS", "", &out), 0);
    assert_int_equal(out.watchdog_ns, 25 * BLZ_MSEC);
}

static void values_that_make_no_sense_are_refused(void **state)
{
    const char *const names[] = {"BLZ_WORKERS", "BLZ_WATCHDOG_MS", "BLZ_SEED"};
    const char *const bad[] = {"many", "3 ", "3x", "0x10", "1.5", "99999999999999999999999"};

    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            assert_int_equal(create_with(names[n], bad[i], NULL), -EINVAL);
    assert_int_equal(create_with("BLZ_WORKERS", "-1", NULL), -EINVAL);
    assert_int_equal(create(&(blz_options){.workers = 4097}, NULL), -EINVAL);
    assert_int_equal(create(&(blz_options){.workers = UINT32_MAX}, NULL), -EINVAL);
}

static void numbers_too_large_for_their_meaning_are_refused(void **state)
{
    (void)state;
    assert_int_equal(create_with("BLZ_WORKERS", "4097", NULL), -EINVAL);
    assert_int_equal(create_with("BLZ_WORKERS", "4294967296", NULL), -EINVAL); /* 2^32 */
    assert_int_equal(create_with("BLZ_WORKERS", "4294967297", NULL), -EINVAL);
    assert_int_equal(create_with("BLZ_WATCHDOG_MS", "9223372036854775807", NULL), -EINVAL);
    assert_int_equal(create_with("BLZ_WATCHDOG_MS", "-9223372036854775808", NULL), -EINVAL);
}

static void the_environment_tunes_the_watchdog(void **state)
{
    blz_options out;

    (void)state;
    assert_int_equal(create_with("BLZ_WATCHDOG_MS", "70", &out), 0);
    assert_int_equal(out.watchdog_ns, 70 * BLZ_MSEC);
    assert_int_equal(create_with("BLZ_WATCHDOG_MS", "-1", &out), 0);
    assert_true(out.watchdog_ns == BLZ_NEVER);
}

static void the_environment_says_how_closely_to_observe(void **state)
{
    blz_options out;

    (void)state;
    assert_int_equal(create_with("BLZ_OBSERVE", "full", &out), 0);
    assert_int_equal(out.observe, BLZ_OBSERVE_FULL);
    assert_int_equal(create(NULL, &out), 0);
    assert_int_equal(out.observe, BLZ_OBSERVE_SAMPLED);
}

static void the_environment_gives_the_seed(void **state)
{
    blz_options out, again;

    (void)state;
    assert_int_equal(create_with("BLZ_SEED", "1234", &out), 0);
    assert_int_equal(out.seed, 1234);
    assert_int_equal(create(NULL, &out), 0);
    assert_int_equal(create(NULL, &again), 0);
    assert_true(out.seed != again.seed);
}

static void the_default_is_a_worker_for_each_cpu_that_we_may_use(void **state)
{
    cpu_set_t all, one;
    blz_options out;
    int cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(create(NULL, &out), 0);
    assert_true(out.workers >= 1 && out.workers <= (unsigned)CPU_COUNT(&all));
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int rc = create(NULL, &out);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(rc, 0);
    assert_int_equal(out.workers, 1);
}

static void an_embedded_runtime_has_one_worker(void **state)
{
    blz_options out;

    (void)state;
    assert_int_equal(create(&(blz_options){.workers = 5, .embedded = true}, &out), 0);
    assert_int_equal(out.workers, 1);
}

static void run_cannot_be_embedded(void **state)
{
    blz_options options = {.embedded = true};

    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&options, give), -EINVAL);
}

/* ---- options that change the order ---- */

enum { ORDERED = 5 };

struct notes_order {
    BLZ_FRAME;
    int *order, *next;
    int number;
};

BLZ_ASYNC(notes_order)
{
    BLZ_BEGIN;
    self->order[(*self->next)++] = self->number;
    BLZ_END(0);
}

struct spawns_ordered {
    BLZ_FRAME;
    int *order, *next;
};

BLZ_ASYNC(spawns_ordered)
{
    BLZ_BEGIN;
    for (int i = 0; i < ORDERED; i++)
        check(BLZ_SPAWN(notes_order, .order = self->order, .next = self->next, .number = i) == 0);
    BLZ_END(0);
}

static void spawn_in_order(bool disable_lifo, int *order)
{
    blz_rt *rt = new_rt(
        &(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .disable_lifo = disable_lifo});
    int next = 0;

    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, spawns_ordered, .order = order, .next = &next), 0);
    turn_all(rt);
    assert_int_equal(next, ORDERED);
    free_rt(rt);
}

static void the_task_spawned_last_runs_first(void **state)
{
    int order[ORDERED];

    (void)state;
    spawn_in_order(false, order);
    assert_int_equal(order[0], ORDERED - 1);
    for (int i = 1; i < ORDERED; i++)
        assert_int_equal(order[i], i - 1);
}

static void without_the_lifo_slot_tasks_run_in_order(void **state)
{
    int order[ORDERED];

    (void)state;
    spawn_in_order(true, order);
    for (int i = 0; i < ORDERED; i++)
        assert_int_equal(order[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_says_how_many_workers),
        TEST(an_option_wins_over_the_environment),
        TEST(an_empty_or_zero_value_is_the_default),
        TEST(values_that_make_no_sense_are_refused),
        TEST(numbers_too_large_for_their_meaning_are_refused),
        TEST(the_environment_tunes_the_watchdog),
        TEST(the_environment_says_how_closely_to_observe),
        TEST(the_environment_gives_the_seed),
        TEST(the_default_is_a_worker_for_each_cpu_that_we_may_use),
        TEST(an_embedded_runtime_has_one_worker),
        TEST(run_cannot_be_embedded),
        TEST(the_task_spawned_last_runs_first),
        TEST(without_the_lifo_slot_tasks_run_in_order),
    };
    return RUN_TESTS(tests);
}
