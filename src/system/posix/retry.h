/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that are made again while a signal interrupts them. */
#ifndef BLZ_SYSTEM_POSIX_RETRY_H
#define BLZ_SYSTEM_POSIX_RETRY_H

#include "system/posix/result.h"

/* Makes a call until no signal interrupts it; `rc` is what it returns. */
#define SYS_RETRY(rc, call) \
    do                      \
        (rc) = (call);      \
    while ((rc) < 0 && errno == EINTR)

/* Of a call that gives -1, or a number: bytes, a descriptor. */
static inline int64_t sys_count(int64_t n)
{
    return n < 0 ? sys_error() : n;
}

#endif
