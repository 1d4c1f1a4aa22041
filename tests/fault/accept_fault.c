/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system says no to an accept. Trouble of one connection is passed over; when something has run
 * out it pauses, on a virtual clock, and goes on. Only with backends that call accept4 themselves.
 * And no to IPv6.
 */
#include "harness.h"

#include "faulty.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const backends[] = {"epoll", "poll"};

struct accepts {
    BLZ_FRAME;
    blz_tcp_listener *ln;
    blz_tcp conn;
    blz_io io;
    int64_t rc, began;
};

/* Gives how long it took, in virtual nanoseconds; or the error. */
BLZ_ASYNC(accepts)
{
    BLZ_BEGIN;
    self->began = blz_now();
    BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, self->ln, &self->conn));
    if (self->rc == 0) {
        check(blz_tcp_close(&self->conn) == 0);
        self->rc = blz_now() - self->began;
    }
    BLZ_END(self->rc);
}

static int dial(const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, sa, len) == 0);
    return fd;
}

/* Accepts one connection although the first `times` calls fail. */
static int64_t accept_in_spite_of(const char *backend, int error, int times)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = backend, .test_clock = true, .workers = 1});
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_tcp_listener ln;
    blz_handle handle;
    int client;

    assert_int_equal(blz_tcp_listen_with(&ln, &addr, &(blz_tcp_listen_options){.rt = rt}), 0);
    assert_int_equal(blz_tcp_listener_addr(&ln, &addr), 0);
    client = dial(&addr);
    int64_t took = 0;
    for (int i = 0; i < times; i++) {
        fail_call(FAULTY_SOCKET_ACCEPT, 1, false, error);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, accepts, .ln = &ln), 0);
        assert_int_equal(blz_handle_wait(&handle), 0);
        assert_true(stop_failing(FAULTY_SOCKET_ACCEPT));
        took = handle.result;
        close(client);
        if (took < 0)
            break;
        client = dial(&addr);
    }
    close(client);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
    return took;
}

static void trouble_of_one_connection_is_passed_over(void **state)
{
    static const int errors[] = {ECONNABORTED, EPROTO, ENETDOWN,     ENOPROTOOPT,
                                 EHOSTDOWN,    ENONET, EHOSTUNREACH, ENETUNREACH};

    (void)state;
    for (int b = 0; b < 2; b++)
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
            assert_int_equal(accept_in_spite_of(backends[b], errors[i], 2), 0);
}

static void when_something_has_run_out_it_pauses(void **state)
{
    static const int errors[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};

    (void)state;
    for (int b = 0; b < 2; b++)
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
            int64_t took = accept_in_spite_of(backends[b], errors[i], 2);
            assert_true(took >= 10 * BLZ_MSEC && took <= 12 * BLZ_MSEC);
        }
}

static void other_errors_are_the_programs(void **state)
{
    (void)state;
    for (int b = 0; b < 2; b++) {
        assert_int_equal(accept_in_spite_of(backends[b], EINVAL, 1), -EINVAL);
        assert_int_equal(accept_in_spite_of(backends[b], ENOTSUP, 1), -ENOTSUP);
    }
}

/* ---- listening ---- */

struct listens {
    BLZ_FRAME;
    const char *address;
    blz_tcp_listener ln;
    blz_addr addr;
};

/* Gives the family that it came to. */
BLZ_ASYNC(listens)
{
    BLZ_BEGIN;
    int rc = blz_tcp_listen(&self->ln, self->address);
    if (rc == 0) {
        check(blz_tcp_listener_addr(&self->ln, &self->addr) == 0);
        check(blz_tcp_listener_close(&self->ln) == 0);
    }
    BLZ_END(rc < 0 ? rc : blz_addr_family(&self->addr));
}

static int64_t listen_without_v6(enum faulty call, int error, const char *address)
{
    fail_call(call, 1, false, error);
    int64_t rc = BLZ_RUN_WITH((&(blz_options){.workers = 1}), listens, .address = address);
    assert_true(stop_failing(call));
    return rc;
}

static void where_there_is_no_ipv6_everywhere_means_ipv4(void **state)
{
    (void)state;
    assert_int_equal(listen_without_v6(FAULTY_SOCKET_OPEN, EAFNOSUPPORT, ":0"), BLZ_ADDR_V4);
    assert_int_equal(listen_without_v6(FAULTY_SOCKET_BIND, EADDRNOTAVAIL, ":0"), BLZ_ADDR_V4);
    assert_int_equal(listen_without_v6(FAULTY_SOCKET_OPEN, EAFNOSUPPORT, "[::]:0"), -EAFNOSUPPORT);
    assert_int_equal(listen_without_v6(FAULTY_SOCKET_BIND, EACCES, ":0"), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(trouble_of_one_connection_is_passed_over),
        TEST(when_something_has_run_out_it_pauses),
        TEST(other_errors_are_the_programs),
        TEST(where_there_is_no_ipv6_everywhere_means_ipv4),
    };
    return RUN_TESTS(tests);
}
