/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdown in phases: what guards do to what they are around, and a server that has them. */
#include "clock_rt.h"
#include "phases.h"

#include <unistd.h>

/* ---- guards around futures ---- */

static void a_guard_leaves_with_what_it_is_around(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle work = session(rt, working(s), false);

    (void)state;
    assert_int_equal(report_of(s).working, 1);
    advance(rt, BLZ_HOUR);
    assert_int_equal(result_of(&work), 7);
    assert_int_equal(report_of(s).working, 0);
    work = session(rt, working(s), true);
    blz_handle_cancel(&work); /* from outside, and shielded */
    turn_all(rt);
    assert_int_equal(report_of(s).working, 1);
    advance(rt, BLZ_HOUR);
    assert_int_equal(result_of(&work), 7);
    work = session(rt, working(s), false);
    blz_handle_cancel(&work);
    turn_all(rt);
    assert_int_equal(result_of(&work), -ECANCELED);
    assert_int_equal(report_of(s).working, 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

static void in_a_cancelled_task_the_guard_leaves_all_the_same(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_guard guards[] = {working(s), {NULL, 0}};
    blz_handle work;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &work, session, .guard = guards[i]), 0);
        blz_handle_cancel(&work); /* before it has begun */
        turn_all(rt);
        assert_int_equal(result_of(&work), -ECANCELED);
        assert_int_equal(report_of(s).working, 0);
    }
    blz_shutdown_free(s);
    free_rt(rt);
}

static void without_a_guard_nothing_is_started(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle work = session(rt, (blz_guard){NULL, 0}, false);

    (void)state;
    assert_int_equal(result_of(&work), -ESHUTDOWN);
    free_rt(rt);
}

struct crowd {
    BLZ_FRAME;
    blz_guard guard;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_guard_op op;
};

BLZ_ASYNC(crowd)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 5; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, naps, .shielded = false) == 0);
    BLZ_AWAIT(self->rc,
              blz_guard_run(&self->op, &self->guard, blz_scope_join(&self->wait, &self->scope)));
    check(blz_scope_live(&self->scope) == 0);
    BLZ_END(self->rc);
}

static void around_a_scope_all_children_are_cancelled(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_shutdown *s = new_quiet_shutdown();
    blz_handle crowd, run = run_it(rt, s);

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &crowd, crowd, .guard = working(s)), 0);
    turn_all(rt);
    blz_shutdown_begin(s);
    turn_all(rt);
    blz_shutdown_hurry(s);
    turn_all(rt);
    assert_int_equal(result_of(&crowd), -ECANCELED);
    assert_int_equal(result_of(&run), 0);
    blz_shutdown_free(s);
    free_rt(rt);
}

/* ---- a server ---- */

struct server {
    blz_shutdown *shutdown;
    blz_tcp_listener listener;
    struct event serving, accepted;
};

struct talk {
    BLZ_FRAME;
    blz_tcp conn;
    blz_guard guard;
    int64_t rc;
    blz_io io;
    blz_guard_op op;
    char buf[16];
};

BLZ_ASYNC(talk)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      blz_tcp_read(&self->io, &self->conn, self->buf, 16)));
    blz_tcp_close(&self->conn);
    BLZ_END(self->rc);
}

static int on_conn(blz_tcp conn, void *arg)
{
    struct server *server = arg;
    blz_guard guard;
    int rc = blz_guard_work(&guard, server->shutdown);

    if (rc == 0 && (rc = BLZ_SPAWN(talk, .conn = conn, .guard = guard)) < 0)
        blz_guard_leave(&guard);
    event_post(&server->accepted);
    return rc;
}

struct serve_all {
    BLZ_FRAME;
    struct server *server;
    blz_guard guard;
    int64_t rc;
    blz_serve_op serve;
    blz_guard_op op;
};

BLZ_ASYNC(serve_all)
{
    BLZ_BEGIN;
    event_post(&self->server->serving);
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      blz_tcp_serve(&self->serve, &self->server->listener, on_conn,
                                                    self->server)));
    blz_tcp_listener_close(&self->server->listener);
    BLZ_END(self->rc);
}

static int dial(const blz_tcp_listener *listener)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *sa;
    blz_addr addr;
    uint32_t len;

    check(blz_tcp_listener_addr(listener, &addr) == 0);
    sa = blz_addr_sockaddr(&addr, &len);
    check(fd >= 0 && connect(fd, sa, len) == 0);
    return fd;
}

/* Ends in the given phase: the client closes when that has begun. */
static void stop_server(blz_rt *rt, int phase)
{
    struct server server = {.serving = EVENT_INIT, .accepted = EVENT_INIT};
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_shutdown_options options = {.no_signals = true,
                                    .stop_ns = BLZ_NEVER,
                                    .drain_ns = BLZ_NEVER,
                                    .cancel_ns = BLZ_NEVER,
                                    .allocator = test_memory()};
    blz_handle serve, run;
    int clients[3];

    assert_int_equal(blz_shutdown_new(&server.shutdown, &options), 0);
    assert_int_equal(blz_tcp_listen_with(&server.listener, &addr,
                                         &(blz_tcp_listen_options){.rt = rt, .spread = true}),
                     0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &run, runs, .shutdown = server.shutdown), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &serve, serve_all, .server = &server,
                                  .guard = accepting(server.shutdown)),
                     0);
    event_wait(&server.serving, 1);
    for (int i = 0; i < 3; i++)
        clients[i] = dial(&server.listener);
    event_wait(&server.accepted, 3);
    blz_shutdown_begin(server.shutdown);
    assert_int_equal(blz_token_wait(blz_shutdown_token(server.shutdown, BLZ_SHUTDOWN_DRAINING)), 0);
    assert_int_equal(blz_handle_wait(&serve), 0); /* nobody accepts any more */
    assert_int_equal(serve.result, -ECANCELED);
    if (phase == BLZ_SHUTDOWN_CANCELLING)
        blz_shutdown_hurry(server.shutdown);
    else
        for (int i = 0; i < 3; i++)
            assert_int_equal(write(clients[i], "x", 1), 1); /* what they wait for */
    assert_int_equal(blz_handle_wait(&run), 0);
    assert_int_equal(run.result, 0);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    assert_int_equal(report_of(server.shutdown).steps[phase].end, BLZ_SHUTDOWN_DONE);
    blz_shutdown_free(server.shutdown);
}

static void stop_servers(blz_rt *rt)
{
    stop_server(rt, BLZ_SHUTDOWN_DRAINING);
    stop_server(rt, BLZ_SHUTDOWN_CANCELLING);
}

static void a_server_stops_in_phases(void **state)
{
    (void)state;
    on_every_backend_of(2, stop_servers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_guard_leaves_with_what_it_is_around),
        TEST(in_a_cancelled_task_the_guard_leaves_all_the_same),
        TEST(without_a_guard_nothing_is_started),
        TEST(around_a_scope_all_children_are_cancelled),
        TEST(a_server_stops_in_phases),
    };
    return RUN_TESTS(tests);
}
