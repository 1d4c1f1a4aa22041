/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes: running a root task, starting the workers, their number and hooks, several runtimes at
 * once, and what may not be called where.
 */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- blz_run ---- */

static blz_options options_with(unsigned workers)
{
    return (blz_options){.workers = workers, .allocator = test_memory()};
}

static void run_gives_the_result_of_the_root(void **state)
{
    blz_options options = options_with(2);

    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&options, give, .value = 6), 6);
    assert_int_equal(BLZ_RUN_WITH(&options, give, .value = -EIO), -EIO);
    assert_int_equal(BLZ_RUN_WITH(&options, yields, .times = 500, .value = 1), 1);
    assert_int_equal(BLZ_RUN(give, .value = 5), 5); /* with all defaults */
}

struct leaves_others {
    BLZ_FRAME;
    struct event *ended;
};

struct posts_when_cancelled {
    BLZ_FRAME;
    struct event *ended;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(posts_when_cancelled)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    check(self->rc == -ECANCELED);
    event_post(self->ended);
    BLZ_END(0);
}

BLZ_ASYNC(leaves_others)
{
    BLZ_BEGIN;
    for (int i = 0; i < 10; i++)
        check(BLZ_SPAWN(posts_when_cancelled, .ended = self->ended) == 0);
    BLZ_END(2);
}

static void run_cancels_what_the_root_leaves_behind(void **state)
{
    blz_options options = options_with(2);
    struct event ended = EVENT_INIT;

    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&options, leaves_others, .ended = &ended), 2);
    assert_int_equal(event_count(&ended), 10);
}

static int64_t say_thread(void *arg)
{
    (void)arg;
    return thread_id();
}

static int64_t count_threads(void *arg)
{
    (void)arg;
    return nr_threads();
}

static void one_worker_runs_on_the_callers_thread(void **state)
{
    blz_options options = options_with(1);

    (void)state;
    options.watchdog_ns = BLZ_NEVER;
    assert_int_equal(BLZ_RUN_WITH(&options, calls, .fn = say_thread), thread_id());
    assert_int_equal(BLZ_RUN_WITH(&options, calls, .fn = count_threads), nr_threads());
}

static void run_uses_the_caller_as_one_of_its_workers(void **state)
{
    blz_options options = options_with(3);
    int before = nr_threads();

    (void)state;
    options.watchdog_ns = BLZ_NEVER;
    assert_int_equal(BLZ_RUN_WITH(&options, calls, .fn = count_threads), before + 2);
    assert_true(wait_for_threads(before));
}

/* ---- starting ---- */

static void no_thread_starts_before_the_first_task(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(&(blz_options){.workers = 4, .watchdog_ns = BLZ_NEVER});

    (void)state;
    assert_int_equal(blz_rt_workers(rt), 4);
    assert_int_equal(nr_threads(), before);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_int_equal(nr_threads(), before + 4);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_int_equal(nr_threads(), before + 4);
    free_rt(rt);
}

static void a_runtime_that_never_started_is_freed(void **state)
{
    int before = nr_threads();
    blz_rt *rt = new_rt(&(blz_options){.workers = 4});

    (void)state;
    free_rt(rt);
    assert_int_equal(nr_threads(), before);
    assert_int_equal(blz_rt_free(NULL), 0);
}

struct first_spawn {
    blz_rt *rt;
    struct event *go;
};

static void *spawn_first(void *arg)
{
    struct first_spawn *first = arg;

    event_wait(first->go, 1);
    check(BLZ_BLOCK_ON(first->rt, give, .value = 4) == 4);
    return NULL;
}

static void concurrent_first_tasks_start_the_workers_once(void **state)
{
    enum { SPAWNERS = 4 };

    (void)state;
    for (int round = 0; round < 20; round++) {
        int before = nr_threads();
        blz_rt *rt = new_rt(&(blz_options){.workers = 3, .watchdog_ns = BLZ_NEVER});
        struct event go = EVENT_INIT;
        struct first_spawn first = {rt, &go};
        pthread_t threads[SPAWNERS];
        for (int i = 0; i < SPAWNERS; i++)
            threads[i] = start_thread(spawn_first, &first);
        event_post(&go);
        for (int i = 0; i < SPAWNERS; i++)
            join_thread(threads[i]);
        assert_true(wait_for_threads(before + 3));
        free_rt(rt);
        assert_true(wait_for_threads(before));
    }
}

/* ---- many workers ---- */

struct meets {
    BLZ_FRAME;
    pthread_barrier_t *barrier;
    int *threads; /* where each leaves its number */
    int index;
};

