/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets as such: making, adopting, asking. See socket.h. */
#include "net/socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

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
                   int (*ask)(int fd, struct sockaddr *sa, socklen_t *len))
{
    struct sockaddr_storage storage;
    socklen_t len = sizeof storage;
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    rc = ask(fd, (struct sockaddr *)&storage, &len) < 0 ? -errno : 0;
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
