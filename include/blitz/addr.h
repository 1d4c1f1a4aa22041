/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: IPv4, IPv6 and Unix sockets in one value.
 *
 *     blz_addr addr;
 *     char text[BLZ_ADDR_TEXT];
 *     int rc = blz_addr_parse(&addr, "[fe80::1%eth0]:443");
 *     if (rc < 0)
 *         return rc;
 *     blz_addr_set_port(&addr, 8443);
 *     rc = blz_addr_format(&addr, text, sizeof text);      // "[fe80::1%2]:8443"
 *
 * A blz_addr is a value: copy it, keep it, compare it. All zero is "no address" (BLZ_ADDR_NONE).
 * It holds the system's struct sockaddr, always in one canonical form, so that equal addresses are
 * equal bytes. Nothing here allocates, and nothing here asks a name server: for names see
 * blitz/dns.h.
 *
 * The text of an address:
 *
 *     127.0.0.1:80          IPv4
 *     [::1]:80              IPv6
 *     [fe80::1%eth0]:80     IPv6 with the interface, by name or by number (%2)
 *     :8080                 the same as [::]:8080, "any": a listener there takes IPv4 as well
 *     unix:/run/app.sock    a Unix socket in the file system
 *     unix:@app             a Unix socket with an abstract name (Linux)
 *     unix:                 a Unix socket without a name, as most clients have
 *
 * Parsing is strict: four decimal numbers for IPv4 (no octal, no leading zeros), ports 0 to 65535
 * in decimal, nothing before or after, and nothing is ever cut off. In the name of a Unix socket
 * \xHH stands for the byte HH, which is how control characters, backslashes and an @ that begins a
 * path are written.
 */
#ifndef BLITZ_ADDR_H
#define BLITZ_ADDR_H

#include <blitz/base.h>

struct sockaddr;

BLZ_BEGIN_DECLS

/* What kind of address it is: blz_addr_family. */
enum { BLZ_ADDR_NONE = 0, BLZ_ADDR_V4 = 1, BLZ_ADDR_V6 = 2, BLZ_ADDR_UNIX = 3 };

/* An address of any kind; a value, to be copied. All zero: none. */
typedef struct blz_addr {
    uint64_t storage[16]; /* a struct sockaddr; zero from `len` on */
    uint32_t len;         /* 0: no address */
    uint32_t reserved;
} blz_addr;

/* Room for the text of any address, with the final NUL. */
#define BLZ_ADDR_TEXT 448

/* ---- Text [any thread] ---- */

/*
 * Reads an address with its port, as above. 0; -EINVAL: not an address; -ENAMETOOLONG: the name of
 * a Unix socket does not fit; -ENODEV: no such interface (or what the system says when asked for
 * its number). *addr changes only on success.
 */
BLZ_API BLZ_NODISCARD int blz_addr_parse(blz_addr *addr, const char *text);

/*
 * Reads an address from text that has a length and no final NUL: 0 and *addr; the errors of
 * blz_addr_parse.
 */
BLZ_API BLZ_NODISCARD int blz_addr_parse_n(blz_addr *addr, const char *text, size_t len);

/*
 * Reads an IP address alone, without brackets ("10.0.0.1", "fe80::1%eth0"); the port is given: 0
 * and *addr; the errors of blz_addr_parse.
 */
BLZ_API BLZ_NODISCARD int blz_addr_parse_ip(blz_addr *addr, const char *text, size_t len,
                                            uint16_t port);

/*
 * Writes the text and a NUL; blz_addr_parse reads it back to an equal address (but for the flow
 * information of IPv6, which has no text, and a path of 108 bytes, which only a peer can have; the
 * interface is written as a number). Returns the length
 * without the NUL, or -ENOSPC: it does not fit, and `buf` is an empty string. With `buf` NULL and
 * `size` 0, returns the length that would be written. -EINVAL: no address.
 */
BLZ_API int blz_addr_format(const blz_addr *addr, char *buf, size_t size);

/*
 * Writes the text of the IP address alone, without port and brackets, and a NUL. Returns the length
 * without the NUL; -ENOSPC: it does not fit, and `buf` is an empty string; -EAFNOSUPPORT: a Unix
 * socket; -EINVAL: no address.
 */
BLZ_API int blz_addr_format_ip(const blz_addr *addr, char *buf, size_t size);

/* ---- Making addresses [any thread] ---- */

/* From bytes in network order: 127.0.0.1 is {127, 0, 0, 1}. */
BLZ_API blz_addr blz_addr_v4(const uint8_t ip[4], uint16_t port);
BLZ_API blz_addr blz_addr_v6(const uint8_t ip[16], uint16_t port, uint32_t scope_id);

