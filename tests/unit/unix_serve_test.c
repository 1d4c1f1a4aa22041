/* SPDX-License-Identifier: Apache-2.0 */
/* Serving Unix sockets: every connection is served, or kept for the next accept. */
#include "net_probe.h"

struct server {
    blz_rt *rt;
    blz_addr addr;
    blz_unix_listener ln;
    blz_handle handle;
    struct event accepted;
    int refuse; /* every n-th connection; 0: none */
};

struct serves {
    BLZ_FRAME;
    struct server *server;
    int (*on_conn)(blz_unix conn, void *arg);
    blz_serve_op op;
    int64_t rc;
};

BLZ_ASYNC(serves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_unix_serve(&self->op, &self->server->ln, self->on_conn, self->server));
    BLZ_END(self->rc);
}

struct echoes {
    BLZ_FRAME;
    blz_unix conn;
    int64_t n;
    blz_io io;
    char buf[64];
};

BLZ_ASYNC(echoes)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->n, blz_unix_read(&self->io, &self->conn, self->buf, sizeof self->buf));
        if (self->n <= 0)
            break;
        BLZ_AWAIT(self->n, blz_unix_write_all(&self->io, &self->conn, self->buf, (size_t)self->n));
        if (self->n < 0)
            break;
    }
    blz_unix_close(&self->conn);
    BLZ_END(0);
}

static int echo_conn(blz_unix conn, void *arg)
{
    struct server *server = arg;

    check(conn.entry_ != NULL);
    event_post(&server->accepted);
    if (server->refuse && event_count(&server->accepted) % server->refuse == 0)
        return -1;
    return BLZ_SPAWN(echoes, .conn = conn);
}

static int dial(const struct server *server)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&server->addr, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, sa, len) == 0);
    return fd;
}

/* At an address that the system chooses, which needs no file. */
static void start_server(struct server *server, const char *backend, unsigned workers, int refuse)
{
    *server = (struct server){.accepted = EVENT_INIT, .refuse = refuse};
    server->rt = new_rt(&(blz_options){.backend = backend, .workers = workers});
    assert_int_equal(blz_addr_unix_abstract(&server->addr, "", 0), 0);
    assert_int_equal(blz_unix_listen_with(&server->ln, &server->addr,
                                          &(blz_unix_listen_options){.rt = server->rt}),
                     0);
    assert_int_equal(blz_unix_listener_addr(&server->ln, &server->addr), 0);
    assert_int_equal(BLZ_SPAWN_ON(server->rt, &server->handle, serves, .server = server,
                                  .on_conn = echo_conn),
                     0);
}

static bool is_echoed(int fd)
{
    char buf[5] = "";

    put(fd, "hello", 5);
    return read_fully(fd, buf, 5) == 5 && memcmp(buf, "hello", 5) == 0;
}

ON_EACH_BACKEND(every_connection_is_served)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        struct server server;
        int fds[20];

        start_server(&server, backend, workers, 0);
        for (int i = 0; i < 20; i++)
            fds[i] = dial(&server);
        for (int i = 0; i < 20; i++) {
            assert_true(is_echoed(fds[i]));
            close(fds[i]);
        }
        assert_int_equal(event_count(&server.accepted), 20);
        blz_handle_cancel(&server.handle);
        assert_int_equal(blz_handle_wait(&server.handle), 0);
        assert_int_equal(server.handle.result, -ECANCELED);
        assert_int_equal(blz_unix_listener_close(&server.ln), 0);
        free_rt(server.rt);
    }
}

ON_EACH_BACKEND(a_connection_that_is_refused_is_closed_and_serving_goes_on)
{
    struct server server;
    char byte;

    start_server(&server, backend, 2, 2);
    for (int i = 0; i < 10; i++) {
        int fd = dial(&server);
        if (i % 2)
            assert_int_equal(read(fd, &byte, 1), 0);
        else
            assert_true(is_echoed(fd));
        close(fd);
    }
    blz_handle_cancel(&server.handle);
    assert_int_equal(blz_handle_wait(&server.handle), 0);
    assert_int_equal(blz_unix_listener_close(&server.ln), 0);
    free_rt(server.rt);
}

ON_EACH_BACKEND(closing_the_listener_ends_it)
{
    struct server server;
    blz_unix_listener copy;

    start_server(&server, backend, 2, 0);
    int fd = dial(&server);
    assert_true(is_echoed(fd));
    copy = server.ln;
    assert_int_equal(blz_unix_listener_close(&server.ln), 0);
    assert_int_equal(blz_handle_wait(&server.handle), 0);
    assert_int_equal(server.handle.result, -EBADF);
    server.ln = copy;
    assert_int_equal(BLZ_BLOCK_ON(server.rt, serves, .server = &server, .on_conn = echo_conn),
                     -EBADF);
    assert_true(is_echoed(fd)); /* what has been accepted goes on */
    close(fd);
    free_rt(server.rt);
}

ON_EACH_BACKEND(connections_that_wait_when_serving_ends_are_kept)
{
    enum { ROUNDS = 20, EACH = 10 };

    for (int round = 0; round < ROUNDS; round++) {
        struct server server;
        int fds[EACH];
        blz_unix conn;
        blz_io io = {0};

        start_server(&server, backend, 2, 0);
        for (int i = 0; i < EACH; i++)
            fds[i] = dial(&server);
        blz_handle_cancel(&server.handle);
        assert_int_equal(blz_handle_wait(&server.handle), 0);
        int64_t left = EACH - event_count(&server.accepted);
        assert_true(left >= 0);
        for (int i = 0; i < left; i++) {
            int64_t rc =
                BLZ_BLOCK_ON(server.rt, awaits, .op = blz_unix_accept(&io, &server.ln, &conn));
            assert_int_equal(rc, 0);
            blz_unix_close(&conn);
        }
        for (int i = 0; i < EACH; i++)
            close(fds[i]);
        assert_int_equal(blz_unix_listener_close(&server.ln), 0);
        free_rt(server.rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_connection_is_served),
        TEST(a_connection_that_is_refused_is_closed_and_serving_goes_on),
        TEST(closing_the_listener_ends_it),
        TEST(connections_that_wait_when_serving_ends_are_kept),
    };

    return RUN_TESTS(tests);
}
