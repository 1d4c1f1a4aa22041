/* SPDX-License-Identifier: Apache-2.0 */
/* See talk.h. */
#include "talk.h"

#include "harness.h"

#include "sched/sched.h"

#include <blitz/tcp.h>

#include <errno.h>
#include <string.h>

/* ---- on any worker ---- */

struct calls_us {
    BLZ_FRAME;
    blz_addr addr;
    int64_t rc;
    blz_tcp conn;
    blz_io io;
    char buf[5];
};

BLZ_ASYNC(calls_us)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_connect_with(&self->io, &self->conn, &self->addr, NULL));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_tcp_read_exact(&self->io, &self->conn, self->buf, 5));
    check(self->rc == 5);
    BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, self->buf, 5));
    check(self->rc == 5);
    BLZ_AWAIT(self->rc, blz_tcp_read(&self->io, &self->conn, self->buf, 5));
    check(self->rc == 0); /* the end */
    blz_tcp_close(&self->conn);
    BLZ_END(0);
}

struct talks {
    BLZ_FRAME;
    blz_tcp_listener listener;
    blz_addr addr;
    blz_handle client;
    blz_tcp conn;
    blz_buf lease;
    blz_io io;
    blz_timeout limit;
    blz_handle_join_op join;
    int64_t rc;
};

/* 0, or the first error. */
BLZ_ASYNC(talks)
{
    BLZ_BEGIN;
    self->rc = blz_tcp_listen(&self->listener, "127.0.0.1:0");
    if (self->rc < 0)
        goto out;
    check(blz_tcp_listener_addr(&self->listener, &self->addr) == 0);
    check(BLZ_SPAWN_JOIN(&self->client, calls_us, .addr = self->addr) == 0);
    BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, &self->listener, &self->conn));
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 2 * BLZ_MSEC,
                                         blz_tcp_read_lease(&self->io, &self->conn, &self->lease)));
    check(self->rc == -ETIMEDOUT);
    BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, "hello", 5));
    check(self->rc == 5);
    BLZ_AWAIT(self->rc, blz_tcp_read_lease(&self->io, &self->conn, &self->lease));
    check(self->rc == 5 && memcmp(self->lease.data, "hello", 5) == 0);
    blz_buf_release(&self->lease);
    blz_tcp_close(&self->conn);
    blz_tcp_listener_close(&self->listener);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->client));
    self->rc = self->client.result;
out:
    BLZ_END(self->rc);
}

int64_t talk(blz_rt *rt)
{
    return BLZ_BLOCK_ON(rt, talks);
}

/* ---- on each ---- */

struct talks_everywhere {
    BLZ_FRAME;
    blz_scope scope;
    blz_scope_op wait;
    int64_t rc;
};

static void spawn_everywhere(blz_scope *scope, const blz_rt *rt)
{
    struct talks frame = {.blz_frame.ops = &talks_ops};
    blz_spawn_args args = {.scope = scope, .pinned = true, .site = "talks"};

    for (unsigned i = 0; i < blz_rt_workers(rt); i++)
        check(blz__spawn_pinned(&args, &frame, sizeof frame, i) == 0);
}

BLZ_ASYNC(talks_everywhere)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    spawn_everywhere(&self->scope, blz_rt_current());
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

int64_t talk_everywhere(blz_rt *rt)
{
    return BLZ_BLOCK_ON(rt, talks_everywhere);
}