/* This machine only; every interface. `family` is BLZ_ADDR_V4 or BLZ_ADDR_V6, else: no address. */
BLZ_API blz_addr blz_addr_loopback(int family, uint16_t port);
BLZ_API blz_addr blz_addr_any(int family, uint16_t port);

/*
 * A Unix socket: a path in the file system (not empty, no NUL); an abstract name (any bytes, which
 * may be none); without a name. 0; -EINVAL; -ENAMETOOLONG: more than 107 bytes (103 on macOS and
 * the BSDs); -ENOTSUP: abstract names, anywhere but on Linux.
 */
BLZ_API BLZ_NODISCARD int blz_addr_unix(blz_addr *addr, const char *path);
BLZ_API BLZ_NODISCARD int blz_addr_unix_abstract(blz_addr *addr, const void *name, size_t len);
BLZ_API blz_addr blz_addr_unix_unnamed(void);

/*
 * From and to what the system's calls use. From: -EAFNOSUPPORT: another family; -EINVAL: too short
 * or too long for its family. To: valid as long as *addr is; *len is addr->len.
 */
BLZ_API BLZ_NODISCARD int blz_addr_from_sockaddr(blz_addr *addr, const struct sockaddr *sa,
                                                 size_t len);
BLZ_API const struct sockaddr *blz_addr_sockaddr(const blz_addr *addr, uint32_t *len);

/* ---- Looking at addresses [any thread] ---- */

/* The family of the address: BLZ_ADDR_NONE, _V4, _V6 or _UNIX. It cannot fail. */
BLZ_API int blz_addr_family(const blz_addr *addr);

/* The port; 0 for a Unix socket. Setting one: -EAFNOSUPPORT for a Unix socket. */
BLZ_API uint16_t blz_addr_port(const blz_addr *addr);
BLZ_API int blz_addr_set_port(blz_addr *addr, uint16_t port);

/*
 * Gets or sets the number of the interface, and the flow information, of an IPv6 address. To get
 * gives 0 for others; to set gives -EAFNOSUPPORT.
 */
BLZ_API uint32_t blz_addr_scope_id(const blz_addr *addr);
BLZ_API uint32_t blz_addr_flowinfo(const blz_addr *addr);
BLZ_API int blz_addr_set_scope_id(blz_addr *addr, uint32_t scope_id);
BLZ_API int blz_addr_set_flowinfo(blz_addr *addr, uint32_t flowinfo);

/*
 * Copies the bytes of the IP address: 4 or 16, how many there are; 0: it has none. It cannot fail.
 */
BLZ_API int blz_addr_ip(const blz_addr *addr, uint8_t ip[16]);

/*
 * The name of a Unix socket, *len bytes at the pointer, which is followed by a NUL and valid as
 * long as *addr is. For an abstract name *abstract is true, and the bytes are those behind the
 * leading NUL. No name: length 0. NULL: not a Unix socket.
 */
BLZ_API const char *blz_addr_unix_name(const blz_addr *addr, size_t *len, bool *abstract);

/*
 * Whether the address is of that kind. An IPv4 address inside an IPv6 one (::ffff:127.0.0.1) is
 * judged like the IPv4 address.
 */
BLZ_API bool blz_addr_is_loopback(const blz_addr *addr);
BLZ_API bool blz_addr_is_multicast(const blz_addr *addr);
BLZ_API bool blz_addr_is_unspecified(const blz_addr *addr); /* 0.0.0.0, :: */
BLZ_API bool blz_addr_is_link_local(const blz_addr *addr);  /* 169.254.0.0/16, fe80::/10 */
BLZ_API bool blz_addr_is_v4_mapped(const blz_addr *addr);

/* 127.0.0.1 <-> ::ffff:127.0.0.1. Any other address is returned as it is. */
BLZ_API blz_addr blz_addr_to_v4_mapped(const blz_addr *addr);
BLZ_API blz_addr blz_addr_from_v4_mapped(const blz_addr *addr);

/*
 * Compares two addresses: negative, 0 or positive; 0 means equal. By family, IP address, port,
 * scope, flow information; Unix sockets without a name, then paths, then abstract names, by their
 * bytes. It cannot fail.
 */
BLZ_API int blz_addr_compare(const blz_addr *a, const blz_addr *b);
BLZ_API bool blz_addr_equal(const blz_addr *a, const blz_addr *b);

/* Equal addresses have equal hashes under one seed. Not for keys that an attacker may choose. */
BLZ_API uint64_t blz_addr_hash(const blz_addr *addr, uint64_t seed);

BLZ_END_DECLS
#endif
