/* SPDX-License-Identifier: Apache-2.0 */
/* Events, gates and threads of events.h. */
#include "harness.h"

/* ---- events ---- */

void event_post(struct event *e)
{
    pthread_mutex_lock(&e->lock);
    e->count++;
    pthread_cond_broadcast(&e->changed); /* under the lock: the waiter may free the struct event */
    pthread_mutex_unlock(&e->lock);
}

int64_t event_count(struct event *e)
{
    pthread_mutex_lock(&e->lock);
    int64_t count = e->count;
    pthread_mutex_unlock(&e->lock);
    return count;
}

void event_wait(struct event *e, int64_t count)
{
    pthread_mutex_lock(&e->lock);
    while (e->count < count)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

/* ---- gates ---- */

void gate_open(struct gate *g, int64_t value)
{
    struct gate_wait *waiters;

    pthread_mutex_lock(&g->lock);
    g->open = true;
    g->value = value;
    waiters = g->waiters;
    g->waiters = NULL;
    while (waiters) {
        struct gate_wait *next = waiters->next;
        blz_waker waker = waiters->waker;
        waiters->waiting = false;
        /* Under the lock: once it is open and unlocked, waiters and gate may go. */
        blz_waker_wake(&waker);
        waiters = next;
    }
    pthread_mutex_unlock(&g->lock);
}

static blz_poll gate_poll(blz_future *future, blz_cx *cx)
{
    struct gate_wait *op = (struct gate_wait *)future;
    struct gate *g = op->gate;
    bool open, arrived = false;
    int64_t value;

    pthread_mutex_lock(&g->lock);
    open = g->open;
    value = g->value;
    if (!open && !op->waiting && !op->cancelled) {
        op->waker = blz_cx_waker(cx);
        op->waiting = true;
        op->next = g->waiters;
        g->waiters = op;
        arrived = true;
    }
    pthread_mutex_unlock(&g->lock);
    if (open)
        return blz_future_done(future, value);
    if (op->cancelled)
        return blz_future_done(future, -ECANCELED);
    if (arrived)
        event_post(&g->arrived);
    return BLZ_PENDING;
}

static void gate_cancel(blz_future *future, blz_cx *cx)
{
    struct gate_wait *op = (struct gate_wait *)future;
    struct gate *g = op->gate;

    (void)cx;
    pthread_mutex_lock(&g->lock);
    if (op->waiting) {
        struct gate_wait **link = &g->waiters;
        while (*link != op)
            link = &(*link)->next;
        *link = op->next;
        blz_waker_drop(&op->waker);
        op->waiting = false;
        op->cancelled = true;
    }
    pthread_mutex_unlock(&g->lock);
}

blz_future *gate_enter(struct gate_wait *op, struct gate *g)
{
    static const blz_future_ops ops = {.name = "gate", .poll = gate_poll, .cancel = gate_cancel};

    *op = (struct gate_wait){.future = {.ops = &ops}, .gate = g};
    return &op->future;
}

/* ---- threads ---- */

pthread_t start_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    check(pthread_create(&thread, NULL, fn, arg) == 0);
    return thread;
}

void join_thread(pthread_t thread)
{
    check(pthread_join(thread, NULL) == 0);
}
