/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign descriptors: waiting for all kinds of them, by one task and by many; cancelling,
 * detaching, and numbers that come to mean something else. On every backend.
 */
#include "harness.h"
#include "sched/sched.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};
enum { NR_BACKENDS = sizeof backends / sizeof *backends };

/* Everything happens in blz_rt_turn, on this thread. */
static blz_rt *new_backend_rt(const char *backend)
{
    return new_rt(&(blz_options){.embedded = true, .watchdog_ns = -1, .backend = backend});
}

/* Runs a test once for each backend. */
#define ON_ALL(test, fn)                              \
    static void test(void **state)                    \
    {                                                 \
        (void)state;                                  \
        for (int i = 0; i < NR_BACKENDS; i++) {       \
            blz_rt *rt = new_backend_rt(backends[i]); \
            fn(rt);                                   \
            free_rt(rt);                              \
        }                                             \
    }

/* ---- tasks that wait ---- */

struct waits {
    BLZ_FRAME;
    blz_fd fd;
    unsigned events;
    int64_t limit_ns; /* 0: none */
    int64_t rc;
    blz_io io;
    blz_timeout limit;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    if (self->limit_ns)
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, self->limit_ns,
                                             blz_fd_wait(&self->io, &self->fd, self->events)));
    else
        BLZ_AWAIT(self->rc, blz_fd_wait(&self->io, &self->fd, self->events));
    BLZ_END(self->rc);
}

static void spawn_wait(blz_rt *rt, blz_handle *handle, blz_fd fd, unsigned events)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, waits, .fd = fd, .events = events), 0);
}

/* It goes on waiting, whatever there is to do. */
static void assert_waits(blz_rt *rt, blz_handle *handle)
{
    for (int i = 0; i < 3; i++)
        turn_all(rt);
    assert_false(blz_handle_done(handle));
}

