/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with sockets, names and pipes. */
#include "scenarios.h"

#include <blitz/console.h>
#include <blitz/dns.h>
#include <blitz/pipe.h>
#include <blitz/tcp.h>
#include <blitz/udp.h>
#include <blitz/unix.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a program may lack the right to do is no error here. */
static int unless_forbidden(int rc)
{
    return rc == -EPERM ? 0 : rc;
}

static int on_loopback(blz_addr *addr)
{
    blz_addr loopback = blz_addr_loopback(BLZ_ADDR_V4, 0);
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&loopback, &len);

    return blz_addr_from_sockaddr(addr, sa, len);
}

/* ---- TCP ---- */

struct talks_tcp {
    BLZ_FRAME;
    int64_t rc, value;
    blz_addr addr;
    blz_tcp_listener listener;
    blz_tcp a, b;
    blz_io io;
    blz_buf lease;
    blz_iovec iov[2];
    char buf[16], device[BLZ_DEVICE_NAME];
};

static int open_listener(struct talks_tcp *self)
{
    blz_tcp_listen_options options = {.backlog = 5, .fast_open = 1};
    int rc = on_loopback(&self->addr);

    if (rc == 0)
        rc = blz_tcp_listen_with(&self->listener, &self->addr, &options);
    return rc < 0 ? rc : blz_tcp_listener_addr(&self->listener, &self->addr);
}

static int ask_tcp(struct talks_tcp *self)
{
    int rc = blz_tcp_set(&self->a, BLZ_OPT_KEEPALIVE, 1);

    if (rc == 0)
        rc = blz_tcp_get(&self->a, BLZ_OPT_KEEPALIVE, &self->value);
    if (rc == 0)
        rc = unless_forbidden(blz_tcp_set_device(&self->a, "lo"));
    if (rc == 0)
        rc = blz_tcp_get_device(&self->a, self->device);
    if (rc == 0)
        rc = blz_tcp_peer_addr(&self->a, &self->addr);
    return rc;
}

/* The socket leaves the runtime and comes back. */
static int readopt_tcp(blz_tcp *conn)
{
    int64_t fd = blz_tcp_into_fd(conn);
    int rc;

    if (fd < 0)
        return (int)fd;
    rc = blz_tcp_from_fd(conn, (blz_sysfd)fd, NULL);
    if (rc < 0)
        close((int)fd);
    return rc;
}

static int a_file(void)
{
    return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

BLZ_ASYNC(talks_tcp)
{
    BLZ_BEGIN;
    DO(open_listener(self));
    STEP(blz_tcp_connect_with(&self->io, &self->a, &self->addr, NULL));
    STEP(blz_tcp_accept(&self->io, &self->listener, &self->b));
    DO(ask_tcp(self));
    DO(readopt_tcp(&self->a));
    STEP(blz_tcp_write_all(&self->io, &self->a, "hello", 5));
    STEP(blz_tcp_peek(&self->io, &self->b, self->buf, 5));
    STEP(blz_tcp_read_exact(&self->io, &self->b, self->buf, 5));
    self->iov[0] = (blz_iovec){self->buf, 2};
    self->iov[1] = (blz_iovec){self->buf + 2, 3};
    STEP(blz_tcp_writev(&self->io, &self->b, self->iov, 2));
    STEP(blz_tcp_readv(&self->io, &self->a, self->iov, 2));
    STEP(blz_tcp_write_all(&self->io, &self->b, self->buf, 5));
    STEP(blz_tcp_read_lease(&self->io, &self->a, &self->lease));
    blz_buf_release(&self->lease);
    DO(a_file());
    self->value = self->rc;
    STEP(blz_tcp_sendfile(&self->io, &self->a, (blz_sysfd)self->value, 0, 5));
    if (self->value > 2)
        close((int)self->value);
    STEP(blz_tcp_read(&self->io, &self->b, self->buf, 5));
    STEP(blz_tcp_ready(&self->io, &self->b, BLZ_WRITABLE));
    DO(blz_tcp_shutdown(&self->a, BLZ_SHUT_WRITE));
    STEP(blz_tcp_read(&self->io, &self->b, self->buf, 5));
    blz_tcp_close(&self->a);
    blz_tcp_close(&self->b);
    blz_tcp_listener_close(&self->listener);
    BLZ_END(self->rc);
}

RUN_SCENARIO(talks_tcp, options)

/* ---- a server on every worker ---- */

struct serves_tcp {
    BLZ_FRAME;
    int64_t rc;
    blz_addr addr;
    blz_tcp_listener listener;
    blz_tcp conn;
    blz_io io;
    blz_handle server;
    blz_handle_join_op join;
    char buf[1];
};

struct serves_some {
    BLZ_FRAME;
    int64_t rc;
    blz_tcp_listener listener;
    blz_serve_op op;
};

static int drop_connection(blz_tcp conn, void *arg)
{
    (void)arg;
    blz_tcp_close(&conn);
    return 0;
}

BLZ_ASYNC(serves_some)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_serve(&self->op, &self->listener, drop_connection, NULL));
    blz_tcp_listener_close(&self->listener); /* resets a connection that waits */
    BLZ_END(self->rc);
}

