/* SPDX-License-Identifier: Apache-2.0 */
/* Abstract names of Unix sockets: a NUL, then any bytes. No other system has them. */
#include "system/address.h"

#include <blitz/error.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int blz__address_from_abstract(blz_addr *addr, const void *name, size_t len)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    if (len >= sizeof sun.sun_path)
        return -ENAMETOOLONG;
    if (len > 0)
        memcpy(sun.sun_path + 1, name, len);
    *addr = (blz_addr){.len = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)};
    memcpy(addr->storage, &sun, addr->len);
    return 0;
}
