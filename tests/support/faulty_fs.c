/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of faulty.h that stand before what src/fs calls. */
#include "faulty.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* What the linker is asked for, so that this file is found. */
extern const int blz_faulty_fs;
const int blz_faulty_fs = 1;

/* A wrapper of `result name(params)`: fails with `bad`, or calls the real one with `args`. */
#define WRAP(which, result, bad, name, params, args)    \
    result __real_##name params;                        \
    result __wrap_##name params;                        \
    result __wrap_##name params                         \
    {                                                   \
        return fails(which) ? bad : __real_##name args; \
    }

WRAP(FAULTY_PREADV2, ssize_t, -1, preadv2,
     (int fd, const struct iovec *iov, int count, off_t offset, int flags),
     (fd, iov, count, offset, flags))
WRAP(FAULTY_PWRITEV2, ssize_t, -1, pwritev2,
     (int fd, const struct iovec *iov, int count, off_t offset, int flags),
     (fd, iov, count, offset, flags))
WRAP(FAULTY_FSTAT, int, -1, fstat, (int fd, struct stat *st), (fd, st))
WRAP(FAULTY_STATX, int, -1, statx,
     (int fd, const char *path, int flags, unsigned mask, struct statx *out),
     (fd, path, flags, mask, out))
WRAP(FAULTY_FSYNC, int, -1, fsync, (int fd), (fd))
WRAP(FAULTY_FTRUNCATE, int, -1, ftruncate, (int fd, off_t len), (fd, len))
WRAP(FAULTY_RENAMEAT, int, -1, renameat, (int a, const char *from, int b, const char *to),
     (a, from, b, to))
WRAP(FAULTY_MKDIR, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FAULTY_UNLINKAT, int, -1, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
WRAP(FAULTY_GETDENTS64, ssize_t, -1, getdents64, (int fd, void *buf, size_t size), (fd, buf, size))
WRAP(FAULTY_FDOPENDIR, DIR *, NULL, fdopendir, (int fd), (fd))
WRAP(FAULTY_COPY_FILE_RANGE, ssize_t, -1, copy_file_range,
     (int in, off64_t *at, int out, off64_t *to, size_t len, unsigned flags),
     (in, at, out, to, len, flags))
WRAP(FAULTY_INOTIFY_INIT1, int, -1, inotify_init1, (int flags), (flags))
WRAP(FAULTY_INOTIFY_ADD_WATCH, int, -1, inotify_add_watch,
     (int fd, const char *path, uint32_t mask), (fd, path, mask))

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    if (flags & (O_CREAT | O_TMPFILE)) {
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return fails(FAULTY_OPENAT) ? -1 : __real_openat(dir, path, flags, mode);
}
