/* SPDX-License-Identifier: Apache-2.0 */
/* Serving: connections are spread over workers, and nothing is lost when it ends. */
#include "net_probe.h"

#include "base/atomic.h"

#include <netinet/in.h>

enum { MAX_WORKERS = 4 };

struct server {
    blz_rt *rt;
    blz_addr addr;
    blz_tcp_listener ln;
    blz_handle handle;
    struct event accepted;
    pthread_mutex_t lock;
    int threads[MAX_WORKERS], counts[MAX_WORKERS]; /* connections by thread */
};

struct serves {
    BLZ_FRAME;
    struct server *server;
    int (*on_conn)(blz_tcp conn, void *arg);
    blz_serve_op op;
    int64_t rc;
};

BLZ_ASYNC(serves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_serve(&self->op, &self->server->ln, self->on_conn, self->server));
    BLZ_END(self->rc);
}

/* Notes on which thread it is, and does not want the connection. */
static int count_conn(blz_tcp conn, void *arg)
{
    struct server *server = arg;
    int i = 0, me = thread_id();

    check(conn.entry_ != NULL);
    pthread_mutex_lock(&server->lock);
    while (server->threads[i] && server->threads[i] != me)
        i++;
    check(i < MAX_WORKERS);
    server->threads[i] = me;
    server->counts[i]++;
    pthread_mutex_unlock(&server->lock);
    event_post(&server->accepted);
    return -1;
}

static int dial(const struct server *server)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&server->addr, &len);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, sa, len) == 0);
    return fd;
}

static void start_server(struct server *server, const char *backend, unsigned workers, bool spread,
                         int (*on_conn)(blz_tcp conn, void *arg))
{
    *server = (struct server){.accepted = EVENT_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};
    server->rt = new_rt(&(blz_options){.backend = backend, .workers = workers});
    server->addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    assert_int_equal(blz_tcp_listen_with(&server->ln, &server->addr,
                                         &(blz_tcp_listen_options){.rt = server->rt,
                                                                   .spread = spread}),
                     0);
    assert_int_equal(blz_tcp_listener_addr(&server->ln, &server->addr), 0);
    assert_int_equal(BLZ_SPAWN_ON(server->rt, &server->handle, serves, .server = server,
                                  .on_conn = on_conn),
                     0);
    close(dial(server)); /* when this has been accepted, all sockets are open */
    event_wait(&server->accepted, 1);
}

static int64_t end_server(struct server *server)
{
    assert_int_equal(blz_handle_wait(&server->handle), 0);
    free_rt(server->rt);
    return server->handle.result;
}

ON_EACH_BACKEND(a_thousand_connections_are_spread_evenly_over_two_workers)
{
    enum { MANY = 1000 };
    struct server server;
    int64_t rc;
    int most = 0;

    start_server(&server, backend, 2, true, count_conn);
    for (int i = 0; i < MANY; i++) {
        close(dial(&server));
        event_wait(&server.accepted, i + 2);
    }
    for (int i = 0; i < MAX_WORKERS; i++)
        most = server.counts[i] > most ? server.counts[i] : most;
    assert_int_equal(server.counts[0] + server.counts[1], MANY + 1);
    assert_true(most <= MANY * 6 / 10);
    blz_handle_cancel(&server.handle);
    assert_int_equal(blz_tcp_listener_close(&server.ln), 0);
    rc = end_server(&server);
    assert_true(rc == -ECANCELED || rc == -EBADF); /* both end it */
}

ON_EACH_BACKEND(without_spreading_one_worker_accepts)
{
    struct server server;

    start_server(&server, backend, 3, false, count_conn);
    for (int i = 0; i < 50; i++)
        close(dial(&server));
    event_wait(&server.accepted, 51);
    assert_int_equal(server.counts[0], 51);
    assert_int_equal(blz_tcp_listener_close(&server.ln), 0); /* ends it */
    assert_int_equal(end_server(&server), -EBADF);
}

