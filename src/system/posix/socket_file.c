/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets at a path, for one user.
 *
 * The file of a Unix socket outlives a program that was killed. If nobody listens there any more it
 * is removed, and if it is no socket it is left alone. Two programs that start at the same path
 * could each take the other's new socket for an old one. So from the look at the old socket to
 * listen(2) a program holds a lock: flock(2) of the file "PATH.lock", which it removes before it
 * lets go. A program that finds the lock taken gives up with -EADDRINUSE.
 *
 * Only the owner may connect. Linux gives the new file the mode that the socket itself has when it
 * is bound, so that is set first: the file never has another mode, and no path is followed twice.
 */
#include "system/address.h"
#include "system/handle.h"
#include "system/posix/result.h"
#include "system/socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOCK_PATH = 128 }; /* the longest path of a socket has 108 bytes */

/* The path, or NULL. */
static const char *path_of(const blz_addr *addr)
{
    size_t len;
    bool abstract;
    const char *name = blz__address_unix_name(addr, &len, &abstract);

    return name && !abstract && len > 0 ? name : NULL;
}

/* ---- the lock ---- */

struct start_lock {
    int fd;
    char path[LOCK_PATH];
};

/* False: the file was removed, or replaced, before it was locked. */
static bool is_lock_file(const struct start_lock *lock)
{
    struct stat ours, there;

    return fstat(lock->fd, &ours) == 0 && lstat(lock->path, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* 0; -EADDRINUSE: another program is starting here; or what the system says. */
static int lock_start(struct start_lock *lock, const char *path)
{
    int rc;

    snprintf(lock->path, sizeof lock->path, "%s.lock", path);
    for (;;) {
        lock->fd = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (lock->fd < 0)
            return sys_error();
        rc = sys_result(flock(lock->fd, LOCK_EX | LOCK_NB));
        if (rc == 0 && is_lock_file(lock))
            return 0;
        close(lock->fd);
        if (rc < 0)
            return rc == -EAGAIN ? -EADDRINUSE : rc;
    }
}

static void unlock_start(struct start_lock *lock)
{
    (void)unlink(lock->path);
    close(lock->fd);
}

/* ---- under the lock ---- */

static bool is_listened_at(const blz_addr *addr)
{
    int64_t fd = blz__socket_open(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, true);
    int rc;

    if (fd < 0)
        return true; /* it cannot be known */
    rc = sys_result(connect((int)fd, blz__address_to_system(addr), addr->len));
    blz__handle_close((int)fd);
    return rc != -ECONNREFUSED;
}

/* True: what was in the way is gone. */
static bool remove_stale(const blz_addr *addr, const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !is_listened_at(addr) &&
           unlink(path) == 0;
}

static int listen_locked(blz_sysfd fd, const blz_addr *addr, const char *path, int backlog,
                         struct blz__socket_file *file)
{
    struct stat st;
    int rc;

    if (fchmod(fd, S_IRUSR | S_IWUSR) < 0)
        return sys_error();
    rc = blz__socket_bind(fd, addr);
    if (rc == -EADDRINUSE && remove_stale(addr, path))
        rc = blz__socket_bind(fd, addr);
    if (rc < 0)
        return rc;
    if (listen(fd, backlog) < 0 || lstat(path, &st) < 0) {
        rc = sys_error();
        (void)unlink(path);
        return rc;
    }
    *file = (struct blz__socket_file){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    return 0;
}

/* ---- the contract ---- */

int blz__socket_listen_private(blz_sysfd fd, const blz_addr *addr, int backlog,
                               struct blz__socket_file *file)
{
    const char *path = path_of(addr);
    struct start_lock lock;
    int rc;

    if (!path)
        return -EINVAL;
    rc = lock_start(&lock, path);
    if (rc < 0)
        return rc;
    rc = listen_locked(fd, addr, path, backlog, file);
    unlock_start(&lock);
    return rc;
}

void blz__socket_remove_file(const blz_addr *addr, const struct blz__socket_file *file)
{
    const char *path = path_of(addr);
    struct stat st;

    if (path && lstat(path, &st) == 0 && (uint64_t)st.st_dev == file->device &&
        (uint64_t)st.st_ino == file->inode)
        (void)unlink(path);
}
