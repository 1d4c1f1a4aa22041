/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/socket.h, but for paths (socket_path_test.c). */
#include "sockets.h"

/* ---- making ---- */

static const int families[] = {BLZ_ADDR_V4, BLZ_ADDR_V6, BLZ_ADDR_UNIX};

static void a_socket_is_not_inherited(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        int64_t fd = blz__socket_open(families[i], BLZ__SOCKET_STREAM, false);
        if (fd == -EAFNOSUPPORT)
            continue;
        assert_true(fd >= 0);
        assert_int_equal(blz__handle_is_inherited((blz_sysfd)fd), 0);
        blz__handle_close((blz_sysfd)fd);
    }
}

static void a_socket_is_in_the_mode_that_was_asked_for(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool nonblocking = i & 1;
        int64_t fd =
            blz__socket_open(BLZ_ADDR_V4, i & 2 ? BLZ__SOCKET_STREAM : BLZ__SOCKET_DATAGRAM,
                             nonblocking);
        int mode;
        assert_true(fd >= 0);
        mode = blz__handle_is_nonblocking((blz_sysfd)fd);
        blz__handle_close((blz_sysfd)fd);
        skip_if_not_supported(mode);
        assert_int_equal(mode, nonblocking);
    }
}

static void no_such_family_or_type_is_invalid(void **state)
{
    (void)state;
    assert_int_equal(blz__socket_open(BLZ_ADDR_NONE, BLZ__SOCKET_STREAM, true), -EINVAL);
    assert_int_equal(blz__socket_open(99, BLZ__SOCKET_STREAM, true), -EINVAL);
    assert_int_equal(blz__socket_open(BLZ_ADDR_V4, (enum blz__socket_type)0, true), -EINVAL);
    assert_int_equal(blz__socket_open(BLZ_ADDR_V4, (enum blz__socket_type)99, true), -EINVAL);
}

static void both_ends_of_a_pair_are_not_inherited_and_in_the_mode(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        blz_sysfd ends[2];
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(blz__handle_is_inherited(ends[i]), 0);
            assert_int_equal(blz__handle_is_nonblocking(ends[i]), nonblocking);
        }
        close_both(ends);
    }
}

static void what_is_sent_to_one_end_of_a_pair_is_received_at_the_other(void **state)
{
    blz_sysfd ends[2];
    char buf[8];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
        assert_int_equal(blz__socket_send(ends[i], "hello", 5), 5);
        assert_int_equal(blz__socket_recv(ends[!i], buf, sizeof buf), 5);
        assert_memory_equal(buf, "hello", 5);
        close_both(ends);
    }
}

static void a_pair_of_datagrams_keeps_their_boundaries(void **state)
{
    blz_sysfd ends[2];
    char buf[8];
    int rc = blz__socket_pair(BLZ__SOCKET_DATAGRAM, true, ends);

    (void)state;
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    assert_int_equal(blz__socket_send(ends[0], "ab", 2), 2);
    assert_int_equal(blz__socket_send(ends[0], "", 0), 0);
    assert_int_equal(blz__socket_send(ends[0], "cde", 3), 3);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 2);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 0);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 3);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), -EAGAIN);
    close_both(ends);
}

/* ---- what it is ---- */

static void check_kind(blz_sysfd fd, int family, int type, bool listens)
{
    struct blz__socket_kind kind;

    assert_int_equal(blz__socket_kind(fd, &kind), 0);
    assert_int_equal(kind.family, family);
    assert_int_equal(kind.type, type);
    assert_int_equal(kind.listens, listens);
    blz__handle_close(fd);
}

static void each_socket_has_its_kind(void **state)
{
    blz_addr addr;
    blz_sysfd ends[2];

    (void)state;
    check_kind(open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM), BLZ_ADDR_V4, BLZ__SOCKET_STREAM,
               false);
    check_kind(open_socket(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM), BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM,
               false);
    check_kind(open_listener(&addr), BLZ_ADDR_V4, BLZ__SOCKET_STREAM, true);
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    check_kind(ends[0], BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, false);
    blz__handle_close(ends[1]);
}

