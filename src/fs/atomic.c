/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic writes: a new file `.blitz-RANDOM` beside the old one is filled, synced, and renamed; then
 * the directory is synced. A power cut at any moment leaves the old file or the new one.
 *
 * A process that is killed in between leaves its new file behind. The writer holds a lock
 * on it until it is renamed, and the system drops that lock when the process ends. So a new file
 * without a lock has no writer, and blz_fs_remove_unfinished may remove it. A writer whose file was
 * removed before it was locked begins again with another name.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"
#include "system/dir.h"

#include <blitz/error.h>
#include <string.h>

#define PREFIX ".blitz-"

enum { PREFIX_LEN = sizeof PREFIX - 1 };

/* ---- writing ---- */

/* Opens the directory of a path, and finds the name in it. */
static int64_t open_parent(const blz_fs_op *op, const char **name)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    size_t len = strlen(op->path);
    char *dir;
    int64_t fd;

    while (len > 0 && !blz__path_is_separator(op->path[len - 1]))
        len--;
    *name = op->path + len;
    if (**name == '\0')
        return -EISDIR;
    if (len == 0)
        return blz__open_dir(".");
    dir = blz__alloc(allocator, len + 1, 1);
    if (!dir)
        return -ENOMEM;
    memcpy(dir, op->path, len); /* with the separator: it may be all there is */
    dir[len] = '\0';
    fd = blz__open_dir(dir);
    blz__free(allocator, dir, len + 1, 1);
    return fd;
}

enum { SET_USER_ID = 04000, SET_GROUP_ID = 02000 };

unsigned blz__mode_for(const blz_metadata *of, const blz_metadata *other)
{
    unsigned mode = of->mode;

    if (of->uid != other->uid)
        mode &= ~(unsigned)(SET_USER_ID | SET_GROUP_ID);
    if (of->gid != other->gid)
        mode &= ~(unsigned)SET_GROUP_ID;
    return mode;
}

/*
 * 1 and the old file, or 0 if there is no regular one. If its permissions cannot be found out it
 * may be one that others must not read, and that is an error.
 */
static int find_old(blz_sysfd dir, const char *name, blz_metadata *old)
{
    int rc = blz__path_metadata(dir, name, true, old);

    if (rc < 0)
        return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP ? 0 : rc;
    return old->type == BLZ_FILE_REGULAR;
}

static int copy_mode(blz_sysfd fd, const blz_metadata *old)
{
    blz_metadata about;
    int rc = blz__file_metadata(fd, &about);

    return rc < 0 ? rc : blz__file_set_mode(fd, blz__mode_for(old, &about));
}

/* All of the new file, on the disk. Its permissions come last: writing takes some of them away. */
static int64_t fill_new(const blz_fs_op *op, blz_sysfd fd, const blz_metadata *old)
{
    int64_t rc = blz__write_fully(op, fd, op->data, op->len);

    if (rc == 0 && old)
        rc = copy_mode(fd, old);
    return rc == 0 ? blz__file_sync(fd, false) : rc;
}

/* Locks a new file. False: it has been removed, or is going to be. */
static bool lock_new(blz_sysfd fd)
{
    blz_metadata about;
    int rc = blz__file_lock(fd, FILE_LOCK_EXCLUSIVE);

    if (rc < 0)
        return rc != -EAGAIN; /* a file system without locks */
    return blz__file_metadata(fd, &about) < 0 || about.links > 0;
}

/* A new file that is locked, and its name behind the prefix. */
static int64_t open_new(blz_sysfd dir, char *name, unsigned mode)
{
    int64_t fd;

    do {
        blz__random_name(name + PREFIX_LEN);
        fd = blz__file_open(dir, name, OPEN_WRITE | OPEN_CREATE_NEW, mode);
        if (fd >= 0 && !lock_new((blz_sysfd)fd)) {
            (void)blz__path_remove(dir, name);
            (void)blz__file_close((blz_sysfd)fd);
            fd = -EEXIST;
        }
    } while (fd == -EEXIST);
    return fd;
}

