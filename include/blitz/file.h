/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: opening, reading, writing, and what else is done with an open file. For what is done with
 * paths see blitz/fs.h.
 *
 *     struct head { BLZ_FRAME; const char *path; blz_file file; blz_io io; char buf[4096];
 *                   int64_t n; };
 *
 *     BLZ_ASYNC(head)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->n, blz_file_open(&self->io, &self->file, self->path, NULL));
 *         if (self->n >= 0)
 *             BLZ_AWAIT(self->n, blz_file_read(&self->io, &self->file, self->buf, 4096));
 *         blz_file_close(&self->file);
 *         BLZ_END(self->n);
 *     }
 *
 * A blz_file is a small handle that may be copied; all copies mean the same open file, and once one
 * of them has closed it the others give -EBADF. It belongs to the runtime that it was opened in.
 * Any number of operations may be in flight on one file. Those without an offset use the position
 * of the open file, which they share: do these one after the other.
 *
 * What is in the system's memory is read, and where the file system can do that written, at once,
 * by a call that does not wait. Everything else goes to the ring with io_uring, and to threads of
 * the blocking pool that do nothing but this with other backends.
 *
 * What cancellation does: an operation that has not begun never will, and ends with -ECANCELED.
 * One that has begun completes when done, with its real result, because the memory is in use until
 * then: a disk cannot be interrupted. Those that move all of their bytes (read_exact, write_all)
 * end between two pieces with -ECANCELED; `done` of the operation says how many bytes were moved,
 * whatever the result. What a write has reported is in the file; that it survives a crash is what
 * blz_file_sync is for.
 *
 * Errors that every operation may give: -EBADF: the handle is empty, or the file is closed; -ENXIO
 * outside of a task; -ENOMEM or -EAGAIN: no thread can be started; -ECANCELED; and errors of the
 * system (-EIO, -ENOSPC, ...).
 */
#ifndef BLITZ_FILE_H
#define BLITZ_FILE_H

#include <blitz/io.h>
#include <blitz/stream.h>
#include <blitz/system.h>
#include <blitz/time.h>

BLZ_BEGIN_DECLS

/* An open file: a handle, which may be copied. All zero: none. */
typedef struct blz_file {
    void *entry_;
    uint64_t generation_;
} blz_file;

/* ---- Opening and closing ---- */

/* More wishes for opening a file: `flags` of blz_open_options. */
enum {
    BLZ_OPEN_DSYNC = 0x10000,    /* each write waits until its bytes are safe on the disk */
    BLZ_OPEN_DIRECT = 0x20000,   /* past the system's cache; memory and offsets must be aligned.
                                    -EINVAL: this file system cannot; -ENOTSUP: OpenBSD */
    BLZ_OPEN_NO_ATIME = 0x40000, /* reading does not count as access; the owner's files only.
                                    -ENOTSUP: all systems but Linux */
    BLZ_OPEN_PATH = 0x80000,     /* a place in the file system, for `at` and metadata alone.
                                    -ENOTSUP: macOS, OpenBSD, NetBSD, Windows */
    BLZ_OPEN_UNNAMED = 0x100000, /* the path is a directory: a new file in it without a name; needs
                                    write. -ENOTSUP: all systems but Linux, and file systems that
                                    cannot; see blz_fs_temp_file */
    BLZ_OPEN_ALL = 0x1f0000      /* all of these */
};

/*
 * All zero: an existing file is read. Permissions are the bits of POSIX: 0400 for the owner to
 * read, 0200 to write, 0100 to execute, the next three bits for the group, the last three for all
 * others. Windows knows only whether a file may be written.
 */
typedef struct blz_open_options {
    bool read;          /* implied if neither write nor append is set */
    bool write;         /* existing bytes stay, unless truncate is set */
    bool append;        /* every write goes to the end; implies write */
    bool truncate;      /* an existing file becomes empty; needs write */
    bool create;        /* a new file if there is none; needs write */
    bool create_new;    /* a new file, and -EEXIST if there is one; needs write */
    bool directory;     /* -ENOTDIR if it is anything else */
    bool no_follow;     /* -ELOOP if the path is a symbolic link */
    bool beneath;       /* -EXDEV if it leads out of `at`, by "..", a link or from the root */
    unsigned mode;      /* permissions of a new file, before the umask; default 0666 */
    uint32_t flags;     /* BLZ_OPEN_DSYNC and so on */
    const blz_file *at; /* a directory that a relative path begins at; default: the current one */
    uint64_t reserved[2];
} blz_open_options;

