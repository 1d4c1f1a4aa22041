/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of sockets and pipes: each runs once with every backend that works here.
 *
 *     ON_EACH_BACKEND(a_read_gives_what_was_written)
 *     {
 *         blz_rt *rt = turning_rt(backend);
 *         ...
 *         assert_int_equal(AWAIT(rt, blz_tcp_read(&io, &conn, buf, sizeof buf)), 5);
 *         free_rt(rt);
 *     }
 *
 * With an embedded runtime the test's own thread is the worker: START lets an operation run as far
 * as it can get, so that it is in flight for certain when START returns; FINISH waits for its end.
 */
#ifndef BLZ_TESTS_NET_PROBE_H
#define BLZ_TESTS_NET_PROBE_H

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};

static inline bool backend_works(const char *backend)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = backend, .workers = 1});
    bool works = strcmp(blz_rt_backend(rt), backend) == 0;

    free_rt(rt);
    return works;
}

#define ON_EACH_BACKEND(name)                                           \
    static void name##_on(const char *backend);                         \
    static void name(void **state)                                      \
    {                                                                   \
        (void)state;                                                    \
        for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) \
            if (backend_works(backends[i]))                             \
                name##_on(backends[i]);                                 \
    }                                                                   \
    static void name##_on(const char *backend)

/* ---- operations of an embedded runtime ---- */

struct awaits {
    BLZ_FRAME;
    blz_future *op;
    int64_t rc;
};

BLZ_ASYNC(awaits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, self->op);
    BLZ_END(self->rc);
}

static inline blz_rt *turning_rt(const char *backend)
{
    return new_rt(&(blz_options){.backend = backend, .embedded = true, .watchdog_ns = BLZ_NEVER});
}

static inline void START(blz_rt *rt, blz_handle *handle, blz_future *op)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, awaits, .op = op), 0);
    turn_all(rt);
}

static inline int64_t FINISH(blz_rt *rt, blz_handle *handle)
{
    while (!blz_handle_done(handle)) {
        assert_true(blz_rt_turn(rt) >= 0);
        sched_yield();
    }
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static inline int64_t AWAIT(blz_rt *rt, blz_future *op)
{
    blz_handle handle;

    START(rt, &handle, op);
    return FINISH(rt, &handle);
}

/* Cancels it and waits for its end. */
static inline int64_t CANCEL(blz_rt *rt, blz_handle *handle)
{
    assert_false(blz_handle_done(handle));
    blz_handle_cancel(handle);
    return FINISH(rt, handle);
}

/* ---- the system's side ---- */

/* Writes all of it, with calls that may wait. */
static inline void put(int fd, const void *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, (const char *)data + at, len - at);
        check(n > 0);
        at += (size_t)n;
    }
}

static inline bool becomes_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, PATIENCE_MS) == 1;
}

#endif