static void an_ipv6_socket_says_so(void **state)
{
    int64_t fd = blz__socket_open(BLZ_ADDR_V6, BLZ__SOCKET_DATAGRAM, true);

    (void)state;
    if (fd == -EAFNOSUPPORT)
        skip();
    check_kind((blz_sysfd)fd, BLZ_ADDR_V6, BLZ__SOCKET_DATAGRAM, false);
}

static void what_is_no_socket_has_no_kind(void **state)
{
    struct blz__socket_kind kind;
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(blz__socket_kind(fileno(file), &kind), -ENOTSOCK);
    fclose(file);
    assert_int_equal(blz__socket_kind(BLZ_NO_SYSFD, &kind), -EBADF);
}

/* ---- addresses ---- */

static void a_port_of_zero_becomes_a_free_one(void **state)
{
    blz_addr addr;
    blz_sysfd fd = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_STREAM, &addr);

    (void)state;
    assert_int_not_equal(blz_addr_port(&addr), 0);
    assert_true(blz_addr_is_loopback(&addr));
    blz__handle_close(fd);
}

static void an_address_in_use_is_refused(void **state)
{
    blz_addr addr;
    blz_sysfd first = open_listener(&addr);
    blz_sysfd second = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);

    (void)state;
    assert_int_equal(blz__socket_bind(second, &addr), -EADDRINUSE);
    blz__handle_close(first);
    blz__handle_close(second);
}

static void an_address_of_another_machine_is_refused(void **state)
{
    static const uint8_t documentation[4] = {192, 0, 2, 1};
    blz_addr addr = blz_addr_v4(documentation, 0);
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);

    (void)state;
    assert_int_equal(blz__socket_bind(fd, &addr), -EADDRNOTAVAIL);
    blz__handle_close(fd);
}

static void each_end_knows_the_address_of_the_other(void **state)
{
    blz_addr local[2], peer[2];
    blz_sysfd ends[2];

    (void)state;
    tcp_pair(ends);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blz__socket_local_addr(ends[i], &local[i]), 0);
        assert_int_equal(blz__socket_peer_addr(ends[i], &peer[i]), 0);
    }
    assert_true(blz_addr_equal(&local[0], &peer[1]));
    assert_true(blz_addr_equal(&local[1], &peer[0]));
    close_both(ends);
}

static void a_socket_that_is_not_connected_has_no_peer(void **state)
{
    blz_addr addr;
    blz_sysfd fd = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_STREAM, &addr);

    (void)state;
    assert_int_equal(blz__socket_peer_addr(fd, &addr), -ENOTCONN);
    blz__handle_close(fd);
}

static void a_unix_socket_without_a_name_has_an_unnamed_address(void **state)
{
    blz_addr addr, unnamed = blz_addr_unix_unnamed();
    blz_sysfd ends[2];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__socket_local_addr(ends[0], &addr), 0);
    assert_true(blz_addr_equal(&addr, &unnamed));
    close_both(ends);
}

/* ---- connecting ---- */

static void nobody_listens_is_refused(void **state)
{
    blz_addr addr;
    blz_sysfd gone = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_STREAM, &addr);
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);
    int rc;

    (void)state;
    rc = blz__socket_connect(fd, &addr); /* bound, but nobody listens */
    if (rc == -EINPROGRESS) {
        await_events(fd, BLZ_FD_WRITE);
        rc = blz__socket_connect_result(fd);
    }
    assert_int_equal(rc, -ECONNREFUSED);
    blz__handle_close(fd);
    blz__handle_close(gone);
}

static void the_result_of_a_connect_that_succeeded_is_zero(void **state)
{
    blz_sysfd ends[2];

    (void)state;
    tcp_pair(ends);
    assert_int_equal(blz__socket_connect_result(ends[0]), 0);
    close_both(ends);
}

