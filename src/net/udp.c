/* SPDX-License-Identifier: Apache-2.0 */
/* UDP sockets and single datagrams. See blitz/udp.h; batches are in udp_batch.c. */
#include <blitz/udp.h>

#include "net/msg.h"

#include "system/option.h"

#include <blitz/error.h>

NET_OPTIONS(udp, blz_udp);

/* ---- sockets ---- */

static int set_up(const blz__fd_ref *ref, const blz_addr *addr, const blz_udp_options *options)
{
    int rc = 0;

    if (options->reuse_addr)
        rc = blz__net_option_set(ref, BLZ_OPT_REUSE_ADDR, 1);
    if (rc == 0 && options->reuse_port)
        rc = blz__net_option_set(ref, BLZ_OPT_REUSE_PORT, 1);
    if (rc == 0 && blz_addr_family(addr) == BLZ_ADDR_V6)
        rc = blz__net_option_set(ref, BLZ_OPT_V6_ONLY, options->v6_only);
    if (rc == 0 && options->broadcast)
        rc = blz__net_option_set(ref, BLZ_OPT_BROADCAST, 1);
    if (rc == 0 && options->device)
        rc = blz__net_device_set(ref, options->device);
    return rc;
}

int blz_udp_bind_with(blz_udp *udp, const blz_addr *addr, const blz_udp_options *options)
{
    static const blz_udp_options none;
    const blz_udp_options *o = options ? options : &none;
    blz__fd_ref ref;
    int family = blz_addr_family(addr), rc;

    *udp = (blz_udp){NULL, 0};
    if (family != BLZ_ADDR_V4 && family != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    rc = blz__net_socket(&ref, o->rt ? o->rt : blz_rt_current(), family, BLZ__SOCKET_DATAGRAM,
                         FD_SHARED);
    if (rc < 0)
        return rc;
    rc = set_up(&ref, addr, o);
    if (rc == 0)
        rc = blz__net_bind(&ref, addr);
    if (rc < 0) {
        blz__fd_close(&ref);
        return rc;
    }
    *udp = (blz_udp){ref.entry, ref.generation};
    return 0;
}

int blz_udp_bind(blz_udp *udp, const char *address)
{
    blz_addr addr;
    int rc = blz_addr_parse(&addr, address);

    *udp = (blz_udp){NULL, 0};
    if (rc < 0)
        return rc;
    rc = blz_udp_bind_with(udp, &addr, NULL);
    if (blz__addr_retry_v4(&addr, address, rc))
        rc = blz_udp_bind_with(udp, &addr, NULL);
    return rc;
}

int blz_udp_connect(const blz_udp *udp, const blz_addr *addr)
{
    return blz__net_connect_now(net_ref(udp), addr);
}

int blz_udp_close(blz_udp *udp)
{
    return net_close(net_mutable_ref(udp));
}

int blz_udp_from_fd(blz_udp *udp, blz_sysfd fd, blz_rt *rt)
{
    *udp = (blz_udp){NULL, 0};
    return blz__net_from_fd(net_mutable_ref(udp), rt, fd,
                            (struct blz__socket_kind){BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, false},
                            FD_SHARED);
}

int64_t blz_udp_into_fd(blz_udp *udp)
{
    return blz__net_into_fd(net_mutable_ref(udp));
}

int blz_udp_local_addr(const blz_udp *udp, blz_addr *addr)
{
    return blz__net_local_addr(net_ref(udp), addr);
}

int blz_udp_peer_addr(const blz_udp *udp, blz_addr *addr)
{
    return blz__net_peer_addr(net_ref(udp), addr);
}

/* ---- datagrams ---- */

blz_future *blz_udp_recv(blz_msg *msg, const blz_udp *udp, void *buf, size_t len)
{
    static const blz_future_ops ops = NET_RECV("udp_recv");
    return blz__msg_recv(msg, &ops, net_ref(udp), buf, len,
                         &(struct msg_extras){.wants_control = true});
}

blz_future *blz_udp_recv_from(blz_msg *msg, const blz_udp *udp, void *buf, size_t len,
                              blz_addr *from)
{
    static const blz_future_ops ops = NET_RECV("udp_recv_from");
    return blz__msg_recv(msg, &ops, net_ref(udp), buf, len,
                         &(struct msg_extras){.from = from, .wants_control = true});
}

blz_future *blz_udp_peek(blz_msg *msg, const blz_udp *udp, void *buf, size_t len, blz_addr *from)
{
    static const blz_future_ops ops = NET_RECV("udp_peek");
    return blz__msg_recv(msg, &ops, net_ref(udp), buf, len,
                         &(struct msg_extras){.peeks = true, .from = from, .wants_control = true});
}

blz_future *blz_udp_send(blz_msg *msg, const blz_udp *udp, const void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("udp_send");
    return blz__msg_send(msg, &ops, net_ref(udp), buf, len, &(struct msg_extras){.to = NULL});
}

blz_future *blz_udp_send_to(blz_msg *msg, const blz_udp *udp, const void *buf, size_t len,
                            const blz_addr *to)
{
    static const blz_future_ops ops = NET_OP("udp_send_to");
    return blz__msg_send(msg, &ops, net_ref(udp), buf, len, &(struct msg_extras){.to = to});
}

blz_future *blz_udp_send_segments(blz_msg *msg, const blz_udp *udp, const void *buf, size_t len,
                                  uint16_t segment, const blz_addr *to)
{
    static const blz_future_ops ops = NET_OP("udp_send_segments");
    return blz__msg_send(msg, &ops, net_ref(udp), buf, len,
                         &(struct msg_extras){.to = to, .segment = segment});
}

blz_future *blz_udp_ready(blz_io *io, const blz_udp *udp, int events)
{
    static const blz_future_ops ops = NET_READY("udp_ready");
    return blz__ready_init(io, &ops, net_ref(udp), events);
}

int64_t blz_udp_try_recv(const blz_udp *udp, void *buf, size_t len)
{
    return blz__net_try_recv(net_ref(udp), buf, len);
}

int64_t blz_udp_try_send(const blz_udp *udp, const void *buf, size_t len)
{
    return blz__net_try_send(net_ref(udp), buf, len);
}

/* ---- multicast ---- */

static int with_group(const blz_udp *udp, const blz_addr *group, uint32_t interface,
                      int (*change)(blz_sysfd fd, const blz_addr *group, uint32_t interface))
{
    int fd = blz__fd_acquire(net_ref(udp)), rc;

    if (fd < 0)
        return fd;
    rc = change(fd, group, interface);
    blz__fd_release(net_ref(udp));
    return rc;
}

int blz_udp_join(const blz_udp *udp, const blz_addr *group, uint32_t interface)
{
    return with_group(udp, group, interface, blz__option_join);
}

int blz_udp_leave(const blz_udp *udp, const blz_addr *group, uint32_t interface)
{
    return with_group(udp, group, interface, blz__option_leave);
}

int blz_udp_set_multicast_interface(const blz_udp *udp, uint32_t interface)
{
    int fd = blz__fd_acquire(net_ref(udp)), rc;

    if (fd < 0)
        return fd;
    rc = blz__option_set_multicast_interface(fd, interface);
    blz__fd_release(net_ref(udp));
    return rc;
}
