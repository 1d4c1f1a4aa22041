/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/option.h. */
#include "sockets.h"

#include "system/option.h"

/* What an option takes, and a socket to try it on. */
struct row {
    int option;
    int family;
    enum blz__socket_type type;
    int64_t low, high;    /* the range */
    int64_t value, found; /* what is set, and what is got then; -1: at least `value` */
};

#define TCP4 BLZ_ADDR_V4, BLZ__SOCKET_STREAM
#define UDP4 BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM
#define TCP6 BLZ_ADDR_V6, BLZ__SOCKET_STREAM
#define UDP6 BLZ_ADDR_V6, BLZ__SOCKET_DATAGRAM

static const struct row rows[] = {
    {BLZ_OPT_NODELAY, TCP4, 0, 1, 1, 1},
    {BLZ_OPT_NODELAY, TCP4, 0, 1, 0, 0},
    {BLZ_OPT_QUICKACK, TCP4, 0, 1, 0, 0},
    {BLZ_OPT_KEEPALIVE, TCP4, 0, 1, 1, 1},
    {BLZ_OPT_KEEPALIVE_IDLE, TCP4, 1, 32767 * BLZ_SEC, 30 * BLZ_SEC, 30 * BLZ_SEC},
    {BLZ_OPT_KEEPALIVE_INTERVAL, TCP4, 1, 32767 * BLZ_SEC, 7 * BLZ_SEC, 7 * BLZ_SEC},
    {BLZ_OPT_KEEPALIVE_COUNT, TCP4, 1, 127, 5, 5},
    {BLZ_OPT_USER_TIMEOUT, TCP4, 0, INT32_MAX *BLZ_MSEC, 4500 * BLZ_MSEC, 4500 * BLZ_MSEC},
    {BLZ_OPT_LINGER, TCP4, -1, 0, 0, 0},
    {BLZ_OPT_LINGER, TCP4, -1, 0, -1, -1},
    {BLZ_OPT_REUSE_ADDR, TCP4, 0, 1, 1, 1},
    {BLZ_OPT_REUSE_PORT, TCP4, 0, 1, 1, 1},
    {BLZ_OPT_SEND_BUFFER, TCP4, 1, INT32_MAX / 2, 20000, -1},
    {BLZ_OPT_RECV_BUFFER, TCP4, 1, INT32_MAX / 2, 20000, -1},
    {BLZ_OPT_TTL, TCP4, 1, 255, 9, 9},
    {BLZ_OPT_TTL, TCP6, 1, 255, 9, 9},
    {BLZ_OPT_TRAFFIC_CLASS, UDP4, 0, 255, 0x10, 0x10},
    {BLZ_OPT_TRAFFIC_CLASS, UDP6, 0, 255, 0x10, 0x10},
    {BLZ_OPT_FAST_OPEN_CONNECT, TCP4, 0, 1, 1, 1},
    {BLZ_OPT_V6_ONLY, UDP6, 0, 1, 1, 1},
    {BLZ_OPT_V6_ONLY, UDP6, 0, 1, 0, 0},
    {BLZ_OPT_BROADCAST, UDP4, 0, 1, 1, 1},
    {BLZ_OPT_MULTICAST_LOOP, UDP4, 0, 1, 0, 0},
    {BLZ_OPT_MULTICAST_LOOP, UDP6, 0, 1, 0, 0},
    {BLZ_OPT_MULTICAST_TTL, UDP4, 0, 255, 3, 3},
    {BLZ_OPT_MULTICAST_TTL, UDP6, 0, 255, 3, 3},
    {BLZ_OPT_GRO, UDP4, 0, 1, 1, 1},
    {BLZ_OPT_GSO, UDP4, 0, 65535, 1000, 1000},
    {BLZ_OPT_PASS_CRED, BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, 0, 1, 1, 1},
};

enum { NR_ROWS = sizeof rows / sizeof *rows };

/* Calls try_option with a socket for each row; those that the system does not have are named. */
static void for_each_option(void (*try_option)(blz_sysfd fd, const struct row *row))
{
    for (int i = 0; i < NR_ROWS; i++) {
        int64_t fd = blz__socket_open(rows[i].family, rows[i].type, true), value;
        if (fd == -EAFNOSUPPORT)
            continue;
        assert_true(fd >= 0);
        if (blz__option_get((blz_sysfd)fd, rows[i].option, &value) == -ENOTSUP)
            print_message("skipped: option %d: -ENOTSUP on this system\n", rows[i].option);
        else
            try_option((blz_sysfd)fd, &rows[i]);
        blz__handle_close((blz_sysfd)fd);
    }
}

