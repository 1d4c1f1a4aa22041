/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of sockets, between the form that the system has and their parts.
 *
 * A blz_addr holds the bytes that the system's calls want, in canonical form: every byte that has
 * no meaning is zero, up to the end of `storage`. So two addresses are equal if their bytes are.
 * `len` is the number of bytes for the system; 0 is no address (BLZ_ADDR_NONE).
 *
 * Nothing here calls the system. All functions: [any thread]. Abstract names: Linux only, elsewhere
 * -ENOTSUP. A path has up to 107 bytes; 103 on macOS and the BSDs.
 */
#ifndef BLZ_SYSTEM_ADDRESS_H
#define BLZ_SYSTEM_ADDRESS_H

#include <blitz/addr.h>

/* The parts of an IP address. */
struct blz__address_ip {
    int family;        /* BLZ_ADDR_V4 or BLZ_ADDR_V6 */
    uint8_t bytes[16]; /* in network order; of IPv4 the first four */
    uint16_t port;
    uint32_t scope_id, flowinfo; /* of IPv6 */
};

/* BLZ_ADDR_V4, _V6, _UNIX, or _NONE. */
int blz__address_family(const blz_addr *addr);

/* Puts an IP address together. */
blz_addr blz__address_from_ip(const struct blz__address_ip *ip);

/* Takes an IP address apart. False: it is none, and *ip is zero. */
bool blz__address_to_ip(const blz_addr *addr, struct blz__address_ip *ip);

/*
 * A Unix socket at a path: any bytes but NUL. 0; -EINVAL: empty, or a NUL is in it; -ENAMETOOLONG.
 * *addr changes only on success.
 */
int blz__address_from_path(blz_addr *addr, const char *path, size_t len);

/* A Unix socket with an abstract name: any bytes, or none. 0; -ENAMETOOLONG; -ENOTSUP. */
int blz__address_from_abstract(blz_addr *addr, const void *name, size_t len);

/* A Unix socket without a name. */
blz_addr blz__address_unnamed(void);

/*
 * The path, which ends in a NUL, or the abstract name of a Unix socket, in the address itself, and
 * its length; length 0 and not abstract: it has no name. NULL: no Unix socket.
 */
const char *blz__address_unix_name(const blz_addr *addr, size_t *len, bool *abstract);

/*
 * From what the system's calls gave: 0 and *addr in canonical form. -EAFNOSUPPORT: another family;
 * -EINVAL: too short or too long for its family. May read and write the same bytes.
 */
int blz__address_from_system(blz_addr *addr, const struct sockaddr *sa, size_t len);

/* For the system's calls: valid as long as *addr is, and addr->len bytes long. */
static inline const struct sockaddr *blz__address_to_system(const blz_addr *addr)
{
    return (const struct sockaddr *)(const void *)addr->storage;
}

#endif
