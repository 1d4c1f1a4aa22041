/* SPDX-License-Identifier: Apache-2.0 */
/* The options of Linux. */
#include "system/posix/option_table.h"

#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#define FLAG(level, name)                     \
    {                                         \
        (level), (name), 0, 0, 0, 0, 1, false \
    }
#define NUMBER(level, name, min, max)                 \
    {                                                 \
        (level), (name), 0, 0, 0, (min), (max), false \
    }
#define TIME(level, name, unit, min, max)                  \
    {                                                      \
        (level), (name), 0, 0, (unit), (min), (max), false \
    }

/* The longest keep-alive times that the system takes, and its largest count. */
enum { MAX_KEEPALIVE_SECONDS = 32767, MAX_KEEPALIVE_COUNT = 127 };

const struct sys_option blz__option_table[BLZ_OPT_NR_] = {
    [BLZ_OPT_NODELAY] = FLAG(IPPROTO_TCP, TCP_NODELAY),
    [BLZ_OPT_QUICKACK] = FLAG(IPPROTO_TCP, TCP_QUICKACK),
    [BLZ_OPT_KEEPALIVE] = FLAG(SOL_SOCKET, SO_KEEPALIVE),
    [BLZ_OPT_KEEPALIVE_IDLE] = TIME(IPPROTO_TCP, TCP_KEEPIDLE, BLZ_SEC, 1, MAX_KEEPALIVE_SECONDS),
    [BLZ_OPT_KEEPALIVE_INTERVAL] =
        TIME(IPPROTO_TCP, TCP_KEEPINTVL, BLZ_SEC, 1, MAX_KEEPALIVE_SECONDS),
    [BLZ_OPT_KEEPALIVE_COUNT] = NUMBER(IPPROTO_TCP, TCP_KEEPCNT, 1, MAX_KEEPALIVE_COUNT),
    [BLZ_OPT_USER_TIMEOUT] = TIME(IPPROTO_TCP, TCP_USER_TIMEOUT, BLZ_MSEC, 0, INT_MAX),
    [BLZ_OPT_LINGER] = NUMBER(SOL_SOCKET, SO_LINGER, -1, 0),
    [BLZ_OPT_REUSE_ADDR] = FLAG(SOL_SOCKET, SO_REUSEADDR),
    [BLZ_OPT_REUSE_PORT] = FLAG(SOL_SOCKET, SO_REUSEPORT),
    [BLZ_OPT_SEND_BUFFER] = NUMBER(SOL_SOCKET, SO_SNDBUF, 1, INT_MAX / 2),
    [BLZ_OPT_RECV_BUFFER] = NUMBER(SOL_SOCKET, SO_RCVBUF, 1, INT_MAX / 2),
    [BLZ_OPT_TTL] = {IPPROTO_IP, IP_TTL, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 0, 1, 255, false},
    [BLZ_OPT_TRAFFIC_CLASS] = {IPPROTO_IP, IP_TOS, IPPROTO_IPV6, IPV6_TCLASS, 0, 0, 255, false},
    [BLZ_OPT_FAST_OPEN] = NUMBER(IPPROTO_TCP, TCP_FASTOPEN, 0, INT_MAX),
    [BLZ_OPT_FAST_OPEN_CONNECT] = FLAG(IPPROTO_TCP, TCP_FASTOPEN_CONNECT),
    [BLZ_OPT_V6_ONLY] = FLAG(IPPROTO_IPV6, IPV6_V6ONLY),
    [BLZ_OPT_BROADCAST] = FLAG(SOL_SOCKET, SO_BROADCAST),
    [BLZ_OPT_MULTICAST_LOOP] = {IPPROTO_IP, IP_MULTICAST_LOOP, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0,
                                0, 1, false},
    [BLZ_OPT_MULTICAST_TTL] = {IPPROTO_IP, IP_MULTICAST_TTL, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 0,
                               0, 255, false},
    [BLZ_OPT_GRO] = FLAG(IPPROTO_UDP, UDP_GRO),
    [BLZ_OPT_GSO] = NUMBER(IPPROTO_UDP, UDP_SEGMENT, 0, 65535),
    [BLZ_OPT_PASS_CRED] = FLAG(SOL_SOCKET, SO_PASSCRED),
    [BLZ_OPT_ERROR] = {SOL_SOCKET, SO_ERROR, 0, 0, 0, 0, 0, true},
};
