/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread from outside wakes a worker, and the runtime ends because of what it did. The worker
 * sleeps in a driver whose memory is freed at the end, together with the runtime's: a thread that
 * touches either of them late is found. The end must not miss the thread, nor wait for ever.
 */
#include "sched/rt.h"
#include "support/fake_driver.h"
#include "support/table.h"
#include "system/futex.h"

#include <blitz/async.h>
#include <blitz/oneshot.h>
#include <blitz/time.h>

static blz_rt *rt;
static blz_oneshot channel;
static uint32_t told;

static void begin(void (*script)(fake_driver *fake, void *arg))
{
    const blz_options options = {.workers = 1,
                                 .watchdog_ns = BLZ_NEVER,
                                 .seed = 1,
                                 .shutdown_ns = BLZ_NEVER};
    fake_driver *driver;

    told = 0;
    blz_oneshot_init(&channel);
    model_assert(blz__rt_create(&rt, &options, &fake_driver_ops) == 0);
    driver = fake_driver_of(rt->workers[0].driver);
    driver->busy = true;
    driver->script = script;
    model_assert(blz__rt_start(rt, false) == 0);
}

static void tell(void)
{
    blz__store(&told, 1u, RELEASE);
    blz__futex_wake(&told, 1);
}

static void wait_to_be_told(void)
{
    while (!blz__load(&told, ACQUIRE))
        blz__futex_wait(&told, 0);
}

/* The visitor may not have left yet. */
static void end_while_visited(model_thread visitor)
{
    model_assert(blz_rt_free(rt) == 0);
    model_join(visitor);
}

/* ---- wakes ---- */

struct receive {
    BLZ_FRAME;
    blz_oneshot_op wait;
    int64_t rc, value;
};

BLZ_ASYNC(receive)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static void send(void *unused)
{
    (void)unused;
    model_assert(blz_oneshot_send(&channel, 5) == 0);
}

static void the_end_waits_for_a_thread_that_wakes_the_last_task(void)
{
    begin(NULL);
    model_thread visitor = model_start(send, NULL);
    model_assert(BLZ_BLOCK_ON(rt, receive) == 5);
    end_while_visited(visitor);
}

struct pins {
    BLZ_FRAME;
    blz_handle child;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(pins)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_PINNED(&self->child, receive);
    model_assert(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->child));
    BLZ_END(self->child.result);
}

static void the_end_waits_for_a_thread_that_wakes_a_pinned_task(void)
{
    begin(NULL);
    model_thread visitor = model_start(send, NULL);
    model_assert(BLZ_BLOCK_ON(rt, pins) == 5);
    end_while_visited(visitor);
}

/* ---- spawns ---- */

struct tells {
    BLZ_FRAME;
};

BLZ_ASYNC(tells)
{
    BLZ_BEGIN;
    tell();
    BLZ_END(0);
}

static void spawn(void *unused)
{
    (void)unused;
    model_assert(BLZ_SPAWN_ON(rt, NULL, tells) == 0);
}

static void the_end_waits_for_a_thread_that_spawns_the_last_task(void)
{
    begin(NULL);
    model_thread visitor = model_start(spawn, NULL);
    wait_to_be_told();
    end_while_visited(visitor);
}

/* ---- cancellations ---- */

static blz_poll io_poll(blz_future *future, blz_cx *cx)
{
    blz__op *op = (blz__op *)future;

    if (!op->home) {
        blz__op_begin_and_submit(op, cx);
        tell();
        return BLZ_PENDING;
    }
    return blz__op_is_done(op) ? blz_future_done(future, op->value) : BLZ_PENDING;
}

struct waits_for_io {
    BLZ_FRAME;
    blz__op *op;
    int64_t rc;
};

BLZ_ASYNC(waits_for_io)
{
    static const blz_future_ops ops = {.name = "io", .poll = io_poll};

    BLZ_BEGIN;
    *self->op = (blz__op){.future = {.ops = &ops}};
    BLZ_AWAIT(self->rc, &self->op->future);
    BLZ_END(self->rc);
}

static void report_cancelled(fake_driver *fake, void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < fake->nr_events; i++)
        if (fake->events[i].cancelled)
            fake_driver_report(fake, i, 7, false);
}

/* As closing a descriptor does, which keeps the operation from ending until it has been asked. */
static void cancel_io(void *op)
{
    wait_to_be_told();
    model_assert(blz__op_request_cancel(op));
    blz__op_send_cancel(op);
}

static void the_end_waits_for_a_thread_that_cancels_the_last_operation(void)
{
    static blz__op op;

    begin(report_cancelled);
    model_thread visitor = model_start(cancel_io, &op);
    model_assert(BLZ_BLOCK_ON(rt, waits_for_io, .op = &op) == 7);
    end_while_visited(visitor);
}

/* ---- timers ---- */

static blz_timer timer;

static void tell_by_timer(void *unused)
{
    (void)unused;
    tell();
}

static void arm_timer(void *unused)
{
    (void)unused;
    blz_timer_init(&timer, tell_by_timer, NULL);
    model_assert(blz_timer_start(&timer, 0, rt) == 0);
}

struct nothing {
    BLZ_FRAME;
};

BLZ_ASYNC(nothing)
{
    BLZ_BEGIN;
    BLZ_END(0);
}

/* The worker wakes up for another reason, and fires the timer before the visitor has woken it. */
static void the_end_waits_for_a_thread_that_arms_a_timer(void)
{
    begin(NULL);
    model_thread visitor = model_start(arm_timer, NULL);
    model_assert(BLZ_SPAWN_ON(rt, NULL, nothing) == 0);
    wait_to_be_told();
    end_while_visited(visitor);
}

/* Three threads make many executions: without older values of loads, and with few preemptions. */
#define BOUNDS .preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true

static const struct model models[] = {
    MODEL(the_end_waits_for_a_thread_that_wakes_the_last_task, BOUNDS),
    MODEL(the_end_waits_for_a_thread_that_wakes_a_pinned_task, BOUNDS),
    MODEL(the_end_waits_for_a_thread_that_spawns_the_last_task, BOUNDS),
    MODEL(the_end_waits_for_a_thread_that_cancels_the_last_operation, BOUNDS),
    MODEL(the_end_waits_for_a_thread_that_arms_a_timer, BOUNDS),
};

MODEL_MAIN(models)
