/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that the kernel does not have, or that a filter refuses. */
#ifndef BLZ_SYSTEM_LINUX_REFUSED_H
#define BLZ_SYSTEM_LINUX_REFUSED_H

#include <errno.h>
#include <stdbool.h>

/*
 * Whether an errno may mean that the kernel does not have a call, or that a system call filter
 * refuses it. The caller then does its work by an older call, which gives the real error if there
 * is one.
 */
static inline bool sys_is_refused(int error)
{
    return error == ENOSYS || error == EPERM || error == EACCES;
}

#endif
