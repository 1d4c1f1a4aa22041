/* SPDX-License-Identifier: Apache-2.0 */
/* Socket options: what is set is what one gets; what is out of range is refused. */
#include "net_probe.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

/* A TCP socket that is not connected, taken over. */
static blz_tcp open_tcp(blz_rt *rt, int family, int *fd)
{
    blz_tcp conn;

    *fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(*fd >= 0);
    check(blz_tcp_from_fd(&conn, *fd, rt) == 0);
    return conn;
}

struct range {
    blz_opt option;
    int64_t low, high; /* both are taken */
    int64_t unit;
};

static const struct range ranges[] = {
    {BLZ_OPT_NODELAY, 0, 1, 1},
    {BLZ_OPT_KEEPALIVE, 0, 1, 1},
    {BLZ_OPT_KEEPALIVE_IDLE, 1, 32767, BLZ_SEC},
    {BLZ_OPT_KEEPALIVE_INTERVAL, 1, 32767, BLZ_SEC},
    {BLZ_OPT_KEEPALIVE_COUNT, 1, 127, 1},
    {BLZ_OPT_USER_TIMEOUT, 0, INT32_MAX, BLZ_MSEC},
    {BLZ_OPT_LINGER, -1, 0, 1},
    {BLZ_OPT_REUSE_ADDR, 0, 1, 1},
    {BLZ_OPT_REUSE_PORT, 0, 1, 1},
    {BLZ_OPT_TTL, 1, 255, 1},
};

static void check_range(const blz_tcp *conn, const struct range *r)
{
    int64_t got;

    assert_int_equal(blz_tcp_set(conn, r->option, r->low * r->unit), 0);
    assert_int_equal(blz_tcp_get(conn, r->option, &got), 0);
    assert_int_equal(got, r->low < 0 ? r->low : r->low * r->unit);
    assert_int_equal(blz_tcp_set(conn, r->option, r->high * r->unit), 0);
    assert_int_equal(blz_tcp_get(conn, r->option, &got), 0);
    assert_int_equal(got, r->high * r->unit);
    assert_int_equal(blz_tcp_set(conn, r->option, (r->low - 1) * r->unit - (r->low < 1)), -EINVAL);
    assert_int_equal(blz_tcp_set(conn, r->option, r->high * r->unit + 1), -EINVAL);
    assert_int_equal(blz_tcp_set(conn, r->option, INT64_MAX), -EINVAL);
    assert_int_equal(blz_tcp_set(conn, r->option, INT64_MIN), -EINVAL);
    assert_int_equal(blz_tcp_get(conn, r->option, &got), 0);
    assert_int_equal(got, r->high * r->unit); /* unchanged */
}

static void what_is_set_is_what_one_gets_and_what_is_out_of_range_is_refused(void **state)
{
    static const int families[] = {AF_INET, AF_INET6};
    blz_rt *rt = turning_rt("poll");

    (void)state;
    for (int f = 0; f < 2; f++) {
        int fd;
        blz_tcp conn = open_tcp(rt, families[f], &fd);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
            check_range(&conn, &ranges[i]);
        assert_int_equal(blz_tcp_close(&conn), 0);
    }
    free_rt(rt);
}

static void times_are_rounded_up(void **state)
{
    blz_rt *rt = turning_rt("poll");
    int fd;
    blz_tcp conn = open_tcp(rt, AF_INET, &fd);
    int64_t got;

    (void)state;
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_KEEPALIVE_IDLE, 1), 0);
    assert_int_equal(blz_tcp_get(&conn, BLZ_OPT_KEEPALIVE_IDLE, &got), 0);
    assert_int_equal(got, BLZ_SEC);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_KEEPALIVE_IDLE, 2 * BLZ_SEC + 1), 0);
    assert_int_equal(blz_tcp_get(&conn, BLZ_OPT_KEEPALIVE_IDLE, &got), 0);
    assert_int_equal(got, 3 * BLZ_SEC);
    assert_int_equal(blz_tcp_close(&conn), 0);
    free_rt(rt);
}

static void the_system_sees_the_same(void **state)
{
    blz_rt *rt = turning_rt("poll");
    int fd, value;
    socklen_t len = sizeof value;
    blz_tcp conn = open_tcp(rt, AF_INET6, &fd);
    int64_t size;

    (void)state;
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_TRAFFIC_CLASS, 0x48), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, &len), 0);
    assert_int_equal(value, 0x48);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_TTL, 17), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, &len), 0);
    assert_int_equal(value, 17);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_V6_ONLY, 1), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, &len), 0);
    assert_int_equal(value, 1);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_SEND_BUFFER, 20000), 0);
    assert_int_equal(blz_tcp_get(&conn, BLZ_OPT_SEND_BUFFER, &size), 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len), 0);
    assert_int_equal(value, size);
    assert_true(size >= 20000);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_RECV_BUFFER, 0), -EINVAL);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_QUICKACK, 1), 0);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_FAST_OPEN_CONNECT, 1), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &value, &len), 0);
    assert_int_equal(value, 1);
    assert_int_equal(blz_tcp_close(&conn), 0);
    free_rt(rt);
}

static void options_that_are_none_are_refused(void **state)
{
    blz_rt *rt = turning_rt("poll");
    int fd;
    blz_tcp conn = open_tcp(rt, AF_INET, &fd), copy = conn;
    int64_t value = 7;

    (void)state;
    assert_int_equal(blz_tcp_set(&conn, (blz_opt)0, 1), -EINVAL);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_NR_, 1), -EINVAL);
    assert_int_equal(blz_tcp_get(&conn, (blz_opt)1000, &value), -EINVAL);
    assert_int_equal(blz_tcp_set(&conn, BLZ_OPT_ERROR, 0), -EINVAL);
    assert_int_equal(blz_tcp_get(&conn, BLZ_OPT_ERROR, &value), 0);
    assert_int_equal(value, 0);
    assert_true(blz_tcp_set(&conn, BLZ_OPT_GRO, 1) < 0); /* not for TCP */
    assert_int_equal(blz_tcp_close(&conn), 0);
    assert_int_equal(blz_tcp_set(&copy, BLZ_OPT_NODELAY, 1), -EBADF);
    assert_int_equal(blz_tcp_get(&copy, BLZ_OPT_NODELAY, &value), -EBADF);
    free_rt(rt);
}

static void a_connection_is_bound_to_an_interface(void **state)
{
    blz_rt *rt = turning_rt("poll");
    int fd;
    blz_tcp conn = open_tcp(rt, AF_INET, &fd);
    char device[BLZ_DEVICE_NAME] = "x";

    (void)state;
    assert_int_equal(blz_tcp_get_device(&conn, device), 0);
    assert_string_equal(device, "");
    assert_int_equal(blz_tcp_set_device(&conn, "a-name-that-is-too-long"), -ENAMETOOLONG);
    assert_int_equal(blz_tcp_set_device(&conn, "nosuchif"), -ENODEV);
    assert_int_equal(blz_tcp_set_device(&conn, "lo"), 0);
    assert_int_equal(blz_tcp_get_device(&conn, device), 0);
    assert_string_equal(device, "lo");
    assert_int_equal(blz_tcp_close(&conn), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_set_is_what_one_gets_and_what_is_out_of_range_is_refused),
        TEST(times_are_rounded_up),
        TEST(the_system_sees_the_same),
        TEST(options_that_are_none_are_refused),
        TEST(a_connection_is_bound_to_an_interface),
    };
    return RUN_TESTS(tests);
}
