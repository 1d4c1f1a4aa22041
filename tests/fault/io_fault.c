/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the system and every allocation that I/O needs fails in turn, while a server and a
 * client talk. The error comes out at one of the two, or is made up for; either way both end, all
 * is given back, and the next talk in the same runtime succeeds.
 */
#include "io_fixture.h"

#include "faulty.h"

#include <blitz/tcp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the talk ---- */

struct client {
    BLZ_FRAME;
    blz_addr addr;
    blz_tcp_listener listener; /* a copy: closed if we do not get through */
    int64_t rc;
    blz_tcp conn;
    blz_buf lease;
    blz_iovec iov[2];
    blz_io io;
};

BLZ_ASYNC(client)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_connect_with(&self->io, &self->conn, &self->addr, NULL));
    if (self->rc < 0) {
        blz_tcp_listener_close(&self->listener);
        goto out;
    }
    self->iov[0] = (blz_iovec){(char *)(uintptr_t) "hel", 3};
    self->iov[1] = (blz_iovec){(char *)(uintptr_t) "lo", 2};
    BLZ_AWAIT(self->rc, blz_tcp_writev(&self->io, &self->conn, self->iov, 2));
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, blz_tcp_read_lease(&self->io, &self->conn, &self->lease));
    if (self->rc == 5)
        check(memcmp(self->lease.data, "hello", 5) == 0);
    else if (self->rc >= 0)
        self->rc = -ENODATA;
    blz_buf_release(&self->lease);
out:
    blz_tcp_close(&self->conn);
    BLZ_END(self->rc < 0 ? self->rc : 0);
}

struct server {
    BLZ_FRAME;
    blz_tcp_listener listener;
    blz_addr addr;
    blz_handle client;
    blz_handle_join_op join;
    blz_tcp conn;
    blz_timeout limit;
    blz_io io;
    char buf[8];
    blz_iovec iov;
    int64_t rc, theirs;
    int error; /* that was made: who has seen it decides */
};

static bool is_listening(struct server *self)
{
    self->rc = blz_tcp_listen(&self->listener, "127.0.0.1:0");
    if (self->rc == 0)
        self->rc = blz_tcp_listener_addr(&self->listener, &self->addr);
    if (self->rc == 0)
        self->rc =
            BLZ_SPAWN_JOIN(&self->client, client, .addr = self->addr, .listener = self->listener);
    return self->rc == 0;
}

BLZ_ASYNC(server)
{
    BLZ_BEGIN;
    if (!is_listening(self))
        goto out;
    BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, &self->listener, &self->conn));
    if (self->rc < 0)
        goto out_client;
    BLZ_AWAIT(self->rc, blz_tcp_peek(&self->io, &self->conn, self->buf, 5));
    if (self->rc < 0)
        goto out_client;
    BLZ_AWAIT(self->rc, blz_tcp_read_exact(&self->io, &self->conn, self->buf, 3));
    if (self->rc < 0)
        goto out_client;
    self->iov = (blz_iovec){self->buf + 3, 2};
    BLZ_AWAIT(self->rc, blz_tcp_readv(&self->io, &self->conn, &self->iov, 1));
    if (self->rc < 0)
        goto out_client;
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_MSEC,
                                         blz_tcp_read(&self->io, &self->conn, self->buf + 5, 1)));
    if (self->rc != -ETIMEDOUT)
        goto out_client;
    BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, self->buf, 5));
    if (self->rc == 5)
        self->rc = 0;
out_client:
    if (self->rc < 0)
        blz_handle_cancel(&self->client);
    BLZ_AWAIT(self->theirs, blz_handle_join(&self->join, &self->client));
    check(self->theirs == 0);
    self->theirs = self->client.result;
    if (self->theirs == -self->error || self->rc == 0)
        self->rc = self->theirs;
out:
    blz_tcp_close(&self->conn);
    blz_tcp_listener_close(&self->listener);
    BLZ_END(self->rc);
}

static int64_t talk(blz_rt *rt, int error)
{
    return BLZ_BLOCK_ON(rt, server, .error = error);
}

/* ---- calls ---- */

/* MAY_BE_TOLD: an accept waits until there are descriptors again; some calls only clean up. */
enum { IS_TOLD, IS_MADE_UP_FOR, MAY_BE_TOLD };

struct fault {
    enum faulty call;
    int error, outcome;
};