static int open_spread(struct serves_tcp *self)
{
    blz_addr any = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_tcp_listen_options options = {.spread = true, .fast_open = 1};
    int rc = blz_tcp_listen_with(&self->listener, &any, &options);

    if (rc == 0)
        rc = blz_tcp_listener_addr(&self->listener, &self->addr);
    if (rc == 0)
        rc = BLZ_SPAWN_JOIN(&self->server, serves_some, .listener = self->listener);
    return rc;
}

BLZ_ASYNC(serves_tcp)
{
    BLZ_BEGIN;
    DO(open_spread(self));
    STEP(blz_tcp_connect_with(&self->io, &self->conn, &self->addr, NULL));
    STEP(blz_tcp_read(&self->io, &self->conn, self->buf, 1)); /* until the server drops it */
    blz_tcp_close(&self->conn);
    blz_tcp_listener_close(&self->listener);
    if (self->server.task) {
        int64_t joined;
        BLZ_AWAIT(joined, blz_handle_join(&self->join, &self->server));
        check(joined == 0);
        if (self->server.result != -ECANCELED && self->server.result != -EBADF)
            self->rc = self->server.result; /* the cause of what the client has seen */
    }
    BLZ_END(self->rc);
}

static int64_t run_serves_tcp(const blz_options *options)
{
    blz_options with_two = *options;
    blz_rt *rt;
    int64_t rc;

    with_two.workers = 2;
    rc = blz_rt_new(&rt, &with_two);
    if (rc < 0)
        return rc;
    watch_rt(rt);
    rc = BLZ_BLOCK_ON(rt, serves_tcp);
    free_rt(rt);
    return rc < 0 ? rc : 0;
}

/* ---- UDP ---- */

struct talks_udp {
    BLZ_FRAME;
    int64_t rc;
    blz_addr addr, from, group;
    blz_udp a, b;
    blz_msg msg;
    blz_datagram datagram;
    char buf[16];
};

static int open_udp(struct talks_udp *self)
{
    int rc = blz_udp_bind(&self->a, "127.0.0.1:0");

    if (rc == 0)
        rc = blz_udp_bind(&self->b, "127.0.0.1:0");
    if (rc == 0)
        rc = blz_udp_local_addr(&self->b, &self->addr);
    if (rc == 0)
        rc = blz_udp_connect(&self->a, &self->addr);
    if (rc == 0)
        rc = blz_udp_connect(&self->a, NULL);
    return rc < 0 ? rc : blz_udp_connect(&self->a, &self->addr);
}

static int use_group(struct talks_udp *self)
{
    int rc = blz_addr_parse(&self->group, "239.1.2.3:0");

    if (rc == 0)
        rc = blz_udp_set_multicast_interface(&self->b, 1);
    if (rc == 0)
        rc = blz_udp_join(&self->b, &self->group, 1);
    return rc < 0 ? rc : blz_udp_leave(&self->b, &self->group, 1);
}

