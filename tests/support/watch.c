/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog of the tests: sleeps until the current test is overdue; then prints the tasks of the
 * runtimes that it knows and where the threads are, says how to look closer, and aborts.
 */
#include "watch.h"

#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNTIMES = 64, DUMP_SECONDS = 20 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started;
    const char *test;
    struct timespec deadline;
    blz_rt *runtimes[MAX_RUNTIMES];
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the report ---- */

static void print_file(const char *what, const char *path)
{
    char text[256] = "";
    FILE *file = fopen(path, "re");

    if (!file)
        return;
    if (fgets(text, sizeof text, file))
        text[strcspn(text, "\n")] = '\0';
    fprintf(stderr, " %s %s", what, text);
    fclose(file);
}

static void print_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    char path[300];

    for (struct dirent *entry = NULL; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        fprintf(stderr, "    thread %s:", entry->d_name);
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        print_file("named", path);
        snprintf(path, sizeof path, "/proc/self/task/%s/syscall", entry->d_name);
        print_file("in system call", path);
        fprintf(stderr, "\n");
    }
    if (dir)
        closedir(dir);
}

static void print_stacks(void)
{
    char command[200];

    snprintf(command, sizeof command, "gdb -p %d -batch -ex 'thread apply all bt' 1>&2", getpid());
    if (!getenv("TEST_GDB") || system(command) != 0)
        fprintf(stderr, "  for the stacks, set TEST_GDB=1, or let it hang and run: %s\n", command);
}

static void report(void)
{
    alarm(DUMP_SECONDS); /* should the dump hang as well */
    fprintf(stderr, "\nTIME IS UP: %s\n  threads:\n", watch.test);
    print_threads();
    print_stacks();
    for (int i = 0; i < MAX_RUNTIMES; i++) {
        blz_stats stats;
        if (!watch.runtimes[i])
            continue;
        blz_rt_stats(watch.runtimes[i], &stats);
        fprintf(stderr, "  runtime %d: %llu tasks, %llu injected, %llu of %llu workers parked\n", i,
                (unsigned long long)stats.live_tasks, (unsigned long long)stats.inject_depth,
                (unsigned long long)stats.workers_parked, (unsigned long long)stats.workers);
        blz_task_dump_fd(watch.runtimes[i], STDERR_FILENO);
    }
    abort();
}

/* ---- the thread ---- */

static void *watch_main(void *arg)
{
    pthread_mutex_lock(&watch.lock);
    for (;;) {
        if (!watch.test)
            pthread_cond_wait(&watch.changed, &watch.lock);
        else if (pthread_cond_timedwait(&watch.changed, &watch.lock, &watch.deadline) == ETIMEDOUT)
            report();
    }
    return arg;
}

void watch_begin(void)
{
    pthread_condattr_t attr;

    if (watch.started)
        return;
    watch.started = true;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_detach(start_thread(watch_main, NULL));
}

void watch_test(const char *name, int seconds)
{
    pthread_mutex_lock(&watch.lock);
    watch.test = name;
    clock_gettime(CLOCK_MONOTONIC, &watch.deadline);
    watch.deadline.tv_sec += seconds;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
}

static void replace(blz_rt *old, blz_rt *new)
{
    pthread_mutex_lock(&watch.lock);
    for (int i = 0; i < MAX_RUNTIMES; i++) {
        if (watch.runtimes[i] == old) {
            watch.runtimes[i] = new;
            break;
        }
    }
    pthread_mutex_unlock(&watch.lock);
}

void watch_rt(blz_rt *rt)
{
    replace(NULL, rt);
}

void unwatch_rt(blz_rt *rt)
{
    replace(rt, NULL);
}
