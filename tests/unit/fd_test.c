/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign descriptors: waiting for all kinds of them, by one task and by many. On every backend.
 */
#include "fd_waits.h"

#include "sched/sched.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* ---- readiness ---- */

static void expect_readable(blz_rt *rt, int fd, int writer)
{
    blz_fd handle = attach(rt, fd);
    blz_handle task;

    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_waits(rt, &task);
    put(writer);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);

    /* It is a level: still true, and true at once. */
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
    take(fd);
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_waits(rt, &task);
    put(writer);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
    assert_int_equal(blz_fd_detach(&handle), 0);
}

static void wait_for_pipe_and_socket(blz_rt *rt)
{
    int fds[2];

    make_pipe(fds);
    expect_readable(rt, fds[0], fds[1]);
    close_both(fds);
    make_sockets(fds);
    expect_readable(rt, fds[0], fds[1]);
    expect_readable(rt, fds[1], fds[0]);
    close_both(fds);
    make_tcp(fds);
    expect_readable(rt, fds[0], fds[1]);
    close_both(fds);
}
ON_ALL(a_wait_ends_when_there_is_something_to_read, wait_for_pipe_and_socket)

static void wait_for_eventfd(blz_rt *rt)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    blz_fd handle = attach(rt, fd);
    blz_handle in, out;
    uint64_t max = UINT64_MAX - 1;

    spawn_wait(rt, &in, handle, BLZ_FD_READ);
    assert_waits(rt, &in);
    assert_int_equal(write(fd, &max, sizeof max), sizeof max);
    assert_int_equal(result_of(rt, &in), BLZ_FD_READ);
    spawn_wait(rt, &out, handle, BLZ_FD_WRITE); /* full */
    assert_waits(rt, &out);
    assert_int_equal(read(fd, &max, sizeof max), sizeof max);
    assert_int_equal(result_of(rt, &out), BLZ_FD_WRITE);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close(fd);
}
ON_ALL(an_eventfd_can_be_waited_for, wait_for_eventfd)

static void wait_for_timerfd(blz_rt *rt)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    blz_fd handle = attach(rt, fd);
    blz_handle task;

    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_waits(rt, &task);
    assert_int_equal(timerfd_settime(fd, 0, &soon, NULL), 0);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close(fd);
}
ON_ALL(a_timerfd_can_be_waited_for, wait_for_timerfd)

static void wait_for_file(blz_rt *rt)
{
    char name[] = "/tmp/fd_test.XXXXXX";
    int fd = mkstemp(name);
    blz_fd handle = attach(rt, fd);
    blz_handle task;

    unlink(name);
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
    spawn_wait(rt, &task, handle, BLZ_FD_WRITE | BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ | BLZ_FD_WRITE);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close(fd);
}
ON_ALL(a_regular_file_is_always_ready, wait_for_file)

