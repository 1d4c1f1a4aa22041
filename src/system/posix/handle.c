/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors by fcntl(2) and fstat(2).
 *
 * close(2) is called once, whatever it says: where it is interrupted, Linux has closed the
 * descriptor all the same, and a second call could close one that another thread was just given.
 */
#include "system/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void blz__handle_close(blz_sysfd fd)
{
    close(fd);
}

int blz__handle_kind(blz_sysfd fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    switch (status.st_mode & S_IFMT) {
    case S_IFREG:
        return BLZ__HANDLE_FILE;
    case S_IFDIR:
        return BLZ__HANDLE_DIRECTORY;
    case S_IFSOCK:
        return BLZ__HANDLE_SOCKET;
    case S_IFIFO:
        return BLZ__HANDLE_PIPE;
    case S_IFCHR:
        return isatty(fd) ? BLZ__HANDLE_TERMINAL : BLZ__HANDLE_DEVICE;
    case S_IFBLK:
        return BLZ__HANDLE_DISK;
    default:
        return BLZ__HANDLE_OTHER;
    }
}

int blz__handle_is_nonblocking(blz_sysfd fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 ? -errno : (flags & O_NONBLOCK) != 0;
}

int blz__handle_set_nonblocking(blz_sysfd fd, bool nonblocking)
{
    int flags = fcntl(fd, F_GETFL), wanted;

    if (flags < 0)
        return -errno;
    wanted = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return wanted != flags && fcntl(fd, F_SETFL, wanted) < 0 ? -errno : 0;
}

int64_t blz__handle_duplicate(blz_sysfd fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -errno : copy;
}

int blz__handle_is_inherited(blz_sysfd fd)
{
    int flags = fcntl(fd, F_GETFD);

    return flags < 0 ? -errno : !(flags & FD_CLOEXEC);
}

int blz__handle_set_inherited(blz_sysfd fd, bool inherited)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0)
        return -errno;
    flags = inherited ? flags & ~FD_CLOEXEC : flags | FD_CLOEXEC;
    return fcntl(fd, F_SETFD, flags) < 0 ? -errno : 0;
}
