/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: connections, datagrams, descriptors that travel, who the other side is. */
#include "net_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* A name that no other run of this test has. */
static blz_addr abstract_addr(const char *what)
{
    char name[64];
    blz_addr addr;
    int len = snprintf(name, sizeof name, "blitz-test-%d-%s", (int)getpid(), what);

    check(blz_addr_unix_abstract(&addr, name, (size_t)len) == 0);
    return addr;
}

struct ends {
    blz_rt *rt;
    blz_unix a, b;
};

static struct ends new_ends(const char *backend)
{
    struct ends e = {.rt = turning_rt(backend)};

    assert_int_equal(blz_unix_pair(&e.a, &e.b, e.rt), 0);
    return e;
}

static void free_ends(struct ends *e)
{
    blz_unix_close(&e->a);
    blz_unix_close(&e->b);
    free_rt(e->rt);
}

/* ---- connections ---- */

/* The kernel lets go of a listener when it has ended what was in flight. */
static void settle(blz_rt *rt, int fds)
{
    while (nr_fds() > fds)
        assert_true(blz_rt_turn(rt) >= 0);
}

static void connect_at(blz_rt *rt, const blz_addr *addr)
{
    int before = nr_fds();
    blz_unix_listener ln, other;
    blz_unix client, server;
    blz_io io = {0}, in = {0};
    blz_handle accepting;
    blz_unix_cred cred;
    blz_addr seen;
    char buf[8];

    assert_int_equal(blz_unix_listen_with(&ln, addr, &(blz_unix_listen_options){.rt = rt}), 0);
    assert_int_equal(blz_unix_listen_with(&other, addr, &(blz_unix_listen_options){.rt = rt}),
                     -EADDRINUSE);
    START(rt, &accepting, blz_unix_accept(&in, &ln, &server));
    assert_int_equal(AWAIT(rt, blz_unix_connect_with(&io, &client, addr, NULL)), 0);
    assert_int_equal(FINISH(rt, &accepting), 0);
    assert_int_equal(blz_unix_peer_addr(&client, &seen), 0);
    assert_true(blz_addr_equal(&seen, addr));
    assert_int_equal(blz_unix_listener_addr(&ln, &seen), 0);
    assert_true(blz_addr_equal(&seen, addr));
    assert_int_equal(blz_unix_peer_cred(&server, &cred), 0);
    assert_int_equal(cred.pid, getpid());
    assert_int_equal(cred.uid, getuid());
    assert_int_equal(cred.gid, getgid());
    assert_int_equal(AWAIT(rt, blz_unix_write_all(&io, &client, "unix", 4)), 4);
    assert_int_equal(AWAIT(rt, blz_unix_read_exact(&in, &server, buf, 4)), 4);
    assert_int_equal(blz_unix_shutdown(&client, 2), 0);
    assert_int_equal(AWAIT(rt, blz_unix_read(&in, &server, buf, 4)), 0);
    blz_unix_close(&client);
    blz_unix_close(&server);
    assert_int_equal(blz_unix_listener_close(&ln), 0);
    settle(rt, before);
}

ON_EACH_BACKEND(connections_by_abstract_name)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr = abstract_addr("conn");

    connect_at(rt, &addr);
    connect_at(rt, &addr); /* the name is free again */
    free_rt(rt);
}

