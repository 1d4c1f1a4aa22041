/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file system: whole files, paths, directories. For open files see blitz/file.h.
 *
 *     struct load { BLZ_FRAME; const char *path; blz_fs_op op; blz_bytes text; int64_t rc; };
 *
 *     BLZ_ASYNC(load)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_fs_read(&self->op, self->path, &self->text, 1 << 20));
 *         if (self->rc >= 0)
 *             printf("%s", self->text.data);
 *         blz_bytes_free(&self->text);
 *         BLZ_END(self->rc);
 *     }
 *
 * Each of these is one job for a thread of the blocking pool that does nothing but files, whatever
 * the backend. Paths are strings that end with a zero; they, and all memory given, must stay valid
 * until the operation is ready.
 *
 * Errors are those of the system (-ENOENT, -EACCES, -ENOSPC, -EIO, ...), beside those that a
 * function names. Every operation also gives -ENXIO outside of a task, -ENOMEM or -EAGAIN if there
 * is no thread and none can be started, and -ECANCELED.
 *
 * FIFOs and sockets are not files here: reading, writing and copying them is -EINVAL at once. (See
 * blitz/pipe.h for FIFOs.)
 *
 * What cancellation does: a job that has not begun never will. One that has begun completes when
 * done, with its real result; those that take many steps (reading, writing, copying, removing
 * trees) look in between, and end with -ECANCELED. What is said at each of them is left behind.
 * Something that a cancelled operation would have handed out (memory, a file) is given back, and
 * the result is -ECANCELED.
 */
#ifndef BLITZ_FS_H
#define BLITZ_FS_H

#include <blitz/blocking.h>
#include <blitz/file.h>

BLZ_BEGIN_DECLS

/* One operation. Lives in the frame of the caller. */
typedef struct blz_fs_op {
    blz_future future;
    blz_blocking_op call;
    int64_t (*run)(struct blz_fs_op *op);
    const char *path, *other;
    void *out;
    const void *data;
    size_t len;
    int64_t number[2];
    blz_rt *rt;
    uint32_t cancelled;
    uint32_t spare;
    uint64_t reserved[2];
} blz_fs_op;

/* Bytes with a zero behind them. All zero: none. May outlive the runtime that they came from. */
typedef struct blz_bytes {
    char *data;
    size_t len;
    size_t capacity_;
    blz_allocator allocator_;
} blz_bytes;

/* Frees the memory; *bytes is none afterwards. To free none does nothing. [any thread] */
BLZ_API void blz_bytes_free(blz_bytes *bytes);

/* ---- Whole files [task] ---- */

/*
 * Reads a file: the number of bytes, and *out, which must be freed. *out is none after an error.
 * -EFBIG: it is longer than `limit`; -ENOMEM.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_read(blz_fs_op *op, const char *path, blz_bytes *out,
                                              size_t limit);

/*
 * Makes a file of these bytes, in the place of what was in it: 0. After an error or a cancellation
 * the file may have a part of them.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_write(blz_fs_op *op, const char *path, const void *data,
                                               size_t len);

/*
 * Replaces a file by one with these bytes, so that other processes see the old file or the new one,
 * also after a crash: writes another file beside it, has that written to the disk, and moves it to
 * its place. The new file belongs to this process's user. It has the permissions of the old one,
 * but set-user-ID only if the owner is the same, and set-group-ID only if the group is the same,
 * too. A symbolic link is replaced itself. 0: the new file is on the disk. After an
 * error or a cancellation the old one is as it was; only if the very last step fails, the writing
 * of the directory, it is the new one that is there, and a crash may undo that.
 *
 * A process that is killed in between leaves a file `.blitz-` and 16 hexadecimal digits in the
 * directory, and so does a power cut. See blz_fs_remove_unfinished.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_write_atomic(blz_fs_op *op, const char *path,
                                                      const void *data, size_t len);

/*
 * Removes the files that atomic writes of killed processes have left in a directory: how many. For
 * the start of a program. Files that a live process is writing, and those that this user may not
 * read, stay: the writer holds a lock, flock(2). On a network file system whose locks do not reach
 * other machines, call it only while none of them writes there. What is removed before an error or
 * a cancellation is gone.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_remove_unfinished(blz_fs_op *op, const char *dir);

/* Adds these bytes to the end of a file, which is made if there is none: 0. */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_append(blz_fs_op *op, const char *path, const void *data,
                                                size_t len);

