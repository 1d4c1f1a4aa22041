/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of readiness (src/io/ready.c) with the entries (fd.c) and the operations (io.c) above it:
 * whatever comes to a socket is found by who waits for it, wherever the descriptor is registered
 * and whoever else has to do with it. The kernel is fake_kernel.h: what arrives, and when it is
 * reported, is explored.
 *
 * The task is polled by hand, so that there is nothing but the operation. Worker 0 is the
 * descriptor's home; the task is on worker 0 or 1. When all threads have ended, both workers look
 * at their drivers and their mail until nothing happens any more: an operation that is not ready
 * then will never be, and must have nothing to be ready for.
 */
#include "io/fd.h"
#include "support/fake_kernel.h"
#include "support/hand_polled.h"
#include "support/small_rt.h"
#include "support/table.h"

enum { FD = 1, FD2 = 2 };

static blz_rt *rt;
static blz__fd_ref conn;
static blz_io op;
static hand_polled hand;
static char buf[4];

static const blz_future_ops ops = {.name = "model", .poll = blz__io_poll, .cancel = blz__io_cancel};

/* ---- the task ---- */

static blz_future *reading(size_t len)
{
    return blz__io_init(&op, &ops, IO_READ, &conn, buf, len);
}

static blz_future *polling(void)
{
    return blz__io_init_wait(&op, &ops, &conn, 1); /* POLLIN */
}

static blz_poll poll_on(unsigned worker, blz_future *future)
{
    small_rt_be(&rt->workers[worker]);
    hand.cx.worker = &rt->workers[worker];
    return future->ops->poll(future, &hand.cx);
}

static bool is_ready(const blz_future *future)
{
    return future->line == BLZ_LINE_DONE;
}

/* ---- the workers ---- */

static bool turn(unsigned worker)
{
    small_rt_be(&rt->workers[worker]);
    bool looked = fake_kernel_look(&rt->workers[worker]);
    return blz__worker_read_mail(&rt->workers[worker]) || looked;
}

static void home(void *unused)
{
    (void)unused;
    turn(0);
}

/* All threads have ended. Polls the task on the worker where it was. */
static void settle(unsigned worker, blz_future *future)
{
    bool more = true;

    while (more) {
        more = turn(0);
        more = turn(1) || more;
        if (!is_ready(future) && blz__op_is_done((blz__op *)future)) {
            poll_on(worker, future);
            more = true;
        }
    }
}

/* ---- the other side ---- */

static void one_byte(void *unused)
{
    (void)unused;
    fake_kernel_arrive(1, false);
}

static void one_byte_then_the_end(void *unused)
{
    (void)unused;
    if (model_choose(2)) {
        fake_kernel_arrive(1, true);
    } else {
        fake_kernel_arrive(1, false);
        fake_kernel_arrive(0, true);
    }
}

static void closer(void *unused)
{
    (void)unused;
    small_rt_be(NULL);
    model_assert(blz__fd_close(&conn) == 0);
}

/* ---- beginning and end ---- */

static void set_up(void)
{
    rt = small_rt_new(2, &fake_ready_driver);
    fake_kernel_reset();
    op = (blz_io){0};
    model_forget(&op, sizeof op);
    hand_begin(&hand);
    model_assert(blz__fd_adopt(&conn, rt, FD, FD_SOCKET | FD_STREAM) == 0);
}

/* The descriptor is at home with worker 0, and known not to be ready. */
static void set_up_registered(void)
{
    blz_future *read;

    set_up();
    read = reading(1);
    model_assert(blz_is_pending(poll_on(0, read)));
    read->ops->cancel(read, &hand.cx);
    model_assert(blz_is_ready(poll_on(0, read)) && read->result == -ECANCELED);
    model_assert(conn.entry->home == rt->workers[0].driver);
}

static void tear_down(void)
{
    small_rt_be(NULL);
    if (fake_kernel_closed(FD) == 0)
        model_assert(blz__fd_close(&conn) == 0);
    model_assert(fake_kernel_closed(FD) == 1);
    hand_end(&hand);
    small_rt_free(rt);
}

/* ---- edges ---- */

static void data_against_a_read_that_begins_to_wait_at_home(void)
{
    set_up();
    model_thread peer = model_start(one_byte, NULL);
    blz_future *read = reading(2);
    poll_on(0, read);
    turn(0);
    model_join(peer);
    settle(0, read);
    model_assert(is_ready(read) && read->result == 1);
    tear_down();
}

static void data_against_a_read_that_begins_to_wait_elsewhere(void)
{
    set_up_registered();
    model_thread peer = model_start(one_byte, NULL);
    model_thread worker = model_start(home, NULL);
    blz_future *read = reading(2);
    poll_on(1, read);
    model_join(peer);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && read->result == 1);
    tear_down();
}