static void wait_to_write(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    int fds[2];

    make_sockets(fds);
    handle = attach(rt, fds[0]);
    spawn_wait(rt, &task, handle, BLZ_FD_WRITE);
    assert_int_equal(result_of(rt, &task), BLZ_FD_WRITE);
    fill(fds[0]);
    spawn_wait(rt, &task, handle, BLZ_FD_WRITE);
    assert_waits(rt, &task);
    put(fds[1]); /* readable is not writable */
    assert_waits(rt, &task);
    drain(fds[1]);
    assert_int_equal(result_of(rt, &task), BLZ_FD_WRITE);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(a_wait_to_write_ends_when_there_is_room, wait_to_write)

static int64_t count_entries(void *arg)
{
    (void)arg;
    return (int64_t)blz__driver_current()->entries;
}

/* How often the driver has entered the kernel. */
static int64_t kernel_entries(blz_rt *rt)
{
    blz_handle task;

    assert_int_equal(BLZ_SPAWN_ON(rt, &task, calls, .fn = count_entries), 0);
    return result_of(rt, &task);
}

/* The same in a hundred turns. */
static int64_t kernel_entries_of_turns(blz_rt *rt)
{
    int64_t before = kernel_entries(rt);

    for (int i = 0; i < 100; i++)
        turn_all(rt);
    return kernel_entries(rt) - before;
}

/* The end of what comes says nothing about what goes, and nobody asks for it again and again. */
static void wait_half_closed(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    int64_t usual;
    int fds[2];

    make_tcp(fds);
    handle = attach(rt, fds[0]);
    fill(fds[0]);
    spawn_wait(rt, &task, handle, BLZ_FD_WRITE);
    assert_waits(rt, &task);
    usual = kernel_entries_of_turns(rt);
    shutdown(fds[1], SHUT_WR);
    assert_waits(rt, &task);
    assert_true(kernel_entries_of_turns(rt) < usual + 20);
    while (!blz_handle_done(&task)) {
        drain(fds[1]);
        check(blz_rt_turn(rt) >= 0);
    }
    assert_int_equal(result_of(rt, &task), BLZ_FD_WRITE);
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(a_half_closed_connection_is_writable_only_when_there_is_room, wait_half_closed)

/* The same, cancelled in between. */
static void cancel_half_closed(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    int fds[2];

    make_tcp(fds);
    handle = attach(rt, fds[0]);
    fill(fds[0]);
    shutdown(fds[1], SHUT_WR);
    spawn_wait(rt, &task, handle, BLZ_FD_WRITE);
    assert_waits(rt, &task);
    blz_handle_cancel(&task);
    assert_int_equal(result_of(rt, &task), -ECANCELED);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(a_wait_on_a_half_closed_connection_can_be_cancelled, cancel_half_closed)

static void see_hang_up(blz_rt *rt)
{
    blz_fd reader, writer;
    blz_handle task;
    int fds[2];

    make_pipe(fds);
    reader = attach(rt, fds[0]);
    spawn_wait(rt, &task, reader, BLZ_FD_READ);
    assert_waits(rt, &task);
    close(fds[1]);
    assert_int_equal(result_of(rt, &task), BLZ_FD_HUP);
    assert_int_equal(blz_fd_detach(&reader), 0);
    close(fds[0]);

    make_pipe(fds);
    writer = attach(rt, fds[1]);
    while (write(fds[1], "", 1) == 1)
        ;
    spawn_wait(rt, &task, writer, BLZ_FD_WRITE);
    assert_waits(rt, &task);
    close(fds[0]);
    assert_true(result_of(rt, &task) & BLZ_FD_ERR);
    assert_int_equal(blz_fd_detach(&writer), 0);
    close(fds[1]);
}
ON_ALL(the_end_of_the_other_side_is_reported_to_all_who_wait, see_hang_up)

static void see_urgent(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    int fds[2];

    make_tcp(fds);
    handle = attach(rt, fds[0]);
    spawn_wait(rt, &task, handle, BLZ_FD_PRI);
    assert_waits(rt, &task);
    put(fds[1]);
    assert_waits(rt, &task);
    assert_int_equal(send(fds[1], "!", 1, MSG_OOB), 1);
    assert_int_equal(result_of(rt, &task), BLZ_FD_PRI);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(urgent_data_can_be_waited_for, see_urgent)

/* ---- several waits ---- */

enum { NR_WAITS = 20 };

static void wait_by_many(blz_rt *rt)
{
    blz_handle in[NR_WAITS], out[NR_WAITS], both;
    blz_fd handle;
    int fds[2];

    make_sockets(fds);
    fill(fds[0]);
    handle = attach(rt, fds[0]);
    for (int i = 0; i < NR_WAITS; i++) {
        spawn_wait(rt, &in[i], handle, BLZ_FD_READ);
        spawn_wait(rt, &out[i], handle, BLZ_FD_WRITE);
    }
    spawn_wait(rt, &both, handle, BLZ_FD_READ | BLZ_FD_WRITE);
    assert_waits(rt, &both);
    blz_handle_cancel(&in[0]);
    assert_int_equal(result_of(rt, &in[0]), -ECANCELED);
    put(fds[1]);
    for (int i = 1; i < NR_WAITS; i++)
        assert_int_equal(result_of(rt, &in[i]), BLZ_FD_READ);
    assert_int_equal(result_of(rt, &both), BLZ_FD_READ);
    for (int i = 0; i < NR_WAITS; i++)
        assert_waits(rt, &out[i]);
    drain(fds[1]);
    for (int i = 0; i < NR_WAITS; i++)
        assert_int_equal(result_of(rt, &out[i]), BLZ_FD_WRITE);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(any_number_of_tasks_may_wait_in_each_direction, wait_by_many)

static void attach_twice(blz_rt *rt)
{
    blz_fd handles[3];
    blz_handle tasks[3];
    int fds[2], count;

    make_pipe(fds);
    count = nr_fds();
    for (int i = 0; i < 3; i++) {
        handles[i] = attach(rt, fds[0]);
        spawn_wait(rt, &tasks[i], handles[i], BLZ_FD_READ);
        assert_waits(rt, &tasks[i]);
    }
    assert_int_equal(blz_fd_detach(&handles[0]), 0);
    assert_int_equal(result_of(rt, &tasks[0]), -EBADF);
    assert_waits(rt, &tasks[1]);
    put(fds[1]);
    assert_int_equal(result_of(rt, &tasks[1]), BLZ_FD_READ);
    assert_int_equal(result_of(rt, &tasks[2]), BLZ_FD_READ);
    assert_int_equal(blz_fd_detach(&handles[2]), 0);
    assert_int_equal(blz_fd_detach(&handles[1]), 0);
    assert_in_range(nr_fds(), 0, count + 4); /* the driver's own; what we dup'ed is closed */
    close_both(fds);
}
ON_ALL(a_descriptor_may_be_attached_several_times, attach_twice)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_ends_when_there_is_something_to_read),
        TEST(an_eventfd_can_be_waited_for),
        TEST(a_timerfd_can_be_waited_for),
        TEST(a_regular_file_is_always_ready),
        TEST(a_wait_to_write_ends_when_there_is_room),
        TEST(a_half_closed_connection_is_writable_only_when_there_is_room),
        TEST(a_wait_on_a_half_closed_connection_can_be_cancelled),
        TEST(the_end_of_the_other_side_is_reported_to_all_who_wait),
        TEST(urgent_data_can_be_waited_for),
        TEST(any_number_of_tasks_may_wait_in_each_direction),
        TEST(a_descriptor_may_be_attached_several_times),
    };
    return RUN_TESTS(tests);
}