ON_EACH_BACKEND(connections_by_path_whose_file_is_the_programs)
{
    blz_rt *rt = turning_rt(backend);
    char dir[] = "/tmp/blitz-unix-XXXXXX", path[64];
    blz_unix_listener ln;
    blz_unix conn;
    blz_io io = {0};
    blz_addr addr;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    assert_int_equal(blz_addr_unix(&addr, path), 0);
    assert_int_equal(AWAIT(rt, blz_unix_connect_with(&io, &conn, &addr, NULL)), -ENOENT);
    connect_at(rt, &addr);
    assert_int_equal(AWAIT(rt, blz_unix_connect_with(&io, &conn, &addr, NULL)), -ECONNREFUSED);
    assert_null(conn.entry_);
    assert_int_equal(blz_unix_listen_with(&ln, &addr, &(blz_unix_listen_options){.rt = rt}),
                     -EADDRINUSE); /* the file is still there */
    assert_int_equal(unlink(path), 0);
    connect_at(rt, &addr);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(a_connection_that_comes_with_a_cancellation_is_kept)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr addr = abstract_addr(backend); /* a ring that is gone may hold a name for a while */
    blz_unix_listener ln;
    blz_unix client, server;
    blz_io in = {0}, io = {0};
    blz_handle accepting;

    assert_int_equal(blz_unix_listen_with(&ln, &addr, &(blz_unix_listen_options){.rt = rt}), 0);
    for (int i = 0; i < 20; i++) {
        START(rt, &accepting, blz_unix_accept(&in, &ln, &server));
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        uint32_t len;
        const struct sockaddr *sa = blz_addr_sockaddr(&addr, &len);
        assert_int_equal(connect(fd, sa, len), 0);
        blz_handle_cancel(&accepting);
        if (FINISH(rt, &accepting) < 0)
            assert_int_equal(AWAIT(rt, blz_unix_accept(&in, &ln, &server)), 0);
        blz_unix_close(&server);
        close(fd);
    }
    assert_int_equal(AWAIT(rt, blz_unix_connect_with(&io, &client, &addr, NULL)), 0);
    blz_unix_close(&client);
    assert_int_equal(blz_unix_listener_close(&ln), 0);
    assert_int_equal(blz_unix_listener_close(&ln), -EBADF);
    free_rt(rt);
}

ON_EACH_BACKEND(streams_move_bytes_in_every_form)
{
    struct ends e = new_ends(backend);
    blz_io io = {0}, second = {0};
    blz_handle reading;
    blz_buf lease;
    char a[4], b[8];
    blz_iovec parts[] = {{a, 2}, {b, 8}};

    START(e.rt, &reading, blz_unix_read(&io, &e.a, b, 8));
    assert_int_equal(AWAIT(e.rt, blz_unix_read(&second, &e.a, a, 4)), -EBUSY);
    assert_int_equal(AWAIT(e.rt, blz_unix_write(&second, &e.b, "ab", 2)), 2);
    assert_int_equal(FINISH(e.rt, &reading), 2);
    START(e.rt, &reading, blz_unix_readv(&io, &e.a, parts, 2));
    assert_int_equal(AWAIT(e.rt, blz_unix_writev(&second, &e.b, parts, 1)), 2);
    assert_int_equal(FINISH(e.rt, &reading), 2);
    START(e.rt, &reading, blz_unix_read_lease(&io, &e.a, &lease));
    assert_int_equal(blz_unix_try_write(&e.b, "lease", 5), 5);
    assert_int_equal(FINISH(e.rt, &reading), 5);
    blz_buf_release(&lease);
    assert_int_equal(blz_unix_try_read(&e.a, a, 4), -EAGAIN);
    assert_int_equal(blz_unix_try_write(&e.b, "peek", 4), 4);
    assert_int_equal(AWAIT(e.rt, blz_unix_peek(&io, &e.a, a, 4)), 4);
    assert_int_equal(AWAIT(e.rt, blz_unix_ready(&io, &e.a, BLZ_READABLE)), BLZ_READABLE);
    assert_int_equal(blz_unix_try_read(&e.a, a, 4), 4);
    blz_unix_close(&e.b);
    assert_int_equal(AWAIT(e.rt, blz_unix_write(&io, &e.a, "x", 1)), -EPIPE);
    free_ends(&e);
}

/* ---- descriptors ---- */

/* Open descriptors that are told apart by what can be read from them. */
static void open_fds(int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        int ends[2];
        char mark = (char)('a' + i);
        check(pipe2(ends, O_CLOEXEC) == 0);
        put(ends[1], &mark, 1);
        close(ends[1]);
        fds[i] = ends[0];
    }
}