static int64_t result_of(blz_rt *rt, blz_handle *handle)
{
    while (!blz_handle_done(handle))
        check(blz_rt_turn(rt) >= 0);
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static blz_fd attach(blz_rt *rt, int fd)
{
    blz_fd handle;

    assert_int_equal(blz_fd_attach_to(&handle, rt, fd), 0);
    return handle;
}

static void put(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static void take(int fd)
{
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
}

/* ---- pairs of descriptors ---- */

static void make_pipe(int fds[2])
{
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
}

static void make_sockets(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
}

static void close_both(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static void make_tcp(int fds[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(bind(listener, (struct sockaddr *)&addr, len) == 0);
    check(listen(listener, 1) == 0);
    check(getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(fds[0], (struct sockaddr *)&addr, len) == 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    check(fds[1] >= 0);
    close(listener);
}

/* Writes until nothing fits; gives the number of bytes. */
static size_t fill(int fd)
{
    static const char zeros[65536];
    size_t all = 0;

    for (ssize_t n; (n = send(fd, zeros, sizeof zeros, MSG_DONTWAIT)) > 0;)
        all += (size_t)n;
    return all;
}

static size_t drain(int fd)
{
    static char buf[65536];
    size_t all = 0;

    for (ssize_t n; (n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0;)
        all += (size_t)n;
    return all;
}

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
    assert_int_equal(result_of(rt, &tasks[0]), -ECANCELED);
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

/* ---- ending ---- */

static void cancel_wait(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    int fds[2];

    make_pipe(fds);
    handle = attach(rt, fds[0]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, waits, .fd = handle, .events = BLZ_FD_READ,
                                  .limit_ns = BLZ_MSEC),
                     0);
    assert_int_equal(result_of(rt, &task), -ETIMEDOUT);
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    blz_handle_cancel(&task); /* before it has begun */
    assert_int_equal(result_of(rt, &task), -ECANCELED);
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_waits(rt, &task);
    blz_handle_cancel(&task);
    assert_int_equal(result_of(rt, &task), -ECANCELED);
    put(fds[1]);
    spawn_wait(rt, &task, handle, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(a_wait_can_be_cancelled_and_the_next_one_works, cancel_wait)

static void detach_with_waits(blz_rt *rt)
{
    blz_handle tasks[NR_WAITS];
    blz_fd handle, copy;
    int fds[2];

    make_sockets(fds);
    fill(fds[0]);
    handle = copy = attach(rt, fds[0]);
    for (int i = 0; i < NR_WAITS; i++)
        spawn_wait(rt, &tasks[i], handle, i % 2 ? BLZ_FD_READ : BLZ_FD_WRITE);
    assert_waits(rt, &tasks[0]);
    put(fds[1]); /* nobody has noticed it yet, and nobody shall any more */
    assert_int_equal(blz_fd_detach(&handle), 0);
    for (int i = 0; i < NR_WAITS; i++)
        assert_int_equal(result_of(rt, &tasks[i]), -ECANCELED);
    assert_int_equal(blz_fd_detach(&handle), -EBADF);
    assert_int_equal(blz_fd_detach(&copy), -EBADF);
    close_both(fds);
}
ON_ALL(detaching_ends_all_waits, detach_with_waits)

/* Detaches and closes in one go, as a library does, and looks at the other side. */
struct closes {
    BLZ_FRAME;
    blz_fd *handle;
    int fd, other;
};

BLZ_ASYNC(closes)
{
    char byte;

    BLZ_BEGIN;
    check(blz_fd_detach(self->handle) == 0);
    close(self->fd);
    BLZ_END(recv(self->other, &byte, 1, MSG_DONTWAIT));
}

static void detach_and_close(blz_rt *rt)
{
    blz_fd handle;
    blz_handle waiter, closer;
    int fds[2];

    make_sockets(fds);
    handle = attach(rt, fds[0]);
    spawn_wait(rt, &waiter, handle, BLZ_FD_READ);
    assert_waits(rt, &waiter);
    assert_int_equal(BLZ_SPAWN_ON(rt, &closer, closes, .handle = &handle, .fd = fds[0],
                                  .other = fds[1]),
                     0);
    assert_int_equal(result_of(rt, &closer), 0); /* the end of the stream, at once */
    assert_int_equal(result_of(rt, &waiter), -ECANCELED);
    close(fds[1]);
}
ON_ALL(once_detached_a_descriptor_can_be_closed_to_effect, detach_and_close)

static void use_stale(blz_rt *rt)
{
    blz_fd handle, stale, none = {NULL, 0};
    blz_handle task;
    int fds[2];

    make_pipe(fds);
    put(fds[1]);
    handle = stale = attach(rt, fds[0]);
    assert_int_equal(blz_fd_detach(&handle), 0);
    spawn_wait(rt, &task, stale, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), -EBADF);
    spawn_wait(rt, &task, none, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), -EBADF);
    handle = attach(rt, fds[0]); /* perhaps in the same entry */
    spawn_wait(rt, &task, stale, BLZ_FD_READ);
    assert_int_equal(result_of(rt, &task), -EBADF);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
    assert_int_equal(blz_fd_attach_to(&handle, rt, fds[0]), -EBADF);
    assert_int_equal(blz_fd_attach_to(&handle, rt, -1), -EBADF);
    assert_int_equal(blz_fd_attach(&handle, 0), -ENXIO);
}
ON_ALL(stale_handles_and_closed_descriptors_are_refused, use_stale)

/* The number is taken by another file while the old waits have not ended yet. */
static void reuse_number(blz_rt *rt)
{
    blz_handle old, new;
    blz_fd handle;
    int fds[2], other[2];

    for (int round = 0; round < 50; round++) {
        make_sockets(fds);
        handle = attach(rt, fds[0]);
        spawn_wait(rt, &old, handle, BLZ_FD_READ);
        turn_all(rt);
        if (round % 2)
            turn_all(rt);
        assert_int_equal(blz_fd_detach(&handle), 0);
        close(fds[0]);
        make_sockets(other);
        assert_int_equal(other[0], fds[0]);
        handle = attach(rt, other[0]);
        spawn_wait(rt, &new, handle, BLZ_FD_READ);
        put(other[1]);
        assert_int_equal(result_of(rt, &old), -ECANCELED);
        assert_int_equal(result_of(rt, &new), BLZ_FD_READ);
        take(other[0]);
        spawn_wait(rt, &new, handle, BLZ_FD_READ);
        assert_waits(rt, &new);
        put(other[1]);
        assert_int_equal(result_of(rt, &new), BLZ_FD_READ);
        assert_int_equal(blz_fd_detach(&handle), 0);
        close_both(other);
        close(fds[1]);
    }
}
ON_ALL(a_number_that_is_reused_at_once_brings_no_old_news, reuse_number)

/* Begins to wait, and takes note of the end only after a gate. */
struct looks_late {
    BLZ_FRAME;
    blz_fd fd;
    struct gate *gate;
    int64_t rc;
    blz_io io;
    struct gate_wait op;
};

BLZ_ASYNC(looks_late)
{
    BLZ_BEGIN;
    check(blz_poll_branch(blz_fd_readable(&self->io, &self->fd), cx) == BLZ_PENDING);
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->gate));
    check(blz_poll_branch(&self->io.future, cx) == BLZ_READY);
    BLZ_END(self->io.future.result);
}

/* What is left of the old one goes when the new one is being waited for. */
static void end_late(blz_rt *rt)
{
    struct gate gate = GATE_INIT;
    blz_handle old, new;
    blz_fd handle;
    int fds[2], other[2];

    make_sockets(fds);
    handle = attach(rt, fds[0]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &old, looks_late, .fd = handle, .gate = &gate), 0);
    assert_waits(rt, &old);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close(fds[0]);
    make_sockets(other);
    assert_int_equal(other[0], fds[0]);
    handle = attach(rt, other[0]);
    spawn_wait(rt, &new, handle, BLZ_FD_READ);
    assert_waits(rt, &new);
    gate_open(&gate, 0);
    assert_int_equal(result_of(rt, &old), -ECANCELED);
    assert_waits(rt, &new);
    put(other[1]);
    assert_int_equal(result_of(rt, &new), BLZ_FD_READ);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(other);
    close(fds[1]);
}
ON_ALL(a_wait_that_ends_late_does_not_harm_the_next_owner_of_the_number, end_late)

static void a_descriptor_is_left_as_it_was(void **state)
{
    (void)state;
    for (int i = 0; i < NR_BACKENDS; i++) {
        blz_rt *rt = new_backend_rt(backends[i]);
        blz_handle task;
        int fds[2], flags;

        make_tcp(fds);
        flags = fcntl(fds[0], F_GETFL);
        assert_false(flags & O_NONBLOCK);
        spawn_wait(rt, &task, attach(rt, fds[0]), BLZ_FD_READ);
        assert_waits(rt, &task);
        put(fds[1]);
        assert_int_equal(result_of(rt, &task), BLZ_FD_READ);
        assert_int_equal(fcntl(fds[0], F_GETFL), flags);
        (void)attach(rt, fds[0]);
        free_rt(rt); /* with two that were never detached */
        assert_int_equal(fcntl(fds[0], F_GETFL), flags);
        take(fds[0]);
        close_both(fds);
    }
}

/* ---- calls until one does not block ---- */

struct reads {
    BLZ_FRAME;
    blz_fd fd;
    int number;
    int calls;
    char buf[16];
    int64_t rc;
    blz_fd_op op;
};

static int64_t try_read(void *arg)
{
    struct reads *self = arg;
    ssize_t n = read(self->number, self->buf, sizeof self->buf);

    self->calls++;
    return n < 0 ? -errno : n;
}

BLZ_ASYNC(reads)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fd_io(&self->op, &self->fd, BLZ_FD_READ, try_read, self));
    BLZ_END(self->rc < 0 ? self->rc : self->calls * 100 + self->rc);
}

