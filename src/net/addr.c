/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: making them, looking at them, comparing them.
 *
 * The invariant: an address is in canonical form. `storage` holds a sockaddr_in, sockaddr_in6 or
 * sockaddr_un with every byte that has no meaning zero, up to the end of `storage`; `len` is the
 * size of the struct, or for a Unix socket what bind() wants: the family alone (no name), path and
 * NUL, or NUL and abstract name. So equality is equality of bytes, and a hash is one of bytes.
 * Whatever comes from outside (blz_addr_from_sockaddr) is taken apart and put together again.
 *
 * The structs are copied in and out of `storage`, never pointed into: its type is another one, and
 * the copies are compiled to plain loads.
 */
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

_Static_assert(sizeof(blz_addr) == 136, "part of the ABI");
_Static_assert(sizeof((blz_addr){0}.storage) >= sizeof(struct sockaddr_un) + 1, "and a NUL");

enum {
    PATH_AT = offsetof(struct sockaddr_un, sun_path),
    PATH_SIZE = sizeof(struct sockaddr_un) - PATH_AT,
    MAPPED_AT = 12, /* where the IPv4 address is in a mapped one */
};

static const uint8_t mapped_prefix[MAPPED_AT] = {[10] = 0xff, [11] = 0xff};

/* ---- in and out of storage ---- */

static sa_family_t system_family(const blz_addr *addr)
{
    struct sockaddr sa;

    memcpy(&sa, addr->storage, sizeof sa);
    return sa.sa_family;
}

static struct sockaddr_in get_v4(const blz_addr *addr)
{
    struct sockaddr_in sin;

    memcpy(&sin, addr->storage, sizeof sin);
    return sin;
}

static struct sockaddr_in6 get_v6(const blz_addr *addr)
{
    struct sockaddr_in6 sin6;

    memcpy(&sin6, addr->storage, sizeof sin6);
    return sin6;
}

/* The bytes of a Unix socket's name, as the system has them: with a path's or in front the NUL. */
static const char *unix_bytes(const blz_addr *addr, size_t *len)
{
    *len = addr->len - PATH_AT;
    return (const char *)addr->storage + PATH_AT;
}

static blz_addr put(const void *sa, size_t len)
{
    blz_addr addr = {.len = (uint32_t)len};

    memcpy(addr.storage, sa, len);
    return addr;
}

/* ---- making ---- */

blz_addr blz_addr_v4(const uint8_t ip[4], uint16_t port)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

    memcpy(&sin.sin_addr, ip, sizeof sin.sin_addr);
    return put(&sin, sizeof sin);
}

blz_addr blz_addr_v6(const uint8_t ip[16], uint16_t port, uint32_t scope_id)
{
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons(port),
                                .sin6_scope_id = scope_id};

    memcpy(&sin6.sin6_addr, ip, sizeof sin6.sin6_addr);
    return put(&sin6, sizeof sin6);
}

static blz_addr ip_of_family(int family, const uint8_t v4[4], const uint8_t v6[16], uint16_t port)
{
    if (family == BLZ_ADDR_V4)
        return blz_addr_v4(v4, port);
    if (family == BLZ_ADDR_V6)
        return blz_addr_v6(v6, port, 0);
    return (blz_addr){.len = 0};
}

blz_addr blz_addr_loopback(int family, uint16_t port)
{
    static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
    return ip_of_family(family, v4, v6, port);
}

blz_addr blz_addr_any(int family, uint16_t port)
{
    static const uint8_t zero[16];
    return ip_of_family(family, zero, zero, port);
}

/* `raw` is what goes into sun_path. */
static void put_unix(blz_addr *addr, const char *raw, size_t len)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    if (len > 0)
        memcpy(sun.sun_path, raw, len);
    *addr = put(&sun, PATH_AT + len);
}

int blz__addr_set_path(blz_addr *addr, const char *path, size_t len)
{
    char raw[PATH_SIZE] = "";

    if (len == 0 || memchr(path, '\0', len))
        return -EINVAL;
    if (len >= sizeof raw)
        return -ENAMETOOLONG;
    memcpy(raw, path, len);
    put_unix(addr, raw, len + 1);
    return 0;
}

int blz_addr_unix(blz_addr *addr, const char *path)
{
    return blz__addr_set_path(addr, path, strlen(path));
}

int blz_addr_unix_abstract(blz_addr *addr, const void *name, size_t len)
{
    char raw[PATH_SIZE] = "";

    if (len >= sizeof raw)
        return -ENAMETOOLONG;
    if (len > 0)
        memcpy(raw + 1, name, len);
    put_unix(addr, raw, len + 1);
    return 0;
}

blz_addr blz_addr_unix_unnamed(void)
{
    blz_addr addr;

    put_unix(&addr, NULL, 0);
    return addr;
}

/* ---- from and to the system's calls ---- */