static void close_fds(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(close(fds[i]), 0);
}

static void check_marks(const int *fds, int count)
{
    char mark;

    for (int i = 0; i < count; i++) {
        assert_int_equal(read(fds[i], &mark, 1), 1);
        assert_int_equal(mark, 'a' + i);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    }
}

ON_EACH_BACKEND(descriptors_travel_with_data)
{
    struct ends e = new_ends(backend);
    blz_msg out = {0}, in = {0};
    blz_handle receiving;
    int fds[BLZ_MSG_FDS + 1], got[BLZ_MSG_FDS];
    char buf[8];

    open_fds(fds, BLZ_MSG_FDS);
    fds[BLZ_MSG_FDS] = fds[0];
    START(e.rt, &receiving, blz_unix_recv_fds(&in, &e.b, buf, 8, got, BLZ_MSG_FDS));
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "abc", 3, fds, BLZ_MSG_FDS)), 3);
    assert_int_equal(FINISH(e.rt, &receiving), 3);
    assert_memory_equal(buf, "abc", 3);
    assert_int_equal(in.nr_fds, BLZ_MSG_FDS);
    assert_int_equal(in.flags, 0);
    check_marks(got, BLZ_MSG_FDS);
    close_fds(got, BLZ_MSG_FDS);
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "x", 1, fds, BLZ_MSG_FDS + 1)),
                     -EINVAL);
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "", 0, fds, 1)), -EINVAL);
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "x", 1, (int[]){-1}, 1)), -EBADF);
    close_fds(fds, BLZ_MSG_FDS);
    free_ends(&e);
}

ON_EACH_BACKEND(descriptors_without_room_are_closed)
{
    struct ends e = new_ends(backend);
    blz_msg out = {0}, in = {0};
    blz_io io = {0};
    int fds[5], got[2], before;
    char buf[8];

    open_fds(fds, 5);
    assert_int_equal(AWAIT(e.rt, blz_unix_write(&io, &e.a, "-", 1)), 1); /* opens the driver */
    assert_int_equal(AWAIT(e.rt, blz_unix_read(&io, &e.b, buf, 8)), 1);
    before = nr_fds();
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "abc", 3, fds, 5)), 3);
    assert_int_equal(AWAIT(e.rt, blz_unix_recv_fds(&in, &e.b, buf, 8, got, 2)), 3);
    assert_int_equal(in.nr_fds, 2);
    assert_int_equal(in.flags, BLZ_MSG_FDS_TRUNCATED);
    check_marks(got, 2);
    assert_int_equal(nr_fds(), before + 2);
    close_fds(got, 2);
    /* Those who do not ask for any get none. */
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "abc", 3, fds, 5)), 3);
    assert_int_equal(AWAIT(e.rt, blz_unix_read(&io, &e.b, buf, 8)), 3);
    assert_int_equal(nr_fds(), before);
    /* Those that are still on their way when both ends close. */
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "abc", 3, fds, 5)), 3);
    close_fds(fds, 5);
    free_ends(&e);
}

ON_EACH_BACKEND(a_cancelled_receive_leaves_descriptors_for_the_next)
{
    struct ends e = new_ends(backend);
    blz_msg out = {0}, in = {0};
    blz_handle receiving;
    int fd, got[2];
    char buf[8];

    for (int i = 0; i < 20; i++) {
        open_fds(&fd, 1);
        START(e.rt, &receiving, blz_unix_recv_fds(&in, &e.b, buf, 8, got, 2));
        if (i % 2) /* before and after */
            assert_int_equal(CANCEL(e.rt, &receiving), -ECANCELED);
        assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "f", 1, &fd, 1)), 1);
        if (i % 2 == 0)
            blz_handle_cancel(&receiving);
        if (i % 2 || FINISH(e.rt, &receiving) < 0)
            assert_int_equal(AWAIT(e.rt, blz_unix_recv_fds(&in, &e.b, buf, 8, got, 2)), 1);
        assert_int_equal(in.nr_fds, 1);
        check_marks(got, 1);
        close(got[0]);
        close(fd);
    }
    free_ends(&e);
}

