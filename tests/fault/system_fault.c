/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system says no: threads, pages, descriptors and fences that cannot be had. A call fails with
 * the system's error and leaves nothing behind; if the system is willing again, it works.
 */
#include "harness.h"

#include "faulty.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- threads ---- */

enum { WORKERS = 4 };

static void a_thread_that_cannot_be_started_is_an_error(void **state)
{
    int before = nr_threads();

    (void)state;
    for (int n = 1; n <= WORKERS + 1; n++) { /* the watchdog too */
        blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS});
        blz_handle handle = {NULL, 0};
        fail_call(FAULTY_THREAD_START, n, false, EAGAIN);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), -EAGAIN);
        assert_true(stop_failing(FAULTY_THREAD_START));
        assert_null(handle.task);
        assert_true(wait_for_threads(before));
        /* and now it works */
        assert_int_equal(BLZ_BLOCK_ON(rt, yields, .times = 5, .value = 3), 3);
        assert_int_equal(nr_threads(), before + WORKERS + 1);
        free_rt(rt);
        assert_true(wait_for_threads(before));
    }
}

static void a_runtime_whose_threads_never_started_is_freed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS});

    (void)state;
    fail_call(FAULTY_THREAD_START, 3, true, EAGAIN);
    assert_int_equal(BLZ_BLOCK_ON(rt, give), -EAGAIN);
    assert_int_equal(BLZ_BLOCK_ON(rt, give), -EAGAIN);
    free_rt(rt);
    assert_true(stop_failing(FAULTY_THREAD_START));
}

static void run_fails_if_a_thread_cannot_be_started(void **state)
{
    blz_options options = {.workers = WORKERS, .allocator = test_memory()};

    (void)state;
    for (int n = 1; n <= WORKERS; n++) { /* watchdog and all but the caller */
        fail_call(FAULTY_THREAD_START, n, false, EAGAIN);
        assert_int_equal(BLZ_RUN_WITH(&options, give, .value = 1), -EAGAIN);
        assert_true(stop_failing(FAULTY_THREAD_START));
    }
    fail_call(FAULTY_THREAD_START, WORKERS + 1, false, EAGAIN);
    assert_int_equal(BLZ_RUN_WITH(&options, give, .value = 1), 1);
    assert_false(stop_failing(FAULTY_THREAD_START));
}

static void a_thread_without_memory_is_an_error(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    for (int n = 1; n <= 3; n++) {
        fail_call(FAULTY_THREAD_START, n, false, ENOMEM);
        int64_t rc = BLZ_BLOCK_ON(rt, give, .value = 1);
        if (stop_failing(FAULTY_THREAD_START))
            assert_int_equal(rc, -ENOMEM);
        else
            assert_int_equal(rc, 1);
    }
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    free_rt(rt);
}

static void a_stack_that_is_too_large_is_an_error(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .stack_size = (size_t)1 << 60});

    (void)state;
    assert_true(BLZ_BLOCK_ON(rt, give) < 0);
    free_rt(rt);
}

static struct {
    int started, stopped; /* atomic */
} hooks;

static void hook_start(unsigned worker, void *arg)
{
    (void)arg;
    (void)worker;
    __atomic_fetch_add(&hooks.started, 1, __ATOMIC_RELAXED);
}

static void hook_stop(unsigned worker, void *arg)
{
    (void)arg;
    (void)worker;
    __atomic_fetch_add(&hooks.stopped, 1, __ATOMIC_RELAXED);
}

static void hooks_are_called_only_for_threads_that_ran(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS,
                                       .watchdog_ns = BLZ_NEVER,
                                       .on_thread_start = hook_start,
                                       .on_thread_stop = hook_stop});

    (void)state;
    hooks.started = hooks.stopped = 0;
    fail_call(FAULTY_THREAD_START, 3, false, EAGAIN);
    assert_int_equal(BLZ_BLOCK_ON(rt, give), -EAGAIN);
    assert_int_equal(hooks.started, 2);
    assert_int_equal(hooks.stopped, 2);
    stop_failing(FAULTY_THREAD_START);
    free_rt(rt);
    assert_int_equal(hooks.started, hooks.stopped);
}

static void ready_never(void *unused)
{
    (void)unused;
}

static int64_t new_with_on_ready(void)
{
    blz_options options = {.embedded = true,
                           .watchdog_ns = BLZ_NEVER,
                           .on_ready = ready_never,
                           .allocator = test_memory()};
    blz_rt *rt;
    int rc = blz_rt_new(&rt, &options);

    if (rc == 0)
        free_rt(rt);
    return rc;
}

static void without_its_thread_or_an_eventfd_on_ready_is_refused(void **state)
{
    bool failed = true;

    (void)state;
    fail_call(FAULTY_THREAD_START, 1, false, EAGAIN);
    assert_int_equal(new_with_on_ready(), -EAGAIN);
    assert_true(stop_failing(FAULTY_THREAD_START));
    for (int n = 1; failed; n++) {
        fail_call(KERNEL_EVENTFD, n, false, EMFILE);
        int64_t rc = new_with_on_ready();
        failed = stop_failing(KERNEL_EVENTFD);
        assert_int_equal(rc, failed ? -EMFILE : 0);
    }
}

/* ---- pages ---- */

