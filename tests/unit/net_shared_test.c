/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that other processes have open as well: they are left as they were found. */
#include "net_probe.h"

#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* A listener as a parent process would hand it on. */
static int listen_plainly(struct sockaddr_in *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof *addr;

    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    check(fd >= 0 && bind(fd, (struct sockaddr *)addr, len) == 0 && listen(fd, 64) == 0);
    check(getsockname(fd, (struct sockaddr *)addr, &len) == 0);
    return fd;
}

static int dial(const struct sockaddr_in *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof *addr) == 0);
    return fd;
}

/* Whether the process that shares the listener gets the next connection. */
static bool other_accepts(int fd, const struct sockaddr_in *addr, blz_rt *turning)
{
    int client = dial(addr), conn;

    if (turning)
        turn_all(turning);
    conn = becomes_readable(fd) ? accept(fd, NULL, NULL) : -1;
    close(client);
    if (conn >= 0)
        close(conn);
    return conn >= 0;
}

struct accepts {
    BLZ_FRAME;
    int fd;
    bool closes;
    blz_tcp_listener ln;
    blz_tcp conn;
    blz_io io;
    int64_t rc;
};

BLZ_ASYNC(accepts)
{
    BLZ_BEGIN;
    self->rc = blz_tcp_listener_from_fd(&self->ln, self->fd, NULL);
    if (self->rc == 0)
        BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, &self->ln, &self->conn));
    if (self->rc == 0)
        blz_tcp_close(&self->conn);
    if (self->closes)
        blz_tcp_listener_close(&self->ln);
    BLZ_END(self->rc);
}

/* What a child does that has inherited the listener: accepts one connection, and ends. */
static int run_child(char **args)
{
    blz_options options = {.backend = args[0], .workers = (unsigned)atoi(args[2])};
    blz_rt *rt;
    int64_t rc;

    alarm(CHILD_SECONDS);
    if (blz_rt_new(&rt, &options) < 0)
        return 1;
    rc = BLZ_BLOCK_ON(rt, accepts, .fd = atoi(args[1]), .closes = atoi(args[3]));
    return rc != 0 || blz_rt_free(rt) != 0;
}

static pid_t start_child(const char *backend, int fd, unsigned workers, bool closes)
{
    char fd_text[16], workers_text[16], closes_text[16];
    const char *args[] = {"net_shared", "child", backend, fd_text, workers_text, closes_text, NULL};
    pid_t pid;

    snprintf(fd_text, sizeof fd_text, "%d", fd);
    snprintf(workers_text, sizeof workers_text, "%u", workers);
    snprintf(closes_text, sizeof closes_text, "%d", closes);
    check(fcntl(fd, F_SETFD, 0) == 0);
    check(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char **)(uintptr_t)args, environ) == 0);
    return pid;
}

ON_EACH_BACKEND(an_inherited_listener_accepts_when_the_child_has_ended)
{
    for (unsigned variant = 0; variant < 4; variant++) {
        struct sockaddr_in addr;
        int fd = listen_plainly(&addr), status = -1;
        pid_t pid = start_child(backend, fd, 1 + variant / 2, variant % 2);
        int client = dial(&addr);

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(other_accepts(fd, &addr, NULL));
        close(client);
        close(fd);
    }
}

ON_EACH_BACKEND(a_shared_listener_accepts_when_the_runtime_has_ended)
{
    for (int closes = 0; closes < 2; closes++) {
        struct sockaddr_in addr;
        int fd = listen_plainly(&addr), client = dial(&addr);
        blz_rt *rt = new_rt(&(blz_options){.backend = backend, .workers = 1});

        assert_int_equal(BLZ_BLOCK_ON(rt, accepts, .fd = dup(fd), .closes = closes), 0);
        free_rt(rt);
        assert_true(other_accepts(fd, &addr, NULL));
        close(client);
        close(fd);
    }
}

ON_EACH_BACKEND(connections_that_no_task_waits_for_are_left_to_other_processes)
{
    struct sockaddr_in addr;
    int fd = listen_plainly(&addr), client = dial(&addr);
    blz_rt *rt = turning_rt(backend);
    blz_tcp_listener ln;
    blz_tcp conn;
    blz_io io = {0};

    assert_int_equal(blz_tcp_listener_from_fd(&ln, dup(fd), rt), 0);
    assert_int_equal(AWAIT(rt, blz_tcp_accept(&io, &ln, &conn)), 0);
    assert_true(other_accepts(fd, &addr, rt));
    assert_int_equal(blz_tcp_close(&conn), 0);
    int own = blz_tcp_listener_into_fd(&ln);
    assert_true(own >= 0); /* nothing is in flight */
    close(own);
    assert_true(other_accepts(fd, &addr, rt));
    free_rt(rt);
    close(client);
    close(fd);
}

