/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, connecting and accepting; what is done when there is trouble. */
#include "net_probe.h"

#include <netinet/in.h>
#include <sys/resource.h>

static blz_tcp_listener listen_anywhere(blz_rt *rt, blz_addr *addr)
{
    blz_tcp_listener ln;

    *addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    check(blz_tcp_listen_with(&ln, addr, &(blz_tcp_listen_options){.rt = rt}) == 0);
    check(blz_tcp_listener_addr(&ln, addr) == 0);
    return ln;
}

static int dial(const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, sa, len) == 0);
    return fd;
}

/* ---- connecting ---- */

ON_EACH_BACKEND(a_connection_is_made_and_accepted)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr, seen, own;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp client, server;
    blz_io in = {0}, out = {0};
    blz_handle accepting;
    int64_t nodelay;
    char buf[8];

    START(rt, &accepting, blz_tcp_accept(&in, &ln, &server));
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&out, &client, &addr, NULL)), 0);
    assert_int_equal(FINISH(rt, &accepting), 0);
    assert_int_equal(blz_tcp_peer_addr(&client, &seen), 0);
    assert_true(blz_addr_equal(&seen, &addr));
    assert_int_equal(blz_tcp_local_addr(&client, &own), 0);
    assert_int_equal(blz_tcp_peer_addr(&server, &seen), 0);
    assert_true(blz_addr_equal(&seen, &own));
    assert_int_equal(blz_tcp_get(&client, BLZ_OPT_NODELAY, &nodelay), 0);
    assert_int_equal(nodelay, 1);
    assert_int_equal(blz_tcp_get(&server, BLZ_OPT_NODELAY, &nodelay), 0);
    assert_int_equal(nodelay, 1);
    assert_int_equal(AWAIT(rt, blz_tcp_write_all(&out, &client, "hi", 2)), 2);
    assert_int_equal(AWAIT(rt, blz_tcp_read(&in, &server, buf, 8)), 2);
    blz_tcp_close(&client);
    blz_tcp_close(&server);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(what_is_asked_for_before_connecting_is_there_after)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr, own, from = blz_addr_v4((const uint8_t[4]){127, 0, 0, 9}, 0);
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp_options options = {
        .bind = &from, .device = "lo", .delay = true, .keepalive = true, .send_buffer = 30000};
    blz_tcp client;
    blz_io io = {0};
    int64_t value;

    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&io, &client, &addr, &options)), 0);
    assert_int_equal(blz_tcp_local_addr(&client, &own), 0);
    blz_addr_set_port(&own, 0);
    assert_true(blz_addr_equal(&own, &from));
    assert_int_equal(blz_tcp_get(&client, BLZ_OPT_NODELAY, &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(blz_tcp_get(&client, BLZ_OPT_KEEPALIVE, &value), 0);
    assert_int_equal(value, 1);
    blz_tcp_close(&client);
    options.send_buffer = -1;
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&io, &client, &addr, &options)), -EINVAL);
    options = (blz_tcp_options){.device = "nosuchif"};
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&io, &client, &addr, &options)), -ENODEV);
    assert_null(client.entry_);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(a_connection_that_is_refused_leaves_nothing)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr, none = {0}, path;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp client;
    blz_io io = {0};

    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    int before = nr_fds();
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&io, &client, &addr, NULL)), -ECONNREFUSED);
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&io, &client, &none, NULL)), -EAFNOSUPPORT);
    assert_int_equal(blz_addr_unix(&path, "/nowhere"), 0);
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&io, &client, &path, NULL)), -EAFNOSUPPORT);
    assert_int_equal(nr_fds(), before);
    assert_null(client.entry_);
    free_rt(rt);
}

/* A listener whose queue is full does not answer, so that connecting waits. */
ON_EACH_BACKEND(a_cancelled_connect_leaves_nothing)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_tcp_listener ln;
    blz_tcp client;
    blz_io io = {0};
    blz_handle connecting;
    int fillers[8], before;

    assert_int_equal(blz_tcp_listen_with(&ln, &addr,
                                         &(blz_tcp_listen_options){.rt = rt, .backlog = 1}),
                     0);
    assert_int_equal(blz_tcp_listener_addr(&ln, &addr), 0);
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&addr, &len);
    for (int i = 0; i < 8; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(fillers[i], sa, len);
    }
    before = nr_fds();
    START(rt, &connecting, blz_tcp_connect_with(&io, &client, &addr, NULL));
    assert_int_equal(CANCEL(rt, &connecting), -ECANCELED);
    assert_null(client.entry_);
    assert_true(nr_fds() <= before + 1); /* a driver may have been opened */
    for (int i = 0; i < 8; i++)
        close(fillers[i]);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