static void read_by_calls(blz_rt *rt)
{
    blz_fd handle, stale;
    blz_handle task;
    int fds[2];

    make_pipe(fds);
    handle = stale = attach(rt, fds[0]);
    put(fds[1]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_int_equal(result_of(rt, &task), 101);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_waits(rt, &task);
    put(fds[1]);
    assert_int_equal(result_of(rt, &task), 201);

    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_waits(rt, &task);
    blz_handle_cancel(&task);
    assert_int_equal(result_of(rt, &task), -ECANCELED);

    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_waits(rt, &task);
    assert_int_equal(blz_fd_detach(&handle), 0);
    assert_int_equal(result_of(rt, &task), -ECANCELED);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = stale, .number = fds[0]), 0);
    assert_int_equal(result_of(rt, &task), -EBADF);

    handle = attach(rt, fds[0]);
    close(fds[1]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_int_equal(result_of(rt, &task), 100); /* the end */
    assert_int_equal(blz_fd_detach(&handle), 0);
    close(fds[0]);
}
ON_ALL(a_call_is_repeated_until_it_does_not_block, read_by_calls)

/* A function that says -EAGAIN although there is something: others have their turn all the same. */
static int64_t never_satisfied(void *arg)
{
    int *left = arg;
    return (*left)-- > 0 ? -EAGAIN : 0;
}

