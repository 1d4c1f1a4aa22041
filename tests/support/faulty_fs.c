/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of faulty.h that stand before what src/fs calls. */
#include "faulty.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <linux/fs.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What the linker is asked for, so that this file is found. */
extern const int blz_faulty_fs;
const int blz_faulty_fs = 1;

/* ---- long names ---- */

const char *long_name;

static const char *name_on_disk(const char *path)
{
    return long_name && strcmp(path, long_name) == 0 ? "long" : path;
}

/* Puts an entry with the long name behind the ones that are there: where the next one goes. */
static char *add_long(char *at, const struct dirent64 *entry)
{
    struct dirent64 *longer = (struct dirent64 *)(void *)at;
    size_t size = offsetof(struct dirent64, d_name) + strlen(long_name) + 1;

    memcpy(longer, entry, offsetof(struct dirent64, d_name));
    memcpy(longer->d_name, long_name, strlen(long_name) + 1);
    longer->d_reclen = (unsigned short)((size + 7) & ~(size_t)7);
    return at + longer->d_reclen;
}

ssize_t __real_getdents64(int fd, void *buf, size_t size);

/* Reads half of what there is room for, so that the long name fits. */
static ssize_t with_long_name(int fd, char *buf, size_t size)
{
    static _Alignas(8) char real[1 << 16];
    ssize_t n = __real_getdents64(fd, real, size / 2);
    char *end = buf;

    for (ssize_t at = 0; at < n;) {
        const struct dirent64 *entry = (const void *)(real + at);
        if (strcmp(entry->d_name, "long") == 0) {
            end = add_long(end, entry);
        } else {
            memcpy(end, entry, entry->d_reclen);
            end += entry->d_reclen;
        }
        at += entry->d_reclen;
    }
    return n < 0 ? n : end - buf;
}

ssize_t __wrap_getdents64(int fd, void *buf, size_t size);
ssize_t __wrap_getdents64(int fd, void *buf, size_t size)
{
    if (fails(FAULTY_GETDENTS64))
        return -1;
    return long_name ? with_long_name(fd, buf, size) : __real_getdents64(fd, buf, size);
}

/* ---- calls ---- */

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
WRAP(FAULTY_FTRUNCATE, int, -1, ftruncate, (int fd, off_t len), (fd, len))
WRAP(FAULTY_RENAMEAT, int, -1, renameat, (int a, const char *from, int b, const char *to),
     (a, from, b, to))
WRAP(FAULTY_MKDIR, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FAULTY_UNLINKAT, int, -1, unlinkat, (int fd, const char *path, int flags),
     (fd, name_on_disk(path), flags))
WRAP(FAULTY_COPY_FILE_RANGE, ssize_t, -1, copy_file_range,
     (int in, off64_t *at, int out, off64_t *to, size_t len, unsigned flags),
     (in, at, out, to, len, flags))
WRAP(FAULTY_INOTIFY_INIT1, int, -1, inotify_init1, (int flags), (flags))
WRAP(FAULTY_INOTIFY_ADD_WATCH, int, -1, inotify_add_watch,
     (int fd, const char *path, uint32_t mask), (fd, path, mask))

WRAP(FAULTY_INOTIFY_RM_WATCH, int, -1, inotify_rm_watch, (int fd, int id), (fd, id))
WRAP(FAULTY_FDATASYNC, int, -1, fdatasync, (int fd), (fd))
WRAP(FAULTY_FALLOCATE, int, -1, fallocate, (int fd, int mode, off_t at, off_t len),
     (fd, mode, at, len))
