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

bool syscall_fails(long number)
{
    static const struct {
        long number;
        enum faulty call;
    } calls[] = {{SYS_openat, FAULTY_CHILD_OPENAT}, {SYS_dup3, FAULTY_DUP3},
                 {SYS_fcntl, FAULTY_FCNTL},         {SYS_setpgid, FAULTY_SETPGID},
                 {SYS_prlimit64, FAULTY_PRLIMIT},   {SYS_chdir, FAULTY_CHDIR},
                 {SYS_execve, FAULTY_EXECVE}};

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