ON_EACH_BACKEND(closing_the_listener_ends_all_acceptors)
{
    for (unsigned workers = 1; workers <= MAX_WORKERS; workers++) {
        struct server server;
        start_server(&server, backend, workers, true, count_conn);
        blz_tcp_listener copy = server.ln;
        assert_int_equal(blz_tcp_listener_close(&server.ln), 0);
        assert_int_equal(blz_handle_wait(&server.handle), 0);
        assert_int_equal(server.handle.result, -EBADF);
        server.ln = copy;
        assert_int_equal(BLZ_BLOCK_ON(server.rt, serves, .server = &server, .on_conn = count_conn),
                         -EBADF);
        free_rt(server.rt);
    }
}

/* Serving is cancelled while connections wait: each is either served, or kept. */
ON_EACH_BACKEND(connections_that_wait_when_serving_ends_are_kept)
{
    enum { ROUNDS = 20, EACH = 10 };

    for (int round = 0; round < ROUNDS; round++) {
        struct server server;
        int fds[EACH];
        blz_tcp conn;
        blz_io io = {0};

        start_server(&server, backend, 3, true, count_conn);
        for (int i = 0; i < EACH; i++)
            fds[i] = dial(&server);
        blz_handle_cancel(&server.handle);
        assert_int_equal(blz_handle_wait(&server.handle), 0);
        assert_int_equal(server.handle.result, -ECANCELED);
        int64_t left = 1 + EACH - event_count(&server.accepted);
        assert_true(left >= 0);
        for (int i = 0; i < left; i++) {
            int64_t rc =
                BLZ_BLOCK_ON(server.rt, awaits, .op = blz_tcp_accept(&io, &server.ln, &conn));
            assert_int_equal(rc, 0);
            blz_tcp_close(&conn);
        }
        for (int i = 0; i < EACH; i++)
            close(fds[i]);
        assert_int_equal(blz_tcp_listener_close(&server.ln), 0);
        free_rt(server.rt);
    }
}

/* ---- what a server does ---- */

struct echoes {
    BLZ_FRAME;
    blz_tcp conn;
    int64_t n;
    blz_io io;
    char buf[64];
};

BLZ_ASYNC(echoes)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->n, blz_tcp_read(&self->io, &self->conn, self->buf, sizeof self->buf));
        if (self->n <= 0)
            break;
        BLZ_AWAIT(self->n, blz_tcp_write_all(&self->io, &self->conn, self->buf, (size_t)self->n));
        if (self->n < 0)
            break;
    }
    blz_tcp_close(&self->conn);
    BLZ_END(0);
}

static int echo_conn(blz_tcp conn, void *arg)
{
    struct server *server = arg;

    event_post(&server->accepted);
    return BLZ_SPAWN(echoes, .conn = conn);
}

static void *talk(void *arg)
{
    struct server *server = arg;

    for (int i = 0; i < 20; i++) {
        int fd = dial(server);
        char buf[5];
        for (int j = 0; j < 10; j++) {
            put(fd, "hello", 5);
            check(read_fully(fd, buf, 5) == 5);
        }
        close(fd);
    }
    return NULL;
}

ON_EACH_BACKEND(many_clients_talk_to_tasks_that_began_on_every_worker)
{
    struct server server;
    pthread_t threads[8];

    start_server(&server, backend, 3, true, echo_conn);
    for (int i = 0; i < 8; i++)
        threads[i] = start_thread(talk, &server);
    for (int i = 0; i < 8; i++)
        join_thread(threads[i]);
    assert_int_equal(event_count(&server.accepted), 161);
    blz_handle_cancel(&server.handle);
    assert_int_equal(blz_handle_wait(&server.handle), 0);
    assert_int_equal(blz_tcp_listener_close(&server.ln), 0);
    free_rt(server.rt);
}

static void a_runtime_that_ends_takes_a_server_with_it(void **state)
{
    struct server server;

    (void)state;
    for (int i = 0; i < 10; i++) {
        start_server(&server, NULL, 3, true, echo_conn);
        int fd = dial(&server);
        blz_handle_detach(&server.handle);
        free_rt(server.rt); /* with an open listener, and perhaps a connection */
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_thousand_connections_are_spread_evenly_over_two_workers),
        TEST(without_spreading_one_worker_accepts),
        TEST(closing_the_listener_ends_all_acceptors),
        TEST(connections_that_wait_when_serving_ends_are_kept),
        TEST(many_clients_talk_to_tasks_that_began_on_every_worker),
        TEST(a_runtime_that_ends_takes_a_server_with_it),
    };
    return RUN_TESTS(tests);
}