/* The first read takes what there is, and thinks that this was all; more comes. */
static void a_short_read_forgets_no_later_edge(void)
{
    set_up_registered();
    blz__fetch_or(&conn.entry->ready[FD_IN], FD_READY, RELAXED);
    fake_kernel_arrive(1, false);
    model_thread peer = model_start(one_byte, NULL);
    model_thread worker = model_start(home, NULL);
    poll_on(1, reading(3));
    int64_t total = 0;
    if (is_ready(&op.future) && op.future.result == 1) {
        total = 1;
        poll_on(1, reading(3)); /* while the edges are still under way */
    }
    model_join(peer);
    model_join(worker);
    settle(1, &op.future);
    model_assert(is_ready(&op.future));
    total += op.future.result;
    if (total < 2) {
        poll_on(1, reading(3));
        settle(1, &op.future);
        model_assert(is_ready(&op.future));
        total += op.future.result;
    }
    model_assert(total == 2);
    tear_down();
}

/* It may come with the data, in one edge, and the data may be all that a read looks for. */
static void the_end_of_the_stream_is_found_after_the_data(void)
{
    set_up_registered();
    model_thread peer = model_start(one_byte_then_the_end, NULL);
    model_thread worker = model_start(home, NULL);
    blz_future *read = reading(3);
    poll_on(1, read);
    model_join(worker);
    model_join(peer);
    settle(1, read);
    if (read->result == 1) {
        read = reading(3);
        poll_on(1, read);
        settle(1, read);
    } else {
        model_fail("the end came before the data");
    }
    model_assert(is_ready(read) && read->result == 0);
    tear_down();
}

/* Reads, takes a byte, and wants the end at once, while the edges are still under way. */
static void reader_to_the_end(void *unused)
{
    (void)unused;
    blz_future *read = reading(3);
    if (blz_is_ready(poll_on(1, read)) && read->result > 0)
        poll_on(1, reading(3));
}

static void the_end_of_the_stream_against_a_read_that_goes_on(void)
{
    set_up_registered();
    fake_kernel_arrive(1, false);
    model_thread reader = model_start(reader_to_the_end, NULL);
    model_thread worker = model_start(home, NULL);
    fake_kernel_arrive(0, true);
    model_join(reader);
    model_join(worker);
    settle(1, &op.future);
    if (op.future.result > 0) {
        poll_on(1, reading(3));
        settle(1, &op.future);
    }
    model_assert(is_ready(&op.future) && op.future.result == 0);
    tear_down();
}

/* An end that was not one: a read finds nothing, waits all the same, and does not spin. */
static void who_finds_nothing_after_an_end_waits(void)
{
    set_up_registered();
    blz__fetch_or(&conn.entry->ready[FD_IN], FD_READY | FD_ENDED, RELAXED);
    model_thread peer = model_start(one_byte, NULL);
    model_thread worker = model_start(home, NULL);
    blz_future *read = reading(2);
    poll_on(1, read);
    model_join(peer);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && read->result == 1);
    tear_down();
}

/* One that only asks learns of every edge, also of one between its look and its wait. */
static void a_poll_for_readiness_misses_no_edge(void)
{
    set_up_registered();
    model_thread peer = model_start(one_byte, NULL);
    model_thread worker = model_start(home, NULL);
    blz_future *poll = polling();
    poll_on(1, poll);
    model_join(peer);
    model_join(worker);
    settle(1, poll);
    model_assert(is_ready(poll) && poll->result == 1);
    tear_down();
}

/* ---- moving ---- */

/* The next wait on another worker than the home makes the descriptor move. */
static void make_ready_to_move(void)
{
    conn.entry->state |= 15 * FD_REMOTE_WAIT;
}

static void data_against_a_move(void)
{
    set_up_registered();
    make_ready_to_move();
    model_thread peer = model_start(one_byte, NULL);
    model_thread worker = model_start(home, NULL);
    blz_future *read = reading(2);
    poll_on(1, read);
    model_join(peer);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && read->result == 1);
    tear_down();
}

static struct fake_edge fetched;

static void report_fetched(void *unused)
{
    (void)unused;
    small_rt_be(&rt->workers[0]);
    fake_kernel_report(&rt->workers[0], fetched);
}