/* ---- accepting ---- */

ON_EACH_BACKEND(a_peer_that_is_gone_is_a_connection_all_the_same)
{
    blz_rt *rt = turning_rt(backend);
    struct linger hard = {.l_onoff = 1};
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp conn;
    blz_io io = {0};
    char buf[4];
    int fd = dial(&addr);

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    assert_int_equal(AWAIT(rt, blz_tcp_accept(&io, &ln, &conn)), 0);
    assert_int_equal(AWAIT(rt, blz_tcp_read(&io, &conn, buf, 4)), -ECONNRESET);
    blz_tcp_close(&conn);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(several_tasks_accept_from_one_listener)
{
    enum { MANY = 50 };
    blz_rt *rt = turning_rt(backend);
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp conns[MANY];
    static blz_io ios[MANY];
    blz_handle handles[MANY];
    int fds[MANY];

    memset(ios, 0, sizeof ios);
    for (int i = 0; i < MANY; i++)
        START(rt, &handles[i], blz_tcp_accept(&ios[i], &ln, &conns[i]));
    for (int i = 0; i < MANY; i++)
        fds[i] = dial(&addr);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(FINISH(rt, &handles[i]), 0);
        blz_tcp_close(&conns[i]);
        close(fds[i]);
    }
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(closing_the_listener_ends_the_accept)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr), copy = ln;
    blz_tcp conn;
    blz_io io = {0};
    blz_handle accepting;

    START(rt, &accepting, blz_tcp_accept(&io, &ln, &conn));
    assert_int_equal(blz_tcp_listener_into_fd(&copy), -EBUSY);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    assert_int_equal(FINISH(rt, &accepting), -EBADF);
    assert_int_equal(AWAIT(rt, blz_tcp_accept(&io, &copy, &conn)), -EBADF);
    assert_int_equal(blz_tcp_listener_close(&copy), -EBADF);
    free_rt(rt);
}

/*
 * A connection and a cancellation at the same time. Whoever wins, the connection is not lost: the
 * next accept has it.
 */
ON_EACH_BACKEND(a_connection_that_comes_with_a_cancellation_is_kept)
{
    enum { ROUNDS = 50 };
    blz_rt *rt = turning_rt(backend);
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp conn;
    blz_io io = {0};
    blz_handle accepting;
    int late = 0;

    for (int i = 0; i < ROUNDS; i++) {
        START(rt, &accepting, blz_tcp_accept(&io, &ln, &conn));
        int fd = dial(&addr);
        blz_handle_cancel(&accepting);
        int64_t rc = FINISH(rt, &accepting);
        assert_true(rc == 0 || rc == -ECANCELED);
        if (rc < 0) {
            late++;
            assert_null(conn.entry_);
            assert_int_equal(AWAIT(rt, blz_tcp_accept(&io, &ln, &conn)), 0);
        }
        char buf[1];
        put(fd, "x", 1);
        assert_int_equal(AWAIT(rt, blz_tcp_read(&io, &conn, buf, 1)), 1);
        blz_tcp_close(&conn);
        close(fd);
    }
    assert_true(late > 0);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(connections_that_were_kept_are_closed_with_the_listener)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp conn;
    blz_io io = {0};
    blz_handle accepting;
    int fds[20];
    char buf[1];

    for (int i = 0; i < 20; i++) {
        START(rt, &accepting, blz_tcp_accept(&io, &ln, &conn));
        fds[i] = dial(&addr);
        blz_handle_cancel(&accepting);
        if (FINISH(rt, &accepting) == 0)
            blz_tcp_close(&conn);
    }
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    for (int i = 0; i < 20; i++) {
        /* The kernel may have one in its hands: it is closed as soon as that is known. */
        while (recv(fds[i], buf, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
            assert_true(blz_rt_turn(rt) >= 0);
        close(fds[i]);
    }
    free_rt(rt);
}

/* ---- out of descriptors ---- */

static struct rlimit old_limit;

/* From now on there are no more descriptors than those that are open. */
static void forbid_descriptors(void)
{
    struct rlimit limit;
    int fd = dup(0);

    check(getrlimit(RLIMIT_NOFILE, &old_limit) == 0);
    limit = old_limit;
    limit.rlim_cur = (rlim_t)fd;
    close(fd);
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void allow_descriptors(void)
{
    check(setrlimit(RLIMIT_NOFILE, &old_limit) == 0);
}

struct starves {
    BLZ_FRAME;
    blz_tcp_listener *ln;
    int client;
    blz_handle accepting;
    blz_io io;
    blz_tcp conn;
    blz_sleep_op nap;
    blz_handle_join_op join;
    int64_t rc;
    uint64_t polls;
    bool cancels;
};

static uint64_t polls_so_far(void)
{
    blz_stats stats;

    blz_rt_stats(blz_rt_current(), &stats);
    return stats.total.polls;
}

/* Lets an accept wait for descriptors for an hour of virtual time; then allows them, or cancels. */
BLZ_ASYNC(starves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->nap, BLZ_MSEC)); /* everything is open that will be */
    forbid_descriptors();
    self->polls = polls_so_far();
    check(BLZ_SPAWN_JOIN(&self->accepting, awaits,
                         .op = blz_tcp_accept(&self->io, self->ln, &self->conn)) == 0);
    BLZ_AWAIT(self->rc, blz_sleep(&self->nap, 10 * BLZ_SEC));
    check(!blz_handle_done(&self->accepting));
    self->polls = polls_so_far() - self->polls;
    if (self->cancels)
        blz_handle_cancel(&self->accepting);
    else
        allow_descriptors();
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->accepting));
    if (self->cancels)
        allow_descriptors();
    check(self->accepting.result == (self->cancels ? -ECANCELED : 0));
    blz_tcp_close(&self->conn);
    BLZ_END((int64_t)self->polls);
}

