/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory, at every place: a scenario is repeated with the first allocation failing, then the
 * second, and so on until it passes. Each time it must end with -ENOMEM or, where the runtime can
 * do without, with success; everything that was allocated must have been given back.
 */
#include "harness.h"

#include <string.h>

/* The nth allocation fails alone, or with all that come after. */
static const bool both[] = {false, true};

enum { MAX_FAILURES = 2000 };

/* Gives how often it had to be repeated. */
static int fail_everywhere(int64_t (*scenario)(void), bool all)
{
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(scenario(), 0); /* with memory it works */
    for (int n = 1; n < MAX_FAILURES; n++) {
        memory_fail_at(the_memory(), n, all);
        int64_t rc = scenario();
        bool failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        if (rc != 0)
            assert_int_equal(rc, -ENOMEM);
        assert_int_equal(memory_blocks(the_memory()), 0);
        assert_int_equal(memory_bytes(the_memory()), 0);
        if (!failed) {
            assert_int_equal(rc, 0);
            return n;
        }
    }
    fail_msg("the scenario never passes");
    return 0;
}

static void repeat(int64_t (*scenario)(void), int at_least)
{
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++)
        assert_true(fail_everywhere(scenario, both[i]) > at_least);
}

/* Keeps the first error. */
static void note(int64_t *rc, int64_t error)
{
    if (*rc == 0 && error < 0)
        *rc = error;
}

/* Runs what can run in an embedded runtime that may not exist. */
static int64_t in_runtime(const blz_options *options, int64_t (*body)(blz_rt *rt))
{
    blz_options with_memory = *options;
    int64_t result;
    blz_rt *rt;
    int rc;

    with_memory.allocator = test_memory();
    rc = blz_rt_new(&rt, &with_memory);
    if (rc < 0)
        return rc;
    watch_rt(rt);
    result = body(rt);
    unwatch_rt(rt);
    rc = blz_rt_free(rt);
    check(rc == 0);
    return result;
}

static const blz_options embedded = {.embedded = true, .watchdog_ns = BLZ_NEVER};

/* ---- one call from outside ---- */

static int64_t nothing(blz_rt *rt)
{
    (void)rt;
    return 0;
}

static int64_t create_scenario(void)
{
    static const blz_options threads = {.workers = 70};
    int64_t rc = in_runtime(&embedded, nothing);

    return rc < 0 ? rc : in_runtime(&threads, nothing);
}

static void creating_a_runtime(void **state)
{
    (void)state;
    repeat(create_scenario, 4);
}

static int64_t spawn_each_way(blz_rt *rt)
{
    blz_handle handle = {NULL, 0};
    int64_t rc = 0;

    note(&rc, BLZ_SPAWN_ON(rt, NULL, give));
    note(&rc, BLZ_SPAWN_ON(rt, &handle, give));
    check((rc == 0) >= (handle.task != NULL) || rc == -ENOMEM);
    blz_handle_detach(&handle);
    note(&rc,
         BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &handle, .name = "named"}), give));
    blz_handle_detach(&handle);
    note(&rc, BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .name = "named, detached"}), sleeps));
    turn_all(rt);
    return rc;
}

static int64_t spawn_scenario(void)
{
    return in_runtime(&embedded, spawn_each_way);
}

static void spawning_from_outside(void **state)
{
    (void)state;
    repeat(spawn_scenario, 6);
}

struct large {
    BLZ_FRAME;
    char bytes[30000];
};

BLZ_ASYNC(large)
{
    BLZ_BEGIN;
    BLZ_END(0);
}

static int64_t spawn_sizes(blz_rt *rt)
{
    int64_t rc = 0;

    for (int i = 0; i < 5; i++)
        note(&rc, BLZ_SPAWN_ON(rt, NULL, large));
    for (int i = 0; i < 2000; i++)
        note(&rc, BLZ_SPAWN_ON(rt, NULL, yields, .times = 1));
    turn_all(rt);
    note(&rc, BLZ_SPAWN_ON(rt, NULL, large));
    turn_all(rt);
    return rc;
}

static int64_t sizes_scenario(void)
{
    return in_runtime(&embedded, spawn_sizes);
}

static void spawning_many_and_large_ones(void **state)
{
    (void)state;
    repeat(sizes_scenario, 8);
}

static void note_end(int64_t result, void *arg)
{
    check(result == 3);
    ++*(int *)arg;
}

static int64_t call_back(blz_rt *rt)
{
    blz_handle handle;
    int calls = 0;
    int64_t rc = BLZ_SPAWN_ON(rt, &handle, give, .value = 3);

    if (rc < 0)
        return rc;
    rc = blz_task_on_done(&handle, note_end, &calls);
    if (rc < 0) {
        check(handle.task != NULL); /* it is still ours */
        blz_handle_detach(&handle);
    }
    turn_all(rt);
    check(calls == (rc == 0));
    return rc;
}

static int64_t call_back_scenario(void)
{
    return in_runtime(&embedded, call_back);
}

