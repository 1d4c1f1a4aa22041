/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files by POSIX calls, and flock(2), which all Unix systems have. What differs between these
 * systems is in files of its own: file_open.c, file_now.c, file_sync.c, file_allocate.c,
 * metadata.c.
 */
#include "system/file.h"

#include "system/posix/retry.h"
#include "system/posix/stat.h"

#include <limits.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

/* After EINTR the descriptor is closed with some systems, and its state unknown with the others. */
int blz__file_close(blz_sysfd fd)
{
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

/* ---- reading and writing ---- */

/* The calls for one piece are cheaper than those for many. */
static ssize_t file_read_once(int fd, const blz_iovec *iov, size_t count, int64_t offset)
{
    if (count == 1)
        return offset == FILE_AT_POSITION ? read(fd, iov->base, iov->len)
                                          : pread(fd, iov->base, iov->len, offset);
    return offset == FILE_AT_POSITION ? readv(fd, sys_pieces(iov), (int)count)
                                      : preadv(fd, sys_pieces(iov), (int)count, offset);
}

static ssize_t file_write_once(int fd, const blz_iovec *iov, size_t count, int64_t offset)
{
    if (count == 1)
        return offset == FILE_AT_POSITION ? write(fd, iov->base, iov->len)
                                          : pwrite(fd, iov->base, iov->len, offset);
    return offset == FILE_AT_POSITION ? writev(fd, sys_pieces(iov), (int)count)
                                      : pwritev(fd, sys_pieces(iov), (int)count, offset);
}

int64_t blz__file_read(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset)
{
    ssize_t n;

    if (count > INT_MAX)
        return -EINVAL;
    SYS_RETRY(n, file_read_once(fd, iov, count, offset));
    return sys_count(n);
}

int64_t blz__file_write(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset)
{
    ssize_t n;

    if (count > INT_MAX)
        return -EINVAL;
    SYS_RETRY(n, file_write_once(fd, iov, count, offset));
    return sys_count(n);
}

int64_t blz__file_seek(blz_sysfd fd, int64_t offset, int whence)
{
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END)
        return -EINVAL;
    return sys_count(lseek(fd, offset, whence));
}

/* ---- what is set ---- */

int blz__file_set_len(blz_sysfd fd, int64_t len)
{
    int rc;

    SYS_RETRY(rc, ftruncate(fd, len));
    return sys_result(rc);
}

int blz__file_set_mode(blz_sysfd fd, unsigned mode)
{
    int rc;

    SYS_RETRY(rc, fchmod(fd, (mode_t)mode));
    return sys_result(rc);
}

int blz__file_set_times(blz_sysfd fd, int64_t accessed_ns, int64_t modified_ns)
{
    const struct timespec times[2] = {time_of_ns(accessed_ns), time_of_ns(modified_ns)};
    int rc;

    SYS_RETRY(rc, futimens(fd, times));
    return sys_result(rc);
}

/* ---- locks ---- */

int blz__file_lock(blz_sysfd fd, int how)
{
    static const int lock_words[] = {[FILE_UNLOCK] = LOCK_UN,
                                     [FILE_LOCK_SHARED] = LOCK_SH | LOCK_NB,
                                     [FILE_LOCK_EXCLUSIVE] = LOCK_EX | LOCK_NB};
    int rc;

    SYS_RETRY(rc, flock(fd, lock_words[how]));
    return sys_result(rc);
}
