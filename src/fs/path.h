/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on paths, as the files of src/fs see them: functions that run on a thread. */
#ifndef BLZ_FS_PATH_H
#define BLZ_FS_PATH_H

#include "base/atomic.h"
#include "fs/file.h"
#include "system/path.h"

#include <blitz/fs.h>

/* ---- path_op.c ---- */

/* What such an operation is; `future` first. */
struct fs_ops {
    blz_future_ops future;
    int64_t (*run)(blz_fs_op *op); /* on a thread of the pool; 0 or more, or an error */
    int64_t (*hand_out)(blz_fs_op *op, int64_t result); /* on the task, after success; or NULL */
    void (*undo)(blz_fs_op *op, int64_t result);        /* instead, if cancelled; or NULL */
};

/* Begins with a clean op that has a path. */
blz_future *blz__fs_init(blz_fs_op *op, const struct fs_ops *ops, const char *path);
blz_poll blz__fs_poll(blz_future *self, blz_cx *cx);
void blz__fs_cancel(blz_future *self, blz_cx *cx);

/* clang-format off */
#define FS_OP(what) {.name = (what), .poll = blz__fs_poll, .cancel = blz__fs_cancel}
/* clang-format on */

/* For those that take many steps. [pool] */
static inline bool fs_is_cancelled(const blz_fs_op *op)
{
    return blz__load(&op->cancelled, RELAXED);
}

/* ---- bytes.c ---- */

/* Room for `capacity` bytes and a zero; what is in it stays. 0 or -ENOMEM. */
int blz__bytes_reserve(blz_bytes *bytes, const blz_allocator *allocator, size_t capacity);
int blz__bytes_set(blz_bytes *bytes, const blz_allocator *allocator, const char *text, size_t len);

/* An undo for operations whose `out` is a blz_bytes. */
void blz__bytes_undo(blz_fs_op *op, int64_t result);

/* ---- whole.c ---- */

/* Reads at the position, at most a few MiB: bytes, 0 at the end, or a negative error. [pool] */
int64_t blz__read_some(blz_sysfd fd, char *buf, size_t len);

/* Writes all of it, and looks for a cancellation in between: 0 or a negative error. [pool] */
int64_t blz__write_fully(const blz_fs_op *op, blz_sysfd fd, const char *data, size_t len);

/* Opens as blz_file_open does: the descriptor or a negative error. [pool] */
int64_t blz__open_path(const char *path, const blz_open_options *options);

/* Opens a directory to list it: the descriptor or a negative error. [pool] */
int64_t blz__open_dir(const char *path);

/* ---- atomic.c ---- */

/*
 * The permissions of a file for another one that takes its place. A program that runs as its owner
 * must not become one that runs as another user: set-user-ID stays only if the owner is the same,
 * set-group-ID only if the group is the same, too.
 */
unsigned blz__mode_for(const blz_metadata *of, const blz_metadata *other);

/* ---- temp.c ---- */

/* A name that nobody has, in 16 hexadecimal digits and a zero. [pool] */
enum { RANDOM_NAME = 17 };
void blz__random_name(char name[RANDOM_NAME]);

#endif
