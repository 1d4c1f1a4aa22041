/* SPDX-License-Identifier: Apache-2.0 */
/* Front door of src/net. */
#ifndef BLZ_NET_NET_H
#define BLZ_NET_NET_H

#include <blitz/addr.h>
#include <blitz/dns.h>

/* ---- addresses ---- */

/* A decimal number without sign and leading zeros, up to `max`. False: it is not one. */
bool blz__parse_decimal(const char *text, size_t len, uint32_t max, uint32_t *value);

/*
 * Reads "host:service", where the host is a name, an IPv4 address, or in brackets an IPv6 address.
 * -EINVAL: it has another form. What the parts say is not looked at.
 */
struct blz__host_service {
    const char *host, *service;
    size_t host_len, service_len;
};
int blz__split_host_service(const char *text, size_t len, struct blz__host_service *parts);

/* ---- names ---- */

/* Whether it may be looked up: 0, -EINVAL, -ENAMETOOLONG. It is not an IP address. */
int blz__dns_check_name(const char *name, size_t len);

/* The same for a service: 1 and *port if it is a number, 0 if it is a name, -EINVAL. */
int blz__dns_check_service(const char *service, size_t len, uint16_t *port);

/* The system's, for threads of the blocking pool. */
extern const blz_resolver blz__system_resolver;

#endif
