/* SPDX-License-Identifier: Apache-2.0 */
/* What getaddrinfo(3) says, in the language of the contract. */
#ifndef BLZ_SYSTEM_POSIX_ADDRINFO_H
#define BLZ_SYSTEM_POSIX_ADDRINFO_H

#include <blitz/addr.h>

struct addrinfo;

/*
 * The negative error for a number of getaddrinfo, or 0; `system_error` is errno. A table a system
 * (name_error.c), because their sets differ.
 */
int blz__name_error(int eai, int system_error);

/* Calls `found` for each address of a family that the library knows. 0, or what it gave. */
int blz__name_collect(const struct addrinfo *list, int (*found)(const blz_addr *addr, void *arg),
                      void *arg);

#endif
