/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two system calls of every message. The C library's are points at which a thread can be
 * cancelled (pthread_cancel), which costs two locked instructions a call; workers are never
 * cancelled. So the calls are made without the library. Sanitizers have to see what the kernel
 * reads and writes, and know only the C library: with them, and on machines whose convention for
 * system calls is not spelled out here, the C library is called.
 */
#include "system/posix/result.h"
#include "system/socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
    __has_feature(memory_sanitizer)
#define BY_LIBRARY 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__) || \
    defined(__ILP32__)
#define BY_LIBRARY 1
#endif

#ifdef BY_LIBRARY

static int64_t call_recv(int fd, void *buf, size_t len, int flags)
{
    ssize_t n = recv(fd, buf, len, flags);

    return n < 0 ? sys_error() : n;
}

static int64_t call_send(int fd, const void *buf, size_t len, int flags)
{
    ssize_t n = send(fd, buf, len, flags);

    return n < 0 ? sys_error() : n;
}

#else

/* With no address. Values from -4095 on are errors, with the numbers of errno. */
static inline int64_t call(long number, int fd, const void *buf, size_t len, int flags)
{
    register long r10 __asm__("r10") = flags;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    long rc;

    __asm__ volatile("syscall"
                     : "=a"(rc)
                     : "a"(number), "D"((long)fd), "S"(buf), "d"(len), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return rc;
}

static inline int64_t call_recv(int fd, void *buf, size_t len, int flags)
{
    return call(SYS_recvfrom, fd, buf, len, flags);
}

static inline int64_t call_send(int fd, const void *buf, size_t len, int flags)
{
    return call(SYS_sendto, fd, buf, len, flags);
}

#endif

int64_t blz__socket_recv(blz_sysfd fd, void *buf, size_t len)
{
    int64_t n;

    do
        n = call_recv(fd, buf, len, MSG_DONTWAIT);
    while (blz_unlikely(n == -EINTR));
    return n;
}

int64_t blz__socket_peek(blz_sysfd fd, void *buf, size_t len)
{
    int64_t n;

    do
        n = call_recv(fd, buf, len, MSG_DONTWAIT | MSG_PEEK);
    while (blz_unlikely(n == -EINTR));
    return n;
}

int64_t blz__socket_send(blz_sysfd fd, const void *buf, size_t len)
{
    int64_t n;

    do
        n = call_send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (blz_unlikely(n == -EINTR));
    return n;
}
