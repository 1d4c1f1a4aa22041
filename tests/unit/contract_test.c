/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library promises to code that it calls: the allocator and the program's callbacks are
 * never called under one of its locks. In an embedded runtime there is one thread, so a lock that
 * is held when they are called is held by the caller.
 */
#include "harness.h"

#include "sched/rt.h"

static blz_rt *rt;
static int allocs, frees, callbacks;

static void check_unlocked(void)
{
    if (!rt)
        return;
    check(blz__load(&rt->inject.lock.word, RELAXED) == 0);
    check(blz__load(&rt->life_lock.word, RELAXED) == 0);
    check(blz__load(&rt->pool.lock.word, RELAXED) == 0);
    check(blz__load(&rt->foreign_heap.walk_lock.word, RELAXED) == 0);
    check(blz__load(&rt->workers[0].heap.walk_lock.word, RELAXED) == 0);
    check(blz__load(&rt->workers[0].local.lock.lock.word, RELAXED) == 0);
    check(blz__load(&rt->workers[0].local.lock.inside, RELAXED) == 0);
}

static void *checked_alloc(size_t size, size_t align, void *ctx)
{
    const blz_allocator *memory = ctx;

    check_unlocked();
    allocs++;
    return memory->alloc(size, align, memory->ctx);
}

static void checked_free(void *ptr, size_t size, size_t align, void *ctx)
{
    const blz_allocator *memory = ctx;

    check_unlocked();
    frees++;
    memory->free(ptr, size, align, memory->ctx);
}

static void begin_with(int64_t watchdog_ns)
{
    blz_allocator allocator = {.alloc = checked_alloc,
                               .free = checked_free,
                               .ctx = (void *)(uintptr_t)test_memory()};
    blz_options options = {.embedded = true, .watchdog_ns = watchdog_ns, .allocator = &allocator};

    rt = NULL;
    allocs = frees = callbacks = 0;
    check(blz_rt_new(&rt, &options) == 0);
    watch_rt(rt);
}

static void begin(void)
{
    begin_with(BLZ_NEVER);
}

static void end(void)
{
    blz_rt *ending = rt;

    check(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    unwatch_rt(rt);
    rt = NULL; /* its memory goes, and with it the locks that we look at */
    check(blz_rt_free(ending) == 0);
    assert_int_equal(allocs, frees);
}

static void ignore_line(const char *line, void *arg)
{
    (void)arg;
    (void)line;
    check_unlocked();
    callbacks++;
}

static void destroy(void *value)
{
    check_unlocked();
    ++*(int *)value;
}

static const blz_local key = {.destroy = destroy};

static void note_end(int64_t result, void *arg)
{
    (void)result;
    check_unlocked();
    ++*(int *)arg;
}

/* ---- the allocator ---- */

struct tailed {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
    char tail[];
};

BLZ_ASYNC(tailed)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

static void starting_allocates_without_locks(void **state)
{
    (void)state;
    begin_with(BLZ_SEC);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    turn_all(rt);
    end();
}

static void spawning_from_outside_allocates_without_locks(void **state)
{
    (void)state;
    begin();
    for (size_t size = 0; size < 100000; size = 2 * size + 40)
        for (int i = 0; i < 100; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, NULL, tailed, BLZ_TAIL(size)), 0);
    turn_all(rt);
    for (size_t size = 0; size < 100000; size = 2 * size + 40)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, tailed, BLZ_TAIL(size)), 0);
    assert_int_equal(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .name = "named"}), give), 0);
    end();
}

struct spawns_all {
    BLZ_FRAME;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_box box;
};

BLZ_ASYNC(spawns_all)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (size_t size = 0; size < 100000; size = 2 * size + 40)
        for (int i = 0; i < 100; i++)
            check(BLZ_SCOPE_SPAWN(&self->scope, tailed, BLZ_TAIL(size)) == 0);
    check(BLZ_SPAWN_WITH((&(blz_spawn_args){.name = "named", .pinned = true}), give) == 0);
    check(blz_task_set_name("renamed") == 0);
    check(blz_task_set_name("renamed again") == 0);
    BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, give, .value = 1));
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void spawning_from_a_worker_allocates_without_locks(void **state)
{
    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, spawns_all), 0);
    turn_all(rt);
    end();
}

static void dumping_allocates_and_writes_without_locks(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 1000; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    turn_all(rt);
    assert_int_equal(blz_task_dump(rt, ignore_line, NULL), 0);
    assert_int_equal(callbacks, 1000);
    end();
}

/* ---- callbacks ---- */

static int64_t set_locals(void *arg)
{
    int *destroyed = arg;

    check(blz_local_set(&key, &destroyed[0]) == 0);
    check(blz_local_set(&key, &destroyed[1]) == 0);
    return 0;
}

static void locals_are_destroyed_without_locks(void **state)
{
    int destroyed[2] = {0, 0};
    blz_handle handle;

    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, calls, .fn = set_locals, .arg = destroyed), 0);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, calls, .fn = set_locals, .arg = destroyed), 0);
    turn_all(rt);
    blz_handle_detach(&handle);
    assert_int_equal(destroyed[0], 2);
    assert_int_equal(destroyed[1], 2);
    end();
}

static void callbacks_of_ended_tasks_come_without_locks(void **state)
{
    blz_handle handle;
    int ended = 0;

    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), 0);
    assert_int_equal(blz_task_on_done(&handle, note_end, &ended), 0);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), 0);
    turn_all(rt);
    assert_int_equal(blz_task_on_done(&handle, note_end, &ended), 0);
    assert_int_equal(ended, 2);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(starting_allocates_without_locks),
        TEST(spawning_from_outside_allocates_without_locks),
        TEST(spawning_from_a_worker_allocates_without_locks),
        TEST(dumping_allocates_and_writes_without_locks),
        TEST(locals_are_destroyed_without_locks),
        TEST(callbacks_of_ended_tasks_come_without_locks),
    };
    return RUN_TESTS(tests);
}