static blz_datagram *one_datagram(struct talks_udp *self, size_t len)
{
    self->datagram = (blz_datagram){.data = self->buf, .len = len};
    return &self->datagram;
}

BLZ_ASYNC(talks_udp)
{
    BLZ_BEGIN;
    DO(open_udp(self));
    DO(use_group(self));
    STEP(blz_udp_send(&self->msg, &self->a, "one", 3));
    STEP(blz_udp_recv_from(&self->msg, &self->b, self->buf, sizeof self->buf, &self->from));
    STEP(blz_udp_send_to(&self->msg, &self->b, "two", 3, &self->from));
    STEP(blz_udp_recv(&self->msg, &self->a, self->buf, sizeof self->buf));
    STEP(blz_udp_send_batch(&self->msg, &self->a, one_datagram(self, 3), 1));
    STEP(blz_udp_recv_batch(&self->msg, &self->b, one_datagram(self, sizeof self->buf), 1));
    DO((int)blz_udp_try_send(&self->a, "three", 5));
    STEP(blz_udp_peek(&self->msg, &self->b, self->buf, sizeof self->buf, NULL));
    DO((int)blz_udp_try_recv(&self->b, self->buf, sizeof self->buf));
    blz_udp_close(&self->a);
    blz_udp_close(&self->b);
    BLZ_END(self->rc);
}

RUN_SCENARIO(talks_udp, options)

/* ---- Unix sockets ---- */

struct talks_unix {
    BLZ_FRAME;
    int64_t rc;
    blz_addr addr;
    blz_unix_listener listener;
    blz_unix a, b;
    blz_unix_dgram c, d;
    blz_unix_connect_op connect;
    blz_io io;
    blz_msg msg;
    blz_unix_cred cred;
    blz_sysfd fds[1];
    char buf[16], path[64], address[80];
};

static int listen_unix(struct talks_unix *self)
{
    snprintf(self->path, sizeof self->path, "/tmp/blitz-contract-%d", (int)getpid());
    snprintf(self->address, sizeof self->address, "unix:%s", self->path);
    unlink(self->path);
    return blz_unix_listen(&self->listener, self->address);
}

static int open_datagrams(struct talks_unix *self)
{
    int rc = blz_addr_unix_abstract(&self->addr, self->path, strlen(self->path));

    if (rc == 0)
        rc = blz_unix_dgram_bind_with(&self->c, &self->addr, NULL);
    if (rc == 0)
        blz_unix_dgram_close(&self->c);
    return rc < 0 ? rc : blz_unix_dgram_pair(&self->c, &self->d, NULL);
}

BLZ_ASYNC(talks_unix)
{
    BLZ_BEGIN;
    DO(listen_unix(self));
    STEP(blz_unix_connect(&self->connect, &self->a, self->address));
    STEP(blz_unix_accept(&self->io, &self->listener, &self->b));
    STEP(blz_unix_send_fds(&self->msg, &self->a, "x", 1, (const blz_sysfd[]){0}, 1));
    STEP(blz_unix_recv_fds(&self->msg, &self->b, self->buf, sizeof self->buf, self->fds, 1));
    if (self->rc >= 0 && self->msg.nr_fds == 1)
        close(self->fds[0]);
    blz_unix_close(&self->b);
    if (self->rc >= 0)
        self->rc = blz_unix_peer_cred(&self->a, &self->cred);
    blz_unix_close(&self->a);
    DO(blz_unix_pair(&self->a, &self->b, NULL));
    DO(open_datagrams(self));
    STEP(blz_unix_dgram_send(&self->msg, &self->c, "y", 1));
    STEP(blz_unix_dgram_recv(&self->msg, &self->d, self->buf, sizeof self->buf, NULL));
    blz_unix_dgram_close(&self->c);
    blz_unix_dgram_close(&self->d);
    blz_unix_close(&self->a);
    blz_unix_close(&self->b);
    blz_unix_listener_close(&self->listener);
    unlink(self->path);
    BLZ_END(self->rc);
}