WRAP(FAULTY_FCHMOD, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(FAULTY_FUTIMENS, int, -1, futimens, (int fd, const struct timespec *times), (fd, times))
WRAP(FAULTY_FLOCK, int, -1, flock, (int fd, int how), (fd, how))
WRAP(FAULTY_LSEEK, off_t, -1, lseek, (int fd, off_t at, int whence), (fd, at, whence))
WRAP(FAULTY_FSTATFS, int, -1, fstatfs, (int fd, struct statfs *fs), (fd, fs))
WRAP(FAULTY_UNLINK, int, -1, unlink, (const char *path), (path))
WRAP(FAULTY_LINK, int, -1, link, (const char *from, const char *to), (from, to))
WRAP(FAULTY_SYMLINK, int, -1, symlink, (const char *text, const char *to), (text, to))
WRAP(FAULTY_CHMOD, int, -1, chmod, (const char *path, mode_t mode), (path, mode))
WRAP(FAULTY_FACCESSAT, int, -1, faccessat, (int dir, const char *path, int mode, int flags),
     (dir, path, mode, flags))
WRAP(FAULTY_UTIMENSAT, int, -1, utimensat,
     (int dir, const char *path, const struct timespec *times, int flags),
     (dir, path, times, flags))
WRAP(FAULTY_READLINK, ssize_t, -1, readlink, (const char *path, char *buf, size_t size),
     (path, buf, size))
WRAP(FAULTY_REALPATH, char *, NULL, realpath, (const char *path, char *buf), (path, buf))
/* What realpath is with _FORTIFY_SOURCE. */
WRAP(FAULTY_REALPATH, char *, NULL, __realpath_chk, (const char *path, char *buf, size_t size),
     (path, buf, size))
WRAP(FAULTY_GETRANDOM, ssize_t, -1, getrandom, (void *buf, size_t size, unsigned flags),
     (buf, size, flags))

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    fd_of_call = fd;
    return fails(FAULTY_FSYNC) ? -1 : __real_fsync(fd);
}

/* ---- of regular files: pipes and eventfds are the library's own business ---- */

static bool is_regular(int fd)
{
    struct stat st;

    return __real_fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

#define WRAP_REGULAR(which, result, name, params, args)                          \
    result __real_##name params;                                                 \
    result __wrap_##name params;                                                 \
    result __wrap_##name params                                                  \
    {                                                                            \
        return is_regular(fd) && fails(which) ? (result)-1 : __real_##name args; \
    }

WRAP_REGULAR(FAULTY_READ, ssize_t, read, (int fd, void *buf, size_t size), (fd, buf, size))
WRAP_REGULAR(FAULTY_WRITE, ssize_t, write, (int fd, const void *buf, size_t size), (fd, buf, size))

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    bool regular = is_regular(fd);
    int rc = __real_close(fd);

    return regular && fails(FAULTY_CLOSE) ? -1 : rc;
}

/* ---- with a varying number of arguments ---- */

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list args;
    long arg;

    va_start(args, what);
    arg = va_arg(args, long);
    va_end(args);
    return what == F_SETFL && fails(FAULTY_SETFL) ? -1 : __real_fcntl(fd, what, arg);
}

int __real_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...)
{
    va_list args;
    long arg;

    va_start(args, what);
    arg = va_arg(args, long);
    va_end(args);
    return what == FICLONE && fails(FAULTY_FICLONE) ? -1 : __real_ioctl(fd, what, arg);
}

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
    return fails(FAULTY_OPENAT) ? -1 : __real_openat(dir, name_on_disk(path), flags, mode);
}

/* ---- the ring's answers ---- */

#ifdef BLZ_HAVE_URING
#include <liburing.h>

struct io;
void __real_blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io);
void __wrap_blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io);

/* A request is changed into one that cannot succeed, or that moves less than was asked for. */
void __wrap_blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io)
{
    __real_blz__uring_prep_file(sqe, io);
    if (error_of(FAULTY_URING_FILE))
        sqe->fd = -1;
    if (sqe->len > 1 && (sqe->opcode == IORING_OP_READ || sqe->opcode == IORING_OP_WRITE) &&
        error_of(FAULTY_URING_SHORT))
        sqe->len = 1;
}
#endif
