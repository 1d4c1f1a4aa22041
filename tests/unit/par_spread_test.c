/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a new pool begin on different CPUs, and may use all of them from then on, those
 * included that the container is given later. The tests play the kernel: what threads ask of it is
 * written down, and answered by the rules of Linux 6.2 and later, on a machine of eight CPUs.
 */
#include "par.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, MOST = 4 * THREADS };

/* ---- the kernel ---- */

static struct {
    bool real;     /* the system's own answers */
    bool refuses;  /* to change anything */
    bool narrowed; /* the program has asked for `wish` before, and its threads inherit that */
    cpu_set_t container, wish;
} kernel;

/* What this thread has asked for, if it has. */
static _Thread_local struct {
    bool written;
    cpu_set_t wish;
} mine;

static struct request {
    pid_t thread;
    cpu_set_t set;
} requests[MOST];
static int nr_requests;

static cpu_set_t allowed_in(const cpu_set_t *container)
{
    const cpu_set_t *wish = mine.written ? &mine.wish : kernel.narrowed ? &kernel.wish : NULL;
    cpu_set_t set = *container;

    if (wish)
        CPU_AND(&set, &set, wish);
    return set;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    cpu_set_t allowed = allowed_in(&kernel.container);

    memset(set, 0, size);
    if (kernel.real)
        return syscall(SYS_sched_getaffinity, pid, size, set) < 0 ? -1 : 0;
    memcpy(set, &allowed, size < sizeof allowed ? size : sizeof allowed);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    int at = __atomic_fetch_add(&nr_requests, 1, __ATOMIC_RELAXED);

    check(at < MOST && pid == 0 && size == sizeof *set);
    requests[at] = (struct request){gettid(), *set};
    if (kernel.real)
        return (int)syscall(SYS_sched_setaffinity, pid, size, set);
    if (kernel.refuses)
        return errno = EPERM, -1;
    mine.written = true;
    mine.wish = *set;
    return 0;
}

/* ---- pools ---- */

static cpu_set_t cpus(int from, int to)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = from; i <= to; i++)
        CPU_SET(i, &set);
    return set;
}

/* What the threads of a pool may use when they have begun: now, and in a container of all CPUs. */
static cpu_set_t now[THREADS], later[THREADS];

static void note_set(unsigned index, void *arg)
{
    cpu_set_t all = cpus(0, 7);

    check(arg == now);
    check(sched_getaffinity(0, sizeof now[index], &now[index]) == 0);
    later[index] = allowed_in(&all);
}

static void begin_pool(void)
{
    blz_pool_options options = {.threads = THREADS, .on_thread_start = note_set, .hook_arg = now};
    blz_pool *pool;

    nr_requests = 0;
    assert_int_equal(blz_pool_new(&pool, &options), 0);
    assert_int_equal(blz_pool_free(pool), 0);
}

static void expect_sets(const cpu_set_t *sets, cpu_set_t expected)
{
    for (int i = 0; i < THREADS; i++)
        assert_true(CPU_EQUAL(&sets[i], &expected));
}

/* The CPUs that threads asked for when they asked first. */
static cpu_set_t first_requests(void)
{
    cpu_set_t lone;

    CPU_ZERO(&lone);
    for (int i = 0; i < nr_requests; i++) {
        int before = 0;

        for (int k = 0; k < i; k++)
            before += requests[k].thread == requests[i].thread;
        if (before > 0)
            continue;
        assert_int_equal(CPU_COUNT(&requests[i].set), 1);
        CPU_OR(&lone, &lone, &requests[i].set);
    }
    return lone;
}

/* ---- the tests ---- */

static void threads_begin_on_different_cpus(void **state)
{
    cpu_set_t expected = cpus(2, 5), lone;

    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.container = expected;
    begin_pool();
    lone = first_requests();
    assert_true(CPU_EQUAL(&lone, &expected));
    expect_sets(now, expected);
}

static void threads_get_the_cpus_that_a_container_is_given_later(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.container = cpus(2, 5);
    begin_pool();
    expect_sets(later, cpus(0, 7));
}

static void threads_keep_to_the_cpus_that_the_program_has_asked_for(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.container = cpus(0, 5);
    kernel.wish = cpus(1, 3);
    kernel.narrowed = true;
    begin_pool();
    expect_sets(now, cpus(1, 3));
    expect_sets(later, cpus(1, 3));
}

static void a_system_that_refuses_leaves_them_as_they_are(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.container = cpus(0, 3);
    kernel.refuses = true;
    begin_pool();
    expect_sets(now, cpus(0, 3));
    assert_int_equal(nr_requests, THREADS);
}

static void with_one_cpu_nothing_is_asked_for(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.container = cpus(3, 3);
    begin_pool();
    assert_int_equal(nr_requests, 0);
}

static void on_this_machine_threads_may_use_what_the_process_may(void **state)
{
    cpu_set_t all;

    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.real = true;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    begin_pool();
    expect_sets(now, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_begin_on_different_cpus),
        TEST(threads_get_the_cpus_that_a_container_is_given_later),
        TEST(threads_keep_to_the_cpus_that_the_program_has_asked_for),
        TEST(a_system_that_refuses_leaves_them_as_they_are),
        TEST(with_one_cpu_nothing_is_asked_for),
        TEST(on_this_machine_threads_may_use_what_the_process_may),
    };
    return RUN_TESTS(tests);
}
