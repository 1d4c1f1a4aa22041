/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of operation, on every backend: what becomes of it when it can be carried out at once,
 * has to wait, is cancelled, runs into a limit, or finds its descriptor closed.
 *
 * A row of `rows` is a kind on a sort of descriptor. What a cancelled operation has not taken is
 * still there: that is looked at each time.
 */
#include "io_fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* ---- the kinds ---- */

struct row {
    enum io_kind kind;
    enum pair_kind pair;
    int64_t result; /* when it is carried out; accept: any descriptor */
};

static const struct row rows[] = {
    {IO_READ, PAIR_TCP, 5},         {IO_READ, PAIR_UNIX, 5},
    {IO_READ, PAIR_PIPE_IN, 5},     {IO_WRITE, PAIR_UNIX, 64},
    {IO_WRITE, PAIR_PIPE_OUT, 64},  {IO_READV, PAIR_TCP, 5},
    {IO_READV, PAIR_PIPE_IN, 5},    {IO_WRITEV, PAIR_UNIX, 64},
    {IO_WRITEV, PAIR_PIPE_OUT, 64}, {IO_PEEK, PAIR_TCP, 5},
    {IO_LEASE, PAIR_TCP, 5},        {IO_LEASE, PAIR_PIPE_IN, 5},
    {IO_RECVMSG, PAIR_UNIX, 5},     {IO_SENDMSG, PAIR_UNIX, 64},
    {IO_ACCEPT, PAIR_LISTENER, 0},  {IO_SENDFILE, PAIR_PIPE_OUT, 64},
    {IO_POLL, PAIR_TCP, POLLIN},    {IO_POLL, PAIR_PIPE_IN, POLLIN},
};
enum { NR_ROWS = sizeof rows / sizeof *rows };

static bool is_write(const struct row *row)
{
    return row->kind == IO_WRITE || row->kind == IO_WRITEV || row->kind == IO_SENDMSG ||
           row->kind == IO_SENDFILE;
}

/* A client of the listener, whose connection waits to be accepted. */
static int client_of(const struct pair *pair)
{
    struct sockaddr_in sa;
    socklen_t len = sizeof sa;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(getsockname(pair->fd, (struct sockaddr *)&sa, &len) == 0);
    check(fd >= 0 && connect(fd, (struct sockaddr *)&sa, len) == 0);
    return fd;
}

static void make_wait(const struct row *row, struct pair *pair)
{
    if (is_write(row))
        check(fill(pair->fd) > 0);
}

/* It can be carried out from now on. */
static void make_ready(const struct row *row, struct pair *pair)
{
    if (row->kind == IO_ACCEPT)
        pair->far = client_of(pair);
    else if (is_write(row))
        check(drain(pair->far) > 0);
    else
        check(write(pair->far, "hello", 5) == 5);
}

static void check_result(const struct row *row, int64_t rc)
{
    if (row->kind == IO_ACCEPT)
        assert_true(rc >= 0);
    else
        assert_int_equal(rc, row->result);
}

static int64_t run(blz_rt *rt, const struct row *row, const struct pair *pair, int how)
{
    return BLZ_BLOCK_ON(rt, does_io, .kind = (int)row->kind, .ref = pair->ours, .how = how);
}

static void spawn(blz_rt *rt, blz_handle *handle, const struct row *row, const struct pair *pair)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, does_io, .kind = (int)row->kind, .ref = pair->ours),
                     0);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* Nothing has been moved by an operation that was cancelled: a new one does it all. */
static void check_untouched(blz_rt *rt, const struct row *row, struct pair *pair)
{
    make_ready(row, pair);
    check_result(row, run(rt, row, pair, DO_PLAIN));
}

static void for_each_row(blz_rt *rt,
                         void (*body)(blz_rt *rt, const struct row *row, struct pair *pair))
{
    for (int i = 0; i < NR_ROWS; i++) {
        struct pair pair;
        open_pair(&pair, rt, rows[i].pair);
        body(rt, &rows[i], &pair);
        close_pair(&pair);
    }
}

/* ---- carried out ---- */

static void at_once(blz_rt *rt, const struct row *row, struct pair *pair)
{
    if (!is_write(row))
        make_ready(row, pair);
    check_result(row, run(rt, row, pair, DO_PLAIN));
}

static void all_at_once(blz_rt *rt)
{
    for_each_row(rt, at_once);
}

static void an_operation_that_need_not_wait_is_carried_out(void **state)
{
    (void)state;
    on_every_backend(all_at_once);
}

