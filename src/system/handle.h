/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of any kind: what all of them can be asked, and what ends them.
 *
 * A descriptor that the library makes is not inherited by children. Descriptors of others are
 * inherited or not as their makers chose.
 */
#ifndef BLZ_SYSTEM_HANDLE_H
#define BLZ_SYSTEM_HANDLE_H

#include <blitz/system.h>
#include <stdbool.h>

/* Closes it. The number may mean another descriptor at once. Errors are ignored. [any thread] */
void blz__handle_close(blz_sysfd fd);

/* What a descriptor is. */
enum blz__handle_kind {
    BLZ__HANDLE_FILE,
    BLZ__HANDLE_DIRECTORY,
    BLZ__HANDLE_SOCKET,
    BLZ__HANDLE_PIPE, /* or a FIFO */
    BLZ__HANDLE_TERMINAL,
    BLZ__HANDLE_DISK,   /* a block device */
    BLZ__HANDLE_DEVICE, /* any other device */
    BLZ__HANDLE_OTHER,
};

/* What it is (enum blz__handle_kind), or -EBADF. [any thread] */
int blz__handle_kind(blz_sysfd fd);

/*
 * 1: calls on it do not wait. 0: they wait. -EBADF; -ENOTSUP: this system cannot tell (sockets on
 * Windows). [any thread]
 */
int blz__handle_is_nonblocking(blz_sysfd fd);

/*
 * Chooses whether calls on it wait. That is a property of the open file, which other descriptors
 * and processes may share. 0, or a negative error; -ENOTSUP: of files and pipes on Windows.
 * [any thread]
 */
int blz__handle_set_nonblocking(blz_sysfd fd, bool nonblocking);

/*
 * Another descriptor of the same open file, which children do not inherit. A negative error:
 * -EBADF, -EMFILE. [any thread]
 */
int64_t blz__handle_duplicate(blz_sysfd fd);

/* 1: children inherit it. 0: they do not. -EBADF. [any thread] */
int blz__handle_is_inherited(blz_sysfd fd);

/* Chooses whether children inherit it. 0 or -EBADF. [any thread] */
int blz__handle_set_inherited(blz_sysfd fd, bool inherited);

#endif
