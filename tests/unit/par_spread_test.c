/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a new pool begin on different CPUs, and may use all of them from then on: what
 * they ask of the system is written down here on its way there.
 */
#include "par.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, MOST = 4 * THREADS };

static struct request {
    pid_t thread;
    cpu_set_t set;
} requests[MOST];
static int nr_requests;
static bool is_refused;

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    int at = __atomic_fetch_add(&nr_requests, 1, __ATOMIC_RELAXED);

    check(at < MOST && pid == 0 && size == sizeof *set);
    requests[at] = (struct request){gettid(), *set};
    if (is_refused)
        return -1;
    return (int)syscall(SYS_sched_setaffinity, pid, size, set);
}

static void note_set(void *arg, unsigned index)
{
    check(sched_getaffinity(0, sizeof(cpu_set_t), &((cpu_set_t *)arg)[index]) == 0);
}

/* Makes a pool, and tells which CPUs its threads may use when they have begun. */
static void begin_pool(cpu_set_t *sets)
{
    blz_pool_options options = {.threads = THREADS, .on_thread_start = note_set, .hook_arg = sets};
    blz_pool *pool;

    nr_requests = 0;
    assert_int_equal(blz_pool_new(&pool, &options), 0);
    assert_int_equal(blz_pool_free(pool), 0);
}

/* A lone CPU, and then everything that the same thread could use before. */
static void check_requests(const cpu_set_t *all)
{
    cpu_set_t lone;

    CPU_ZERO(&lone);
    for (int i = 0; i < nr_requests; i++) {
        int others = 0, later = 0;

        for (int k = 0; k < nr_requests; k++) {
            others += k != i && requests[k].thread == requests[i].thread;
            later += k > i && requests[k].thread == requests[i].thread;
        }
        assert_int_equal(others, 1);
        assert_int_equal(CPU_COUNT(&requests[i].set), later ? 1 : CPU_COUNT(all));
        if (later)
            CPU_OR(&lone, &lone, &requests[i].set);
        else
            assert_true(CPU_EQUAL(&requests[i].set, all));
    }
    CPU_AND(&lone, &lone, all);
    assert_int_equal(CPU_COUNT(&lone), CPU_COUNT(all) < THREADS ? CPU_COUNT(all) : THREADS);
}

static void threads_begin_on_different_cpus_and_may_use_all(void **state)
{
    cpu_set_t all, sets[THREADS];

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    begin_pool(sets);
    for (int i = 0; i < THREADS; i++)
        assert_true(CPU_EQUAL(&sets[i], &all));
    assert_int_equal(nr_requests, CPU_COUNT(&all) > 1 ? 2 * THREADS : 0);
    if (nr_requests > 0)
        check_requests(&all);
}

static void a_system_that_refuses_leaves_them_as_they_are(void **state)
{
    cpu_set_t all, sets[THREADS];

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    is_refused = true;
    begin_pool(sets);
    is_refused = false;
    for (int i = 0; i < THREADS; i++)
        assert_true(CPU_EQUAL(&sets[i], &all));
    assert_int_equal(nr_requests, CPU_COUNT(&all) > 1 ? THREADS : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_begin_on_different_cpus_and_may_use_all),
        TEST(a_system_that_refuses_leaves_them_as_they_are),
    };
    return RUN_TESTS(tests);
}
