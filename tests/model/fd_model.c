/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of descriptors (src/io/fd.c) under operations (io.c): a close, from any thread and at any
 * moment, ends what is in flight, once; the descriptor is closed exactly once and never under an
 * operation; and stale handles find nothing.
 *
 * The driver is a fake one that completes operations when it is looked at, with a result, or with
 * -ECANCELED once it has been asked to, with and without an answer to the request. The task is
 * polled by hand on worker 1. An operation is in memory of its own that is freed as soon as it is
 * ready: whoever comes late is found.
 */
#include "base/assert.h"
#include "io/fd.h"
#include "support/fake_driver.h"
#include "support/fake_kernel.h"
#include "support/hand_polled.h"
#include "support/small_rt.h"
#include "support/table.h"
#include "system/thread.h"

enum { FD = 1, FD2 = 2, STEP = 2 };

static blz_rt *rt;
static blz__fd_ref conn;
static blz_io *op;
static hand_polled hand;
static char buf[2 * STEP];

static const blz_future_ops ops = {.name = "model", .poll = blz__io_poll, .cancel = blz__io_cancel};

/* ---- the kernel ---- */

static bool silent; /* it reports nothing before it is asked to end something */

static void kernel(fake_driver *fake, void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < fake->nr_events;) {
        struct fake_event event = fake->events[i];
        if (silent && event.kind == FAKE_RESULT && !event.cancelled) {
            i++;
            continue;
        }
        model_assert(fake_kernel_closed(FD) == 0); /* it is in the kernel's hands */
        bool ends = event.cancelled && (silent || model_choose(2));
        fake_driver_report(fake, i, ends ? -ECANCELED : STEP, false);
    }
}

/* ---- the task ---- */

static blz_future *reading(size_t len)
{
    return blz__io_init(op, &ops, IO_READ, &conn, buf, len);
}

/* All of the bytes, in two steps. */
static blz_future *reading_exactly(void)
{
    blz_future *read = reading(2 * (size_t)STEP);

    ((struct io *)read)->flags |= IO_ALL;
    return read;
}

static blz_poll poll_task(blz_future *future)
{
    small_rt_be(&rt->workers[1]);
    hand.cx.worker = &rt->workers[1];
    return future->ops->poll(future, &hand.cx);
}

static void turn(void)
{
    small_rt_be(&rt->workers[1]);
    rt->workers[1].driver->ops->poll(rt->workers[1].driver, 0);
    blz__worker_read_mail(&rt->workers[1]);
}

/* Looks at the driver and the mail, and polls the task, until it is ready; gives its result. */
static int64_t await_op(blz_future *future, blz_poll poll)
{
    int64_t result;

    while (blz_is_pending(poll)) {
        blz__thread_yield();
        turn();
        poll = poll_task(future);
    }
    result = future->result;
    blz__plain_write(&((blz__op *)future)->waker);
    blz__plain_write(&((blz__op *)future)->cancel);
    model_free(op);
    op = NULL;
    return result;
}

static bool is_ended(int64_t result)
{
    return result == STEP || result == -ECANCELED || result == -EBADF;
}

/* ---- others ---- */

static void closer(void *unused)
{
    blz__fd_ref copy = conn;

    (void)unused;
    small_rt_be(NULL);
    model_assert(blz__fd_close(&copy) == 0);
}

static uint32_t successes;

static void rival_closer(void *unused)
{
    blz__fd_ref copy = conn;
    int rc;

    (void)unused;
    small_rt_be(NULL);
    rc = blz__fd_close(&copy);
    model_assert(rc == 0 || rc == -EBADF);
    if (rc == 0)
        blz__fetch_add(&successes, 1u, RELAXED);
}

/* ---- beginning and end ---- */

static void set_up(void)
{
    bool answers = model_choose(2);

    rt = small_rt_new(2, &fake_driver_ops);
    fake_kernel_reset();
    for (int i = 0; i < 2; i++) {
        fake_driver_of(rt->workers[i].driver)->script = kernel;
        fake_driver_of(rt->workers[i].driver)->answers_cancels = answers;
    }
    silent = false;
    successes = 0;
    model_forget(&successes, sizeof successes);
    op = model_alloc(sizeof *op, _Alignof(blz_io));
    *op = (blz_io){0};
    hand_begin(&hand);
    model_assert(blz__fd_adopt(&conn, rt, FD, FD_SOCKET) == 0);
}

static void tear_down(void)
{
    small_rt_be(NULL);
    model_assert(blz__fd_close(&conn) == -EBADF);
    model_assert(fake_kernel_closed(FD) == 1);
    BLZ_ASSERT_VALID(blz__fd_check(rt->io));
    if (op)
        model_free(op);
    hand_end(&hand);
    small_rt_free(rt);
}

/* ---- a close against each step of an operation ---- */

static void a_close_against_the_begin(void)
{
    set_up();
    model_thread thread = model_start(closer, NULL);
    blz_future *read = reading(STEP);
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(is_ended(result));
    tear_down();
}

