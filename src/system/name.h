/* SPDX-License-Identifier: Apache-2.0 */
/* Names of hosts, services and network interfaces. */
#ifndef BLZ_SYSTEM_NAME_H
#define BLZ_SYSTEM_NAME_H

#include <blitz/addr.h>

/* What is asked for. */
struct blz__name_query {
    const char *host;
    const char *service; /* or NULL: ports are 0 */
    int family;          /* BLZ_ADDR_V4, _V6, or _NONE: any */
    bool datagram;       /* the service of UDP, not of TCP */
    bool configured;     /* only families that this machine has an address of */
};

/*
 * Waits until the system has looked a name up, and calls found(addr, arg) for each address, in the
 * order that the system prefers. The lookup ends when `found` gives a negative value, which is then
 * the result. 0, or a negative error:
 *
 *   -ENONET            there is no such host, or service for it
 *   -ENODATA           the host has no address of this family
 *   -EAFNOSUPPORT      the system does not have the family, or the host has none of it
 *   -EPROTONOSUPPORT   there is no such service
 *   -EAGAIN            a name server did not answer; trying again may help
 *   -EREMOTEIO         a name server failed
 *   -ENOMEM, -EMFILE   and other errors of the system, never -ECANCELED
 *   -EIO               what the system said has no name
 *
 * [any thread that may wait]
 */
int blz__name_resolve(const struct blz__name_query *query,
                      int (*found)(const blz_addr *addr, void *arg), void *arg);

/*
 * The number of a network interface, from 1 up; -ENODEV: there is none of this name; or another
 * negative error. Windows has names of another kind than those that users see. [any thread]
 */
int64_t blz__name_interface(const char *name, size_t len);

#endif
