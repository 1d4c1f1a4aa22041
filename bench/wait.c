/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for descriptors, one benchmark for each way. A round trip of one byte between two tasks:
 * by pipes, by a TCP connection, by UDP sockets, and by eventfds and a TCP connection that belong
 * to the program (blz_fd). A pipe that is filled and emptied, in pieces of 16 KiB. A wait for a
 * descriptor that is ready already. A TCP connection that is made, accepted and closed.
 */
#include "bench.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 16 << 10 };

/* ---- round trips of streams ---- */

struct stream_echo {
    BLZ_FRAME;
    blz_stream in, out;
    uint64_t left;
    int64_t n;
    blz_io io;
    char byte;
};

BLZ_ASYNC(stream_echo)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->n, blz_stream_read(&self->io, &self->in, &self->byte, 1));
        bench_check(self->n == 1 ? 0 : -EIO, "read");
        BLZ_AWAIT(self->n, blz_stream_write(&self->io, &self->out, &self->byte, 1));
        bench_check(self->n == 1 ? 0 : -EIO, "write");
    }
    BLZ_END(0);
}

struct stream_ask {
    BLZ_FRAME;
    struct run *run;
    blz_stream in, out;
    blz_stream other_in, other_out;
    uint64_t left;
    int64_t n;
    blz_handle other;
    blz_handle_join_op join;
    blz_io io;
    char byte;
};

BLZ_ASYNC(stream_ask)
{
    BLZ_BEGIN;
    bench_check(BLZ_SPAWN_JOIN(&self->other, stream_echo, .in = self->other_in,
                               .out = self->other_out, .left = self->run->n),
                "spawn");
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        BLZ_AWAIT(self->n, blz_stream_write(&self->io, &self->out, &self->byte, 1));
        bench_check(self->n == 1 ? 0 : -EIO, "write");
        BLZ_AWAIT(self->n, blz_stream_read(&self->io, &self->in, &self->byte, 1));
        bench_check(self->n == 1 ? 0 : -EIO, "read");
    }
    bench_stop(self->run);
    BLZ_AWAIT(self->n, blz_handle_join(&self->join, &self->other));
    BLZ_END(self->n);
}

static void pingpong_pipe(struct run *run)
{
    blz_pipe in[2], out[2];

    for (int i = 0; i < 2; i++)
        bench_check(blz_pipe_new(&in[i], &out[i], run->rt), "pipe");
    bench_check(BLZ_BLOCK_ON(run->rt, stream_ask, .run = run, .in = blz_pipe_stream(&in[0]),
                             .out = blz_pipe_stream(&out[1]), .other_in = blz_pipe_stream(&in[1]),
                             .other_out = blz_pipe_stream(&out[0])),
                "pingpong_pipe");
    for (int i = 0; i < 2; i++) {
        blz_pipe_close(&in[i]);
        blz_pipe_close(&out[i]);
    }
}

/* ---- a pipe that is filled ---- */

struct pipe_fill {
    BLZ_FRAME;
    const blz_pipe *out;
    uint64_t left;
    int64_t n;
    blz_io io;
};

BLZ_ASYNC(pipe_fill)
{
    static char piece[PIECE];

    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->n, blz_pipe_write_all(&self->io, self->out, piece, PIECE));
        bench_check(self->n == PIECE ? 0 : -EIO, "write");
    }
    BLZ_END(0);
}

struct pipe_empty {
    BLZ_FRAME;
    struct run *run;
    blz_pipe in, out;
    uint64_t left;
    int64_t n;
    blz_handle other;
    blz_handle_join_op join;
    blz_io io;
    char piece[PIECE];
};

BLZ_ASYNC(pipe_empty)
{
    BLZ_BEGIN;
    bench_check(blz_pipe_new(&self->in, &self->out, NULL), "pipe");
    bench_check(BLZ_SPAWN_JOIN(&self->other, pipe_fill, .out = &self->out, .left = self->run->n),
                "spawn");
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        BLZ_AWAIT(self->n, blz_pipe_read_exact(&self->io, &self->in, self->piece, PIECE));
        bench_check(self->n == PIECE ? 0 : -EIO, "read");
    }
    bench_stop(self->run);
    BLZ_AWAIT(self->n, blz_handle_join(&self->join, &self->other));
    blz_pipe_close(&self->in);
    blz_pipe_close(&self->out);
    BLZ_END(self->n);
}

static void pipe_stream(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, pipe_empty, .run = run), "pipe_stream");
}

/* ---- TCP ---- */

struct tcp_accept_one {
    BLZ_FRAME;
    const blz_tcp_listener *listener;
    blz_tcp *conn;
    blz_io io;
    int64_t rc;
};

BLZ_ASYNC(tcp_accept_one)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, self->listener, self->conn));
    BLZ_END(self->rc);
}

