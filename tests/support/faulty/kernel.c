/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of kernel calls that calls.py cannot write from a prototype: with a varying number of
 * arguments, for some descriptors only, or that do more than to fail.
 */
#include "faulty.h"

#include <blitz/fd.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Reads half of what there is room for, so that the long name fits. */
static ssize_t with_long_name(int fd, char *buf, size_t size)
{
    static _Alignas(8) char real[1 << 16];
    ssize_t n = getdents64(fd, real, size / 2);
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

ssize_t kernel_getdents64(int fd, void *buf, size_t size);
ssize_t kernel_getdents64(int fd, void *buf, size_t size)
{
    return long_name ? with_long_name(fd, buf, size) : getdents64(fd, buf, size);
}

int kernel_unlinkat(int dir, const char *path, int flags);
int kernel_unlinkat(int dir, const char *path, int flags)
{
    return unlinkat(dir, name_on_disk(path), flags);
}

int kernel_openat(int dir, const char *path, int flags, ...);
int kernel_openat(int dir, const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    if (flags & (O_CREAT | O_TMPFILE)) {
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return fails(KERNEL_OPENAT) ? -1 : openat(dir, name_on_disk(path), flags, mode);
}

/* ---- of regular files: pipes and eventfds are the library's own business ---- */

static bool is_regular(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t kernel_read(int fd, void *buf, size_t size);
ssize_t kernel_read(int fd, void *buf, size_t size)
{
    return is_regular(fd) && fails(KERNEL_READ) ? -1 : read(fd, buf, size);
}

ssize_t kernel_write(int fd, const void *buf, size_t size);
ssize_t kernel_write(int fd, const void *buf, size_t size)
{
    return is_regular(fd) && fails(KERNEL_WRITE) ? -1 : write(fd, buf, size);
}

/* ---- with a varying number of arguments ---- */

int kernel_fcntl(int fd, int what, ...);
int kernel_fcntl(int fd, int what, ...)
{
    va_list args;
    long arg;

    va_start(args, what);
    arg = va_arg(args, long);
    va_end(args);
    return what == F_SETFL && fails(KERNEL_SETFL) ? -1 : fcntl(fd, what, arg);
}

int kernel_ioctl(int fd, unsigned long what, ...);
int kernel_ioctl(int fd, unsigned long what, ...)
{
    va_list args;
    long arg;

    va_start(args, what);
    arg = va_arg(args, long);
    va_end(args);
    return what == FICLONE && fails(KERNEL_FICLONE) ? -1 : ioctl(fd, what, arg);
}

static bool syscall_fails(long number)
{
    static const struct {
        long number;
        enum faulty call;
    } calls[] = {{SYS_openat, CHILD_OPENAT},       {SYS_dup3, CHILD_DUP3},
                 {SYS_fcntl, CHILD_FCNTL},         {SYS_setpgid, CHILD_SETPGID},
                 {SYS_prlimit64, CHILD_PRLIMIT},   {SYS_chdir, CHILD_CHDIR},
                 {SYS_execve, CHILD_EXECVE},       {SYS_setsid, CHILD_SETSID},
                 {SYS_setgroups, CHILD_SETGROUPS}, {SYS_setresgid, CHILD_SETRESGID},
                 {SYS_setresuid, CHILD_SETRESUID}, {SYS_pidfd_send_signal, KERNEL_SEND_SIGNAL},
                 {SYS_kill, KERNEL_SEND_SIGNAL},   {SYS_openat2, KERNEL_OPENAT2}};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number)
            return fails(calls[i].call);
    return false;
}

/*
 * Takes six arguments, however many there are, as the real one does. The sixth is on the caller's
 * stack. A child that shares our memory and runs on a small stack calls this, too, and one of its
 * calls, exec, never returns.
 */
long kernel_syscall(long number, ...);
__attribute__((no_sanitize("address"))) long kernel_syscall(long number, ...)
{
    long args[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (syscall_fails(number))
        return -1;
    return syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* The C library's clone without the checks of a sanitizer. */
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

/* The library gives no more than a pidfd behind the argument. */
#define HOOK_CLONE(hook, name)                                                \
    int hook(int (*fn)(void *), void *stack, int flags, void *arg, ...);      \
    int hook(int (*fn)(void *), void *stack, int flags, void *arg, ...)       \
    {                                                                         \
        va_list list;                                                         \
        va_start(list, arg);                                                  \
        pid_t *pidfd = va_arg(list, pid_t *);                                 \
        va_end(list);                                                         \
        return fails(KERNEL_CLONE) ? -1 : name(fn, stack, flags, arg, pidfd); \
    }

HOOK_CLONE(kernel_clone, clone)
HOOK_CLONE(kernel___clone, __clone)

/* ---- what src/process asks of src/io ---- */

int faulty_blz_fd_attach(blz_fd *handle, int fd);
int faulty_blz_fd_attach(blz_fd *handle, int fd)
{
    int error = error_of(ATTACH);

    return error ? -error : blz_fd_attach(handle, fd);
}

int faulty_blz_fd_attach_to(blz_fd *handle, int fd, blz_rt *rt);
int faulty_blz_fd_attach_to(blz_fd *handle, int fd, blz_rt *rt)
{
    int error = error_of(ATTACH);

    return error ? -error : blz_fd_attach_to(handle, fd, rt);
}

static blz_poll is_ready_at_once(blz_future *self, blz_cx *cx)
{
    (void)cx;
    return blz_future_done(self, BLZ_FD_READ);
}

blz_future *faulty_blz_fd_readable(blz_io *io, const blz_fd *handle);
blz_future *faulty_blz_fd_readable(blz_io *io, const blz_fd *handle)
{
    static const blz_future_ops ops = {.name = "spurious", .poll = is_ready_at_once};

    if (!error_of(READABLE))
        return blz_fd_readable(io, handle);
    io->future = (blz_future){.ops = &ops};
    return &io->future;
}

/* ---- the ring's answers ---- */

#ifdef BLZ_HAVE_URING
#include <liburing.h>

struct io;
void real_blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io);
void blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io);

/* A request is changed into one that cannot succeed, or that moves less than was asked for. */
void blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io)
{
    real_blz__uring_prep_file(sqe, io);
    if (error_of(RING_FILE))
        sqe->fd = -1;
    if (sqe->len > 1 && (sqe->opcode == IORING_OP_READ || sqe->opcode == IORING_OP_WRITE) &&
        error_of(RING_SHORT))
        sqe->len = 1;
}
#endif
