/* SPDX-License-Identifier: Apache-2.0 */
/* Names by getaddrinfo(3), which waits, and whose errors are numbers of their own. */
#include "system/name.h"

#include "system/address.h"
#include "system/posix/family.h"
#include "system/posix/addrinfo.h"
#include "system/posix/result.h"

#include <net/if.h>
#include <netdb.h>
#include <string.h>

int blz__name_collect(const struct addrinfo *list, int (*found)(const blz_addr *addr, void *arg),
                      void *arg)
{
    for (const struct addrinfo *info = list; info; info = info->ai_next) {
        blz_addr addr;
        int rc;
        if (!info->ai_addr || blz__address_from_system(&addr, info->ai_addr, info->ai_addrlen) < 0)
            continue; /* a family that the library does not know */
        rc = found(&addr, arg);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int blz__name_resolve(const struct blz__name_query *query,
                      int (*found)(const blz_addr *addr, void *arg), void *arg)
{
    struct addrinfo how = {.ai_family = sys_family(query->family),
                           .ai_socktype = query->datagram ? SOCK_DGRAM : SOCK_STREAM,
                           .ai_flags = query->configured ? AI_ADDRCONFIG : 0};
    struct addrinfo *list = NULL;
    int rc;

    do {
        errno = 0;
        rc = getaddrinfo(query->host, query->service, &how, &list);
        rc = rc == 0 ? 0 : blz__name_error(rc, errno);
    } while (rc == -EINTR);
    if (rc < 0)
        return rc;
    rc = blz__name_collect(list, found, arg);
    freeaddrinfo(list);
    return rc;
}

int64_t blz__name_interface(const char *name, size_t len)
{
    char text[IF_NAMESIZE];
    unsigned number;

    if (len == 0 || len >= sizeof text)
        return -ENODEV; /* no interface has such a name */
    memcpy(text, name, len);
    text[len] = '\0';
    number = if_nametoindex(text);
    if (number == 0)
        return errno == ENXIO ? -ENODEV : sys_error();
    return number;
}