/*
 * Copies what is in a file, and its permissions: the number of bytes. Set-user-ID is copied only if
 * both have the same owner, set-group-ID only if they also have the same group. Where the file
 * system can, the two share their blocks. -EINVAL: both are the same file, or `from` is no regular
 * one. After an error or a cancellation `to` may have a part.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_copy(blz_fs_op *op, const char *from, const char *to);

/* ---- Paths [task] ---- */

/* Asks for size, type, times and so on of what the path leads to: 0 and *out. */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_metadata(blz_fs_op *op, const char *path,
                                                  blz_metadata *out);

/* Asks for size, type, times and so on, of a symbolic link itself: 0 and *out. */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_link_metadata(blz_fs_op *op, const char *path,
                                                       blz_metadata *out);

/* Whether there is something at the path: 1 or 0; after an error that is not known. */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_exists(blz_fs_op *op, const char *path);

/*
 * Changes the permissions, or the times of the last read and write (BLZ_TIME_NOW, BLZ_TIME_KEEP);
 * symbolic links are followed: 0. -ENOTSUP: permissions on Windows, beyond the permission to write.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_set_mode(blz_fs_op *op, const char *path, unsigned mode);
BLZ_API BLZ_NODISCARD blz_future *blz_fs_set_times(blz_fs_op *op, const char *path,
                                                   int64_t accessed_ns, int64_t modified_ns);

/*
 * Moves a file or directory within a file system; `to` is replaced: 0. -EXDEV: another file system.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_rename(blz_fs_op *op, const char *from, const char *to);

/* Removes a file or a symbolic link: 0; -EISDIR: a directory. */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_remove(blz_fs_op *op, const char *path);

/*
 * Makes another name for a file; or a symbolic link with the given text: 0. -EEXIST: the name is
 * taken; -EPERM: a file system without them, or Windows without the privilege.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_hard_link(blz_fs_op *op, const char *path,
                                                   const char *name);
BLZ_API BLZ_NODISCARD blz_future *blz_fs_symlink(blz_fs_op *op, const char *text, const char *name);

/*
 * Reads the text of a symbolic link; or the path without links, "." and "..": 0 and *out, which
 * must be freed.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_read_link(blz_fs_op *op, const char *path, blz_bytes *out);
BLZ_API BLZ_NODISCARD blz_future *blz_fs_canonicalize(blz_fs_op *op, const char *path,
                                                      blz_bytes *out);

/* ---- Directories [task] ---- */

/*
 * Makes a directory: 0; -EEXIST: there is one. The mode is that of new ones, before the umask; 0777
 * as a rule.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_create_dir(blz_fs_op *op, const char *path, unsigned mode);

/*
 * Makes a directory and those above it, as far as they are missing: 0. The mode is that of new
 * ones, before the umask; 0777 as a rule.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_create_dir_all(blz_fs_op *op, const char *path,
                                                        unsigned mode);

/* Removes an empty directory: 0; -ENOTEMPTY; -ENOTDIR: a symbolic link, or a file. */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_remove_dir(blz_fs_op *op, const char *path);

/*
 * Removes a directory and all that is in it: 0. Symbolic links are removed, and never followed,
 * whatever others do meanwhile. -ENOTDIR: it is a link, or a file. It goes on until the first
 * error, or a cancellation; what is removed is gone. Each level takes a descriptor.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_remove_dir_all(blz_fs_op *op, const char *path);

/* A directory that is being listed; belongs to one task. All zero: none. */
typedef struct blz_dir {
    uint64_t private_[12];
} blz_dir;

/* `name` is valid until the next call. The type may not be known. */
typedef struct blz_dir_entry {
    const char *name;
    blz_file_type type;
    uint64_t inode;
    uint64_t reserved[2];
} blz_dir_entry;

/* Opens a directory, to list it: 0 and *dir; -ENOTDIR. */
BLZ_API BLZ_NODISCARD blz_future *blz_dir_open(blz_fs_op *op, blz_dir *dir, const char *path);

