/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets as such: making, adopting, asking. See socket.h. */
#include "net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- making and adopting ---- */

int blz__socket_adopt(blz__fd_ref *ref, blz_rt *rt, int fd, unsigned flags)
{
    int mode = rt ? blz__io_mode(rt) : -ENXIO;
    int rc = mode < 0 ? mode : blz__fd_adopt(ref, rt, fd, flags | FD_SOCKET | (unsigned)mode);

    if (rc < 0)
        close(fd);
    return rc;
}

int blz__socket_new(blz__fd_ref *ref, blz_rt *rt, int family, int type, unsigned flags)
{
    int mode = rt ? blz__io_mode(rt) : -ENXIO, fd;

    if (mode < 0)
        return mode;
    fd = socket(family, type | SOCK_CLOEXEC | (mode & FD_NONBLOCK ? SOCK_NONBLOCK : 0), 0);
    return fd < 0 ? -errno : blz__socket_adopt(ref, rt, fd, flags);
}

static int ask(int fd, int option)
{
    socklen_t len = sizeof(int);
    int value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -errno : value;
}

static int check_kind(int fd, struct socket_kind kind)
{
    int type = ask(fd, SO_TYPE), family = ask(fd, SO_DOMAIN);

    if (type < 0)
        return type;
    if (family == AF_INET6)
        family = AF_INET;
    return type == kind.type && family == kind.family &&
                   (ask(fd, SO_ACCEPTCONN) > 0) == kind.listens
               ? 0
               : -EINVAL;
}

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int blz__socket_from_fd(blz__fd_ref *ref, blz_rt *rt, int fd, struct socket_kind kind,
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
        rc = set_nonblocking(fd);
    return rc < 0 ? rc : blz__fd_adopt(ref, rt, fd, flags | FD_SOCKET | (unsigned)mode);
}

int blz__handle_into_fd(blz__fd_ref *ref)
{
    int fd = blz__fd_take(ref);

    if (fd >= 0)
        *ref = (blz__fd_ref){NULL, 0};
    return fd;
}

/* ---- asking and telling ---- */

int blz__socket_set(const blz__fd_ref *ref, int level, int option, int value)
{
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    rc = setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

int blz__socket_get(const blz__fd_ref *ref, int level, int option, int *value)
{
    socklen_t len = sizeof *value;
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    rc = getsockopt(fd, level, option, value, &len) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

static int addr_by(const blz__fd_ref *ref, blz_addr *addr,
                   int (*ask_for)(int fd, struct sockaddr *sa, socklen_t *len))
{
    struct sockaddr_storage storage;
    socklen_t len = sizeof storage;
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    rc = ask_for(fd, (struct sockaddr *)&storage, &len) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc < 0 ? rc : blz_addr_from_sockaddr(addr, (struct sockaddr *)&storage, len);
}

int blz__socket_local_addr(const blz__fd_ref *ref, blz_addr *addr)
{
    return addr_by(ref, addr, getsockname);
}

int blz__socket_peer_addr(const blz__fd_ref *ref, blz_addr *addr)
{
    return addr_by(ref, addr, getpeername);
}

int blz__socket_shutdown(const blz__fd_ref *ref, int how)
{
    static const int hows[] = {-1, SHUT_RD, SHUT_WR, SHUT_RDWR};
    int fd, rc;

    if (how < 1 || how > 3)
        return -EINVAL;
    fd = blz__fd_acquire(ref);
    if (fd < 0)
        return fd;
    rc = shutdown(fd, hows[how]) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

bool blz__addr_retry_v4(blz_addr *addr, const char *text, int rc)
{
    if (text[0] != ':' || (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL))
        return false;
    *addr = blz_addr_any(BLZ_ADDR_V4, blz_addr_port(addr));
    return true;
}

int blz__socket_bind(const blz__fd_ref *ref, const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    rc = bind(fd, sa, len) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

int blz__socket_connect_now(const blz__fd_ref *ref, const blz_addr *addr)
{
    static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    uint32_t len = sizeof nobody;
    const struct sockaddr *sa = addr ? blz_addr_sockaddr(addr, &len) : &nobody;
    int fd, rc;

    if (len == 0)
        return -EAFNOSUPPORT;
    fd = blz__fd_acquire(ref);
    if (fd < 0)
        return fd;
    rc = connect(fd, sa, len) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

/* ---- readiness ---- */

_Static_assert(BLZ_READABLE == POLLIN && BLZ_WRITABLE == POLLOUT, "they are the system's");

blz_poll blz__ready_poll(blz_future *self, blz_cx *cx)
{
    const struct io *io = (const struct io *)self;

    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result > 0 && (self->result & (POLLERR | POLLHUP)))
        self->result = (int64_t)io->len;
    else if (self->result > 0)
        self->result &= (int64_t)io->len;
    return BLZ_READY;
}

blz_future *blz__ready_init(blz_io *io, const blz_future_ops *ops, const blz__fd_ref *ref,
                            int events)
{
    size_t wanted = (size_t)events & (BLZ_READABLE | BLZ_WRITABLE);

    return blz__io_init(io, ops, IO_POLL, ref, NULL, wanted);
}

/* ---- calls that do not wait ---- */

int64_t blz__socket_try_recv(const blz__fd_ref *ref, void *buf, size_t len)
{
    int fd = length_is_valid(len) ? blz__fd_acquire(ref) : -EINVAL;
    ssize_t n;

    if (fd < 0)
        return fd;
    do
        n = recv(fd, buf, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    n = n < 0 ? -errno : n;
    blz__fd_release(ref);
    return n;
}

int64_t blz__socket_try_send(const blz__fd_ref *ref, const void *buf, size_t len)
{
    int fd = length_is_valid(len) ? blz__fd_acquire(ref) : -EINVAL;
    ssize_t n;

    if (fd < 0)
        return fd;
    do
        n = send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    n = n < 0 ? -errno : n;
    blz__fd_release(ref);
    return n;
}