struct tcp_connect_one {
    BLZ_FRAME;
    blz_tcp_listener listener;
    blz_addr addr;
    blz_tcp *a, *b;
    blz_io io;
    blz_handle other;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(tcp_connect_one)
{
    BLZ_BEGIN;
    bench_check(blz_tcp_listen(&self->listener, "127.0.0.1:0"), "listen");
    bench_check(blz_tcp_listener_addr(&self->listener, &self->addr), "addr");
    bench_check(BLZ_SPAWN_JOIN(&self->other, tcp_accept_one, .listener = &self->listener,
                               .conn = self->b),
                "spawn");
    BLZ_AWAIT(self->rc, blz_tcp_connect_with(&self->io, self->a, &self->addr, NULL));
    bench_check(self->rc, "connect");
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->other));
    bench_check(self->rc, "accept");
    blz_tcp_listener_close(&self->listener);
    BLZ_END(0);
}

static void pingpong_tcp(struct run *run)
{
    blz_tcp a, b;

    bench_check(BLZ_BLOCK_ON(run->rt, tcp_connect_one, .a = &a, .b = &b), "connect");
    blz_stream stream_a = blz_tcp_stream(&a), stream_b = blz_tcp_stream(&b);
    bench_check(BLZ_BLOCK_ON(run->rt, stream_ask, .run = run, .in = stream_a, .out = stream_a,
                             .other_in = stream_b, .other_out = stream_b),
                "pingpong_tcp");
    blz_tcp_close(&a);
    blz_tcp_close(&b);
}

struct accept_many {
    BLZ_FRAME;
    const blz_tcp_listener *listener;
    uint64_t left;
    blz_tcp conn;
    blz_io io;
    int64_t rc;
    char byte;
};

/* The client closes first, and with a reset: ports would run out otherwise. */
BLZ_ASYNC(accept_many)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, self->listener, &self->conn));
        bench_check(self->rc, "accept");
        BLZ_AWAIT(self->rc, blz_tcp_read(&self->io, &self->conn, &self->byte, 1));
        blz_tcp_close(&self->conn);
    }
    BLZ_END(0);
}

struct connect_many {
    BLZ_FRAME;
    struct run *run;
    blz_tcp_listener listener;
    blz_addr addr;
    blz_tcp conn;
    uint64_t left;
    blz_io io;
    blz_handle other;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(connect_many)
{
    BLZ_BEGIN;
    bench_check(blz_tcp_listen(&self->listener, "127.0.0.1:0"), "listen");
    bench_check(blz_tcp_listener_addr(&self->listener, &self->addr), "addr");
    bench_check(BLZ_SPAWN_JOIN(&self->other, accept_many, .listener = &self->listener,
                               .left = self->run->n),
                "spawn");
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, blz_tcp_connect_with(&self->io, &self->conn, &self->addr, NULL));
        bench_check(self->rc, "connect");
        bench_check(blz_tcp_set(&self->conn, BLZ_OPT_LINGER, 0), "linger");
        blz_tcp_close(&self->conn);
    }
    bench_stop(self->run);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->other));
    blz_tcp_listener_close(&self->listener);
    BLZ_END(self->rc);
}

static void connect_accept(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, connect_many, .run = run), "connect_accept");
}

/* ---- UDP ---- */

struct udp_echo {
    BLZ_FRAME;
    const blz_udp *socket;
    uint64_t left;
    bool asks;
    int64_t n;
    blz_msg msg;
    char byte;
};

BLZ_ASYNC(udp_echo)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->n, blz_udp_recv(&self->msg, self->socket, &self->byte, 1));
        bench_check(self->n, "recv");
        if (self->asks && self->left == 1)
            break; /* the last answer */
        BLZ_AWAIT(self->n, blz_udp_send(&self->msg, self->socket, &self->byte, 1));
        bench_check(self->n, "send");
    }
    BLZ_END(0);
}

struct udp_pair {
    BLZ_FRAME;
    struct run *run;
    blz_udp sockets[2];
    blz_addr addrs[2];
    int i;
    int64_t n;
    blz_handle tasks[2];
    blz_handle_join_op join;
    blz_msg msg;
};

BLZ_ASYNC(udp_pair)
{
    BLZ_BEGIN;
    for (int i = 0; i < 2; i++) {
        bench_check(blz_udp_bind(&self->sockets[i], "127.0.0.1:0"), "bind");
        bench_check(blz_udp_local_addr(&self->sockets[i], &self->addrs[i]), "addr");
    }
    for (int i = 0; i < 2; i++)
        bench_check(blz_udp_connect(&self->sockets[i], &self->addrs[1 - i]), "connect");
    bench_start(self->run);
    for (int i = 0; i < 2; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->tasks[i], udp_echo, .socket = &self->sockets[i],
                                   .asks = i == 0, .left = self->run->n),
                    "spawn");
    BLZ_AWAIT(self->n, blz_udp_send(&self->msg, &self->sockets[0], "x", 1));
    for (self->i = 0; self->i < 2; self->i++)
        BLZ_AWAIT(self->n, blz_handle_join(&self->join, &self->tasks[self->i]));
    bench_stop(self->run);
    for (int i = 0; i < 2; i++)
        blz_udp_close(&self->sockets[i]);
    BLZ_END(0);
}

