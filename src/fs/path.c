/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on paths that are one function of system/path.h. */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

/* Defines blz_fs_NAME(op, path) as one call. */
#define PATH_CALL(name, call)                                                          \
    static int64_t name##_run(blz_fs_op *op)                                           \
    {                                                                                  \
        return (call);                                                                 \
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
        return (call);                                                                 \
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
        return (call);                                                                 \
    }                                                                                  \
    blz_future *blz_fs_##name(blz_fs_op *op, const char *path, unsigned mode)          \
    {                                                                                  \
        static const struct fs_ops ops = {FS_OP("fs_" #name), name##_run, NULL, NULL}; \
        blz__fs_init(op, &ops, path);                                                  \
        op->number[0] = mode;                                                          \
        return &op->future;                                                            \
    }

PATH_CALL(remove, blz__path_remove(FILE_CURRENT_DIR, op->path))
PATH_CALL(remove_dir, blz__path_remove_dir(FILE_CURRENT_DIR, op->path))
PATH_CALL(exists, blz__path_exists(FILE_CURRENT_DIR, op->path))
PATHS_CALL(rename, blz__path_rename(FILE_CURRENT_DIR, op->path, FILE_CURRENT_DIR, op->other))
PATHS_CALL(hard_link, blz__path_link(op->path, op->other))
PATHS_CALL(symlink, blz__path_symlink(op->path, op->other))
MODE_CALL(set_mode, blz__path_set_mode(op->path, (unsigned)op->number[0]))
MODE_CALL(create_dir, blz__path_create_dir(op->path, (unsigned)op->number[0]))

/* ---- asking ---- */

static int64_t metadata_run(blz_fs_op *op)
{
    return blz__path_metadata(FILE_CURRENT_DIR, op->path, op->number[0], op->out);
}

blz_future *blz_fs_metadata(blz_fs_op *op, const char *path, blz_metadata *out)
{
    static const struct fs_ops ops = {FS_OP("fs_metadata"), metadata_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->out = out;
    op->number[0] = true; /* follows links */
    return &op->future;
}

blz_future *blz_fs_link_metadata(blz_fs_op *op, const char *path, blz_metadata *out)
{
    static const struct fs_ops ops = {FS_OP("fs_link_metadata"), metadata_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->out = out;
    op->number[0] = false;
    return &op->future;
}

/* ---- times ---- */

static int64_t set_times_run(blz_fs_op *op)
{
    return blz__path_set_times(op->path, op->number[0], op->number[1]);
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
    char text[PATH_SIZE];
    int64_t n = blz__path_read_link(op->path, text, sizeof text);

    return n < 0 ? n : blz__bytes_set(op->out, blz__rt_allocator(op->rt), text, (size_t)n);
}

static int64_t canonicalize_run(blz_fs_op *op)
{
    char text[PATH_SIZE];
    int64_t n = blz__path_canonical(op->path, text);

    return n < 0 ? n : blz__bytes_set(op->out, blz__rt_allocator(op->rt), text, (size_t)n);
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
