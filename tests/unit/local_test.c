/* SPDX-License-Identifier: Apache-2.0 */
/* Task-locals: set, replaced, removed, destroyed with their task, and unknown to other tasks. */
#include "harness.h"

static int destroyed[4]; /* atomic */

static void destroy(void *value)
{
    __atomic_fetch_add((int *)value, 1, __ATOMIC_RELAXED);
}

static const blz_local first = {.destroy = destroy}, second = {.destroy = destroy},
                       plain = {.destroy = NULL};

static int times_destroyed(int i)
{
    return __atomic_load_n(&destroyed[i], __ATOMIC_RELAXED);
}

static int64_t run(int64_t (*fn)(void *arg), void *arg)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    int64_t rc;

    for (int i = 0; i < 4; i++)
        destroyed[i] = 0;
    rc = BLZ_BLOCK_ON(rt, calls, .fn = fn, .arg = arg);
    free_rt(rt);
    return rc;
}

static int64_t set_and_get(void *arg)
{
    int value = 1;

    (void)arg;
    check(blz_local_get(&plain) == NULL);
    check(blz_local_set(&plain, &value) == 0);
    check(blz_local_get(&plain) == &value);
    check(blz_local_get(&first) == NULL);
    return 0;
}

static void a_value_is_found_again(void **state)
{
    (void)state;
    assert_int_equal(run(set_and_get, NULL), 0);
}

static int64_t set_two(void *arg)
{
    (void)arg;
    check(blz_local_set(&first, &destroyed[0]) == 0);
    check(blz_local_set(&second, &destroyed[1]) == 0);
    check(blz_local_get(&first) == &destroyed[0]);
    check(blz_local_get(&second) == &destroyed[1]);
    return 0;
}

static void values_are_destroyed_with_their_task(void **state)
{
    (void)state;
    assert_int_equal(run(set_two, NULL), 0);
    assert_int_equal(times_destroyed(0), 1);
    assert_int_equal(times_destroyed(1), 1);
}

static int64_t replace(void *arg)
{
    (void)arg;
    check(blz_local_set(&first, &destroyed[0]) == 0);
    check(blz_local_set(&first, &destroyed[0]) == 0); /* the same: stays */
    check(times_destroyed(0) == 0);
    check(blz_local_set(&first, &destroyed[1]) == 0);
    check(times_destroyed(0) == 1);
    check(blz_local_get(&first) == &destroyed[1]);
    return 0;
}

static void an_older_value_is_destroyed_when_it_is_replaced(void **state)
{
    (void)state;
    assert_int_equal(run(replace, NULL), 0);
    assert_int_equal(times_destroyed(0), 1);
    assert_int_equal(times_destroyed(1), 1);
}

static int64_t remove_value(void *arg)
{
    (void)arg;
    check(blz_local_set(&second, NULL) == 0); /* there is none */
    check(blz_local_set(&first, &destroyed[0]) == 0);
    check(blz_local_set(&first, NULL) == 0);
    check(times_destroyed(0) == 1);
    check(blz_local_get(&first) == NULL);
    check(blz_local_set(&first, &destroyed[1]) == 0);
    return 0;
}

static void null_removes_a_value(void **state)
{
    (void)state;
    assert_int_equal(run(remove_value, NULL), 0);
    assert_int_equal(times_destroyed(0), 1);
    assert_int_equal(times_destroyed(1), 1);
}

enum { MANY = 100 };

static int64_t set_many(void *arg)
{
    static blz_local keys[MANY];
    static int values[MANY];

    (void)arg;
    for (int i = 0; i < MANY; i++)
        check(blz_local_set(&keys[i], &values[i]) == 0);
    for (int i = 0; i < MANY; i++)
        check(blz_local_get(&keys[i]) == &values[i]);
    return 0;
}

static void a_task_may_have_many(void **state)
{
    (void)state;
    assert_int_equal(run(set_many, NULL), 0);
}

struct travels {
    BLZ_FRAME;
    int value, rounds;
    int64_t rc;
    blz_future op;
};

/* The value is the same after every await, on whatever thread. */
BLZ_ASYNC(travels)
{
    BLZ_BEGIN;
    check(blz_local_get(&plain) == NULL);
    check(blz_local_set(&plain, &self->value) == 0);
    for (; self->rounds > 0; self->rounds--) {
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
        check(blz_local_get(&plain) == &self->value);
    }
    BLZ_END(0);
}

static void values_travel_with_their_task_and_no_other(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handles[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], travels, .rounds = 20), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    free_rt(rt);
}

static void values_live_as_long_as_the_last_reference(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    for (int i = 0; i < 4; i++)
        destroyed[i] = 0;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, calls, .fn = set_two), 0);
    turn_all(rt);
    assert_true(blz_handle_done(&handle));
    assert_int_equal(times_destroyed(0), 0);
    blz_handle_detach(&handle);
    assert_int_equal(times_destroyed(0), 1);
    assert_int_equal(times_destroyed(1), 1);
    free_rt(rt);
}

static int64_t name_and_set(void *arg)
{
    check(blz_task_set_name("named first") == 0);
    return set_two(arg);
}

static void a_named_task_has_values_too(void **state)
{
    (void)state;
    assert_int_equal(run(name_and_set, NULL), 0);
    assert_int_equal(times_destroyed(0), 1);
}

static void outside_of_tasks_there_are_none(void **state)
{
    int value = 0;

    (void)state;
    assert_int_equal(blz_local_set(&plain, &value), -ENXIO);
    assert_null(blz_local_get(&plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_is_found_again),
        TEST(values_are_destroyed_with_their_task),
        TEST(an_older_value_is_destroyed_when_it_is_replaced),
        TEST(null_removes_a_value),
        TEST(a_task_may_have_many),
        TEST(values_travel_with_their_task_and_no_other),
        TEST(values_live_as_long_as_the_last_reference),
        TEST(a_named_task_has_values_too),
        TEST(outside_of_tasks_there_are_none),
    };
    return RUN_TESTS(tests);
}
