/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets as such: making, adopting, asking. See socket.h. */
#include "net/socket.h"

#include "system/handle.h"
#include "system/option.h"

#include <blitz/fd.h>
#include <blitz/error.h>

enum { DEFAULT_BACKLOG = 4096 };

/* ---- making and adopting ---- */

int blz__net_adopt(blz__fd_ref *ref, blz_rt *rt, blz_sysfd fd, unsigned flags)
{
    int mode = rt ? blz__io_mode(rt) : -ENXIO;
    int rc = mode < 0 ? mode : blz__fd_adopt(ref, rt, fd, flags | FD_SOCKET | (unsigned)mode);

    if (rc < 0)
        blz__handle_close(fd);
    return rc;
}

int blz__net_socket(blz__fd_ref *ref, blz_rt *rt, int family, enum blz__socket_type type,
                    unsigned flags)
{
    int mode = rt ? blz__io_mode(rt) : -ENXIO;
    int64_t fd;

    if (mode < 0)
        return mode;
    fd = blz__socket_open(family, type, mode & FD_NONBLOCK);
    return fd < 0 ? (int)fd : blz__net_adopt(ref, rt, (blz_sysfd)fd, flags);
}

static int check_kind(blz_sysfd fd, struct blz__socket_kind wanted)
{
    struct blz__socket_kind kind;
    int rc = blz__socket_kind(fd, &kind);

    if (rc < 0)
        return rc;
    if (kind.family == BLZ_ADDR_V6)
        kind.family = BLZ_ADDR_V4;
    return kind.type == wanted.type && kind.family == wanted.family &&
                   kind.listens == wanted.listens
               ? 0
               : -EINVAL;
}

int blz__net_from_fd(blz__fd_ref *ref, blz_rt *rt, blz_sysfd fd, struct blz__socket_kind kind,
                     unsigned flags)
{
    int mode, rc;

    if (!rt)
        rt = blz_rt_current();
    mode = rt ? blz__io_mode(rt) : -ENXIO;
    if (mode < 0)
        return mode;
    rc = check_kind(fd, kind);
    if (rc == 0 && (mode & FD_NONBLOCK))
        rc = blz__handle_set_nonblocking(fd, true);
    return rc < 0 ? rc : blz__fd_adopt(ref, rt, fd, flags | FD_SOCKET | (unsigned)mode);
}

int64_t blz__net_into_fd(blz__fd_ref *ref)
{
    int fd = blz__fd_take(ref);

    if (fd >= 0)
        *ref = (blz__fd_ref){NULL, 0};
    return fd;
}

/* ---- asking and telling ---- */

/* Evaluates `call` with the descriptor `fd` of a handle, which stays open meanwhile. */
#define WITH_FD(ref, call)                  \
    do {                                    \
        int fd = blz__fd_acquire(ref), rc_; \
        if (fd < 0)                         \
            return fd;                      \
        rc_ = (call);                       \
        blz__fd_release(ref);               \
        return rc_;                         \
    } while (0)

int blz__net_option_set(const blz__fd_ref *ref, int number, int64_t value)
{
    WITH_FD(ref, blz__option_set(fd, number, value));
}

int blz__net_option_get(const blz__fd_ref *ref, int number, int64_t *value)
{
    WITH_FD(ref, blz__option_get(fd, number, value));
}

int blz__net_device_set(const blz__fd_ref *ref, const char *device)
{
    WITH_FD(ref, blz__option_set_device(fd, device));
}

int blz__net_device_get(const blz__fd_ref *ref, char device[BLZ_DEVICE_NAME])
{
    WITH_FD(ref, blz__option_get_device(fd, device));
}

int blz__net_local_addr(const blz__fd_ref *ref, blz_addr *addr)
{
    WITH_FD(ref, blz__socket_local_addr(fd, addr));
}

int blz__net_peer_addr(const blz__fd_ref *ref, blz_addr *addr)
{
    WITH_FD(ref, blz__socket_peer_addr(fd, addr));
}

bool blz__addr_retry_v4(blz_addr *addr, const char *text, int rc)
{
    if (text[0] != ':' || (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL))
        return false;
    *addr = blz_addr_any(BLZ_ADDR_V4, blz_addr_port(addr));
    return true;
}

int blz__net_shutdown(const blz__fd_ref *ref, int how)
{
    WITH_FD(ref, blz__socket_shutdown(fd, how));
}

int blz__net_bind(const blz__fd_ref *ref, const blz_addr *addr)
{
    WITH_FD(ref, blz__socket_bind(fd, addr));
}

int blz__net_listen(const blz__fd_ref *ref, int backlog)
{
    WITH_FD(ref, blz__socket_listen(fd, backlog ? backlog : DEFAULT_BACKLOG));
}

int blz__net_connect_now(const blz__fd_ref *ref, const blz_addr *addr)
{
    if (addr && addr->len == 0)
        return -EAFNOSUPPORT;
    WITH_FD(ref, addr ? blz__socket_connect(fd, addr) : blz__socket_disconnect(fd));
}

/* ---- readiness ---- */

_Static_assert((int)BLZ_READABLE == BLZ_FD_READ && (int)BLZ_WRITABLE == BLZ_FD_WRITE,
               "the same bits");

blz_poll blz__ready_poll(blz_future *self, blz_cx *cx)
{
    const struct io *io = (const struct io *)self;

    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result > 0 && (self->result & (BLZ_FD_ERR | BLZ_FD_HUP)))
        self->result = (int64_t)io->readiness.events;
    else if (self->result > 0)
        self->result &= (int64_t)io->readiness.events;
    return BLZ_READY;
}

blz_future *blz__ready_init(blz_io *io, const blz_future_ops *ops, const blz__fd_ref *ref,
                            int events)
{
    return blz__io_init_wait(io, ops, ref, (unsigned)events & (BLZ_READABLE | BLZ_WRITABLE));
}

/* ---- calls that do not wait ---- */

int64_t blz__net_try_recv(const blz__fd_ref *ref, void *buf, size_t len)
{
    int fd = length_is_valid(len) ? blz__fd_acquire(ref) : -EINVAL;
    int64_t n;

    if (fd < 0)
        return fd;
    n = blz__socket_recv(fd, buf, len);
    blz__fd_release(ref);
    return n;
}

int64_t blz__net_try_send(const blz__fd_ref *ref, const void *buf, size_t len)
{
    int fd = length_is_valid(len) ? blz__fd_acquire(ref) : -EINVAL;
    int64_t n;

    if (fd < 0)
        return fd;
    n = blz__socket_send(fd, buf, len);
    blz__fd_release(ref);
    return n;
}
