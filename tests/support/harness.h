/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit, stress and fault test stands on.
 *
 *     static void a_joined_task_gives_its_result(void **state)
 *     {
 *         blz_rt *rt = new_rt(&(blz_options){.workers = 2});
 *         assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 7), 7);
 *         free_rt(rt);
 *     }
 *
 *     int main(void)
 *     {
 *         const struct CMUnitTest tests[] = {TEST(a_joined_task_gives_its_result)};
 *         return RUN_TESTS(tests);
 *     }
 *
 * Around each test: memory of test_memory(), open descriptors and threads must be at the end what
 * they were at the beginning; and the test must end in time, or else the tasks of its runtimes are
 * printed and the program aborts. Parks have no time limit, so a lost wakeup ends there.
 *
 * TEST=name in the environment runs the tests whose name matches (with * and ?).
 *
 * cmocka's asserts jump, so they are for the thread that runs the test; tasks and other threads use
 * check().
 */
#ifndef BLZ_TESTS_HARNESS_H
#define BLZ_TESTS_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <blitz.h>

#include "events.h"
#include "frames.h"
#include "memory.h"

/* ---- running tests ---- */

struct test_case {
    const char *name;
    void (*fn)(void **state);
};

#define TEST(fn)                                    \
    ((struct CMUnitTest){.name = #fn,               \
                         .test_func = test_run,     \
                         .setup_func = test_begin,  \
                         .teardown_func = test_end, \
                         .initial_state = &(struct test_case){#fn, (fn)}})

#define RUN_TESTS(tests) \
    (test_program_begin(), cmocka_run_group_tests((tests), test_group_begin, test_group_end))

void test_program_begin(void);
void test_run(void **state);
int test_begin(void **state);
int test_end(void **state);
int test_group_begin(void **state);
int test_group_end(void **state);

/* Any thread: prints and aborts. */
#define check(condition) \
    ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__, __func__))
_Noreturn void check_failed(const char *condition, const char *file, int line, const char *fn);

/* ---- the time limit ---- */

/*
 * No test may depend on how fast the machine is, or on how long it stops a thread (tools/stall). A
 * limit is there to find what hangs, and far from what anything takes.
 */
enum {
    CHILD_SECONDS = 120,  /* for alarm(2), in a child that must not hang either */
    PATIENCE_MS = 100000, /* for poll(2), of what must come */
};

/* Seconds that a test may take; 60 if nothing is said. For the current test only. With a sanitizer
 * it has twice as many, and with TEST_PATIENCE=n in the environment, for an emulated machine, n
 * times as many. */
void allow_seconds(int seconds);

/* Whether SOAK=1 is set: stress tests then run long. */
bool is_soak(void);

/* Whether a sanitizer slows everything down. */
bool is_sanitized(void);

/* How many of something a stress test makes: fewer with a sanitizer, many more with SOAK=1. */
int64_t scaled(int64_t count);

/* A random number, the same in every run of one thread; *seed is its state. */
uint32_t random_below(uint64_t *seed, uint32_t n);

/* This thread, and those that it starts, on one CPU from now on; or where it was before. */
void use_one_cpu(bool one);

/* ---- runtimes ---- */

/* Has test_memory() if the options name no allocator; its tasks are printed if the test hangs. Has
 * another backend than io_uring where that does not work. */
blz_rt *new_rt(const blz_options *options);
void free_rt(blz_rt *rt);
bool uring_works(void);

/* For runtimes made otherwise. */
void watch_rt(blz_rt *rt);
void unwatch_rt(blz_rt *rt);

/* One worker that runs only in blz_rt_turn, by this thread. Everything is in order then. */
blz_rt *new_embedded_rt(void);

/* Turns until nothing can run any more; gives the number of polls. */
int64_t turn_all(blz_rt *rt);

/* ---- the process ---- */

/* Threads of the process, without those that the kernel has started for a ring. */
int nr_threads(void);
int nr_fds(void);

/* Reads as many bytes, or to the end, however often it takes; gives the number. */
int64_t read_fully(int fd, void *buf, size_t len);

/* The number of the calling thread. */
int thread_id(void);

/* Waits until there are as many threads as that: a thread that has been joined may linger. */
bool wait_for_threads(int count);

/*
 * Runs this program again with one argument, which says what to do: its status, as waitpid gives
 * it. What it writes to stderr is in `errors`, unless that is NULL.
 */
int run_self(const char *name, char *errors, size_t size);

/* Runs this program again with one argument; it exits with 0. */
void in_own_process(const char *name);

#endif
