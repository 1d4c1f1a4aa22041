/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness between the library and kernels that speak of it in the bits of poll(2). The library's
 * are BLZ_FD_*. Where both have the same values, which is so on all systems but Windows, compilers
 * make one instruction of each function.
 */
#ifndef BLZ_IO_POLL_BITS_H
#define BLZ_IO_POLL_BITS_H

#include <blitz/fd.h>
#include <poll.h>

static inline unsigned poll_bits(unsigned events)
{
    return (events & BLZ_FD_READ ? POLLIN : 0u) | (events & BLZ_FD_WRITE ? POLLOUT : 0u) |
           (events & BLZ_FD_PRI ? POLLPRI : 0u);
}

static inline unsigned events_of_poll_bits(unsigned bits)
{
    return (bits & POLLIN ? BLZ_FD_READ : 0u) | (bits & POLLOUT ? BLZ_FD_WRITE : 0u) |
           (bits & POLLPRI ? BLZ_FD_PRI : 0u) | (bits & POLLERR ? BLZ_FD_ERR : 0u) |
           (bits & POLLHUP ? BLZ_FD_HUP : 0u);
}

#endif
