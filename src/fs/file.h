/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on an open file, as the files of src/fs see them. See file_io.c. */
#ifndef BLZ_FS_FILE_H
#define BLZ_FS_FILE_H

#include "fs/fs.h"
#include "io/io.h"

#include <blitz/look.h>

#include <time.h>

/* Kinds beyond those that the ring knows (IO_FILE_READ and on). */
enum {
    FILE_OPEN = IO_FILE_KINDS, /* fd: where to begin, or NULL; buf: path; offset: see open.c */
    FILE_SET_LEN,              /* offset: the length */
    FILE_ALLOCATE,             /* offset; len; msg_flags: keep the length */
    FILE_METADATA,             /* buf: blz_metadata * */
    FILE_SET_MODE,             /* len */
    FILE_SET_TIMES,            /* offset: accessed; len: modified */
    FILE_LOCK                  /* len: LOCK_SH and so on */
};

#define FILE_POSITION UINT64_MAX /* as an offset: the file's own */

#define file_ref(handle)         ((const blz__fd_ref *)(const void *)(handle))
#define file_mutable_ref(handle) ((blz__fd_ref *)(void *)(handle))

_Static_assert(sizeof(blz_file) == sizeof(blz__fd_ref), "a handle is a reference");

/* clang-format off */
#define FILE_OP(what) \
    {.name = (what), .poll = blz__file_poll, .cancel = blz__file_cancel, .look = blz__file_look}
/* clang-format on */

/* ---- file_io.c [task] ---- */

/* Like blz__io_init; `file` NULL: none is needed. */
blz_future *blz__file_init(blz_io *io, const blz_future_ops *ops, unsigned kind,
                           const blz_file *file, void *buf, size_t len, uint64_t offset);
blz_poll blz__file_poll(blz_future *self, blz_cx *cx);
void blz__file_cancel(blz_future *self, blz_cx *cx);
void blz__file_look(const blz_future *self, blz_look *look);

/* ---- file_call.c ---- */

/* Carries out one piece on a thread that may wait: the result, or a negative errno. */
int64_t blz__file_call(const struct io *io, int fd);

/* The same without waiting; -EAGAIN: cannot be done so. [task] */
int64_t blz__file_try(const struct io *io, int fd);

/* ---- open.c ---- */

/* Opens: the descriptor, or an error. `cached`: does not wait, or gives -EAGAIN. */
int blz__open_run(int dir, const char *path, uint64_t how, bool cached);

/* Options as one number, see open.c; all ones: makes no sense. */
uint64_t blz__open_how(const blz_open_options *options);

/* ---- metadata.c ---- */

/* 0 or a negative errno; `flags`: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH. */
int blz__metadata_get(int dir, const char *path, int flags, blz_metadata *out);

/* What utimensat wants. */

void blz__times_make(struct timespec times[2], int64_t accessed_ns, int64_t modified_ns);

#endif
