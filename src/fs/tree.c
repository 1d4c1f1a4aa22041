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

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- making ---- */

/* One that is there is fine, if it is one. */
static int make_one(const char *path, mode_t mode)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    return stat(path, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int make_all(char *path, mode_t mode)
{
    int rc = 0;

    for (char *at = path + 1; rc == 0 && *at; at++) {
        if (*at != '/' || at[-1] == '/')
            continue;
        *at = '\0';
        rc = make_one(path, mode);
        *at = '/';
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
    rc = make_all(path, (mode_t)op->number[0]);
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
    DIR *dir;
    size_t size;  /* of the block */
    bool removed; /* something, since it was read from its beginning */
    char name[];  /* NAME_MAX is not the limit of every file system */
};

static int dir_of(const struct level *level)
{
    return level ? dirfd(level->dir) : AT_FDCWD;
}

/* A level more, or an error. */
static int go_down(const blz_fs_op *op, struct level **top, const char *path)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    size_t len = strlen(path) + 1, size = sizeof(struct level) + len;
    struct level *level;
    int fd = blz__open_at(dir_of(*top), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), rc;

    if (fd < 0)
        return fd == -ELOOP ? -ENOTDIR : fd;
    level = blz__alloc(allocator, size, _Alignof(struct level));
    if (!level) {
        close(fd);
        return -ENOMEM;
    }
    level->dir = fdopendir(fd);
    if (!level->dir) {
        rc = -errno;
        close(fd);
        blz__free(allocator, level, size, _Alignof(struct level));
        return rc;
    }
    level->above = *top;
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
    closedir(level->dir);
    blz__free(blz__rt_allocator(op->rt), level, level->size, _Alignof(struct level));
}

/* 0, also if somebody else was faster. */
static int remove_at(int dir, const char *path, int flags)
{
    return unlinkat(dir, path, flags) == 0 || errno == ENOENT ? 0 : -errno;
}

/* All of it was read: it goes, or is read again because entries were passed over. */
static int end_level(const blz_fs_op *op, struct level **top)
{
    struct level *level = *top;
    int rc = remove_at(dir_of(level->above), level->name, AT_REMOVEDIR);

    if ((rc == -ENOTEMPTY || rc == -EEXIST) && level->removed) {
        level->removed = false;
        rewinddir(level->dir);
        return 0;
    }
    if (rc == 0)
        go_up(op, top);
    if (rc == 0 && *top)
        (*top)->removed = true;
    return rc;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int end_entry(const blz_fs_op *op, struct level **top, const struct dirent *entry)
{
    int rc = entry->d_type == DT_DIR ? -EISDIR : remove_at(dir_of(*top), entry->d_name, 0);

    if (rc == -EISDIR || rc == -EPERM) { /* the second is POSIX's word for the first */
        int down = go_down(op, top, entry->d_name);
        if (down == -ENOTDIR && entry->d_type == DT_DIR)
            return remove_at(dir_of(*top), entry->d_name, 0); /* has become something else */
        return down == -ENOTDIR ? rc : down == -ENOENT ? 0 : down;
    }
    if (rc == 0)
        (*top)->removed = true;
    return rc;
}

static int one_step(const blz_fs_op *op, struct level **top)
{
    const struct dirent *entry;

    if (fs_is_cancelled(op))
        return -ECANCELED;
    errno = 0;
    entry = readdir((*top)->dir);
    if (entry)
        return is_dots(entry->d_name) ? 0 : end_entry(op, top, entry);
    return errno ? -errno : end_level(op, top);
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
