/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be done with a file without waiting. Reads and writes have a flag that makes them take
 * or give only what is in the system's memory (RWF_NOWAIT). Not every file system has it, and some
 * have it for reading alone. The type of the file system tells two more things: whether all of it
 * is memory, and whether the metadata of an open file is.
 */
#include "system/file.h"

#include "system/linux/refused.h"
#include "system/posix/retry.h"

#include <limits.h>
#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>

/* A filter may refuse the calls that have flags. */
static int64_t result_of_now(ssize_t n)
{
    if (blz_likely(n >= 0))
        return n;
    return errno == EOPNOTSUPP || sys_is_refused(errno) ? -ENOTSUP : -errno;
}

int64_t blz__file_read_now(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset)
{
    ssize_t n;

    if (count > INT_MAX)
        return -EINVAL;
    SYS_RETRY(n, preadv2(fd, sys_pieces(iov), (int)count, offset, RWF_NOWAIT));
    return result_of_now(n);
}

int64_t blz__file_write_now(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset)
{
    ssize_t n;

    if (count > INT_MAX)
        return -EINVAL;
    SYS_RETRY(n, pwritev2(fd, sys_pieces(iov), (int)count, offset, RWF_NOWAIT));
    return result_of_now(n);
}

/* ---- the file system ---- */

bool blz__file_is_memory(blz_sysfd fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* What an open file is known by is in memory with these; with others it may be a server's. */
static bool is_local(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 &&
           (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
            fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == F2FS_SUPER_MAGIC ||
            fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int blz__file_metadata_now(blz_sysfd fd, blz_metadata *out)
{
    return is_local(fd) ? blz__file_metadata(fd, out) : -EAGAIN;
}