static int from_v4(blz_addr *addr, const struct sockaddr *sa, size_t len)
{
    struct sockaddr_in sin;
    uint8_t ip[4];

    if (len < sizeof sin)
        return -EINVAL;
    memcpy(&sin, sa, sizeof sin);
    memcpy(ip, &sin.sin_addr, sizeof ip);
    *addr = blz_addr_v4(ip, ntohs(sin.sin_port));
    return 0;
}

static int from_v6(blz_addr *addr, const struct sockaddr *sa, size_t len)
{
    struct sockaddr_in6 sin6;

    if (len < sizeof sin6)
        return -EINVAL;
    memcpy(&sin6, sa, sizeof sin6);
    *addr = blz_addr_v6(sin6.sin6_addr.s6_addr, ntohs(sin6.sin6_port), sin6.sin6_scope_id);
    return blz_addr_set_flowinfo(addr, ntohl(sin6.sin6_flowinfo));
}

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
        memset(sun.sun_path + size, 0, PATH_SIZE - size);
        size += size < PATH_SIZE; /* the NUL */
    }
    put_unix(addr, sun.sun_path, size);
    return 0;
}

int blz_addr_from_sockaddr(blz_addr *addr, const struct sockaddr *sa, size_t len)
{
    sa_family_t family;

    if (len < offsetof(struct sockaddr, sa_data))
        return -EINVAL;
    memcpy(&family, (const char *)sa + offsetof(struct sockaddr, sa_family), sizeof family);
    if (family == AF_INET)
        return from_v4(addr, sa, len);
    if (family == AF_INET6)
        return from_v6(addr, sa, len);
    if (family == AF_UNIX)
        return from_unix(addr, sa, len);
    return -EAFNOSUPPORT;
}

const struct sockaddr *blz_addr_sockaddr(const blz_addr *addr, uint32_t *len)
{
    *len = addr->len;
    return (const struct sockaddr *)(const void *)addr->storage;
}

/* ---- looking ---- */