/* The process may not have more descriptors: what does not fit is dropped, and nothing leaks. */
ON_EACH_BACKEND(out_of_descriptors_the_data_comes_all_the_same)
{
    struct ends e = new_ends(backend);
    struct rlimit limit, old;
    blz_msg out = {0}, in = {0};
    int fds[3], got[3], next;
    char buf[8];

    open_fds(fds, 3);
    assert_int_equal(AWAIT(e.rt, blz_unix_send_fds(&out, &e.a, "abc", 3, fds, 3)), 3);
    assert_int_equal(blz_unix_try_write(&e.b, "-", 1), 1);
    assert_int_equal(AWAIT(e.rt, blz_unix_recv_fds(&in, &e.a, buf, 8, got, 3)), 1);
    next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit = old;
    limit.rlim_cur = (rlim_t)next + 1; /* room for one */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int64_t rc = AWAIT(e.rt, blz_unix_recv_fds(&in, &e.b, buf, 8, got, 3));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rc, 3);
    assert_true(in.nr_fds <= 1);
    assert_int_equal(in.flags, BLZ_MSG_FDS_TRUNCATED);
    close_fds(got, (int)in.nr_fds);
    close_fds(fds, 3);
    free_ends(&e);
}

/* ---- datagrams ---- */

ON_EACH_BACKEND(datagrams_go_to_names)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr at_a = abstract_addr("a"), at_b = abstract_addr("b"), from, nowhere;
    blz_unix_dgram a, b, nameless;
    blz_msg in = {0}, out = {0};
    blz_handle receiving;
    char buf[8];

    nowhere = abstract_addr("nowhere");
    assert_int_equal(blz_unix_dgram_bind_with(&a, &at_a, &(blz_unix_dgram_options){.rt = rt}), 0);
    assert_int_equal(blz_unix_dgram_bind_with(&b, &at_b, &(blz_unix_dgram_options){.rt = rt}), 0);
    assert_int_equal(blz_unix_dgram_bind_with(&nameless, NULL, &(blz_unix_dgram_options){.rt = rt}),
                     0);
    START(rt, &receiving, blz_unix_dgram_recv(&in, &b, buf, 8, &from));
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send_to(&out, &a, "hi", 2, &at_b)), 2);
    assert_int_equal(FINISH(rt, &receiving), 2);
    assert_true(blz_addr_equal(&from, &at_a));
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send_to(&out, &nameless, "", 0, &at_b)), 0);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_recv(&in, &b, buf, 8, &from)), 0);
    assert_int_equal(blz_addr_family(&from), BLZ_ADDR_NONE);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send_to(&out, &a, "x", 1, &nowhere)), -ECONNREFUSED);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send(&out, &a, "x", 1)), -ENOTCONN);
    assert_int_equal(blz_unix_dgram_connect(&a, &at_b), 0);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send(&out, &a, "long one", 8)), 8);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_recv(&in, &b, buf, 4, NULL)), 4);
    assert_int_equal(in.flags, BLZ_MSG_TRUNCATED);
    blz_unix_dgram_close(&a);
    blz_unix_dgram_close(&b);
    blz_unix_dgram_close(&nameless);
    free_rt(rt);
}

