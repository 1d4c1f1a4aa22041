/* SPDX-License-Identifier: Apache-2.0 */
/* The fork-join pool without memory, threads or asymmetric fences. */
#include "faulty.h"
#include "harness.h"

#include <sys/wait.h>
#include <unistd.h>

static void nothing(blz_par *par, void *arg)
{
    (void)par;
    ++*(int *)arg;
}

static void a_pool_without_threads_is_refused(void **state)
{
    blz_pool *pool;

    (void)state;
    for (int n = 1; n <= 3; n++) {
        fail_call(FAULTY_THREAD_START, n, false, EAGAIN);
        assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 3,
                                                                 .allocator = test_memory()}),
                         -EAGAIN);
        assert_true(stop_failing(FAULTY_THREAD_START));
    }
}

static void a_pool_works_without_asymmetric_fences(void **state)
{
    blz_pool *pool;
    int count = 0;

    (void)state;
    fail_call(FAULTY_FENCE_ASYMMETRIC_INIT, 1, true, ENOSYS);
    assert_int_equal(blz_pool_new(&pool,
                                  &(blz_pool_options){.threads = 2, .allocator = test_memory()}),
                     0);
    for (int i = 0; i < 100; i++)
        blz_pool_run(pool, nothing, &count);
    assert_int_equal(count, 100);
    assert_int_equal(blz_pool_free(pool), 0);
    assert_true(stop_failing(FAULTY_FENCE_ASYMMETRIC_INIT));
}

static void a_pool_without_memory_that_is_wiped_can_tell_a_fork(void **state)
{
    blz_pool *pool;
    int status = -1;
    pid_t pid;

    (void)state;
    fail_call(KERNEL_MADVISE, 1, false, EINVAL);
    assert_int_equal(blz_pool_new(&pool,
                                  &(blz_pool_options){.threads = 2, .allocator = test_memory()}),
                     0);
    assert_true(stop_failing(KERNEL_MADVISE));
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(blz_pool_free(pool) == -EOWNERDEAD ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(blz_pool_free(pool), 0);
}

static void a_default_pool_without_threads_is_none(void **state)
{
    int count = 0;

    (void)state;
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    assert_null(blz_pool_default());
    assert_null(blz_pool_enter(NULL));
    assert_int_equal(blz_pool_run(NULL, nothing, &count), -EAGAIN);
    assert_int_equal(count, 0);
    assert_true(stop_failing(FAULTY_THREAD_START));
}

/* ---- memory ---- */

struct meagre {
    const blz_allocator *real;
    int left; /* allocations that succeed */
};

static void *meagre_alloc(size_t size, size_t align, void *ctx)
{
    struct meagre *m = ctx;

    return m->left-- > 0 ? m->real->alloc(size, align, m->real->ctx) : NULL;
}

static void meagre_free(void *ptr, size_t size, size_t align, void *ctx)
{
    struct meagre *m = ctx;

    m->real->free(ptr, size, align, m->real->ctx);
}

static void a_pool_without_memory_is_refused(void **state)
{
    struct meagre meagre = {test_memory(), 0};
    blz_allocator allocator = {.alloc = meagre_alloc, .free = meagre_free, .ctx = &meagre};
    blz_pool *pool;
    int rc = -ENOMEM, tries = 0;

    (void)state;
    for (; rc == -ENOMEM; tries++) {
        meagre.left = tries;
        rc = blz_pool_new(&pool, &(blz_pool_options){.threads = 2, .allocator = &allocator});
    }
    assert_int_equal(rc, 0);
    assert_true(tries > 2);
    assert_int_equal(blz_pool_free(pool), 0);
}

static int count_task(blz_par *par, void *arg)
{
    (void)par;
    ++*(int *)arg;
    return 0;
}

/* A thread alone, so nobody else asks for memory. */
static void spawn_without_memory(blz_par *par, void *arg)
{
    struct meagre *meagre = arg;
    blz_par_scope scope;
    int count = 0, taken = 0, rc = 0;

    blz_par_scope_begin(par, &scope);
    meagre->left = 2;
    while (rc == 0) {
        rc = blz_par_spawn(par, &scope, count_task, &count);
        taken += rc == 0;
    }
    check(rc == -ENOMEM);
    check(taken > 2 && count == 0);
    check(blz_par_scope_end(par, &scope) == 0);
    check(count == taken); /* those that were taken, all of them */
}

static void tasks_without_memory_are_refused(void **state)
{
    struct meagre meagre = {test_memory(), 100};
    blz_allocator allocator = {.alloc = meagre_alloc, .free = meagre_free, .ctx = &meagre};
    blz_par_per_thread local;
    blz_pool *pool;

    (void)state;
    assert_int_equal(blz_pool_new(&pool,
                                  &(blz_pool_options){.threads = 1, .allocator = &allocator}),
                     0);
    assert_int_equal(blz_pool_run(pool, spawn_without_memory, &meagre), 0);
    meagre.left = 0;
    assert_int_equal(blz_par_per_thread_init(&local, pool, 8, NULL, NULL), -ENOMEM);
    assert_int_equal(blz_pool_free(pool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pool_without_threads_is_refused),
        TEST(a_pool_works_without_asymmetric_fences),
        TEST(a_pool_without_memory_that_is_wiped_can_tell_a_fork),
        TEST(a_default_pool_without_threads_is_none),
        TEST(a_pool_without_memory_is_refused),
        TEST(tasks_without_memory_are_refused),
    };
    return RUN_TESTS(tests);
}
