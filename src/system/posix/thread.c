/* SPDX-License-Identifier: Apache-2.0 */
/* Threads by pthreads. What each system has its own functions for is in thread_self.c. */
#include "system/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct start {
    void (*fn)(void *);
    void *arg;
    char name[16];
};

static void *thread_main(void *raw)
{
    struct start start = *(struct start *)raw;

    free(raw);
    if (start.name[0])
        blz__thread_set_name(start.name);
    start.fn(start.arg);
    return NULL;
}

/* Signals belong to the program's own threads: ours start with all of them blocked. */
static int create_masked(pthread_t *thread, const pthread_attr_t *attr, struct start *start)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(thread, attr, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

int blz__thread_start(blz__thread *thread, void (*fn)(void *), void *arg, size_t stack_size,
                      const char *name)
{
    struct start *start = calloc(1, sizeof *start);
    pthread_attr_t attr;
    pthread_t id;
    int rc;

    if (!start)
        return -ENOMEM;
    start->fn = fn;
    start->arg = arg;
    if (name)
        snprintf(start->name, sizeof start->name, "%s", name);
    rc = -pthread_attr_init(&attr);
    if (rc < 0)
        goto out_start;
    if (stack_size) {
        rc = -pthread_attr_setstacksize(&attr, stack_size);
        if (rc < 0)
            goto out_attr;
    }
    rc = create_masked(&id, &attr, start);
    if (rc == 0) {
        memcpy(&thread->handle, &id, sizeof id);
        start = NULL; /* the thread's now */
    }
out_attr:
    pthread_attr_destroy(&attr);
out_start:
    free(start);
    return rc;
}

static pthread_t id_of(blz__thread thread)
{
    pthread_t id;

    _Static_assert(sizeof id <= sizeof thread.handle, "a pthread_t fits");
    memcpy(&id, &thread.handle, sizeof id);
    return id;
}

void blz__thread_join(blz__thread thread)
{
    pthread_join(id_of(thread), NULL);
}

void blz__thread_detach(blz__thread thread)
{
    pthread_detach(id_of(thread));
}

blz__thread blz__thread_self(void)
{
    blz__thread self = {0};
    pthread_t id = pthread_self();

    memcpy(&self.handle, &id, sizeof id);
    return self;
}

void blz__thread_yield(void)
{
    sched_yield();
}
