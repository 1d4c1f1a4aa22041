/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that the system moves from one descriptor to another, past the memory of the program. No
 * system has to have any of these: callers read and write instead.
 *
 * -ENOTSUP, by system:
 *
 *   blz__transfer_splice      all but Linux
 *   blz__transfer_send_file   OpenBSD, NetBSD
 *   blz__transfer_copy        macOS, OpenBSD, NetBSD, Windows
 *   blz__transfer_clone       OpenBSD, NetBSD
 *
 * and everywhere for descriptors or file systems that cannot. -ENOTSUP means that nothing was
 * moved. [any thread]
 */
#ifndef BLZ_SYSTEM_TRANSFER_H
#define BLZ_SYSTEM_TRANSFER_H

#include "system/file.h"

/* ---- Without waiting ---- */

/*
 * Moves up to `len` bytes between two descriptors, of which one is a pipe: the number; 0: `from`
 * has ended. Sockets must be in non-blocking mode. -EAGAIN: one of the two is not ready, and
 * nothing was moved. -EPIPE raises a signal, unless it is between blz__transfer_quiet and its end.
 */
int64_t blz__transfer_splice(blz_sysfd from, blz_sysfd to, size_t len);

/*
 * Sends up to `len` bytes of a file to a socket in non-blocking mode: the number; 0: the file has
 * ended. Reads at an offset, or at the position of the file, which moves by that number. Waits for
 * the disk, unless the bytes are in the system's memory: ask first, by blz__file_read_now. -EAGAIN:
 * the socket is not ready. -EPIPE raises a signal, unless it is between blz__transfer_quiet and its
 * end.
 */
int64_t blz__transfer_send_file(blz_sysfd to, blz_sysfd file, int64_t offset, size_t len);

/* What blz__transfer_quiet keeps. */
typedef struct blz__transfer_mask {
    uint64_t private_[16];
} blz__transfer_mask;

/*
 * Between these two the calling thread gets no SIGPIPE of its own transfers; -EPIPE is all there
 * is. `broken`: one of them was -EPIPE. On systems without this signal they do nothing.
 */
void blz__transfer_quiet(blz__transfer_mask *mask);
void blz__transfer_quiet_end(const blz__transfer_mask *mask, bool broken);

/* ---- Between files ---- */

/*
 * May wait: for the disk. Copies up to `len` bytes from the position of one file to the position of
 * another, which move by that number: the number; 0: the end of `from`, or a file whose length the
 * system does not know. -ENOTSUP: these two cannot; positions have not moved.
 */
int64_t blz__transfer_copy(blz_sysfd from, blz_sysfd to, size_t len);

/*
 * May wait: for the disk. Makes the file `to` one with the bytes of `from`, which both share on the
 * disk until one of them is written: 0. -ENOTSUP: these two cannot.
 */
int blz__transfer_clone(blz_sysfd from, blz_sysfd to);

#endif
