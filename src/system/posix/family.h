/* SPDX-License-Identifier: Apache-2.0 */
/* Families and types of sockets: the system's numbers for those of the library, and back. */
#ifndef BLZ_SYSTEM_POSIX_FAMILY_H
#define BLZ_SYSTEM_POSIX_FAMILY_H

#include "system/socket.h"

#include <sys/socket.h>

/* AF_UNSPEC for BLZ_ADDR_NONE and for what is none. */
static inline int sys_family(int family)
{
    switch (family) {
    case BLZ_ADDR_V4:
        return AF_INET;
    case BLZ_ADDR_V6:
        return AF_INET6;
    case BLZ_ADDR_UNIX:
        return AF_UNIX;
    default:
        return AF_UNSPEC;
    }
}

static inline int family_of_system(int family)
{
    switch (family) {
    case AF_INET:
        return BLZ_ADDR_V4;
    case AF_INET6:
        return BLZ_ADDR_V6;
    case AF_UNIX:
        return BLZ_ADDR_UNIX;
    default:
        return BLZ_ADDR_NONE;
    }
}

/* -1: no such type. */
static inline int sys_socket_type(int type)
{
    if (type == BLZ__SOCKET_STREAM)
        return SOCK_STREAM;
    return type == BLZ__SOCKET_DATAGRAM ? SOCK_DGRAM : -1;
}

static inline int socket_type_of_system(int type)
{
    if (type == SOCK_STREAM)
        return BLZ__SOCKET_STREAM;
    return type == SOCK_DGRAM ? BLZ__SOCKET_DATAGRAM : 0;
}

#endif