/* Blocks its worker until as many tasks as that run at once, each on a worker of its own. */
BLZ_ASYNC(meets)
{
    BLZ_BEGIN;
    self->threads[self->index] = thread_id();
    pthread_barrier_wait(self->barrier);
    BLZ_END(0);
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void more_than_64_workers_all_run(void **state)
{
    enum { WORKERS = 70 };
    blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .watchdog_ns = BLZ_NEVER});
    pthread_barrier_t barrier;
    blz_handle handles[WORKERS];
    int threads[WORKERS];

    (void)state;
    pthread_barrier_init(&barrier, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], meets, .barrier = &barrier,
                                      .threads = threads, .index = i),
                         0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    qsort(threads, WORKERS, sizeof threads[0], compare_ints);
    for (int i = 1; i < WORKERS; i++)
        assert_true(threads[i - 1] < threads[i]);
    free_rt(rt);
    pthread_barrier_destroy(&barrier);
}

struct spawns_meeting {
    BLZ_FRAME;
    pthread_barrier_t *barrier;
    int *threads;
    int workers;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(spawns_meeting)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < self->workers; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, meets, .barrier = self->barrier,
                              .threads = self->threads, .index = i) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void work_spreads_from_one_worker_to_all(void **state)
{
    enum { WORKERS = 8 };
    blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .watchdog_ns = 5 * BLZ_MSEC});
    pthread_barrier_t barrier;
    int threads[WORKERS];

    (void)state;
    pthread_barrier_init(&barrier, NULL, WORKERS);
    for (int round = 0; round < 10; round++)
        assert_int_equal(BLZ_BLOCK_ON(rt, spawns_meeting, .barrier = &barrier, .threads = threads,
                                      .workers = WORKERS),
                         0);
    free_rt(rt);
    pthread_barrier_destroy(&barrier);
}

/* ---- hooks ---- */

enum { HOOKED = 3 };

static struct {
    int started[HOOKED], stopped[HOOKED], parked[HOOKED], unparked[HOOKED];
    int thread[HOOKED];
    struct event park; /* of any */
} hooks;

static void hook_start(unsigned worker, void *arg)
{
    check(arg == &hooks && worker < HOOKED);
    hooks.started[worker]++;
    hooks.thread[worker] = thread_id();
}

static void hook_stop(unsigned worker, void *arg)
{
    (void)arg;
    hooks.stopped[worker]++;
    check(hooks.thread[worker] == thread_id());
}

static void hook_park(unsigned worker, void *arg)
{
    (void)arg;
    check(hooks.thread[worker] == thread_id());
    check(hooks.parked[worker] == hooks.unparked[worker]);
    hooks.parked[worker]++;
    event_post(&hooks.park);
}

static void hook_unpark(unsigned worker, void *arg)
{
    (void)arg;
    check(hooks.thread[worker] == thread_id());
    hooks.unparked[worker]++;
    check(hooks.parked[worker] == hooks.unparked[worker]);
}

static blz_options with_hooks(void)
{
    memset(&hooks, 0, sizeof hooks);
    hooks.park = (struct event)EVENT_INIT;
    return (blz_options){.workers = HOOKED,
                         .allocator = test_memory(),
                         .on_thread_start = hook_start,
                         .on_thread_stop = hook_stop,
                         .on_thread_park = hook_park,
                         .on_thread_unpark = hook_unpark,
                         .hook_arg = &hooks};
}

static void check_hooks(void)
{
    int parked = 0;

    for (int i = 0; i < HOOKED; i++) {
        assert_int_equal(hooks.started[i], 1);
        assert_int_equal(hooks.stopped[i], 1);
        assert_int_equal(hooks.parked[i], hooks.unparked[i]);
        parked += hooks.parked[i];
    }
    assert_true(parked > 0);
}

static void hooks_are_called_on_each_worker(void **state)
{
    blz_options options = with_hooks();
    blz_rt *rt = new_rt(&options);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, yields, .times = 3), 0);
    event_wait(&hooks.park, 1);
    free_rt(rt);
    check_hooks();
    for (int i = 0; i < HOOKED; i++)
        assert_int_not_equal(hooks.thread[i], thread_id());
}

/* While the task waits the workers have nothing to do: one of them parks sooner or later. */
static void *open_when_parked(void *arg)
{
    struct gate *gate = arg;

    event_wait(&gate->arrived, 1);
    event_wait(&hooks.park, 1);
    gate_open(gate, 3);
    return NULL;
}

static void hooks_are_called_for_the_caller_of_run_too(void **state)
{
    blz_options options = with_hooks();
    struct gate gate = GATE_INIT;
    pthread_t opener = start_thread(open_when_parked, &gate);

    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&options, enters, .gate = &gate), 3);
    join_thread(opener);
    check_hooks();
    assert_int_equal(hooks.thread[0], thread_id());
}

static int64_t say_name(void *arg)
{
    check(pthread_getname_np(pthread_self(), arg, 16) == 0);
    return 0;
}

static void threads_are_named_after_the_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .name = "server"});
    char name[16];

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = say_name, .arg = name), 0);
    assert_string_equal(name, "server-0");
    free_rt(rt);
}

