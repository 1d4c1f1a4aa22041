/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the system that fail on demand, in fault tests only: the linker puts these in the way of
 * the real ones (--wrap, see variants.cmake).
 */
#ifndef BLZ_TESTS_FAULTY_H
#define BLZ_TESTS_FAULTY_H

#include <stdbool.h>

enum faulty {
    FAULTY_PTHREAD_CREATE, /* returns the error */
    FAULTY_CALLOC,
    FAULTY_MMAP,
    FAULTY_MADVISE,
    FAULTY_EVENTFD,
    FAULTY_MEMBARRIER,
    FAULTY_SIGACTION,
    /* faulty_io.c: what src/io and src/net call */
    FAULTY_SOCKET,
    FAULTY_BIND,
    FAULTY_LISTEN,
    FAULTY_ACCEPT4,
    FAULTY_CONNECT,
    FAULTY_RECV,
    FAULTY_SEND,
    FAULTY_RECVMSG,
    FAULTY_SENDMSG,
    FAULTY_EPOLL_CREATE1,
    FAULTY_EPOLL_CTL,
    FAULTY_EPOLL_PWAIT2,
    FAULTY_PPOLL,
    FAULTY_URING_INIT, /* this and the next ones return the error */
    FAULTY_URING_SUBMIT,
    FAULTY_URING_SUBMIT_AND_WAIT,
    FAULTY_URING_SUBMIT_AND_GET_EVENTS,
    FAULTY_URING_REGISTER_EVENTFD,
    FAULTY_URING_REGISTER_RING_FD,
    /* faulty_fs.c: what src/fs calls */
    FAULTY_OPENAT,
    FAULTY_PREADV2,
    FAULTY_PWRITEV2,
    FAULTY_FSTAT,
    FAULTY_STATX,
    FAULTY_FSYNC,
    FAULTY_FTRUNCATE,
    FAULTY_RENAMEAT,
    FAULTY_MKDIR,
    FAULTY_UNLINKAT,
    FAULTY_GETDENTS64,
    FAULTY_FDOPENDIR,
    FAULTY_COPY_FILE_RANGE,
    FAULTY_INOTIFY_INIT1,
    FAULTY_INOTIFY_ADD_WATCH,
    /* faulty_process.c: what src/process calls */
    FAULTY_PIPE2,
    FAULTY_CLONE,
    FAULTY_CHILD_OPENAT, /* this and the next ones by syscall, in the child */
    FAULTY_DUP3,
    FAULTY_FCNTL,
    FAULTY_SETPGID,
    FAULTY_PRLIMIT,
    FAULTY_CHDIR,
    FAULTY_EXECVE,
    NR_FAULTY,
};

/* From now on the nth call (1: the next one) fails with that errno; `all`: those after it too. */
void fail_call(enum faulty call, int n, bool all, int error);

/* For the wrappers: the error with which this call fails, or 0; and whether it does, with errno. */
int error_of(enum faulty call);
bool fails(enum faulty call);
bool syscall_fails(long number); /* faulty_process.c */

/* No call fails any more. Whether one did since fail_call. */
bool stop_failing(enum faulty call);

#endif
