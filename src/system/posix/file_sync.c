/* SPDX-License-Identifier: Apache-2.0 */
/* What was written is put on the disk by fsync and fdatasync. */
#include "system/file.h"

#include "system/posix/retry.h"

#include <unistd.h>

int blz__file_sync(blz_sysfd fd, bool data_only)
{
    int rc;

    SYS_RETRY(rc, data_only ? fdatasync(fd) : fsync(fd));
    return sys_result(rc);
}
