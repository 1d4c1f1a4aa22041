/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files: regular files, directories and devices.
 *
 * A function whose comment begins with "May wait" belongs on a thread of the blocking pool. The
 * others return at once, and say -EAGAIN where the system would have to wait. Offsets count from
 * the beginning of the file; FILE_AT_POSITION means the position of the open file, which moves by
 * the bytes that were read or written. A write to a file that was opened to append goes to its end,
 * whatever the offset. All functions: [any thread].
 *
 * -ENOTSUP, by system:
 *
 *   blz__file_open_now        macOS, BSD, Windows, Linux before 5.12: -EAGAIN, always
 *   blz__file_read_now, _write_now   macOS, BSD; Windows, whose driver does files by itself
 *   OPEN_BENEATH              OpenBSD, NetBSD; Linux before 5.6
 *   BLZ_OPEN_DIRECT           OpenBSD; file systems that cannot: -EINVAL
 *   BLZ_OPEN_NO_ATIME         all but Linux
 *   BLZ_OPEN_PATH             macOS, OpenBSD, NetBSD, Windows
 *   BLZ_OPEN_UNNAMED          all but Linux; file systems that cannot
 *   blz__file_allocate        OpenBSD; `keep_len` on FreeBSD and NetBSD; file systems that cannot
 *   blz__file_set_mode        Windows, beyond the permission to write
 *
 * Locks of Windows also keep other handles from reading and writing what is locked. Windows cannot
 * sync directories: that does nothing there.
 */
#ifndef BLZ_SYSTEM_FILE_H
#define BLZ_SYSTEM_FILE_H

#include <blitz/file.h>

/* As a directory that a path begins at: the current directory of the process. */
#define FILE_CURRENT_DIR BLZ_NO_SYSFD

#define FILE_AT_POSITION INT64_C(-1)

/* ---- Opening and closing ---- */

/* How a file is opened, beside the public flags (BLZ_OPEN_DSYNC and so on), which are above. */
enum {
    OPEN_READ = 0x1,
    OPEN_WRITE = 0x2,
    OPEN_APPEND = 0x4,      /* with OPEN_WRITE */
    OPEN_TRUNCATE = 0x8,    /* with OPEN_WRITE */
    OPEN_CREATE = 0x10,     /* with OPEN_WRITE */
    OPEN_CREATE_NEW = 0x20, /* with OPEN_WRITE: -EEXIST if the path leads to something */
    OPEN_DIRECTORY = 0x40,  /* -ENOTDIR if it is anything else */
    OPEN_NO_FOLLOW = 0x80,  /* -ELOOP if the last part of the path is a symbolic link */
    OPEN_BENEATH = 0x100,   /* -EXDEV if the path leads out of `at`, by "..", a link or the root */
    OPEN_FLAGS = 0x1ff
};

/*
 * May wait: for the file system. Opens a file: its descriptor, which is not inherited by children.
 * `mode`: the permissions of a new file, before the umask. A relative path begins at the directory
 * `at`. -EINVAL: a FIFO or a socket, which are no files; no other side of a FIFO is waited for, and
 * none is woken. A terminal does not become the controlling one. -EINVAL also for flags that do not
 * exist.
 */
int64_t blz__file_open(blz_sysfd at, const char *path, unsigned flags, unsigned mode);

/*
 * Opens what can be opened from the system's memory, as blz__file_open does: its descriptor.
 * -EAGAIN: it cannot, or it is not known whether the path leads to anything; nothing has happened.
 * -EINVAL: a FIFO or a socket.
 */
int64_t blz__file_open_now(blz_sysfd at, const char *path, unsigned flags, unsigned mode);

/*
 * May wait: for what was written, with some file systems over a network, which tell here what went
 * wrong. Closes a file: 0, or an error. It is closed in any case.
 */
int blz__file_close(blz_sysfd fd);

/* ---- Reading and writing ---- */

/*
 * May wait: for the disk. Reads at an offset into `count` pieces of memory, one after the other:
 * the number of bytes, 0 at the end of the file. -EINVAL: a negative offset, or more pieces than
 * the system takes at a time, which are 1024 at least. At the position also of pipes and terminals.
 */
int64_t blz__file_read(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset);

/*
 * May wait: for the disk. Writes `count` pieces of memory at an offset, one after the other: the
 * number of bytes, which may be less than all of them. What lies between the end of the file and
 * the offset reads as zeros. Errors are those of blz__file_read, and -ENOSPC, -EFBIG. At the
 * position also to pipes and terminals.
 */
int64_t blz__file_write(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset);

/*
 * Read and write what the system can without waiting for a disk, as the two above. -EAGAIN: not
 * without waiting, and nothing has happened. -ENOTSUP: with this file the system cannot tell.
 */
int64_t blz__file_read_now(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset);
int64_t blz__file_write_now(blz_sysfd fd, const blz_iovec *iov, size_t count, int64_t offset);

/* Whether all of the file's file system is memory, so that nothing done with the file waits. */
bool blz__file_is_memory(blz_sysfd fd);

/*
 * Moves the position: the new one. `whence` is SEEK_SET, SEEK_CUR or SEEK_END of <stdio.h>.
 * -EINVAL: before the beginning; -ESPIPE: a pipe, or a device without a position.
 */
int64_t blz__file_seek(blz_sysfd fd, int64_t offset, int whence);

/* ---- Length and safety ---- */

/* May wait: for the disk. Cuts a file off, or fills it up with zeros, to this length: 0. -EINVAL:
 * negative, or the file is not open to write. */
int blz__file_set_len(blz_sysfd fd, int64_t len);

/*
 * May wait: for the disk. Reserves room for these bytes: 0. The file becomes longer if they reach
 * behind its end, unless `keep_len`. Bytes that exist stay as they are. -ENOSPC; -EINVAL: nothing,
 * or a negative offset.
 */
int blz__file_allocate(blz_sysfd fd, int64_t offset, int64_t len, bool keep_len);

/*
 * May wait: for the disk. Has everything that was written before put on the disk, so that a loss of
 * power does not lose it: 0. `data_only` leaves out what is not needed to read it again, such as
 * times. Of a directory: its entries. -EIO: some of it is lost, and is not reported again.
 */
int blz__file_sync(blz_sysfd fd, bool data_only);

/* ---- What is known of a file ---- */

/* May wait: for the file system. Fills in *out: 0. */
int blz__file_metadata(blz_sysfd fd, blz_metadata *out);

/* Fills in *out, as blz__file_metadata: 0. -EAGAIN: a server may have to be asked. */
int blz__file_metadata_now(blz_sysfd fd, blz_metadata *out);

/* May wait: for the file system. Sets the permissions, of the bits 07777: 0. */
int blz__file_set_mode(blz_sysfd fd, unsigned mode);

/*
 * May wait: for the file system. Sets when the file was read and written last, in nanoseconds since
 * 1970, or BLZ_TIME_NOW or BLZ_TIME_KEEP: 0. File systems round the times down.
 */
int blz__file_set_times(blz_sysfd fd, int64_t accessed_ns, int64_t modified_ns);

/* ---- Locks ---- */

enum { FILE_UNLOCK, FILE_LOCK_SHARED, FILE_LOCK_EXCLUSIVE };

/*
 * May wait: for the file system, but not for another lock. Locks the open file against other open
 * files, of this process and others, or unlocks it: 0. Any number may hold it shared, one holds it
 * exclusive. Duplicates of a descriptor are one open file. A lock that is held is changed, and may
 * be lost by that. It ends with the last descriptor of the open file. -EAGAIN: another open file
 * holds it.
 */
int blz__file_lock(blz_sysfd fd, int how);

#endif
