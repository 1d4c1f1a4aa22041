/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Socket options by number: a table says which system option each one is, for IPv4 and for IPv6,
 * how a value is converted, and what its range is. A value out of range is refused here, because
 * the system would cut some of them off in silence.
 */
#include "net/socket.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

struct option {
    int level, name;       /* name 0: there is no such option on this system */
    int level_v6, name_v6; /* 0: the same */
    int64_t unit;          /* ns of a time; 0: a plain number */
    int min, max;          /* in units of the system */
    bool read_only;
};

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

static const struct option options[BLZ_OPT_NR_] = {
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

static const struct option *find_option(int number)
{
    if (number <= 0 || number >= BLZ_OPT_NR_ || options[number].name == 0)
        return NULL;
    return &options[number];
}

static bool is_v6(int fd)
{
    int domain = 0;
    socklen_t len = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_INET6;
}

/* The level and the name that the option has for this socket. */
static void locate(const struct option *option, int fd, int *level, int *name)
{
    bool v6 = option->name_v6 && is_v6(fd);

    *level = v6 ? option->level_v6 : option->level;
    *name = v6 ? option->name_v6 : option->name;
}

/* ---- setting ---- */

/* In the system's units, rounded up; false: out of range. */
static bool convert(const struct option *option, int64_t value, int *out)
{
    int64_t unit = option->unit ? option->unit : 1;

    if (value > 0)
        value = value / unit + (value % unit != 0);
    if (value < option->min || value > option->max)
        return false;
    *out = (int)value;
    return true;
}

static int set_linger(int fd, int value)
{
    struct linger linger = {.l_onoff = value == 0, .l_linger = 0};

    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0 ? -errno : 0;
}

int blz__socket_option_set(const blz__fd_ref *ref, int number, int64_t value)
{
    const struct option *option = find_option(number);
    int fd, level, name, converted, rc;

    if (!option || option->read_only || !convert(option, value, &converted))
        return -EINVAL;
    fd = blz__fd_acquire(ref);
    if (fd < 0)
        return fd;
    locate(option, fd, &level, &name);
    if (number == BLZ_OPT_LINGER)
        rc = set_linger(fd, converted);
    else
        rc = setsockopt(fd, level, name, &converted, sizeof converted) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

/* ---- getting ---- */

static int get_linger(int fd, int *seconds)
{
    struct linger linger;
    socklen_t len = sizeof linger;

    if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) < 0)
        return -errno;
    *seconds = linger.l_onoff ? linger.l_linger : -1;
    return 0;
}

/* Some options are a byte. */
static int get_number(int fd, int level, int name, int *value)
{
    socklen_t len = sizeof *value;

    *value = 0;
    return getsockopt(fd, level, name, value, &len) < 0 ? -errno : 0;
}

int blz__socket_option_get(const blz__fd_ref *ref, int number, int64_t *value)
{
    const struct option *option = find_option(number);
    int fd, level, name, found, rc;

    if (!option)
        return -EINVAL;
    fd = blz__fd_acquire(ref);
    if (fd < 0)
        return fd;
    locate(option, fd, &level, &name);
    rc = number == BLZ_OPT_LINGER ? get_linger(fd, &found) : get_number(fd, level, name, &found);
    blz__fd_release(ref);
    if (rc == 0)
        *value = found > 0 && option->unit ? found * option->unit : found;
    return rc;
}

/* ---- the interface ---- */

int blz__socket_device_set(const blz__fd_ref *ref, const char *device)
{
    size_t len = device ? strlen(device) : 0;
    int fd, rc;

    if (len > BLZ_DEVICE_NAME - 1)
        return -ENAMETOOLONG;
    fd = blz__fd_acquire(ref);
    if (fd < 0)
        return fd;
    rc = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, len ? device : "", (socklen_t)len) < 0 ? -errno
                                                                                            : 0;
    blz__fd_release(ref);
    return rc;
}

int blz__socket_device_get(const blz__fd_ref *ref, char device[BLZ_DEVICE_NAME])
{
    socklen_t len = BLZ_DEVICE_NAME;
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    memset(device, 0, BLZ_DEVICE_NAME);
    rc = getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &len) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}
