/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's resolver: getaddrinfo, which blocks, and its errors, which are numbers of their own.
 * Runs on threads of the blocking pool.
 */
#include "net/net.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

int blz__dns_error(int eai, int system_error)
{
    static const struct {
        int eai, error;
    } table[] = {
        {EAI_NONAME, ENONET},
        {EAI_NODATA, ENODATA},
        {EAI_ADDRFAMILY, EAFNOSUPPORT},
        {EAI_FAMILY, EAFNOSUPPORT},
        {EAI_AGAIN, EAGAIN},
        {EAI_FAIL, EREMOTEIO},
        {EAI_SERVICE, EPROTONOSUPPORT},
        {EAI_SOCKTYPE, ESOCKTNOSUPPORT},
        {EAI_MEMORY, ENOMEM},
        {EAI_OVERFLOW, EOVERFLOW},
        {EAI_IDN_ENCODE, EILSEQ},
        {EAI_INTR, EINTR},
        {EAI_BADFLAGS, EPROTO},
    };

    if (eai == 0)
        return 0;
    /* That one would be taken for a task that was cancelled. */
    if (eai == EAI_SYSTEM && system_error > 0 && system_error != ECANCELED)
        return -system_error;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].eai == eai)
            return -table[i].error;
    return -EIO;
}

int blz__dns_collect(blz_addrs *addrs, const struct addrinfo *list)
{
    for (const struct addrinfo *info = list; info; info = info->ai_next) {
        blz_addr addr;
        if (!info->ai_addr || blz_addr_from_sockaddr(&addr, info->ai_addr, info->ai_addrlen) < 0)
            continue; /* a family that we do not know */
        int rc = blz_addrs_push(addrs, &addr);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int system_family(int family)
{
    return family == BLZ_ADDR_V4 ? AF_INET : family == BLZ_ADDR_V6 ? AF_INET6 : AF_UNSPEC;
}

static int system_resolve(void *arg, const char *host, const char *service,
                          const blz_lookup_hints *hints, blz_addrs *addrs)
{
    struct addrinfo how = {.ai_family = system_family(hints->family),
                           .ai_socktype = hints->datagram ? SOCK_DGRAM : SOCK_STREAM,
                           .ai_flags = hints->configured ? AI_ADDRCONFIG : 0};
    struct addrinfo *list = NULL;
    int rc;

    (void)arg;
    errno = 0;
    rc = getaddrinfo(host, service, &how, &list);
    if (rc != 0)
        return blz__dns_error(rc, errno);
    rc = blz__dns_collect(addrs, list);
    freeaddrinfo(list);
    return rc;
}

const blz_resolver blz__system_resolver = {.resolve = system_resolve};
