/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of faulty.h for src/process. Bare system calls are made by a child that shares our
 * memory and runs on a small stack.
 */
#include "faulty.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <blitz/fd.h>

bool syscall_fails(long number)
{
    static const struct {
        long number;
        enum faulty call;
    } calls[] = {{SYS_openat, FAULTY_CHILD_OPENAT},
                 {SYS_dup3, FAULTY_DUP3},
                 {SYS_fcntl, FAULTY_FCNTL},
                 {SYS_setpgid, FAULTY_SETPGID},
                 {SYS_prlimit64, FAULTY_PRLIMIT},
                 {SYS_chdir, FAULTY_CHDIR},
                 {SYS_execve, FAULTY_EXECVE},
                 {SYS_setsid, FAULTY_SETSID},
                 {SYS_setgroups, FAULTY_SETGROUPS},
                 {SYS_setresgid, FAULTY_SETRESGID},
                 {SYS_setresuid, FAULTY_SETRESUID},
                 {SYS_pidfd_open, FAULTY_PIDFD_OPEN},
                 {SYS_pidfd_send_signal, FAULTY_SEND_SIGNAL},
                 {SYS_kill, FAULTY_SEND_SIGNAL},
                 {SYS_openat2, FAULTY_OPENAT2}};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number)
            return fails(calls[i].call);
    return false;
}

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);

int __wrap_pipe2(int fds[2], int flags)
{
    return fails(FAULTY_PIPE2) ? -1 : __real_pipe2(fds, flags);
}

/* The library gives no more than a pidfd behind the argument. */
#define WRAP_CLONE(name)                                                               \
    int __real_##name(int (*fn)(void *), void *stack, int flags, void *arg, ...);      \
    int __wrap_##name(int (*fn)(void *), void *stack, int flags, void *arg, ...);      \
    int __wrap_##name(int (*fn)(void *), void *stack, int flags, void *arg, ...)       \
    {                                                                                  \
        va_list list;                                                                  \
        va_start(list, arg);                                                           \
        pid_t *pidfd = va_arg(list, pid_t *);                                          \
        va_end(list);                                                                  \
        return fails(FAULTY_CLONE) ? -1 : __real_##name(fn, stack, flags, arg, pidfd); \
    }

WRAP_CLONE(clone)
WRAP_CLONE(__clone)

int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int flags);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int flags);

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int flags)
{
    return fails(FAULTY_WAITID) ? -1 : __real_waitid(type, id, info, flags);
}

/* ---- what src/process asks of src/io ---- */

int __real_blz_fd_attach(blz_fd *handle, int fd);
int __wrap_blz_fd_attach(blz_fd *handle, int fd);

int __wrap_blz_fd_attach(blz_fd *handle, int fd)
{
    int error = error_of(FAULTY_FD_ATTACH);
    return error ? -error : __real_blz_fd_attach(handle, fd);
}

int __real_blz_fd_attach_to(blz_fd *handle, blz_rt *rt, int fd);
int __wrap_blz_fd_attach_to(blz_fd *handle, blz_rt *rt, int fd);

int __wrap_blz_fd_attach_to(blz_fd *handle, blz_rt *rt, int fd)
{
    int error = error_of(FAULTY_FD_ATTACH);
    return error ? -error : __real_blz_fd_attach_to(handle, rt, fd);
}

static blz_poll is_ready_at_once(blz_future *self, blz_cx *cx)
{
    (void)cx;
    return blz_future_done(self, BLZ_FD_READ);
}

blz_future *__real_blz_fd_readable(blz_io *io, const blz_fd *handle);
blz_future *__wrap_blz_fd_readable(blz_io *io, const blz_fd *handle);

blz_future *__wrap_blz_fd_readable(blz_io *io, const blz_fd *handle)
{
    static const blz_future_ops ops = {.name = "spurious", .poll = is_ready_at_once};

    if (!error_of(FAULTY_FD_READABLE))
        return __real_blz_fd_readable(io, handle);
    io->future = (blz_future){.ops = &ops};
    return &io->future;
}