static void calling_back(void **state)
{
    (void)state;
    repeat(call_back_scenario, 5);
}

static void count_line(const char *line, void *arg)
{
    (void)line;
    ++*(int *)arg;
}

static int64_t dump_tasks(blz_rt *rt)
{
    int64_t rc = 0;
    int spawned = 0, lines = 0, dumped;

    for (int i = 0; i < 300; i++) {
        int one = BLZ_SPAWN_ON(rt, NULL, sleeps);
        spawned += one == 0;
        note(&rc, one);
    }
    turn_all(rt);
    dumped = blz_task_dump(rt, count_line, &lines);
    check(dumped == 0 ? lines == spawned : lines == 0);
    note(&rc, dumped);
    return rc;
}

static int64_t dump_scenario(void)
{
    return in_runtime(&embedded, dump_tasks);
}

static void dumping(void **state)
{
    (void)state;
    repeat(dump_scenario, 6);
}

/* ---- a task that does everything ---- */

static int destroyed;

static void destroy(void *value)
{
    (void)value;
    destroyed++;
}

static blz_local keys[10];

struct nests {
    BLZ_FRAME;
    int depth;
    int64_t rc;
    blz_box box;
    blz_future op;
};

BLZ_ASYNC(nests)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    if (self->depth > 0)
        BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, nests, .depth = self->depth - 1));
    BLZ_END(self->rc);
}

struct everything {
    BLZ_FRAME;
    int64_t first; /* error */
    int64_t rc;
    int i, children;
    blz_handle handle;
    blz_handle_join_op join;
    blz_scope scope;
    blz_scope_op wait;
    blz_box box;
};

BLZ_ASYNC(everything)
{
    BLZ_BEGIN;
    note(&self->first, BLZ_SPAWN(give));
    self->rc = BLZ_SPAWN_JOIN(&self->handle, yields, .times = 2, .value = 1);
    note(&self->first, self->rc);
    if (self->rc == 0) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0 && self->handle.result == 1);
    }
    note(&self->first, blz_task_set_name("everything"));
    note(&self->first, blz_task_set_name("everything else"));
    for (int i = 0; i < 10; i++) {
        keys[i].destroy = destroy;
        self->rc = blz_local_set(&keys[i], &keys[i]);
        note(&self->first, self->rc);
        check(blz_local_get(&keys[i]) == (self->rc == 0 ? &keys[i] : NULL));
    }
    self->rc = BLZ_SPAWN_WITH(
        (&(blz_spawn_args){.handle = &self->handle, .name = "pinned", .pinned = true}), give);
    note(&self->first, self->rc);
    if (self->rc == 0) {
        blz_handle_cancel(&self->handle);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0);
    }
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (self->i = 0; self->i < 20; self->i++) {
        self->rc = BLZ_SPAWN_WITH((&(blz_spawn_args){.scope = &self->scope,
                                                     .name = self->i % 2 ? "child" : NULL}),
                                  yields, .times = 1);
        note(&self->first, self->rc);
        self->children += self->rc == 0;
    }
    check(blz_scope_live(&self->scope) <= (size_t)self->children); /* some may have ended */
    BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, &self->scope, &self->handle));
    check(self->rc == (self->children > 0) || blz_cancelled(cx));
    blz_handle_detach(&self->handle);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, nests, .depth = 10));
    note(&self->first, self->rc);
    BLZ_END(self->first);
}

static int64_t do_everything(blz_rt *rt)
{
    blz_handle handle;
    int64_t rc = BLZ_SPAWN_ON(rt, &handle, everything);

    if (rc < 0)
        return rc;
    turn_all(rt);
    check(blz_handle_wait(&handle) == 0);
    return handle.result;
}

static int64_t everything_scenario(void)
{
    return in_runtime(&embedded, do_everything);
}

static void everything_that_a_task_can_do(void **state)
{
    (void)state;
    repeat(everything_scenario, 25);
}

static int64_t run_scenario(void)
{
    blz_options options = {.workers = 2, .allocator = test_memory()};
    return BLZ_RUN_WITH(&options, everything);
}

static void everything_on_two_workers(void **state)
{
    (void)state;
    repeat(run_scenario, 25);
}

static int64_t block_on(blz_rt *rt)
{
    int64_t rc = BLZ_BLOCK_ON(rt, everything), second = BLZ_BLOCK_ON(rt, give, .value = 0);
    return rc < 0 ? rc : second;
}

static int64_t block_scenario(void)
{
    static const blz_options threads = {.workers = 2};
    return in_runtime(&threads, block_on);
}

static void everything_while_a_thread_waits(void **state)
{
    (void)state;
    repeat(block_scenario, 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(creating_a_runtime),
        TEST(spawning_from_outside),
        TEST(spawning_many_and_large_ones),
        TEST(calling_back),
        TEST(dumping),
        TEST(everything_that_a_task_can_do),
        TEST(everything_on_two_workers),
        TEST(everything_while_a_thread_waits),
    };
    return RUN_TESTS(tests);
}