static void after_waiting(blz_rt *rt, const struct row *row, struct pair *pair)
{
    blz_handle handle;

    make_wait(row, pair);
    spawn(rt, &handle, row, pair);
    wait_until_idle(rt);
    assert_false(blz_handle_done(&handle));
    make_ready(row, pair);
    check_result(row, result_of(&handle));
}

static void all_after_waiting(blz_rt *rt)
{
    for_each_row(rt, after_waiting);
}

static void an_operation_that_has_to_wait_is_carried_out_later(void **state)
{
    (void)state;
    on_every_backend(all_after_waiting);
}

/* ---- cancelled ---- */

static void cancelled_first(blz_rt *rt, const struct row *row, struct pair *pair)
{
    if (!is_write(row))
        make_ready(row, pair);
    assert_int_equal(run(rt, row, pair, DO_CANCELLED_FIRST), -ECANCELED);
    check_result(row, run(rt, row, pair, DO_PLAIN)); /* it has taken nothing */
}

static void all_cancelled_first(blz_rt *rt)
{
    for_each_row(rt, cancelled_first);
}

static void an_operation_that_is_cancelled_before_it_starts_does_nothing(void **state)
{
    (void)state;
    on_every_backend(all_cancelled_first);
}

static void cancelled_soon(blz_rt *rt, const struct row *row, struct pair *pair)
{
    make_wait(row, pair);
    assert_int_equal(run(rt, row, pair, DO_CANCELLED_SOON), -ECANCELED);
    check_untouched(rt, row, pair);
}

static void all_cancelled_soon(blz_rt *rt)
{
    for_each_row(rt, cancelled_soon);
}

static void an_operation_that_is_cancelled_in_the_poll_that_started_it_ends(void **state)
{
    (void)state;
    on_every_backend(all_cancelled_soon);
}

static void cancelled_later(blz_rt *rt, const struct row *row, struct pair *pair)
{
    blz_handle handle;

    make_wait(row, pair);
    spawn(rt, &handle, row, pair);
    wait_until_idle(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(result_of(&handle), -ECANCELED);
    check_untouched(rt, row, pair);
}

static void all_cancelled_later(blz_rt *rt)
{
    for_each_row(rt, cancelled_later);
}

static void an_operation_that_is_cancelled_while_it_waits_ends(void **state)
{
    (void)state;
    on_every_backend(all_cancelled_later);
}

static void timed_out(blz_rt *rt, const struct row *row, struct pair *pair)
{
    make_wait(row, pair);
    assert_int_equal(run(rt, row, pair, DO_TIMEOUT), -ETIMEDOUT);
    check_untouched(rt, row, pair);
}

static void all_timed_out(blz_rt *rt)
{
    for_each_row(rt, timed_out);
}

static void an_operation_that_takes_too_long_ends(void **state)
{
    (void)state;
    on_every_backend(all_timed_out);
}

/* ---- closed ---- */

static void closed_by_foreigner(blz_rt *rt, const struct row *row, struct pair *pair)
{
    blz__fd_ref copy = pair->ours;
    blz_handle handle;

    make_wait(row, pair);
    spawn(rt, &handle, row, pair);
    wait_until_idle(rt);
    assert_int_equal(blz__fd_close(&pair->ours), 0);
    assert_int_equal(result_of(&handle), -EBADF);
    assert_int_equal(blz__fd_close(&copy), -EBADF);
    pair->ours = copy;
    assert_int_equal(run(rt, row, pair, DO_PLAIN), -EBADF);
}

static void all_closed_by_foreigner(blz_rt *rt)
{
    for_each_row(rt, closed_by_foreigner);
}

static void closing_ends_what_is_in_flight(void **state)
{
    (void)state;
    on_every_backend(all_closed_by_foreigner);
}

static int64_t close_it(void *arg)
{
    return blz__fd_close(arg);
}

static void closed_by_task(blz_rt *rt, const struct row *row, struct pair *pair)
{
    blz_handle handle;

    make_wait(row, pair);
    spawn(rt, &handle, row, pair);
    wait_until_idle(rt);
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = close_it, .arg = &pair->ours), 0);
    assert_int_equal(result_of(&handle), -EBADF);
}

static void all_closed_by_task(blz_rt *rt)
{
    for_each_row(rt, closed_by_task); /* with two workers, its own or the other one */
}

static void a_task_closes_what_another_one_uses(void **state)
{
    (void)state;
    on_every_backend(all_closed_by_task);
}

