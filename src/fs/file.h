/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on an open file, as the files of src/fs see them. See file_io.c. */
#ifndef BLZ_FS_FILE_H
#define BLZ_FS_FILE_H

#include "fs/fs.h"
#include "io/io.h"
#include "system/file.h"

#include <blitz/wait_info.h>

#define file_ref(handle)         ((const blz__fd_ref *)(const void *)(handle))
#define file_mutable_ref(handle) ((blz__fd_ref *)(void *)(handle))

_Static_assert(sizeof(blz_file) == sizeof(blz__fd_ref), "a handle is a reference");

/* clang-format off */
#define FILE_OP(what) \
    {.name = (what), .poll = blz__file_poll, .cancel = blz__file_cancel, \
     .describe_wait = blz__file_describe}
/* clang-format on */

/* ---- file_io.c [task] ---- */

/* Like blz__io_prepare; `file` NULL: none is needed. */
struct io *blz__file_prepare(blz_io *io, const blz_future_ops *ops, enum io_kind kind,
                             const blz_file *file);
blz_poll blz__file_poll(blz_future *self, blz_cx *cx);
void blz__file_cancel(blz_future *self, blz_cx *cx);
void blz__file_describe(const blz_future *self, blz_wait_info *info);

/* ---- file_call.c ---- */

/* May wait: carries out one piece. The result, or a negative error. [pool] */
int64_t blz__file_call(const struct io *io, blz_sysfd fd);

/* Carries out one piece without waiting; -EAGAIN: cannot be done so. [task] */
int64_t blz__file_try(const struct io *io, blz_sysfd fd);

/* ---- open.c ---- */

/*
 * Options as one number: flags of system/file.h in the lower half, the mode of a new file in the
 * upper one. OPEN_NONSENSE: options that contradict each other.
 */
#define OPEN_NONSENSE UINT64_MAX
uint64_t blz__open_how(const blz_open_options *options);

/* May wait: opens a file as that number says: its descriptor, or a negative error. [pool] */
int64_t blz__open_run(blz_sysfd at, const char *path, uint64_t how);

/* Opens a file without waiting; -EAGAIN: cannot be done so. [task] */
int64_t blz__open_try(blz_sysfd at, const char *path, uint64_t how);

#endif