static void a_connected_datagram_socket_receives_from_its_peer_alone(void **state)
{
    blz_addr addrs[3];
    blz_sysfd fds[3];
    char buf[8];

    (void)state;
    for (int i = 0; i < 3; i++)
        fds[i] = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, &addrs[i]);
    assert_int_equal(blz__socket_connect(fds[0], &addrs[1]), 0);
    assert_int_equal(blz__socket_connect(fds[1], &addrs[0]), 0);
    assert_int_equal(blz__socket_connect(fds[2], &addrs[0]), 0);
    assert_int_equal(blz__socket_send(fds[2], "no", 2), 2);
    assert_int_equal(blz__socket_send(fds[1], "yes", 3), 3);
    await_events(fds[0], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(fds[0], buf, sizeof buf), 3);
    assert_memory_equal(buf, "yes", 3);
    for (int i = 0; i < 3; i++)
        blz__handle_close(fds[i]);
}

static void a_disconnected_datagram_socket_has_no_peer(void **state)
{
    blz_addr addrs[2], addr;
    blz_sysfd fds[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        fds[i] = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, &addrs[i]);
    assert_int_equal(blz__socket_connect(fds[0], &addrs[1]), 0);
    assert_int_equal(blz__socket_peer_addr(fds[0], &addr), 0);
    assert_int_equal(blz__socket_disconnect(fds[0]), 0);
    assert_int_equal(blz__socket_peer_addr(fds[0], &addr), -ENOTCONN);
    close_both(fds);
}

/* ---- accepting ---- */

static void accepting_nothing_is_not_now(void **state)
{
    blz_addr addr;
    blz_sysfd listener = open_listener(&addr);

    (void)state;
    assert_int_equal(blz__socket_accept(listener, true), -EAGAIN);
    blz__handle_close(listener);
}

static void accepting_does_not_wait_on_a_listener_in_blocking_mode(void **state)
{
    blz_addr addr;
    blz_sysfd listener = open_listener(&addr);

    (void)state;
    assert_int_equal(blz__handle_set_nonblocking(listener, false), 0);
    assert_int_equal(blz__socket_accept(listener, true), -EAGAIN);
    blz__handle_close(listener);
}

static void an_accepted_socket_is_not_inherited_and_in_the_mode(void **state)
{
    blz_addr addr;
    blz_sysfd listener = open_listener(&addr);

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);
        int64_t conn;
        connect_to(fd, &addr);
        await_events(listener, BLZ_FD_READ);
        conn = blz__socket_accept(listener, nonblocking);
        assert_true(conn >= 0);
        assert_int_equal(blz__handle_is_inherited((blz_sysfd)conn), 0);
        assert_int_equal(blz__handle_is_nonblocking((blz_sysfd)conn), nonblocking);
        blz__handle_close((blz_sysfd)conn);
        blz__handle_close(fd);
    }
    blz__handle_close(listener);
}

static void accepting_at_what_does_not_listen_is_invalid(void **state)
{
    blz_addr addr;
    blz_sysfd fd = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_STREAM, &addr);
    blz_sysfd datagrams = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, &addr);

    (void)state;
    assert_int_equal(blz__socket_accept(fd, true), -EINVAL);
    assert_int_equal(blz__socket_accept(datagrams, true), -ENOTSUP);
    assert_int_equal(blz__socket_accept(BLZ_NO_SYSFD, true), -EBADF);
    blz__handle_close(fd);
    blz__handle_close(datagrams);
}

static void the_backlog_is_the_one_that_was_asked_for(void **state)
{
    blz_addr addr;
    blz_sysfd fd = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_STREAM, &addr);
    int backlog;

    (void)state;
    assert_int_equal(blz__socket_listen(fd, 7), 0);
    backlog = blz__socket_backlog(fd);
    blz__handle_close(fd);
    skip_if_not_supported(backlog);
    assert_int_equal(backlog, 7);
}

