/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An idle runtime uses no CPU: none of its threads is scheduled even once in some seconds; and on
 * each backend none has run for a single nanosecond while two other threads have exchanged many
 * messages. The first would not see a thread that spins and is never interrupted, the second would
 * not see one that wakes up rarely.
 */
#include "io_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* For how long a thread of this process has run; -1: it is not one of the runtime's. */
static int64_t cpu_ns_of(const char *tid)
{
    clockid_t clock = (clockid_t)(~(unsigned)atoi(tid) << 3 | 6); /* as pthread_getcpuclockid */
    struct timespec ran;

    if (switches_of(tid) < 0)
        return -1;
    check(clock_gettime(clock, &ran) == 0);
    return ran.tv_sec * BLZ_SEC + ran.tv_nsec;
}

/* The sum over all threads of the runtime. */
static int64_t sum_up(int64_t (*number_of)(const char *tid), int *threads)
{
    DIR *dir = opendir("/proc/self/task");
    int64_t sum = 0;

    check(dir != NULL);
    *threads = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        int64_t number = entry->d_name[0] == '.' ? -1 : number_of(entry->d_name);
        if (number < 0)
            continue;
        ++*threads;
        sum += number;
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
    int64_t before = sum_up(switches_of, &threads);

    sleep_until(blz_deadline(ns));
    int64_t after = sum_up(switches_of, &threads);
    if (threads != WORKERS + 1)
        return INT64_MAX; /* not all have begun */
    return __atomic_load_n(&stops, __ATOMIC_RELAXED) == stops_before ? after - before : 0;
}

static void an_idle_runtime_does_nothing_at_all(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .name = "idle"});
    blz_handle handles[200];

    (void)state;
    check(sigaction(SIGCONT, &(struct sigaction){.sa_handler = note_stop, .sa_flags = SA_RESTART},
                    NULL) == 0);
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

/* ---- as long as others talk ---- */

enum { MESSAGES = 10000 };

struct echo {
    int in[2], out[2];
};

static void *answer(void *arg)
{
    struct echo *e = arg;
    char c;

    while (read(e->in[0], &c, 1) == 1)
        check(write(e->out[1], &c, 1) == 1);
    return NULL;
}

static void exchange(struct echo *e)
{
    char c = 'm';

    for (int i = 0; i < MESSAGES; i++) {
        check(write(e->in[1], &c, 1) == 1);
        check(read(e->out[0], &c, 1) == 1);
    }
}

/* For how long the runtime's threads run meanwhile. A stop of the process lets all of them run. */
static int64_t cpu_ns_in_exchange(struct echo *e)
{
    int stops_before = __atomic_load_n(&stops, __ATOMIC_RELAXED), threads;
    int64_t before = sum_up(cpu_ns_of, &threads);

    exchange(e);
    int64_t after = sum_up(cpu_ns_of, &threads);
    return __atomic_load_n(&stops, __ATOMIC_RELAXED) == stops_before ? after - before : 0;
}

struct waits_for_all {
    BLZ_FRAME;
    int fd;
    int64_t rc;
    char byte;
    blz_pipe in;
    blz_io io;
    blz_timeout limit;
};

/* An operation that is never ready, and a timer that is due in a day: the worker has both. */
BLZ_ASYNC(waits_for_all)
{
    BLZ_BEGIN;
    check(blz_pipe_from_fd(&self->in, self->fd, NULL) == 0);
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_DAY,
                                         blz_pipe_read(&self->io, &self->in, &self->byte, 1)));
    blz_pipe_close(&self->in);
    BLZ_END(self->rc);
}

static struct echo echo;

static void await_rest(blz_rt *rt)
{
    blz_handle handle;
    int fds[2];

    check(pipe(fds) == 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_for_all, .fd = fds[0]), 0);
    wait_until_idle(rt);
    while (cpu_ns_in_exchange(&echo) > 0)
        continue; /* the watchdog goes to sleep; if one never does, the test hangs */
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    close(fds[1]);
}

static void an_idle_runtime_uses_no_cpu_time(void **state)
{
    (void)state;
    check(sigaction(SIGCONT, &(struct sigaction){.sa_handler = note_stop, .sa_flags = SA_RESTART},
                    NULL) == 0);
    check(pipe(echo.in) == 0 && pipe(echo.out) == 0);
    pthread_t thread = start_thread(answer, &echo);
    on_every_backend_with(&(blz_options){.name = "idle"}, await_rest);
    close(echo.in[1]);
    join_thread(thread);
    close(echo.in[0]);
    close(echo.out[0]);
    close(echo.out[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_idle_runtime_does_nothing_at_all),
        TEST(an_idle_runtime_uses_no_cpu_time),
    };
    return RUN_TESTS(tests);
}