static const struct fault everywhere[] = {
    {FAULTY_SOCKET_OPEN, EMFILE, IS_TOLD},
    {FAULTY_SOCKET_OPEN, ENOBUFS, IS_TOLD},
    {FAULTY_SOCKET_BIND, EADDRINUSE, IS_TOLD},
    {FAULTY_SOCKET_LISTEN, EADDRINUSE, IS_TOLD},
    {FAULTY_SOCKET_SEND, ECONNRESET, IS_TOLD},
    {FAULTY_SOCKET_SEND, ENOBUFS, IS_TOLD},
    {FAULTY_MESSAGE_SEND_PIECES, EPIPE, IS_TOLD},
    {KERNEL_SENDMSG, EINTR, IS_MADE_UP_FOR},
    {FAULTY_MESSAGE_RECV_PIECES, ECONNRESET, IS_TOLD},
    {KERNEL_RECVMSG, EINTR, IS_MADE_UP_FOR},
    {FAULTY_SOCKET_RECV, ENOMEM, IS_TOLD},
    {KERNEL_EVENTFD, EMFILE, MAY_BE_TOLD},
};

static const struct fault of_epoll[] = {
    {KERNEL_EPOLL_CREATE1, EMFILE, MAY_BE_TOLD},  {KERNEL_EPOLL_CTL, ENOSPC, MAY_BE_TOLD},
    {KERNEL_EPOLL_PWAIT2, EINTR, IS_MADE_UP_FOR}, {KERNEL_EPOLL_PWAIT2, ENOSYS, IS_MADE_UP_FOR},
    {KERNEL_EPOLL_PWAIT2, EPERM, IS_MADE_UP_FOR},
};

static const struct fault of_readiness[] = {
    {FAULTY_SOCKET_ACCEPT, ENFILE, MAY_BE_TOLD},   {KERNEL_ACCEPT4, EINTR, IS_MADE_UP_FOR},
    {FAULTY_SOCKET_CONNECT, ENETUNREACH, IS_TOLD}, {KERNEL_PPOLL, EINTR, IS_MADE_UP_FOR},
    {KERNEL_PPOLL, ENOMEM, IS_MADE_UP_FOR},        {KERNEL_PPOLL, EINVAL, IS_MADE_UP_FOR},
    {KERNEL_PPOLL, EPERM, IS_MADE_UP_FOR},
};

static const struct fault of_ring[] = {
    {KERNEL_IO_URING_QUEUE_INIT_PARAMS, ENFILE, MAY_BE_TOLD},
    {KERNEL_IO_URING_QUEUE_INIT_PARAMS, ENOMEM,
     IS_MADE_UP_FOR}, /* what was locked before is given back late */
    {KERNEL_IO_URING_SUBMIT, EBUSY, IS_MADE_UP_FOR},
    {KERNEL_IO_URING_SUBMIT, EAGAIN, IS_MADE_UP_FOR},
    {KERNEL_IO_URING_SUBMIT_AND_WAIT, EINTR, IS_MADE_UP_FOR},
    {KERNEL_IO_URING_SUBMIT_AND_GET_EVENTS, EBUSY, IS_MADE_UP_FOR},
    {KERNEL_IO_URING_SUBMIT_AND_GET_EVENTS, EINTR, IS_MADE_UP_FOR},
    {KERNEL_IO_URING_REGISTER_EVENTFD, ENOMEM, IS_MADE_UP_FOR},
    {KERNEL_IO_URING_REGISTER_RING_FD, EINVAL, IS_MADE_UP_FOR},
};

enum { MOST = 200 };

/* The nth call fails, for every n. */
static void fail_in_turn(const struct io_config *config, const struct fault *fault, unsigned max)
{
    bool failed = true;

    for (int n = 1; failed; n++) {
        blz_options options = config->options;
        blz_rt *rt;
        int64_t rc;
        options.watchdog_ns = BLZ_NEVER;
        options.max_io_completions = max;
        assert_true(n < MOST);
        fail_call(fault->call, n, false, fault->error);
        rt = new_rt(&options);
        rc = talk(rt, fault->error);
        failed = stop_failing(fault->call);
        if (getenv("TEST_VERBOSE"))
            fprintf(stderr, "%s: call %d, error %d, number %d: %lld\n", config->label,
                    (int)fault->call, fault->error, n, (long long)rc);
        if (!failed || fault->outcome == IS_MADE_UP_FOR)
            assert_int_equal(rc, 0);
        else if (rc != 0 || fault->outcome == IS_TOLD)
            assert_int_equal(rc, -fault->error);
        assert_int_equal(talk(rt, 0), 0);
        free_rt(rt);
    }
}

static void fail_all(const struct io_config *config, const struct fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fail_in_turn(config, &faults[i], 0);
}

