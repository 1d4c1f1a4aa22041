/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting, on every backend: at once, after waiting, refused, cancelled, limited, at shutdown.
 * What waits is a connection to a listener whose queue is full: the system does not answer.
 */
#include "io_fixture.h"

#include <blitz/tcp.h>

#include <netinet/in.h>
#include <unistd.h>

struct connects {
    BLZ_FRAME;
    blz_addr addr;
    int64_t limit_ns;
    int64_t rc;
    blz_tcp conn;
    blz_io io;
    blz_timeout limit;
};

static blz_future *made(struct connects *self)
{
    blz_future *io = blz_tcp_connect_with(&self->io, &self->conn, &self->addr, NULL);

    return self->limit_ns ? blz_with_timeout(&self->limit, self->limit_ns, io) : io;
}

BLZ_ASYNC(connects)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, made(self));
    if (self->rc == 0)
        check(blz_tcp_close(&self->conn) == 0);
    else
        check(blz_tcp_close(&self->conn) == -EBADF); /* there is nothing to close */
    BLZ_END(self->rc);
}

static blz_addr addr_of(const struct sockaddr_in *sa)
{
    blz_addr addr;

    assert_int_equal(blz_addr_from_sockaddr(&addr, (const struct sockaddr *)sa, sizeof *sa), 0);
    return addr;
}

/* A listener that answers nobody any more, and the connection that fills its queue. */
struct deaf {
    int listener, client;
    struct sockaddr_in sa;
};

static void open_deaf(struct deaf *deaf)
{
    deaf->listener = tcp_listener(&deaf->sa, 0);
    deaf->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(deaf->client >= 0);
    assert_int_equal(connect(deaf->client, (struct sockaddr *)&deaf->sa, sizeof deaf->sa), 0);
}

static void close_deaf(struct deaf *deaf)
{
    close(deaf->client);
    close(deaf->listener);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void at_once(blz_rt *rt)
{
    struct sockaddr_in sa;
    int listener = tcp_listener(&sa, 64);

    for (int i = 0; i < 20; i++) {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .addr = addr_of(&sa)), 0);
        close(accept(listener, NULL, NULL));
    }
    close(listener);
    for (int i = 0; i < 5; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .addr = addr_of(&sa)), -ECONNREFUSED);
}

static void a_connection_is_made_or_refused(void **state)
{
    (void)state;
    on_every_backend(at_once);
}

static void cancelled(blz_rt *rt)
{
    struct deaf deaf;
    int before;

    open_deaf(&deaf);
    assert_int_equal(BLZ_BLOCK_ON(rt, connects, .addr = addr_of(&deaf.sa), .limit_ns = BLZ_MSEC),
                     -ETIMEDOUT); /* and the workers have what they need */
    before = nr_fds();
    for (int i = 0; i < 20; i++) {
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .addr = addr_of(&deaf.sa)), 0);
        if (i % 2)
            wait_until_idle(rt);
        blz_handle_cancel(&handle);
        assert_int_equal(result_of(&handle), -ECANCELED);
    }
    if (blz_rt_workers(rt) == 1)
        assert_int_equal(nr_fds(), before);
    close_deaf(&deaf);
}

static void a_connection_that_waits_is_cancelled_and_closed(void **state)
{
    (void)state;
    on_every_backend(cancelled);
}

static void a_connection_that_waits_ends_with_the_runtime(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++) {
        blz_rt *rt = io_rt(&io_configs[i]);
        struct deaf deaf;
        blz_handle handle;
        if (!rt)
            continue;
        open_deaf(&deaf);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .addr = addr_of(&deaf.sa)), 0);
        wait_until_idle(rt);
        free_rt(rt);
        assert_int_equal(result_of(&handle), -ECANCELED);
        close_deaf(&deaf);
    }
}

/* The system asks again after a second; all backends wait for that together. */
static void a_connection_that_had_to_wait_is_made(void **state)
{
    enum { MOST = 16 };
    struct deaf deaf[MOST];
    blz_handle handles[MOST];
    blz_rt *rts[MOST];

    (void)state;
    assert_true(nr_io_configs <= MOST);
    for (int i = 0; i < nr_io_configs; i++) {
        rts[i] = io_rt(&io_configs[i]);
        if (!rts[i])
            continue;
        open_deaf(&deaf[i]);
        assert_int_equal(BLZ_SPAWN_ON(rts[i], &handles[i], connects, .addr = addr_of(&deaf[i].sa)),
                         0);
        wait_until_idle(rts[i]);
        assert_false(blz_handle_done(&handles[i]));
        close(accept(deaf[i].listener, NULL, NULL)); /* there is room again */
    }
    for (int i = 0; i < nr_io_configs; i++) {
        if (!rts[i])
            continue;
        assert_int_equal(result_of(&handles[i]), 0);
        free_rt(rts[i]);
        close_deaf(&deaf[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_is_made_or_refused),
        TEST(a_connection_that_waits_is_cancelled_and_closed),
        TEST(a_connection_that_waits_ends_with_the_runtime),
        TEST(a_connection_that_had_to_wait_is_made),
    };
    return RUN_TESTS(tests);
}
