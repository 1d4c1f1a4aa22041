/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign descriptors: waits that are cancelled, descriptors that are detached, and numbers that
 * come to mean something else. On every backend.
 */
#include "fd_waits.h"

enum { NR_WAITS = 20 };

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
        assert_int_equal(result_of(rt, &tasks[i]), -EBADF);
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
    assert_int_equal(result_of(rt, &waiter), -EBADF);
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
    assert_int_equal(blz_fd_attach_to(&handle, fds[0], rt), -EBADF);
    assert_int_equal(blz_fd_attach_to(&handle, -1, rt), -EBADF);
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
        assert_int_equal(result_of(rt, &old), -EBADF);
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
    check(blz_is_pending(blz_poll_branch(blz_fd_readable(&self->io, &self->fd), cx)));
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->gate));
    check(blz_is_ready(blz_poll_branch(&self->io.future, cx)));
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
    assert_int_equal(result_of(rt, &old), -EBADF);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_can_be_cancelled_and_the_next_one_works),
        TEST(detaching_ends_all_waits),
        TEST(once_detached_a_descriptor_can_be_closed_to_effect),
        TEST(stale_handles_and_closed_descriptors_are_refused),
        TEST(a_number_that_is_reused_at_once_brings_no_old_news),
        TEST(a_wait_that_ends_late_does_not_harm_the_next_owner_of_the_number),
        TEST(a_descriptor_is_left_as_it_was),
    };
    return RUN_TESTS(tests);
}
