/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation that is prepared and not awaited: nothing is written.
 *
 * gcc -O0:   warning: ignoring return value of .blz_tcp_write_all. declared with attribute
 * gcc -O2:   warning: ignoring return value of .blz_tcp_write_all. declared with attribute
 * clang -O0: warning: ignoring return value of function declared with 'warn_unused_result'
 * clang -O2: warning: ignoring return value of function declared with 'warn_unused_result'
 */
#include "case.h"
#include <blitz/tcp.h>

struct greets {
    BLZ_FRAME;
    int64_t rc;
    blz_tcp conn;
    blz_io io;
};

BLZ_ASYNC(greets)
{
    BLZ_BEGIN;
#ifdef BAD
    blz_tcp_write_all(&self->io, &self->conn, "hello\n", 6);
#else
    BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, "hello\n", 6));
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(greets)
