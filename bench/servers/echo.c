/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP echo server for the load generator of the comparisons:
 *
 *     blitz-echo PORT [THREADS] [--backend io_uring|epoll|poll]
 *
 * A connection that is silent holds no buffer: it reads by lease.
 */
#include <blitz.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct echo {
    BLZ_FRAME;
    blz_tcp conn;
    int64_t n;
    blz_buf buf;
    blz_io io;
};

BLZ_ASYNC(echo)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->n, blz_tcp_read_lease(&self->io, &self->conn, &self->buf));
        if (self->n <= 0)
            break;
        BLZ_AWAIT(self->n,
                  blz_tcp_write_all(&self->io, &self->conn, self->buf.data, self->buf.len));
        blz_buf_release(&self->buf);
        if (self->n < 0)
            break;
    }
    blz_tcp_close(&self->conn);
    BLZ_END(self->n);
}

static int on_conn(blz_tcp conn, void *arg)
{
    (void)arg;
    return BLZ_SPAWN(echo, .conn = conn);
}

struct serve {
    BLZ_FRAME;
    int port;
    blz_tcp_listener ln;
    blz_serve_op op;
    int64_t rc;
};

BLZ_ASYNC(serve)
{
    blz_addr addr;

    BLZ_BEGIN;
    addr = blz_addr_loopback(BLZ_ADDR_V4, (uint16_t)self->port);
    self->rc = blz_tcp_listen_with(&self->ln, &addr, &(blz_tcp_listen_options){.spread = true});
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, blz_tcp_serve(&self->op, &self->ln, on_conn, NULL));
    blz_tcp_listener_close(&self->ln);
out:
    BLZ_END(self->rc);
}

int main(int argc, char **argv)
{
    blz_options options = {.workers = 1};
    int port = 7000, place = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            options.backend = argv[++i];
        else if (place++ == 0)
            port = atoi(argv[i]);
        else
            options.workers = (unsigned)atoi(argv[i]);
    }
    int64_t rc = BLZ_RUN_WITH(&options, serve, .port = port);
    if (rc < 0)
        fprintf(stderr, "blitz-echo: %s\n", blz_strerror(rc));
    return rc < 0;
}
