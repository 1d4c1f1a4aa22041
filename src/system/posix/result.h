/* SPDX-License-Identifier: Apache-2.0 */
/* From what a call of the C library left in errno to an error of the contract. */
#ifndef BLZ_SYSTEM_POSIX_RESULT_H
#define BLZ_SYSTEM_POSIX_RESULT_H

#include <blitz/error.h>
#include <blitz/io.h>
#include <stddef.h>
#include <sys/uio.h>

_Static_assert(sizeof(blz_iovec) == sizeof(struct iovec) &&
                   offsetof(blz_iovec, base) == offsetof(struct iovec, iov_base) &&
                   offsetof(blz_iovec, len) == offsetof(struct iovec, iov_len),
               "a blz_iovec is the system's");

/* The negative error. Of two numbers with one meaning it is the one that blitz/error.h names. */
static inline int sys_error(void)
{
    int error = errno;

    if (error == EWOULDBLOCK)
        error = EAGAIN;
    if (error == EOPNOTSUPP)
        error = ENOTSUP;
    return -error;
}

/* Of a call that gives -1 or 0. */
static inline int sys_result(int rc)
{
    return rc < 0 ? sys_error() : 0;
}

/* The system's type for pieces. It only reads them, whatever its prototypes say. */
static inline struct iovec *sys_pieces(const blz_iovec *pieces)
{
    return (struct iovec *)(uintptr_t)pieces;
}

#endif
