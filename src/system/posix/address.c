/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses as sockaddr_in, sockaddr_in6 and sockaddr_un.
 *
 * `len` of a Unix socket is what bind(2) wants: the family alone (no name), path and NUL, or NUL
 * and abstract name. Whatever comes from outside (blz__address_from_system) is taken apart and put
 * together again. The structs are copied in and out of `storage`, never pointed into: its type is
 * another one, and the copies are compiled to plain loads.
 */
#include "system/address.h"

#include "system/posix/family.h"

#include <arpa/inet.h>
#include <blitz/error.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

_Static_assert(sizeof(blz_addr) == 136, "part of the ABI");
_Static_assert(sizeof((blz_addr){0}.storage) >= sizeof(struct sockaddr_un) + 1, "and a NUL");

enum {
    PATH_AT = offsetof(struct sockaddr_un, sun_path),
    PATH_SIZE = sizeof(struct sockaddr_un) - PATH_AT,
};

/* ---- in and out of storage ---- */

int blz__address_family(const blz_addr *addr)
{
    struct sockaddr sa;

    if (addr->len == 0)
        return BLZ_ADDR_NONE;
    memcpy(&sa, addr->storage, sizeof sa);
    return family_of_system(sa.sa_family);
}

static blz_addr put(const void *sa, size_t len)
{
    blz_addr addr = {.len = (uint32_t)len};

    memcpy(addr.storage, sa, len);
    return addr;
}

/* ---- IP addresses ---- */

blz_addr blz__address_from_ip(const struct blz__address_ip *ip)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(ip->port)};
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons(ip->port),
                                .sin6_flowinfo = htonl(ip->flowinfo),
                                .sin6_scope_id = ip->scope_id};

    if (ip->family == BLZ_ADDR_V4) {
        memcpy(&sin.sin_addr, ip->bytes, sizeof sin.sin_addr);
        return put(&sin, sizeof sin);
    }
    memcpy(&sin6.sin6_addr, ip->bytes, sizeof sin6.sin6_addr);
    return put(&sin6, sizeof sin6);
}

static struct blz__address_ip ip_of_v4(const void *sa)
{
    struct blz__address_ip ip = {.family = BLZ_ADDR_V4};
    struct sockaddr_in sin;

    memcpy(&sin, sa, sizeof sin);
    memcpy(ip.bytes, &sin.sin_addr, sizeof sin.sin_addr);
    ip.port = ntohs(sin.sin_port);
    return ip;
}

static struct blz__address_ip ip_of_v6(const void *sa)
{
    struct blz__address_ip ip = {.family = BLZ_ADDR_V6};
    struct sockaddr_in6 sin6;

    memcpy(&sin6, sa, sizeof sin6);
    memcpy(ip.bytes, &sin6.sin6_addr, sizeof sin6.sin6_addr);
    ip.port = ntohs(sin6.sin6_port);
    ip.scope_id = sin6.sin6_scope_id;
    ip.flowinfo = ntohl(sin6.sin6_flowinfo);
    return ip;
}

bool blz__address_to_ip(const blz_addr *addr, struct blz__address_ip *ip)
{
    switch (blz__address_family(addr)) {
    case BLZ_ADDR_V4:
        *ip = ip_of_v4(addr->storage);
        return true;
    case BLZ_ADDR_V6:
        *ip = ip_of_v6(addr->storage);
        return true;
    default:
        *ip = (struct blz__address_ip){.family = BLZ_ADDR_NONE};
        return false;
    }
}

/* ---- Unix sockets ---- */

/* `raw` is what goes into sun_path. */
static blz_addr put_unix(const char *raw, size_t len)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    if (len > 0)
        memcpy(sun.sun_path, raw, len);
    return put(&sun, PATH_AT + len);
}

int blz__address_from_path(blz_addr *addr, const char *path, size_t len)
{
    char raw[PATH_SIZE] = "";

    if (len == 0 || memchr(path, '\0', len))
        return -EINVAL;
    if (len >= sizeof raw)
        return -ENAMETOOLONG;
    memcpy(raw, path, len);
    *addr = put_unix(raw, len + 1);
    return 0;
}

blz_addr blz__address_unnamed(void)
{
    return put_unix(NULL, 0);
}

const char *blz__address_unix_name(const blz_addr *addr, size_t *len, bool *abstract)
{
    const char *bytes = (const char *)addr->storage + PATH_AT;
    size_t size = addr->len - PATH_AT;

    if (blz__address_family(addr) != BLZ_ADDR_UNIX)
        return NULL;
    *abstract = size > 0 && bytes[0] == '\0';
    *len = *abstract ? size - 1 : strnlen(bytes, size);
    return bytes + *abstract;
}

/* ---- from the system ---- */

/*
 * A path ends at its NUL, or where the array does: Linux allows one of 108 bytes, without a NUL,
 * and then gives a length that counts the missing NUL.
 */
static int from_unix(blz_addr *addr, const struct sockaddr *sa, size_t len)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    size_t size = len - PATH_AT;

    if (size > PATH_SIZE + 1)
        return -EINVAL;
    if (size > PATH_SIZE)
        size = PATH_SIZE;
    memcpy(sun.sun_path, (const char *)sa + PATH_AT, size);
    if (size > 0 && sun.sun_path[0] != '\0') {
        size = strnlen(sun.sun_path, size);
        size += size < PATH_SIZE; /* the NUL */
    }
    *addr = put_unix(sun.sun_path, size);
    return 0;
}

int blz__address_from_system(blz_addr *addr, const struct sockaddr *sa, size_t len)
{
    struct blz__address_ip ip;
    sa_family_t family;

    if (len < offsetof(struct sockaddr, sa_data))
        return -EINVAL;
    memcpy(&family, (const char *)sa + offsetof(struct sockaddr, sa_family), sizeof family);
    if (family == AF_UNIX)
        return from_unix(addr, sa, len);
    if (family != AF_INET && family != AF_INET6)
        return -EAFNOSUPPORT;
    if (len < (family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)))
        return -EINVAL;
    ip = family == AF_INET ? ip_of_v4(sa) : ip_of_v6(sa);
    *addr = blz__address_from_ip(&ip);
    return 0;
}