#define COUNT(faults) (sizeof(faults) / sizeof *(faults))

/* With one worker, so that the nth call is always the same. */
static bool is_used(const struct io_config *config)
{
    blz_rt *rt = config->options.workers == 1 ? io_rt(config) : NULL;

    if (rt)
        free_rt(rt);
    return rt;
}

static void every_call_fails_in_turn(void **state)
{
    (void)state;
    allow_seconds(200);
    for (int i = 0; i < nr_io_configs; i++) {
        if (!is_used(&io_configs[i]))
            continue;
        fail_all(&io_configs[i], everywhere, COUNT(everywhere));
        fail_all(&io_configs[i], of_epoll, COUNT(of_epoll));
        if (strcmp(io_configs[i].options.backend, "io_uring") == 0)
            fail_all(&io_configs[i], of_ring, COUNT(of_ring));
        else
            fail_all(&io_configs[i], of_readiness, COUNT(of_readiness));
    }
}

/* So small a ring is full all the time. */
static void a_ring_without_room_takes_it_later(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++)
        if (strcmp(io_configs[i].options.backend, "io_uring") == 0 && is_used(&io_configs[i]))
            for (size_t f = 0; f < COUNT(of_ring); f++)
                if (of_ring[f].outcome == IS_MADE_UP_FOR)
                    fail_in_turn(&io_configs[i], &of_ring[f], 1);
}

enum { MANY = 16 };

/*
 * So many are asked to end, and there is room for one request. False: there always was room. The
 * ring carries out operations of files, and waits if the file is a pipe.
 */
static bool many_are_cancelled(blz_rt *rt, bool data_comes_first)
{
    blz_handle tasks[MANY];
    bool was_full;
    struct pair pairs[MANY];

    for (int i = 0; i < MANY; i++) {
        open_pair(&pairs[i], rt, PAIR_PIPE_IN);
        assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[i], does_io, .kind = IO_FILE_READ,
                                      .ref = pairs[i].ours),
                         0);
        turn_all(rt);
    }
    fail_call(KERNEL_IO_URING_SUBMIT, 1, true, EBUSY);
    for (int i = 0; i < MANY; i++) {
        if (data_comes_first)
            assert_int_equal(write(pairs[i].far, "x", 1), 1);
        blz_handle_cancel(&tasks[i]);
    }
    for (int i = 0; i < MANY; i++)
        while (!blz_handle_done(&tasks[i]))
            assert_true(blz_rt_turn(rt) >= 0);
    was_full = stop_failing(KERNEL_IO_URING_SUBMIT);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(blz_handle_wait(&tasks[i]), 0);
        assert_true(tasks[i].result == -ECANCELED || (data_comes_first && tasks[i].result == 1));
        close_pair(&pairs[i]);
    }
    return was_full;
}

static void a_request_to_end_waits_for_room(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++) {
        blz_options options = io_configs[i].options;
        if (strcmp(options.backend, "io_uring") != 0 || !is_used(&io_configs[i]))
            continue;
        options.embedded = true;
        options.max_io_completions = 1;
        options.event_interval = 1000;
        for (int data = 0; data < 2; data++) {
            bool was_full = false;
            for (int tries = 0; tries < 100 && !was_full; tries++) {
                blz_rt *rt = new_rt(&options);
                was_full = many_are_cancelled(rt, data);
                free_rt(rt);
            }
            assert_true(was_full);
        }
    }
}

/* ---- memory ---- */

static void every_allocation_fails_in_turn(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++) {
        bool failed = is_used(&io_configs[i]);
        for (int64_t n = 1; failed; n++) {
            blz_options options = io_configs[i].options;
            blz_rt *rt = NULL;
            int64_t rc;
            options.watchdog_ns = BLZ_NEVER;
            options.allocator = test_memory();
            memory_fail_at(the_memory(), n, false);
            rc = blz_rt_new(&rt, &options);
            if (rt)
                watch_rt(rt);
            if (rc == 0)
                rc = talk(rt, ENOMEM);
            failed = the_memory()->failed;
            memory_fail_at(the_memory(), 0, false);
            assert_true(rc == 0 || (failed && (rc == -ENOMEM || rc == -ENOBUFS)));
            if (!rt)
                continue;
            assert_int_equal(talk(rt, 0), 0);
            free_rt(rt);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_call_fails_in_turn),
        TEST(a_ring_without_room_takes_it_later),
        TEST(a_request_to_end_waits_for_room),
        TEST(every_allocation_fails_in_turn),
    };
    return RUN_TESTS(tests);
}
