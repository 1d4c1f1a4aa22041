/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console's limits: how long it waits for a client, how much it reads, how many it serves. The
 * server runs on an embedded runtime whose clock goes on only when the test says so.
 */
#include "clock_rt.h"

#include "console/console.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};

enum { MOST_CLIENTS = 64, MOST_HEAD = 8192, MOST_REST = 1 << 20 };

#define FIRST_BYTE (60 * BLZ_SEC)
#define REQUEST    (10 * BLZ_SEC)
#define ANSWER     (30 * BLZ_SEC)
#define LINGER     (1 * BLZ_SEC)

static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char last_request[] =
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/* ---- a server that runs in turns ---- */

static blz_console console;

static void open_server(const char *backend)
{
    blz_rt *rt = new_rt(&(blz_options){
        .test_clock = true, .embedded = true, .watchdog_ns = BLZ_NEVER, .backend = backend});

    blz__rt_hold_clock(rt);
    memset(&console, 0, sizeof console);
    console.allocator = *test_memory();
    console.rt = rt;
    blz_mutex_init(&console.snapshot_mutex);
    assert_int_equal(blz__console_address(&console.addr, "unix:@blitz-console-limits"), 0);
    assert_int_equal(blz__console_listen(&console), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, blz__console_serve, .console = &console), 0);
    turn_all(rt);
}

static void close_server(void)
{
    blz__console_unlisten(&console);
    free_rt(console.rt);
}

/* Turns until *what is `wanted`, waiting for the system in between. */
static void turn_until(const uint32_t *what, uint32_t wanted)
{
    struct pollfd pfd = {.fd = blz_rt_fd(console.rt), .events = POLLIN};

    turn_all(console.rt);
    while (*what != wanted) {
        assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
        turn_all(console.rt);
    }
}

static int dial(void)
{
    uint32_t len, before = console.nr_connections;
    const struct sockaddr *sa = blz_addr_sockaddr(&console.addr, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, sa, len), 0);
    turn_until(&console.nr_connections, before + 1);
    return fd;
}

/* Turns until the server has taken all bytes that the client has sent. */
static void turn_until_read(int fd)
{
    struct pollfd pfd = {.fd = blz_rt_fd(console.rt), .events = POLLIN};
    int left;

    for (;;) {
        turn_all(console.rt);
        assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
        if (left == 0)
            return;
        assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
    }
}

static void say(int fd, const char *text, size_t len)
{
    assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
    turn_until_read(fd);
}

static void pass(int64_t ns)
{
    advance(console.rt, ns);
}

/* What has come from the server so far, and whether the connection has ended. */
struct heard {
    int status; /* of the first answer; 0: none */
    bool ended;
};

static struct heard hear(int fd)
{
    static char text[1 << 16];
    struct heard heard = {0, false};
    ssize_t n, len = 0;

    while ((n = recv(fd, text + len, sizeof text - 1 - (size_t)len, MSG_DONTWAIT)) > 0)
        len += n;
    text[len] = '\0';
    heard.ended = n == 0;
    if (strncmp(text, "HTTP/1.1 ", 9) == 0)
        heard.status = atoi(text + 9);
    return heard;
}

static void expect(int fd, int status, bool ended)
{
    struct heard heard = hear(fd);

    assert_int_equal(heard.status, status);
    assert_int_equal(heard.ended, ended);
}

/* ---- time ---- */

static void drip(const char *backend)
{
    int fd;

    open_server(backend);
    fd = dial();
    for (int second = 0; second < 10; second++) {
        say(fd, request + second, 1);
        expect(fd, 0, false);
        pass(BLZ_SEC);
    }
    expect(fd, 408, true); /* ten seconds from the first byte, whatever came since */
    close(fd);
    close_server();
}

static void a_request_in_drops_has_ten_seconds_from_its_first_byte(void **state)
{
    (void)state;
    for (size_t i = uring_works() ? 0 : 1; i < 3; i++)
        drip(backends[i]);
}

static void sixty_four_slow_clients_do_not_lock_the_console(void **state)
{
    int fds[MOST_CLIENTS], fd;

    (void)state;
    open_server("epoll");
    for (int i = 0; i < MOST_CLIENTS; i++)
        fds[i] = dial();
    for (int second = 0; second < 10; second++) {
        for (int i = 0; i < MOST_CLIENTS; i++)
            say(fds[i], request + second, 1);
        pass(BLZ_SEC);
    }
    pass(LINGER);
    assert_int_equal(console.nr_connections, 0);
    fd = dial();
    say(fd, request, sizeof request - 1);
    expect(fd, 200, false);
    close(fd);
    for (int i = 0; i < MOST_CLIENTS; i++)
        close(fds[i]);
    close_server();
}

static void a_client_has_a_minute_for_its_first_byte(void **state)
{
    int fd;

    (void)state;
    open_server("epoll");
    fd = dial();
    pass(FIRST_BYTE - BLZ_SEC);
    expect(fd, 0, false);
    pass(BLZ_SEC);
    expect(fd, 0, true);
    assert_int_equal(console.nr_connections, 0);
    close(fd);
    close_server();
}

static void a_client_has_a_minute_for_the_first_byte_of_each_request(void **state)
{
    int fd;

    (void)state;
    open_server("epoll");
    fd = dial();
    for (int i = 0; i < 3; i++) {
        pass(FIRST_BYTE - BLZ_SEC);
        say(fd, request, sizeof request - 1);
        expect(fd, 200, false);
    }
    pass(FIRST_BYTE);
    expect(fd, 0, true);
    close(fd);
    close_server();
}

