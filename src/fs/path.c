/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on paths that are one system call, more or less. */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t result_of(int rc)
{
    return rc < 0 ? -errno : 0;
}

/* Defines blz_fs_NAME(op, path) as one call. */
#define PATH_CALL(name, call)                                                          \
    static int64_t name##_run(blz_fs_op *op)                                           \
    {                                                                                  \
        return result_of(call);                                                        \
    }                                                                                  \
    blz_future *blz_fs_##name(blz_fs_op *op, const char *path)                         \
    {                                                                                  \
        static const struct fs_ops ops = {FS_OP("fs_" #name), name##_run, NULL, NULL}; \
        return blz__fs_init(op, &ops, path);                                           \
    }

/* The same with two paths. */
#define PATHS_CALL(name, call)                                                         \
    static int64_t name##_run(blz_fs_op *op)                                           \
    {                                                                                  \
        return result_of(call);                                                        \
    }                                                                                  \
    blz_future *blz_fs_##name(blz_fs_op *op, const char *path, const char *other)      \
    {                                                                                  \
        static const struct fs_ops ops = {FS_OP("fs_" #name), name##_run, NULL, NULL}; \
        blz__fs_init(op, &ops, path);                                                  \
        op->other = other;                                                             \
        return &op->future;                                                            \
    }

/* The same with a mode. */
#define MODE_CALL(name, call)                                                          \
    static int64_t name##_run(blz_fs_op *op)                                           \
    {                                                                                  \
        return result_of(call);                                                        \
    }                                                                                  \
    blz_future *blz_fs_##name(blz_fs_op *op, const char *path, unsigned mode)          \
    {                                                                                  \
        static const struct fs_ops ops = {FS_OP("fs_" #name), name##_run, NULL, NULL}; \
        blz__fs_init(op, &ops, path);                                                  \
        op->number[0] = mode;                                                          \
        return &op->future;                                                            \
    }

PATH_CALL(remove, unlink(op->path))
PATH_CALL(remove_dir, rmdir(op->path))
PATHS_CALL(rename, rename(op->path, op->other))
PATHS_CALL(hard_link, link(op->path, op->other))
PATHS_CALL(symlink, symlink(op->path, op->other))
MODE_CALL(set_mode, chmod(op->path, (mode_t)op->number[0]))
MODE_CALL(create_dir, mkdir(op->path, (mode_t)op->number[0]))

/* ---- asking ---- */

static int64_t metadata_run(blz_fs_op *op)
{
    return blz__metadata_get(AT_FDCWD, op->path, (int)op->number[0], op->out);
}

blz_future *blz_fs_metadata(blz_fs_op *op, const char *path, blz_metadata *out)
{
    static const struct fs_ops ops = {FS_OP("fs_metadata"), metadata_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->out = out;
    return &op->future;
}

blz_future *blz_fs_link_metadata(blz_fs_op *op, const char *path, blz_metadata *out)
{
    static const struct fs_ops ops = {FS_OP("fs_link_metadata"), metadata_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->out = out;
    op->number[0] = AT_SYMLINK_NOFOLLOW;
    return &op->future;
}

static int64_t exists_run(blz_fs_op *op)
{
    if (faccessat(AT_FDCWD, op->path, F_OK, 0) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

blz_future *blz_fs_exists(blz_fs_op *op, const char *path)
{
    static const struct fs_ops ops = {FS_OP("fs_exists"), exists_run, NULL, NULL};
    return blz__fs_init(op, &ops, path);
}

/* ---- times ---- */

static int64_t set_times_run(blz_fs_op *op)
{
    struct timespec times[2];

    blz__times_make(times, op->number[0], op->number[1]);
    return result_of(utimensat(AT_FDCWD, op->path, times, 0));
}

blz_future *blz_fs_set_times(blz_fs_op *op, const char *path, int64_t accessed_ns,
                             int64_t modified_ns)
{
    static const struct fs_ops ops = {FS_OP("fs_set_times"), set_times_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->number[0] = accessed_ns;
    op->number[1] = modified_ns;
    return &op->future;
}

/* ---- texts ---- */

static int64_t read_link_run(blz_fs_op *op)
{
    char text[PATH_MAX];
    ssize_t n = readlink(op->path, text, sizeof text);

    return n < 0 ? -errno : blz__bytes_set(op->out, blz__rt_allocator(op->rt), text, (size_t)n);
}

static int64_t canonicalize_run(blz_fs_op *op)
{
    char text[PATH_MAX];

    if (!realpath(op->path, text))
        return -errno;
    return blz__bytes_set(op->out, blz__rt_allocator(op->rt), text, strlen(text));
}

static blz_future *text_init(blz_fs_op *op, const struct fs_ops *ops, const char *path,
                             blz_bytes *out)
{
    blz__fs_init(op, ops, path);
    *out = (blz_bytes){.data = NULL};
    op->out = out;
    return &op->future;
}

blz_future *blz_fs_read_link(blz_fs_op *op, const char *path, blz_bytes *out)
{
    static const struct fs_ops ops = {FS_OP("fs_read_link"), read_link_run, NULL, blz__bytes_undo};
    return text_init(op, &ops, path, out);
}

blz_future *blz_fs_canonicalize(blz_fs_op *op, const char *path, blz_bytes *out)
{
    static const struct fs_ops ops = {FS_OP("fs_canonicalize"), canonicalize_run, NULL,
                                      blz__bytes_undo};
    return text_init(op, &ops, path, out);
}