int blz_addr_family(const blz_addr *addr)
{
    if (addr->len == 0)
        return BLZ_ADDR_NONE;
    switch (system_family(addr)) {
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

uint16_t blz_addr_port(const blz_addr *addr)
{
    switch (blz_addr_family(addr)) {
    case BLZ_ADDR_V4:
        return ntohs(get_v4(addr).sin_port);
    case BLZ_ADDR_V6:
        return ntohs(get_v6(addr).sin6_port);
    default:
        return 0;
    }
}

static int set_v6(blz_addr *addr, const struct sockaddr_in6 *sin6)
{
    *addr = put(sin6, sizeof *sin6);
    return 0;
}

int blz_addr_set_port(blz_addr *addr, uint16_t port)
{
    struct sockaddr_in sin;
    struct sockaddr_in6 sin6;

    switch (blz_addr_family(addr)) {
    case BLZ_ADDR_V4:
        sin = get_v4(addr);
        sin.sin_port = htons(port);
        *addr = put(&sin, sizeof sin);
        return 0;
    case BLZ_ADDR_V6:
        sin6 = get_v6(addr);
        sin6.sin6_port = htons(port);
        return set_v6(addr, &sin6);
    default:
        return -EAFNOSUPPORT;
    }
}

uint32_t blz_addr_scope_id(const blz_addr *addr)
{
    return blz_addr_family(addr) == BLZ_ADDR_V6 ? get_v6(addr).sin6_scope_id : 0;
}

uint32_t blz_addr_flowinfo(const blz_addr *addr)
{
    return blz_addr_family(addr) == BLZ_ADDR_V6 ? ntohl(get_v6(addr).sin6_flowinfo) : 0;
}

int blz_addr_set_scope_id(blz_addr *addr, uint32_t scope_id)
{
    struct sockaddr_in6 sin6 = get_v6(addr);

    if (blz_addr_family(addr) != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    sin6.sin6_scope_id = scope_id;
    return set_v6(addr, &sin6);
}

int blz_addr_set_flowinfo(blz_addr *addr, uint32_t flowinfo)
{
    struct sockaddr_in6 sin6 = get_v6(addr);

    if (blz_addr_family(addr) != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    sin6.sin6_flowinfo = htonl(flowinfo);
    return set_v6(addr, &sin6);
}

int blz_addr_ip(const blz_addr *addr, uint8_t ip[16])
{
    struct sockaddr_in sin = get_v4(addr);
    struct sockaddr_in6 sin6 = get_v6(addr);

    switch (blz_addr_family(addr)) {
    case BLZ_ADDR_V4:
        memcpy(ip, &sin.sin_addr, sizeof sin.sin_addr);
        return sizeof sin.sin_addr;
    case BLZ_ADDR_V6:
        memcpy(ip, &sin6.sin6_addr, sizeof sin6.sin6_addr);
        return sizeof sin6.sin6_addr;
    default:
        return 0;
    }
}

const char *blz_addr_unix_name(const blz_addr *addr, size_t *len, bool *abstract)
{
    size_t size;
    const char *bytes;

    if (blz_addr_family(addr) != BLZ_ADDR_UNIX)
        return NULL;
    bytes = unix_bytes(addr, &size);
    *abstract = size > 0 && bytes[0] == '\0';
    *len = *abstract ? size - 1 : strnlen(bytes, size);
    return bytes + *abstract;
}

/* ---- kinds of addresses ---- */

/* The IP address with a mapped one unpacked: 4, 16, or 0 for none. */
static int plain_ip(const blz_addr *addr, uint8_t ip[16])
{
    int len = blz_addr_ip(addr, ip);

    if (len != 16 || memcmp(ip, mapped_prefix, MAPPED_AT) != 0)
        return len;
    memmove(ip, ip + MAPPED_AT, 4);
    return 4;
}

static bool is_ip(const blz_addr *addr, const blz_addr *other)
{
    uint8_t a[16], b[16];
    int len = plain_ip(addr, a);

    return len > 0 && len == blz_addr_ip(other, b) && memcmp(a, b, (size_t)len) == 0;
}

bool blz_addr_is_loopback(const blz_addr *addr)
{
    blz_addr v6 = blz_addr_loopback(BLZ_ADDR_V6, 0);
    uint8_t ip[16];

    return plain_ip(addr, ip) == 4 ? ip[0] == 127 : is_ip(addr, &v6);
}

bool blz_addr_is_multicast(const blz_addr *addr)
{
    uint8_t ip[16];
    int len = plain_ip(addr, ip);

    return len == 4 ? ip[0] >> 4 == 0xe : len == 16 && ip[0] == 0xff;
}

bool blz_addr_is_unspecified(const blz_addr *addr)
{
    blz_addr v4 = blz_addr_any(BLZ_ADDR_V4, 0), v6 = blz_addr_any(BLZ_ADDR_V6, 0);

    return is_ip(addr, &v4) || is_ip(addr, &v6);
}

bool blz_addr_is_link_local(const blz_addr *addr)
{
    uint8_t ip[16];
    int len = plain_ip(addr, ip);

    if (len == 4)
        return ip[0] == 169 && ip[1] == 254;
    return len == 16 && ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool blz_addr_is_v4_mapped(const blz_addr *addr)
{
    uint8_t ip[16];
    return blz_addr_ip(addr, ip) == 16 && memcmp(ip, mapped_prefix, MAPPED_AT) == 0;
}

blz_addr blz_addr_to_v4_mapped(const blz_addr *addr)
{
    uint8_t ip[16];

    if (blz_addr_family(addr) != BLZ_ADDR_V4)
        return *addr;
    blz_addr_ip(addr, ip);
    memmove(ip + MAPPED_AT, ip, 4);
    memcpy(ip, mapped_prefix, MAPPED_AT);
    return blz_addr_v6(ip, blz_addr_port(addr), 0);
}

blz_addr blz_addr_from_v4_mapped(const blz_addr *addr)
{
    uint8_t ip[16];

    if (!blz_addr_is_v4_mapped(addr))
        return *addr;
    plain_ip(addr, ip);
    return blz_addr_v4(ip, blz_addr_port(addr));
}

/* ---- comparing ---- */

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int order_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
    int found = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return found != 0 ? found : order(a_len, b_len);
}

static int order_ip(const blz_addr *a, const blz_addr *b)
{
    uint8_t a_ip[16], b_ip[16];
    size_t len = (size_t)blz_addr_ip(a, a_ip);
    int found;

    blz_addr_ip(b, b_ip);
    found = memcmp(a_ip, b_ip, len);
    if (found == 0)
        found = order(blz_addr_port(a), blz_addr_port(b));
    if (found == 0)
        found = order(blz_addr_scope_id(a), blz_addr_scope_id(b));
    if (found == 0)
        found = order(blz_addr_flowinfo(a), blz_addr_flowinfo(b));
    return found;
}

static int order_unix(const blz_addr *a, const blz_addr *b)
{
    size_t a_len, b_len;
    bool a_abstract, b_abstract;
    const char *a_name = blz_addr_unix_name(a, &a_len, &a_abstract);
    const char *b_name = blz_addr_unix_name(b, &b_len, &b_abstract);

    if (a_abstract != b_abstract)
        return a_abstract ? 1 : -1;
    return order_bytes(a_name, a_len, b_name, b_len);
}

int blz_addr_compare(const blz_addr *a, const blz_addr *b)
{
    int family = blz_addr_family(a), found = order((uint64_t)family, (uint64_t)blz_addr_family(b));

    if (found != 0 || family == BLZ_ADDR_NONE)
        return found;
    return family == BLZ_ADDR_UNIX ? order_unix(a, b) : order_ip(a, b);
}

bool blz_addr_equal(const blz_addr *a, const blz_addr *b)
{
    return a->len == b->len && memcmp(a->storage, b->storage, a->len) == 0;
}

/* Word by word: all of storage behind `len` is zero. */
uint64_t blz_addr_hash(const blz_addr *addr, uint64_t seed)
{
    uint64_t hash = seed ^ addr->len;

    for (uint32_t i = 0; i * sizeof addr->storage[0] < addr->len; i++) {
        hash = (hash ^ addr->storage[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}