/*
 * Opens a file, which children do not inherit: 0 and *file. `options` NULL: to read. -EINVAL:
 * options that make no sense, or a FIFO or a socket (blitz/pipe.h); or what the system says. The
 * path must stay valid until it is ready; the options are copied, but `at` is used at the first
 * poll. -ENOTSUP: flags that the system does not have, and `beneath` on OpenBSD, NetBSD and Linux
 * before 5.6. Cancelled: gives -ECANCELED, and never a descriptor. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_open(blz_io *io, blz_file *file, const char *path,
                                                const blz_open_options *options);

/*
 * Opens a file to write: a new file, or an empty one in the place of what was in it; close-on-exec:
 * 0 and *file. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_create(blz_io *io, blz_file *file, const char *path);

/*
 * Closes it; *file is none afterwards. Operations in flight go on, and the descriptor goes when the
 * last one has ended. Errors of the device are reported by blz_file_sync, not here. -EBADF: is
 * closed. [any thread]
 */
BLZ_API int blz_file_close(blz_file *file);

/*
 * Takes over a descriptor of a regular file, a directory or a device, which the runtime closes from
 * now on (`rt` NULL: this thread's). -EINVAL: a pipe or a socket; -EBADF; -ENXIO: no runtime;
 * -ENOMEM. On failure it is still the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_file_from_fd(blz_file *file, blz_sysfd fd, blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *file is none afterwards. -EBUSY: operations are
 * in flight; -EBADF. [any thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_file_into_fd(blz_file *file);

/* ---- Reading [task] ---- */

/* Reads at the position: the number of bytes, which may be less than `len`; 0 at the end. */
BLZ_API BLZ_NODISCARD blz_future *blz_file_read(blz_io *io, const blz_file *file, void *buf,
                                                size_t len);

/*
 * Reads all of `len` bytes at the position: `len`; -ENODATA: the file ends before; `done` says how
 * many there were.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_read_exact(blz_io *io, const blz_file *file, void *buf,
                                                      size_t len);

/*
 * Reads at the position into several pieces of memory: the number of bytes, which may be less than
 * their sum; 0 at the end. The pieces and the array must stay until the future is ready.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_readv(blz_io *io, const blz_file *file,
                                                 const blz_iovec *iov, size_t count);

/*
 * Reads at an offset: the number of bytes, which may be less than `len`; 0 at the end. The position
 * is not used and does not change. -EINVAL: a negative offset.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_read_at(blz_io *io, const blz_file *file, void *buf,
                                                   size_t len, int64_t offset);

/*
 * Reads all of `len` bytes at an offset: `len`; -ENODATA: the file ends before; `done` says how
 * many there were. -EINVAL: a negative offset.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_read_exact_at(blz_io *io, const blz_file *file,
                                                         void *buf, size_t len, int64_t offset);

/*
 * Reads at an offset into several pieces of memory: the number of bytes, which may be less than
 * their sum; 0 at the end. -EINVAL: a negative offset.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_readv_at(blz_io *io, const blz_file *file,
                                                    const blz_iovec *iov, size_t count,
                                                    int64_t offset);

/* ---- Writing [task] ---- */

/* Writes some of it at the position: the number of bytes, which may be less than `len`. */
BLZ_API BLZ_NODISCARD blz_future *blz_file_write(blz_io *io, const blz_file *file, const void *buf,
                                                 size_t len);

/* Writes all of it at the position: `len`. After an error `done` says how much was written. */
BLZ_API BLZ_NODISCARD blz_future *blz_file_write_all(blz_io *io, const blz_file *file,
                                                     const void *buf, size_t len);

/*
 * Writes some of several pieces of memory at the position: the number of bytes, which may be less
 * than their sum.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_writev(blz_io *io, const blz_file *file,
                                                  const blz_iovec *iov, size_t count);

/*
 * Writes all of several pieces of memory, which stay valid, as does the array, until the future is
 * ready: the number of bytes. After an error op->done says how far it came. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_writev_all(blz_stream_op *op, const blz_file *file,
                                                      const blz_iovec *iov, size_t count);

/*
 * Writes some of it at an offset: the number of bytes, which may be less than `len`. A file that
 * was opened to append is written at its end all the same. -EINVAL: a negative offset.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_write_at(blz_io *io, const blz_file *file,
                                                    const void *buf, size_t len, int64_t offset);

/*
 * Writes all of it at an offset: `len`. After an error `done` says how much was written. A file
 * that was opened to append is written at its end all the same. -EINVAL: a negative offset.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_write_all_at(blz_io *io, const blz_file *file,
                                                        const void *buf, size_t len,
                                                        int64_t offset);

/*
 * Writes some of several pieces of memory at an offset: the number of bytes, which may be less than
 * their sum. A file that was opened to append is written at its end all the same. -EINVAL: a
 * negative offset.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_writev_at(blz_io *io, const blz_file *file,
                                                     const blz_iovec *iov, size_t count,
                                                     int64_t offset);

/* ---- The position ---- */

/*
 * Moves the position: `whence` is SEEK_SET, SEEK_CUR or SEEK_END. Gives the new position; -EINVAL;
 * -ESPIPE: a device without one; -EBADF. Not while an operation at the position is in flight. [any
 * thread]
 */