static int64_t say_stack_size(void *arg)
{
    pthread_attr_t attr;
    size_t size;

    (void)arg;
    check(pthread_getattr_np(pthread_self(), &attr) == 0);
    check(pthread_attr_getstacksize(&attr, &size) == 0);
    pthread_attr_destroy(&attr);
    return (int64_t)size;
}

static void workers_have_the_stack_size_that_was_asked_for(void **state)
{
    enum { SIZE = 40 * 1024 * 1024 }; /* no default is as large, nor a stack used again */
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .stack_size = SIZE});
    int64_t size;

    (void)state;
    size = BLZ_BLOCK_ON(rt, calls, .fn = say_stack_size);
    assert_true(size >= SIZE);
    free_rt(rt);
}

/* ---- several runtimes ---- */

struct crosses {
    BLZ_FRAME;
    blz_rt *other;
    int i;
    int64_t sum, rc;
    blz_handle handle;
    blz_handle_join_op join;
};

/* Spawns into another runtime, and joins from this one. */
BLZ_ASYNC(crosses)
{
    BLZ_BEGIN;
    for (; self->i < 200; self->i++) {
        self->rc = BLZ_SPAWN_ON(self->other, &self->handle, yields, .times = self->i % 3,
                                .value = self->i);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0);
        self->sum += self->handle.result;
    }
    BLZ_END(self->sum);
}

static void a_task_joins_a_task_of_another_runtime(void **state)
{
    blz_rt *one = new_rt(&(blz_options){.workers = 2});
    blz_rt *two = new_rt(&(blz_options){.workers = 2});
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(one, &handle, crosses, .other = two), 0);
    assert_int_equal(BLZ_BLOCK_ON(two, crosses, .other = one), 19900);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 19900);
    free_rt(two);
    free_rt(one);
}

struct holds_blocks {
    BLZ_FRAME;
    blz_rt *other;
    struct event *joined, *freed;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

/* Its worker has let go of a block of the other runtime, and stays busy while that is freed. */
BLZ_ASYNC(holds_blocks)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_ON(self->other, &self->handle, give, .value = 1);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    event_post(self->joined);
    event_wait(self->freed, 1);
    BLZ_END(0);
}

static void a_runtime_is_freed_while_workers_of_another_have_used_its_tasks(void **state)
{
    blz_rt *one = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    blz_rt *two = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    struct event joined = EVENT_INIT, freed = EVENT_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(one, &handle, holds_blocks, .other = two, .joined = &joined,
                                  .freed = &freed),
                     0);
    event_wait(&joined, 1);
    free_rt(two);
    event_post(&freed);
    assert_int_equal(blz_handle_wait(&handle), 0);
    free_rt(one);
}

/* ---- what may not be called on a worker ---- */

static int64_t block_on_worker(void *arg)
{
    return BLZ_BLOCK_ON((blz_rt *)arg, give);
}

static int64_t run_on_worker(void *arg)
{
    (void)arg;
    return BLZ_RUN(give);
}

static int64_t shut_down_on_worker(void *arg)
{
    check(blz_rt_free(arg) == -EDEADLK);
    return blz_rt_shutdown(arg, 0);
}

static void blocking_calls_on_a_worker_are_deadlocks(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_rt *other = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = block_on_worker, .arg = rt), -EDEADLK);
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = block_on_worker, .arg = other), -EDEADLK);
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = run_on_worker), -EDEADLK);
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = shut_down_on_worker, .arg = rt), -EDEADLK);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    free_rt(other);
    free_rt(rt);
}

static void a_runtime_that_is_not_embedded_has_no_turns(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(blz_rt_fd(rt), -ENOTSUP);
    assert_int_equal(blz_rt_turn(rt), -ENOTSUP);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_gives_the_result_of_the_root),
        TEST(run_cancels_what_the_root_leaves_behind),
        TEST(one_worker_runs_on_the_callers_thread),
        TEST(run_uses_the_caller_as_one_of_its_workers),
        TEST(no_thread_starts_before_the_first_task),
        TEST(a_runtime_that_never_started_is_freed),
        TEST(concurrent_first_tasks_start_the_workers_once),
        TEST(more_than_64_workers_all_run),
        TEST(work_spreads_from_one_worker_to_all),
        TEST(hooks_are_called_on_each_worker),
        TEST(hooks_are_called_for_the_caller_of_run_too),
        TEST(threads_are_named_after_the_runtime),
        TEST(workers_have_the_stack_size_that_was_asked_for),
        TEST(a_task_joins_a_task_of_another_runtime),
        TEST(a_runtime_is_freed_while_workers_of_another_have_used_its_tasks),
        TEST(blocking_calls_on_a_worker_are_deadlocks),
        TEST(a_runtime_that_is_not_embedded_has_no_turns),
    };
    return RUN_TESTS(tests);
}