static void listening_at_the_address_of_a_listener_is_refused(void **state)
{
    blz_addr addr;
    blz_sysfd first = open_listener(&addr), second = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);

    (void)state;
    assert_true(blz__socket_bind(second, &addr) == -EADDRINUSE ||
                blz__socket_listen(second, 1) == -EADDRINUSE);
    blz__handle_close(first);
    blz__handle_close(second);
}

/* ---- bytes ---- */

static void receiving_nothing_is_not_now_in_either_mode(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        blz_sysfd ends[2];
        char byte = 'x';
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        assert_int_equal(blz__socket_recv(ends[0], &byte, 1), -EAGAIN);
        assert_int_equal(blz__socket_peek(ends[0], &byte, 1), -EAGAIN);
        assert_int_equal(byte, 'x');
        close_both(ends);
    }
}

static void sending_without_room_is_not_now_and_nothing_has_happened(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        static char buf[1 << 16];
        blz_sysfd ends[2];
        int64_t n, received = 0, sent = 0;
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        while ((n = blz__socket_send(ends[0], buf, sizeof buf)) > 0)
            sent += n;
        assert_int_equal(n, -EAGAIN);
        assert_int_equal(blz__socket_send(ends[0], buf, 1), -EAGAIN);
        while ((n = blz__socket_recv(ends[1], buf, sizeof buf)) > 0)
            received += n;
        assert_int_equal(received, sent);
        close_both(ends);
    }
}

static void what_was_peeked_at_is_still_there(void **state)
{
    blz_sysfd ends[2];
    char buf[8] = "";

    (void)state;
    tcp_pair(ends);
    assert_int_equal(blz__socket_send(ends[0], "peek", 4), 4);
    await_events(ends[1], BLZ_FD_READ);
    assert_int_equal(blz__socket_peek(ends[1], buf, 2), 2);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 4);
    assert_memory_equal(buf, "peek", 4);
    close_both(ends);
}

static void the_end_comes_after_the_data(void **state)
{
    blz_sysfd ends[2];
    char buf[8];

    (void)state;
    tcp_pair(ends);
    assert_int_equal(blz__socket_send(ends[0], "last", 4), 4);
    blz__handle_close(ends[0]);
    await_events(ends[1], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 4);
    await_events(ends[1], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 0);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 0);
    blz__handle_close(ends[1]);
}

static void after_ending_one_half_the_other_goes_on(void **state)
{
    blz_sysfd ends[2];
    char buf[8];

    (void)state;
    tcp_pair(ends);
    assert_int_equal(blz__socket_shutdown(ends[0], BLZ_SHUT_WRITE), 0);
    await_events(ends[1], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 0);
    assert_int_equal(blz__socket_send(ends[1], "still", 5), 5);
    await_events(ends[0], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(ends[0], buf, sizeof buf), 5);
    assert_int_equal(blz__socket_send(ends[0], "x", 1), -EPIPE);
    close_both(ends);
}

static void after_ending_the_receiving_half_there_is_nothing_more(void **state)
{
    blz_sysfd ends[2];
    char buf[8];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__socket_shutdown(ends[0], BLZ_SHUT_READ), 0);
    assert_int_equal(blz__socket_recv(ends[0], buf, sizeof buf), 0);
    assert_int_equal(blz__socket_shutdown(ends[0], BLZ_SHUT_BOTH), 0);
    assert_int_equal(blz__socket_send(ends[0], "x", 1), -EPIPE);
    close_both(ends);
}

static void ending_no_half_is_invalid(void **state)
{
    blz_sysfd ends[2], fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__socket_shutdown(ends[0], 0), -EINVAL);
    assert_int_equal(blz__socket_shutdown(ends[0], 4), -EINVAL);
    assert_int_equal(blz__socket_shutdown(fd, BLZ_SHUT_WRITE), -ENOTCONN);
    close_both(ends);
    blz__handle_close(fd);
}

static void sending_to_what_is_closed_is_a_broken_pipe_without_a_signal(void **state)
{
    blz_sysfd ends[2];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    blz__handle_close(ends[1]);
    assert_int_equal(blz__socket_send(ends[0], "x", 1), -EPIPE);
    blz__handle_close(ends[0]);
}

