/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the disk by fallocate(2). posix_fallocate would write zeros where that cannot be done. */
#include "system/file.h"

#include "system/posix/retry.h"

#include <fcntl.h>

int blz__file_allocate(blz_sysfd fd, int64_t offset, int64_t len, bool keep_len)
{
    int rc;

    SYS_RETRY(rc, fallocate(fd, keep_len ? FALLOC_FL_KEEP_SIZE : 0, offset, len));
    return sys_result(rc);
}