/*
 * Gives the entries of a directory one after the other, in no order and without "." and "..": 1 and
 * *entry, or 0 at the end. Many are fetched at a time, so most are ready at once.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_dir_next(blz_fs_op *op, blz_dir *dir, blz_dir_entry *entry);

/*
 * Takes over the descriptor of an open directory, to list what has not been listed by it yet (`rt`
 * NULL: this thread's). 0; -ENOTDIR, -EBADF; -ENXIO: no runtime; -ENOMEM. On failure it is still
 * the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_dir_from_fd(blz_dir *dir, blz_sysfd fd, blz_rt *rt);

/*
 * Closes a directory; not while an operation is in flight. To close none does nothing. [any thread]
 */
BLZ_API void blz_dir_close(blz_dir *dir);

/* ---- For a while [task] ---- */

/*
 * Makes a file without a name, to read and write, that is gone when it is closed: 0 and *file.
 * `dir` NULL: the system's directory for such files; on Unix $TMPDIR, or /tmp. A program that has
 * more privileges than its caller ignores $TMPDIR.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_temp_file(blz_fs_op *op, blz_file *file, const char *dir);

/*
 * Makes a new directory for this user alone, with a name that begins with `prefix`: 0 and its path,
 * which must be freed. The caller removes it.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_temp_dir(blz_fs_op *op, blz_bytes *path, const char *dir,
                                                  const char *prefix);

/* ---- Changes ---- */

/*
 * Changes to wait for, and to be reported; the last three are reported to every watch. Not every
 * system can tell everything: see blz_fs_watch_events.
 */
enum {
    BLZ_FS_MODIFIED = 0x1,   /* bytes were written, or cut off */
    BLZ_FS_WRITTEN = 0x2,    /* one that had it open to write has closed it */
    BLZ_FS_ATTRIBUTES = 0x4, /* permissions, times, owner, links */
    BLZ_FS_CREATED = 0x8,    /* in the directory that is watched */
    BLZ_FS_REMOVED = 0x10,   /* from it, or what is watched itself */
    BLZ_FS_MOVED_FROM = 0x20,
    BLZ_FS_MOVED_TO = 0x40,
    BLZ_FS_ALL = 0x7f,
    BLZ_FS_OF_DIRECTORY = 0x100, /* it is a directory that the change is about */
    BLZ_FS_GONE = 0x200,         /* is not watched any more: removed, unmounted */
    BLZ_FS_OVERFLOW = 0x400      /* changes were lost (id -1): look at everything */
};

/* `name`, in the directory that is watched, or "", is valid until the next call. */
typedef struct blz_fs_change {
    int id;          /* of blz_fs_watch_add */
    uint32_t events; /* BLZ_FS_MODIFIED and so on */
    uint32_t cookie; /* the two halves of a move have the same one */
    const char *name;
    uint64_t reserved[2];
} blz_fs_change;

/* Watches any number of files and directories. Belongs to one task. All zero: none. */
typedef struct blz_fs_watch {
    uint64_t private_[14];
} blz_fs_watch;

/*
 * The events that this system can tell, of BLZ_FS_ALL: all of them on Linux and FreeBSD 15, all but
 * BLZ_FS_WRITTEN on macOS, the other BSDs and Windows. Windows watches directories only; the other
 * BSDs do not tell names. [any thread]
 */
BLZ_API uint32_t blz_fs_watch_events(void);

/*
 * Makes one that watches nothing (`rt` NULL: this thread's). 0, -ENXIO: no runtime, -ENOMEM,
 * -EMFILE: the system's limit. Closing it: not while a wait is in flight; none is
 * fine. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_fs_watch_new(blz_fs_watch *watch, blz_rt *rt);
BLZ_API void blz_fs_watch_close(blz_fs_watch *watch);

/*
 * Watches a file, or a directory and what is directly in it, as well: its id. The same one again
 * changes what is waited for. Events that this system cannot tell are ignored; -EINVAL: none is
 * left. -ENOENT, -ENOSPC: the system's limit. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_watch_add(blz_fs_op *op, blz_fs_watch *watch,
                                                   const char *path, uint32_t events);

/* Ends the watching of an id; BLZ_FS_GONE is reported. 0; -ENOENT: no such id. [task] */
BLZ_API int blz_fs_watch_remove(blz_fs_watch *watch, int id);

/*
 * Waits for a change: 1 and *change. One wait at a time. Interruptible; no change is lost by that.
 * [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fs_watch_next(blz_io *io, blz_fs_watch *watch,
                                                    blz_fs_change *change);

BLZ_END_DECLS
#endif
