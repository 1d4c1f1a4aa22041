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
    FAULTY_COPY_FILE_RANGE,
    FAULTY_INOTIFY_INIT1,
    FAULTY_INOTIFY_ADD_WATCH,
    FAULTY_INOTIFY_RM_WATCH,
    FAULTY_READ, /* this and the next ones of regular files only */
    FAULTY_WRITE,
    FAULTY_CLOSE, /* it is closed all the same */
    FAULTY_FDATASYNC,
    FAULTY_FALLOCATE,
    FAULTY_FCHMOD,
    FAULTY_FUTIMENS,
    FAULTY_FLOCK,
    FAULTY_LSEEK,
    FAULTY_FSTATFS,
    FAULTY_UNLINK,
    FAULTY_LINK,
    FAULTY_SYMLINK,
    FAULTY_CHMOD,
    FAULTY_FACCESSAT,
    FAULTY_UTIMENSAT,
    FAULTY_READLINK,
    FAULTY_REALPATH,
    FAULTY_GETRANDOM,
    FAULTY_SETFL,       /* fcntl with F_SETFL */
    FAULTY_FICLONE,     /* ioctl with that */
    FAULTY_OPENAT2,     /* by syscall */
    FAULTY_URING_FILE,  /* a request of a file: the ring answers -EBADF, whatever the error */
    FAULTY_URING_SHORT, /* a request of a file: the ring moves one byte */
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
    FAULTY_SETSID,
    FAULTY_SETGROUPS,
    FAULTY_SETRESGID,
    FAULTY_SETRESUID,
    FAULTY_PIDFD_OPEN,  /* this and the next one in the parent */
    FAULTY_SEND_SIGNAL, /* to a child, by descriptor or by number */
    FAULTY_WAITID,
    FAULTY_FD_ATTACH,   /* blz_fd_attach and _to: return the error */
    FAULTY_FD_READABLE, /* blz_fd_readable: is so at once, whatever the error */
    /* faulty_stream.c: what src/stream calls */
    FAULTY_SPLICE,
    FAULTY_SENDFILE,
    FAULTY_POLL,
    NR_FAULTY,
};

/* From now on the nth call (1: the next one) fails with that errno; `all`: those after it too. */
void fail_call(enum faulty call, int n, bool all, int error);

/*
 * Called before each call that could fail (before it is decided whether it does), on its thread. Of
 * fsync, fd_of_call is the descriptor. Set while no other thread makes such calls.
 */
extern void (*before_every_call)(enum faulty call);
extern _Thread_local int fd_of_call;

/* Called before the next call of that kind, once, by the thread that makes it. */
extern void (*before_call[NR_FAULTY])(void);

/* Called before the next call of sigaction, once. */
extern void (*before_sigaction)(void);

/*
 * The name that getdents64 gives for an entry "long", and that openat and unlinkat then take for
 * it: some file systems have names that are longer than NAME_MAX. NULL: its own. faulty_fs.c
 */
extern const char *long_name;

/* For the wrappers: the error with which this call fails, or 0; and whether it does, with errno. */
int error_of(enum faulty call);
bool fails(enum faulty call);
bool syscall_fails(long number); /* faulty_process.c */

/* Whether one has failed since fail_call. */
bool has_failed(enum faulty call);

/* No call fails any more. Whether one did since fail_call. */
bool stop_failing(enum faulty call);

#endif
