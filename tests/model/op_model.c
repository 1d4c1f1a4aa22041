/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of operations in the hands of a driver (src/io/op.h, docs/design/operations.md).
 * The driver is a fake one: when it reports what, and in which order, is explored, and so is
 * whether a cancel has an answer of its own. Worker 0 is the operation's home; its task is polled
 * by worker 1 after it has been cancelled there, so the cancel is a message in the home's mailbox.
 *
 * The operation is in memory of its own that is freed, or used again, as soon as it is ready:
 * whoever comes late is found.
 */
#include "support/fake_driver.h"
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

enum { RESULT = 7 };

static blz_rt *rt;
static blz_handle handle;

/* ---- the kernel ---- */

static unsigned patience; /* polls in which it may report nothing although there is something */
static bool notifies;     /* results are followed by a notification */

static int64_t result_of(const struct fake_event *event)
{
    if (event->kind == FAKE_ANSWER)
        return 0;
    return event->cancelled && model_choose(2) ? -ECANCELED : RESULT;
}

static void kernel(fake_driver *fake, void *unused)
{
    (void)unused;
    while (fake->nr_events > 0) {
        if (patience > 0 && model_choose(2)) {
            patience--;
            return;
        }
        unsigned i = model_choose(fake->nr_events);
        fake_driver_report(fake, i, result_of(&fake->events[i]), notifies);
    }
}

/* ---- operations as futures ---- */

static blz_poll io_poll(blz_future *future, blz_cx *cx)
{
    blz__op *op = (blz__op *)future;

    if (!op->home) {
        blz__op_begin_and_submit(op, cx);
        return BLZ_PENDING;
    }
    if (!blz__op_is_done(op))
        return BLZ_PENDING;
    blz__plain_read(&op->value);
    return blz_future_done(future, op->value);
}

static void io_cancel(blz_future *future, blz_cx *cx)
{
    blz__op *op = (blz__op *)future;

    if (op->home)
        blz__op_cancel(op, cx);
}

static blz_future *io(blz__op *op)
{
    static const blz_future_ops ops = {.name = "io", .poll = io_poll, .cancel = io_cancel};

    *op = (blz__op){.future = {.ops = &ops}};
    return &op->future;
}

static blz__op *op_new(void)
{
    return model_alloc(sizeof(blz__op), _Alignof(blz__op));
}

/* The memory is the task's again: nobody else has anything to do with it. */
static void op_free(blz__op *op)
{
    blz__plain_write(&op->waker);
    blz__plain_write(&op->cancel);
    blz__plain_write(&op->value);
    model_free(op);
}

/* ---- tasks ---- */

struct one {
    BLZ_FRAME;
    blz__op *op;
    int64_t rc;
};

BLZ_ASYNC(one)
{
    BLZ_BEGIN;
    self->op = op_new();
    BLZ_AWAIT(self->rc, io(self->op));
    op_free(self->op);
    BLZ_END(self->rc);
}

/* Two operations at once, as a combinator has them: each goes as soon as it is ready. */
struct two {
    BLZ_FRAME;
    blz__op *op[2];
};

static blz_poll two_poll(blz_future *future, blz_cx *cx)
{
    struct two *self = (struct two *)(void *)future;

    if (future->line == 0)
        for (int i = 0; i < 2; i++)
            io(self->op[i] = op_new());
    future->line = 1;
    for (int i = 0; i < 2; i++)
        if (self->op[i] && blz_is_ready(blz_poll_branch(&self->op[i]->future, cx))) {
            int64_t result = self->op[i]->future.result;
            model_assert(result == RESULT || result == -ECANCELED);
            op_free(self->op[i]);
            self->op[i] = NULL;
        }
    return self->op[0] || self->op[1] ? BLZ_PENDING : blz_future_done(future, 0);
}

static void two_cancel(blz_future *future, blz_cx *cx)
{
    struct two *self = (struct two *)(void *)future;

    for (int i = 0; i < 2; i++)
        if (self->op[i])
            blz_cancel_branch(&self->op[i]->future, cx);
}

static const blz_future_ops two_ops = {.name = "two", .poll = two_poll, .cancel = two_cancel};

/* Cancels its first operation when it is polled again, and then uses the struct once more. */
struct twice {
    BLZ_FRAME;
    blz__op op;
    unsigned started;
};

static blz_poll twice_poll(blz_future *future, blz_cx *cx)
{
    struct twice *self = (struct twice *)(void *)future;

    if (self->started == 0) {
        self->started = 1;
        return blz_poll_branch(io(&self->op), cx);
    }
    if (self->started == 1)
        blz_cancel_branch(&self->op.future, cx);
    if (blz_is_pending(blz_poll_branch(&self->op.future, cx)))
        return BLZ_PENDING;
    if (self->started == 2)
        return blz_future_done(future, self->op.future.result);
    self->started = 2;
    return blz_poll_branch(io(&self->op), cx);
}

static const blz_future_ops twice_ops = {.name = "twice", .poll = twice_poll};

/* ---- workers ---- */

/* What a worker does while it is not asleep. */
static void turn(blz_worker *w)
{
    w->driver->ops->poll(w->driver, 0);
    blz__worker_read_mail(w);
    small_rt_poll_all(w);
}

/* Meanwhile; the test goes on when this has ended. */
static void home(void *unused)
{
    (void)unused;
    small_rt_be(&rt->workers[0]);
    turn(&rt->workers[0]);
}

