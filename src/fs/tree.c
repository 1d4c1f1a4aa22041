/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories with all that is above or below them.
 *
 * A tree is removed from its leaves up. Every directory on the way down is open, and everything is
 * done relative to these descriptors, without following a link: somebody who replaces a directory
 * by a link while we are at it does not lead us elsewhere. The way is kept on the heap, because
 * threads may have small stacks.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"
#include "system/dir.h"

#include <blitz/error.h>
#include <string.h>

/* ---- making ---- */

/* One that is there is fine, if it is one. */
static int make_one(const char *path, unsigned mode)
{
    blz_metadata about;
    int rc = blz__path_create_dir(path, mode);

    if (rc != -EEXIST)
        return rc;
    rc = blz__path_metadata(FILE_CURRENT_DIR, path, true, &about);
    return rc < 0 ? rc : about.type == BLZ_FILE_DIRECTORY ? 0 : -ENOTDIR;
}

static int make_all(char *path, unsigned mode)
{
    int rc = 0;

    for (char *at = path + 1; rc == 0 && *at; at++) {
        char separator = *at;
        if (!blz__path_is_separator(separator) || blz__path_is_separator(at[-1]))
            continue;
        *at = '\0';
        rc = make_one(path, mode);
        *at = separator;
    }
    return rc == 0 ? make_one(path, mode) : rc;
}

static int64_t create_dir_all_run(blz_fs_op *op)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    size_t size = strlen(op->path) + 1;
    char *path;
    int rc;

    if (size == 1)
        return -ENOENT;
    path = blz__alloc(allocator, size, 1);
    if (!path)
        return -ENOMEM;
    memcpy(path, op->path, size);
    rc = make_all(path, (unsigned)op->number[0]);
    blz__free(allocator, path, size, 1);
    return rc;
}

blz_future *blz_fs_create_dir_all(blz_fs_op *op, const char *path, unsigned mode)
{
    static const struct fs_ops ops = {FS_OP("fs_create_dir_all"), create_dir_all_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->number[0] = mode;
    return &op->future;
}

/* ---- removing ---- */

/* A directory on the way down. */
struct level {
    struct level *above;
    blz_sysfd dir;
    bool removed;     /* something, since it was read from its beginning */
    size_t used, len; /* of the batch */
    size_t size;      /* of the block */
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    char name[]; /* file systems may have names of any length */
};

static blz_sysfd dir_of(const struct level *level)
{
    return level ? level->dir : FILE_CURRENT_DIR;
}

/* A level more, or an error. */
static int go_down(const blz_fs_op *op, struct level **top, const char *path)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    size_t len = strlen(path) + 1, size = sizeof(struct level) + len;
    struct level *level;
    int64_t fd = blz__file_open(dir_of(*top), path, OPEN_READ | OPEN_DIRECTORY | OPEN_NO_FOLLOW, 0);

    if (fd < 0)
        return fd == -ELOOP ? -ENOTDIR : (int)fd;
    level = blz__alloc(allocator, size, _Alignof(struct level));
    if (!level) {
        (void)blz__file_close((blz_sysfd)fd);
        return -ENOMEM;
    }
    level->dir = (blz_sysfd)fd;
    level->above = *top;
    level->used = level->len = 0;
    level->size = size;
    level->removed = false;
    memcpy(level->name, path, len);
    *top = level;
    return 0;
}

static void go_up(const blz_fs_op *op, struct level **top)
{
    struct level *level = *top;

    *top = level->above;
    (void)blz__file_close(level->dir);
    blz__free(blz__rt_allocator(op->rt), level, level->size, _Alignof(struct level));
}

/* What another program has removed meanwhile is removed. */
static int unless_gone(int rc)
{
    return rc == -ENOENT ? 0 : rc;
}

/* All of it was read: it goes, or is read again because entries were passed over. */
static int end_level(const blz_fs_op *op, struct level **top)
{
    struct level *level = *top;
    int rc = unless_gone(blz__path_remove_dir(dir_of(level->above), level->name));

    if (rc == -ENOTEMPTY && level->removed) {
        level->removed = false;
        return blz__dir_rewind(level->dir);
    }
    if (rc == 0)
        go_up(op, top);
    if (rc == 0 && *top)
        (*top)->removed = true;
    return rc;
}

static int end_entry(const blz_fs_op *op, struct level **top, const blz_dir_entry *entry)
{
    bool was_dir = entry->type == BLZ_FILE_DIRECTORY;
    int rc = was_dir ? -EISDIR : unless_gone(blz__path_remove(dir_of(*top), entry->name));

    if (rc == -EISDIR) {
        int down = go_down(op, top, entry->name);
        if (down == -ENOTDIR && was_dir) /* has become something else */
            return unless_gone(blz__path_remove(dir_of(*top), entry->name));
        return down == -ENOTDIR ? rc : unless_gone(down);
    }
    if (rc == 0)
        (*top)->removed = true;
    return rc;
}

/* 1: there are entries in the batch; 0: all of the directory was read. */
static int fetch_entries(struct level *level)
{
    int64_t len = blz__dir_fetch(level->dir, level->batch, sizeof level->batch);

    level->used = 0;
    level->len = len > 0 ? (size_t)len : 0;
    return len < 0 ? (int)len : len > 0;
}

static int one_step(const blz_fs_op *op, struct level **top)
{
    struct level *level = *top;
    blz_dir_entry entry;
    int rc;

    if (fs_is_cancelled(op))
        return -ECANCELED;
    if (blz__dir_take(level->batch, level->len, &level->used, &entry))
        return end_entry(op, top, &entry);
    rc = fetch_entries(level);
    return rc == 0 ? end_level(op, top) : rc < 0 ? rc : 0;
}

static int64_t remove_dir_all_run(blz_fs_op *op)
{
    struct level *top = NULL;
    int rc = go_down(op, &top, op->path);

    while (rc == 0 && top)
        rc = one_step(op, &top);
    while (top)
        go_up(op, &top);
    return rc;
}

blz_future *blz_fs_remove_dir_all(blz_fs_op *op, const char *path)
{
    static const struct fs_ops ops = {FS_OP("fs_remove_dir_all"), remove_dir_all_run, NULL, NULL};
    return blz__fs_init(op, &ops, path);
}