/* The error of a close would be no news after a sync, and the lock is kept over the rename. */
static int64_t replace(const blz_fs_op *op, blz_sysfd dir, const char *name)
{
    char temp[PREFIX_LEN + RANDOM_NAME] = PREFIX;
    blz_metadata old;
    int is_old = find_old(dir, name, &old);
    int64_t fd, rc;

    if (is_old < 0)
        return is_old;
    /* until it has the permissions of the old one, nobody else may read it */
    fd = open_new(dir, temp, is_old ? 0600 : 0666);
    if (fd < 0)
        return fd;
    rc = fill_new(op, (blz_sysfd)fd, is_old ? &old : NULL);
    if (rc == 0 && fs_is_cancelled(op))
        rc = -ECANCELED;
    if (rc == 0)
        rc = blz__path_rename(dir, temp, dir, name);
    if (rc < 0)
        (void)blz__path_remove(dir, temp);
    (void)blz__file_close((blz_sysfd)fd);
    return rc < 0 ? rc : blz__file_sync(dir, false);
}

static int64_t write_atomic_run(blz_fs_op *op)
{
    const char *name;
    int64_t dir = open_parent(op, &name), rc;

    if (dir < 0)
        return dir;
    rc = replace(op, (blz_sysfd)dir, name);
    (void)blz__file_close((blz_sysfd)dir);
    return rc;
}

blz_future *blz_fs_write_atomic(blz_fs_op *op, const char *path, const void *data, size_t len)
{
    static const struct fs_ops ops = {FS_OP("fs_write_atomic"), write_atomic_run, NULL, NULL};

    blz__fs_init(op, &ops, path);
    op->data = data;
    op->len = len;
    return length_is_valid(len) ? &op->future : blz_ready(&op->future, -EINVAL);
}

/* ---- removing what was left ---- */

static bool is_new_name(const char *name)
{
    return strncmp(name, PREFIX, PREFIX_LEN) == 0 &&
           strspn(name + PREFIX_LEN, "0123456789abcdef") == RANDOM_NAME - 1 &&
           name[PREFIX_LEN + RANDOM_NAME - 1] == '\0';
}

/* Whether it is a file that no writer has locked. The lock of `fd` keeps writers away. */
static bool has_no_writer(blz_sysfd fd)
{
    blz_metadata about;

    return blz__file_metadata(fd, &about) == 0 && about.type == BLZ_FILE_REGULAR &&
           blz__file_lock(fd, FILE_LOCK_SHARED) == 0;
}

/* 1: it was removed; 0: it was not. One that this user may not open is left alone. */
static int64_t remove_one(blz_sysfd dir, const char *name)
{
    int64_t fd = blz__file_open(dir, name, OPEN_READ | OPEN_NO_FOLLOW, 0);
    int rc = 0;

    if (fd < 0)
        return 0;
    if (has_no_writer((blz_sysfd)fd)) {
        rc = blz__path_remove(dir, name);
        rc = rc == 0 ? 1 : rc == -ENOENT ? 0 : rc;
    }
    (void)blz__file_close((blz_sysfd)fd);
    return rc;
}

/* How many of a batch were removed. */
static int64_t remove_of_batch(blz_sysfd dir, const void *batch, size_t len)
{
    blz_dir_entry entry;
    int64_t removed = 0, rc;
    size_t used = 0;

    while (blz__dir_take(batch, len, &used, &entry)) {
        rc = is_new_name(entry.name) ? remove_one(dir, entry.name) : 0;
        if (rc < 0)
            return rc;
        removed += rc;
    }
    return removed;
}

static int64_t remove_all(const blz_fs_op *op, blz_sysfd dir, void *batch)
{
    int64_t removed = 0, rc;

    for (;;) {
        int64_t len = fs_is_cancelled(op) ? -ECANCELED : blz__dir_fetch(dir, batch, DIR_BATCH);
        if (len <= 0)
            return len < 0 ? len : removed;
        rc = remove_of_batch(dir, batch, (size_t)len);
        if (rc < 0)
            return rc;
        removed += rc;
    }
}

static int64_t remove_unfinished_run(blz_fs_op *op)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    int64_t fd = blz__open_dir(op->path), rc = -ENOMEM;
    void *batch;

    if (fd < 0)
        return fd;
    batch = blz__alloc(allocator, DIR_BATCH, DIR_BATCH_ALIGN);
    if (batch) {
        rc = remove_all(op, (blz_sysfd)fd, batch);
        blz__free(allocator, batch, DIR_BATCH, DIR_BATCH_ALIGN);
    }
    (void)blz__file_close((blz_sysfd)fd);
    return rc;
}

blz_future *blz_fs_remove_unfinished(blz_fs_op *op, const char *dir)
{
    static const struct fs_ops ops = {FS_OP("fs_remove_unfinished"), remove_unfinished_run, NULL,
                                      NULL};
    return blz__fs_init(op, &ops, dir);
}