RUN_SCENARIO(talks_unix, options)

/* ---- a private socket ---- */

static int64_t run_console(const blz_options *options)
{
    char address[80];
    blz_console *console;
    blz_rt *rt;
    int64_t rc = blz_rt_new(&rt, options);

    if (rc < 0)
        return rc;
    watch_rt(rt);
    snprintf(address, sizeof address, "unix:/tmp/blitz-contract-console-%d", (int)getpid());
    rc = blz_console_new(&console, rt, &(blz_console_options){.address = address});
    if (rc == 0)
        blz_console_free(console);
    free_rt(rt);
    return rc;
}

/* ---- names ---- */

struct looks_up {
    BLZ_FRAME;
    int64_t rc;
    blz_addr addr;
    blz_dns dns;
    blz_addrs addrs;
};

BLZ_ASYNC(looks_up)
{
    BLZ_BEGIN;
    DO(blz_addr_parse(&self->addr, "[fe80::1%lo]:80"));
    STEP(blz_lookup(&self->dns, &self->addrs, "localhost", "80", NULL));
    blz_addrs_free(&self->addrs);
    BLZ_END(self->rc);
}

RUN_SCENARIO(looks_up, options)

/* ---- pipes ---- */

struct uses_pipes {
    BLZ_FRAME;
    int64_t rc;
    blz_pipe in, out, fifo;
    blz_io io;
    blz_iovec iov[2];
    char buf[16], path[64];
};

static int open_fifo(struct uses_pipes *self)
{
    snprintf(self->path, sizeof self->path, "/tmp/blitz-contract-fifo-%d", (int)getpid());
    unlink(self->path);
    check(mkfifo(self->path, 0600) == 0);
    return blz_pipe_open(&self->fifo, self->path, BLZ_PIPE_BOTH, NULL);
}

/* A pipe that stays in blocking mode, as another process may have it. */
static int adopt_pipe(struct uses_pipes *self)
{
    int fds[2], rc;

    check(pipe2(fds, O_CLOEXEC) == 0);
    rc = blz_pipe_from_fd(&self->in, fds[0], NULL);
    if (rc < 0) {
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    rc = blz_pipe_from_fd(&self->out, fds[1], NULL);
    if (rc < 0)
        close(fds[1]);
    return rc;
}

BLZ_ASYNC(uses_pipes)
{
    BLZ_BEGIN;
    DO(blz_pipe_new(&self->in, &self->out, NULL));
    DO((int)blz_pipe_set_capacity(&self->out, 8192));
    DO((int)blz_pipe_capacity(&self->out));
    STEP(blz_pipe_write_all(&self->io, &self->out, "hello", 5));
    STEP(blz_pipe_read_exact(&self->io, &self->in, self->buf, 5));
    blz_pipe_close(&self->in);
    blz_pipe_close(&self->out);
    DO(adopt_pipe(self));
    self->iov[0] = (blz_iovec){self->buf, 2};
    self->iov[1] = (blz_iovec){self->buf + 2, 3};
    STEP(blz_pipe_writev(&self->io, &self->out, self->iov, 2));
    STEP(blz_pipe_readv(&self->io, &self->in, self->iov, 2));
    DO(open_fifo(self));
    STEP(blz_pipe_write(&self->io, &self->fifo, "x", 1));
    STEP(blz_pipe_read(&self->io, &self->fifo, self->buf, 1));
    blz_pipe_close(&self->in);
    blz_pipe_close(&self->out);
    blz_pipe_close(&self->fifo);
    if (self->path[0])
        unlink(self->path);
    BLZ_END(self->rc);
}

RUN_SCENARIO(uses_pipes, options)

const struct scenario net_scenarios[] = {
    {"tcp", run_talks_tcp, NULL},    {"tcp server", run_serves_tcp, NULL},
    {"udp", run_talks_udp, NULL},    {"unix", run_talks_unix, NULL},
    {"console", run_console, NULL},  {"names", run_looks_up, NULL},
    {"pipes", run_uses_pipes, NULL}, {NULL, NULL, NULL},
};