static void a_request_that_begins_behind_another_has_ten_seconds_from_that_answer(void **state)
{
    char text[sizeof request + 3];
    int fd;

    (void)state;
    snprintf(text, sizeof text, "%sGET", request);
    open_server("epoll");
    fd = dial();
    say(fd, text, strlen(text));
    expect(fd, 200, false);
    pass(REQUEST - BLZ_SEC);
    expect(fd, 0, false);
    pass(BLZ_SEC);
    expect(fd, 408, true);
    close(fd);
    close_server();
}

/* Requests, until the server waits for the client to take an answer. */
static void fill_with_answers(int fd)
{
    int left = 0;

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (left == 0) {
        for (int i = 0; i < 50; i++)
            assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL),
                             sizeof request - 1);
        turn_all(console.rt);
        assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
    }
}

static void a_client_has_thirty_seconds_to_take_an_answer(void **state)
{
    static char answers[4096];
    int fd;

    (void)state;
    open_server("epoll");
    fd = dial();
    fill_with_answers(fd);
    for (int second = 0; second < 29; second++) {
        pass(BLZ_SEC);
        assert_int_equal(console.nr_connections, 1);
        assert_true(recv(fd, answers, 1, 0) == 1); /* a byte now and then does not help */
        turn_all(console.rt);
    }
    pass(BLZ_SEC);
    pass(LINGER);
    assert_int_equal(console.nr_connections, 0);
    close(fd);
    close_server();
}

static void a_client_has_a_second_to_stop_sending_after_the_last_answer(void **state)
{
    int fd;

    (void)state;
    open_server("epoll");
    fd = dial();
    say(fd, last_request, sizeof last_request - 1);
    expect(fd, 200, true);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(console.nr_connections, 1);
        say(fd, "more", 4);
        pass(LINGER / 4);
    }
    assert_int_equal(console.nr_connections, 0);
    close(fd);
    close_server();
}

/* ---- sizes and numbers ---- */

static void the_rest_that_is_read_after_the_last_answer_is_a_mebibyte(void **state)
{
    static char rest[MOST_REST / 16];
    int fd;

    (void)state;
    open_server("epoll");
    fd = dial();
    say(fd, last_request, sizeof last_request - 1);
    for (int i = 0; i < 15; i++)
        say(fd, rest, sizeof rest);
    assert_int_equal(console.nr_connections, 1);
    say(fd, rest, sizeof rest);
    assert_int_equal(console.nr_connections, 0);
    close(fd);
    close_server();
}

/* The answer to a request whose head has that length, or would have. */
static int status_of_head(size_t len)
{
    static const char begin[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ";
    static char head[MOST_HEAD + 1];
    struct heard heard;
    int fd = dial();

    memset(head, 'x', sizeof head);
    memcpy(head, begin, sizeof begin - 1);
    memcpy(head + len - 4, "\r\n\r\n", 4);
    assert_int_equal(send(fd, head, len, MSG_NOSIGNAL), len);
    turn_until_read(fd);
    heard = hear(fd);
    close(fd);
    turn_until(&console.nr_connections, 0);
    return heard.status;
}

static void a_head_has_eight_kibibytes_at_most(void **state)
{
    (void)state;
    open_server("epoll");
    assert_int_equal(status_of_head(MOST_HEAD), 200);
    assert_int_equal(status_of_head(MOST_HEAD + 1), 431);
    close_server();
}

static void a_head_may_consist_of_as_many_headers_as_fit(void **state)
{
    static char head[MOST_HEAD];
    size_t len =
        (size_t)snprintf(head, sizeof head, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n");
    int fd;

    (void)state;
    while (len + 6 <= sizeof head) {
        memcpy(head + len, "a:\r\n", 4);
        len += 4;
    }
    memcpy(head + len, "\r\n", 2);
    open_server("epoll");
    fd = dial();
    say(fd, head, len + 2);
    expect(fd, 200, false);
    close(fd);
    close_server();
}

static void the_sixty_fifth_client_is_turned_away_until_another_has_gone(void **state)
{
    uint32_t len;
    const struct sockaddr *sa;
    int fds[MOST_CLIENTS], extra;

    (void)state;
    open_server("epoll");
    for (int i = 0; i < MOST_CLIENTS; i++)
        fds[i] = dial();
    sa = blz_addr_sockaddr(&console.addr, &len);
    extra = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(extra, sa, len), 0);
    do
        turn_all(console.rt);
    while (!hear(extra).ended);
    close(extra);
    assert_int_equal(console.nr_connections, MOST_CLIENTS);
    close(fds[0]);
    turn_until(&console.nr_connections, MOST_CLIENTS - 1);
    fds[0] = dial();
    say(fds[0], request, sizeof request - 1);
    expect(fds[0], 200, false);
    for (int i = 0; i < MOST_CLIENTS; i++)
        close(fds[i]);
    close_server();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_in_drops_has_ten_seconds_from_its_first_byte),
        TEST(sixty_four_slow_clients_do_not_lock_the_console),
        TEST(a_client_has_a_minute_for_its_first_byte),
        TEST(a_client_has_a_minute_for_the_first_byte_of_each_request),
        TEST(a_request_that_begins_behind_another_has_ten_seconds_from_that_answer),
        TEST(a_client_has_thirty_seconds_to_take_an_answer),
        TEST(a_client_has_a_second_to_stop_sending_after_the_last_answer),
        TEST(the_rest_that_is_read_after_the_last_answer_is_a_mebibyte),
        TEST(a_head_has_eight_kibibytes_at_most),
        TEST(a_head_may_consist_of_as_many_headers_as_fit),
        TEST(the_sixty_fifth_client_is_turned_away_until_another_has_gone),
    };
    return RUN_TESTS(tests);
}
