/* SPDX-License-Identifier: Apache-2.0 */
/* The system's resolver, which waits. Runs on threads of the blocking pool. */
#include "net/net.h"

#include "system/name.h"

static int push_found(const blz_addr *addr, void *arg)
{
    return blz_addrs_push(arg, addr);
}

static int system_resolve(blz_addrs *addrs, const char *host, const char *service,
                          const blz_lookup_hints *hints, void *arg)
{
    struct blz__name_query query = {.host = host,
                                    .service = service,
                                    .family = hints->family,
                                    .datagram = hints->datagram,
                                    .configured = hints->configured};

    (void)arg;
    return blz__name_resolve(&query, push_found, addrs);
}

const blz_resolver blz__system_resolver = {.resolve = system_resolve};
