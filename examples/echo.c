/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server: what a client sends, it gets back.
 *
 *     build/examples/echo &
 *     echo hello | nc -N 127.0.0.1 7000
 *
 * One task accepts, and each connection has a task of its own. They run on all cores.
 */
#include <blitz.h>
#include <stdio.h>

/* One connection: ends on EOF, error, 30 s of silence, or shutdown. */
struct echo {
    BLZ_FRAME; /* first: the future header */
    blz_tcp conn;
    int64_t n;
    blz_timeout limit;
    blz_io io; /* one operation in flight at a time */
    char buf[4096];
};

BLZ_ASYNC(echo) /* static blz_poll echo_poll(struct echo *self, blz_cx *cx) */
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->n, blz_with_timeout(&self->limit, 30 * BLZ_SEC,
                                            blz_tcp_read(&self->io, &self->conn, self->buf,
                                                         sizeof self->buf)));
        if (self->n <= 0)
            break;
        BLZ_AWAIT(self->n, blz_tcp_write_all(&self->io, &self->conn, self->buf, (size_t)self->n));
        if (self->n < 0)
            break;
    }
    blz_tcp_close(&self->conn); /* runs on every exit, cancellation included */
    BLZ_END(self->n);
}

struct serve {
    BLZ_FRAME;
    blz_tcp_listener ln;
    blz_tcp conn;
    blz_io io;
    int64_t rc;
};

BLZ_ASYNC(serve)
{
    BLZ_BEGIN;
    self->rc = blz_tcp_listen(&self->ln, "127.0.0.1:7000");
    while (self->rc >= 0) {
        BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, &self->ln, &self->conn));
        if (self->rc >= 0 && BLZ_SPAWN(echo, .conn = self->conn) < 0)
            blz_tcp_close(&self->conn);
    }
    blz_tcp_listener_close(&self->ln);
    BLZ_END(self->rc);
}

int main(void)
{
    int64_t rc = BLZ_RUN(serve); /* default runtime, until serve ends */
    if (rc < 0)
        fprintf(stderr, "echo: %s\n", blz_strerror(rc));
    return rc < 0;
}