static void check_round_trip(blz_sysfd fd, const struct row *row)
{
    int64_t value = -99;

    assert_int_equal(blz__option_set(fd, row->option, row->value), 0);
    assert_int_equal(blz__option_get(fd, row->option, &value), 0);
    if (row->found == -1 && row->low > 0)
        assert_true(value >= row->value);
    else
        assert_int_equal(value, row->found);
}

static void what_is_set_is_got(void **state)
{
    (void)state;
    for_each_option(check_round_trip);
}

static void check_range(blz_sysfd fd, const struct row *row)
{
    int64_t before, after;

    assert_int_equal(blz__option_get(fd, row->option, &before), 0);
    assert_int_equal(blz__option_set(fd, row->option, row->low - 1), -EINVAL);
    assert_int_equal(blz__option_set(fd, row->option, row->high + 1), -EINVAL);
    assert_int_equal(blz__option_set(fd, row->option, INT64_MIN), -EINVAL);
    assert_int_equal(blz__option_set(fd, row->option, INT64_MAX), -EINVAL);
    assert_int_equal(blz__option_get(fd, row->option, &after), 0);
    assert_int_equal(before, after);
}

static void a_value_out_of_range_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    for_each_option(check_range);
}

static void no_such_option_is_invalid(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);
    static const int numbers[] = {0, -1, BLZ_OPT_NR_, INT32_MAX, INT32_MIN};
    int64_t value;

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(blz__option_set(fd, numbers[i], 1), -EINVAL);
        assert_int_equal(blz__option_get(fd, numbers[i], &value), -EINVAL);
    }
    blz__handle_close(fd);
}

static void a_time_is_rounded_up_to_the_unit_of_the_system(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);
    int64_t value;

    (void)state;
    assert_int_equal(blz__option_set(fd, BLZ_OPT_KEEPALIVE_IDLE, 1), 0);
    assert_int_equal(blz__option_get(fd, BLZ_OPT_KEEPALIVE_IDLE, &value), 0);
    assert_int_equal(value, BLZ_SEC);
    assert_int_equal(blz__option_set(fd, BLZ_OPT_KEEPALIVE_IDLE, 2 * BLZ_SEC + 1), 0);
    assert_int_equal(blz__option_get(fd, BLZ_OPT_KEEPALIVE_IDLE, &value), 0);
    assert_int_equal(value, 3 * BLZ_SEC);
    blz__handle_close(fd);
}

static void an_option_of_another_kind_of_socket_is_refused(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
    int rc = blz__option_set(fd, BLZ_OPT_NODELAY, 1);

    (void)state;
    assert_true(rc == -ENOTSUP || rc == -ENOPROTOOPT);
    blz__handle_close(fd);
}

static void what_is_no_socket_has_no_options(void **state)
{
    FILE *file = tmpfile();
    int64_t value;

    (void)state;
    assert_non_null(file);
    assert_int_equal(blz__option_set(fileno(file), BLZ_OPT_KEEPALIVE, 1), -ENOTSOCK);
    assert_int_equal(blz__option_get(fileno(file), BLZ_OPT_KEEPALIVE, &value), -ENOTSOCK);
    fclose(file);
    assert_int_equal(blz__option_get(BLZ_NO_SYSFD, BLZ_OPT_KEEPALIVE, &value), -EBADF);
}

static void the_pending_error_is_taken_and_cannot_be_set(void **state)
{
    blz_addr addrs[2];
    blz_sysfd fds[2];
    int64_t value = -1;

    (void)state;
    for (int i = 0; i < 2; i++)
        fds[i] = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, &addrs[i]);
    assert_int_equal(blz__option_set(fds[0], BLZ_OPT_ERROR, 0), -EINVAL);
    assert_int_equal(blz__option_get(fds[0], BLZ_OPT_ERROR, &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(blz__socket_connect(fds[0], &addrs[1]), 0);
    blz__handle_close(fds[1]);
    assert_int_equal(blz__socket_send(fds[0], "x", 1), 1);
    await_events(fds[0], BLZ_FD_READ);
    assert_int_equal(blz__option_get(fds[0], BLZ_OPT_ERROR, &value), 0);
    assert_int_equal(value, ECONNREFUSED);
    assert_int_equal(blz__option_get(fds[0], BLZ_OPT_ERROR, &value), 0);
    assert_int_equal(value, 0);
    blz__handle_close(fds[0]);
}

static void two_sockets_share_an_address_if_both_say_so(void **state)
{
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_sysfd fds[2];
    int rc = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        fds[i] = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);
        rc = blz__option_set(fds[i], BLZ_OPT_REUSE_PORT, 1);
        if (rc == 0)
            assert_int_equal(blz__socket_bind(fds[i], &addr), 0);
        assert_int_equal(blz__socket_local_addr(fds[i], &addr), 0);
    }
    close_both(fds);
    skip_if_not_supported(rc);
}

