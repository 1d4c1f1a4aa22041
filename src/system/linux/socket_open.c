/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that are made with Linux' flags, so that they are never inherited nor in the wrong mode,
 * and what Linux tells of them.
 */
#include "system/handle.h"
#include "system/posix/family.h"
#include "system/posix/result.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

static int type_and_flags(enum blz__socket_type type, bool nonblocking)
{
    return sys_socket_type(type) | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0);
}

int64_t blz__socket_open(int family, enum blz__socket_type type, bool nonblocking)
{
    int fd;

    if (sys_family(family) == AF_UNSPEC || sys_socket_type(type) < 0)
        return -EINVAL;
    fd = socket(sys_family(family), type_and_flags(type, nonblocking), 0);
    return fd < 0 ? sys_error() : fd;
}

int blz__socket_pair(enum blz__socket_type type, bool nonblocking, blz_sysfd fds[2])
{
    if (sys_socket_type(type) < 0)
        return -EINVAL;
    return sys_result(socketpair(AF_UNIX, type_and_flags(type, nonblocking), 0, fds));
}

/* ---- what it is ---- */

static int ask(blz_sysfd fd, int option)
{
    socklen_t len = sizeof(int);
    int value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? sys_error() : value;
}

int blz__socket_kind(blz_sysfd fd, struct blz__socket_kind *kind)
{
    int type = ask(fd, SO_TYPE);

    if (type < 0)
        return type;
    kind->type = socket_type_of_system(type);
    kind->family = family_of_system(ask(fd, SO_DOMAIN));
    kind->listens = ask(fd, SO_ACCEPTCONN) > 0;
    return 0;
}

/* The kernel tells it in a field that means something else for connections; ss(8) uses it too. */
int blz__socket_backlog(blz_sysfd fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return sys_error();
    return (int)info.tcpi_sacked;
}

int blz__socket_peer_cred(blz_sysfd fd, struct blz__socket_cred *cred)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return sys_error();
    if (peer.uid == (uid_t)-1)
        return -ENOTCONN; /* the kernel has none, and says so by numbers that nobody has */
    *cred = (struct blz__socket_cred){peer.pid, peer.uid, peer.gid};
    return 0;
}

/* ---- accepting ---- */

/* accept4 has a flag for the mode of the new socket, and none for its own. */
int64_t blz__socket_accept(blz_sysfd fd, bool nonblocking)
{
    int rc = blz__handle_set_nonblocking(fd, true), conn;

    if (rc < 0)
        return rc;
    do
        conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0));
    while (conn < 0 && errno == EINTR);
    return conn < 0 ? sys_error() : conn;
}
