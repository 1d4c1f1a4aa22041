/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two system calls of every message. The C library's are points at which a thread can be
 * cancelled (pthread_cancel), which takes it two locked instructions a call; nobody cancels a
 * worker. Results as in the C library: -1, and errno says why.
 */
#ifndef BLZ_IO_CALL_H
#define BLZ_IO_CALL_H

#include <stddef.h>
#include <sys/types.h>

ssize_t blz__call_recv(int fd, void *buf, size_t len, int flags);
ssize_t blz__call_send(int fd, const void *buf, size_t len, int flags);

#endif
