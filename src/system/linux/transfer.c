/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that the kernel moves: splice, sendfile, copy_file_range, and blocks that files share. */
#include "system/transfer.h"

#include "system/linux/refused.h"
#include "system/posix/retry.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* EINVAL: the kernel does not do it with these two. */
static int64_t result_of_move(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EINVAL || errno == EOPNOTSUPP || sys_is_refused(errno) ? -ENOTSUP : -errno;
}

/* ---- without waiting ---- */

int64_t blz__transfer_splice(blz_sysfd from, blz_sysfd to, size_t len)
{
    ssize_t n;

    SYS_RETRY(n, splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
    return result_of_move(n);
}

int64_t blz__transfer_send_file(blz_sysfd to, blz_sysfd file, int64_t offset, size_t len)
{
    off_t at = offset;
    ssize_t n;

    SYS_RETRY(n, sendfile(to, file, offset == FILE_AT_POSITION ? NULL : &at, len));
    return result_of_move(n);
}

/* ---- between files ---- */

/*
 * EXDEV: other file systems. EBADF: one that was opened to append. EPERM is also what a file says
 * that must not be written; whoever writes instead is told.
 */
static bool cannot_copy(int error)
{
    return error == EXDEV || error == EINVAL || error == EOPNOTSUPP || error == EBADF ||
           sys_is_refused(error);
}

int64_t blz__transfer_copy(blz_sysfd from, blz_sysfd to, size_t len)
{
    ssize_t n;

    SYS_RETRY(n, copy_file_range(from, NULL, to, NULL, len, 0));
    return n < 0 && cannot_copy(errno) ? -ENOTSUP : sys_count(n);
}

/* What stands in the way of sharing does not stand in the way of copying. */
int blz__transfer_clone(blz_sysfd from, blz_sysfd to)
{
    return ioctl(to, FICLONE, from) < 0 ? -ENOTSUP : 0;
}