/* The task has submitted its operations on worker 0. */
static void set_up(const void *frame, size_t size)
{
    rt = small_rt_new(2, &fake_driver_ops);
    patience = 1;
    notifies = false;
    bool answers = model_choose(2);
    for (int i = 0; i < 2; i++) {
        fake_driver_of(rt->workers[i].driver)->script = kernel;
        fake_driver_of(rt->workers[i].driver)->answers_cancels = answers;
    }
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             blz_spawn(frame, size, &(blz_spawn_args){.handle = &handle})) == 0);
    small_rt_poll_all(&rt->workers[0]);
}

/* The other thread has ended; both workers are ours. */
static int64_t finish(void)
{
    for (int i = 0; !blz_handle_done(&handle); i = !i) {
        small_rt_be(&rt->workers[i]);
        turn(&rt->workers[i]);
    }
    int64_t result = small_rt_join(&rt->workers[0], &handle);
    small_rt_free(rt);
    return result;
}

static bool is_result(int64_t result)
{
    return result == RESULT || result == -ECANCELED;
}

/* ---- models ---- */

static void start_one(void)
{
    set_up(&(struct one){.blz_frame.ops = &one_ops}, sizeof(struct one));
}

/* Worker 1 has reason to poll the task, and does. */
static void poll_remotely(void (*reason)(blz_task *))
{
    small_rt_be(&rt->workers[1]);
    reason(handle.task);
    turn(&rt->workers[1]);
}

static void a_completion_is_seen_by_the_task_wherever_it_is_polled(void)
{
    start_one();
    model_thread thread = model_start(home, NULL);
    poll_remotely(task_wake);
    model_join(thread);
    model_assert(finish() == RESULT);
}

static void a_remote_cancel_against_the_completion_is_executed_or_not_sent(void)
{
    start_one();
    model_thread thread = model_start(home, NULL);
    poll_remotely(blz_task_cancel);
    model_join(thread);
    model_assert(is_result(finish()));
}

/* The result is there, but the memory is still the kernel's. */
static void a_remote_cancel_against_the_notification_is_executed_or_not_sent(void)
{
    start_one();
    notifies = true;
    model_thread thread = model_start(home, NULL);
    poll_remotely(blz_task_cancel);
    model_join(thread);
    model_assert(is_result(finish()));
}

static void canceller(void *unused)
{
    (void)unused;
    blz_task_cancel(handle.task);
}

/* Another thread cancels the task; its home delivers that. */
static void a_cancel_at_home_needs_no_message(void)
{
    start_one();
    model_thread thread = model_start(canceller, NULL);
    turn(&rt->workers[0]);
    model_join(thread);
    model_assert(is_result(finish()));
}

static void two_operations_are_cancelled_remotely(void)
{
    set_up(&(struct two){.blz_frame.ops = &two_ops}, sizeof(struct two));
    patience = 0;
    model_thread thread = model_start(home, NULL);
    poll_remotely(blz_task_cancel);
    model_join(thread);
    model_assert(finish() == 0);
}

/* Which runs on worker 1 or 0. */
static void a_late_cancel_never_hits_the_next_operation(void)
{
    set_up(&(struct twice){.blz_frame.ops = &twice_ops}, sizeof(struct twice));
    model_thread thread = model_start(home, NULL);
    poll_remotely(task_wake); /* it cancels its operation then */
    model_join(thread);
    model_assert(finish() == RESULT);
}

/* ---- asleep in the driver ---- */

static uint32_t stop;

static void sleeping_home(void *unused)
{
    (void)unused;
    blz__worker_run(&rt->workers[0], &stop, INT64_MAX);
}

/* The kernel reports nothing before it is asked to cancel: without a wake-up all would sleep. */
static void stubborn_kernel(fake_driver *fake, void *unused)
{
    (void)unused;
    while (fake->nr_events > 0 && (fake->events[0].cancelled || fake->nr_reported > 0))
        fake_driver_report(fake, 0, -ECANCELED, false);
}

static void a_message_wakes_a_worker_that_sleeps_in_its_driver(void)
{
    start_one();
    fake_driver_of(rt->workers[0].driver)->script = stubborn_kernel;
    stop = 0;
    model_thread thread = model_start(sleeping_home, NULL);
    poll_remotely(blz_task_cancel);
    small_rt_be(NULL);
    model_assert(blz_handle_wait(&handle) == 0 && handle.result == -ECANCELED);
    blz__store(&stop, 1u, RELEASE);
    blz__parker_unpark(&rt->workers[0].parker);
    model_join(thread);
    small_rt_free(rt);
}

static const struct model models[] = {
    MODEL(a_completion_is_seen_by_the_task_wherever_it_is_polled, .reduce = true),
    MODEL(a_remote_cancel_against_the_completion_is_executed_or_not_sent, .reduce = true),
    MODEL(a_remote_cancel_against_the_notification_is_executed_or_not_sent, .reduce = true),
    MODEL(a_cancel_at_home_needs_no_message, .reduce = true),
    MODEL(two_operations_are_cancelled_remotely, .stale_reads = 1, .reduce = true),
    MODEL(a_late_cancel_never_hits_the_next_operation, .reduce = true),
    MODEL(a_message_wakes_a_worker_that_sleeps_in_its_driver, .stale_reads = MODEL_NONE,
          .reduce = true),
};

MODEL_MAIN(models)