/* The old home has fetched an edge that it reports when the descriptor has moved. */
static void an_edge_fetched_before_the_move_is_not_missed(void)
{
    set_up_registered();
    make_ready_to_move();
    fake_kernel_arrive(1, false);
    small_rt_be(&rt->workers[0]);
    fetched = fake_kernel_fetch(&rt->workers[0]);
    model_assert(fetched.what);
    model_thread worker = model_start(report_fetched, NULL);
    blz_future *read = reading(1);
    poll_on(1, read); /* not known to be ready: waits, and moves it */
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && read->result == 1);
    tear_down();
}

/* Two wait: while the home tries one of them again the other moves the descriptor away. */
static void a_move_while_the_home_tries_another_operation(void)
{
    static blz_io other;
    hand_polled mine;

    set_up_registered();
    make_ready_to_move();
    conn.entry->flags |= FD_SHARED;
    blz_future *first = reading(1);
    model_assert(blz_is_pending(poll_on(0, first)));
    fake_kernel_arrive(1, false);
    model_thread worker = model_start(home, NULL);
    other = (blz_io){0};
    model_forget(&other, sizeof other);
    hand_begin(&mine);
    blz_future *second = blz__io_init(&other, &ops, IO_READ, &conn, buf, 1);
    small_rt_be(&rt->workers[1]);
    mine.cx.worker = &rt->workers[1];
    second->ops->poll(second, &mine.cx);
    fake_kernel_arrive(1, false);
    model_join(worker);
    settle(0, first);
    if (!is_ready(second) && blz__op_is_done((blz__op *)second))
        second->ops->poll(second, &mine.cx);
    model_assert(is_ready(first) && first->result == 1);
    model_assert(is_ready(second) && second->result == 1);
    hand_end(&mine);
    tear_down();
}

/* ---- kernels that report one edge for each request ---- */

static void set_up_one_shot(void)
{
    fake_kernel_one_shot = true;
    set_up_registered();
}

static void end_one_shot(void)
{
    tear_down();
    fake_kernel_one_shot = false;
}

/* Each read asks for the edge that it waits for, while the home reports the one before. */
static void each_read_has_an_edge_of_its_own(void)
{
    set_up_one_shot();
    for (int i = 0; i < 2; i++) {
        blz_future *read = reading(1);
        model_thread peer = model_start(one_byte, NULL), worker = model_start(home, NULL);
        poll_on(1, read);
        model_join(peer);
        model_join(worker);
        settle(1, read);
        model_assert(is_ready(read) && read->result == 1);
    }
    end_one_shot();
}

/* The edge of the other direction takes the request that both waited for. */
static void an_edge_of_the_other_direction_is_followed_by_another(void)
{
    static blz_io other;
    hand_polled mine;

    set_up_one_shot();
    blz_future *read = reading(1);
    model_assert(blz_is_pending(poll_on(0, read)));
    other = (blz_io){0};
    model_forget(&other, sizeof other);
    hand_begin(&mine);
    mine.cx.worker = &rt->workers[0];
    blz_future *write = blz__io_init(&other, &ops, IO_WRITE, &conn, buf, 1);
    model_assert(blz_is_pending(write->ops->poll(write, &mine.cx)));
    fake_kernel_arrive(1, false);
    model_thread worker = model_start(home, NULL);
    fake_kernel_make_room();
    model_join(worker);
    settle(0, read);
    write->ops->poll(write, &mine.cx);
    model_assert(is_ready(read) && read->result == 1);
    model_assert(is_ready(write) && write->result == 1);
    hand_end(&mine);
    end_one_shot();
}

/* ---- cancelling and closing ---- */

/* The task, on worker 1, wants the end of an operation that is at home with worker 0. */
static void a_cancellation_against_an_edge(void)
{
    set_up_registered();
    blz_future *read = reading(1);
    model_assert(blz_is_pending(poll_on(1, read)));
    fake_kernel_arrive(1, false);
    model_thread worker = model_start(home, NULL);
    small_rt_be(&rt->workers[1]);
    read->ops->cancel(read, &hand.cx);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read));
    model_assert(read->result == 1 ? fake_kernel_level() == 0
                                   : read->result == -ECANCELED && fake_kernel_level() == 1);
    tear_down();
}

static void a_close_against_a_read_that_begins_to_wait(void)
{
    set_up_registered();
    model_thread thread = model_start(closer, NULL);
    model_thread worker = model_start(home, NULL);
    blz_future *read = reading(1);
    poll_on(1, read);
    model_join(thread);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && (read->result == -ECANCELED || read->result == -EBADF));
    tear_down();
}

/*
 * The first of two bytes is there, and the home has fetched its edge. The task takes the byte and
 * waits for the second; the old edge makes the home try in vain, in the middle of the close.
 */