static void without_a_page_for_the_fork_word_there_is_no_runtime(void **state)
{
    blz_options options = {.workers = 1, .allocator = test_memory()};
    blz_rt *rt;

    (void)state;
    fail_call(FAULTY_FORK_WORD_NEW, 1, false, ENOMEM);
    assert_int_equal(blz_rt_new(&rt, &options), -ENOMEM);
    assert_true(stop_failing(FAULTY_FORK_WORD_NEW));
}

/* Linux before 4.14, gVisor, or a filter of system calls. */
static void without_memory_that_is_wiped_a_forked_child_is_told_all_the_same(void **state)
{
    blz_rt *first, *second, *third;
    int status = -1;
    pid_t pid;

    (void)state;
    fail_call(KERNEL_MADVISE, 1, true, EINVAL);
    first = new_rt(&(blz_options){.workers = 1});
    second = new_rt(&(blz_options){.workers = 1});
    third = new_rt(&(blz_options){.workers = 1});
    assert_true(stop_failing(KERNEL_MADVISE));
    free_rt(second); /* it is not in the way of the others */
    assert_int_equal(BLZ_BLOCK_ON(first, give), 0);
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(BLZ_BLOCK_ON(first, give) == -EOWNERDEAD &&
                      BLZ_SPAWN_ON(third, NULL, give) == -EOWNERDEAD &&
                      blz_rt_free(third) == -EOWNERDEAD
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(BLZ_BLOCK_ON(first, give), 0);
    free_rt(first);
    free_rt(third);
}

struct medium {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
    char bytes[4000]; /* a span has room for 500 of them */
};

BLZ_ASYNC(medium)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

struct spawns_many {
    BLZ_FRAME;
    int count, spawned;
    int64_t rc, first;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(spawns_many)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < self->count; i++) {
        self->rc = BLZ_SCOPE_SPAWN(&self->scope, medium);
        if (self->rc < 0 && self->first == 0)
            self->first = self->rc;
        self->spawned += self->rc == 0;
    }
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    check(self->rc == 0);
    BLZ_END(self->first < 0 ? self->first : self->spawned);
}

static void without_pages_spawning_fails_and_goes_on_later(void **state)
{
    enum { MANY = 3000 }; /* several spans */

    (void)state;
    for (int n = 1; n <= 4; n++) {
        blz_options options = {.workers = 1}; /* the system's pages, not the test's memory */
        blz_rt *rt;
        assert_int_equal(blz_rt_new(&rt, &options), 0);
        if (n > 1)
            assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
        fail_call(FAULTY_PAGES_MAP, n, true, ENOMEM);
        int64_t rc = BLZ_BLOCK_ON(rt, spawns_many, .count = MANY);
        assert_true(stop_failing(FAULTY_PAGES_MAP));
        assert_int_equal(rc, -ENOMEM);
        assert_int_equal(BLZ_BLOCK_ON(rt, spawns_many, .count = MANY), MANY);
        assert_int_equal(blz_rt_free(rt), 0);
    }
}

static void huge_pages_are_only_a_wish(void **state)
{
    blz_options options = {.workers = 1};
    blz_rt *rt;

    (void)state;
    assert_int_equal(blz_rt_new(&rt, &options), 0);
    fail_call(KERNEL_MADVISE, 1, true, EINVAL);
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_many, .count = 3000), 3000);
    stop_failing(KERNEL_MADVISE);
    assert_int_equal(blz_rt_free(rt), 0);
}

/* ---- descriptors ---- */

static void without_a_descriptor_there_is_no_embedded_runtime(void **state)
{
    blz_options options = {.embedded = true, .allocator = test_memory()};
    blz_rt *rt;

    (void)state;
    fail_call(KERNEL_EVENTFD, 1, false, ENFILE);
    assert_int_equal(blz_rt_new(&rt, &options), -ENFILE);
    assert_true(stop_failing(KERNEL_EVENTFD));
}

static void the_limit_of_descriptors_is_reported(void **state)
{
    blz_options options = {.embedded = true, .allocator = test_memory()};
    struct rlimit before, none;
    blz_rt *rt;
    int rc;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc = blz_rt_new(&rt, &options);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, -EMFILE);
    rt = new_embedded_rt();
    free_rt(rt);
}

/* ---- fences ---- */

static void it_works_without_membarrier(void **state)
{
    blz_rt *rt;

    (void)state;
    fail_call(FAULTY_FENCE_ASYMMETRIC_INIT, 1, true, ENOSYS);
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_many, .count = 2000), 2000);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    free_rt(rt);
    assert_true(stop_failing(FAULTY_FENCE_ASYMMETRIC_INIT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_thread_that_cannot_be_started_is_an_error),
        TEST(a_runtime_whose_threads_never_started_is_freed),
        TEST(run_fails_if_a_thread_cannot_be_started),
        TEST(a_thread_without_memory_is_an_error),
        TEST(a_stack_that_is_too_large_is_an_error),
        TEST(hooks_are_called_only_for_threads_that_ran),
        TEST(without_its_thread_or_an_eventfd_on_ready_is_refused),
        TEST(without_a_page_for_the_fork_word_there_is_no_runtime),
        TEST(without_memory_that_is_wiped_a_forked_child_is_told_all_the_same),
        TEST(without_pages_spawning_fails_and_goes_on_later),
        TEST(huge_pages_are_only_a_wish),
        TEST(without_a_descriptor_there_is_no_embedded_runtime),
        TEST(the_limit_of_descriptors_is_reported),
        TEST(it_works_without_membarrier),
    };
    return RUN_TESTS(tests);
}
