/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See call.h. Sanitizers have to see what the kernel reads and writes, and know only the C library:
 * with them, and on machines whose convention for system calls is not spelled out here, it is the C
 * library that is called.
 */
#include "io/call.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
    __has_feature(memory_sanitizer)
#define BY_LIBRARY 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__) || \
    !defined(__linux__) || defined(__ILP32__)
#define BY_LIBRARY 1
#endif

#ifdef BY_LIBRARY

ssize_t blz__call_recv(int fd, void *buf, size_t len, int flags)
{
    return recv(fd, buf, len, flags);
}

ssize_t blz__call_send(int fd, const void *buf, size_t len, int flags)
{
    return send(fd, buf, len, flags);
}

#else

/* With no address. Values from -4095 on are errors. */
static inline ssize_t call(long number, int fd, const void *buf, size_t len, int flags)
{
    register long r10 __asm__("r10") = flags;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    long rc;

    __asm__ volatile("syscall"
                     : "=a"(rc)
                     : "a"(number), "D"((long)fd), "S"(buf), "d"(len), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (rc >= 0)
        return rc;
    errno = (int)-rc;
    return -1;
}

ssize_t blz__call_recv(int fd, void *buf, size_t len, int flags)
{
    return call(SYS_recvfrom, fd, buf, len, flags);
}

ssize_t blz__call_send(int fd, const void *buf, size_t len, int flags)
{
    return call(SYS_sendto, fd, buf, len, flags);
}

#endif
