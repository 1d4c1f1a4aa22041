/* SPDX-License-Identifier: Apache-2.0 */
/* TCP listeners: making them. What comes of a connection is in accept.c and serve.c. */
#include <blitz/tcp.h>

#include "net/socket.h"

#include <blitz/error.h>

NET_OPTIONS(tcp_listener, blz_tcp_listener);

static int set_up(const blz__fd_ref *ref, const blz_addr *addr,
                  const blz_tcp_listen_options *options)
{
    int rc = 0;

    if (!options->keep_addr)
        rc = blz__net_option_set(ref, BLZ_OPT_REUSE_ADDR, 1);
    if (rc == 0 && (options->reuse_port || options->spread))
        rc = blz__net_option_set(ref, BLZ_OPT_REUSE_PORT, 1);
    if (rc == 0 && blz_addr_family(addr) == BLZ_ADDR_V6)
        rc = blz__net_option_set(ref, BLZ_OPT_V6_ONLY, options->v6_only);
    if (rc == 0 && !options->delay) /* connections inherit it */
        rc = blz__net_option_set(ref, BLZ_OPT_NODELAY, 1);
    if (rc == 0 && options->device)
        rc = blz__net_device_set(ref, options->device);
    if (rc == 0 && options->fast_open)
        rc = blz__net_option_set(ref, BLZ_OPT_FAST_OPEN, options->fast_open);
    return rc;
}

int blz_tcp_listen_with(blz_tcp_listener *listener, const blz_addr *addr,
                        const blz_tcp_listen_options *options)
{
    static const blz_tcp_listen_options none;
    const blz_tcp_listen_options *o = options ? options : &none;
    blz__fd_ref ref;
    int family = blz_addr_family(addr), rc;

    *listener = (blz_tcp_listener){NULL, 0};
    if (family != BLZ_ADDR_V4 && family != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    rc = blz__net_socket(&ref, o->rt ? o->rt : blz_rt_current(), family, BLZ__SOCKET_STREAM,
                         FD_LISTENER | FD_SHARED | FD_STREAM | (o->spread ? FD_SPREAD : 0));
    if (rc < 0)
        return rc;
    rc = set_up(&ref, addr, o);
    if (rc == 0)
        rc = blz__net_bind(&ref, addr);
    if (rc == 0)
        rc = blz__net_listen(&ref, o->backlog);
    if (rc < 0) {
        blz__fd_close(&ref);
        return rc;
    }
    *listener = (blz_tcp_listener){ref.entry, ref.generation};
    return 0;
}

/* ---- another one at the same address ---- */

/* Options that a listener's connections inherit, or that must be the same to share the address. */
static const blz_opt copied[] = {
    BLZ_OPT_REUSE_ADDR,
    BLZ_OPT_REUSE_PORT,
    BLZ_OPT_V6_ONLY,
    BLZ_OPT_NODELAY,
    BLZ_OPT_KEEPALIVE,
    BLZ_OPT_KEEPALIVE_IDLE,
    BLZ_OPT_KEEPALIVE_COUNT,
    BLZ_OPT_KEEPALIVE_INTERVAL,
    BLZ_OPT_USER_TIMEOUT,
    BLZ_OPT_LINGER,
    BLZ_OPT_TTL,
    BLZ_OPT_TRAFFIC_CLASS,
};

static int copy_options(const blz__fd_ref *from, const blz__fd_ref *to)
{
    char device[BLZ_DEVICE_NAME];
    int64_t value;
    int rc = 0;

    for (size_t i = 0; i < sizeof copied / sizeof *copied && rc == 0; i++)
        if (blz__net_option_get(from, copied[i], &value) == 0)
            rc = blz__net_option_set(to, copied[i], value);
    if (rc == 0 && blz__net_device_get(from, device) == 0 && device[0])
        rc = blz__net_device_set(to, device);
    return rc;
}

/* Known after the listen: it may be set later, and shrinks what is waiting. */
static int copy_fast_open(const blz__fd_ref *from, const blz__fd_ref *to)
{
    int64_t value;

    if (blz__net_option_get(from, BLZ_OPT_FAST_OPEN, &value) < 0 || value == 0)
        return 0;
    return blz__net_option_set(to, BLZ_OPT_FAST_OPEN, value);
}

/* 0: unknown. */
static int backlog_of(const blz__fd_ref *ref)
{
    int fd = blz__fd_acquire(ref), backlog;

    if (fd < 0)
        return 0;
    backlog = blz__socket_backlog(fd);
    blz__fd_release(ref);
    return backlog < 0 ? 0 : backlog;
}

int blz__listener_clone(blz__fd_ref *ref, blz_rt *rt, const blz__fd_ref *from)
{
    blz_addr addr;
    int rc = blz__net_local_addr(from, &addr);

    if (rc < 0)
        return rc;
    rc = blz__net_socket(ref, rt, blz_addr_family(&addr), BLZ__SOCKET_STREAM,
                         FD_LISTENER | FD_SHARED | FD_STREAM);
    if (rc < 0)
        return rc;
    rc = copy_options(from, ref);
    if (rc == 0)
        rc = blz__net_bind(ref, &addr);
    if (rc == 0)
        rc = blz__net_listen(ref, backlog_of(from));
    if (rc == 0)
        rc = copy_fast_open(from, ref);
    if (rc < 0)
        blz__fd_close(ref);
    return rc;
}

/* ---- what programs call ---- */

int blz_tcp_listen(blz_tcp_listener *listener, const char *address)
{
    blz_addr addr;
    int rc = blz_addr_parse(&addr, address);

    if (rc < 0)
        return rc;
    rc = blz_tcp_listen_with(listener, &addr, NULL);
    if (blz__addr_retry_v4(&addr, address, rc))
        rc = blz_tcp_listen_with(listener, &addr, NULL);
    return rc;
}

int blz_tcp_listener_from_fd(blz_tcp_listener *listener, blz_sysfd fd, blz_rt *rt)
{
    *listener = (blz_tcp_listener){NULL, 0};
    return blz__net_from_fd(net_mutable_ref(listener), rt, fd,
                            (struct blz__socket_kind){BLZ_ADDR_V4, BLZ__SOCKET_STREAM, true},
                            FD_LISTENER | FD_SHARED | FD_STREAM);
}

int64_t blz_tcp_listener_into_fd(blz_tcp_listener *listener)
{
    return blz__net_into_fd(net_mutable_ref(listener));
}

int blz_tcp_listener_close(blz_tcp_listener *listener)
{
    return net_close(net_mutable_ref(listener));
}

int blz_tcp_listener_addr(const blz_tcp_listener *listener, blz_addr *addr)
{
    return blz__net_local_addr(net_ref(listener), addr);
}

blz_future *blz_tcp_accept(blz_io *io, const blz_tcp_listener *listener, blz_tcp *conn)
{
    return blz__accept_init(io, net_ref(listener), conn, true);
}
