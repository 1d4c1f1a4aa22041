/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are no numbers: network interfaces, and groups of multicast. */
#include "system/option.h"

#include "system/address.h"
#include "system/posix/result.h"
#include "system/socket.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* ---- interfaces ---- */

int blz__option_set_device(blz_sysfd fd, const char *device)
{
    size_t len = device ? strlen(device) : 0;

    if (len > BLZ_DEVICE_NAME - 1)
        return -ENAMETOOLONG;
    return sys_result(
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, len ? device : "", (socklen_t)len));
}

int blz__option_get_device(blz_sysfd fd, char device[BLZ_DEVICE_NAME])
{
    socklen_t len = BLZ_DEVICE_NAME;

    memset(device, 0, BLZ_DEVICE_NAME);
    return sys_result(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &len));
}

/* ---- groups ---- */

static int set_v4(blz_sysfd fd, int name, const struct blz__address_ip *ip, uint32_t interface)
{
    struct ip_mreqn request = {.imr_ifindex = (int)interface};

    memcpy(&request.imr_multiaddr, ip->bytes, sizeof request.imr_multiaddr);
    return sys_result(setsockopt(fd, IPPROTO_IP, name, &request, sizeof request));
}

static int set_v6(blz_sysfd fd, int name, const struct blz__address_ip *ip, uint32_t interface)
{
    struct ipv6_mreq request = {.ipv6mr_interface = interface};

    memcpy(&request.ipv6mr_multiaddr, ip->bytes, sizeof request.ipv6mr_multiaddr);
    return sys_result(setsockopt(fd, IPPROTO_IPV6, name, &request, sizeof request));
}

int blz__option_join(blz_sysfd fd, const blz_addr *group, uint32_t interface)
{
    struct blz__address_ip ip;

    if (!blz__address_to_ip(group, &ip))
        return -EINVAL;
    return ip.family == BLZ_ADDR_V4 ? set_v4(fd, IP_ADD_MEMBERSHIP, &ip, interface)
                                    : set_v6(fd, IPV6_JOIN_GROUP, &ip, interface);
}

int blz__option_leave(blz_sysfd fd, const blz_addr *group, uint32_t interface)
{
    struct blz__address_ip ip;

    if (!blz__address_to_ip(group, &ip))
        return -EINVAL;
    return ip.family == BLZ_ADDR_V4 ? set_v4(fd, IP_DROP_MEMBERSHIP, &ip, interface)
                                    : set_v6(fd, IPV6_LEAVE_GROUP, &ip, interface);
}

int blz__option_set_multicast_interface(blz_sysfd fd, uint32_t interface)
{
    static const struct blz__address_ip none = {.family = BLZ_ADDR_NONE};
    struct blz__socket_kind kind;
    int number = (int)interface, rc = blz__socket_kind(fd, &kind);

    if (rc < 0)
        return rc;
    if (kind.family != BLZ_ADDR_V6)
        return set_v4(fd, IP_MULTICAST_IF, &none, interface);
    return sys_result(setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &number, sizeof number));
}
