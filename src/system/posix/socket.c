/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of sockets that POSIX has: addresses, connecting, listening, ending, readiness. What is
 * made with flags of the system is in socket_open.c, what moves bytes in socket_call.c.
 */
#include "system/socket.h"

#include "system/address.h"
#include "system/posix/result.h"

#include <blitz/fd.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses ---- */

int blz__socket_bind(blz_sysfd fd, const blz_addr *addr)
{
    return sys_result(bind(fd, blz__address_to_system(addr), addr->len));
}

static int addr_by(blz_sysfd fd, blz_addr *addr,
                   int (*ask_for)(int fd, struct sockaddr *sa, socklen_t *len))
{
    struct sockaddr_storage storage;
    socklen_t len = sizeof storage;

    if (ask_for(fd, (struct sockaddr *)&storage, &len) < 0)
        return sys_error();
    return blz__address_from_system(addr, (struct sockaddr *)&storage, len);
}

int blz__socket_local_addr(blz_sysfd fd, blz_addr *addr)
{
    return addr_by(fd, addr, getsockname);
}

int blz__socket_peer_addr(blz_sysfd fd, blz_addr *addr)
{
    return addr_by(fd, addr, getpeername);
}

/* ---- connecting ---- */

/* EAGAIN comes of Unix sockets alone: the queue is full, and nothing would tell when it is not. */
int blz__socket_connect(blz_sysfd fd, const blz_addr *addr)
{
    int rc = sys_result(connect(fd, blz__address_to_system(addr), addr->len));

    if (rc == -EINTR)
        return -EINPROGRESS; /* POSIX: it goes on by itself */
    return rc == -EAGAIN ? -ECONNREFUSED : rc;
}

int blz__socket_connect_result(blz_sysfd fd)
{
    socklen_t len = sizeof(int);
    int error = 0;

    if (blz__socket_events(fd, BLZ_FD_WRITE) == 0)
        return -EAGAIN;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return sys_error();
    return -error;
}

int blz__socket_disconnect(blz_sysfd fd)
{
    static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    return sys_result(connect(fd, &nobody, sizeof nobody));
}

/* ---- listening and ending ---- */

int blz__socket_listen(blz_sysfd fd, int backlog)
{
    return sys_result(listen(fd, backlog));
}

int blz__socket_shutdown(blz_sysfd fd, int how)
{
    static const int hows[] = {-1, SHUT_RD, SHUT_WR, SHUT_RDWR};

    if (how < 1 || how > 3)
        return -EINVAL;
    return sys_result(shutdown(fd, hows[how]));
}

bool blz__socket_user_is_trusted(uint32_t uid)
{
    return uid == geteuid() || uid == 0;
}

/* ---- readiness ---- */

static const struct {
    unsigned ours;
    short system;
} bits[] = {
    {BLZ_FD_READ, POLLIN}, {BLZ_FD_WRITE, POLLOUT}, {BLZ_FD_PRI, POLLPRI},
    {BLZ_FD_ERR, POLLERR}, {BLZ_FD_HUP, POLLHUP},
};

enum { NR_BITS = sizeof bits / sizeof *bits };

int blz__socket_events(blz_sysfd fd, unsigned events)
{
    struct pollfd p = {.fd = fd};
    unsigned found = 0;
    int rc;

    for (int i = 0; i < NR_BITS; i++)
        if (events & bits[i].ours)
            p.events |= bits[i].system;
    do
        rc = poll(&p, 1, 0);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return sys_error();
    if (p.revents & POLLNVAL)
        return -EBADF;
    for (int i = 0; i < NR_BITS; i++)
        if (p.revents & bits[i].system)
            found |= bits[i].ours;
    return (int)found;
}