/* Nothing else would end it: the request must arrive. */
static void a_close_ends_an_operation_that_would_wait_for_ever(void)
{
    set_up();
    silent = true;
    model_thread thread = model_start(closer, NULL);
    blz_future *read = reading(STEP);
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(result == -ECANCELED || result == -EBADF);
    tear_down();
}

static void a_close_against_the_result_and_the_end(void)
{
    set_up();
    blz_future *read = reading(STEP);
    model_assert(blz_is_pending(poll_task(read)));
    model_thread thread = model_start(closer, NULL);
    turn();
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(result == STEP || result == -EBADF);
    tear_down();
}

static void a_close_against_the_second_step(void)
{
    set_up();
    blz_future *read = reading_exactly();
    model_assert(blz_is_pending(poll_task(read)));
    model_thread thread = model_start(closer, NULL);
    turn();
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(result == 2 * STEP || result == -EBADF);
    tear_down();
}

/* Between two steps, for lack of budget, it is in no driver's hands. */
static void a_close_while_the_operation_pauses(void)
{
    set_up();
    blz_future *read = reading_exactly();
    model_assert(blz_is_pending(poll_task(read)));
    turn();
    hand.cx.budget = 0;
    model_assert(blz_is_pending(poll_task(read)));
    hand.cx.budget = 10;
    silent = true;
    model_thread thread = model_start(closer, NULL);
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(result == -EBADF); /* nothing but the close can have ended it */
    tear_down();
}

/* It has a result without ever having been in a driver's hands. */
static void a_close_against_the_end_of_what_never_waited(void)
{
    set_up();
    model_thread thread = model_start(closer, NULL);
    blz_future *read = reading(0);
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(result == 0 || result == -EBADF);
    tear_down();
}

static void a_close_and_a_cancellation_at_once(void)
{
    set_up();
    silent = true;
    blz_future *read = reading(STEP);
    model_assert(blz_is_pending(poll_task(read)));
    model_thread thread = model_start(closer, NULL);
    small_rt_be(&rt->workers[0]); /* where the task is by now: it is a request, too */
    read->ops->cancel(read, &hand.cx);
    int64_t result = await_op(read, poll_task(read));
    model_join(thread);
    model_assert(result == -ECANCELED);
    tear_down();
}

/* ---- handles ---- */

static void only_one_of_two_closes_succeeds(void)
{
    set_up();
    model_thread thread = model_start(rival_closer, NULL);
    rival_closer(NULL);
    model_join(thread);
    model_assert(blz__load(&successes, RELAXED) == 1);
    tear_down();
}

static void user(void *unused)
{
    int fd = blz__fd_acquire(&conn);

    (void)unused;
    model_assert(fd == FD || fd == -EBADF);
    if (fd == FD) {
        model_assert(fake_kernel_closed(FD) == 0);
        blz__fd_release(&conn);
    }
}

static void a_descriptor_stays_open_while_it_is_used(void)
{
    set_up();
    model_thread thread = model_start(user, NULL);
    small_rt_be(NULL);
    blz__fd_ref copy = conn;
    model_assert(blz__fd_close(&copy) == 0);
    model_join(thread);
    tear_down();
}

/* The entry serves another descriptor by then, or not yet. */
static void a_stale_handle_finds_nothing(void)
{
    blz__fd_ref next;

    set_up();
    closer(NULL);
    model_thread thread = model_start(rival_closer, NULL);
    model_assert(blz__fd_adopt(&next, rt, FD2, FD_SOCKET) == 0 && next.entry == conn.entry);
    blz_future *read = reading(STEP);
    model_assert(blz_is_ready(poll_task(read)) && read->result == -EBADF);
    model_assert(blz__fd_acquire(&conn) == -EBADF);
    model_join(thread);
    model_assert(blz__load(&successes, RELAXED) == 0 && fake_kernel_closed(FD2) == 0);
    model_assert(blz__fd_close(&next) == 0 && fake_kernel_closed(FD2) == 1);
    tear_down();
}

static const struct model models[] = {
    MODEL(a_close_against_the_begin, .preemptions = 3, .reduce = true),
    MODEL(a_close_ends_an_operation_that_would_wait_for_ever, .preemptions = 3, .reduce = true),
    MODEL(a_close_against_the_result_and_the_end, .preemptions = 3, .reduce = true),
    MODEL(a_close_against_the_second_step, .preemptions = 3, .reduce = true),
    MODEL(a_close_while_the_operation_pauses, .preemptions = 3, .reduce = true),
    MODEL(a_close_against_the_end_of_what_never_waited, .preemptions = 3, .reduce = true),
    MODEL(a_close_and_a_cancellation_at_once, .preemptions = 3, .reduce = true),
    MODEL(only_one_of_two_closes_succeeds, .preemptions = 3, .reduce = true),
    MODEL(a_descriptor_stays_open_while_it_is_used, .preemptions = 3, .reduce = true),
    MODEL(a_stale_handle_finds_nothing, .preemptions = 3, .reduce = true),
};

MODEL_MAIN(models)