static void starve(const char *backend, bool cancels)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = backend, .test_clock = true, .workers = 1});
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    int client = dial(&addr);
    int64_t polls = BLZ_BLOCK_ON(rt, starves, .ln = &ln, .client = client, .cancels = cancels);

    /* 10 ms doubling to 1 s: about 16 tries in ten seconds, each a poll or two. */
    assert_true(polls >= 10 && polls <= 60);
    close(client);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(out_of_descriptors_an_accept_pauses_and_goes_on)
{
    starve(backend, false);
}

ON_EACH_BACKEND(a_pause_for_want_of_descriptors_can_be_cancelled)
{
    starve(backend, true);
}

/* ---- listening ---- */

static void where_to_listen_is_checked(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_addr addr, path;
    blz_tcp_listener ln = listen_anywhere(rt, &addr), other;
    int64_t value;

    (void)state;
    assert_int_equal(blz_tcp_listen(&other, "127.0.0.1:1"), -ENXIO); /* no runtime here */
    assert_int_equal(blz_tcp_listen(&other, "nonsense"), -EINVAL);
    assert_int_equal(blz_tcp_listen_with(&other, &addr, &(blz_tcp_listen_options){.rt = rt}),
                     -EADDRINUSE);
    assert_null(other.entry_);
    assert_int_equal(blz_addr_unix(&path, "/x"), 0);
    assert_int_equal(blz_tcp_listen_with(&other, &path, &(blz_tcp_listen_options){.rt = rt}),
                     -EAFNOSUPPORT);
    assert_int_equal(blz_tcp_listener_set(&ln, BLZ_OPT_FAST_OPEN, 16), 0);
    assert_int_equal(blz_tcp_listener_get(&ln, BLZ_OPT_FAST_OPEN, &value), 0);
    assert_int_equal(value, 16);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(a_listening_descriptor_is_taken_over_and_given_back)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr;
    blz_tcp_listener ln = listen_anywhere(rt, &addr);
    blz_tcp conn;
    blz_io io = {0};
    int fd = blz_tcp_listener_into_fd(&ln);

    assert_true(fd >= 0);
    assert_int_equal(blz_tcp_from_fd(&conn, fd, rt), -EINVAL);
    assert_int_equal(blz_tcp_listener_from_fd(&ln, fd, rt), 0);
    int client = dial(&addr);
    assert_int_equal(AWAIT(rt, blz_tcp_accept(&io, &ln, &conn)), 0);
    blz_tcp_close(&conn);
    close(client);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_is_made_and_accepted),
        TEST(what_is_asked_for_before_connecting_is_there_after),
        TEST(a_connection_that_is_refused_leaves_nothing),
        TEST(a_cancelled_connect_leaves_nothing),
        TEST(a_peer_that_is_gone_is_a_connection_all_the_same),
        TEST(several_tasks_accept_from_one_listener),
        TEST(closing_the_listener_ends_the_accept),
        TEST(a_connection_that_comes_with_a_cancellation_is_kept),
        TEST(connections_that_were_kept_are_closed_with_the_listener),
        TEST(out_of_descriptors_an_accept_pauses_and_goes_on),
        TEST(a_pause_for_want_of_descriptors_can_be_cancelled),
        TEST(where_to_listen_is_checked),
        TEST(a_listening_descriptor_is_taken_over_and_given_back),
    };
    return RUN_TESTS(tests);
}