/* Data that nobody has read: closing resets the connection. */
static void a_reset_is_an_error_of_the_other_side(void **state)
{
    blz_sysfd ends[2];
    char buf[8];

    (void)state;
    tcp_pair(ends);
    assert_int_equal(blz__socket_send(ends[0], "unread", 6), 6);
    await_events(ends[1], BLZ_FD_READ);
    blz__handle_close(ends[1]);
    await_events(ends[0], BLZ_FD_READ);
    assert_int_equal(blz__socket_recv(ends[0], buf, sizeof buf), -ECONNRESET);
    blz__handle_close(ends[0]);
}

static void sending_without_a_peer_is_not_connected(void **state)
{
    blz_addr addr;
    blz_sysfd fd = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, &addr);
    int64_t rc = blz__socket_send(fd, "x", 1);

    (void)state;
    assert_true(rc == -ENOTCONN || rc == -EDESTADDRREQ);
    blz__handle_close(fd);
}

/* ---- files ---- */

static FILE *a_file(const char *text)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fflush(file), 0);
    return file;
}

static void a_part_of_a_file_is_sent(void **state)
{
    FILE *file = a_file("0123456789");
    blz_sysfd ends[2];
    char buf[16];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        int64_t n;
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        n = blz__socket_send_file(ends[0], fileno(file), 3, 4, nonblocking);
        if (n == -ENOTSUP)
            close_both(ends);
        skip_if_not_supported(n);
        assert_int_equal(n, 4);
        assert_int_equal(blz__socket_recv(ends[1], buf, sizeof buf), 4);
        assert_memory_equal(buf, "3456", 4);
        assert_int_equal(blz__handle_is_nonblocking(ends[0]), nonblocking);
        close_both(ends);
    }
    fclose(file);
}

static void behind_the_end_of_a_file_nothing_is_sent(void **state)
{
    FILE *file = a_file("0123456789");
    blz_sysfd ends[2];
    int64_t n;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    n = blz__socket_send_file(ends[0], fileno(file), 10, 4, true);
    close_both(ends);
    fclose(file);
    skip_if_not_supported(n);
    assert_int_equal(n, 0);
}

static void sending_a_file_without_room_is_not_now_in_either_mode(void **state)
{
    FILE *file = a_file("0123456789");

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        blz_sysfd ends[2];
        int64_t n;
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        fill_socket(ends[0]);
        n = blz__socket_send_file(ends[0], fileno(file), 0, 10, nonblocking);
        close_both(ends);
        if (n == -ENOTSUP)
            fclose(file);
        skip_if_not_supported(n);
        assert_int_equal(n, -EAGAIN);
    }
    fclose(file);
}

/* ---- readiness ---- */

static void readiness_is_what_is_asked_for(void **state)
{
    blz_sysfd ends[2];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__socket_events(ends[0], 0), 0);
    assert_int_equal(blz__socket_events(ends[0], BLZ_FD_READ), 0);
    assert_int_equal(blz__socket_events(ends[0], BLZ_FD_READ | BLZ_FD_WRITE), BLZ_FD_WRITE);
    assert_int_equal(blz__socket_send(ends[1], "x", 1), 1);
    assert_int_equal(blz__socket_events(ends[0], BLZ_FD_READ), BLZ_FD_READ);
    assert_int_equal(blz__socket_events(ends[0], BLZ_FD_READ | BLZ_FD_WRITE),
                     BLZ_FD_READ | BLZ_FD_WRITE);
    fill_socket(ends[0]);
    assert_int_equal(blz__socket_events(ends[0], BLZ_FD_WRITE), 0);
    close_both(ends);
}

static void the_end_is_reported_in_any_case(void **state)
{
    blz_sysfd ends[2];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    blz__handle_close(ends[1]);
    assert_true(blz__socket_events(ends[0], 0) & BLZ_FD_HUP);
    blz__handle_close(ends[0]);
}

