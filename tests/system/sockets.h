/* SPDX-License-Identifier: Apache-2.0 */
/* What the conformance tests of sockets share: sockets to ask, and waiting for what they report. */
#ifndef BLZ_TESTS_SYSTEM_SOCKETS_H
#define BLZ_TESTS_SYSTEM_SOCKETS_H

#include "conform.h"

#include "system/handle.h"
#include "system/socket.h"
#include "system/thread.h"

#include <blitz/fd.h>
#include <blitz/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a socket in non-blocking mode. */
static inline blz_sysfd open_socket(int family, enum blz__socket_type type)
{
    int64_t fd = blz__socket_open(family, type, true);

    assert_true(fd >= 0);
    return (blz_sysfd)fd;
}

/* Waits until one of the events is true. */
static inline unsigned await_events(blz_sysfd fd, unsigned events)
{
    int found;

    while ((found = blz__socket_events(fd, events)) == 0)
        blz__thread_yield();
    assert_true(found > 0);
    return (unsigned)found;
}

/* Makes a socket at a loopback address; *addr is where. */
static inline blz_sysfd open_bound(int family, enum blz__socket_type type, blz_addr *addr)
{
    blz_sysfd fd = open_socket(family, type);

    *addr = blz_addr_loopback(family, 0);
    assert_int_equal(blz__socket_bind(fd, addr), 0);
    assert_int_equal(blz__socket_local_addr(fd, addr), 0);
    return fd;
}

static inline blz_sysfd open_listener(blz_addr *addr)
{
    blz_sysfd fd = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_STREAM, addr);

    assert_int_equal(blz__socket_listen(fd, 16), 0);
    return fd;
}

static inline blz_sysfd accept_one(blz_sysfd listener)
{
    int64_t fd;

    await_events(listener, BLZ_FD_READ);
    fd = blz__socket_accept(listener, true);
    assert_true(fd >= 0);
    return (blz_sysfd)fd;
}

/* Connects a socket, and waits until that has succeeded. */
static inline void connect_to(blz_sysfd fd, const blz_addr *addr)
{
    int rc = blz__socket_connect(fd, addr);

    if (rc == -EINPROGRESS) {
        await_events(fd, BLZ_FD_WRITE);
        rc = blz__socket_connect_result(fd);
    }
    assert_int_equal(rc, 0);
}

/* Two ends of a TCP connection. */
static inline void tcp_pair(blz_sysfd ends[2])
{
    blz_addr addr;
    blz_sysfd listener = open_listener(&addr);

    ends[0] = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);
    connect_to(ends[0], &addr);
    ends[1] = accept_one(listener);
    blz__handle_close(listener);
}

static inline void close_both(const blz_sysfd ends[2])
{
    blz__handle_close(ends[0]);
    blz__handle_close(ends[1]);
}

/* Fills a socket until there is no room. */
static inline void fill_socket(blz_sysfd fd)
{
    static const char bytes[1 << 16];
    int64_t n;

    while ((n = blz__socket_send(fd, bytes, sizeof bytes)) > 0)
        ;
    assert_int_equal(n, -EAGAIN);
}

#endif