static void a_close_against_an_edge_that_brings_nothing(void)
{
    set_up_registered();
    fake_kernel_arrive(1, false);
    small_rt_be(&rt->workers[0]);
    fetched = fake_kernel_fetch(&rt->workers[0]);
    blz__fetch_or(&conn.entry->ready[FD_IN], FD_READY, RELAXED); /* so that it is tried at once */
    model_thread thread = model_start(closer, NULL);
    model_thread worker = model_start(report_fetched, NULL);
    blz_future *read = reading(2);
    ((struct io *)read)->flags |= IO_ALL;
    poll_on(1, read);
    turn(1);
    model_join(thread);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && (read->result == -ECANCELED || read->result == -EBADF));
    tear_down();
}

/* As another thread does that knows of the operation through its entry. */
static void ask_to_end(struct io *io)
{
    blz_worker *self = blz__worker_current();

    small_rt_be(NULL);
    blz__lock_acquire(&io->fd->lock);
    bool asked = blz__op_request_cancel(&io->op);
    blz__lock_release(&io->fd->lock);
    model_assert(asked);
    blz__op_send_cancel(&io->op);
    small_rt_be(self);
}

/*
 * The request goes to worker 1, where the operation has begun; it is armed for worker 0, which has
 * an old edge that makes it try in vain. The request must not fall in between.
 */
static void a_request_to_end_against_an_edge_that_brings_nothing(void)
{
    set_up_registered();
    fake_kernel_arrive(1, false);
    small_rt_be(&rt->workers[0]);
    fetched = fake_kernel_fetch(&rt->workers[0]);
    blz__fetch_or(&conn.entry->ready[FD_IN], FD_READY, RELAXED);
    model_assert(blz_is_ready(poll_on(1, reading(1)))); /* the byte of that edge */
    model_thread worker = model_start(report_fetched, NULL);
    fake_kernel_meanwhile = ask_to_end;
    blz_future *read = reading(1);
    poll_on(1, read);
    turn(1);
    model_join(worker);
    settle(1, read);
    model_assert(is_ready(read) && read->result == -EBADF);
    tear_down();
}

/* The entry has been closed and serves another descriptor when the home reports an old edge. */
static void an_edge_of_a_previous_descriptor_is_dropped(void)
{
    blz__fd_ref next;

    set_up_registered();
    fake_kernel_arrive(0, true);
    small_rt_be(&rt->workers[0]);
    fetched = fake_kernel_fetch(&rt->workers[0]);
    model_assert(fetched.what);
    model_thread worker = model_start(report_fetched, NULL);
    small_rt_be(NULL);
    model_assert(blz__fd_close(&conn) == 0);
    model_assert(blz__fd_adopt(&next, rt, FD2, FD_SOCKET) == 0 && next.entry == conn.entry);
    model_join(worker);
    model_assert(blz__load(&next.entry->ready[FD_IN], RELAXED) == FD_READY);
    model_assert(blz__fd_close(&next) == 0 && fake_kernel_closed(FD2) == 1);
    tear_down();
}

static const struct model models[] = {
    MODEL(data_against_a_read_that_begins_to_wait_at_home, .preemptions = 3, .reduce = true),
    MODEL(data_against_a_read_that_begins_to_wait_elsewhere, .preemptions = 3, .reduce = true),
    MODEL(a_short_read_forgets_no_later_edge, .reduce = true),
    MODEL(the_end_of_the_stream_is_found_after_the_data, .preemptions = 3, .reduce = true),
    MODEL(the_end_of_the_stream_against_a_read_that_goes_on, .reduce = true),
    MODEL(who_finds_nothing_after_an_end_waits, .preemptions = 3, .reduce = true),
    MODEL(a_poll_for_readiness_misses_no_edge, .preemptions = 3, .reduce = true),
    MODEL(data_against_a_move, .preemptions = 3, .reduce = true),
    MODEL(an_edge_fetched_before_the_move_is_not_missed, .preemptions = 3, .reduce = true),
    MODEL(a_move_while_the_home_tries_another_operation, .preemptions = 3, .reduce = true),
    MODEL(each_read_has_an_edge_of_its_own, .reduce = true),
    MODEL(an_edge_of_the_other_direction_is_followed_by_another, .reduce = true),
    MODEL(a_cancellation_against_an_edge, .preemptions = 3, .reduce = true),
    MODEL(a_close_against_a_read_that_begins_to_wait, .preemptions = 3, .reduce = true),
    MODEL(a_close_against_an_edge_that_brings_nothing, .reduce = true),
    MODEL(a_request_to_end_against_an_edge_that_brings_nothing, .preemptions = 3, .reduce = true),
    MODEL(an_edge_of_a_previous_descriptor_is_dropped, .preemptions = 3, .reduce = true),
};

MODEL_MAIN(models)