ON_EACH_BACKEND(a_full_receiver_makes_a_connected_sender_wait_and_another_fail)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr at_b = abstract_addr("full");
    blz_unix_dgram connected, free_one, b;
    blz_msg in = {0}, out = {0}, other = {0};
    blz_handle sending;
    char buf[8];
    int sent = 0;

    assert_int_equal(blz_unix_dgram_bind_with(&b, &at_b, &(blz_unix_dgram_options){.rt = rt}), 0);
    assert_int_equal(blz_unix_dgram_bind_with(&connected, NULL,
                                              &(blz_unix_dgram_options){.rt = rt}),
                     0);
    assert_int_equal(blz_unix_dgram_bind_with(&free_one, NULL, &(blz_unix_dgram_options){.rt = rt}),
                     0);
    assert_int_equal(blz_unix_dgram_connect(&connected, &at_b), 0);
    for (;;) {
        START(rt, &sending, blz_unix_dgram_send(&out, &connected, "x", 1));
        if (!blz_handle_done(&sending))
            break;
        assert_int_equal(FINISH(rt, &sending), 1);
        sent++;
    }
    assert_true(sent > 0);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send_to(&other, &free_one, "y", 1, &at_b)), -ENOBUFS);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_recv(&in, &b, buf, 8, NULL)), 1);
    assert_int_equal(FINISH(rt, &sending), 1);
    blz_unix_dgram_close(&connected);
    blz_unix_dgram_close(&free_one);
    blz_unix_dgram_close(&b);
    free_rt(rt);
}

ON_EACH_BACKEND(datagrams_carry_descriptors)
{
    blz_rt *rt = turning_rt(backend);
    blz_unix_dgram a, b;
    blz_msg in = {0}, out = {0};
    int fds[3], got[4];
    char buf[8];

    open_fds(fds, 3);
    assert_int_equal(blz_unix_dgram_pair(&a, &b, rt), 0);
    assert_int_equal(blz_unix_dgram_set(&b, BLZ_OPT_PASS_CRED, 1),
                     0); /* something else comes too */
    assert_int_equal(AWAIT(rt, blz_unix_dgram_send_fds(&out, &a, "", 0, fds, 3)), 0);
    assert_int_equal(AWAIT(rt, blz_unix_dgram_recv_fds(&in, &b, buf, 8, got, 4)), 0);
    assert_int_equal(in.nr_fds, 3);
    assert_int_equal(in.flags, 0);
    check_marks(got, 3);
    close_fds(got, 3);
    close_fds(fds, 3);
    blz_unix_dgram_close(&a);
    blz_unix_dgram_close(&b);
    free_rt(rt);
}

/* ---- addresses that are text ---- */

struct by_text {
    char address[80];
    blz_unix_listener ln;
    blz_unix_dgram dgram;
};

/* On a worker, where there is a runtime. */
static int64_t open_by_text(void *arg)
{
    struct by_text *t = arg;
    blz_unix_listener ln;
    blz_unix_dgram dgram;

    check(blz_unix_listen(&ln, "unix") == -EINVAL);
    check(ln.entry_ == NULL);
    check(blz_unix_listen(&ln, "127.0.0.1:1") == -EAFNOSUPPORT);
    check(blz_unix_dgram_bind(&dgram, "unix") == -EINVAL);
    check(dgram.entry_ == NULL);
    check(blz_unix_dgram_bind(&dgram, "127.0.0.1:1") == -EAFNOSUPPORT);
    check(blz_unix_dgram_bind(&t->dgram, "unix:") == 0);
    return blz_unix_listen(&t->ln, t->address);
}

static void check_text(const blz_addr *addr, const char *expected)
{
    char text[BLZ_ADDR_TEXT];

    assert_true(blz_addr_format(addr, text, sizeof text) > 0);
    assert_string_equal(text, expected);
}

