/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: making them, looking at them, comparing them.
 *
 * The invariant: an address is in canonical form (system/address.h), so equality is equality of
 * bytes, and a hash is one of bytes. Whatever comes from outside (blz_addr_from_sockaddr) is taken
 * apart and put together again.
 */
#include "net/net.h"

#include "system/address.h"

#include <blitz/error.h>
#include <string.h>

enum { MAPPED_AT = 12 }; /* where the IPv4 address is in a mapped one */

static const uint8_t mapped_prefix[MAPPED_AT] = {[10] = 0xff, [11] = 0xff};

/* ---- making ---- */

blz_addr blz_addr_v4(const uint8_t ip[4], uint16_t port)
{
    struct blz__address_ip parts = {.family = BLZ_ADDR_V4, .port = port};

    memcpy(parts.bytes, ip, 4);
    return blz__address_from_ip(&parts);
}

blz_addr blz_addr_v6(const uint8_t ip[16], uint16_t port, uint32_t scope_id)
{
    struct blz__address_ip parts = {.family = BLZ_ADDR_V6, .port = port, .scope_id = scope_id};

    memcpy(parts.bytes, ip, 16);
    return blz__address_from_ip(&parts);
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

int blz_addr_unix(blz_addr *addr, const char *path)
{
    return blz__address_from_path(addr, path, strlen(path));
}

int blz_addr_unix_abstract(blz_addr *addr, const void *name, size_t len)
{
    return blz__address_from_abstract(addr, name, len);
}

blz_addr blz_addr_unix_unnamed(void)
{
    return blz__address_unnamed();
}

/* ---- from and to the system's calls ---- */

int blz_addr_from_sockaddr(blz_addr *addr, const struct sockaddr *sa, size_t len)
{
    return blz__address_from_system(addr, sa, len);
}

const struct sockaddr *blz_addr_sockaddr(const blz_addr *addr, uint32_t *len)
{
    *len = addr->len;
    return blz__address_to_system(addr);
}

/* ---- looking ---- */

int blz_addr_family(const blz_addr *addr)
{
    return blz__address_family(addr);
}

uint16_t blz_addr_port(const blz_addr *addr)
{
    struct blz__address_ip ip;

    return blz__address_to_ip(addr, &ip) ? ip.port : 0;
}

int blz_addr_set_port(blz_addr *addr, uint16_t port)
{
    struct blz__address_ip ip;

    if (!blz__address_to_ip(addr, &ip))
        return -EAFNOSUPPORT;
    ip.port = port;
    *addr = blz__address_from_ip(&ip);
    return 0;
}

uint32_t blz_addr_scope_id(const blz_addr *addr)
{
    struct blz__address_ip ip;

    return blz__address_to_ip(addr, &ip) ? ip.scope_id : 0;
}

uint32_t blz_addr_flowinfo(const blz_addr *addr)
{
    struct blz__address_ip ip;

    return blz__address_to_ip(addr, &ip) ? ip.flowinfo : 0;
}

int blz_addr_set_scope_id(blz_addr *addr, uint32_t scope_id)
{
    struct blz__address_ip ip;

    if (!blz__address_to_ip(addr, &ip) || ip.family != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    ip.scope_id = scope_id;
    *addr = blz__address_from_ip(&ip);
    return 0;
}

int blz_addr_set_flowinfo(blz_addr *addr, uint32_t flowinfo)
{
    struct blz__address_ip ip;

    if (!blz__address_to_ip(addr, &ip) || ip.family != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    ip.flowinfo = flowinfo;
    *addr = blz__address_from_ip(&ip);
    return 0;
}

int blz_addr_ip(const blz_addr *addr, uint8_t ip[16])
{
    struct blz__address_ip parts;
    int len;

    if (!blz__address_to_ip(addr, &parts))
        return 0;
    len = parts.family == BLZ_ADDR_V4 ? 4 : 16;
    memcpy(ip, parts.bytes, (size_t)len);
    return len;
}

const char *blz_addr_unix_name(const blz_addr *addr, size_t *len, bool *abstract)
{
    return blz__address_unix_name(addr, len, abstract);
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
    uint8_t ip[16] = {0};

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