/* The descriptor is closed by the last operation: until then its number stays taken. */
static void number_is_free_after_close(blz_rt *rt, const struct row *row, struct pair *pair)
{
    int fd = pair->fd;

    closed_by_task(rt, row, pair);
    assert_int_equal(write(fd, "", 0), -1);
    assert_int_equal(errno, EBADF);
}

static void all_numbers_are_free_after_close(blz_rt *rt)
{
    for_each_row(rt, number_is_free_after_close);
}

static void the_descriptor_is_closed_when_the_last_operation_has_ended(void **state)
{
    (void)state;
    on_every_backend(all_numbers_are_free_after_close);
}

/* ---- two at a time ---- */

static void second_is_refused(blz_rt *rt, const struct row *row, struct pair *pair)
{
    blz_handle first;

    make_wait(row, pair);
    spawn(rt, &first, row, pair);
    wait_until_idle(rt);
    if (row->kind == IO_ACCEPT) {
        blz_handle second; /* a listener is shared */
        int client;
        spawn(rt, &second, row, pair);
        wait_until_idle(rt);
        client = client_of(pair);
        make_ready(row, pair);
        check_result(row, result_of(&second));
        close(client);
    } else {
        assert_int_equal(run(rt, row, pair, DO_PLAIN), -EBUSY);
        make_ready(row, pair);
    }
    check_result(row, result_of(&first));
}

static void all_second_are_refused(blz_rt *rt)
{
    for_each_row(rt, second_is_refused);
}

static void a_second_operation_in_the_same_direction_is_busy(void **state)
{
    (void)state;
    on_every_backend(all_second_are_refused);
}

static void both_directions(blz_rt *rt)
{
    struct pair pair;
    blz_handle reader, writer;
    const struct row in = {IO_READ, PAIR_UNIX, 5}, out = {IO_WRITE, PAIR_UNIX, 64};

    open_pair(&pair, rt, PAIR_UNIX);
    make_wait(&out, &pair);
    spawn(rt, &reader, &in, &pair);
    spawn(rt, &writer, &out, &pair);
    wait_until_idle(rt);
    make_ready(&out, &pair);
    check_result(&out, result_of(&writer));
    assert_false(blz_handle_done(&reader));
    make_ready(&in, &pair);
    check_result(&in, result_of(&reader));
    close_pair(&pair);
}

static void a_read_and_a_write_wait_at_the_same_time(void **state)
{
    (void)state;
    on_every_backend(both_directions);
}

/* ---- again and again ---- */

struct many_reads {
    BLZ_FRAME;
    blz__fd_ref ref;
    struct event *read;
    int left;
    int64_t rc;
    struct io_memory memory;
};

/* One struct for all, as programs do. */
BLZ_ASYNC(many_reads)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, make_io(&self->memory, IO_READ, &self->ref));
        check(self->rc == 5);
        check(memcmp(self->memory.buf, "hello", 5) == 0);
        check(self->memory.io.done == 5);
        event_post(self->read);
    }
    BLZ_END(0);
}

static void one_struct_many_operations(blz_rt *rt)
{
    enum { TIMES = 300 };
    struct event read = EVENT_INIT;
    struct pair pair;
    blz_handle handle;

    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, many_reads, .ref = pair.ours, .read = &read,
                                  .left = TIMES),
                     0);
    for (int i = 1; i <= TIMES; i++) {
        assert_int_equal(write(pair.far, "hello", 5), 5);
        event_wait(&read, i);
    }
    assert_int_equal(result_of(&handle), 0);
    close_pair(&pair);
}

static void an_operation_may_be_used_again_at_once(void **state)
{
    (void)state;
    on_every_backend(one_struct_many_operations);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_operation_that_need_not_wait_is_carried_out),
        TEST(an_operation_that_has_to_wait_is_carried_out_later),
        TEST(an_operation_that_is_cancelled_before_it_starts_does_nothing),
        TEST(an_operation_that_is_cancelled_in_the_poll_that_started_it_ends),
        TEST(an_operation_that_is_cancelled_while_it_waits_ends),
        TEST(an_operation_that_takes_too_long_ends),
        TEST(closing_ends_what_is_in_flight),
        TEST(a_task_closes_what_another_one_uses),
        TEST(the_descriptor_is_closed_when_the_last_operation_has_ended),
        TEST(a_second_operation_in_the_same_direction_is_busy),
        TEST(a_read_and_a_write_wait_at_the_same_time),
        TEST(an_operation_may_be_used_again_at_once),
    };
    return RUN_TESTS(tests);
}
