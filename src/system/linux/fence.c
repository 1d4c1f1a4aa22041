/* SPDX-License-Identifier: Apache-2.0 */
/* Asymmetric fences by membarrier(2). */
#include "system/fence.h"

#include "base/panic.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool blz__fence_asymmetric_init(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/*
 * The registration has succeeded, so only memory can run out, for a moment. Any other failure means
 * that a system call filter was installed later. Without the fence two threads would be inside of
 * one lock, so the process must not go on.
 */
void blz__fence_heavy(void)
{
    while (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        if (errno != ENOMEM)
            blz__panic("membarrier worked at the start and fails now (%s): a system call filter "
                       "must allow it, or refuse it before the first runtime, channel or pool",
                       strerror(errno));
        sched_yield();
    }
}
