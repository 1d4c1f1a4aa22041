/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of getaddrinfo(3) in glibc. */
#include "system/posix/addrinfo.h"

#include <blitz/error.h>
#include <netdb.h>
#include <stddef.h>

int blz__name_error(int eai, int system_error)
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