static void closing_with_no_linger_resets_the_connection(void **state)
{
    blz_sysfd ends[2];
    char byte;

    (void)state;
    tcp_pair(ends);
    assert_int_equal(blz__option_set(ends[0], BLZ_OPT_LINGER, 0), 0);
    blz__handle_close(ends[0]);
    await_events(ends[1], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(ends[1], &byte, 1), -ECONNRESET);
    blz__handle_close(ends[1]);
}

/* ---- interfaces and groups ---- */

static void a_socket_may_use_any_interface_at_first(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM);
    char device[BLZ_DEVICE_NAME] = "xxx";
    int rc = blz__option_get_device(fd, device);

    (void)state;
    blz__handle_close(fd);
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    assert_string_equal(device, "");
}

static void an_interface_that_is_not_there_is_refused(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM);
    int rc = blz__option_set_device(fd, "blitz-none");
    int too_long = blz__option_set_device(fd, "a-name-of-16-by-");

    (void)state;
    blz__handle_close(fd);
    skip_if_not_supported(rc);
    assert_true(rc == -ENODEV || rc == -EPERM);
    assert_int_equal(too_long, -ENAMETOOLONG);
}

static void a_group_is_joined_once_and_left_once(void **state)
{
    static const uint8_t ip[4] = {239, 1, 2, 3};
    blz_addr group = blz_addr_v4(ip, 0);
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM);
    int rc = blz__option_join(fd, &group, 1); /* the loopback interface */

    (void)state;
    if (rc == -ENODEV) {
        blz__handle_close(fd);
        skip();
    }
    assert_int_equal(rc, 0);
    assert_int_equal(blz__option_join(fd, &group, 1), -EADDRINUSE);
    assert_int_equal(blz__option_leave(fd, &group, 1), 0);
    assert_int_equal(blz__option_leave(fd, &group, 1), -EADDRNOTAVAIL);
    blz__handle_close(fd);
}

static void what_is_no_group_cannot_be_joined(void **state)
{
    blz_addr host = blz_addr_loopback(BLZ_ADDR_V4, 0), none = {.len = 0};
    blz_addr path = blz_addr_unix_unnamed();
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM);

    (void)state;
    assert_int_equal(blz__option_join(fd, &host, 1), -EINVAL);
    assert_int_equal(blz__option_join(fd, &none, 1), -EINVAL);
    assert_int_equal(blz__option_leave(fd, &path, 1), -EINVAL);
    blz__handle_close(fd);
}

static void datagrams_to_groups_go_out_by_the_interface_that_was_chosen(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM);

    (void)state;
    assert_int_equal(blz__option_set_multicast_interface(fd, 1), 0);
    assert_int_equal(blz__option_set_multicast_interface(fd, 0), 0);
    assert_true(blz__option_set_multicast_interface(fd, 0x7fffffff) < 0);
    blz__handle_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_set_is_got),
        TEST(a_value_out_of_range_is_refused_and_changes_nothing),
        TEST(no_such_option_is_invalid),
        TEST(a_time_is_rounded_up_to_the_unit_of_the_system),
        TEST(an_option_of_another_kind_of_socket_is_refused),
        TEST(what_is_no_socket_has_no_options),
        TEST(the_pending_error_is_taken_and_cannot_be_set),
        TEST(two_sockets_share_an_address_if_both_say_so),
        TEST(closing_with_no_linger_resets_the_connection),
        TEST(a_socket_may_use_any_interface_at_first),
        TEST(an_interface_that_is_not_there_is_refused),
        TEST(a_group_is_joined_once_and_left_once),
        TEST(what_is_no_group_cannot_be_joined),
        TEST(datagrams_to_groups_go_out_by_the_interface_that_was_chosen),
    };

    return RUN_TESTS(tests);
}