struct insists {
    BLZ_FRAME;
    blz_fd fd;
    int left;
    int64_t rc;
    blz_fd_op op;
};

BLZ_ASYNC(insists)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fd_io(&self->op, &self->fd, BLZ_FD_READ, never_satisfied, &self->left));
    BLZ_END(self->rc);
}

static void call_often(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    blz_stats stats;
    int fds[2];

    make_pipe(fds);
    put(fds[1]);
    handle = attach(rt, fds[0]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, insists, .fd = handle, .left = 1000), 0);
    assert_int_equal(result_of(rt, &task), 0);
    blz_rt_stats(rt, &stats);
    assert_true(stats.total.polls > 5);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(repeated_calls_let_others_run, call_often)

/* ---- several workers ---- */

enum { NR_STORM = 64 };

/* Waits for its pipe, again and again, with limits that pass now and then. */
struct storm {
    BLZ_FRAME;
    blz_fd fd;
    int number, rounds;
    uint64_t seed;
    int64_t rc;
    blz_io io;
    blz_timeout limit;
};

BLZ_ASYNC(storm)
{
    BLZ_BEGIN;
    while (self->rounds > 0) {
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, random_below(&self->seed, 3) * BLZ_MSEC,
                                             blz_fd_readable(&self->io, &self->fd)));
        if (self->rc == -ECANCELED || self->rc == -EBADF)
            break; /* detached */
        check(self->rc == -ETIMEDOUT || self->rc == BLZ_FD_READ);
        char byte;
        if (self->rc == BLZ_FD_READ && read(self->number, &byte, 1) == 1)
            self->rounds--;
    }
    BLZ_END(0);
}

static void storm_on(const char *backend)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 4, .backend = backend});
    blz_handle tasks[NR_STORM][3];
    blz_fd handles[NR_STORM];
    int fds[NR_STORM][2], own[NR_STORM], rounds = (int)scaled(200);

    for (int i = 0; i < NR_STORM; i++) {
        make_pipe(fds[i]);
        handles[i] = attach(rt, fds[i][0]);
        own[i] = dup(fds[i][0]); /* what the tasks read from, until they end */
        for (int j = 0; j < 3; j++)
            check(BLZ_SPAWN_ON(rt, &tasks[i][j], storm, .fd = handles[i], .number = own[i],
                               .rounds = rounds, .seed = (uint64_t)(3 * i + j)) == 0);
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < NR_STORM; i++)
            check(write(fds[i][1], "xy", 2) == 2);
    for (int i = 0; i < NR_STORM; i++) {
        check(blz_fd_detach(&handles[i]) == 0); /* from a thread that is no worker */
        close(fds[i][0]);
    }
    for (int i = 0; i < NR_STORM; i++) {
        for (int j = 0; j < 3; j++)
            check(blz_handle_wait(&tasks[i][j]) == 0 && tasks[i][j].result == 0);
        close(own[i]);
        close(fds[i][1]);
    }
    free_rt(rt);
}

static void waits_cancels_and_detaches_may_race(void **state)
{
    (void)state;
    allow_seconds(120);
    for (int i = 0; i < NR_BACKENDS; i++)
        storm_on(backends[i]);
}

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
        TEST(a_wait_can_be_cancelled_and_the_next_one_works),
        TEST(detaching_ends_all_waits),
        TEST(once_detached_a_descriptor_can_be_closed_to_effect),
        TEST(stale_handles_and_closed_descriptors_are_refused),
        TEST(a_number_that_is_reused_at_once_brings_no_old_news),
        TEST(a_wait_that_ends_late_does_not_harm_the_next_owner_of_the_number),
        TEST(a_descriptor_is_left_as_it_was),
        TEST(a_call_is_repeated_until_it_does_not_block),
        TEST(repeated_calls_let_others_run),
        TEST(waits_cancels_and_detaches_may_race),
    };
    return RUN_TESTS(tests);
}
