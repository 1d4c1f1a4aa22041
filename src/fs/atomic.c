/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic writes: a new file `.blitz-RANDOM` beside the old one is filled, synced, and renamed; then
 * the directory is synced. A power cut at any moment leaves the old file or the new one.
 *
 * A process that is killed in between leaves its new file behind. The writer holds a lock (flock)
 * on it until it is renamed, and the system drops that lock when the process ends. So a new file
 * without a lock has no writer, and blz_fs_remove_unfinished may remove it. A writer whose file was
 * removed before it was locked begins again with another name.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX ".blitz-"

enum { PREFIX_LEN = sizeof PREFIX - 1 };

/* ---- writing ---- */

/* Opens the directory of a path, and finds the name in it. */
static int open_parent(const blz_fs_op *op, const char **name)
{
    const blz_allocator *allocator = blz__rt_allocator(op->rt);
    const char *slash = strrchr(op->path, '/');
    size_t len = slash ? (size_t)(slash - op->path) : 0;
    char *dir;
    int fd;

    *name = slash ? slash + 1 : op->path;
    if (**name == '\0')
        return -EISDIR;
    if (!slash)
        return blz__open_at(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY, 0);
    dir = blz__alloc(allocator, len + 2, 1);
    if (!dir)
        return -ENOMEM;
    memcpy(dir, op->path, len + 1); /* with the slash: it may be all there is */
    dir[len + 1] = '\0';
    fd = blz__open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
    blz__free(allocator, dir, len + 2, 1);
    return fd;
}

static int64_t sync_fd(int fd)
{
    int rc;

    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

mode_t blz__mode_for(const struct stat *of, const struct stat *other)
{
    mode_t mode = of->st_mode & 07777;

    if (of->st_uid != other->st_uid)
        mode &= ~(mode_t)(S_ISUID | S_ISGID);
    if (of->st_gid != other->st_gid)
        mode &= ~(mode_t)S_ISGID;
    return mode;
}

/*
 * 1 and the old file, or 0 if there is no regular one. If its permissions cannot be found out it
 * may be one that others must not read, and that is an error.
 */
static int find_old(int dir, const char *name, struct stat *old)
{
    if (fstatat(dir, name, old, 0) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    return S_ISREG(old->st_mode);
}

static int copy_mode(int fd, const struct stat *old)
{
    struct stat st;

    return fstat(fd, &st) < 0 || fchmod(fd, blz__mode_for(old, &st)) < 0 ? -errno : 0;
}

/* All of the new file, on the disk. Its permissions come last: writing takes some of them away. */
static int64_t fill_new(const blz_fs_op *op, int fd, const struct stat *old)
{
    int64_t rc = blz__write_fully(op, fd, op->data, op->len);

    if (rc == 0 && old)
        rc = copy_mode(fd, old);
    return rc == 0 ? sync_fd(fd) : rc;
}

/* Locks a new file. False: it has been removed, or is going to be. */
static bool lock_new(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno != EWOULDBLOCK; /* a file system without locks */
    return fstat(fd, &st) < 0 || st.st_nlink > 0;
}

/* A new file that is locked, and its name behind the prefix. */
static int open_new(int dir, char *name, unsigned mode)
{
    int fd;

    do {
        blz__random_name(name + PREFIX_LEN);
        fd = blz__open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (fd >= 0 && !lock_new(fd)) {
            unlinkat(dir, name, 0);
            close(fd);
            fd = -EEXIST;
        }
    } while (fd == -EEXIST);
    return fd;
}

/* The error of a close would be no news after a sync, and the lock is kept over the rename. */
static int64_t replace(const blz_fs_op *op, int dir, const char *name)
{
    char temp[PREFIX_LEN + RANDOM_NAME] = PREFIX;
    struct stat old;
    int fd, is_old = find_old(dir, name, &old);
    int64_t rc;

    if (is_old < 0)
        return is_old;
    /* until it has the permissions of the old one, nobody else may read it */
    fd = open_new(dir, temp, is_old ? 0600 : 0666);
    if (fd < 0)
        return fd;
    rc = fill_new(op, fd, is_old ? &old : NULL);
    if (rc == 0 && fs_is_cancelled(op))
        rc = -ECANCELED;
    if (rc == 0 && renameat(dir, temp, dir, name) < 0)
        rc = -errno;
    if (rc < 0)
        unlinkat(dir, temp, 0);
    close(fd);
    return rc < 0 ? rc : sync_fd(dir);
}

static int64_t write_atomic_run(blz_fs_op *op)
{
    const char *name;
    int dir = open_parent(op, &name);
    int64_t rc;

    if (dir < 0)
        return dir;
    rc = replace(op, dir, name);
    close(dir);
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
static bool has_no_writer(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* 1: it was removed; 0: it was not. One that this user may not open is left alone. */
static int64_t remove_one(int dir, const char *name)
{
    int fd = blz__open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    int64_t rc = 0;

    if (fd < 0)
        return 0;
    if (has_no_writer(fd))
        rc = unlinkat(dir, name, 0) == 0 ? 1 : errno == ENOENT ? 0 : -errno;
    close(fd);
    return rc;
}

static int64_t remove_all(const blz_fs_op *op, DIR *list)
{
    const struct dirent *entry;
    int64_t removed = 0, rc;

    for (;;) {
        if (fs_is_cancelled(op))
            return -ECANCELED;
        errno = 0;
        entry = readdir(list);
        if (!entry)
            return errno ? -errno : removed;
        rc = is_new_name(entry->d_name) ? remove_one(dirfd(list), entry->d_name) : 0;
        if (rc < 0)
            return rc;
        removed += rc;
    }
}

static int64_t remove_unfinished_run(blz_fs_op *op)
{
    int fd = blz__open_at(AT_FDCWD, op->path, O_RDONLY | O_DIRECTORY, 0);
    DIR *list;
    int64_t rc;

    if (fd < 0)
        return fd;
    list = fdopendir(fd);
    if (!list) {
        rc = -errno;
        close(fd);
        return rc;
    }
    rc = remove_all(op, list);
    closedir(list);
    return rc;
}

blz_future *blz_fs_remove_unfinished(blz_fs_op *op, const char *dir)
{
    static const struct fs_ops ops = {FS_OP("fs_remove_unfinished"), remove_unfinished_run, NULL,
                                      NULL};
    return blz__fs_init(op, &ops, dir);
}