/* The first accept is tried without looking whether there is something. */
ON_EACH_BACKEND(an_accept_does_not_block_where_another_process_has_changed_the_mode)
{
    struct sockaddr_in addr;
    int fd = listen_plainly(&addr), client;
    blz_rt *rt = turning_rt(backend);
    blz_tcp_listener ln;
    blz_tcp conn;
    blz_io io = {0};
    blz_handle accepting;

    assert_int_equal(blz_tcp_listener_from_fd(&ln, dup(fd), rt), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
        START(rt, &accepting, blz_tcp_accept(&io, &ln, &conn));
        assert_false(blz_handle_done(&accepting));
        client = dial(&addr);
        assert_int_equal(FINISH(rt, &accepting), 0);
        assert_int_equal(blz_tcp_close(&conn), 0);
        close(client);
    }
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    free_rt(rt);
    close(fd);
}

ON_EACH_BACKEND(a_socket_that_is_taken_over_is_not_put_into_blocking_mode)
{
    struct sockaddr_in addr;
    int fd = listen_plainly(&addr), pair[2];
    blz_rt *rt = turning_rt(backend);
    blz_tcp_listener ln;
    blz_unix conn;

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(blz_tcp_listener_from_fd(&ln, dup(fd), rt), 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(blz_tcp_listener_close(&ln), 0);
    close(fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(blz_unix_from_fd(&conn, dup(pair[0]), rt), 0);
    assert_true(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(blz_unix_close(&conn), 0);
    close(pair[0]);
    close(pair[1]);
    free_rt(rt);
}

/* ---- a race for each connection ---- */

enum { CONNECTIONS = 200 };

struct race {
    BLZ_FRAME;
    int fd, *count; /* atomic: how many have been accepted by either */
    blz_tcp_listener ln;
    blz_tcp conn;
    blz_io io;
    int64_t rc;
};

BLZ_ASYNC(race)
{
    BLZ_BEGIN;
    self->rc = blz_tcp_listener_from_fd(&self->ln, self->fd, NULL);
    while (self->rc == 0) {
        BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, &self->ln, &self->conn));
        if (self->rc < 0)
            break;
        __atomic_fetch_add(self->count, 1, __ATOMIC_RELAXED);
        blz_tcp_close(&self->conn);
    }
    blz_tcp_listener_close(&self->ln);
    BLZ_END(self->rc);
}

ON_EACH_BACKEND(two_acceptors_that_race_for_each_connection_miss_none)
{
    struct sockaddr_in addr;
    int fd = listen_plainly(&addr), count = 0;
    blz_rt *rt = new_rt(&(blz_options){.backend = backend, .workers = 1});
    blz_handle racing;

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &racing, race, .fd = dup(fd), .count = &count), 0);
    for (int i = 0; i < CONNECTIONS; i++) {
        int client = dial(&addr), conn;
        while (__atomic_load_n(&count, __ATOMIC_RELAXED) <= i) {
            conn = accept(fd, NULL, NULL);
            if (conn >= 0) {
                __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
                close(conn);
            }
            sched_yield();
        }
        close(client);
    }
    blz_handle_cancel(&racing); /* the worker is not blocked */
    assert_int_equal(blz_handle_wait(&racing), 0);
    assert_int_equal(racing.result, -ECANCELED);
    assert_int_equal(count, CONNECTIONS);
    free_rt(rt);
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(an_inherited_listener_accepts_when_the_child_has_ended),
        TEST(a_shared_listener_accepts_when_the_runtime_has_ended),
        TEST(connections_that_no_task_waits_for_are_left_to_other_processes),
        TEST(an_accept_does_not_block_where_another_process_has_changed_the_mode),
        TEST(a_socket_that_is_taken_over_is_not_put_into_blocking_mode),
        TEST(two_acceptors_that_race_for_each_connection_miss_none),
    };

    if (argc == 6 && strcmp(argv[1], "child") == 0)
        return run_child(argv + 2);
    return RUN_TESTS(tests);
}
