/* SPDX-License-Identifier: Apache-2.0 */
/* An idle runtime uses no CPU: none of its threads is scheduled even once in some seconds. */
#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 64 };

#define SETTLE_NS    (100 * BLZ_MSEC)
#define IDLE_NS      (5 * BLZ_SEC)
#define SOAK_IDLE_NS (600 * BLZ_SEC)

/* "voluntary_ctxt_switches:	12" */
static int64_t number_in(const char *line, const char *name)
{
    size_t len = strlen(name);
    return strncmp(line, name, len) == 0 ? atoll(line + len) : 0;
}

/* The times that a thread gave up or lost the CPU; -1: it is not one of the runtime's. */
static int64_t switches_of(const char *tid)
{
    char path[300], line[256];
    int64_t sum = 0;
    bool ours = false;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof line, file)) {
        ours |= strncmp(line, "Name:\tidle-", 11) == 0 || strstr(line, "blitz-watchdog");
        sum += number_in(line, "voluntary_ctxt_switches:");
        sum += number_in(line, "nonvoluntary_ctxt_switches:");
    }
    fclose(file);
    return ours ? sum : -1;
}

/* Over all threads of the runtime. */
static int64_t count_switches(int *threads)
{
    DIR *dir = opendir("/proc/self/task");
    int64_t sum = 0;

    check(dir != NULL);
    *threads = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        int64_t switches = entry->d_name[0] == '.' ? -1 : switches_of(entry->d_name);
        if (switches < 0)
            continue;
        ++*threads;
        sum += switches;
    }
    closedir(dir);
    return sum;
}

/* ---- a while ---- */

static int stops; /* atomic: any thread may take the signal */

static void note_stop(int signal)
{
    (void)signal;
    __atomic_add_fetch(&stops, 1, __ATOMIC_RELAXED);
}

static void sleep_until(int64_t end_ns)
{
    struct timespec end = {.tv_sec = end_ns / BLZ_SEC, .tv_nsec = end_ns % BLZ_SEC};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
        ;
}

/* How often threads are switched in a while. One in which the process is stopped says nothing. */
static int64_t switches_in(int64_t ns)
{
    int stops_before = __atomic_load_n(&stops, __ATOMIC_RELAXED), threads;
    int64_t before = count_switches(&threads);

    sleep_until(blz_deadline(ns));
    int64_t after = count_switches(&threads);
    if (threads != WORKERS + 1)
        return INT64_MAX; /* not all have begun */
    return __atomic_load_n(&stops, __ATOMIC_RELAXED) == stops_before ? after - before : 0;
}

static void an_idle_runtime_does_nothing_at_all(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .name = "idle"});
    blz_handle handles[200];

    (void)state;
    check(sigaction(SIGCONT, &(struct sigaction){.sa_handler = note_stop}, NULL) == 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], yields, .times = 50), 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handles[0], sleeps), 0); /* a task that waits */
    while (switches_in(SETTLE_NS) > 0)
        ;
    assert_int_equal(switches_in(is_soak() ? SOAK_IDLE_NS : IDLE_NS), 0);
    /* and still works */
    assert_int_equal(BLZ_BLOCK_ON(rt, yields, .times = 3, .value = 4), 4);
    blz_handle_cancel(&handles[0]);
    assert_int_equal(blz_handle_wait(&handles[0]), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_idle_runtime_does_nothing_at_all),
    };
    return RUN_TESTS(tests);
}
