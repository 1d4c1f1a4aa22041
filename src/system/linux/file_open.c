/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files by openat(2) and openat2(2): the second does not wait if it is asked to
 * (RESOLVE_CACHED, Linux 5.12), and does not leave a directory (RESOLVE_BENEATH, Linux 5.6).
 *
 * Opening a FIFO would wait for its other side, for ever perhaps. So what may be a FIFO is opened
 * in non-blocking mode, which is then taken away again.
 */
#include "system/file.h"

#include "system/posix/retry.h"
#include "system/posix/stat.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_MOVED = 8 }; /* how often that is taken for the reason of an EAGAIN */

enum { OPEN_ALL_FLAGS = OPEN_FLAGS | BLZ_OPEN_ALL };

static const struct {
    unsigned ours;
    int system;
} open_words[] = {
    {OPEN_APPEND, O_APPEND},        {OPEN_TRUNCATE, O_TRUNC},
    {OPEN_CREATE, O_CREAT},         {OPEN_CREATE_NEW, O_CREAT | O_EXCL},
    {OPEN_DIRECTORY, O_DIRECTORY},  {OPEN_NO_FOLLOW, O_NOFOLLOW},
    {BLZ_OPEN_DSYNC, O_DSYNC},      {BLZ_OPEN_DIRECT, O_DIRECT},
    {BLZ_OPEN_NO_ATIME, O_NOATIME}, {BLZ_OPEN_PATH, O_PATH},
    {BLZ_OPEN_UNNAMED, O_TMPFILE},
};

static int open_flags_to_system(unsigned flags)
{
    int system = O_CLOEXEC | O_NOCTTY;

    if (flags & OPEN_WRITE)
        system |= flags & OPEN_READ ? O_RDWR : O_WRONLY;
    for (size_t i = 0; i < sizeof open_words / sizeof *open_words; i++)
        system |= flags & open_words[i].ours ? open_words[i].system : 0;
    return system;
}

/* ---- the calls ---- */

/*
 * Any failure of this call is -EAGAIN: old systems do not know the call or its flag, and that a
 * path leads to nothing is told by a call that waits, because a file system over a network may have
 * to ask.
 */
static int open_cached(int dir, const char *path, int flags, bool beneath)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags,
                           .resolve = RESOLVE_CACHED | (beneath ? RESOLVE_BENEATH : 0)};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);

    return fd < 0 ? -EAGAIN : (int)fd;
}

/*
 * openat, that may have to stay beneath `dir`. The newer call refuses what the older one ignores: a
 * mode for nothing, and most flags with O_PATH. It gives EAGAIN (which is EWOULDBLOCK) also if
 * something was moved meanwhile, so that it cannot be sure.
 */
static int open_call(int dir, const char *path, int flags, mode_t mode, bool beneath)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags, .resolve = RESOLVE_BENEATH};

    if (!beneath)
        return openat(dir, path, flags, mode);
    if (flags & O_PATH)
        how.flags &= O_PATH | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW;
    else if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)
        how.mode = mode;
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static int open_patiently(int dir, const char *path, int flags, mode_t mode, bool beneath)
{
    int fd, moved = beneath ? MAX_MOVED : 0;

    do {
        fd = open_call(dir, path, flags, mode, beneath);
        if (fd < 0 && errno == EAGAIN && moved-- <= 0)
            flags &= ~O_NONBLOCK; /* a regular file, and another process has to give up its lease */
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    if (fd < 0 && errno == ENOSYS)
        return -ENOTSUP;
    return fd < 0 ? -errno : fd;
}

/* ---- FIFOs and sockets ---- */

/* Of a descriptor in non-blocking mode: 0, or an error. */
static int make_usable(int fd, int flags)
{
    struct stat st;

    if (flags & O_PATH)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
        return -EINVAL;
    return fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

static int64_t checked_open(int fd, int flags)
{
    int rc;

    if (fd < 0)
        return fd == -ENXIO ? -EINVAL : fd; /* a socket; a FIFO that nobody reads */
    rc = make_usable(fd, flags);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

int64_t blz__file_open(blz_sysfd at, const char *path, unsigned flags, unsigned mode)
{
    int dir = at_or_current(at), system = open_flags_to_system(flags);
    bool beneath = flags & OPEN_BENEATH;

    if ((flags & ~(unsigned)OPEN_ALL_FLAGS) || (mode & ~07777u))
        return -EINVAL;
    if (flags & (OPEN_DIRECTORY | OPEN_CREATE_NEW | BLZ_OPEN_UNNAMED)) /* cannot be a FIFO */
        return open_patiently(dir, path, system, (mode_t)mode, beneath);
    system |= O_NONBLOCK;
    return checked_open(open_patiently(dir, path, system, (mode_t)mode, beneath), system);
}

int64_t blz__file_open_now(blz_sysfd at, const char *path, unsigned flags, unsigned mode)
{
    int system = open_flags_to_system(flags) | O_NONBLOCK;

    if ((flags & ~(unsigned)OPEN_ALL_FLAGS) || (mode & ~07777u))
        return -EINVAL;
    if (flags & (OPEN_CREATE | OPEN_CREATE_NEW | OPEN_TRUNCATE | BLZ_OPEN_UNNAMED | BLZ_OPEN_PATH))
        return -EAGAIN;
    return checked_open(open_cached(at_or_current(at), path, system, flags & OPEN_BENEATH), system);
}
