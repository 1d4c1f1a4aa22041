/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes, and descriptors that are read and written like them: FIFOs, terminals, other devices.
 *
 * Nothing here waits for the other side or raises SIGPIPE, whatever mode the descriptor is in.
 * -EAGAIN means that nothing has happened.
 *
 * Reading and writing take a lock, `mode_lock`. NULL says that the descriptor is in non-blocking
 * mode. Otherwise it may be shared with other processes, which chose its mode: the call is made by
 * a flag of the system (pipes on Linux), or else the mode is changed for the length of the call,
 * and changed back, under the lock. The lock keeps a read and a write of one terminal from
 * restoring the mode under each other. All functions: [any thread].
 *
 *   -ENOTSUP                          where
 *   ----------------------------------------------------------------------------------------
 *   blz__pipe_capacity                macOS, FreeBSD, NetBSD, OpenBSD, Windows
 *   blz__pipe_set_capacity            the same
 *   blz__pipe_open                    Windows, of anything but \\.\pipe\NAME
 */
#ifndef BLZ_SYSTEM_PIPE_H
#define BLZ_SYSTEM_PIPE_H

#include "base/lock.h"

#include <blitz/io.h>
#include <blitz/system.h>

/*
 * Makes a pipe: what is written to fds[1] is read from fds[0]. Neither end is inherited by
 * children, and both are in the mode that was asked for, from the first moment; macOS sets both
 * afterwards. 0; -EMFILE, -ENFILE.
 */
int blz__pipe_new(bool nonblocking, blz_sysfd fds[2]);

enum blz__pipe_side { BLZ__PIPE_READ = 1, BLZ__PIPE_WRITE = 2, BLZ__PIPE_BOTH = 3 };

/*
 * Opens a FIFO at a path, in non-blocking mode, without waiting for the other side: its descriptor;
 * -ENXIO: nobody reads, and the side is BLZ__PIPE_WRITE; -EINVAL: it is no FIFO, or no such side;
 * -ENOENT, -EACCES. May wait for the disk that the path is on.
 */
int64_t blz__pipe_open(const char *path, int side);

/* Bytes that fit into the pipe. -EBADF: it is no pipe. */
int64_t blz__pipe_capacity(blz_sysfd fd);

/*
 * Changes how many bytes fit into the pipe, rounded up by the system: how many that is. -EBUSY:
 * more bytes are in it; -EPERM: more than the system allows; -EINVAL: more than INT32_MAX, or 0.
 */
int64_t blz__pipe_set_capacity(blz_sysfd fd, size_t bytes);

/*
 * Reads what is there: the number of bytes; 0: all writers have closed; -EAGAIN: nothing is there.
 */
int64_t blz__pipe_read(blz_sysfd fd, const blz_iovec *pieces, size_t count, blz__lock *mode_lock);

/*
 * Writes as much as there is room for: the number of bytes. -EAGAIN: there is no room, or not
 * enough for all of at most 4096 bytes (512 outside of Linux), which are written whole or not at
 * all. -EPIPE: all readers have closed.
 */
int64_t blz__pipe_write(blz_sysfd fd, const void *buf, size_t len, blz__lock *mode_lock);

/* Writes pieces: as blz__pipe_write. */
int64_t blz__pipe_writev(blz_sysfd fd, const blz_iovec *pieces, size_t count, blz__lock *mode_lock);

#endif