static void pingpong_udp(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, udp_pair, .run = run), "pingpong_udp");
}

/* ---- descriptors of the program ---- */

static int new_eventfd(unsigned value)
{
    int fd = eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK);

    bench_check(fd < 0 ? -errno : 0, "eventfd");
    return fd;
}

static void add_to(int fd)
{
    bench_check(eventfd_write(fd, 1) < 0 ? -errno : 0, "eventfd_write");
}

static void take_from(int fd)
{
    eventfd_t value;

    bench_check(eventfd_read(fd, &value) < 0 ? -errno : 0, "eventfd_read");
}

static void send_to(int fd)
{
    bench_check(send(fd, "x", 1, 0) == 1 ? 0 : -errno, "send");
}

static void receive_from(int fd)
{
    char byte;

    bench_check(recv(fd, &byte, 1, MSG_DONTWAIT) == 1 ? 0 : -errno, "recv");
}

struct fd_side {
    BLZ_FRAME;
    int in, out;
    void (*take)(int fd);
    void (*give)(int fd);
    uint64_t left;
    blz_fd fd;
    blz_io io;
    int64_t rc;
};

BLZ_ASYNC(fd_side)
{
    BLZ_BEGIN;
    bench_check(blz_fd_attach(&self->fd, self->in), "attach");
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, blz_fd_readable(&self->io, &self->fd));
        bench_check(self->rc, "readable");
        self->take(self->in);
        self->give(self->out);
    }
    blz_fd_detach(&self->fd);
    BLZ_END(0);
}

struct fd_pair {
    BLZ_FRAME;
    struct run *run;
    int in[2], out[2];
    void (*take)(int fd);
    void (*give)(int fd);
    int i;
    blz_handle tasks[2];
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(fd_pair)
{
    BLZ_BEGIN;
    bench_start(self->run);
    for (int i = 0; i < 2; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->tasks[i], fd_side, .in = self->in[i], .out = self->out[i],
                                   .take = self->take, .give = self->give, .left = self->run->n),
                    "spawn");
    for (self->i = 0; self->i < 2; self->i++)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->tasks[self->i]));
    bench_stop(self->run);
    BLZ_END(0);
}

static void pingpong_eventfd(struct run *run)
{
    int a = new_eventfd(1), b = new_eventfd(0);

    bench_check(BLZ_BLOCK_ON(run->rt, fd_pair, .run = run, .in = {a, b}, .out = {b, a},
                             .take = take_from, .give = add_to),
                "pingpong_eventfd");
    close(a);
    close(b);
}

static void pingpong_foreign_tcp(struct run *run)
{
    blz_tcp conns[2];
    int a, b;

    bench_check(BLZ_BLOCK_ON(run->rt, tcp_connect_one, .a = &conns[0], .b = &conns[1]), "connect");
    a = (int)blz_tcp_into_fd(&conns[0]);
    b = (int)blz_tcp_into_fd(&conns[1]);
    send_to(a);
    bench_check(BLZ_BLOCK_ON(run->rt, fd_pair, .run = run, .in = {a, b}, .out = {a, b},
                             .take = receive_from, .give = send_to),
                "pingpong_foreign_tcp");
    close(a);
    close(b);
}

struct fd_ready {
    BLZ_FRAME;
    struct run *run;
    int number;
    uint64_t left;
    blz_fd fd;
    blz_io io;
    int64_t rc;
};

BLZ_ASYNC(fd_ready)
{
    BLZ_BEGIN;
    bench_check(blz_fd_attach(&self->fd, self->number), "attach");
    bench_start(self->run);
    for (self->left = self->run->n; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, blz_fd_readable(&self->io, &self->fd));
        bench_check(self->rc, "readable");
    }
    bench_stop(self->run);
    blz_fd_detach(&self->fd);
    BLZ_END(0);
}

static void fd_is_ready(struct run *run)
{
    int fd = new_eventfd(1);

    bench_check(BLZ_BLOCK_ON(run->rt, fd_ready, .run = run, .number = fd), "fd_ready");
    close(fd);
}

const struct bench wait_benches[] = {
    {"pingpong_pipe", 100000, pingpong_pipe, false},
    {"pingpong_tcp", 100000, pingpong_tcp, false},
    {"pingpong_udp", 100000, pingpong_udp, false},
    {"pingpong_eventfd", 100000, pingpong_eventfd, false},
    {"pingpong_foreign_tcp", 100000, pingpong_foreign_tcp, false},
    {"pipe_stream", 100000, pipe_stream, false},
    {"fd_ready", 200000, fd_is_ready, false},
    {"connect_accept", 20000, connect_accept, false},
    {NULL, 0, NULL, false},
};