BLZ_API int64_t blz_file_seek(const blz_file *file, int64_t offset, int whence);

/*
 * The file as a stream that is read and written at the position (blitz/stream.h). Its operations
 * complete when done. [any thread]
 */
BLZ_API blz_stream blz_file_stream(const blz_file *file);

/* ---- Size and safety [task] ---- */

/*
 * Sets the length of the file: 0. What is behind it is cut off; what is missing is filled with
 * zeros.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_set_len(blz_io *io, const blz_file *file, int64_t len);

/*
 * Reserves room on the disk, so that writing there cannot fail for want of it; the file becomes
 * longer if need be, unless `keep_len`. 0; -ENOTSUP: this file system or OpenBSD cannot, FreeBSD
 * and NetBSD cannot with `keep_len`; -ENOSPC.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_allocate(blz_io *io, const blz_file *file,
                                                    int64_t offset, int64_t len, bool keep_len);

/*
 * Waits until everything that was written before is safe on the disk; sync_data leaves out what is
 * not needed to read it again, such as times. Of a directory: its entries, except on Windows, where
 * that does nothing. 0; -EIO: some of it is lost, and will not be reported again.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_sync(blz_io *io, const blz_file *file);
BLZ_API BLZ_NODISCARD blz_future *blz_file_sync_data(blz_io *io, const blz_file *file);

/* ---- What is known of a file ---- */

/* What a path leads to. */
typedef enum blz_file_type {
    BLZ_FILE_UNKNOWN,
    BLZ_FILE_REGULAR,
    BLZ_FILE_DIRECTORY,
    BLZ_FILE_SYMLINK,
    BLZ_FILE_FIFO,
    BLZ_FILE_SOCKET,
    BLZ_FILE_CHAR_DEVICE,
    BLZ_FILE_BLOCK_DEVICE
} blz_file_type;

/*
 * What is known of a file. Times are nanoseconds since 1970, UTC; INT64_MIN: not known. Windows has
 * no owners, groups and special numbers of this kind: 0.
 */
typedef struct blz_metadata {
    blz_file_type type;
    unsigned mode; /* permissions, with the sticky and set-id bits: 07777 */
    int64_t size;
    int64_t blocks; /* of 512 bytes on the disk */
    uint32_t block_size;
    uint32_t uid, gid;
    uint32_t links;
    uint64_t device, inode;
    uint64_t special; /* of a device: its number */
    int64_t accessed_ns, modified_ns, changed_ns, created_ns;
    uint64_t reserved[4];
} blz_metadata;

/* Asks for size, type, times and so on of the file: 0 and *out. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_file_metadata(blz_io *io, const blz_file *file,
                                                    blz_metadata *out);

/* Changes the permissions: 0; -ENOTSUP: Windows, beyond the permission to write. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_file_set_mode(blz_io *io, const blz_file *file,
                                                    unsigned mode);

/* Instead of a time. */
#define BLZ_TIME_NOW  INT64_MAX /* that of the system */
#define BLZ_TIME_KEEP INT64_MIN /* leave it as it is */

/* Sets the times of the last read and write (BLZ_TIME_NOW, BLZ_TIME_KEEP): 0. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_file_set_times(blz_io *io, const blz_file *file,
                                                     int64_t accessed_ns, int64_t modified_ns);

/* ---- Locks ---- */

/* The future of blz_file_lock. */
typedef struct blz_file_lock_op {
    blz_future future;
    blz_io io;
    blz_sleep_op pause;
    blz_file file;
    int64_t pause_ns;
    uint32_t how;
    uint32_t state;
    uint64_t reserved;
} blz_file_lock_op;

/*
 * Locks the open file against other open files, of this process and others (flock(2) on Unix):
 * exclusive, or shared with all others that lock it shared. Programs that do not lock are not kept
 * away, except on Windows. A lock that is held is changed, not atomically: it may be lost.
 * It ends with blz_file_unlock, or when the descriptor is closed. 0. Others that hold it are waited
 * for, by asking again every few milliseconds. Interruptible: -ECANCELED, and then this call has
 * not locked it. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_lock(blz_file_lock_op *op, const blz_file *file);
BLZ_API BLZ_NODISCARD blz_future *blz_file_lock_shared(blz_file_lock_op *op, const blz_file *file);

/*
 * Locks the open file, exclusive or shared, without waiting: 0; -EAGAIN: another open file holds
 * it. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_file_try_lock(blz_io *io, const blz_file *file);
BLZ_API BLZ_NODISCARD blz_future *blz_file_try_lock_shared(blz_io *io, const blz_file *file);

/* Ends a lock of blz_file_lock and its kin: 0. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_file_unlock(blz_io *io, const blz_file *file);

BLZ_END_DECLS
#endif