static void what_is_closed_has_no_readiness(void **state)
{
    blz_sysfd fd = open_socket(BLZ_ADDR_V4, BLZ__SOCKET_STREAM);

    (void)state;
    blz__handle_close(fd);
    assert_int_equal(blz__socket_events(fd, BLZ_FD_READ), -EBADF);
}

/* ---- credentials ---- */

static void a_peer_is_this_process_and_trusted(void **state)
{
    struct blz__socket_cred cred;
    blz_sysfd ends[2];
    int rc;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    rc = blz__socket_peer_cred(ends[0], &cred);
    close_both(ends);
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    assert_true(blz__socket_user_is_trusted(cred.uid));
    assert_true(blz__socket_user_is_trusted(0));
    assert_false(blz__socket_user_is_trusted(cred.uid ^ 0x40000000));
}

static void without_a_peer_there_are_no_credentials(void **state)
{
    struct blz__socket_cred cred;
    blz_sysfd fd = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
    int rc = blz__socket_peer_cred(fd, &cred);

    (void)state;
    blz__handle_close(fd);
    skip_if_not_supported(rc);
    assert_int_equal(rc, -ENOTCONN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_socket_is_not_inherited),
        TEST(a_socket_is_in_the_mode_that_was_asked_for),
        TEST(no_such_family_or_type_is_invalid),
        TEST(both_ends_of_a_pair_are_not_inherited_and_in_the_mode),
        TEST(what_is_sent_to_one_end_of_a_pair_is_received_at_the_other),
        TEST(a_pair_of_datagrams_keeps_their_boundaries),
        TEST(each_socket_has_its_kind),
        TEST(an_ipv6_socket_says_so),
        TEST(what_is_no_socket_has_no_kind),
        TEST(a_port_of_zero_becomes_a_free_one),
        TEST(an_address_in_use_is_refused),
        TEST(an_address_of_another_machine_is_refused),
        TEST(each_end_knows_the_address_of_the_other),
        TEST(a_socket_that_is_not_connected_has_no_peer),
        TEST(a_unix_socket_without_a_name_has_an_unnamed_address),
        TEST(nobody_listens_is_refused),
        TEST(the_result_of_a_connect_that_succeeded_is_zero),
        TEST(a_connected_datagram_socket_receives_from_its_peer_alone),
        TEST(a_disconnected_datagram_socket_has_no_peer),
        TEST(accepting_nothing_is_not_now),
        TEST(accepting_does_not_wait_on_a_listener_in_blocking_mode),
        TEST(an_accepted_socket_is_not_inherited_and_in_the_mode),
        TEST(accepting_at_what_does_not_listen_is_invalid),
        TEST(the_backlog_is_the_one_that_was_asked_for),
        TEST(listening_at_the_address_of_a_listener_is_refused),
        TEST(receiving_nothing_is_not_now_in_either_mode),
        TEST(sending_without_room_is_not_now_and_nothing_has_happened),
        TEST(what_was_peeked_at_is_still_there),
        TEST(the_end_comes_after_the_data),
        TEST(after_ending_one_half_the_other_goes_on),
        TEST(after_ending_the_receiving_half_there_is_nothing_more),
        TEST(ending_no_half_is_invalid),
        TEST(sending_to_what_is_closed_is_a_broken_pipe_without_a_signal),
        TEST(a_reset_is_an_error_of_the_other_side),
        TEST(sending_without_a_peer_is_not_connected),
        TEST(a_part_of_a_file_is_sent),
        TEST(behind_the_end_of_a_file_nothing_is_sent),
        TEST(sending_a_file_without_room_is_not_now_in_either_mode),
        TEST(readiness_is_what_is_asked_for),
        TEST(the_end_is_reported_in_any_case),
        TEST(what_is_closed_has_no_readiness),
        TEST(a_peer_is_this_process_and_trusted),
        TEST(without_a_peer_there_are_no_credentials),
    };

    return RUN_TESTS(tests);
}
