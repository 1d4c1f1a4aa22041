/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting without sleeping: events for threads, gates for tasks. Both work from any thread, and are
 * plain mutexes inside, so that the sanitizers understand them.
 */
#ifndef BLZ_TESTS_EVENTS_H
#define BLZ_TESTS_EVENTS_H

#include <blitz/future.h>
#include <pthread.h>

/* ---- events: a count that threads wait for ---- */

struct event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t count;
};

#define EVENT_INIT                                             \
    {                                                          \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 \
    }

void event_post(struct event *e);
int64_t event_count(struct event *e);
/* Blocks until it has been posted at least that often. */
void event_wait(struct event *e, int64_t count);

/* ---- gates: closed, then open; tasks wait in front ---- */

struct gate_wait;

struct gate {
    pthread_mutex_t lock;
    bool open;
    int64_t value; /* what the waiters get */
    struct gate_wait *waiters;
    struct event arrived; /* posted for each task that waits */
};

struct gate_wait {
    blz_future future;
    struct gate *gate;
    blz_waker waker;
    struct gate_wait *next;
    bool waiting;
    bool cancelled;
};

#define GATE_INIT                                             \
    {                                                         \
        PTHREAD_MUTEX_INITIALIZER, false, 0, NULL, EVENT_INIT \
    }

void gate_open(struct gate *g, int64_t value);
/* Awaits the gate's opening: its value. Interruptible. */
blz_future *gate_enter(struct gate_wait *op, struct gate *g);

/* ---- threads ---- */

/* pthread_create that cannot fail. */
pthread_t start_thread(void *(*fn)(void *), void *arg);
void join_thread(pthread_t thread);

#endif
