/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ready thread of ready_thread.h. There is one only if options.on_ready asks for it, since an
 * embedded runtime is to have no threads otherwise.
 *
 * Why a thread: an event of the kernel calls nobody. Programs whose loop can wait for a descriptor
 * use blz_rt_fd, and need none of this.
 */
#include "sched/rt.h"

#include "base/assert.h"
#include "system/futex.h"

#include <blitz/error.h>

/* READY_ARMED -> READY_WAITING. */
static bool begin_to_wait(ready_thread *t)
{
    uint32_t state = READY_ARMED;

    /* acquire: pairs with the release in arm */
    return blz__cas(&t->state, &state, (uint32_t)READY_WAITING, ACQUIRE, RELAXED);
}

/*
 * READY_WAITING -> READY_IN_TURN, or READY_ARMED if the wait was ended. False: a turn has begun
 * meanwhile, or the runtime ends. Either way the state that the thread saw last is newer than
 * READY_WAITING: an end_wait that has been taken is not forgotten.
 */
static bool leave_wait(ready_thread *t, bool ready)
{
    uint32_t state = READY_WAITING, next = ready ? READY_IN_TURN : READY_ARMED;

    return blz__cas(&t->state, &state, next, RELAXED, RELAXED);
}

static void wait_in_driver(blz_rt *rt)
{
    ready_thread *t = &rt->ready_thread;
    blz__driver *driver = rt->workers[0].driver;
    bool ready = driver->ops->wait_ready(driver, blz__load(&t->deadline_ns, RELAXED));

    if (!leave_wait(t, ready) || !ready)
        return;
    /* acquire: what another thread did before it woke the worker; pairs with unpark */
    (void)blz__load(&rt->workers[0].parker.state, ACQUIRE);
    rt->options.on_ready(rt->options.hook_arg);
}

static void ready_thread_main(void *arg)
{
    blz_rt *rt = arg;
    ready_thread *t = &rt->ready_thread;
    uint32_t state;

    blz__store(&t->thread_id, blz__thread_id(), RELAXED);
    while ((state = blz__load(&t->state, RELAXED)) != READY_STOP) {
        if (state == READY_IN_TURN)
            blz__futex_wait(&t->state, READY_IN_TURN);
        else if (begin_to_wait(t))
            wait_in_driver(rt);
    }
}

int blz__ready_thread_start(blz_rt *rt)
{
    ready_thread *t = &rt->ready_thread;
    int rc;

    if (!rt->options.on_ready)
        return 0;
    if (!rt->workers[0].driver->ops->wait_ready)
        return -ENOTSUP;
    rc = blz__thread_start(&t->thread, ready_thread_main, rt, 0, "blitz-ready");
    t->running = rc == 0;
    return rc;
}

void blz__ready_thread_arm(blz_rt *rt)
{
    ready_thread *t = &rt->ready_thread;

    if (blz_likely(!t->running))
        return;
    BLZ_ASSERT(blz__peek(&t->state) == READY_IN_TURN);
    blz__store(&t->deadline_ns, blz_rt_deadline(rt), RELAXED);
    /* release: the deadline; pairs with the acquire in begin_to_wait */
    blz__store(&t->state, (uint32_t)READY_ARMED, RELEASE);
    blz__futex_wake(&t->state, 1);
}

void blz__ready_thread_disarm(blz_rt *rt)
{
    ready_thread *t = &rt->ready_thread;
    blz__driver *driver = rt->workers[0].driver;

    if (blz_unlikely(t->running) &&
        blz__swap(&t->state, (uint32_t)READY_IN_TURN, RELAXED) == READY_WAITING)
        driver->ops->end_wait(driver);
}

void blz__ready_thread_stop(blz_rt *rt)
{
    ready_thread *t = &rt->ready_thread;
    blz__driver *driver = rt->workers[0].driver;

    if (!t->running)
        return;
    if (blz__swap(&t->state, (uint32_t)READY_STOP, RELAXED) == READY_WAITING)
        driver->ops->end_wait(driver);
    blz__futex_wake(&t->state, 1);
    blz__thread_join(t->thread);
    t->running = false;
}

bool blz__ready_thread_is_me(const blz_rt *rt)
{
    return blz__load(&rt->ready_thread.thread_id, RELAXED) == blz__thread_id();
}
