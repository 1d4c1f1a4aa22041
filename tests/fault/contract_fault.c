/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function of the system contract that can fail fails, in programs that use every part of the
 * library (support/faulty/scenarios.h): its first call, its second, and so on, each with one or two
 * errors. The program ends with that error, or the library does without the call; nothing stays
 * behind, and nothing hangs. The harness counts descriptors, memory and threads.
 */
#include "faulty.h"
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 4 }; /* of one function in one scenario; later calls are in a known state */

static const char *const backends[] = {"epoll", "poll", "io_uring"};
enum { NR_BACKENDS = sizeof backends / sizeof *backends };

/* Calls of the library, by scenarios in which nothing failed. */
static long reached[NR_CONTRACT_CALLS];

/* Functions that the library has no use for in these scenarios, and why. */
static const struct {
    enum faulty call;
    const char *why;
} unreached[] = {
    {FAULTY_DIR_REWIND, "needs a directory that changes while it is removed"},
    {FAULTY_HANDLE_DUPLICATE, "only tests of the contract call it"},
    {FAULTY_HANDLE_IS_NONBLOCKING, "only tests of the contract call it"},
    {FAULTY_HANDLE_SET_INHERITED, "only tests of the contract call it"},
    {FAULTY_PROCESS_AWAIT, "needs a child that cannot be watched: process_wait_fault.c"},
};

/* ---- running ---- */

/* What a scenario may end with when a call has failed with that error. */
static bool is_allowed(enum faulty call, int error, int64_t rc)
{
    if (call == FAULTY_TRANSFER_COPY && error == ENOTSUP && rc == -EINVAL)
        return true; /* some bytes have been copied: the program cannot begin in another way */
    return rc == 0 || rc == -error;
}

static bool is_memory(enum faulty call)
{
    return call == FAULTY_MEMORY_ALLOC || call == FAULTY_MEMORY_ALLOC_ZEROED ||
           call == FAULTY_PAGES_MAP;
}

/* The test's memory is counted; the system's memory can fail. */
static blz_options options_of(int backend, bool of_system)
{
    return (blz_options){.workers = 1,
                         .backend = backends[backend],
                         .watchdog_ns = BLZ_NEVER,
                         .allocator = of_system ? NULL : test_memory()};
}

static int nr_wrong;

static void report(const struct scenario *scenario, int backend, const char *what, int64_t value)
{
    fprintf(stderr, "%s on %s: %s %d\n", scenario->name, backends[backend], what, (int)value);
    nr_wrong++;
}

/* The nth call fails with this error. */
static void fail_in(const struct scenario *scenario, int backend, enum faulty call, int n,
                    int error)
{
    blz_options options = options_of(backend, is_memory(call));
    int fds = nr_fds();
    char what[128];
    int64_t rc;
    bool failed;

    snprintf(what, sizeof what, "call %d of %s fails with %d", n, faulty_names[call], error);
    if (getenv("TEST_VERBOSE"))
        fprintf(stderr, "%s on %s: %s\n", scenario->name, backends[backend], what);
    fail_call(call, n, false, error);
    rc = scenario->run(&options);
    failed = stop_failing(call);
    if (scenario->settle)
        scenario->settle(&options, fds);
    if (failed ? !is_allowed(call, error, rc) : rc != 0) {
        strcat(what, ", the scenario ends with");
        report(scenario, backend, what, rc);
    }
    if (nr_fds() != fds) {
        strcat(what, ", descriptors left:");
        report(scenario, backend, what, nr_fds() - fds);
    }
    assert_int_equal(memory_blocks(the_memory()), 0);
}

/* How often the scenario calls each function. It runs twice: some are called once in a process. */
static void count_calls(const struct scenario *scenario, int backend, bool of_system, long *counts)
{
    blz_options options = options_of(backend, of_system);

    for (int round = 0; round < 2; round++) {
        long before[NR_CONTRACT_CALLS];
        for (int call = 0; call < NR_CONTRACT_CALLS; call++)
            before[call] = nr_calls_of((enum faulty)call);
        int fds = nr_fds();
        int64_t rc = scenario->run(&options);
        if (scenario->settle)
            scenario->settle(&options, fds);
        if (rc != 0)
            report(scenario, backend, "nothing fails, and the scenario ends with", rc);
        for (int call = 0; call < NR_CONTRACT_CALLS; call++) {
            counts[call] = nr_calls_of((enum faulty)call) - before[call];
            reached[call] += counts[call];
        }
    }
}

static void fail_each_call(const struct scenario *scenario, int backend)
{
    long counts[2][NR_CONTRACT_CALLS];

    count_calls(scenario, backend, false, counts[0]);
    count_calls(scenario, backend, true, counts[1]);
    for (int i = 0; i < NR_CONTRACT_CALLS; i++) {
        enum faulty call = (enum faulty)i;
        long count = counts[is_memory(call)][i];
        for (int n = 1; n <= count && n <= MOST_CALLS; n++)
            for (int e = 0; e < 2 && faulty_errors[call][e]; e++)
                fail_in(scenario, backend, call, n, faulty_errors[call][e]);
    }
}

static void fail_everywhere(const struct scenario *scenarios)
{
    allow_seconds(240);
    nr_wrong = 0;
    for (int backend = 0; backend < NR_BACKENDS; backend++)
        for (const struct scenario *at = scenarios; at->name; at++)
            if (strcmp(backends[backend], "io_uring") != 0 || uring_works())
                fail_each_call(at, backend);
    assert_int_equal(nr_wrong, 0);
}

/* ---- tests ---- */

static void runtimes_processes_signals_and_pools_survive_each_failure(void **state)
{
    (void)state;
    fail_everywhere(process_scenarios);
}

static void sockets_names_and_pipes_survive_each_failure(void **state)
{
    (void)state;
    fail_everywhere(net_scenarios);
}

static void files_and_streams_survive_each_failure(void **state)
{
    (void)state;
    fail_everywhere(file_scenarios);
}

static bool is_excused(enum faulty call)
{
    for (size_t i = 0; i < sizeof unreached / sizeof *unreached; i++)
        if (unreached[i].call == call)
            return true;
    return false;
}

/* Comes last. A function that is excused must not be called: then it needs no excuse. */
static void every_function_that_can_fail_was_reached(void **state)
{
    int wrong = 0;

    (void)state;
    if (getenv("TEST"))
        skip(); /* the other tests may not have run */
    for (int i = 0; i < NR_CONTRACT_CALLS; i++)
        if ((reached[i] > 0) == is_excused((enum faulty)i)) {
            fprintf(stderr, "%s: called %ld times\n", faulty_names[i], reached[i]);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(runtimes_processes_signals_and_pools_survive_each_failure),
        TEST(sockets_names_and_pipes_survive_each_failure),
        TEST(files_and_streams_survive_each_failure),
        TEST(every_function_that_can_fail_was_reached),
    };
    return RUN_TESTS(tests);
}
