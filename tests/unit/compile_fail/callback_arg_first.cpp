// SPDX-License-Identifier: Apache-2.0
/*
 * A callback that takes its argument first: in every callback it is the last parameter.
 *
 * g++ -O0:     invalid conversion from .int \(\*\)\(void\*, blz_tcp\)
 * g++ -O2:     invalid conversion from .int \(\*\)\(void\*, blz_tcp\)
 * clang++ -O0: no matching function for call to 'blz_tcp_serve'
 * clang++ -O2: no matching function for call to 'blz_tcp_serve'
 */
#include <blitz/tcp.h>

#ifdef BAD
static int on_conn(void *arg, blz_tcp conn)
#else
static int on_conn(blz_tcp conn, void *arg)
#endif
{
    return arg ? blz_tcp_close(&conn) : 0;
}

blz_future *serve(blz_serve_op *op, const blz_tcp_listener *listener);
blz_future *serve(blz_serve_op *op, const blz_tcp_listener *listener)
{
    return blz_tcp_serve(op, listener, on_conn, nullptr);
}