ON_EACH_BACKEND(addresses_are_given_as_text)
{
    blz_rt *rt = turning_rt(backend);
    struct by_text t;
    blz_unix_connect_op op = {0};
    blz_lazy lazy;
    blz_unix conn;
    blz_addr addr;

    snprintf(t.address, sizeof t.address, "unix:@blitz-test-%d-%s", (int)getpid(), backend);
    assert_int_equal(blz_unix_listen(&t.ln, t.address), -ENXIO); /* this thread has no runtime */
    assert_int_equal(AWAIT(rt, blz_unix_connect(&op, &conn, t.address)), -ECONNREFUSED);
    assert_int_equal(AWAIT(rt, blz_lazy_init(&lazy, open_by_text, &t)), 0);
    assert_int_equal(AWAIT(rt, blz_unix_connect(&op, &conn, "unix")), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_unix_connect(&op, &conn, "127.0.0.1:1")), -EAFNOSUPPORT);
    assert_null(conn.entry_);
    assert_int_equal(AWAIT(rt, blz_unix_connect(&op, &conn, t.address)), 0);
    assert_int_equal(blz_unix_peer_addr(&conn, &addr), 0);
    check_text(&addr, t.address);
    assert_int_equal(blz_unix_close(&conn), 0);
    assert_int_equal(blz_unix_dgram_close(&t.dgram), 0);
    assert_int_equal(blz_unix_listener_close(&t.ln), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(options_are_set_before_connecting)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr at = abstract_addr("at"), from = abstract_addr("from"), seen;
    blz_unix_listener ln;
    blz_unix conn;
    blz_io io = {0};
    int64_t size;

    assert_int_equal(blz_unix_listen_with(&ln, &at, &(blz_unix_listen_options){.rt = rt}), 0);
    assert_int_equal(AWAIT(rt, blz_unix_connect_with(&io, &conn, &at,
                                                     &(blz_unix_options){.bind = &from,
                                                                         .send_buffer = 65536,
                                                                         .recv_buffer = 32768})),
                     0);
    assert_int_equal(blz_unix_local_addr(&conn, &seen), 0);
    assert_true(blz_addr_equal(&seen, &from));
    assert_int_equal(blz_unix_get(&conn, BLZ_OPT_SEND_BUFFER, &size), 0);
    assert_in_range(size, 65536, 2 * 65536); /* Linux reports twice what was asked for */
    assert_int_equal(blz_unix_get(&conn, BLZ_OPT_RECV_BUFFER, &size), 0);
    assert_in_range(size, 32768, 2 * 32768);
    blz_unix_close(&conn);
    assert_int_equal(AWAIT(rt, blz_unix_connect_with(&io, &conn, &at,
                                                     &(blz_unix_options){.bind = &at})),
                     -EADDRINUSE);
    assert_null(conn.entry_);
    blz_unix_listener_close(&ln);
    free_rt(rt);
}

static void descriptors_of_another_kind_are_refused(void **state)
{
    struct ends e = new_ends("poll");
    blz_unix_dgram dgram;
    blz_unix_listener ln;
    blz_tcp tcp;
    blz_addr v4 = blz_addr_loopback(BLZ_ADDR_V4, 1);
    int fd = blz_unix_into_fd(&e.a);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(blz_tcp_from_fd(&tcp, fd, e.rt), -EINVAL);
    assert_int_equal(blz_unix_dgram_from_fd(&dgram, fd, e.rt), -EINVAL);
    assert_int_equal(blz_unix_listener_from_fd(&ln, fd, e.rt), -EINVAL);
    assert_int_equal(blz_unix_from_fd(&e.a, fd, e.rt), 0);
    assert_int_equal(blz_unix_listen_with(&ln, &v4, &(blz_unix_listen_options){.rt = e.rt}),
                     -EAFNOSUPPORT);
    assert_int_equal(blz_unix_dgram_bind_with(&dgram, &v4, &(blz_unix_dgram_options){.rt = e.rt}),
                     -EAFNOSUPPORT);
    free_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connections_by_abstract_name),
        TEST(connections_by_path_whose_file_is_the_programs),
        TEST(a_connection_that_comes_with_a_cancellation_is_kept),
        TEST(streams_move_bytes_in_every_form),
        TEST(descriptors_travel_with_data),
        TEST(descriptors_without_room_are_closed),
        TEST(a_cancelled_receive_leaves_descriptors_for_the_next),
        TEST(out_of_descriptors_the_data_comes_all_the_same),
        TEST(datagrams_go_to_names),
        TEST(a_full_receiver_makes_a_connected_sender_wait_and_another_fail),
        TEST(datagrams_carry_descriptors),
        TEST(addresses_are_given_as_text),
        TEST(options_are_set_before_connecting),
        TEST(descriptors_of_another_kind_are_refused),
    };
    return RUN_TESTS(tests);
}
