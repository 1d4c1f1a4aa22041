/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait for foreign descriptors, on every backend. */
#ifndef FD_WAITS_H
#define FD_WAITS_H

#include "harness.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};
enum { NR_BACKENDS = sizeof backends / sizeof *backends };

/* Everything happens in blz_rt_turn, on this thread. */
static inline blz_rt *new_backend_rt(const char *backend)
{
    return new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .backend = backend});
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
                                             blz_fd_ready(&self->io, &self->fd, self->events)));
    else
        BLZ_AWAIT(self->rc, blz_fd_ready(&self->io, &self->fd, self->events));
    BLZ_END(self->rc);
}

static inline void spawn_wait(blz_rt *rt, blz_handle *handle, blz_fd fd, unsigned events)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, waits, .fd = fd, .events = events), 0);
}

/* It goes on waiting, whatever there is to do. */
static inline void assert_waits(blz_rt *rt, blz_handle *handle)
{
    for (int i = 0; i < 3; i++)
        turn_all(rt);
    assert_false(blz_handle_done(handle));
}

static inline int64_t result_of(blz_rt *rt, blz_handle *handle)
{
    while (!blz_handle_done(handle))
        check(blz_rt_turn(rt) >= 0);
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static inline blz_fd attach(blz_rt *rt, int fd)
{
    blz_fd handle;

    assert_int_equal(blz_fd_attach_to(&handle, fd, rt), 0);
    return handle;
}

static inline void put(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static inline void take(int fd)
{
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
}

/* ---- pairs of descriptors ---- */

static inline void make_pipe(int fds[2])
{
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
}

static inline void make_sockets(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
}

static inline void close_both(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static inline void make_tcp(int fds[2])
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
static inline size_t fill(int fd)
{
    static const char zeros[65536];
    size_t all = 0;

    for (ssize_t n; (n = send(fd, zeros, sizeof zeros, MSG_DONTWAIT)) > 0;)
        all += (size_t)n;
    return all;
}

static inline size_t drain(int fd)
{
    static char buf[65536];
    size_t all = 0;

    for (ssize_t n; (n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0;)
        all += (size_t)n;
    return all;
}

#endif
