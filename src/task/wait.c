/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that is no worker, and waits for a future: it polls, sleeps on a word of its own stack
 * until it is woken, and polls again.
 *
 *   bit 31      NOTIFIED: somebody has woken it since it last looked
 *   the rest    how many wakers there are
 *
 * A waker may be used late, when the future is ready for another reason: its maker took it, put it
 * aside and only then calls it. So the thread does not leave before the wakers are all gone. The
 * operation that takes the last one off the word is the last that touches it; the futex call after
 * it does not mind if the memory is gone.
 *
 * The context has no task and no spare references: that is how blz_cx_waker finds its way here.
 */
#include "task/wait.h"

#include "system/clock.h"
#include "system/futex.h"
#include "system/thread.h"
#include "task/task.h"
#include "tuning.h"

#include <blitz/error.h>

#define NOTIFIED 0x80000000u

struct thread_wait {
    blz_cx cx; /* first */
    blz_future scope;
    uint32_t word;
};

/* ---- the waker ---- */

static void thread_wake(void *data)
{
    uint32_t *word = data, old = blz__load(word, RELAXED);

    /* release: what the waker did before, and that it is through; pairs with look and leave */
    while (!blz__cas_weak(word, &old, (old | NOTIFIED) - 1, RELEASE, RELAXED))
        ;
    blz__futex_wake(word, 1);
}

static void thread_wake_by_ref(void *data)
{
    uint32_t *word = data;

    blz__fetch_or(word, NOTIFIED, RELEASE); /* pairs with look */
    blz__futex_wake(word, 1);
}

static void thread_clone(void *data)
{
    uint32_t *word = data;

    blz__fetch_add(word, 1u, RELAXED);
}

static void thread_drop(void *data)
{
    uint32_t *word = data;

    blz__fetch_sub(word, 1u, RELEASE); /* that it is through; pairs with leave */
    blz__futex_wake(word, 1);
}

blz_waker blz__thread_waker(blz_cx *cx)
{
    static const blz_waker_ops ops = {
        thread_wake, thread_wake_by_ref, thread_clone, thread_drop, {NULL, NULL}};
    struct thread_wait *wait = (struct thread_wait *)cx;

    thread_clone(&wait->word);
    return (blz_waker){&wait->word, &ops};
}

/* ---- the thread ---- */

/* Takes note of a wake. False: there was none since the last. */
static bool look(struct thread_wait *wait)
{
    if (!(blz__load(&wait->word, RELAXED) & NOTIFIED))
        return false;
    blz__fetch_and(&wait->word, ~NOTIFIED, ACQUIRE); /* pairs with the release of the waker */
    return true;
}

/* What is waited for is often there sooner than a thread can be put to sleep and woken. */
static bool look_for_a_while(struct thread_wait *wait)
{
    for (int i = 0; i < WAIT_LOOKS; i++) {
        if (look(wait))
            return true;
        blz__spin_hint();
    }
    return look(wait);
}

/* Until it is woken, or it is too late. */
static void sleep_until(struct thread_wait *wait, int64_t deadline_ns)
{
    if (look_for_a_while(wait))
        return;
    do {
        uint32_t word = blz__load(&wait->word, RELAXED);
        if (word & NOTIFIED)
            continue;
        if (deadline_ns == INT64_MAX)
            blz__futex_wait(&wait->word, word);
        else if (!blz__futex_wait_until(&wait->word, word, deadline_ns))
            return;
    } while (!look(wait));
}

static void leave(struct thread_wait *wait)
{
    uint32_t word;

    while ((word = blz__load(&wait->word, ACQUIRE)) & ~NOTIFIED) /* pairs with the wakers' end */
        blz__futex_wait(&wait->word, word);
}

/* When it is too late: tells the future, once, and not while a shield holds it off. */
static void cancel_if_late(struct thread_wait *wait, blz_future *future, int64_t *deadline_ns)
{
    uint32_t *flags = &wait->scope.flags;

    if (*deadline_ns != INT64_MAX && blz__clock_ns() >= *deadline_ns) {
        *deadline_ns = INT64_MAX;
        *flags |= BLZ_FUTURE_CANCELLED;
    }
    if (blz_cancelled(&wait->cx) && !(*flags & BLZ_FUTURE_DELIVERED)) {
        *flags |= BLZ_FUTURE_DELIVERED;
        blz_future_cancel(future, &wait->cx);
    }
}

static void poll_until_ready(struct thread_wait *wait, blz_future *future, int64_t deadline_ns)
{
    while (blz_is_pending(future->ops->poll(future, &wait->cx))) {
        if (wait->cx.yielded) {
            wait->cx.yielded = 0;
            wait->cx.budget = UINT32_MAX;
            blz__thread_yield();
        } else {
            if (deadline_ns == INT64_MAX && blz__load(&wait->word, RELAXED) == 0)
                blz__task_waits_for_nothing(future); /* no waker: the thread would sleep for ever */
            sleep_until(wait, deadline_ns);
        }
        cancel_if_late(wait, future, &deadline_ns);
    }
}

int64_t blz__thread_wait(blz_future *future, int64_t deadline_ns)
{
    static const blz_future_ops scope_ops = {.name = "thread"};
    struct thread_wait wait = {.cx = {.scope = &wait.scope, .budget = UINT32_MAX},
                               .scope.ops = &scope_ops};

    poll_until_ready(&wait, future, deadline_ns);
    leave(&wait);
    if (future->result == -ECANCELED && (wait.scope.flags & BLZ_FUTURE_CANCELLED))
        return -ETIMEDOUT;
    return future->result;
}

int64_t blz_wait_until(blz_future *future, int64_t deadline_ns)
{
    return blz__sched_on_worker() ? -EDEADLK : blz__thread_wait(future, deadline_ns);
}

int64_t blz_wait(blz_future *future)
{
    return blz_wait_until(future, INT64_MAX);
}
